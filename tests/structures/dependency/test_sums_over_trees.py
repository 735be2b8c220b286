"""Sums over all trees against the matrix-tree theorem, and where its matrix is singular to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.structures.dependency.expectations import (
    projective_means,
    projective_sums,
    spanning_tree_means,
    tree_sums,
)
from support.naive import Array

EPS = 1e-5


def log_determinant(scores: Array, single_root: bool) -> float:
    """Return the logarithm of the sum over trees, by the determinant of a Laplacian."""
    n = len(scores)
    weights = np.exp(scores[:, 1:].T) * (1.0 - np.eye(n))  # of arcs from row to column
    roots = np.exp(scores[:, 0])
    laplacian = np.diag(weights.sum(axis=0)) - weights
    if single_root:  # Koo, Globerson, Carreras and Collins
        laplacian[0] = roots
    else:
        laplacian += np.diag(roots)
    return float(np.linalg.slogdet(laplacian)[1])


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.booleans())
def test_probabilities_are_derivatives_of_the_determinant(seed: int, n: int, single_root: bool) -> None:
    rng = np.random.default_rng(seed)
    scores, mean = rng.normal(size=(n, n + 1)), np.full((n, n + 1), np.nan)
    found = spanning_tree_means(scores, single_root, tree_sums(n + 1), mean)
    assert found == pytest.approx(log_determinant(scores, single_root), abs=1e-10)
    assert mean.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-12)
    for j, h in np.ndindex(n, n + 1):
        step = np.zeros_like(scores)
        step[j, h] = EPS
        values = [log_determinant(scores + side * step, single_root) for side in (1.0, -1.0)]
        assert mean[j, h] == pytest.approx((values[0] - values[1]) / (2.0 * EPS), abs=1e-8)


@pytest.mark.parametrize("size", [50.0, 1e3, 1e8])
def test_a_cycle_of_strong_arcs_loses_no_digits(size: float) -> None:
    """Words 1 and 2 want each other, but one of them must have the root: each with probability 1/2."""
    scores = np.array([[0.0, 0.0, size, 0.0], [0.0, size, 0.0, 0.0], [0.0, size, size, 0.0]])
    for single_root in (True, False):
        mean = np.zeros((3, 4))
        spanning_tree_means(scores, single_root, tree_sums(3), mean)
        expected = [[0.5, 0.0, 0.5, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
        assert mean == pytest.approx(np.array(expected), abs=1e-7 if size > 1e6 else 1e-11)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e3, 1e6])
def test_long_sentences_of_large_scores(single_root: bool, size: float) -> None:
    """Every word has one head, and with a single root one word has it."""
    n = 25
    scores = size * np.random.default_rng(0).normal(size=(n, n + 1))
    for find, work in ((spanning_tree_means, tree_sums(n)), (projective_means, projective_sums(n))):
        mean = np.full((n, n + 1), np.nan)
        assert np.isfinite(find(scores, single_root, work, mean))
        assert ((mean >= 0.0) & (mean <= 1.0)).all()
        assert mean.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-7)
        assert (mean[np.arange(n), np.arange(1, n + 1)] == 0.0).all()
        if single_root:
            assert mean[:, 0].sum() == pytest.approx(1.0, abs=1e-7)
