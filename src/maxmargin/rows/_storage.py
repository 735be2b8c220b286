"""How feature rows are stored: densely, sparsely, or as indicators."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import (
    CsrMatrix,
    FloatArray,
    IntArray,
    SparseMatrix,
    UIntArray,
    ValueArray,
    frozen,
    is_frozen,
    is_mapped,
    is_sparse,
    owned,
    value_dtype,
)
from maxmargin.encoding.chunks import pieces, row_pieces
from maxmargin.encoding.kinds import is_numeric
from maxmargin.encoding.matrices import check_indices, checked_csr, checked_length, in_order, is_canonical
from maxmargin.wording import described

# Up to this fraction of nonzeros, loops over a sparse row are faster than over a dense one.
_SPARSE_BELOW = 2 / 3
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


def as_rows(X: ArrayLike | SparseMatrix, owner: str = "as_rows") -> Rows:
    """Return the rows of an array or sparse matrix, with checked indices and safe from changes by callers.

    All features pass through this function before kernels, which do not check indices, read them. Values of
    type float32 keep their type. Frozen arrays, such as files mapped for reading, are used in place. Repeated
    entries of a row are summed. An array with many zeros is stored sparsely, unless it is mapped, as a mapped
    array may be larger than memory.
    """
    if is_sparse(X):
        _check_numbers(X, owner)
        return _stored(_canonical(checked_csr(X, f"{owner}: the matrix of features")), owner)
    array = np.asarray(X)
    _check_numbers(array, owner)
    if is_mapped(array) or not _has_many_zeros(array):
        return DenseRows(owned(array, value_dtype(array.dtype)), array.shape[1])
    return _without_zeros(array)


def as_indicators(
    start: NDArray[np.integer], columns: NDArray[np.integer], n_columns: int, owner: str
) -> Rows:
    """Return rows with ones in the columns ``columns[start[t]:start[t + 1]]``, which may be in any order.

    Frozen arrays come from an encoder, which repeats no column in a row. So they need not be sorted, and are
    used in place.
    """
    if not is_frozen(columns):
        matrix = csr_array((max(len(start) - 1, 0), n_columns))
        ones = np.broadcast_to(1.0, len(columns))  # takes no memory
        matrix.data, matrix.indices, matrix.indptr = ones, columns, start
        return as_rows(matrix, owner)
    what = f"{owner}: the matrix of features"
    columns = columns[: checked_length(start, len(columns), max(len(start) - 1, 0), what)]
    check_indices(start, columns, n_columns, what)
    _check_columns(n_columns, owner)
    return IndicatorRows(owned(start, np.int64), owned(columns, np.uint32), int(n_columns))


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


def _check_numbers(X: NDArray[np.generic] | SparseMatrix, owner: str) -> None:
    if X.ndim != 2 or not is_numeric(X.dtype):
        raise ValueError(
            f"{owner}: features must be real numbers of shape (n_rows, n_features), got {described(X)} of "
            f"dtype {X.dtype}."
        )


def _check_columns(n_columns: int, owner: str) -> None:
    if n_columns > _MOST_COLUMNS:
        raise ValueError(f"{owner}: features must have at most 2**32 columns, got {n_columns}; hash them.")


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
    canonical: CsrMatrix = frozen(in_order(csr_array((X.data, X.indices, X.indptr), X.shape, copy=True)))
    return canonical


def _stored(X: CsrMatrix, owner: str) -> Rows:
    _check_columns(X.shape[1], owner)
    start, columns = owned(X.indptr, np.int64), owned(X.indices, np.uint32)
    return _compact(start, columns, X.data, X.shape[1])


def _compact(start: IntArray, columns: UIntArray, values: NDArray[np.generic], n_columns: int) -> Rows:
    """Return the rows as indicators if all values are one."""
    if all((values[piece] == 1.0).all() for piece in pieces(len(values))):
        return IndicatorRows(start, columns, n_columns)
    return SparseRows(start, columns, owned(values, value_dtype(values.dtype)), n_columns)
