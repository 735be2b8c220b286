"""What the methods that need an expectation oracle have in common: certificates, counts and errors."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import (
    Accelerated,
    Averaged,
    BlockFrankWolfe,
    BrokenOracle,
    Cached,
    Divided,
    ExcessiveGap,
    ExponentiatedGradient,
    Extragradient,
    solve,
)
from maxmargin.problems import Chain, Multiclass
from maxmargin.structures.sequences.model import ChainMap
from support import naive
from support.catalogue import Case, chain_case, chain_cases, multiclass_case, multiclass_cases
from support.counting import Counting
from support.naive import Optimum
from support.plain import Plain
from support.runs import assert_brackets

METHODS = {
    "exponentiated gradient": ExponentiatedGradient,
    "extragradient": Extragradient,
    "excessive gap": ExcessiveGap,
}
CASES = {
    "chain of two labels": lambda: chain_case(0, (2, 1, 3, 2, 1), 2, loss="hamming"),
    "chain of three labels": lambda: chain_case(1),
    "three classes": lambda: multiclass_case(0),
    "four classes": lambda: multiclass_case(1, n=8, n_labels=4, loss="zero_one"),
}
small_cases = st.one_of(
    chain_cases(max_length=3, max_labels=3, rows=("dense",)), multiclass_cases(rows=("dense",))
)


@cache
def solved_otherwise(name: str, lam: float) -> tuple[Case, Optimum]:
    case = CASES[name]()
    best = naive.optimum(case.data, lam)
    assert best.primal - best.dual <= 1e-9
    return case, best


@pytest.mark.slow
@pytest.mark.parametrize("lam", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_methods_come_within_a_hundredth_of_the_optimum(method: str, name: str, lam: float) -> None:
    case, best = solved_otherwise(name, lam)
    passes = 1000 if lam < 0.1 else 300
    result = solve(
        case.problem, METHODS[method](lam), tol=0.0, max_passes=passes, check_every=20, random_state=0
    )
    assert_brackets(case, result, best, lam)
    assert result.primal <= 1.01 * best.primal
    assert result.dual >= 0.99 * best.dual
    if method == "exponentiated gradient":
        assert np.diff(result.history.dual).min() >= -1e-13


@settings(max_examples=40)
@given(small_cases, st.sampled_from(list(METHODS)), st.floats(-4.0, 3.0), st.integers(0, 1000))
def test_certificates_hold_at_every_lam(case: Case, method: str, exponent: float, seed: int) -> None:
    lam = 10.0**exponent
    result = solve(
        case.problem, METHODS[method](lam), tol=0.0, max_passes=10, check_every=1, random_state=seed
    )
    assert_brackets(case, result, naive.optimum(case.data, lam), lam)


@pytest.mark.parametrize("method", METHODS)
def test_oracle_calls_are_counted(method: str) -> None:
    """The start's calls too; a plain object runs interpreted, and says what was asked of it."""
    problem = Counting(multiclass_case(2).problem)
    result = solve(problem, METHODS[method](0.01), tol=0.0, max_passes=6, check_every=10, random_state=0)
    calls = problem.calls["expectation"]
    assert set(result.history.oracle_calls.tolist()) == {calls}
    assert set(result.history.passes.tolist()) == {calls / 5}
    assert calls >= 5 * (7 if method == "exponentiated gradient" else 13)


@pytest.mark.parametrize("method", METHODS)
def test_a_problem_without_the_oracle_is_refused(method: str) -> None:
    problem = Plain(multiclass_case(0).problem)
    name = METHODS[method].__name__
    with pytest.raises(TypeError) as error:
        solve(problem, METHODS[method](0.1))
    assert str(error.value) == (
        f"solve: {name} needs a problem with an expectation oracle, Multiclass or Chain, got "
        f"Plain; use BlockFrankWolfe or Pairwise."
    )
    assert solve(problem, BlockFrankWolfe(0.1), max_passes=2).history.passes[-1] == 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("made", [chain_case, multiclass_case])
def test_features_that_are_not_finite(method: str, made: Any) -> None:
    """It is the example that has them which is named, whichever is visited first."""
    for bad in (np.nan, np.inf):
        case = made(0)
        case.problem.map.rows.values[1, 0] = bad
        problem = _built_again(case)
        with pytest.raises(BrokenOracle, match=r"^solve: example 1 "):
            solve(problem, METHODS[method](0.1), max_passes=3, random_state=2)


def _built_again(case: Case) -> Any:
    """Return the problem of the same features and labels, with tables of their inner products."""
    (phi, oracle), offsets = case.problem, np.cumsum([0, *map(len, case.X)])
    if isinstance(phi, ChainMap):
        return Chain.from_encoded(phi.rows.values, offsets, oracle.labels, 3)
    return Multiclass.from_encoded(phi.rows.values, oracle.labels, 3)


def test_wrappers_that_hand_out_corners_refuse_it() -> None:
    """They would be given directions that are none of theirs, and certify what does not hold."""
    for inner in (ExponentiatedGradient(0.1), Averaged(ExponentiatedGradient(0.1))):
        for wrapper in (Accelerated, Cached, Divided):
            with pytest.raises(ValueError, match=rf"^{wrapper.__name__}: inner must be [^\n]*, got "):
                wrapper(inner)


@pytest.mark.parametrize("wrapper", [Accelerated, Averaged, Cached, Divided])
@pytest.mark.parametrize("method", ["extragradient", "excessive gap"])
def test_batch_methods_are_not_wrapped(method: str, wrapper: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{wrapper.__name__}: inner must be "):
        wrapper(METHODS[method](0.1))


@pytest.mark.parametrize("method", METHODS)
def test_going_on_from_a_result_is_refused(method: str) -> None:
    case = multiclass_case(0)
    result = solve(case.problem, METHODS[method](0.1), max_passes=2)
    with pytest.raises(TypeError, match=f"^solve: start must be None for {METHODS[method].__name__}, "):
        solve(case.problem, METHODS[method](0.1), start=result)
