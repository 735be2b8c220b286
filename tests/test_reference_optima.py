"""Optima against other solvers: a quadratic program over all outputs, and LIBLINEAR."""

from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, Result, Status, solve
from maxmargin.problems import Chain, Multiclass
from maxmargin.solving import objective
from support import naive
from support.catalogue import Case, chain_case, flat, layout, multiclass_case
from support.naive import Array

pytestmark = pytest.mark.slow


def chain_of_two_labels(seed: int) -> Case:
    return chain_case(seed, (2, 1, 3, 2, 1), 2, loss="hamming")


def chain_of_three_labels(seed: int) -> Case:
    return chain_case(seed)


def three_classes(seed: int) -> Case:
    return multiclass_case(seed)


def four_classes_of_sparse_rows(seed: int) -> Case:
    return multiclass_case(seed, n=8, n_labels=4, rows="sparse", loss="zero_one")


def solved(case: Case, method: Any, tol: float, max_passes: int) -> Result:
    return solve(case.problem, method, tol=tol, max_passes=max_passes, check_every=250, random_state=0)


MADE = [chain_of_two_labels, chain_of_three_labels, three_classes, four_classes_of_sparse_rows]
METHODS = {
    "BCFW": BlockFrankWolfe,
    "averaged BCFW": lambda lam: Averaged(BlockFrankWolfe(lam)),
    "batch FW": FrankWolfe,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lam", [1.0, 0.1])
@pytest.mark.parametrize("made", MADE)
def test_the_certificate_brackets_the_optimum(made: Any, lam: float, method: str) -> None:
    case = made(11)
    best = naive.optimum(case.data, lam)
    assert best.primal - best.dual <= 1e-9
    result = solved(case, METHODS[method](lam), tol=2e-4, max_passes=20000)
    assert result.status is Status.CONVERGED
    assert result.dual <= best.primal + 1e-12
    assert result.primal >= best.dual - 1e-12
    assert result.gap == pytest.approx(result.primal - result.dual, abs=1e-15)
    assert max(result.primal - best.dual, best.primal - result.dual) <= result.gap + 1e-9


# Frank-Wolfe needs O(1 / gap) steps where the optimum is inside a face of more than two outputs; on these
# problems, none of whose optima is a corner, it is not, and the steps converge geometrically.
@pytest.mark.parametrize(
    ("made", "seed", "lam"),
    [
        (chain_of_two_labels, 0, 0.1),
        (chain_of_two_labels, 8, 0.1),
        (chain_of_two_labels, 9, 1.0),
        (chain_of_three_labels, 3, 3.0),
        (three_classes, 0, 0.3),
        (three_classes, 6, 0.1),
        (three_classes, 3, 1.0),
        (four_classes_of_sparse_rows, 0, 1.0),
    ],
)
def test_primal_dual_and_weights_agree_to_seven_digits(made: Any, seed: int, lam: float) -> None:
    case = made(seed)
    best = naive.optimum(case.data, lam)
    assert min(alpha.max() for alpha in best.alpha) < 0.9
    result = solved(case, BlockFrankWolfe(lam), tol=1e-10, max_passes=20000)
    assert result.gap <= 1e-7
    assert result.primal == pytest.approx(best.primal, abs=1e-7)
    assert result.dual == pytest.approx(best.dual, abs=1e-7)
    # P is strongly convex: ||w - w*||^2 <= 2 gap / lam.
    assert np.linalg.norm(result.weights - best.w) <= np.sqrt(2e-7 / lam)
    assert (flat(case.problem, result.w) == result.weights).all()


@pytest.mark.parametrize("lam", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("made", MADE)
def test_primal_at_the_optimum_is_the_dual(made: Any, lam: float) -> None:
    """The package's primal, at the quadratic program's weights, equals the program's dual value."""
    case = made(12)
    best = naive.optimum(case.data, lam)
    found = objective.primal(case.problem, layout(case.problem, best.w), lam)
    assert found == pytest.approx(best.dual, abs=1e-9)


def test_sequences_of_one_token_are_multiclass_with_two_constant_features() -> None:
    """The start and end biases of a label are the weights of the two constants."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.integers(3, size=12)
    chain = Chain.from_encoded(X, np.arange(13), y, 3)
    flat_problem = Multiclass.from_encoded(np.hstack([X, np.ones((12, 2))]), y, 3)
    results = [
        solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=300, check_every=50, random_state=0)
        for problem in (chain, flat_problem)
    ]
    weights = [problem.unpack(r.w) for problem, r in zip((chain, flat_problem), results, strict=True)]
    assert results[0].primal == pytest.approx(results[1].primal, rel=1e-9)
    assert results[0].dual == pytest.approx(results[1].dual, rel=1e-9)
    joined = np.column_stack([weights[0].unary, weights[0].start, weights[0].end])
    assert joined == pytest.approx(weights[1].unary, abs=1e-8)
    assert not weights[0].transitions.any()


def crammer_singer(W: Array, X: Array, y: Array, lam: float) -> float:
    """Return lam/2 ||W||^2 + mean_i max_k ([k != y_i] + <w_k - w_{y_i}, x_i>)."""
    scores = X @ W.T
    truth = scores[np.arange(len(y)), y]
    hinges = (scores + (np.arange(len(W)) != y[:, None])).max(axis=1) - truth
    return float(lam / 2 * np.sum(W**2) + hinges.mean())


def noisy_classes(n_classes: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=80)
    return rng.normal(size=(n_classes, 4))[y] + rng.normal(size=(80, 4)), y


def test_two_classes_are_a_linear_svm() -> None:
    r"""Two-class Crammer-Singer is the ordinary SVM.

    With :math:`s_i = \pm 1` our objective is

    .. math:: \frac{\lambda}{2} (\|w_0\|^2 + \|w_1\|^2)
              + \frac1n \sum_i \max(0, 1 - s_i \langle w_1 - w_0, x_i \rangle) .

    For a given :math:`u = w_1 - w_0` the first term is least at :math:`w_1 = -w_0 = u / 2`, where it is
    :math:`\frac{\lambda}{4} \|u\|^2`. Times :math:`2 / \lambda` this is LIBLINEAR's
    :math:`\frac12 \|u\|^2 + C \sum_i \max(0, 1 - s_i \langle u, x_i \rangle)` with
    :math:`C = 2 / (\lambda n)`.
    """
    (X, y), lam = noisy_classes(2), 0.05
    svm = LinearSVC(
        loss="hinge", fit_intercept=False, dual=True, C=2 / (lam * len(y)), tol=1e-9, max_iter=10**6
    )
    u = svm.fit(X, y).coef_[0]
    result = solve(Multiclass.from_encoded(X, y, 2), BlockFrankWolfe(lam), tol=1e-9, random_state=0)
    w_0, w_1 = result.weights.reshape(2, 4)
    theirs = lam / 4 * u @ u + np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ u)).mean()
    assert w_1 == pytest.approx(-w_0, abs=1e-12)
    assert result.primal == pytest.approx(theirs, rel=1e-5)
    assert X @ (w_1 - w_0) == pytest.approx(X @ u, abs=1e-3)


@pytest.mark.slow
def test_many_classes_are_crammer_and_singers_svm() -> None:
    r"""LIBLINEAR has :math:`\frac12 \|W\|^2 + C \sum_i \xi_i`: ours over lam, with C = 1 / (lam n)."""
    (X, y), lam = noisy_classes(4), 0.05
    svm = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=1 / (lam * len(y)), tol=1e-9, max_iter=10**6
    )
    theirs = svm.fit(X, y).coef_
    problem = Multiclass.from_encoded(X, y, 4)
    result = solve(problem, BlockFrankWolfe(lam), tol=2e-6, max_passes=30000, check_every=200, random_state=0)
    ours = result.weights.reshape(4, 4)
    at_theirs, at_ours = (crammer_singer(W, X, y, lam) for W in (theirs, ours))
    assert result.primal == pytest.approx(at_ours, rel=1e-12)
    assert at_ours == pytest.approx(at_theirs, rel=1e-5)
    assert result.dual <= at_theirs
    assert np.abs(X @ ours.T - X @ theirs.T).max() <= 0.02
