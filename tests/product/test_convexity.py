"""What is certified: convex functions alone, against eigenvalues and enumerations; others are found out."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import aslinearoperator

from maxmargin import BrokenOracle, Predefined, solve
from maxmargin.product import (
    BlockConditionalGradient,
    Box,
    ConditionalGradient,
    Product,
    ProductProblem,
    Quadratic,
    Simplex,
)
from maxmargin.structures.feature_map import NegativeCurvature
from support.naive import Array
from support.products import vertices

METHODS = [ConditionalGradient(), BlockConditionalGradient()]
RULES = [*METHODS, ConditionalGradient(Predefined()), BlockConditionalGradient(Predefined())]
FORMS = {"dense": np.asarray, "sparse": csr_array, "operator": aslinearoperator}
SIZE = 4


def least_on_edges(Q: Array, c: Array, corners: Array) -> float:
    """Return the least x'Qx/2 - c'x on the segments between any two vertices."""
    found = []
    for a, b in combinations(corners, 2):
        d = b - a
        slope, bend = float((Q @ a - c) @ d), float(d @ Q @ d)
        best = np.clip(-slope / bend, 0.0, 1.0) if bend > 0.0 else 0.0
        found += [0.5 * x @ Q @ x - c @ x for x in (a, b, a + best * d)]
    return float(min(found))


def product_of(kind: str) -> tuple[Product, Array]:
    """Return sets of SIZE coordinates in all, and the vertices of their product."""
    if kind == "box":
        return Product([Box(-np.ones(2), np.ones(2))] * 2), vertices("box", SIZE)
    if kind == "one simplex":
        return Product([Simplex(SIZE)]), np.eye(SIZE)
    halves = np.eye(2)
    return Product([Simplex(2)] * 2), np.array([[*a, *b] for a in halves for b in halves])


def symmetric_matrix(rng: np.random.Generator, kind: str) -> Array:
    """Return a matrix of entries of order one: semidefinite of any rank, or with any eigenvalues."""
    if kind == "whole numbers":
        A = rng.integers(-2, 3, size=(SIZE, SIZE)).astype(float)
        return A + A.T
    if kind == "hardly negative":  # one eigenvalue, of 1e-9 to 1 times the others
        V = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
        Q = V * [1.0, 0.7, 0.3, -(10.0 ** rng.uniform(-9.0, 0.0))] @ V.T
        return (Q + Q.T) / 2.0
    A = rng.normal(size=(rng.integers(0, SIZE + 1), SIZE))
    return A.T @ A


@given(
    st.integers(0, 10**6),
    st.sampled_from(["whole numbers", "hardly negative", "semidefinite"]),
    st.sampled_from(["box", "one simplex", "two simplices"]),
    st.sampled_from([1e-150, 1.0, 1e150]),
    st.sampled_from([0.0, 1.0]),
)
def test_what_is_certified_is_semidefinite_and_bounds_the_least_value(
    seed: int, matrix: str, sets: str, scale: float, linear: float
) -> None:
    rng = np.random.default_rng(seed)
    Q = symmetric_matrix(rng, matrix)
    c, (domain, corners) = linear * rng.normal(size=SIZE), product_of(sets)
    values = np.linalg.eigvalsh(Q)
    for method in METHODS:
        try:
            problem = ProductProblem(Quadratic(scale * Q, scale * c), domain)
            result = solve(problem, method, tol=0.1 * scale, max_passes=50, random_state=0)
        except (NegativeCurvature, BrokenOracle):  # seen in a step, or by a bound above the objective
            assert values[0] < -1e-9
            continue
        if matrix == "semidefinite":
            assert result.certified
        if values[0] < -1e-11 * values[-1]:
            assert not result.certified
        if result.certified:
            assert result.dual <= scale * (least_on_edges(Q, c, corners) + 1e-9)


@given(st.integers(0, 10**6), st.integers(1, 30), st.floats(-60.0, 60.0), st.booleans())
def test_semidefinite_matrices_are_proved_to_be_at_any_scale(
    seed: int, size: int, exponent: float, sparse: bool
) -> None:
    """Of any rank, on any scale, and with coordinates on scales of their own."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rng.integers(0, size + 1), size)) * (rng.random(size=size) < 0.8)
    own = 10.0 ** (exponent * rng.uniform(-1.0, 1.0, size=size))
    Q = (A * own).T @ (A * own)
    for matrix in (Q, 1e150 * (A.T @ A), 1e-150 * (A.T @ A), np.ones((size, size))):
        assert Quadratic(csc_array(matrix) if sparse else matrix).convex


