"""Going on from a result, against dual variables written out and the optimum of a QP."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, Predefined, Result, Status, WarmStart, solve
from maxmargin.methods.protocol import start as new_state
from maxmargin.methods.protocol import with_lam
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes
from support import naive
from support.catalogue import Case, flat, layout
from support.dual_variables import alpha_of, iterate_of
from support.growing import KINDS, LENGTHS, growing
from support.naive import Array
from support.warm_starts import ALL_METHODS, BLOCK_METHODS, LAM, Counted, some_passes

pytestmark = pytest.mark.long

KEEPS = ("best", "weights", "dual")
# Those whose dual bound is that of their iterate.
ITERATES = {name: BLOCK_METHODS[name] for name in ("bcfw", "pairwise", "away", "bcfw-wavg")}


def first_row(case: Case, method: Any, start: Any) -> Any:
    """Return the certificate of what is gone on from: no pass is made."""
    result = solve(case.problem, method, start=start, tol=1e9)
    assert result.history.oracle_calls.tolist() == [0]
    return next(iter(result.history))


def with_truth(alpha: list[Array], data: naive.Enumerated, share: float) -> list[Array]:
    """Return a share of the dual variables, the rest on the truth, and examples not yet known there too."""
    truth = naive.truth_alpha(data)
    known = [share * a + (1.0 - share) * t for a, t in zip(alpha, truth, strict=False)]
    return known + truth[len(alpha) :]


def assert_certified(case: Case, lam: float, result: Result) -> None:
    """Every bound holds, and the dual variables are feasible and belong to the weights."""
    optimum = naive.optimum(case.data, lam)
    assert optimum.primal - optimum.dual < 1e-7
    assert max(result.dual, *result.history.dual, 0.0) <= optimum.dual + 1e-7
    assert min(result.primal, *result.history.primal) >= optimum.primal - 1e-7
    assert result.primal == pytest.approx(naive.primal(case.data, result.weights, lam), abs=1e-9)
    assert result.gap == result.primal - result.dual
    assert_consistent(case, lam, result.stopped.state)


def assert_consistent(case: Case, lam: float, state: Any) -> None:
    """Dual variables lie in the simplex; the state's losses and weights follow from them."""
    alpha, iterate = alpha_of(case, state), iterate_of(state)
    assert len(alpha) == len(iterate.ell)
    for a, ell, losses in zip(alpha, iterate.ell, case.data.losses, strict=True):
        assert a.min() >= 0.0
        assert a.sum() == pytest.approx(1.0, abs=1e-9)
        assert losses @ a == pytest.approx(ell, abs=1e-8)
    g, w = naive.weights_of(case.data, alpha, 1.0), flat(case.problem, iterate.w)
    kappa, centre = (
        (state.momentum.kappa, flat(case.problem, state.centre)) if hasattr(state, "momentum") else (0.0, 0.0)
    )
    assert (lam + kappa) * w - kappa * centre == pytest.approx(g, abs=1e-7)
    np.testing.assert_array_equal(layout(case.problem, w), iterate.w)  # what pads stays zero


changes = st.fixed_dictionaries(
    {
        "keep": st.sampled_from(KEEPS),
        "factor": st.floats(-1.0, 1.0).map(lambda x: 10.0**x),
        "more": st.integers(0, 2),
        "passes": st.integers(1, 2),
        "same_object": st.booleans(),
        "back": st.integers(0, 2),
    }
)


@pytest.mark.parametrize("name", BLOCK_METHODS)
@settings(max_examples=40)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(changes, min_size=1, max_size=4),
)
def test_certificates_hold_along_any_sequence_of_warm_starts(
    name: str, kind: str, seed: int, steps: list[dict[str, Any]]
) -> None:
    examples, n, lam = growing(kind, seed), 2, LAM
    case = examples.first(n)
    results = [some_passes(case, with_lam(BLOCK_METHODS[name], lam), 1)]
    for change in steps:
        lam, n = float(np.clip(lam * change["factor"], 5e-3, 5.0)), min(n + change["more"], len(LENGTHS))
        if n > len(case.X) or not change["same_object"]:
            case = examples.first(n)
        method = with_lam(BLOCK_METHODS[name], lam)
        begin = WarmStart(results[-1 - change["back"] % len(results)], change["keep"])
        compared = sizes(begin.result.stopped.problem).examples + n
        results.append(some_passes(case, method, change["passes"], start=begin, check_every=1))
        assert_certified(case, lam, results[-1])
        assert results[-1].history.oracle_calls[0] in (0, 2 * compared)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rho", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("name", ["bcfw", "pairwise", "away"])
