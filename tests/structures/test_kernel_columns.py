"""Values of kernels against scikit-learn's; columns have the same bits however many are kept."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise

from maxmargin import Accelerated, Averaged, BlockFrankWolfe, Divided, FrankWolfe, Pairwise, solve
from maxmargin.problems import (
    Chain,
    GaussianKernel,
    Kernelised,
    LinearKernel,
    Multiclass,
    PolynomialKernel,
    PrecomputedKernel,
    SigmoidKernel,
)
from maxmargin.structures.kernel_functions import (
    GROUP,
    AllColumns,
    SomeColumns,
    add_columns,
    all_columns,
    fewer_columns,
    find_columns,
    some_columns,
)
from maxmargin.structures.kernelised import kernelised_rebuilt
from maxmargin.structures.problem import take
from maxmargin.structures.rows import DenseRows, IndicatorRows, SparseRows, as_rows
from support.bitwise_runs import assert_same_bits
from support.naive import Array

LAM = 0.05
N = 40
KERNELS = {
    "linear": (LinearKernel(), lambda X: pairwise.linear_kernel(X)),
    "polynomial": (PolynomialKernel(3, 0.4, 0.7), lambda X: pairwise.polynomial_kernel(X, None, 3, 0.4, 0.7)),
    "Gaussian": (GaussianKernel(0.3), lambda X: pairwise.rbf_kernel(X, None, 0.3)),
    "sigmoid": (SigmoidKernel(0.2, -0.1), lambda X: pairwise.sigmoid_kernel(X, None, 0.2, -0.1)),
}


def table(kind: str, n: int = 70) -> Any:
    """Return more rows than a block of the matrix has, of which some are zero and some are equal."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 5)) if kind == "dense" else (rng.random((n, 5)) < 0.5).astype(float)
    if kind == "sparse":
        X *= rng.normal(size=X.shape)
    X[3], X[9] = 0.0, X[1]
    return X if kind == "dense" else scipy.sparse.csr_array(X)


HELD = {"dense": DenseRows, "sparse": SparseRows, "indicator": IndicatorRows}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kind", HELD)
def test_values_are_those_of_scikit_learn(kind: str, name: str) -> None:
    (function, expected), X = KERNELS[name], table(kind)
    rows = as_rows(X)
    assert isinstance(rows, HELD[kind])
    values = all_columns(rows, function, np.float64).values
    np.testing.assert_allclose(values, expected(X), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(values, values.T)
    if name == "Gaussian":
        np.testing.assert_array_equal(values.diagonal(), 1.0)
        assert values[1, 9] == 1.0
    single = all_columns(rows, function, np.float32).values
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, values.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", HELD)
def test_tables_of_examples_are_blocks_of_the_matrix(kind: str, dtype: Any) -> None:
    """Blocks of more rows than a group and of fewer have the bits of the matrix."""
    offsets, X = np.array([0, 1, 12, 14, 40, 70]), table(kind)
    plain = Chain.from_encoded(np.zeros((70, 0)), offsets, np.arange(70) % 3, 3)
    for function, _ in KERNELS.values():
        phi = Kernelised(plain, X, function, dtype=dtype).map
        for (first, stop), place in zip(phi.rows_of, phi.product_spans, strict=True):
            block = phi.columns.values[first:stop, first:stop].ravel()
            np.testing.assert_array_equal(phi.products[slice(*place)], block)


requests = st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=GROUP), min_size=1, max_size=12)


