"""Every certificate brackets the optimum of a quadratic program over all outputs."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Accelerated, Averaged, Away, BlockFrankWolfe, Pairwise, Status, solve
from support import naive
from support.catalogue import (
    Case,
    chain_case,
    chain_cases,
    matching_case,
    multiclass_case,
    multiclass_cases,
    tree_case,
)
from support.naive import Optimum
from support.runs import assert_brackets

pytestmark = pytest.mark.long

CASES = {
    "chain of two labels": lambda seed: chain_case(seed, (2, 1, 3, 2, 1), 2, loss="hamming"),
    "chain of three labels": chain_case,
    "three classes": multiclass_case,
    "four classes": lambda seed: multiclass_case(seed, n=8, n_labels=4, loss="zero_one"),
    "matching": matching_case,
    "matching of fertility two": lambda seed: matching_case(seed, ((1, 3), (2, 2), (2, 1), (2, 3)), 2),
    "trees": lambda seed: tree_case(seed, (2, 3, 1, 3)),
}
METHODS = {
    "pairwise": Pairwise,
    "away": Away,
    "averaged pairwise": lambda lam: Averaged(Pairwise(lam)),
    "accelerated BCFW": lambda lam: Accelerated(BlockFrankWolfe(lam)),
    "accelerated pairwise": lambda lam: Accelerated(Pairwise(lam)),
    "accelerated pairwise, fixed kappa": lambda lam: Accelerated(Pairwise(lam), kappa=0.3),
    "accelerated away": lambda lam: Accelerated(Away(lam)),
}
SEEDS = (0, 1)
LAMS = (0.01, 0.1, 1.0, 10.0)
# Whole numbers make ties.
small_cases = st.one_of(
    chain_cases(max_length=3, max_labels=3, rows=("dense", "whole")),
    multiclass_cases(rows=("dense", "whole")),
)


@cache
def solved_otherwise(name: str, seed: int, lam: float) -> tuple[Case, Optimum]:
    case = CASES[name](seed)
    best = naive.optimum(case.data, lam)
    assert best.primal - best.dual <= 1e-9
    return case, best


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_certificates_bracket_the_optimum(method: str, name: str, lam: float) -> None:
    for seed in SEEDS:
        case, best = solved_otherwise(name, seed, lam)
        result = solve(
            case.problem, METHODS[method](lam), tol=0.0, max_passes=40, check_every=2, random_state=seed
        )
        assert_brackets(case, result, best, lam)
        if method != "averaged pairwise":
            assert np.diff(result.history.dual).min(initial=0.0) >= -1e-14


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_certificates_hold_under_gap_sampling(name: str) -> None:
    for method in (Pairwise(0.1), Accelerated(Pairwise(0.1))):
        case, best = solved_otherwise(name, 0, 0.1)
        result = solve(
            case.problem, method, tol=0.0, max_passes=400, check_every=10, sampling="gap", random_state=0
        )
        assert_brackets(case, result, best, 0.1)
        assert result.gap <= 0.01 * best.dual


@pytest.mark.long
@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_accelerated_pairwise_steps_converge(name: str, lam: float, sampling: str) -> None:
    for seed in SEEDS:
        case, best = solved_otherwise(name, seed, lam)
        method, tol = Accelerated(Pairwise(lam)), 1e-6 * best.dual
        result = solve(case.problem, method, tol=tol, max_passes=1000, sampling=sampling, random_state=seed)
        assert result.status is Status.CONVERGED
        assert_brackets(case, result, best, lam)
        assert result.primal - best.dual <= 1.1 * tol
        assert best.primal - result.dual <= 1.1 * tol
        # P is strongly convex: ||w - w*||^2 <= 2 gap / lam.
        assert np.linalg.norm(result.weights - best.w) <= np.sqrt(2.2 * tol / lam)


@settings(max_examples=60)
@given(small_cases, st.sampled_from(list(METHODS)), st.floats(-4.0, 3.0), st.integers(0, 1000))
def test_certificates_hold_at_every_lam(case: Case, method: str, exponent: float, seed: int) -> None:
    lam = 10.0**exponent
    best = naive.optimum(case.data, lam)
    result = solve(
        case.problem, METHODS[method](lam), tol=0.0, max_passes=12, check_every=1, random_state=seed
    )
    assert_brackets(case, result, best, lam)