def test_the_gap_follows_exactly_when_weights_are_kept(name: str, rho: float, kind: str) -> None:
    case, method = growing(kind, 5).first(6), BLOCK_METHODS[name]
    result = some_passes(case, method)
    w, alpha = result.weights, alpha_of(case, result.stopped.state)
    gap = naive.primal(case.data, w, LAM) - naive.dual(case.data, alpha, LAM)
    change = (1.0 - rho) * (naive.dual_loss(case.data, alpha) - LAM * w @ w)
    row = first_row(case, with_lam(method, rho * LAM), WarmStart(result, "weights"))
    assert row.gap == pytest.approx(gap + change, abs=1e-9)
    assert row.primal == pytest.approx(naive.primal(case.data, w, rho * LAM), abs=1e-9)
    assert result.gap == pytest.approx(gap, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [0, 2])
@pytest.mark.parametrize("factor", [0.1, 0.7, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("name", ITERATES)
def test_the_dual_of_each_share(name: str, factor: float, more: int, kind: str) -> None:
    examples, lam = growing(kind, 7), factor * LAM
    old = examples.first(5)
    new = examples.first(5 + more) if more else old
    result, method = some_passes(old, BLOCK_METHODS[name]), with_lam(BLOCK_METHODS[name], lam)
    alpha = alpha_of(old, result.stopped.state)

    def expected(share: float) -> float:
        return naive.dual(new.data, with_truth(alpha, new.data, share), lam)

    found = {keep: first_row(new, method, WarmStart(result, keep)).dual for keep in KEEPS}
    assert found["dual"] == pytest.approx(expected(1.0), abs=1e-9)
    assert found["weights"] == pytest.approx(expected(min(factor * (5 + more) / 5, 1.0)), abs=1e-9)
    assert found["best"] >= max(found.values()) - 1e-12
    grid = max(expected(share) for share in np.linspace(0.0, 1.0, 301))
    assert grid - 1e-9 <= found["best"] <= grid + 1e-4


@pytest.mark.parametrize("name", ALL_METHODS)
@pytest.mark.parametrize("keep", KEEPS)
def test_the_first_certificate_costs_no_oracle_call(keep: str, name: str) -> None:
    case, method = growing("multiclass", 3).first(5), ALL_METHODS[name]
    problem = Counted(case.problem)
    result = solve(problem, method, tol=0.0, max_passes=2, random_state=0)
    problem.calls = 0
    again = solve(problem, with_lam(method, 0.03), start=WarmStart(result, keep), tol=1e9)
    assert problem.calls == 0
    assert again.primal == pytest.approx(naive.primal(case.data, flat(case.problem, again.w), 0.03), abs=1e-9)
    assert again.dual <= naive.optimum(case.data, 0.03).dual + 1e-7


@pytest.mark.parametrize("model", ["multiclass", "chain"])
def test_equal_data_in_other_arrays_cost_no_oracle_call(model: str, monkeypatch: Any) -> None:
    method = ALL_METHODS["pairwise"]
    result = solve(growing(model, 3).first(5).problem, method, tol=0.0, max_passes=2, random_state=0)
    problem, calls = growing(model, 3).first(5).problem, []
    monkeypatch.setattr(objective, "hinges", lambda *args: calls.append(args))
    again = solve(problem, method, start=result, tol=1e9)
    assert not calls
    assert again.history.oracle_calls.tolist() == [0]
    assert again.primal == result.primal


def test_calls_that_compare_examples_are_counted() -> None:
    method, more = ALL_METHODS["pairwise"], growing("chain", 3)
    result = solve(more.first(5).problem, method, tol=0.0, max_passes=2, random_state=0)
    again = solve(more.first(7).problem, method, start=result, tol=1e9)
    assert again.history.oracle_calls.tolist() == [2 * (5 + 7)]


@pytest.mark.parametrize("name", ALL_METHODS)
def test_a_result_that_satisfies_tol_comes_back_at_once(name: str) -> None:
    case = growing("chain", 11).first(8)
    result = solve(case.problem, ALL_METHODS[name], tol=0.05, max_passes=300, check_every=1, random_state=0)
    assert result.status is Status.CONVERGED
    again = solve(case.problem, ALL_METHODS[name], start=result, tol=result.gap, random_state=0)
    assert again.status is Status.CONVERGED
    assert again.history.oracle_calls.tolist() == [0]
    assert again.gap <= result.gap
    np.testing.assert_array_equal(again.weights, result.weights)


@pytest.mark.parametrize("more", [0, 2])
@pytest.mark.parametrize("factor", [0.9, 1.0, 1.1])
@pytest.mark.parametrize("wrapped", [Averaged, lambda method: method], ids=["averaged", "plain"])
def test_bounds_are_not_forgotten(wrapped: Any, factor: float, more: int) -> None:
    # Predefined steps overshoot: the iterate, from which an average begins anew, is below the bound.
    examples, lam, method = growing("multiclass", 0), factor * LAM, wrapped(FrankWolfe(LAM, Predefined()))
    old = examples.first(6)
    new = examples.first(6 + more) if more else old
    result = some_passes(old, method, 7, check_every=1)
    again = solve(new.problem, with_lam(method, lam), start=result, tol=1e9)
    assert again.dual >= min(factor, 6 / (6 + more)) * result.dual - 1e-12
    assert more or again.dual > again.history.dual[0] + 1e-6
    assert again.dual <= naive.optimum(new.data, lam).dual + 1e-7


@pytest.mark.parametrize("name", BLOCK_METHODS)
def test_piece_by_piece_reaches_the_optimum_of_one_long_run(name: str) -> None:
    case, method, limits = growing("multiclass", 13).first(8), BLOCK_METHODS[name], {"check_every": 1}
    optimum = naive.optimum(case.data, LAM)
    whole = solve(case.problem, method, tol=0.01, max_passes=2000, random_state=0, **limits)
    pieces = [some_passes(case, method, 2)]
    while pieces[-1].gap > 0.01:
        assert len(pieces) < 500
        pieces.append(some_passes(case, method, 5, start=pieces[-1], tol=0.01, check_every=1))
        assert pieces[-1].gap <= pieces[-2].gap + 1e-12
    for result in (whole, pieces[-1]):
        assert result.status is Status.CONVERGED
        assert result.dual - 1e-9 <= optimum.dual <= optimum.primal <= result.primal + 1e-9
        assert np.linalg.norm(result.weights - optimum.w) <= np.sqrt(2 * 0.01 / LAM)


@pytest.mark.parametrize(
    "method", [BlockFrankWolfe(LAM), BlockFrankWolfe(LAM, Predefined()), FrankWolfe(LAM)]
)
def test_two_halves_are_the_whole(method: Any) -> None:
    case = growing("multiclass", 17).first(6)
    whole = some_passes(case, method, 6)
    rng = np.random.default_rng(0)
    half = some_passes(case, method, 3, random_state=rng)
    other = some_passes(case, method, 3, random_state=rng, start=WarmStart(half, "dual"))
    np.testing.assert_allclose(other.stopped.state.w, whole.stopped.state.w, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(other.stopped.state.ell, whole.stopped.state.ell, rtol=1e-12)


@pytest.mark.parametrize("name", ALL_METHODS)
def test_from_the_start_is_from_nothing(name: str) -> None:
    case, method = growing("multiclass", 19).first(6), ALL_METHODS[name]
    expected = some_passes(case, method)
    begin = expected._replace(
        dual=0.0, stopped=expected.stopped._replace(state=new_state(method, case.problem))
    )
    found = some_passes(case, method, start=begin)
    np.testing.assert_allclose(found.history.primal[-1], expected.history.primal[-1], rtol=1e-12)
    np.testing.assert_allclose(found.history.dual[-1], expected.history.dual[-1], rtol=1e-12)


def arrays_of(value: Any) -> list[Array]:
    """Return every array and number within nested tuples."""
    if isinstance(value, tuple):
        return [array for field in value for array in arrays_of(field)]
    return [np.asarray(value)] if isinstance(value, np.ndarray | float | int) else []


@pytest.mark.parametrize("lam", [0.03, LAM, 0.4])
@pytest.mark.parametrize("name", ALL_METHODS)
def test_a_result_is_not_changed_and_can_be_gone_on_from_twice(name: str, lam: float) -> None:
    examples, method = growing("multiclass", 23), ALL_METHODS[name]
    case, more = examples.first(5), examples.first(7)
    result = some_passes(case, method)
    before = copy.deepcopy(arrays_of(result))
    assert len(before) > 10
    twice = [some_passes(case, with_lam(method, lam), start=result) for _ in range(2)]
    some_passes(more, with_lam(method, lam), start=result)
    for expected, found in zip(before, arrays_of(result), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(twice[0].weights, twice[1].weights)
    assert twice[0].dual == twice[1].dual
    assert not any(
        np.shares_memory(a, b)
        for a in arrays_of(result.stopped.state)
        for b in arrays_of(twice[0].stopped.state)
        if a.size and b.size
    )
