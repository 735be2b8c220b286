"""Excessive gap reduction against the same steps on the dual variables themselves, and what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import ExcessiveGap
from maxmargin.methods.excessive_gap import ExcessiveState, _step, excess, smoothed_primal
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.structures.problem import Problem
from support import naive, naive_gibbs
from support.catalogue import Case, chain_case, chain_cases, flat, multiclass_case, multiclass_cases
from support.naive import Array
from support.runs import batch_states, dual_of, gap_of

CASES = {
    "chain": lambda: chain_case(1),
    "chain, Hamming loss": lambda: chain_case(2, loss="hamming"),
    "multiclass": lambda: multiclass_case(1, n=6, n_labels=5),
}
NONE = np.zeros(0, dtype=np.int64)
small_cases = st.one_of(
    chain_cases(max_length=3, max_labels=3, rows=("dense",)), multiclass_cases(rows=("dense",))
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def mean_entropy(case: Case) -> float:
    return float(np.mean([np.log(len(losses)) for losses in case.data.losses]))


def all_states(case: Case, lam: float, n_steps: int) -> list[ExcessiveState]:
    """Return the first state and those after each step."""
    method = ExcessiveGap(lam)
    return [start(method, case.problem), *batch_states(case.problem, method, n_steps)]


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_every_iterate_is_that_of_the_naive_method(case: Case, lam: float) -> None:
    pairs = naive_gibbs.excessive_gap(case.data, lam, 40)
    for pair, state in zip(pairs, all_states(case, lam, 40), strict=True):
        assert state.mu == pytest.approx(pair.mu, rel=1e-9)
        assert flat(case.problem, state.w) == pytest.approx(pair.w, abs=1e-7)
        dual = naive.weights_of(case.data, pair.alpha, lam)
        assert flat(case.problem, state.dual) == pytest.approx(dual, abs=1e-7)
        assert state.ell == pytest.approx(naive.dual_loss(case.data, pair.alpha), abs=1e-8)


@pytest.mark.long
@settings(max_examples=30)
@given(small_cases, st.sampled_from([0.001, 0.1, 5.0]))
def test_the_condition_holds_at_every_iterate(case: Case, lam: float) -> None:
    """The smoothed objective, from all outputs, is below the dual; so the gap is at most mu times entropy."""
    method, entropy = ExcessiveGap(lam), mean_entropy(case)
    for state in all_states(case, lam, 25):
        smoothed = naive_gibbs.smoothed_primal(case.data, flat(case.problem, state.w), lam, state.mu)
        dual = dual_of(case.problem, method, state)
        slack = 1e-10 * (1.0 + abs(smoothed))
        assert smoothed_primal(method, state, case.problem) == pytest.approx(smoothed, abs=slack)
        assert smoothed <= dual + slack
        assert excess(method, state, case.problem) <= 0.0
        assert gap_of(case.problem, method, state) <= state.mu * entropy + slack


@pytest.mark.parametrize("lam", [0.01, 0.3, 5.0])
def test_the_rate_is_that_of_the_paper(case: Case, lam: float) -> None:
    """mu <= 4 m / (k + 1)^2 where m is the largest of twice the curvature's bound and the first mu.

    A step is taken back only if L was below the bound R^2 / lam, where R is half the largest distance of
    two corners of an example; so L stays below twice the larger of the bound and the first mu.
    """
    curvature = float(np.mean([half_diameter(psi) ** 2 for psi in case.data.psi])) / lam
    states = all_states(case, lam, 60)
    largest = max(2.0 * curvature, states[0].mu)
    for k, state in enumerate(states):
        assert state.bound <= largest
        assert state.mu <= 4.0 * largest / (k + 1) ** 2
    assert states[-1].mu < 0.01 * states[0].mu


def half_diameter(psi: Array) -> float:
    return 0.5 * max(float(np.linalg.norm(a - b)) for a in psi for b in psi)


def test_the_longest_step_allowed() -> None:
    for ratio in (1e-12, 1e-3, 1.0, 40.0):
        tau = _step(ratio)
        assert 0.0 < tau < 1.0
        assert tau**2 / (1.0 - tau) == pytest.approx(ratio, rel=1e-9)


def test_a_step_that_breaks_the_condition_is_taken_back(case: Case) -> None:
    """From far too small a bound it is doubled until the condition holds, at two passes of calls each."""
    method, n = ExcessiveGap(0.1), len(case.X)
    state = start(method, case.problem)
    hasty = state._replace(bound=state.bound * 2.0**-20)
    ahead = advance(method, hasty, case.problem, NONE)
    doublings = np.log2(ahead.bound / 0.9 / hasty.bound)
    assert doublings == pytest.approx(round(doublings), abs=1e-9)
    assert doublings >= 5
    assert ahead.calls == state.calls + 2 * n * (1 + round(doublings))
    assert excess(method, ahead, case.problem) <= 0.0
    assert hasty.mu == state.mu  # nothing was changed in place
    assert (hasty.w == state.w).all()


def test_losses_of_zero_are_solved_without_a_temperature() -> None:
    """Where no output costs anything, w = 0 is optimal, and no temperature follows from the losses."""
    case = multiclass_case(0)
    phi, oracle = case.problem
    problem = Problem(phi, oracle._replace(cost=np.zeros_like(oracle.cost)))
    method = ExcessiveGap(0.1)
    state = start(method, problem)
    for _ in range(30):
        state = advance(method, state, problem, NONE)
    answer = point(method, state, problem)
    assert answer.ell == 0.0
    assert 0.05 * float(answer.w @ answer.w) <= state.mu * np.log(3)
