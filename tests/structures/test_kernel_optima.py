"""Kernels against a quadratic program over all outputs, and kernels that have no optimum."""

from typing import Any

import numpy as np
import pytest

from maxmargin import (
    Accelerated,
    BrokenOracle,
    Cached,
    NSlackCuttingPlane,
    Pairwise,
    Status,
    check_problem,
    solve,
)
from maxmargin.problems import (
    Custom,
    GaussianKernel,
    Kernelised,
    LinearKernel,
    PolynomialKernel,
    PrecomputedKernel,
    SigmoidKernel,
    Weighted,
)
from maxmargin.solving import objective
from maxmargin.structures.feature_map import NegativeCurvature, rebuilt
from maxmargin.structures.problem import sizes
from support import naive
from support.catalogue import matching_case, tree_case
from support.kernels import (
    LAM,
    METHODS,
    MODELS,
    N_ROWS,
    SQUARE,
    assert_same_run,
    factors,
    kernel_problem,
    linear_case,
    ran,
    random_rows,
)
from support.naive import Array

WIDE = np.random.default_rng(9).normal(size=(N_ROWS, 12)) / 3.0
GIVEN = WIDE @ WIDE.T + np.outer(np.arange(7.0), np.arange(7.0)) / 10.0
KERNELS: dict[str, tuple[Any, Array, Array]] = {
    "Gaussian": (
        GaussianKernel(0.4),
        random_rows(5),
        np.exp(-0.4 * np.square(random_rows(5)[:, None] - random_rows(5)).sum(axis=2)),
    ),
    "polynomial": (
        PolynomialKernel(3, 0.2, 0.9),
        random_rows(5),
        (0.2 * random_rows(5) @ random_rows(5).T + 0.9) ** 3,
    ),
    "sigmoid": (SigmoidKernel(0.3, 0.1), WIDE, np.tanh(0.3 * WIDE @ WIDE.T + 0.1)),
    "precomputed": (PrecomputedKernel(True), GIVEN, GIVEN),
}


# Kernels and oracles do not know each other: every model with one kernel, and every kernel with one model.
PAIRS = [
    pytest.param(model, kernel, marks=() if kernel == "Gaussian" or model == "chain" else pytest.mark.long)
    for model in MODELS
    for kernel in KERNELS
]


@pytest.mark.parametrize(("model", "kernel"), PAIRS)
def test_certificates_converge_to_the_optimum_of_a_quadratic_program(model: str, kernel: str) -> None:
    """Factors of the kernel's matrix are features, with which all outputs are written out."""
    (function, X, K), lam = KERNELS[kernel], 1.0
    case, problem = linear_case(model, factors(K)), kernel_problem(model, X, function)
    best = naive.optimum(case.data, lam)
    assert best.primal - best.dual < 1e-7
    options = {"tol": 1e-7, "max_passes": 1000, "check_every": 10, "random_state": 0}
    result = solve(problem, Accelerated(Pairwise(lam)), **options)
    assert result.status is Status.CONVERGED
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.primal == pytest.approx(best.primal, abs=1e-6)
    assert result.dual == pytest.approx(best.primal, abs=1e-6)
    assert result.certified == (kernel != "sigmoid")


@pytest.mark.parametrize("method", [NSlackCuttingPlane(1.0), Cached(Pairwise(1.0), oracle_cost=4.0)])
@pytest.mark.parametrize("model", ["chain", "segments", "cut"])
def test_methods_may_choose_between_equal_planes(model: str, method: Any) -> None:
    """Rounding decides between planes of the same value, so runs differ; what they converge to does not."""
    function, X, K = KERNELS["Gaussian"]
    best = naive.optimum(linear_case(model, factors(K)).data, 1.0)
    result = ran(kernel_problem(model, X, function), method, 60, tol=1e-3)
    assert (result.history.dual <= best.primal + 1e-9).all()
    assert (result.history.primal >= best.dual - 1e-9).all()
    assert result.gap <= 1e-3


def indefinite(negative: float) -> Array:
    values = np.array([1.0, 1.2, 0.9, 1.1, 1.0, 0.8, negative])
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(7, 7)))[0]
    return vectors * values @ vectors.T


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("model", ["multiclass", "chain"])
def test_a_negative_squared_length_is_an_error(model: str, name: str) -> None:
    message = (
        r"^solve: .* not positive semidefinite on these data; choose another kernel or other parameters\.$"
    )
    with pytest.raises(NegativeCurvature, match=message) as caught:
        ran(kernel_problem(model, -np.eye(7), PrecomputedKernel()), METHODS[name], 40)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["BCFW", "away", "divided"])
def test_a_move_of_negative_length_is_found_where_the_weights_have_a_positive_one(name: str) -> None:
    K = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    with pytest.raises(
        NegativeCurvature, match=r"^solve: the squared length of a move must not .*, got -2: the"
    ):
        ran(kernel_problem("multiclass", K, PrecomputedKernel()), METHODS[name], 40)


