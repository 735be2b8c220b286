"""Averages, kept in output space at the cost of a step, against averages of stored iterates."""

from typing import Any

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, Pairwise, Predefined
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.solving import objective
from support.catalogue import Case, chain_case, multiclass_case
from support.naive_primal import weights_of_iterates
from support.runs import SCHEMES, batch_states, block_states, random_order

LAM = 0.2
N_STEPS = 37


@pytest.fixture(params=["chain", "multiclass"])
def case(request: pytest.FixtureRequest) -> Case:
    return chain_case(7, (2, 3, 1, 2)) if request.param == "chain" else multiclass_case(7, n=6)


def check(case: Case, method: Averaged, states: Any, averaged: Any) -> None:
    """Compare the averaged method's answer after each step with the average of what was stored."""
    ws, ells = [], []
    for k, (state, average) in enumerate(zip(states, averaged, strict=True), start=1):
        iterate, answer = point(method.inner, state, case.problem), point(method, average, case.problem)
        ws.append(iterate.w.copy())
        ells.append(iterate.ell)
        p = weights_of_iterates(type(method.scheme).__name__.lower().removesuffix("mean"), k)
        assert p.sum() == pytest.approx(1.0)
        w, ell = p @ np.array(ws), float(p @ np.array(ells))
        assert answer.w == pytest.approx(w, abs=1e-12)
        assert answer.ell == pytest.approx(ell, abs=1e-12)
        assert objective.dual(answer, LAM) == pytest.approx(ell - 0.5 * LAM * w @ w, abs=1e-12)


def test_average_of_visits_of_several_steps() -> None:
    """A visit of pairwise steps counts as one iterate."""
    case, inner = multiclass_case(7, n=6), Pairwise(LAM)
    order, method = random_order(case.problem, N_STEPS, seed=8), Averaged(inner)
    check(case, method, block_states(case.problem, inner, order), block_states(case.problem, method, order))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_average_of_a_block_method_is_that_of_its_iterates(scheme: str) -> None:
    case, inner = multiclass_case(7, n=6), BlockFrankWolfe(LAM)
    order, method = random_order(case.problem, N_STEPS, seed=8), Averaged(inner, scheme)
    check(case, method, block_states(case.problem, inner, order), block_states(case.problem, method, order))


@pytest.mark.parametrize("inner", [BlockFrankWolfe(LAM), Pairwise(LAM)])
def test_average_over_chains_is_that_of_the_iterates(inner: Any) -> None:
    case = chain_case(7, (2, 3, 1, 2))
    order, method = random_order(case.problem, N_STEPS, seed=8), Averaged(inner)
    check(case, method, block_states(case.problem, inner, order), block_states(case.problem, method, order))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_average_of_a_batch_method_is_that_of_its_iterates(case: Case, scheme: str) -> None:
    inner = FrankWolfe(LAM)
    method = Averaged(inner, scheme)
    check(case, method, batch_states(case.problem, inner, 20), batch_states(case.problem, method, 20))


def test_average_under_predefined_steps() -> None:
    case, inner = multiclass_case(7, n=6), BlockFrankWolfe(LAM, Predefined())
    order, method = random_order(case.problem, N_STEPS, seed=9), Averaged(inner)
    check(case, method, block_states(case.problem, inner, order), block_states(case.problem, method, order))


def test_weighted_average_follows_the_recursion_of_algorithm_4(case: Case) -> None:
    inner, order = BlockFrankWolfe(LAM), random_order(case.problem, N_STEPS, seed=10)
    average = 0.0
    for k, state in enumerate(block_states(case.problem, inner, order)):
        average = k / (k + 2) * average + 2 / (k + 2) * state.w
    method = Averaged(inner, "weighted")
    answer = point(method, advance(method, start(method, case.problem), case.problem, order), case.problem)
    assert answer.w == pytest.approx(average, abs=1e-12)


def test_before_the_first_step_the_average_is_the_start(case: Case) -> None:
    method = Averaged(BlockFrankWolfe(LAM))
    answer = point(method, start(method, case.problem), case.problem)
    assert not answer.w.any()
    assert answer.ell == 0.0
