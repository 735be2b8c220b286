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
    frozen,
    is_frozen,
    is_sparse,
    owned,
)
from maxmargin.encoding.kinds import is_numeric
from maxmargin.encoding.matrices import checked_csr
from maxmargin.wording import described

# Up to this share of nonzeros, loops over a sparse row are faster than over a dense one.
_SPARSE_BELOW = 2 / 3
# Column numbers are uint32.
_MOST_COLUMNS = 2**32


class DenseRows(NamedTuple):
    """Rows of a matrix with all values stored."""

    values: FloatArray
    n_columns: int


class SparseRows(NamedTuple):
    """Rows in CSR form: row t has ``values[p]`` in column ``columns[p]`` for start[t] <= p < start[t + 1]."""

    start: IntArray
    columns: NDArray[np.uint32]
    values: FloatArray
    n_columns: int


class IndicatorRows(NamedTuple):
    """Sparse rows whose values are all one, as for words and other names: a third of the memory traffic."""

    start: IntArray
    columns: NDArray[np.uint32]
    n_columns: int


Rows = DenseRows | SparseRows | IndicatorRows


def as_rows(X: ArrayLike | SparseMatrix, owner: str = "as_rows") -> Rows:
    """Return the rows of an array or sparse matrix, with checked indices and safe from changes by callers.

    All features pass through this function before kernels, which do not check indices, read them. Repeated
    entries of a row are summed. An array with many zeros is stored sparsely. Frozen arrays are not copied.
    """
    if not is_sparse(X):
        array = np.asarray(X)
        _check_numbers(array, owner)
        if np.count_nonzero(array) > _SPARSE_BELOW * array.size:
            return DenseRows(owned(array, np.float64), array.shape[1])
        return _stored(frozen(csr_array(array)))
    _check_numbers(X, owner)
    if X.shape[1] > _MOST_COLUMNS:
        raise ValueError(f"{owner}: features must have at most 2**32 columns, got {X.shape[1]}; hash them.")
    return _stored(_canonical(checked_csr(X, f"{owner}: the matrix of features")))


def as_indicators(
    start: NDArray[np.integer], columns: NDArray[np.integer], n_columns: int, owner: str
) -> Rows:
    """Return rows with ones in the columns ``columns[start[t]:start[t + 1]]``, which may be in any order.

    Frozen arrays come from an encoder, which repeats no column in a row: these need not be sorted.
    """
    matrix = csr_array((max(len(start) - 1, 0), n_columns))
    ones = np.broadcast_to(1.0, len(columns))  # takes no memory
    matrix.data, matrix.indices, matrix.indptr = ones, columns, start
    if not is_frozen(columns):
        return as_rows(matrix, owner)
    checked_csr(matrix, f"{owner}: the matrix of features")
    return IndicatorRows(owned(start, np.int64), owned(columns, np.uint32), int(n_columns))


def n_rows(rows: Rows) -> int:
    """Return the number of rows."""
    return len(rows.values) if isinstance(rows, DenseRows) else len(rows.start) - 1


def squared_norms(rows: Rows) -> FloatArray:
    """Return the sum of the squares of each row."""
    if isinstance(rows, DenseRows):
        return np.asarray((rows.values * rows.values).sum(axis=1))
    counts: IntArray = np.diff(rows.start)
    if isinstance(rows, IndicatorRows):
        return np.array(counts, dtype=np.float64)
    row = np.repeat(np.arange(len(counts)), counts)
    squares: FloatArray = np.bincount(row, weights=rows.values * rows.values, minlength=len(counts)).astype(
        float
    )
    return squares


def _check_numbers(X: NDArray[np.generic] | SparseMatrix, owner: str) -> None:
    if X.ndim != 2 or not is_numeric(X.dtype):
        raise ValueError(
            f"{owner}: features must be real numbers of shape (n_rows, n_features), got {described(X)} of "
            f"dtype {X.dtype}."
        )


def _canonical(X: CsrMatrix) -> CsrMatrix:
    """Return the matrix with increasing columns in rows. Its own flags may be stale, so they are ignored."""
    increasing = X.indices[1:] > X.indices[:-1]
    firsts = X.indptr[1:-1]
    increasing[firsts[(firsts > 0) & (firsts < len(X.indices))] - 1] = True
    if increasing.all():
        return X
    summed = csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    summed.sum_duplicates()
    canonical: CsrMatrix = frozen(summed)
    return canonical


def _stored(X: CsrMatrix) -> Rows:
    start, columns = owned(X.indptr, np.int64), owned(X.indices, np.uint32)
    if (X.data == 1.0).all():
        return IndicatorRows(start, columns, X.shape[1])
    return SparseRows(start, columns, owned(X.data, np.float64), X.shape[1])
