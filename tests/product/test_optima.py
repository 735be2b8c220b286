"""Optima, against solvers that work in other ways: quadprog, SciPy, liblinear, projected gradients."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import aslinearoperator
from sklearn.svm import LinearSVC

from maxmargin import LineSearch, Predefined, Status, solve
from maxmargin.product import (
    Birkhoff,
    BlockConditionalGradient,
    Box,
    ConditionalGradient,
    L1Ball,
    L2Ball,
    LeastSquares,
    NuclearNormBall,
    Product,
    ProductProblem,
    Quadratic,
    Simplex,
)
from maxmargin.product.objectives import follow
from maxmargin.solving.objective import certificate
from support.naive import Array
from support.products import onto_nuclear_ball, quadratic_optimum

METHODS = [ConditionalGradient(), BlockConditionalGradient()]
FORMS = {"dense": np.asarray, "sparse": csr_array, "coordinates": coo_array, "operator": aslinearoperator}


class Softened:
    """sum_j log(1 + exp(a_j'x)) - c'x: a smooth function of which only values and gradients are known."""

    def __init__(self, A: Array, c: Array) -> None:
        self.A, self.c = A, c

    def value(self, x: Array) -> float:
        return float(np.logaddexp(0.0, self.A @ x).sum() - self.c @ x)

    def gradient(self, x: Array, where: slice) -> Array:
        return self.A[:, where].T @ (1.0 / (1.0 + np.exp(-self.A @ x))) - self.c[where]


def mixed(seed: int, objective: str = "quadratic", form: Any = np.asarray) -> ProductProblem:
    """Return a problem on unequal blocks: a simplex, a box, a ball and doubly stochastic matrices."""
    rng = np.random.default_rng(seed)
    A, c = rng.normal(size=(6, 12)), rng.normal(size=12)
    sets = Product([Simplex(3, 2.0), Box([-1.0, 0.0], [1.0, 0.5]), L1Ball(3), Birkhoff(2)])
    if objective == "quadratic":
        return ProductProblem(Quadratic(form(A.T @ A), c), sets)
    made = LeastSquares(form(A), c[:6], c) if objective == "least squares" else Softened(A, c)
    return ProductProblem(made, sets)


def least_of_mixed(Q: Array, c: Array) -> float:
    """Return the least x'Qx/2 - c'x on the same sets, by quadprog; the ball is a difference of vectors."""
    V = np.zeros((12, 15))
    V[:8, :8], V[5:8, 8:11], V[8:, 11:] = np.eye(8), -np.eye(3), np.eye(4)
    low = -np.eye(15)[3]
    G, h = [*-np.eye(15), np.eye(15)[3], np.eye(15)[4]], [*-low, 1.0, 0.5]
    G.append(np.r_[np.zeros(5), np.ones(6), np.zeros(4)])
    E = np.zeros((4, 15))
    E[0, :3], E[1, 11:13], E[2, 13:15], E[3, [11, 13]] = 1.0, 1.0, 1.0, 1.0
    return quadratic_optimum(V.T @ Q @ V, V.T @ c, np.array(G), np.r_[h, 1.0], E, np.array([2.0, 1, 1, 1]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("objective", ["quadratic", "least squares"])
def test_quadratics_on_unequal_blocks_reach_their_optimum(
    objective: str, method: ConditionalGradient
) -> None:
    problem = mixed(0, objective)
    matrix, c = problem.objective.matrix, problem.objective.c
    squares = objective == "least squares"
    Q, linear = (matrix.T @ matrix, matrix.T @ problem.objective.b + c) if squares else (matrix, c)
    constant = 0.5 * float(problem.objective.b @ problem.objective.b) if squares else 0.0
    best = least_of_mixed(Q, linear) + constant
    result = solve(problem, method, tol=2e-2, max_passes=1000, check_every=20, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    assert result.dual - 1e-6 <= best <= result.primal + 1e-6
    assert (result.history.dual <= best + 1e-6).all()
    assert problem.domain.contains(result.w)
    assert result.primal == pytest.approx(problem.objective.value(result.w), abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("objective", ["quadratic", "least squares"])
@pytest.mark.parametrize("method", METHODS)
def test_forms_of_matrices_make_no_difference(method: Any, objective: str, form: str) -> None:
    options: dict[str, Any] = {"tol": 0.0, "max_passes": 8, "check_every": 2, "random_state": 3}
    expected = solve(mixed(1, objective), method, **options)
    found = solve(mixed(1, objective, FORMS[form]), method, **options)
    assert found.history.gap == pytest.approx(expected.history.gap, abs=1e-9)
    assert found.w == pytest.approx(expected.w, abs=1e-9)


def test_a_line_search_by_scipy_is_the_exact_one() -> None:
    """The same function, once known to be quadratic, once not."""
    known = mixed(2)

    class Unknown:
        value, gradient = staticmethod(known.objective.value), staticmethod(known.objective.gradient)

    unknown = ProductProblem(Unknown(), known.domain)
    options: dict[str, Any] = {"tol": 0.0, "max_passes": 10, "check_every": 1, "random_state": 0}
    for method in METHODS:
        expected, found = (solve(problem, method, **options) for problem in (known, unknown))
        assert found.w == pytest.approx(expected.w, abs=1e-8)
        assert found.history.gap == pytest.approx(expected.history.gap, abs=1e-7)


def test_a_line_search_does_not_move_the_point() -> None:
    problem = mixed(3, "softened")
    at, x0 = follow(problem.objective, problem.x0.copy()), problem.x0
    line = at.line(slice(3, 5), np.array([0.5, -0.1]))
    assert line.curvature(-float(at.gradient(slice(3, 5)) @ line.d)) > 0.0
    assert at.x == pytest.approx(x0, abs=0.0)


@pytest.mark.parametrize("step", [LineSearch(), Predefined()])
@pytest.mark.parametrize("method", [ConditionalGradient, BlockConditionalGradient])
def test_smooth_functions_reach_their_optimum(method: Any, step: Any) -> None:
    rng = np.random.default_rng(5)
    objective = Softened(rng.normal(size=(8, 5)), rng.normal(size=5))
    problem = ProductProblem(objective, Product([L2Ball(2, 0.8), Simplex(3)]))
    constraints = [
        {"type": "ineq", "fun": lambda x: 0.64 - x[:2] @ x[:2]},
        {"type": "eq", "fun": lambda x: x[2:].sum() - 1.0},
    ]
    bounds, start = [(None, None)] * 2 + [(0.0, None)] * 3, np.r_[0.0, 0.0, np.full(3, 1 / 3)]
    best = minimize(
        objective.value, start, method="SLSQP", bounds=bounds, constraints=constraints, tol=1e-12
    ).fun
    result = solve(problem, method(step), tol=2e-2, max_passes=2000, check_every=20, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.dual - 1e-7 <= best <= result.primal + 1e-7


def test_the_dual_of_a_linear_svm_is_that_of_liblinear() -> None:
    """min ||sum_i a_i y_i x_i||^2 / 2 - sum_i a_i over 0 <= a_i <= C; w = sum_i a_i y_i x_i."""
    rng = np.random.default_rng(0)
    X, C = rng.normal(size=(40, 4)), 0.5
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0.0, 1.0, -1.0)
    model = LinearSVC(loss="hinge", dual=True, fit_intercept=False, C=C, tol=1e-10, max_iter=10**6).fit(X, y)
    w = model.coef_[0]
    best = 0.5 * w @ w + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
    A = (X * y[:, None]).T
    problem = ProductProblem(LeastSquares(A, c=np.ones(40)), Product([Box(0.0, C)] * 40), np.zeros(40))
    # A step of line search in an interval is a step of dual coordinate descent, which converges linearly.
    result = solve(
        problem, BlockConditionalGradient(), tol=1e-8, max_passes=5000, check_every=50, random_state=0
    )
    assert -result.primal == pytest.approx(best, abs=1e-6)
    assert A @ result.w == pytest.approx(w, abs=1e-3)


def test_matrix_completion_reaches_what_projected_gradients_do() -> None:
    rng = np.random.default_rng(1)
    truth, radius = np.outer(rng.normal(size=8), rng.normal(size=6)), 4.0
    seen = np.flatnonzero(rng.random(48) < 0.6)
    values = truth.flat[seen] + 0.1 * rng.normal(size=len(seen))
    pick = csr_array((np.ones(len(seen)), (np.arange(len(seen)), seen)), shape=(len(seen), 48))
    problem = ProductProblem(LeastSquares(pick, values), NuclearNormBall((8, 6), radius))
    result = solve(problem, ConditionalGradient(), tol=2e-3, max_passes=5000, check_every=50)

    X = Y = np.zeros((8, 6))
    for t in range(3000):  # FISTA
        rest = np.zeros(48)
        rest[seen] = Y.flat[seen] - values
        before, X = X, onto_nuclear_ball(Y - rest.reshape(8, 6), radius)
        Y = X + t / (t + 3.0) * (X - before)
    best = problem.objective.value(X.ravel())
    assert result.status is Status.CONVERGED
    assert result.dual - 1e-9 <= best <= result.primal + 1e-9
    (found,) = problem.blocks(result.w)
    assert np.linalg.norm(found, "nuc") <= radius * (1 + 1e-9)
    assert found.flat[seen] == pytest.approx(X.flat[seen], abs=np.sqrt(2 * result.gap))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["quadratic", "softened"]), st.sampled_from(["l", "p"]))
def test_iterates_stay_in_the_sets(seed: int, objective: str, rule: str) -> None:
    """Iterates stay in the sets, bounds are below all values, and line search never ascends."""
    problem, rng = mixed(seed, objective), np.random.default_rng(seed)
    method = BlockConditionalGradient(LineSearch() if rule == "l" else Predefined())
    state, values, bounds = method.start(problem), [], []
    for i in rng.integers(4, size=25):
        method.advance(state, problem, np.array([i]))
        found = certificate(method, state, problem, True)
        assert problem.domain.contains(state.at.x)
        assert state.at.value() == pytest.approx(problem.objective.value(state.at.x), abs=1e-10)
        values.append(found.primal)
        bounds.append(found.dual)
    assert max(bounds) <= min(values) + 1e-10
    if rule == "l":
        assert (np.diff(values) <= 1e-10).all()
