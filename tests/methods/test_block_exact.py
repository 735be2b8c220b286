"""Exact block steps, against quadratic programs, enumeration and liblinear."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from maxmargin import Accelerated, Averaged, BlockExact, Divided, MulticlassSVC, Pairwise, solve
from maxmargin.compiling.loops import largest
from maxmargin.methods.block_exact import ExactState
from maxmargin.methods.protocol import start
from maxmargin.methods.sweep import advance
from maxmargin.problems import (
    GaussianKernel,
    Kernelised,
    Multiclass,
    SignConstrained,
    SlackRescaled,
    Weighted,
)
from maxmargin.structures.classes.inference import list_near, scaled_simplex, simplex_threshold
from maxmargin.structures.oracle import block_optimum, oracle_workspace
from support import naive
from support.catalogue import Case, chain_case, flat, multiclass_case, multiclass_cases
from support.crammer_singer import least_objective
from support.dual_variables import alpha_of
from support.naive import Array
from support.runs import block_states, dual_of, gap_of, random_order

LAM = 0.3
numbers = st.floats(-10.0, 10.0)
curvatures = st.sampled_from([0.0, 1e-300, 1e-12, 0.1, 1.0, 30.0, 1e6])


@given(st.lists(numbers, min_size=1, max_size=7), st.sampled_from([1e-9, 0.3, 1.0, 50.0]))
def test_the_threshold_leaves_the_total(v: list[float], total: float) -> None:
    tau = simplex_threshold(np.array(v), len(v), max(v), total)
    assert np.maximum(np.array(v) - tau, 0.0).sum() == pytest.approx(total, rel=1e-6, abs=1e-12)


@given(st.lists(numbers, min_size=1, max_size=9), st.sampled_from([1e-9, 0.3, 1.0, 50.0]))
def test_only_listed_entries_are_above_the_threshold(v: list[float], total: float) -> None:
    """The threshold of the listed entries, which are relative to the largest, is that of all."""
    where, value = np.zeros(len(v), dtype=np.int64), np.zeros(len(v))
    count = list_near(np.array(v), len(v), largest(np.array(v), len(v)), total, where, value)
    listed = where[:count].tolist()
    assert listed == [k for k in range(len(v)) if v[k] - max(v) >= -total]
    assert value[:count].tolist() == [v[k] - max(v) for k in listed]
    relative = np.array(v) - max(v)
    assert simplex_threshold(value, count, 0.0, total) == simplex_threshold(relative, len(v), 0.0, total)


@given(st.lists(st.floats(), max_size=11))
def test_the_largest_entry_is_found_among_nans(v: list[float]) -> None:
    assert largest(np.array(v), len(v)) == max((x for x in v if x == x), default=-np.inf)


def corners_of(case: Case, i: int, rescaling: str) -> Array:
    """The psi of all classes; times their losses if slacks are rescaled."""
    K = case.problem.oracle.n_labels
    psi = np.eye(K)[case.problem.oracle.labels[i]] - np.eye(K)
    return psi if rescaling == "margin" else case.data.losses[i][:, None] * psi


def block_value(
    case: Case, i: int, alpha: Array, before: Array, theta: Array, curvature: float, rescaling: str
) -> float:
    """The objective of `block_optimum`, output by output."""
    psi = corners_of(case, i, rescaling)
    move = (alpha - before) @ psi
    return float(alpha @ (case.data.losses[i] - psi @ theta) - 0.5 * curvature * move @ move)


def best_value(case: Case, i: int, before: Array, theta: Array, curvature: float, rescaling: str) -> float:
    """The largest value of a block, by a general solver."""
    K = len(before)
    found = minimize(
        lambda alpha: -block_value(case, i, alpha, before, theta, curvature, rescaling),
        np.full(K, 1.0 / K),
        bounds=[(0.0, 1.0)] * K,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return -float(found.fun)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), curvatures, st.sampled_from([None, 0.2, 3.0]), st.sampled_from(["margin", "slack"])
)
def test_a_block_is_solved_to_the_end(
    seed: int, curvature: float, weight: float | None, rescaling: str
) -> None:
    """No dual variables of the block are better, with and without a weight of the example."""
    rng, case = np.random.default_rng(seed), multiclass_case(seed % 50, n=3, n_labels=4)
    problem = case.problem if rescaling == "margin" else SlackRescaled(case.problem)
    problem = problem if weight is None else Weighted(problem, [weight] * 3)
    c, y, losses = weight or 1.0, case.problem.oracle.labels[1], case.data.losses[1]
    before, theta = rng.dirichlet(np.full(4, 0.3)), np.zeros(case.problem.map.width)
    theta[:4] = rng.normal(size=4)
    corners, z = corners_of(case, 1, rescaling), np.zeros_like(theta)
    z[:4] = c * before @ corners
    loss, hinge = block_optimum(problem.oracle, 1, theta, curvature, z, oracle_workspace(problem.oracle))
    alpha = np.eye(4)[y] - z[:4] / c if rescaling == "margin" else unscaled(z[:4] / c, y, losses)
    assert alpha.min() >= -1e-12
    assert alpha.sum() == pytest.approx(1.0, abs=1e-9)
    assert z[:4] == pytest.approx(c * alpha @ corners, abs=1e-9)
    assert loss == pytest.approx(c * alpha @ losses, abs=1e-9)
    assert hinge == pytest.approx(c * (losses - corners @ theta[:4]).max(), abs=1e-9)
    arguments = before, theta[:4], c * curvature, rescaling
    found = block_value(case, 1, alpha, *arguments)
    assert found >= best_value(case, 1, *arguments) - 1e-6 * (1.0 + abs(found))
    values = [block_value(case, 1, corner, *arguments) for corner in np.eye(4)]
    assert found >= max(values) - 1e-9 * (1.0 + abs(found))


def unscaled(z: Array, y: int, losses: Array) -> Array:
    """The dual variables of a block with rescaled slacks; classes that cost nothing have none."""
    alpha = -np.divide(z, losses, out=np.zeros_like(z), where=losses > 0.0)
    alpha[y] = 1.0 - np.delete(alpha, y).sum()
    return alpha


positive = st.floats(1e-3, 10.0)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(positive, st.floats(0.01, 1.0)), min_size=1, max_size=4),
    st.sampled_from([1e-12, 0.01, 0.3, 1.0, 50.0]),
)
def test_the_best_point_of_a_scaled_simplex_is_found(pairs: list[tuple[float, float]], total: float) -> None:
    """It satisfies the conditions of optimality: u - sigma - mu r is x where x > 0, and else not positive."""
    u, r = np.array(pairs).T
    e, shares, where, largest_ratio = u.copy(), r.copy(), np.arange(len(u)), (u / r).max()
    d, sigma, count = scaled_simplex(e, shares, where, len(u), total)
    x = np.zeros_like(u)
    x[where[:count]] = np.maximum(e + d * shares - sigma, 0.0)[:count]
    mu = largest_ratio - d if d > 0.0 else 0.0
    assert mu >= -1e-9 * largest_ratio
    assert sigma == pytest.approx(x.sum(), rel=1e-9, abs=1e-14)
    if mu > 0.0:
        assert r @ x == pytest.approx(total, rel=1e-6, abs=1e-13)
    assert r @ x <= total * (1.0 + 1e-6) + 1e-13
    slope = u - x.sum() - mu * r
    assert slope[x > 0.0] == pytest.approx(x[x > 0.0], abs=1e-12 * largest_ratio)
    assert slope[x == 0.0].max(initial=0.0) <= 1e-12 * largest_ratio


@settings(max_examples=10)
@given(multiclass_cases(rows=("dense", "whole")), st.integers(0, 1000), st.sampled_from([0.01, 0.3, 5.0]))
def test_no_visit_lowers_the_dual_or_leaves_the_simplex(case: Case, seed: int, lam: float) -> None:
    """The dual does not decrease, no gap is negative, and the point is that of variables in the simplex."""
    method, dual = BlockExact(lam), 0.0
    for state in block_states(case.problem, method, random_order(case.problem, 15, seed)):
        before, dual = dual, dual_of(case.problem, method, state)
        assert dual >= before - 1e-12
        assert gap_of(case.problem, method, state) >= -1e-12
        alpha = alpha_of(case, state)
        assert [block.sum() for block in alpha] == pytest.approx([1.0] * len(alpha), abs=1e-8)
        w = naive.weights_of(case.data, alpha, lam)
        assert flat(case.problem, state.w) == pytest.approx(w, abs=1e-7 / lam)
        assert state.ell == pytest.approx(
            [L @ a for L, a in zip(case.data.losses, alpha, strict=True)], abs=1e-8
        )


METHODS = {
    "exact": BlockExact(0.05),
    "accelerated": Accelerated(BlockExact(0.05)),
    "divided": Accelerated(Divided(BlockExact(0.05), 2)),
    "averaged": Averaged(BlockExact(0.05)),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sampling", ["permutation", "uniform"])
def test_the_optimum_is_liblinears(name: str, sampling: str) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 3)), np.arange(12) % 3
    result = solve(
        Multiclass.from_arrays(X, y),
        METHODS[name],
        tol=1e-3,
        sampling=sampling,
        max_passes=300,
        random_state=0,
    )
    assert result.gap <= 1e-3
    least = least_objective(X, y, 0.05)
    assert result.dual <= least + 1e-9
    assert result.primal == pytest.approx(least, abs=1.1e-3)


def wrapped_problems() -> dict[str, Any]:
    case = multiclass_case(5, n=8, n_labels=4)
    nothing = Multiclass.from_encoded(np.zeros((8, 0)), case.problem.oracle.labels, 4)
    X = np.vstack(case.X)
    return {
        "weighted": Weighted(case.problem, np.linspace(0.2, 2.0, 8)),
        "slack": SlackRescaled(case.problem),
        "slack, weighted": Weighted(SlackRescaled(case.problem), np.linspace(0.2, 2.0, 8)),
        "with signs": SignConstrained(case.problem, [0, 3]),
        "kernel": Kernelised(nothing, X, GaussianKernel(0.5)),
        "kernel and linear": Kernelised(case.problem, X, GaussianKernel(0.5)),
    }


@pytest.mark.parametrize("name", wrapped_problems())
def test_wrapped_problems_have_the_optimum_of_pairwise_steps(name: str) -> None:
    problem = wrapped_problems()[name]
    found = solve(problem, Accelerated(BlockExact(LAM)), tol=1e-3, random_state=0)
    expected = solve(problem, Accelerated(Pairwise(LAM)), tol=1e-3, random_state=0)
    assert found.gap <= 1e-3
    assert found.primal == pytest.approx(expected.primal, abs=2e-3)


def test_blocks_that_do_not_move_rest() -> None:
    """Visits of resting blocks cost no oracle call, and all blocks are visited again before long."""
    case = multiclass_case(7, n=10, n_labels=3)
    method, n, passes = BlockExact(5.0), 10, 30
    state: ExactState = start(method, case.problem)
    for _ in range(passes):
        state = advance(method, state, case.problem, np.arange(n))
    assert n * passes // 9 <= state.calls[0] < n * passes // 2
    result = solve(case.problem, method, tol=0.0, max_passes=passes, random_state=0)
    assert result.history.oracle_calls[-1] < n * passes // 2
    assert result.gap <= 1e-9


def test_no_visit_is_left_out_of_gap_sampling() -> None:
    case = multiclass_case(7, n=20, n_labels=3)
    result = solve(case.problem, BlockExact(5.0), tol=0.0, max_passes=10, sampling="gap", random_state=0)
    assert result.history.oracle_calls[-1] == 200


@pytest.mark.parametrize("wrap", [lambda problem: problem, SlackRescaled])
def test_other_problems_are_refused(wrap: Any) -> None:
    problem = wrap(chain_case(1, loss="hamming").problem)
    with pytest.raises(TypeError, match=r"BlockExact: problem must be a Multiclass, got .*; use Pairwise"):
        solve(problem, BlockExact(LAM))


def test_the_default_of_multiclass_svc_is_block_exact() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 4
    costs = 1.0 - np.eye(4)
    for parameters, expected in (
        ({}, "Accelerated(BlockExact"),
        ({"n_jobs": 2}, "Accelerated(Divided(BlockExact"),
        ({"n_jobs": 2, "check_every": 1}, "Accelerated(BlockExact"),
        ({"rescaling": "slack"}, "Accelerated(BlockExact"),
        ({"rescaling": "slack", "loss": costs}, "Accelerated(BlockExact"),
    ):
        model = MulticlassSVC(warm_start=True, verbose=0, tol=0.01).set_params(**parameters).fit(X, y)
        shown = repr(model._last.stopped.method).replace("inner=", "")
        assert shown.startswith(expected)
        assert model.gap_ <= 0.01


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 30))
def test_where_a_pass_is_cut_makes_no_difference(seed: int, length: int) -> None:
    """Examples that come again in a pass rest as if each visit were made alone."""
    problem, method = multiclass_case(seed, n=6).problem, BlockExact(LAM)
    order = random_order(problem, 60, seed)
    *_, one_by_one = block_states(problem, method, order)
    state = start(method, problem)
    for first in range(0, len(order), length):
        state = advance(method, state, problem, order[first : first + length])
    assert one_by_one.calls[0] < len(order)
    for name in ("w", "ell", "idle", "rest", "calls"):
        np.testing.assert_array_equal(getattr(state, name), getattr(one_by_one, name))
