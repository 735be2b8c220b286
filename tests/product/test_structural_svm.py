"""The dual of a structural SVM as a product of simplices: the library's other methods take the same steps."""

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, solve
from maxmargin.methods.protocol import point
from maxmargin.product import BlockConditionalGradient, ConditionalGradient, Quadratic
from maxmargin.solving.objective import certificate
from support import naive
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.products import block_curvature, svm_dual
from support.runs import RULES, SCHEMES, batch_states, block_states, random_order

LAM = 0.1
CASES = {"chain": chain_case(3, (2, 3, 2), 2), "multiclass": multiclass_case(2, n=5, n_labels=4)}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.mark.parametrize("rule", RULES)
def test_blocks_move_as_by_algorithm_4(case: Case, rule: str) -> None:
    """w = A alpha, ell = b' alpha, for the same visits."""
    problem, A = svm_dual(case.data, LAM)
    method = BlockConditionalGradient(RULES[rule])
    order, state = random_order(case.problem, 60, 0), method.start(problem)
    for i, expected in zip(
        order, block_states(case.problem, BlockFrankWolfe(LAM, RULES[rule]), order), strict=True
    ):
        method.advance(state, problem, np.array([i]))
        assert A @ state.at.x == pytest.approx(flat(case.problem, expected.w), abs=1e-10)
        assert problem.objective.c @ state.at.x == pytest.approx(expected.ell.mean(), abs=1e-10)


@pytest.mark.parametrize("rule", RULES)
def test_the_batch_moves_as_by_algorithm_2(case: Case, rule: str) -> None:
    problem, A = svm_dual(case.data, LAM)
    method = ConditionalGradient(RULES[rule])
    state = method.start(problem)
    for expected in batch_states(case.problem, FrankWolfe(LAM, RULES[rule]), 40):
        method.advance(state, problem, np.zeros(0, dtype=int))
        assert A @ state.at.x == pytest.approx(flat(case.problem, expected.w), abs=1e-10)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_averages_are_those_of_algorithm_4(case: Case, scheme: str) -> None:
    problem, A = svm_dual(case.data, LAM)
    ours, theirs = BlockConditionalGradient(average=scheme), Averaged(BlockFrankWolfe(LAM), scheme)
    for n_steps in (1, 7, 16, 50):
        order = random_order(case.problem, n_steps, 1)
        *_, expected = block_states(case.problem, theirs, order)
        result = _answer(ours, problem, order)
        assert A @ result == pytest.approx(
            flat(case.problem, point(theirs, expected, case.problem).w), abs=1e-10
        )


def _answer(method, problem, order):
    return certificate(method, method.advance(method.start(problem), problem, order), problem, True).w


def test_the_driver_makes_the_same_run(case: Case) -> None:
    """The same seed draws the same visits; f = -dual, so the bounds change sides, and the gap is the same."""
    problem, _ = svm_dual(case.data, LAM)
    options = {"tol": 0.0, "max_passes": 12, "check_every": 3, "sampling": "uniform", "random_state": 5}
    ours = solve(problem, BlockConditionalGradient(), **options)
    theirs = solve(case.problem, BlockFrankWolfe(LAM), **options)
    assert -ours.history.primal == pytest.approx(theirs.history.dual, abs=1e-10)
    assert -ours.history.dual == pytest.approx(theirs.history.primal, abs=1e-10)
    assert ours.history.gap == pytest.approx(theirs.history.gap, abs=1e-10)
    assert ours.history.passes.tolist() == theirs.history.passes.tolist()


def test_curvatures_follow_from_the_gram_matrix(case: Case) -> None:
    """Appendix A: C_f^(i) = lam max ||A_i (s - x)||^2, over pairs of vertices; the sum <= 4 R^2/(lam n)."""
    problem, A = svm_dual(case.data, LAM)
    gram = LAM * A.T @ A
    found = [block_curvature(gram, at, np.eye(at.stop - at.start)) for at in problem.domain.where]
    assert found == pytest.approx(naive.block_curvatures(case.data, LAM), abs=1e-12)
    n, R = len(found), naive.radius(case.data)
    assert sum(found) <= 4 * R**2 / (LAM * n) + 1e-12

    quadratic, rng = Quadratic(gram, problem.objective.c), np.random.default_rng(0)
    for at, curvature in zip(problem.domain.where, found, strict=True):  # the definition, at random points
        x = np.concatenate([rng.dirichlet(np.ones(s.stop - s.start)) for s in problem.domain.where])
        s = rng.dirichlet(0.2 * np.ones(at.stop - at.start))
        y, gamma = x.copy(), rng.uniform(0.1, 1.0)
        y[at] += gamma * (s - x[at])
        rest = quadratic.value(y) - quadratic.value(x) - (y - x)[at] @ quadratic.gradient(x, at)
        assert 2.0 / gamma**2 * rest <= curvature + 1e-9
