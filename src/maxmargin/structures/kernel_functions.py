r"""Kernel functions of feature rows, and columns of their matrices.

=====================  ==========================================================
`LinearKernel`         :math:`\langle x, x' \rangle`
`PolynomialKernel`     :math:`(\gamma \langle x, x' \rangle + c)^d`
`GaussianKernel`       :math:`\exp(-\gamma \|x - x'\|^2)`
`SigmoidKernel`        :math:`\tanh(\gamma \langle x, x' \rangle + c)`, not positive semidefinite in general
=====================  ==========================================================

All are functions of inner products and of squared lengths. An inner product is a sum over features in their
order, however many rows a block has. So a value has the same bits in every block, and the matrix of all
values is symmetric to the last bit. Columns are computed when they are used, in blocks, and kept as memory
allows.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import generic, helper, kernel, subroutine
from maxmargin.compiling.loops import add_scaled
from maxmargin.runtime.arrays import Features, FloatArray, IntArray, check_memory
from maxmargin.runtime.limits import OutOfTime, Pace
from maxmargin.structures.problem import essence
from maxmargin.structures.rows import Rows, n_rows, row_add, row_clear, row_dot, row_scores


class LinearKernel(NamedTuple):
    """The inner product."""


class PolynomialKernel(NamedTuple):
    """A power of an affine function of the inner product."""

    degree: int
    gamma: float
    coef0: float


class GaussianKernel(NamedTuple):
    """The radial basis function."""

    gamma: float


class SigmoidKernel(NamedTuple):
    """The hyperbolic tangent of an affine function of the inner product."""

    gamma: float
    coef0: float


class PrecomputedKernel(NamedTuple):
    """A kernel whose matrix is given.

    Parameters
    ----------
    semidefinite : bool
        Whether the matrix is known to be positive semidefinite. If not, results are not certified.
    """

    semidefinite: bool = False


KernelFunction = LinearKernel | PolynomialKernel | GaussianKernel | SigmoidKernel


def is_semidefinite(function: KernelFunction | PrecomputedKernel) -> bool:
    """Whether a kernel is known to be positive semidefinite for all data."""
    if isinstance(function, PolynomialKernel):
        return function.gamma >= 0.0 and function.coef0 >= 0.0
    if isinstance(function, GaussianKernel):
        return function.gamma >= 0.0
    if isinstance(function, PrecomputedKernel):
        return function.semidefinite
    return not isinstance(function, SigmoidKernel)


@generic
def kernel_value(function, dot, a, b):
    """Return the value for rows with the inner product ``dot`` and the squared lengths a and b."""
    raise NotImplementedError


@kernel_value.register(LinearKernel)
def linear_kernel_value(function, dot, a, b):
    return dot


@kernel_value.register(PolynomialKernel)
def polynomial_kernel_value(function, dot, a, b):
    base, value = function.gamma * dot + function.coef0, 1.0
    for _ in range(function.degree):  # the interpreter would round a power differently
        value *= base
    return value


@kernel_value.register(GaussianKernel)
def gaussian_kernel_value(function, dot, a, b):
    return math.exp(-function.gamma * max(a + b - 2.0 * dot, 0.0))


@kernel_value.register(SigmoidKernel)
def sigmoid_kernel_value(function, dot, a, b):
    return math.tanh(function.gamma * dot + function.coef0)


def row_lengths(rows: Rows) -> FloatArray:
    """Return the squared length of each row, as the sum that `kernel_value` gets for a row and itself."""
    out = np.empty(n_rows(rows))
    _measure_rows(rows, np.zeros(rows.n_columns), out)
    return out


@kernel
def _measure_rows(rows, buffer, out):
    """Write the squared length of each row; ``buffer`` has one zero per feature."""
    for t in range(out.shape[0]):
        row_add(rows, t, 1.0, buffer)
        out[t] = row_dot(rows, t, buffer)
        row_add(rows, t, -1.0, buffer)  # x - x is exactly zero


@kernel
def fill_matrix(rows, function, lengths, first, buffer, dots, tile, out):
    """Write the values for the rows first, first + 1, ... and all rows from them on, in both triangles.

    ``buffer`` and ``dots`` have one column for each row of the block. Values are computed tile by tile, so
    that each write goes to contiguous memory.
    """
    n, block, stop = out.shape[0], dots.shape[0], min(first + dots.shape[0], out.shape[0])
    for c in range(stop - first):
        row_add(rows, first + c, 1.0, buffer[:, c])
    for begin in range(first, n, block):
        end = min(begin + block, n)
        for s in range(begin, end):
            row_scores(rows, s, buffer, dots)
            for c in range(stop - first):
                tile[s - begin, c] = kernel_value(function, dots[c], lengths[s], lengths[first + c])
        _write_tile(tile, begin, end, first, stop, out)
    for c in range(stop - first):
        row_clear(rows, first + c, buffer)


@helper
def _write_tile(tile, begin, end, first, stop, out):
    """Write the values of the rows begin, ..., end - 1 and first, ..., stop - 1, in both triangles."""
    for s in range(begin, end):
        for t in range(first, stop):
            out[s, t] = tile[s - begin, t - first]
    for t in range(first, stop):
        for s in range(begin, end):
            out[t, s] = tile[s - begin, t - first]


@kernel
def fill_blocks(rows, function, lengths, spans, begins, buffer, dots, out):
    """Write the matrix of the values of the rows of each example, one after another, row by row."""
    block = dots.shape[0]
    for i in range(spans.shape[0]):
        first, stop = spans[i, 0], spans[i, 1]
        for t in range(first, stop, block):
            count = min(block, stop - t)
            for c in range(count):
                row_add(rows, t + c, 1.0, buffer[:, c])
            for s in range(first, stop):
                row_scores(rows, s, buffer, dots)
                at = begins[i] + (s - first) * (stop - first) + (t - first)
                for c in range(count):
                    out[at + c] = kernel_value(function, dots[c], lengths[s], lengths[t + c])
            for c in range(count):
                row_clear(rows, t + c, buffer)


# Number of columns that are added, or computed, together.
GROUP = 8
# Number of rows of the whole matrix that are computed at a time.
_BLOCK = 64
# Number of entries of a column that stay in the processor's cache while a group is added.
_CHUNK = 1024
# Tolerance for rounding in a matrix that a user gives, relative to its largest entry.
_ASYMMETRY = 1e-5
_ADVICE = "set cache_size to what the machine has, or use fewer rows"

Values = NDArray[np.floating]


class AllColumns(NamedTuple):
    """The whole matrix.

    Attributes
    ----------
    values : array of shape (n_rows, n_rows)
    """

    values: Values


class SomeColumns(NamedTuple):
    """Some columns, and the data from which the others are computed.

    Attributes
    ----------
    values : array of shape (n_kept + GROUP, n_rows)
        The columns that are kept, and space for a group of others.
    place : array of shape (n_rows,)
        Where the column of each row is kept; -1 if it is not.
    owner : array of shape (n_kept,)
        The row of each column that is kept.
    moved : array of shape (n_rows,)
        How often each row has moved.
    kept, hand : arrays of shape (1,)
        The number of columns that are kept, and the next one that may be replaced.
    missing, buffer, dots : arrays
        Workspace: rows to compute, their features, and inner products.
    """

    values: Values
    place: IntArray
    owner: IntArray
    moved: IntArray
    kept: IntArray
    hand: IntArray
    missing: IntArray
    buffer: FloatArray
    dots: FloatArray
    rows: Rows
    function: KernelFunction
    lengths: FloatArray


Columns = AllColumns | SomeColumns


def given_columns(matrix: Features, dtype: type[np.floating]) -> AllColumns:
    """Return the columns of a matrix that a user gives; raise unless it is square, finite and symmetric."""
    values = np.array(matrix, dtype=dtype, order="C")
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"a kernel matrix must be square, got shape {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("a kernel matrix must have finite entries, got NaN or infinity.")
    largest = np.abs(values).max(initial=0.0)
    if np.abs(values - values.T).max(initial=0.0) > _ASYMMETRY * largest:
        raise ValueError(
            "a kernel matrix must be symmetric, got k(a, b) != k(b, a) for some rows; return "
            "the mean of both."
        )
    return AllColumns(values)


def enough_columns(rows: Rows, function: KernelFunction, dtype: type[np.floating], n_bytes: float) -> Columns:
    """Return all columns if they fit into ``n_bytes`` and there is time to compute them, else some."""
    if n_rows(rows) ** 2 * np.dtype(dtype).itemsize <= n_bytes:
        try:
            return all_columns(rows, function, dtype)
        except OutOfTime:
            pass  # the others are computed when they are needed
    return some_columns(rows, function, dtype, n_bytes)


def all_columns(rows: Rows, function: KernelFunction, dtype: type[np.floating]) -> AllColumns:
    """Return the whole matrix."""
    n = n_rows(rows)
    check_memory(n * n * np.dtype(dtype).itemsize, f"Kernelised: the kernel matrix of {n} rows", _ADVICE)
    values, lengths = np.empty((n, n), dtype=dtype), row_lengths(rows)
    buffer, dots = np.zeros((rows.n_columns, _BLOCK)), np.zeros(_BLOCK)
    tile, pace = np.zeros((_BLOCK, _BLOCK)), Pace()
    for first in range(0, n, _BLOCK):  # block by block, so that Ctrl-C takes effect
        pace.check()
        fill_matrix(rows, function, lengths, first, buffer, dots, tile, values)
    return AllColumns(values)


def some_columns(
    rows: Rows, function: KernelFunction, dtype: type[np.floating], n_bytes: float
) -> SomeColumns:
    """Return space for as many columns as fit into ``n_bytes``; none of them is computed yet."""
    n = n_rows(rows)
    n_kept = min(n, max(int(n_bytes / (n * np.dtype(dtype).itemsize)) - GROUP, 0))
    return SomeColumns(
        np.zeros((n_kept + GROUP, n), dtype=dtype),
        np.full(n, -1),
        np.zeros(n_kept, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(GROUP, dtype=np.int64),
        np.zeros((rows.n_columns, GROUP)),
        np.zeros(GROUP),
        rows,
        function,
        row_lengths(rows),
    )


def fewer_columns(columns: Columns, share: float) -> Columns:
    """Return columns for a fraction of the examples, which another thread may use at the same time."""
    if isinstance(columns, AllColumns):
        return columns  # nothing writes to them
    n_bytes = share * columns.values.nbytes
    return some_columns(columns.rows, columns.function, columns.values.dtype.type, n_bytes)


@generic
def find_columns(columns, chosen, count, places):
    """Write where in ``columns.values`` the columns of ``chosen[:count]`` are; compute missing ones."""
    raise NotImplementedError


@find_columns.register(AllColumns)
def all_columns_find_columns(columns, chosen, count, places):
    for c in range(count):
        places[c] = chosen[c]


@find_columns.register(SomeColumns)
def some_columns_find_columns(columns, chosen, count, places):
    missing = 0
    for c in range(count):
        columns.moved[chosen[c]] += 1
        places[c] = columns.place[chosen[c]]
        for b in range(c):
            if chosen[b] == chosen[c]:
                places[c] = places[b]
        if places[c] < 0:
            places[c] = _new_place(columns, chosen, count, chosen[c], missing)
            columns.missing[missing] = c
            missing += 1
    if missing > 0:
        _compute(columns, chosen, missing, places)


@subroutine
def _new_place(columns, chosen, count, t, missing):
    """Return where to write the column of row t: to a place that is kept, or to the buffer of a group."""
    n_kept = columns.owner.shape[0]
    if n_kept == 0:
        return missing
    if columns.kept[0] < n_kept:
        at = columns.kept[0]
        columns.kept[0] += 1
    else:
        at = columns.hand[0]
        columns.hand[0] = (at + 1) % n_kept
        old = columns.owner[at]
        if columns.moved[old] >= columns.moved[t] or _is_among(chosen, count, old):
            return n_kept + missing
        columns.place[old] = -1
    columns.owner[at], columns.place[t] = t, at
    return at


@helper
def _is_among(chosen, count, t):
    """Whether t is one of ``chosen[:count]``."""
    found = False
    for c in range(count):
        found = found or chosen[c] == t
    return found


@subroutine
def _compute(columns, chosen, missing, places):
    """Compute the columns of the first ``missing`` rows listed in ``columns.missing``."""
    rows, lengths = columns.rows, columns.lengths
    for m in range(missing):
        row_add(rows, chosen[columns.missing[m]], 1.0, columns.buffer[:, m])
    for s in range(columns.place.shape[0]):
        row_scores(rows, s, columns.buffer, columns.dots)
        for m in range(missing):
            c = columns.missing[m]
            value = kernel_value(columns.function, columns.dots[m], lengths[s], lengths[chosen[c]])
            columns.values[places[c], s] = value
    for m in range(missing):
        row_clear(rows, chosen[columns.missing[m]], columns.buffer)


@subroutine
def add_columns(columns, chosen, labels, coefs, count, places, G):
    """``G[labels[c]] += coefs[c] * K[chosen[c]]`` for c = 0, ..., count - 1; ``places`` is workspace."""
    for begin in range(0, count, GROUP):
        size = min(GROUP, count - begin)
        find_columns(columns, chosen[begin : begin + size], size, places)
        for first in range(0, G.shape[1], _CHUNK):
            stop = min(first + _CHUNK, G.shape[1])
            for c in range(size):
                column = columns.values[places[c], first:stop]
                add_scaled(coefs[begin + c], column, G[labels[begin + c], first:stop])


@essence.register(SomeColumns)
def some_columns_essence(columns: SomeColumns) -> tuple[object, ...]:
    """Return the data that columns are computed from; which of them are kept does not matter."""
    return columns.rows, columns.function, columns.values.dtype.str


# The kernel matrix of the rows of each example: the blocks on the diagonal of the whole matrix.


def check_finite(products: FloatArray) -> None:
    if not np.isfinite(products).all():
        raise ValueError(
            "the kernel must have finite values, got NaN or infinity for some rows; remove or "
            "scale features that are not finite or too large."
        )


def _product_spans(spans: IntArray) -> IntArray:
    """Return where the table of each example begins and ends."""
    entries = (spans[:, 1] - spans[:, 0]) ** 2
    ends = np.cumsum(entries)
    return np.column_stack([ends - entries, ends])


def cut_products(matrix: NDArray[np.floating], spans: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the blocks of the matrix for each example, one after another."""
    blocks = [np.ravel(matrix[first:stop, first:stop]) for first, stop in spans.tolist()]
    return np.concatenate(blocks).astype(np.float64), _product_spans(spans)


def computed_products(
    rows: Rows, function: KernelFunction, spans: IntArray, dtype: type[np.floating]
) -> tuple[FloatArray, IntArray]:
    """Return the kernel matrix of the rows of each example, rounded as the columns are."""
    places = _product_spans(spans)
    out, buffer = np.empty(places[-1, 1], dtype=dtype), np.zeros((rows.n_columns, GROUP))
    fill_blocks(rows, function, row_lengths(rows), spans, places[:, 0].copy(), buffer, np.zeros(GROUP), out)
    return out.astype(np.float64), places
