"""Runs do not depend on the basis of the weights: only `inner` measures them, and only maps know it."""

from typing import Any

import numpy as np
import pytest

import maxmargin.methods
from maxmargin import (
    BMRM,
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    Cached,
    CuttingPlane,
    Divided,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    FrankWolfe,
    NSlackCuttingPlane,
    Pairwise,
    Perceptron,
    Predefined,
    Result,
    Subgradient,
    WarmStart,
    solve,
)
from maxmargin.decoding import decode_all
from maxmargin.problems import SignConstrained, SlackRescaled, Weighted
from maxmargin.problems.feature_map import inner, map_sizes
from support.bases import Rotation, Scaling, interpreted, rebased
from support.bitwise_runs import bits
from support.catalogue import (
    chain_case,
    graph_case,
    matching_case,
    multiclass_case,
    segment_case,
    tree_case,
)
from support.own_functions import custom

pytestmark = pytest.mark.long

LAM = 0.1
BLOCK = BlockFrankWolfe(LAM)
METHODS: dict[str, Any] = {
    "fw": FrankWolfe(LAM),
    "averaged fw": Averaged(FrankWolfe(LAM)),
    "bcfw": BLOCK,
    "predefined steps": BlockFrankWolfe(LAM, Predefined()),
    "pairwise": Pairwise(LAM),
    "away": Away(LAM),
    "averaged": Averaged(BLOCK),
    "averaged pairwise": Averaged(Pairwise(LAM), "suffix"),
    "accelerated": Accelerated(Pairwise(LAM)),
    "accelerated bcfw": Accelerated(BLOCK, kappa=0.1),
    "cached": Cached(BLOCK, oracle_cost=8.0),
    "accelerated and cached": Accelerated(Cached(Pairwise(LAM), oracle_cost=8.0)),
    "divided": Divided(BLOCK),
    "accelerated and divided": Accelerated(Divided(Pairwise(LAM))),
    "ssg": Subgradient(LAM),
    "averaged ssg": Averaged(Subgradient(LAM)),
    "perceptron": Perceptron(LAM),
    "averaged perceptron": Averaged(Perceptron(LAM), "uniform"),
    "1-slack": CuttingPlane(LAM),
    "n-slack": NSlackCuttingPlane(LAM),
    "bmrm": BMRM(LAM),
    "exponentiated gradient": ExponentiatedGradient(LAM),
    "extragradient": Extragradient(LAM),
    "excessive gap": ExcessiveGap(LAM),
}
NEEDS_MEANS = ("exponentiated gradient", "extragradient", "excessive gap")
REFUSES_SIGNS = (*NEEDS_MEANS, "divided", "accelerated and divided", "perceptron", "averaged perceptron")
REFUSES_SIGNS += ("1-slack", "n-slack", "bmrm")
# Random costs and features leave no ties.
PROBLEMS: dict[str, Any] = {
    "chain": chain_case(7, (2, 1, 3)).problem,
    "multiclass": multiclass_case(8).problem,
    "weighted chain": Weighted(chain_case(9, (2, 1, 3)).problem, [0.5, 2.0, 1.5]),
    "rescaled classes": SlackRescaled(multiclass_case(10).problem),
    "rescaled and weighted": Weighted(SlackRescaled(multiclass_case(11).problem), [0.5, 2.0, 1.5, 0.7, 1.1]),
}
MODELS: dict[str, Any] = {
    "second-order chain": chain_case(12, (3, 1, 4), 2, order=2).problem,
    "segments": segment_case(13).problem,
    "matching": matching_case(14, fertility=2).problem,
    "trees": tree_case(15).problem,
    "graph": graph_case(16).problem,
    "cut": graph_case(17, (3, 4), 2, inference="cut").problem,
    "three functions": custom(multiclass_case(18)),
}


def can_run(method: str, problem: str) -> bool:
    """Whether the method runs; slack rescaling has no expectation oracle."""
    return not (method in NEEDS_MEANS and problem.startswith("rescaled"))


PAIRS = [(method, problem) for method in METHODS for problem in PROBLEMS if can_run(method, problem)]


def ran(problem: Any, method: Any, **options: Any) -> Result:
    return solve(
        problem, method, **{"tol": 0.0, "max_passes": 20, "check_every": 4, "random_state": 3} | options
    )


def numbers(problem: Any, result: Result) -> list[list[str]]:
    """Return the bits of all that does not depend on the basis."""
    history = [result.history[column] for column in ("passes", "oracle_calls", "primal", "dual", "gap")]
    return [bits(column) for column in (*history, [result.primal, result.dual, result.gap])] + [
        decode_all(problem, result.w).tolist()
    ]


def test_no_method_is_left_out() -> None:
    def names(method: Any) -> set[str]:
        return {type(method).__name__} | (names(method.inner) if hasattr(method, "inner") else set())

    steps = {"LineSearch", "Predefined"}
    assert set().union(*map(names, METHODS.values())) == set(maxmargin.methods.__all__) - steps


