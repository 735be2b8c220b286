"""Every iterate of the methods against the paper's algorithms on the dual variables themselves."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BlockFrankWolfe, FrankWolfe
from support import naive, naive_methods
from support.catalogue import Case, chain_case, chain_cases, flat, multiclass_case, multiclass_cases
from support.runs import RULES, batch_states, block_states, dual_of, random_order

LAM = 0.3
N_STEPS = 40
CASES = {
    "chain": lambda: chain_case(1),
    "chain, Hamming loss": lambda: chain_case(2, loss="normalized_hamming"),
    "chain of sparse rows": lambda: chain_case(3, (2, 4, 1), 2, loss="hamming", rows="sparse"),
    "multiclass": lambda: multiclass_case(1, n=6, n_labels=5),
    "multiclass, zero-one loss": lambda: multiclass_case(2, n=6, loss="zero_one"),
    "multiclass of sparse rows": lambda: multiclass_case(3, n=6, rows="sparse"),
    "multiclass of indicators": lambda: multiclass_case(4, n=6, n_features=9, rows="indicator"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def assert_same_point(case: Case, w: Any, ell: float, alpha: list[Any]) -> None:
    assert flat(case.problem, w) == pytest.approx(naive.weights_of(case.data, alpha, LAM), abs=1e-10)
    assert ell == pytest.approx(naive.dual_loss(case.data, alpha), abs=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_block_frank_wolfe_is_algorithm_3(case: Case, rule: str) -> None:
    order, method = random_order(case.problem, N_STEPS, seed=5), BlockFrankWolfe(LAM, RULES[rule])
    states = block_states(case.problem, method, order)
    expected = naive_methods.block_frank_wolfe(case.data, LAM, order, rule == "line_search")
    for state, alpha in zip(states, expected, strict=True):
        assert_same_point(case, state.w, state.ell.mean(), alpha)
        losses = [L @ a for L, a in zip(case.data.losses, alpha, strict=True)]
        assert state.ell == pytest.approx(np.array(losses), abs=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_frank_wolfe_is_algorithm_1(case: Case, rule: str) -> None:
    states = batch_states(case.problem, FrankWolfe(LAM, RULES[rule]), N_STEPS)
    expected = naive_methods.frank_wolfe(case.data, LAM, N_STEPS, rule == "line_search")
    for state, alpha in zip(states, expected, strict=True):
        assert_same_point(case, state.w, state.ell[0], alpha)


@settings(max_examples=30)
@given(st.one_of(chain_cases(max_length=3, max_labels=3), multiclass_cases()), st.integers(0, 1000))
def test_the_dual_never_decreases_under_line_search(case: Case, seed: int) -> None:
    block, batch = BlockFrankWolfe(LAM), FrankWolfe(LAM)
    runs = {
        block: block_states(case.problem, block, random_order(case.problem, 30, seed)),
        batch: batch_states(case.problem, batch, 15),
    }
    for method, states in runs.items():
        duals = [0.0, *(dual_of(case.problem, method, state) for state in states)]
        assert np.diff(duals).min() >= -1e-12


def test_a_step_has_its_line_search_optimum(case: Case) -> None:
    """No other step in the same direction, from the same point, has a larger dual."""
    order, method = random_order(case.problem, 12, seed=6), BlockFrankWolfe(LAM)
    states = block_states(case.problem, method, order)
    before = naive.truth_alpha(case.data)
    for i, state, alpha in zip(
        order, states, naive_methods.block_frank_wolfe(case.data, LAM, order, line_search=True), strict=True
    ):
        w = naive.weights_of(case.data, before, LAM)
        corner = np.eye(len(before[i]))[naive.best_output(case.data, i, w)]
        others = [
            [a + gamma * (corner - a) if j == i else a for j, a in enumerate(before)]
            for gamma in np.linspace(0.0, 1.0, 21)
        ]
        best = max(naive.dual(case.data, other, LAM) for other in others)
        assert dual_of(case.problem, method, state) >= best - 1e-12
        before = alpha
