"""Products of weight vectors that accelerated steps take in one walk, against NumPy."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maxmargin.methods.momentum import difference_products
from maxmargin.problems import GaussianKernel, Kernelised, Multiclass, SignConstrained, Weighted
from maxmargin.structures.feature_map import is_euclidean
from support.bases import Rotation, Scaling, rebased

X, Y = np.random.default_rng(0).normal(size=(6, 2)), np.arange(6) % 4
PLAIN: Any = Multiclass.from_arrays(X, Y)
ALL = np.arange(8)


def vectors(size: int) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(size).normal(size=(4, size)))


@pytest.mark.parametrize("size", range(10))
def test_the_dot_product_needs_no_difference(size: int) -> None:
    w, centre, dual, work = vectors(size)
    d = 1.5 * w - 0.5 * centre - dual
    before = work.copy()
    found = difference_products(PLAIN.map, w, centre, dual, 0.5, work)
    assert found == pytest.approx((d @ dual, d @ d), abs=1e-13)
    assert (work == before).all()


@pytest.mark.compiled
def test_long_vectors_have_several_slices() -> None:
    w, centre, dual, work = vectors(100_003)
    d = 1.5 * w - 0.5 * centre - dual
    assert difference_products(PLAIN.map, w, centre, dual, 0.5, work) == pytest.approx((d @ dual, d @ d))


@pytest.mark.parametrize("kind", [Scaling, Rotation])
def test_products_are_those_of_another_metric(kind: Any) -> None:
    phi = rebased(PLAIN, kind).map
    w, centre, dual, work = vectors(8)
    d, g = (phi.basis.back(u) for u in (1.5 * w - 0.5 * centre - dual, dual))
    assert difference_products(phi, w, centre, dual, 0.5, work) == pytest.approx((d @ g, d @ d))


def test_constrained_weights_are_multiplied_by_the_projected_dual() -> None:
    phi = SignConstrained(PLAIN, ALL).map
    w, centre, dual, work = vectors(8)  # images
    d = 1.5 * w - 0.5 * centre - dual
    expected = d @ np.maximum(dual, 0.0), d @ d
    assert difference_products(phi, w, centre, dual, 0.5, work) == pytest.approx(expected)


def test_plain_and_weighted_maps_alone_have_the_dot_product() -> None:
    own = SimpleNamespace(inner_product=np.dot)
    others = SignConstrained(PLAIN, ALL), Kernelised(PLAIN, X, GaussianKernel(0.5)), rebased(PLAIN, Scaling)
    assert is_euclidean(PLAIN.map)
    assert is_euclidean(Weighted(PLAIN, np.ones(6)).map)
    assert not any(is_euclidean(phi) for phi in (own, *(problem.map for problem in others)))
