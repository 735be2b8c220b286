"""Exponentiated gradient against the same steps on the dual variables themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Averaged, ExponentiatedGradient, solve
from maxmargin.methods.between_visits import NO_ACCELERATION
from maxmargin.methods.exponentiated_gradient import _LARGEST_STEP, GibbsState
from maxmargin.methods.protocol import oracle_calls, point, start
from maxmargin.methods.rules import ByGap
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import advance, sweep
from support import naive
from support.catalogue import Case, chain_case, chain_cases, flat, multiclass_case, multiclass_cases
from support.maps import feature_map, statistics
from support.naive import Array
from support.naive_gibbs import exponentiated_gradient, gibbs, uniform_alpha
from support.runs import block_states, dual_of, gap_of, random_order

CASES = {
    "chain": lambda: chain_case(1),
    "chain, Hamming loss": lambda: chain_case(2, loss="hamming"),
    "multiclass": lambda: multiclass_case(1, n=6, n_labels=5),
    "multiclass, zero-one loss": lambda: multiclass_case(2, n=6, loss="zero_one"),
}
small_cases = st.one_of(
    chain_cases(max_length=3, max_labels=3, rows=("dense", "whole")),
    multiclass_cases(rows=("dense", "whole")),
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def alpha_of(case: Case, state: GibbsState) -> list[Array]:
    """Return the dual variables that the parameters stand for."""
    data, (first, theta, share, _) = case.data, state.gibbs
    alpha = []
    for i, outputs in enumerate(data.outputs):
        own = theta[first[i] : first[i + 1]]
        s = np.array([statistics(case, i, y)[: len(own)] for y in outputs])
        alpha.append(gibbs(share[i] * data.losses[i] - (s[data.truths[i]] - s) @ own))
    return alpha


def assert_same_point(case: Case, state: GibbsState, alpha: list[Array], lam: float, abs: float) -> None:
    """Means, weights and dual losses are those of the dual variables."""
    data, gibbs_ = case.data, state.gibbs
    assert flat(case.problem, state.w) == pytest.approx(naive.weights_of(data, alpha, lam), abs=abs)
    assert state.ell == pytest.approx([L @ a for L, a in zip(data.losses, alpha, strict=True)], abs=abs)
    for i, block in enumerate(alpha):
        z = gibbs_.z[gibbs_.first[i] : gibbs_.first[i + 1]]
        image = feature_map(case, i)[:, : len(z)] @ z
        assert flat(case.problem, image) == pytest.approx(data.psi[i].T @ block, abs=abs)


def test_the_start_is_uniform(case: Case) -> None:
    method = ExponentiatedGradient(0.3)
    state, uniform = start(method, case.problem), uniform_alpha(case.data)
    assert np.concatenate(alpha_of(case, state)) == pytest.approx(np.concatenate(uniform), abs=1e-15)
    assert_same_point(case, state, uniform, 0.3, 1e-12)
    assert oracle_calls(method, state, 0) == len(case.X)


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_every_iterate_is_that_of_the_naive_method(case: Case, lam: float) -> None:
    """Each visit ends where it does on the dual variables, by as many calls, with the same next step size."""
    order, method = random_order(case.problem, 60, seed=5), ExponentiatedGradient(lam)
    visits = exponentiated_gradient(case.data, lam, order)
    for visit, state in zip(visits, block_states(case.problem, method, order), strict=True):
        assert np.concatenate(alpha_of(case, state)) == pytest.approx(np.concatenate(visit.alpha), abs=1e-9)
        assert_same_point(case, state, visit.alpha, lam, 1e-9 / lam)
        assert state.eta == pytest.approx(visit.eta, rel=1e-12)
        assert oracle_calls(method, state, 0) == visit.calls


def test_step_sizes_are_halved() -> None:
    """On some problems it takes more than one call a visit, and on others a visit finds no step at all."""
    extra = []
    for seed in range(8):
        case, method = multiclass_case(seed, n=4, n_labels=6), ExponentiatedGradient(0.003)
        order = random_order(case.problem, 40, seed)
        *_, visit = exponentiated_gradient(case.data, 0.003, order)
        *_, state = block_states(case.problem, method, order)
        assert oracle_calls(method, state, 40) == visit.calls
        assert state.eta == pytest.approx(visit.eta, rel=1e-12)
        extra.append(visit.calls - 44)
    assert min(extra) >= 0
    assert max(extra) >= 5


@pytest.mark.long
@settings(max_examples=40)
@given(small_cases, st.integers(0, 1000), st.sampled_from([0.001, 0.1, 5.0]))
def test_no_visit_lowers_the_dual_or_parts_from_the_distributions(case: Case, seed: int, lam: float) -> None:
    """The dual does not decrease, no gap is negative, and the means are those of the distributions."""
    method = ExponentiatedGradient(lam)
    dual = naive.dual(case.data, uniform_alpha(case.data), lam)
    for state in block_states(case.problem, method, random_order(case.problem, 25, seed)):
        before, dual = dual, dual_of(case.problem, method, state)
        assert dual >= before - 1e-12 * (1.0 + abs(before))
        assert gap_of(case.problem, method, state) >= -1e-12 * (1.0 + abs(dual))
        assert_same_point(case, state, alpha_of(case, state), lam, 1e-10 / lam)


def test_a_block_that_finds_no_step_stays() -> None:
    """Steps far too long for a small lam are rejected in the first pass; nothing changes but their size."""
    case, method, rejected = multiclass_case(3, n=4), ExponentiatedGradient(1e-5), 0
    for i in range(4):
        state = start(method, case.problem)
        state.eta[:] = 1e3
        w, ell, theta = state.w.copy(), state.ell.copy(), state.gibbs.theta.copy()
        state = advance(method, state, case.problem, np.array([i]))
        if state.eta[i] == 250.0:
            rejected += 1
            assert oracle_calls(method, state, 1) == 4 + 3
            for before, after in ((w, state.w), (ell, state.ell), (theta, state.gibbs.theta)):
                assert (before == after).all()
    assert rejected >= 2


def test_the_gap_reported_bounds_the_block_gap_from_below(case: Case) -> None:
    """The first slope of a visit is positive, and at most the gap of the block, which takes a max oracle."""
    method, problem, n = ExponentiatedGradient(0.1), case.problem, len(case.X)
    state, largest = start(method, problem), 0.0
    for i in random_order(problem, 20, seed=0):
        alpha, tree = alpha_of(case, state), np.full(2 << (n - 1).bit_length(), np.nan)
        margins = naive.margins(case.data, i, naive.weights_of(case.data, alpha, 0.1))
        visits = ByGap(np.array([i]), np.zeros(1), tree)
        sweep.interpreted(problem, method, state, state.w, visits, new_scratch(problem), NO_ACCELERATION)
        noted = tree[len(tree) // 2 + i]
        assert 0.0 <= noted <= margins.max() - alpha[i] @ margins + 1e-12
        largest = max(largest, noted)
    assert largest > 0.1


@pytest.mark.slow
def test_long_runs_stay_in_order() -> None:
    """Weights and means stay together, parameters stay finite, and step sizes do not grow for ever."""
    case, method = multiclass_case(30, n=10, n_labels=4, n_features=5), ExponentiatedGradient(0.1)
    state = advance(
        method, start(method, case.problem), case.problem, random_order(case.problem, 20000, seed=0)
    )
    assert_same_point(case, state, alpha_of(case, state), 0.1, 1e-8)
    assert np.isfinite(state.gibbs.theta).all()
    assert state.eta.max() <= _LARGEST_STEP
    best = naive.optimum(case.data, 0.1)
    assert gap_of(case.problem, method, state) <= 1e-6 * best.dual


def test_an_average_has_the_mean_of_the_dual_variables(case: Case) -> None:
    """The means of the states are those of the dual variables, the start's weight included."""
    order, method = random_order(case.problem, 30, seed=1), Averaged(ExponentiatedGradient(0.3), "uniform")
    *_, state = block_states(case.problem, method, order)
    visits = [visit.alpha for visit in exponentiated_gradient(case.data, 0.3, order)]
    alpha = [np.mean(blocks, axis=0) for blocks in zip(*visits, strict=True)]
    answer = point(method, state, case.problem)
    assert flat(case.problem, answer.w) == pytest.approx(naive.weights_of(case.data, alpha, 0.3), abs=1e-9)
    assert answer.ell == pytest.approx(naive.dual_loss(case.data, alpha), abs=1e-9)


def test_sampling_by_gap_converges(case: Case) -> None:
    best = naive.optimum(case.data, 0.1)
    method = ExponentiatedGradient(0.1)
    result = solve(case.problem, method, tol=0.0, max_passes=300, sampling="gap", random_state=0)
    assert best.primal - 1e-9 <= result.primal <= best.primal + 0.01 * best.dual
    assert best.dual - 0.01 * best.dual <= result.dual <= best.dual + 1e-9