@settings(max_examples=60)
@given(requests, st.integers(0, 5), st.sampled_from(list(HELD)), st.sampled_from([np.float64, np.float32]))
def test_columns_are_right_whatever_is_asked(
    asked: list[list[int]], n_kept: int, kind: str, dtype: Any
) -> None:
    rows, function = as_rows(table(kind, 12)), GaussianKernel(0.3)
    K = all_columns(rows, function, dtype).values
    columns = some_columns(rows, function, dtype, (n_kept + GROUP) * 12 * np.dtype(dtype).itemsize)
    assert len(columns.owner) == n_kept
    counts = np.zeros(12, dtype=int)
    for chosen in asked:
        places = np.full(GROUP, -1)
        kept_before = set(columns.owner[: columns.kept[0]].tolist())
        find_columns(columns, np.array(chosen), len(chosen), places)
        np.add.at(counts, chosen, 1)
        for t, place in zip(chosen, places, strict=False):
            np.testing.assert_array_equal(columns.values[place], K[t])
        shared = set(zip(chosen, places.tolist(), strict=False))
        assert len(shared) == len(set(chosen))  # a row that is asked for twice is computed once
        assert_sound(columns, K)
        for left in kept_before - set(columns.owner[: columns.kept[0]].tolist()):
            assert left not in chosen
            assert counts[left] < max(counts[t] for t in chosen)  # it gave way to one that moves more
    np.testing.assert_array_equal(columns.moved, counts)
    assert not columns.buffer.any()


def assert_sound(columns: SomeColumns, K: Array) -> None:
    """What is kept is the column of its owner, and rows know where theirs are."""
    owners = columns.owner[: columns.kept[0]]
    assert len(set(owners.tolist())) == len(owners)
    np.testing.assert_array_equal(columns.place[owners], np.arange(len(owners)))
    assert np.count_nonzero(columns.place >= 0) == len(owners)
    np.testing.assert_array_equal(columns.values[: len(owners)], K[owners])


def test_a_column_gives_way_to_one_that_moves_more_often() -> None:
    rows = as_rows(table("dense", 12))
    columns, places = (
        some_columns(rows, LinearKernel(), np.float64, (2 + GROUP) * 12 * 8),
        np.zeros(GROUP, int),
    )

    def ask(*chosen: int) -> set[int]:
        find_columns(columns, np.array(chosen), len(chosen), places)
        return set(columns.owner[: columns.kept[0]].tolist())

    assert ask(0) == {0}
    assert ask(1, 1) == {0, 1}  # twice in one group counts twice, and needs one place
    assert ask(2) == {0, 1}  # no more often than 0: the first stay
    assert ask(2) == {0, 1}  # the turn of 1, which moved as often
    assert ask(2) == {1, 2}  # three times, 0 once
    assert ask(0, 2) == {1, 2}


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 4), st.integers(0, 1000))
def test_sums_are_right_for_more_columns_than_a_group(count: int, n_kept: int, seed: int) -> None:
    rng, rows = np.random.default_rng(seed), as_rows(table("dense", 12))
    K = all_columns(rows, GaussianKernel(0.3), np.float64)
    some = some_columns(rows, GaussianKernel(0.3), np.float64, (n_kept + GROUP) * 12 * 8)
    chosen, labels, coefs = rng.integers(12, size=count), rng.integers(3, size=count), rng.normal(size=count)
    found = []
    for columns in (K, some):
        G = np.zeros((3, 12))
        add_columns(columns, chosen, labels, coefs, count, np.zeros(GROUP, int), G)
        found.append(G)
    np.testing.assert_array_equal(*found)
    W = np.zeros((12, 3))
    np.add.at(W, (chosen, labels), coefs)
    np.testing.assert_allclose(found[0], (K.values @ W).T, atol=1e-12)


def multiclass(X: Array, kernel: Any = None, **options: Any) -> Any:
    y = np.random.default_rng(3).integers(3, size=len(X))
    plain = Multiclass.from_encoded(np.ones((len(X), 1)), y, 3)
    return Kernelised(plain, X, kernel or GaussianKernel(0.5), **options)


def chains(X: Array, **options: Any) -> Any:
    offsets = np.cumsum([0, 12, *(1, 5) * 4, 4])
    y = np.random.default_rng(3).integers(3, size=N)
    plain = Chain.from_encoded(np.zeros((N, 0)), offsets, y, 3)
    return Kernelised(plain, X, PolynomialKernel(2, 0.5, 0.5), **options)


