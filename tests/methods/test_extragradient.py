"""The dual extragradient method against the same steps on the dual variables themselves, and its bound."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import Extragradient
from maxmargin.methods.extragradient import SaddleState
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.structures.problem import Problem
from support import naive, naive_gibbs
from support.catalogue import Case, chain_case, chain_cases, flat, multiclass_case, multiclass_cases
from support.runs import gap_of

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


def all_states(case: Case, lam: float, n_steps: int) -> list[SaddleState]:
    """Return the first state and those after each step."""
    method = Extragradient(lam)
    states = [start(method, case.problem)]
    for _ in range(n_steps):
        states.append(advance(method, states[-1], case.problem, NONE))
    return states


@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_every_iterate_is_that_of_the_naive_method(case: Case, lam: float) -> None:
    """The answer is the mean of the points u, weighted by the step sizes that were found."""
    method, states = Extragradient(lam), all_states(case, lam, 25)
    etas = np.diff([state.S for state in states]).tolist()
    saddles = naive_gibbs.extragradient(case.data, lam, states[0].kappa, etas)
    for saddle, state in zip(saddles, states[1:], strict=True):
        answer, alpha = point(method, state, case.problem), saddle.mean_alpha()
        (dual,) = answer.others
        assert flat(case.problem, answer.w) == pytest.approx(saddle.mean_w(), abs=1e-7)
        assert flat(case.problem, dual) == pytest.approx(naive.weights_of(case.data, alpha, lam), abs=1e-7)
        assert answer.ell == pytest.approx(naive.dual_loss(case.data, alpha), abs=1e-8)
        assert answer.norm2 == pytest.approx(float(dual @ dual), rel=1e-14)


@settings(max_examples=30)
@given(small_cases, st.sampled_from([0.001, 0.1, 5.0]))
def test_the_bound_of_the_gap_holds_at_every_iterate(case: Case, lam: float) -> None:
    method = Extragradient(lam)
    entropy = float(np.mean([np.log(len(losses)) for losses in case.data.losses]))
    for state in all_states(case, lam, 25)[1:]:
        answer = point(method, state, case.problem)
        gap = gap_of(case.problem, method, state)
        assert -1e-10 <= gap <= (0.5 * state.kappa * answer.norm2 + entropy) / state.S * (1.0 + 1e-9) + 1e-12


@pytest.mark.parametrize("lam", [0.01, 0.3, 5.0])
def test_steps_are_never_much_shorter_than_theory_allows(case: Case, lam: float) -> None:
    """Steps of sqrt(kappa + S lam) / R are sure to do, so none is shorter than half of that or the first."""
    curvature = np.mean(
        [0.25 * max(float(np.sum((a - b) ** 2)) for a in psi for b in psi) for psi in case.data.psi]
    )
    states = all_states(case, lam, 40)
    for before, after in pairwise(states):
        eta, sure = after.S - before.S, float(np.sqrt((before.kappa + before.S * lam) / curvature))
        assert eta >= min(0.5 * sure, before.eta) * (1.0 - 1e-9)


def test_a_step_too_long_is_taken_back(case: Case) -> None:
    """From far too long a step it is halved until the potential gains enough, at two passes of calls each."""
    method, n = Extragradient(0.1), len(case.X)
    state = start(method, case.problem)
    hasty = state._replace(eta=state.eta * 2.0**20)
    ahead = advance(method, hasty, case.problem, NONE)
    halvings = np.log2(hasty.eta / (ahead.eta / 1.2))
    assert halvings == pytest.approx(round(halvings), abs=1e-9)
    assert halvings >= 5
    assert ahead.calls == n + 2 * n * (1 + round(halvings))
    assert (hasty.W == 0.0).all()  # nothing was changed in place


def test_the_answer_before_the_first_step(case: Case) -> None:
    method = Extragradient(0.1)
    answer = point(method, start(method, case.problem), case.problem)
    assert (answer.ell, answer.norm2) == (0.0, 0.0)
    assert not answer.w.any()


def test_losses_of_zero_are_solved_without_a_scale() -> None:
    """Where no output costs anything, w = 0 is optimal, and no scale follows from the losses."""
    case, method = multiclass_case(0), Extragradient(0.1)
    phi, oracle = case.problem
    problem = Problem(phi, oracle._replace(cost=np.zeros_like(oracle.cost)))
    state = start(method, problem)
    for _ in range(30):
        state = advance(method, state, problem, NONE)
    assert point(method, state, problem).ell == 0.0
    assert gap_of(problem, method, state) <= 0.05
