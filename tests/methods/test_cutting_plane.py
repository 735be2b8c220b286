"""The 1-slack method and the bundle method, against the same written out and the optimum of a QP."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BMRM, Averaged, CuttingPlane, NSlackCuttingPlane, Status, WarmStart, solve
from maxmargin.methods import cutting_plane
from maxmargin.methods.protocol import point, with_lam
from maxmargin.solving import objective
from support import naive, naive_cuts
from support.catalogue import Case, chain_case, chain_cases, flat, multiclass_case, multiclass_cases
from support.growing import KINDS, growing
from support.runs import batch_states, dual_of
from support.warm_starts import some_passes

CASES = {
    "chain": chain_case,
    "chain of two labels": lambda seed: chain_case(seed, (2, 1, 3, 2, 1), 2, loss="hamming"),
    "multiclass": multiclass_case,
}
METHODS = {
    "1-slack": CuttingPlane,
    "n-slack": NSlackCuttingPlane,
    "BMRM": BMRM,
    "BMRM, not stabilised": lambda lam: BMRM(lam, mu=1.0),
}
BUNDLES = {"1-slack": CuttingPlane(0.1), "BMRM": BMRM(0.1)}
LAMS = (0.01, 0.1, 1.0)
# Whole numbers make ties.
small_cases = st.one_of(
    chain_cases(max_length=3, max_labels=3, rows=("dense", "whole")),
    multiclass_cases(rows=("dense", "whole")),
)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lam", [0.1, 1.0])
@pytest.mark.parametrize("method", ["1-slack", "BMRM", "BMRM, not stabilised"])
def test_every_pass_is_that_of_the_naive_method(method: str, lam: float, name: str) -> None:
    """The planes are the same as long as w is off the kinks of hinges, on which near the optimum it is."""
    case, made = CASES[name](3), METHODS[method](lam)
    expected = naive_cuts.bundle(case.data, lam, getattr(made, "mu", 1.0))
    states = batch_states(case.problem, made, 6)
    for state, (solution, best) in zip(states, islice(expected, 6), strict=True):
        answer = point(made, state, case.problem)
        assert flat(case.problem, state.w) == pytest.approx(solution.w, abs=2e-5)
        assert objective.dual(answer, lam) == pytest.approx(solution.dual, abs=1e-9)
        if isinstance(made, BMRM):
            assert flat(case.problem, answer.w) == pytest.approx(best, abs=2e-5)


@pytest.mark.long
@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", METHODS)
def test_they_converge_to_the_optimum(method: str, name: str, lam: float) -> None:
    case = CASES[name](5)
    best, tol = naive.optimum(case.data, lam), 1e-7
    result = solve(case.problem, METHODS[method](lam), tol=tol, check_every=1, random_state=0)
    assert result.status is Status.CONVERGED
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert np.diff(result.history.dual).min(initial=0.0) >= -1e-9 * best.dual
    assert best.primal - result.dual <= 2 * tol
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, lam), abs=1e-12)
    # P is strongly convex: ||w - w*||^2 <= 2 gap / lam.
    assert np.linalg.norm(result.weights - best.w) <= np.sqrt(4 * tol / lam)


@settings(max_examples=40)
@given(small_cases, st.sampled_from(list(METHODS)), st.floats(-4.0, 3.0))
def test_certificates_hold_at_every_lam(case: Case, method: str, exponent: float) -> None:
    """The lower envelope is nowhere above the objective, and its least value does not fall."""
    lam = 10.0**exponent
    best = naive.optimum(case.data, lam)
    result = solve(case.problem, METHODS[method](lam), tol=0.0, max_passes=12, check_every=1)
    assert (result.history.dual <= best.primal + 1e-7).all()
    assert (result.history.primal >= best.dual - 1e-7).all()
    assert np.diff(result.history.dual).min(initial=0.0) >= -1e-9 * max(best.dual, 1e-3)
    assert (np.diff(result.history.oracle_calls, prepend=0) == len(case.X)).all()


def test_planes_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer planes the dual never falls, and the optimum is the same."""
    monkeypatch.setattr(cutting_plane, "_LIFE", 3)
    case, method = multiclass_case(30, n=20, n_labels=5, n_features=6), CuttingPlane(0.01)
    dropped, k, duals = 0, 1, []
    for state in batch_states(case.problem, method, 150):
        dropped, k = dropped + k + 1 - len(state.cuts.loss), len(state.cuts.loss)
        duals.append(dual_of(case.problem, method, state))
        assert state.cuts.alpha.sum() == pytest.approx(1.0, abs=1e-14)
        assert state.cuts.idle.max() < 3
    assert dropped > 20
    assert np.diff(duals).min() >= -1e-9
    assert duals[-1] == pytest.approx(naive.optimum(case.data, 0.01).dual, abs=1e-7)