METHODS = {
    "BCFW": BlockFrankWolfe(LAM),
    "accelerated": Accelerated(Pairwise(LAM)),
    "averaged": Averaged(BlockFrankWolfe(LAM)),
    "FW": FrankWolfe(LAM),
    "divided": Divided(BlockFrankWolfe(LAM), 2),
}
# Megabytes for a column of float64, for two beyond the group that is computed, and for none.
COLUMN = 8.001e-6 * N
TWO, NONE = (GROUP + 2) * COLUMN, 0.0


@pytest.mark.parametrize(
    ("made", "name"), [*((multiclass, name) for name in METHODS), (chains, "BCFW"), (chains, "divided")]
)
def test_the_answer_does_not_depend_on_the_size_of_the_cache(made: Any, name: str) -> None:
    X = np.random.default_rng(1).normal(size=(N, 2))
    whole = made(X)
    assert isinstance(whole.map.columns, AllColumns)
    limits = {"tol": 0.0, "max_passes": 2, "check_every": 1, "random_state": 0}
    expected = solve(whole, METHODS[name], **limits)
    for cache_size, n_kept in ((TWO, 2), (NONE, 0)):
        some = made(X, cache_size=cache_size)
        assert isinstance(some.map.columns, SomeColumns)
        assert len(some.map.columns.owner) == n_kept
        found = solve(some, METHODS[name], **limits)
        assert_same_bits(found, expected)
        np.testing.assert_array_equal(found.w, expected.w)
        assert (found.primal, found.dual) == (expected.primal, expected.dual)
        if name != "divided":  # whose parts have columns of their own
            assert some.map.columns.moved.sum() > 0
        np.testing.assert_array_equal(kernelised_rebuilt(some.map, found.w), found.w)


def test_parts_have_columns_of_their_own() -> None:
    X = np.random.default_rng(1).normal(size=(N, 2))
    whole, some = multiclass(X), multiclass(X, cache_size=30 * COLUMN)
    chosen = np.arange(0, N, 3)
    part = take(some, chosen)
    assert len(some.map.columns.owner) == 30 - GROUP
    assert len(part.map.columns.owner) == int(len(chosen) / N * 30) - GROUP > 0
    assert not np.shares_memory(part.map.columns.values, some.map.columns.values)
    assert take(whole, chosen).map.columns is whole.map.columns
    limits = {"tol": 0.0, "max_passes": 2, "check_every": 1, "random_state": 0}
    found, expected = (solve(take(p, chosen), METHODS["BCFW"], **limits) for p in (some, whole))
    assert_same_bits(found, expected)
    assert not some.map.columns.moved.any()
    tiny = fewer_columns(some.map.columns, 0.0)
    assert tiny.values.shape == (GROUP, N)


@pytest.mark.parametrize("cache_size", [200.0, NONE])
def test_values_in_single_precision_are_a_rounded_matrix(cache_size: float) -> None:
    X = np.random.default_rng(1).normal(size=(N, 2))
    K = multiclass(X).map.columns.values
    single = multiclass(X, cache_size=cache_size, dtype=np.float32)
    given_matrix = multiclass(K.astype(np.float32), PrecomputedKernel(True))
    assert single.map.columns.values.dtype == np.float32
    assert given_matrix.map.columns.values.dtype == np.float64
    limits = {"tol": 0.0, "max_passes": 1, "check_every": 1, "random_state": 0}
    for method in (METHODS["BCFW"], METHODS["accelerated"]):
        found, expected = solve(single, method, **limits), solve(given_matrix, method, **limits)
        assert_same_bits(found, expected)
        exact = solve(multiclass(X), method, **limits)
        assert 0.0 < abs(found.dual - exact.dual) < 1e-5
