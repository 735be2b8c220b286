"""Primal, dual and gap against formulas written out in NumPy over all outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BlockFrankWolfe
from maxmargin.methods.protocol import point
from maxmargin.problems import Multiclass
from maxmargin.solving import objective
from support import naive, naive_methods
from support.catalogue import Case, chain_case, chain_cases, flat, layout, multiclass_cases
from support.runs import block_states, random_order

LAM = 0.4
cases = st.one_of(chain_cases(max_length=3), multiclass_cases())


def random_weights(case: Case, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=case.data.psi[0].shape[1])


def random_alpha(case: Case, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(len(losses))) for losses in case.data.losses]


@given(cases, st.integers(0, 1000))
def test_primal_is_that_of_all_outputs(case: Case, seed: int) -> None:
    w = random_weights(case, seed)
    found = objective.primal(case.problem, layout(case.problem, w), LAM)
    assert found == pytest.approx(naive.primal(case.data, w, LAM), abs=1e-9)


@settings(max_examples=30)
@given(cases, st.integers(0, 1000))
def test_dual_of_an_iterate_is_its_formula(case: Case, seed: int) -> None:
    order, method = random_order(case.problem, 20, seed), BlockFrankWolfe(LAM)
    *_, state = block_states(case.problem, method, order)
    answer = point(method, state, case.problem)
    w = flat(case.problem, answer.w)
    assert objective.dual(answer, LAM) == pytest.approx(np.mean(state.ell) - LAM / 2 * w @ w, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_dual_is_that_of_the_variables_behind_an_iterate(seed: int) -> None:
    """Random costs and features leave no ties, so that the written-out method takes the same steps."""
    case = chain_case(seed)
    order, method = random_order(case.problem, 10, seed), BlockFrankWolfe(LAM)
    *_, state = block_states(case.problem, method, order)
    *_, alpha = naive_methods.block_frank_wolfe(case.data, LAM, order, line_search=True)
    found = objective.dual(point(method, state, case.problem), LAM)
    assert found == pytest.approx(naive.dual(case.data, alpha, LAM), abs=1e-9)


@given(cases, st.integers(0, 1000))
def test_no_dual_exceeds_any_primal(case: Case, seed: int) -> None:
    w, alpha = layout(case.problem, random_weights(case, seed)), random_alpha(case, seed)
    assert objective.primal(case.problem, w, LAM) >= naive.dual(case.data, alpha, LAM) - 1e-12


@given(cases)
def test_hinges_at_zero_are_the_largest_losses(case: Case) -> None:
    w = layout(case.problem, np.zeros(case.data.psi[0].shape[1]))
    expected = [losses.max() for losses in case.data.losses]
    assert objective.hinge_losses(case.problem, w) == pytest.approx(expected, abs=1e-14)


def test_many_examples_are_summed_in_pieces() -> None:
    """More than the pieces into which a certificate is cut."""
    rng = np.random.default_rng(0)
    X, y, W = rng.normal(size=(700, 5)), rng.integers(4, size=700), rng.normal(size=(4, 5))
    problem = Multiclass.from_encoded(X, y, 4)
    scores = X @ W.T
    hinges = (scores + (np.arange(4) != y[:, None])).max(axis=1) - scores[np.arange(700), y]
    w = layout(problem, W.ravel())
    assert objective.hinge_losses(problem, w) == pytest.approx(hinges, abs=1e-12)
    assert objective.primal(problem, w, LAM) == pytest.approx(
        LAM / 2 * np.sum(W**2) + np.mean(hinges), abs=1e-12
    )