def test_the_answer_of_the_bundle_method_is_the_best_so_far() -> None:
    """Its objective, known without a further oracle call, never rises; that of the 1-slack method does."""
    case, method = chain_case(6), BMRM(0.01, mu=0.5)
    results = [
        solve(case.problem, m, tol=0.0, max_passes=30, check_every=1) for m in (method, CuttingPlane(0.01))
    ]
    assert np.diff(results[0].history.primal).max() <= 1e-12
    assert np.diff(results[1].history.primal).max() > 0.01
    for state in batch_states(case.problem, method, 10):
        w = flat(case.problem, state.best.w)
        assert 0.005 * w @ w + state.best.risk == pytest.approx(naive.primal(case.data, w, 0.01), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", BUNDLES)
def test_planes_hold_at_another_lam(name: str, factor: float, kind: str) -> None:
    """The run goes on from the solution of the program of all planes at that lam, without an oracle call."""
    case, method = growing(kind, 5).first(6), BUNDLES[name]
    result = some_passes(case, method, 5)
    cuts, lam = result.stopped.state.cuts, factor * method.lam
    slopes = [flat(case.problem, row) for row in naive_cuts.dense_slopes(cuts, len(result.w))]
    expected = naive_cuts.program(slopes, cuts.loss.tolist(), lam)
    again = solve(case.problem, with_lam(method, lam), start=WarmStart(result, "dual"), tol=1e9)
    first = next(iter(again.history))
    assert first.oracle_calls == 0
    assert first.dual == pytest.approx(expected.dual, abs=1e-9)
    assert first.primal == pytest.approx(naive.primal(case.data, result.weights, lam), abs=1e-9)
    assert (result.stopped.state.cuts.alpha == cuts.alpha).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*BUNDLES, "n-slack"])
def test_going_on_with_more_examples_keeps_the_planes(name: str, kind: str) -> None:
    examples, method = growing(kind, 6), METHODS[name](0.1)
    result = some_passes(examples.first(4), method, 5)
    case = examples.first(7)
    best = naive.optimum(case.data, 0.05)
    again = solve(case.problem, with_lam(method, 0.05), start=result, tol=1e-4, check_every=1)
    assert again.status is Status.CONVERGED
    assert again.history.dual[0] > 0.1 * result.dual
    assert (again.history.dual <= best.primal + 1e-9).all()
    assert (again.history.primal >= best.dual - 1e-9).all()
    assert np.diff(again.history.dual).min() >= -1e-9


def test_averages_of_cutting_planes_have_valid_bounds() -> None:
    case, method = chain_case(6), Averaged(CuttingPlane(0.1))
    best = naive.optimum(case.data, 0.1)
    result = solve(case.problem, method, tol=0.0, max_passes=60, check_every=3)
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.gap < 0.1 * best.dual


def test_the_best_is_not_averaged() -> None:
    message = r"^Averaged: inner must be .*, got BMRM; its answer must not be an average already\.$"
    with pytest.raises(ValueError, match=message):
        Averaged(BMRM(0.1))


@pytest.mark.parametrize("mu", [0.0, -0.5, 1.1, np.nan, "half", None])
def test_mu_is_a_share(mu: Any) -> None:
    with pytest.raises(ValueError, match=r"^BMRM: mu must be a number in \(0, 1\], got "):
        BMRM(0.1, mu)