@given(st.integers(0, 10**6), st.integers(2, 30), st.floats(-10.0, 0.0), st.floats(-60.0, 60.0))
def test_an_eigenvalue_below_zero_is_never_overlooked(
    seed: int, size: int, negative: float, exponent: float
) -> None:
    """Neither if coordinates have scales of their own: the signs of eigenvalues stay (Sylvester)."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(size, size)))[0]
    Q = V * [-(10.0**negative), *rng.uniform(0.0, 1.0, size=size - 1)] @ V.T
    own = 10.0 ** (exponent * rng.uniform(-1.0, 1.0, size=size))
    for matrix in ((Q + Q.T) / 2.0, 1e150 * Q, 1e-150 * Q, own[:, None] * (Q + Q.T) / 2.0 * own):
        try:
            assert not Quadratic(matrix).convex
        except NegativeCurvature:
            assert Q.diagonal().min() < 0.0


@pytest.mark.parametrize(
    "Q",
    [
        [[1.0, -3.0], [-3.0, 1.0]],  # a vertex with a gap of zero that is not the minimum, or may not be
        [[0.0, 1e-300], [1e-300, 1.0]],
        [[-1e-300, 0.0], [0.0, 1e300]],
        [[1e300, 1e150], [1e150, 0.9]],
    ],
)
def test_other_matrices_are_not_proved(Q: Any) -> None:
    assert not Quadratic(Q).convex
    assert not Quadratic(csr_array(Q)).convex


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_negative_diagonal_is_an_error(scale: float, form: str) -> None:
    message = r"^Quadratic: Q must be positive semidefinite, got -2\S* on its diagonal; minimise a convex .*$"
    with pytest.raises(NegativeCurvature, match=message):
        Quadratic(FORMS[form](scale * np.diag([-1.0, -2.0])), semidefinite=True)


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", RULES)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_negative_curvature_along_a_step_is_an_error(
    scale: float, method: ConditionalGradient, form: str, declared: bool
) -> None:
    """The function x_1^2 / 2 + 3 x_1 x_2 + x_2^2 / 2 is concave where x_1 + x_2 = 1."""
    Q = scale * np.kron(np.eye(2), [[1.0, 3.0], [3.0, 1.0]])
    problem = ProductProblem(
        Quadratic(FORMS[form](Q), semidefinite=declared), Product([Simplex(2)] * 2), [0.7, 0.3, 0.6, 0.4]
    )
    message = r"^solve: the curvature along a step must not be negative, got -\S+: Q is not positive semi.*$"
    with pytest.raises(NegativeCurvature, match=message):
        solve(problem, method, random_state=0)


class Power:
    """sum_j sign * |x_j - 0.3|^p / p: convex for the sign 1, concave on either side of 0.3 for -1."""

    def __init__(self, sign: float, p: int) -> None:
        self.sign, self.p = sign, p

    def value(self, x: Array) -> float:
        return float(self.sign * (np.abs(x - 0.3) ** self.p).sum() / self.p)

    def gradient(self, x: Array, where: slice) -> Array:
        r = x[where] - 0.3
        return np.asarray(self.sign * np.sign(r) * np.abs(r) ** (self.p - 1))


@pytest.mark.parametrize("method", METHODS)
def test_a_slope_that_falls_along_a_step_is_an_error(method: ConditionalGradient) -> None:
    problem = ProductProblem(Power(-1.0, 4), Product([Simplex(3)] * 2), [0.4, 0.3, 0.3] * 2)
    with pytest.raises(NegativeCurvature, match=r"^solve: the slope along a step must not fall, got -.* not"):
        solve(problem, method, random_state=0)


@pytest.mark.parametrize("method", RULES)
def test_functions_of_ones_own_are_certified_if_declared_convex(method: ConditionalGradient) -> None:
    declared = Power(1.0, 4)
    declared.convex = True  # type: ignore[attr-defined]
    results = [
        solve(ProductProblem(each, Product([Simplex(3)] * 2)), method, tol=1e-3, random_state=0)
        for each in (declared, Power(1.0, 4))
    ]
    assert [result.certified for result in results] == [True, False]
    assert "(guaranteed)" in repr(results[0])
    assert "(not guaranteed: the objective is not known to be convex)" in repr(results[1])
    assert results[0].gap == results[1].gap <= 1e-3


def test_operators_and_large_matrices_are_certified_if_declared_semidefinite() -> None:
    for Q in (aslinearoperator(np.eye(3)), eye_array(2_001)):
        problems = [
            ProductProblem(Quadratic(Q, semidefinite=known), Simplex(Q.shape[0])) for known in (True, False)
        ]
        found = [solve(problem, METHODS[0], max_passes=1).certified for problem in problems]
        assert found == [True, False]


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_gradient_is_that_of_the_symmetric_part(form: str) -> None:
    """What is within rounding for one coordinate is not for another."""
    Q = np.array([[1e10, 0.0, 0.0], [0.0, 6.0, 5.0], [0.0, -5.0, 6.0]])
    f, x, e = Quadratic(FORMS[form](Q)), np.array([0.0, 0.25, 0.75]), np.eye(3)
    slopes = [0.5 * (f.value(x + d) - f.value(x - d)) for d in e]
    assert f.gradient(x, slice(0, 3)) == pytest.approx(slopes, abs=1e-9)
    assert f.value(x) == 0.5 * x @ Q @ x


@pytest.mark.parametrize("make", [np.asfortranarray, csc_array])
def test_callers_cannot_change_a_matrix_that_was_proved(make: Any) -> None:
    Q = make(np.eye(2))
    f = Quadratic(Q)
    (Q if isinstance(Q, np.ndarray) else Q.data)[...] = -1.0
    assert f.value(np.ones(2)) == 1.0