def assert_same_run(plain: Any, other: Any, method: Any) -> None:
    expected, found = ran(plain, method), ran(other, method)
    assert numbers(other, found) == numbers(plain, expected)
    assert bits(other.map.basis.back(found.w)) == bits(expected.w)
    assert found.w.any()
    assert (found.w != expected.w).any()


@pytest.mark.parametrize(("method", "problem"), PAIRS)
def test_powers_of_two_change_no_bit(method: str, problem: str) -> None:
    plain = interpreted(PROBLEMS[problem])
    assert_same_run(plain, rebased(plain, Scaling), METHODS[method])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["bcfw", "pairwise", "fw"])
def test_powers_of_two_change_no_bit_of_other_models(method: str, model: str) -> None:
    plain = interpreted(MODELS[model])
    assert_same_run(plain, rebased(plain, Scaling), METHODS[method])


@pytest.mark.parametrize("method", [method for method in METHODS if method not in REFUSES_SIGNS])
def test_powers_of_two_change_no_bit_of_weights_with_signs(method: str) -> None:
    """Factors above zero keep signs. The constraints are around the other basis: they cut its coordinates."""
    plain, where = interpreted(multiclass_case(3, n=5).problem), np.arange(0, 9, 2)
    other = SignConstrained(rebased(plain, Scaling), where)
    plain = SignConstrained(plain, where)
    expected, found = ran(plain, METHODS[method]), ran(other, METHODS[method])
    assert numbers(other, found) == numbers(plain, expected)
    d = map_sizes(plain.map.inner).weights
    assert bits(other.map.inner.basis.back(found.w[:d])) == bits(expected.w[:d])
    weights = np.concatenate([part.ravel() for part in other.unpack(found.w)])
    assert (weights[where] >= 0.0).all()
    assert (weights[where] == 0.0).any()


@pytest.mark.parametrize("method", ["bcfw", "pairwise", "averaged", "accelerated", "fw"])
@pytest.mark.parametrize("keep", ["best", "weights", "dual"])
def test_runs_that_go_on_change_no_bit(method: str, keep: str) -> None:
    plain = interpreted(PROBLEMS["chain"])
    other = rebased(plain, Scaling)
    found = []
    for problem in (plain, other):
        first = ran(problem, METHODS[method], max_passes=5)
        found.append(numbers(problem, ran(problem, METHODS[method], start=WarmStart(first, keep))))
    assert found[0] == found[1]


# After an exact line search two planes of an active set have the same margin, so that the next step depends
# on the last bit. That was seen for most of these methods, not for 1-slack, whose cause is open.
MEET_TIES = ("pairwise", "averaged pairwise", "accelerated and cached", "1-slack", "n-slack")


def assert_close(plain: Any, other: Any, method: Any, **options: Any) -> None:
    expected, found = ran(plain, method, **options), ran(other, method, **options)
    for column in ("passes", "oracle_calls", "primal", "dual", "gap"):
        assert found.history[column] == pytest.approx(expected.history[column], rel=1e-9, abs=1e-9)
    assert (found.primal, found.dual) == pytest.approx((expected.primal, expected.dual), rel=1e-9, abs=1e-9)
    assert other.map.basis.back(found.w) == pytest.approx(expected.w, rel=1e-9, abs=1e-9)
    assert (decode_all(other, found.w) == decode_all(plain, expected.w)).all()


@pytest.mark.parametrize(("method", "problem"), [pair for pair in PAIRS if pair[0] not in MEET_TIES])
def test_a_dense_basis_changes_roundings_alone(method: str, problem: str) -> None:
    """Signs are left out: they belong to coordinates."""
    plain = interpreted(PROBLEMS[problem])
    assert_close(plain, rebased(plain, Rotation), METHODS[method])


@pytest.mark.parametrize(("method", "problem"), [pair for pair in PAIRS if pair[0] in MEET_TIES])
def test_a_dense_basis_has_the_same_optimum(method: str, problem: str) -> None:
    """The first pass is the same, and later bounds hold for both, and come close."""
    plain = interpreted(PROBLEMS[problem])
    other = rebased(plain, Rotation)
    assert_close(plain, other, METHODS[method], max_passes=1)
    runs = [ran(each, METHODS[method], tol=1e-3, max_passes=200) for each in (plain, other)]
    assert (
        max(run.history.dual.max() for run in runs) <= min(run.history.primal.min() for run in runs) + 1e-12
    )
    assert max(run.gap for run in runs) <= 1e-3


@pytest.mark.parametrize("kind", [Scaling, Rotation])
def test_the_inner_product_is_that_of_the_weights(kind: Any) -> None:
    problem, rng = rebased(PROBLEMS["chain"], kind), np.random.default_rng(0)
    w, v = rng.normal(size=(2, map_sizes(problem.map).weights))
    forth = problem.map.basis.forth
    assert inner(problem.map, forth(w), forth(v)) == pytest.approx(w @ v)
    assert forth(w) @ forth(v) != pytest.approx(w @ v)
    assert problem.map.basis.back(forth(w)) == pytest.approx(w)
