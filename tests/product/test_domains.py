"""Oracles of the sets, against all vertices, linear programs and norms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from maxmargin.product import (
    Approximate,
    Birkhoff,
    Box,
    Domain,
    L1Ball,
    L2Ball,
    NuclearNormBall,
    Oracle,
    Product,
    Simplex,
)
from support.naive import Array
from support.products import vertices

POLYTOPES = {"simplex": Simplex(4), "l1": L1Ball(4), "box": Box(-np.ones(4), 1.0), "birkhoff": Birkhoff(2)}
SETS: dict[str, Domain] = {
    **POLYTOPES,
    "birkhoff 3": Birkhoff(3),
    "l2": L2Ball(3, 2.0),
    "frobenius": L2Ball((2, 3), 0.5),
    "l1 of matrices": L1Ball((2, 2), 3.0),
    "nuclear": NuclearNormBall((3, 2), 1.5),
    "box": Box([0.0, -1.0], [0.5, 2.0]),
    "product": Product([Simplex(2, 3.0), NuclearNormBall((2, 2)), Product([L2Ball(2), Box(0.0, 1.0)])]),
    "own": Oracle(lambda g: np.where(g > 0, 0.0, 1.0), 3, lambda x: bool((abs(x - 0.5) <= 0.5 + 1e-9).all())),
}
# The support function of a ball is its dual norm.
DUAL_NORMS = {
    "l2": lambda g: 2.0 * np.linalg.norm(g),
    "frobenius": lambda g: 0.5 * np.linalg.norm(g),
    "nuclear": lambda g: 1.5 * np.linalg.norm(g, 2),
    "l1 of matrices": lambda g: 3.0 * np.abs(g).max(),
}


def gradients(domain: Domain) -> st.SearchStrategy[Array]:
    return hnp.arrays(float, domain.shape, elements=st.floats(-3, 3).map(lambda v: round(v, 3)))


@pytest.mark.parametrize("name", POLYTOPES)
@settings(max_examples=25)
@given(data=st.data())
def test_no_vertex_is_better(name: str, data: st.DataObject) -> None:
    domain = POLYTOPES[name]
    gradient = data.draw(gradients(domain))
    found = domain.lmo(gradient)
    corners = vertices(name, domain.size)
    assert (corners @ gradient.ravel()).min() == pytest.approx(float(np.sum(found * gradient)), abs=1e-12)
    assert (np.abs(corners - found.ravel()).sum(axis=1) == 0.0).any()


@pytest.mark.parametrize("name", DUAL_NORMS)
@settings(max_examples=25)
@given(data=st.data())
def test_balls_attain_the_dual_norm(name: str, data: st.DataObject) -> None:
    gradient = data.draw(gradients(SETS[name]))
    attained = -float(np.sum(SETS[name].lmo(gradient) * gradient))
    assert attained == pytest.approx(DUAL_NORMS[name](gradient), abs=1e-12)


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=25)
@given(data=st.data())
def test_answers_are_in_the_set_and_what_is_outside_is_not(name: str, data: st.DataObject) -> None:
    domain = SETS[name]
    gradient, other = data.draw(gradients(domain)), data.draw(gradients(domain))
    found = domain.lmo(gradient)
    assert found.shape == domain.shape
    assert domain.contains(found)
    assert domain.contains(0.3 * found + 0.7 * domain.lmo(other))
    if gradient.any():  # beyond the supporting hyperplane
        assert not domain.contains(found - 0.01 * gradient / np.linalg.norm(gradient))


def test_assignments_are_linear_programs() -> None:
    gradient = np.random.default_rng(0).normal(size=(4, 4))
    sums = np.concatenate([np.kron(np.eye(4), np.ones(4)), np.kron(np.ones(4), np.eye(4))])
    expected = linprog(gradient.ravel(), A_eq=sums, b_eq=np.ones(8)).fun
    assert float(np.sum(Birkhoff(4).lmo(gradient) * gradient)) == pytest.approx(expected, abs=1e-9)


def test_large_matrices_take_one_singular_pair() -> None:
    gradient = np.random.default_rng(1).normal(size=(80, 70))
    gradient -= gradient.mean(axis=1, keepdims=True)  # constant vectors are in its null space
    found = NuclearNormBall((80, 70), 2.0).lmo(gradient)
    assert -float(np.sum(found * gradient)) == pytest.approx(2.0 * np.linalg.norm(gradient, 2), rel=1e-12)
    np.testing.assert_array_equal(found, NuclearNormBall((80, 70), 2.0).lmo(gradient))


def test_a_product_is_as_good_as_its_worst_oracle() -> None:
    seen = []

    def find(gradient: Array, x: Array, error: float) -> Array:
        seen.append((x.tolist(), error))
        return np.array([0.0, 1.0])

    poor = Approximate(Simplex(2), find, nu=0.5, slack=0.4)
    nested = Product([Simplex(3), Product([poor, Approximate(Box(0.0, 1.0), lambda g, x, e: x, slack=0.2)])])
    assert (nested.nu, nested.slack) == (0.5, pytest.approx(0.6))
    x = np.array([1.0, 0.0, 0.0, 0.3, 0.7, 0.9])
    found = nested.candidate(np.array([1.0, 0.0, -1.0, 2.0, 3.0, 4.0]), x, 0.5)
    assert found.tolist() == [0.0, 0.0, 1.0, 0.0, 1.0, 0.9]
    assert seen == [([0.3, 0.7], pytest.approx(0.1))]


def test_blocks_are_views_in_their_shapes() -> None:
    domain = Product([Simplex(2), NuclearNormBall((2, 3))])
    x = np.arange(8.0)
    first, second = domain.parts(x)
    assert first.tolist() == [0, 1]
    assert second.tolist() == [[2, 3, 4], [5, 6, 7]]
    second[0, 0] = 9.0
    assert x[2] == 9.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Simplex(0), "Simplex: shape must be an int >= 1 or a tuple of them, got 0."),
        (lambda: NuclearNormBall(4), "NuclearNormBall: shape must be rows and columns, got 4."),
        (lambda: L1Ball(2, -1.0), "L1Ball: radius must be a number > 0, got -1.0."),
        (lambda: Box(1.0, 0.0), "Box: bounds must be finite with lower <= upper, got other numbers."),
        (lambda: Box("a", 1.0), "Box: bounds must be arrays of numbers, got 'a' (str)."),
        (lambda: Product([]), "Product: blocks must be one or more domains, got none; see Oracle."),
        (lambda: Product([3]), "Product: blocks must be one or more domains, got 3 (int); see Oracle."),
    ],
)
def test_wrong_domains_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert str(caught.value) == message