def test_a_dual_above_the_dual_loss_is_blamed_on_the_kernel() -> None:
    """No step meets a negative squared length, but momentum goes where there are some."""
    K, method = np.diag([-0.85, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), Accelerated(Pairwise(0.1), kappa=1.0)
    with pytest.raises(
        NegativeCurvature, match=r"^solve: the squared length of weights .* not positive semidefinite"
    ):
        ran(kernel_problem("chain", K, PrecomputedKernel()), method, 40)


def test_a_dual_above_the_objective_is_blamed_on_the_kernel() -> None:
    problem = kernel_problem("chain", np.eye(7), PrecomputedKernel(True))
    with pytest.raises(
        NegativeCurvature, match=r"^solve: the dual must be .*, got 1.5 above 1: the kernel is"
    ):
        objective.check_bounds(problem, 1.0, 1.5)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_a_kernel_that_is_declared_semidefinite_and_is_not_gets_no_false_certificate(
    seed: int, name: str
) -> None:
    """Zero weights have the objective one: a larger lower bound is false, and so is an answer above it."""
    A = np.random.default_rng(seed).normal(size=(7, 7))
    try:
        result = ran(kernel_problem("chain", A + A.T, PrecomputedKernel(True)), METHODS[name], 40, tol=0.01)
    except (NegativeCurvature, BrokenOracle):
        return
    assert result.gap > -1e-9
    assert result.dual <= 1.0
    assert result.primal <= 1.01


def test_what_is_known_of_a_kernel_decides_on_certificates() -> None:
    K = indefinite(0.0)
    known, unknown = (kernel_problem("chain", K, PrecomputedKernel(is_known)) for is_known in (True, False))
    a, b = ran(known, METHODS["BCFW"]), ran(unknown, METHODS["BCFW"])
    assert_same_run(a, b, 0.0)
    assert (a.certified, b.certified) == (True, False)
    assert "(not guaranteed: the kernel is not known to be positive semidefinite)" in repr(b)
    for kernel, certified in (
        (GaussianKernel(0.1), True),
        (GaussianKernel(-0.1), False),
        (PolynomialKernel(3, 0.1, 0.0), True),
        (PolynomialKernel(3, 0.1, -0.1), False),
        (PolynomialKernel(1, -0.1, 0.1), False),
        (LinearKernel(), True),
        (SigmoidKernel(0.1, 0.0), False),
    ):
        problem = Weighted(kernel_problem("multiclass", 0.1 * WIDE, kernel), np.ones(7))
        try:
            assert ran(problem, METHODS["BCFW"], 2).certified == certified
        except NegativeCurvature:
            assert not certified


def test_a_result_beside_linear_features_is_certified_at_rebuilt_weights() -> None:
    problem = kernel_problem("chain", random_rows(3), GaussianKernel(0.5), linear=random_rows(4))
    result = ran(problem, METHODS["accelerated"], 10)
    np.testing.assert_array_equal(rebuilt(problem.map, result.w), result.w)
    assert result.primal == objective.primal(problem, result.w, LAM)


def test_the_checks_of_a_users_problem_hold() -> None:
    for model in MODELS:
        problem = kernel_problem(model, random_rows(1), GaussianKernel(0.5), linear=random_rows(2))
        assert check_problem(problem).ok
        assert check_problem(Weighted(problem, np.ones(sizes(problem).examples))).ok
    doubled = problem._replace(map=problem.map._replace(products=2.0 * problem.map.products))
    assert "gram" in str(check_problem(doubled))


@pytest.mark.parametrize(
    ("features", "kernel", "message"),
    [
        (np.ones((6, 2)), GaussianKernel(1.0), "features must have one row for each of the 7 rows .*, got 6"),
        (np.ones((8, 2)), GaussianKernel(1.0), "features must have one row for each of the 7 rows .*, got 8"),
        (np.eye(6), PrecomputedKernel(), "features must have one row for each of the 7 rows .*, got 6"),
        (np.ones((7, 6)), PrecomputedKernel(), r"a kernel matrix must be square, got shape \(7, 6\)"),
        (np.ones(7), PrecomputedKernel(), r"a kernel matrix must be square, got shape \(7,\)"),
        (np.triu(np.ones((7, 7))), PrecomputedKernel(), r"a kernel matrix must be symmetric, got k\(a, b\)"),
        (np.full((7, 7), np.nan), PrecomputedKernel(), "a kernel matrix must have finite entries, got NaN"),
        (np.full((7, 7), np.inf), PrecomputedKernel(), "a kernel matrix must have finite entries, got NaN"),
        (np.full((7, 2), np.nan), GaussianKernel(1.0), "the kernel must have finite values, got NaN"),
        (np.full((7, 2), 1e200), PolynomialKernel(2, 1.0, 0.0), "the kernel must have finite values, got"),
    ],
)
@pytest.mark.parametrize("model", ["multiclass", "chain", "segments", "tree"])
def test_wrong_features_are_refused(model: str, features: Array, kernel: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^Kernelised: {message}") as caught:
        kernel_problem(model, features, kernel)
    assert "\n" not in str(caught.value)


def test_wrong_kernels_and_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^Kernelised: kernel must be a GaussianKernel, .* got 'rbf'"):
        kernel_problem("chain", random_rows(0), "rbf")
    with pytest.raises(ValueError, match=r"^Kernelised: dtype must be float64 or float32, got .*int64"):
        kernel_problem("chain", random_rows(0), GaussianKernel(1.0), dtype=np.int64)


def functions() -> Any:
    def features(x: Array, y: int) -> Array:
        return x * y

    def best(x: Array, w: Array, truth: int | None = None) -> int:
        return int(w @ x > 0)

    return Custom(features, lambda truth, y: float(truth != y), best, [np.ones(1), -np.ones(1)], [0, 1])


@pytest.mark.parametrize(
    "made",
    [
        lambda: matching_case(0).problem,
        lambda: tree_case(0).problem,
        functions,
        lambda: kernel_problem("chain", random_rows(0), SQUARE),
    ],
    ids=["matching", "trees", "functions", "a kernel already"],
)
def test_models_without_rows_are_refused(made: Any) -> None:
    message = (
        r"^Kernelised: problem must be of Multiclass, Chain, .* or Graph, got a problem with a \w+Map\.$"
    )
    with pytest.raises(TypeError, match=message):
        Kernelised(made(), random_rows(0), SQUARE)
