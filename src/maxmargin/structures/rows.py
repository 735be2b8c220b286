"""How feature rows are stored: densely, sparsely, or as indicators.

Four functions, such as `row_span`, know how rows are stored; all others are written once, entry by entry.
Values may be of type float32. Each is converted to float64 as it is read, so that rows of either type with
the same values give the same bits. Columns are unsigned, so that compiled code does not test them for being
negative.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from maxmargin.compiling import generic, generic_with_default, subroutine
from maxmargin.compiling.loops import add_four, add_scaled, clear, list_nonzero, prefetch
from maxmargin.encoding.kinds import is_numeric, pieces, row_pieces
from maxmargin.encoding.matrices import (
    check_indices,
    checked_csr,
    checked_length,
    in_order,
    is_canonical,
    is_encoded,
)
from maxmargin.runtime.arrays import (
    CsrMatrix,
    FloatArray,
    IntArray,
    SparseMatrix,
    UIntArray,
    ValueArray,
    freeze,
    is_frozen,
    is_mapped,
    is_sparse,
    kernel_copy,
    value_dtype,
)
from maxmargin.runtime.wording import described
from maxmargin.structures.feature_map import shrink

# Up to this fraction of nonzeros, loops over a sparse row are faster than over a dense one.
_SPARSE_BELOW = 2 / 3
# Up to this fraction of nonzeros, or two of them, pushing two at a time is faster than pushing whole rows.
_FEW = 1 / 5
# Column numbers are uint32.
_MOST_COLUMNS = 2**32


class DenseRows(NamedTuple):
    """Rows of a matrix with all values stored."""

    values: ValueArray
    n_columns: int


class SparseRows(NamedTuple):
    """Rows in CSR form: row t has ``values[p]`` in column ``columns[p]`` for start[t] <= p < start[t + 1]."""

    start: IntArray
    columns: UIntArray
    values: ValueArray
    n_columns: int


class IndicatorRows(NamedTuple):
    """Sparse rows whose values are all one, as for words and other names: a third of the memory traffic."""

    start: IntArray
    columns: UIntArray
    n_columns: int


Rows = DenseRows | SparseRows | IndicatorRows


def as_rows(X: ArrayLike | SparseMatrix) -> Rows:
    """Return the rows of an array or sparse matrix, with checked indices and safe from changes by callers.

    All features pass through this function before kernels, which do not check indices, read them. A matrix
    that an encoder made is not checked again. Values of type float32 keep their type. Frozen arrays, such as
    files mapped for reading, are used in place. Repeated entries of a row are summed. An array with many
    zeros is stored sparsely, unless it is mapped, as a mapped array may be larger than memory.
    """
    if not is_sparse(X):
        array = np.asarray(X)
        _check_numbers(array)
        if is_mapped(array) or not _has_many_zeros(array):
            return DenseRows(kernel_copy(array, value_dtype(array.dtype)), array.shape[1])
        return _without_zeros(array)
    if not is_encoded(X):
        _check_numbers(X)
        X = _canonical(checked_csr(X, "the matrix of features"))
    _check_columns(X.shape[1])
    start, columns = kernel_copy(X.indptr, np.int64), kernel_copy(X.indices, np.uint32)
    return _compact(start, columns, X.data, X.shape[1])


def as_indicators(start: NDArray[np.integer], columns: NDArray[np.integer], n_columns: int) -> Rows:
    """Return rows with ones in the columns ``columns[start[t]:start[t + 1]]``, which may be in any order.

    Frozen arrays come from an encoder, which repeats no column in a row. So they need not be sorted, and are
    used in place.
    """
    if not is_frozen(columns):
        matrix = csr_array((max(len(start) - 1, 0), n_columns))
        ones = np.broadcast_to(1.0, len(columns))  # takes no memory
        matrix.data, matrix.indices, matrix.indptr = ones, columns, start
        return as_rows(matrix)
    what = "the matrix of features"
    columns = columns[: checked_length(start, len(columns), max(len(start) - 1, 0), what)]
    check_indices(start, columns, n_columns, what)
    _check_columns(n_columns)
    return IndicatorRows(kernel_copy(start, np.int64), kernel_copy(columns, np.uint32), int(n_columns))


def n_rows(rows: Rows) -> int:
    """Return the number of rows."""
    return len(rows.values) if isinstance(rows, DenseRows) else len(rows.start) - 1


def squared_norms(rows: Rows) -> FloatArray:
    """Return the sum of the squares of each row, in float64."""
    out = np.empty(n_rows(rows))
    if isinstance(rows, DenseRows):
        for piece in pieces(len(out), rows.n_columns):
            out[piece] = np.square(rows.values[piece], dtype=np.float64).sum(axis=1)
        return out
    if isinstance(rows, IndicatorRows):
        return np.subtract(rows.start[1:], rows.start[:-1], out=out)
    for first, stop in row_pieces(rows.start):
        squares = np.square(rows.values[rows.start[first] : rows.start[stop]], dtype=np.float64)
        row = np.repeat(np.arange(stop - first), np.diff(rows.start[first : stop + 1]))
        out[first:stop] = np.bincount(row, squares, stop - first)
    return out


def _check_numbers(X: NDArray[np.generic] | SparseMatrix) -> None:
    if X.ndim != 2 or not is_numeric(X.dtype):
        raise ValueError(
            f"features must be real numbers of shape (n_rows, n_features), got {described(X)} of "
            f"dtype {X.dtype}."
        )


def _check_columns(n_columns: int) -> None:
    if n_columns > _MOST_COLUMNS:
        raise ValueError(f"features must have at most 2**32 columns, got {n_columns}; hash them.")


def _has_many_zeros(array: NDArray[np.generic]) -> bool:
    count = sum(np.count_nonzero(array[piece] != 0) for piece in pieces(*array.shape))
    return bool(count <= _SPARSE_BELOW * array.size)


def _without_zeros(array: NDArray[np.generic]) -> Rows:
    """Return the entries of an array that are not zero, using no more memory than these take."""
    start = np.zeros(len(array) + 1, dtype=np.int64)
    for piece in pieces(*array.shape):
        start[1:][piece] = np.count_nonzero(array[piece], axis=1)
    np.cumsum(start, out=start)
    columns, values = np.empty(start[-1], np.uint32), np.empty(start[-1], value_dtype(array.dtype))
    for piece in pieces(*array.shape):
        row, column = np.nonzero(array[piece])
        entries = slice(start[piece.start], start[piece.stop])
        columns[entries], values[entries] = column, array[piece][row, column]
    return _compact(start, columns, values, array.shape[1])


def _canonical(X: CsrMatrix) -> CsrMatrix:
    """Return the matrix with increasing columns in rows. Its own flags may be stale, so they are ignored."""
    if is_canonical(X.indptr, X.indices):
        return X
    canonical: CsrMatrix = freeze(in_order(csr_array((X.data, X.indices, X.indptr), X.shape, copy=True)))
    return canonical


def _compact(start: IntArray, columns: UIntArray, values: NDArray[np.generic], n_columns: int) -> Rows:
    """Return the rows as indicators if all values are one."""
    if all((values[piece] == 1.0).all() for piece in pieces(len(values))):
        return IndicatorRows(start, columns, n_columns)
    return SparseRows(start, columns, kernel_copy(values, value_dtype(values.dtype)), n_columns)


class SharedRows(NamedTuple):
    """Rows that several parts of an example share, each part with weights of its own.

    They are the Kronecker product of each row of a matrix and the identity: row t has the features of row
    ``t // times`` of the matrix, in block ``t % times`` of the columns. The label sets of an example of L
    labels are such rows; stored as they are, the features would be there L times.

    Attributes
    ----------
    stored : Rows
    times : int
        How many rows share features: the number of blocks.
    n_columns : int
        That of all blocks.
    """

    stored: Rows
    times: int
    n_columns: int


def shared_rows(stored: Rows, times: int) -> SharedRows:
    """Return the rows, each as often as it has blocks of columns."""
    return SharedRows(stored, int(times), int(times) * stored.n_columns)


@generic
def row_span(rows, t):
    """Return where the entries of row t are.

    Returns
    -------
    s, first, stop : int
        The number of the row in its store, and its first entry and the last plus one.
    shift : uint64
        To be added to the columns of its entries.
    """
    raise NotImplementedError


@generic
def row_entry(rows, s, p):
    """Return the column and the value of entry p of the stored row s."""
    raise NotImplementedError


@generic_with_default
def row_scores(rows, t, W, out):
    """``out[:] = x_t @ W``"""
    clear(out)
    s, first, stop, _ = row_span(rows, t)
    for p in range(first, stop):
        f, x = row_entry(rows, s, p)
        add_scaled(x, W[f], out)


@generic
def rows_prefetch(rows, first, stop):
    """Prefetch the rows first, ..., stop - 1 into the cache."""
    raise NotImplementedError


@row_span.register(DenseRows)
def dense_rows_row_span(rows, t):
    return t, 0, rows.n_columns, np.uint64(0)


@row_span.register(SparseRows)
@row_span.register(IndicatorRows)
def sparse_rows_row_span(rows, t):
    return t, rows.start[t], rows.start[t + 1], np.uint64(0)


@row_span.register(SharedRows)
def shared_rows_row_span(rows, t):
    stored = t // rows.times
    s, first, stop, _ = row_span(rows.stored, stored)
    return s, first, stop, np.uint64((t - stored * rows.times) * rows.stored.n_columns)


@row_entry.register(DenseRows)
def dense_rows_row_entry(rows, s, p):
    return np.uint64(p), np.float64(rows.values[s, p])


@row_entry.register(SparseRows)
def sparse_rows_row_entry(rows, s, p):
    return rows.columns[p], np.float64(rows.values[p])


@row_entry.register(IndicatorRows)
def indicator_rows_row_entry(rows, s, p):
    return rows.columns[p], 1.0


@row_entry.register(SharedRows)
def shared_rows_row_entry(rows, s, p):
    return row_entry(rows.stored, s, p)


@row_scores.register(DenseRows)
def dense_rows_row_scores(rows, t, W, out):
    clear(out)
    x, fours = rows.values[t], rows.n_columns // 4
    for four in range(fours):
        f = 4 * four
        a, b, c, d = np.float64(x[f]), np.float64(x[f + 1]), np.float64(x[f + 2]), np.float64(x[f + 3])
        add_four(a, W[f], b, W[f + 1], c, W[f + 2], d, W[f + 3], out)
    for f in range(4 * fours, rows.n_columns):
        add_scaled(np.float64(x[f]), W[f], out)


@row_scores.register(SharedRows)
def shared_rows_row_scores(rows, t, W, out):
    s, n_columns = t // rows.times, rows.stored.n_columns
    first = (t - s * rows.times) * n_columns
    row_scores(rows.stored, s, W[first : first + n_columns], out)


@rows_prefetch.register(DenseRows)
def dense_rows_rows_prefetch(rows, first, stop):
    prefetch(rows.values, first * rows.n_columns, stop * rows.n_columns)


@rows_prefetch.register(SparseRows)
def sparse_rows_rows_prefetch(rows, first, stop):
    prefetch(rows.columns, rows.start[first], rows.start[stop])
    prefetch(rows.values, rows.start[first], rows.start[stop])


@rows_prefetch.register(IndicatorRows)
def indicator_rows_rows_prefetch(rows, first, stop):
    prefetch(rows.columns, rows.start[first], rows.start[stop])


@rows_prefetch.register(SharedRows)
def shared_rows_rows_prefetch(rows, first, stop):
    rows_prefetch(rows.stored, first // rows.times, (stop + rows.times - 1) // rows.times)


@subroutine
def row_push(rows, t, scale, delta, W):
    """``W += scale * np.outer(x_t, delta)``"""
    s, first, stop, shift = row_span(rows, t)
    for p in range(first, stop):
        f, x = row_entry(rows, s, p)
        if x != 0.0:
            add_scaled(scale * x, delta, W[shift + f])


@generic_with_default
def row_shrink(rows, t, width, first, stop, prox, v, w):
    """``w = prox(v)`` at weights first, ..., stop - 1 of each feature of row t, which has ``width``."""
    s, begin, end, shift = row_span(rows, t)
    for p in range(begin, end):
        at = np.int64(shift + row_entry(rows, s, p)[0]) * width
        shrink(prox, v, w, at + first, at + stop)


@generic_with_default
def row_push_few(rows, t, scale, delta, W, nonzero):
    """``W += scale * np.outer(x_t, delta)``, fast if delta is sparse; ``nonzero`` is workspace."""
    count = list_nonzero(delta, nonzero)
    if count > 2 and count > _FEW * delta.shape[0]:
        row_push(rows, t, scale, delta, W)
        return
    for c in range(0, count - 1, 2):
        j, k = nonzero[c], nonzero[c + 1]
        row_add_two(rows, t, scale * delta[j], scale * delta[k], W, j, k)
    if count & 1:
        k = nonzero[count - 1]
        row_add(rows, t, scale * delta[k], W[:, k])


@subroutine
def row_add(rows, t, scale, out):
    """``out += scale * x_t``"""
    s, first, stop, shift = row_span(rows, t)
    for p in range(first, stop):
        f, x = row_entry(rows, s, p)
        out[shift + f] += scale * x


@subroutine
def row_add_two(rows, t, a, b, W, j, k):
    """``W[:, j] += a * x_t; W[:, k] += b * x_t``, for j != k"""
    s, first, stop, shift = row_span(rows, t)
    for p in range(first, stop):
        f, x = row_entry(rows, s, p)
        W[shift + f, j] += a * x
        W[shift + f, k] += b * x


@subroutine
def row_dot(rows, t, v):
    """``x_t @ v``"""
    s, first, stop, shift = row_span(rows, t)
    total = 0.0
    for p in range(first, stop):
        f, x = row_entry(rows, s, p)
        total += x * v[shift + f]
    return total


@subroutine
def row_clear(rows, t, W):
    """``W[x_t != 0] = 0``"""
    s, first, stop, shift = row_span(rows, t)
    for p in range(first, stop):
        clear(W[shift + row_entry(rows, s, p)[0]])


@subroutine
def row_wipe(rows, t, v):
    """``v[x_t != 0] = 0``; return the sum of the squares of the old values"""
    s, first, stop, shift = row_span(rows, t)
    total = 0.0
    for p in range(first, stop):
        f = shift + row_entry(rows, s, p)[0]
        total += v[f] * v[f]
        v[f] = 0.0
    return total


@subroutine
def row_wipe_two(rows, t, W, j, k):
    """``W[x_t != 0, j] = W[x_t != 0, k] = 0``, for j != k; return the sum of the squares of the old values"""
    s, first, stop, shift = row_span(rows, t)
    total = 0.0
    for p in range(first, stop):
        x = W[shift + row_entry(rows, s, p)[0]]
        total += x[j] * x[j] + x[k] * x[k]
        x[j] = x[k] = 0.0
    return total
