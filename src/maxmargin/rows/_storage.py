"""The ways in which feature rows are stored."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from maxmargin.arrays import FloatArray, IntArray, frozen, is_frozen, owned
from maxmargin.encoding.kinds import is_numeric
from maxmargin.encoding.matrices import checked_csr
from maxmargin.wording import described

# Up to this share of nonzeros a sparse row is walked faster than a dense one.
_SPARSE_BELOW = 2 / 3
# As many as the numbers of columns tell apart.
_MOST_COLUMNS = 2**32


class DenseRows(NamedTuple):
    """Rows of a matrix with all values stored."""

    values: FloatArray
    n_columns: int


class SparseRows(NamedTuple):
    """Rows in CSR form: row t has ``values[p]`` in column ``columns[p]``, start[t] <= p < start[t + 1]."""

    start: IntArray
    columns: np.ndarray[Any, np.dtype[np.uint32]]
    values: FloatArray
    n_columns: int


class IndicatorRows(NamedTuple):
    """Sparse rows whose values are all one, as of words and other names: a third of the memory to walk."""

    start: IntArray
    columns: np.ndarray[Any, np.dtype[np.uint32]]
    n_columns: int


Rows = DenseRows | SparseRows | IndicatorRows


def as_rows(X: Any, owner: str = "as_rows") -> Rows:
    """Return the rows of an array or sparse matrix, with sound indices and values that no caller can change.

    All features pass here once, on their way to kernels, which check no index. Entries of a row that repeat
    are summed; an array with many zeros is stored sparsely. Arrays that are frozen are not copied.
    """
    if not scipy.sparse.issparse(X):
        X = np.asarray(X)
        _check_numbers(X, owner)
        if np.count_nonzero(X) > _SPARSE_BELOW * X.size:
            return DenseRows(owned(X, np.float64), X.shape[1])
        return _stored(frozen(scipy.sparse.csr_array(X)))
    _check_numbers(X, owner)
    if X.shape[1] > _MOST_COLUMNS:
        raise ValueError(f"{owner}: features must have at most 2**32 columns, got {X.shape[1]}; hash them.")
    return _stored(_canonical(checked_csr(X, f"{owner}: the matrix of features")))


def as_indicators(start: Any, columns: Any, n_columns: int, owner: str) -> Rows:
    """The same for rows of ones at the columns ``columns[start[t]:start[t + 1]]``, in any order.

    Frozen ones are those of an encoder, which makes none twice.
    """
    matrix = scipy.sparse.csr_array((max(len(start) - 1, 0), n_columns))
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


def _check_numbers(X: Any, owner: str) -> None:
    if X.ndim != 2 or not is_numeric(X.dtype):
        raise ValueError(
            f"{owner}: features must be real numbers of shape (n_rows, n_features), got {described(X)} of "
            f"dtype {X.dtype}."
        )


def _canonical(X: Any) -> Any:
    """A CSR matrix whose rows have rising columns, itself if it has them; its own flags may be stale."""
    rising = X.indices[1:] > X.indices[:-1]
    firsts = X.indptr[1:-1]
    rising[firsts[(firsts > 0) & (firsts < len(X.indices))] - 1] = True
    if rising.all():
        return X
    summed = scipy.sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    summed.sum_duplicates()
    return frozen(summed)


def _stored(X: Any) -> Rows:
    start, columns = owned(X.indptr, np.int64), owned(X.indices, np.uint32)
    if (X.data == 1.0).all():
        return IndicatorRows(start, columns, X.shape[1])
    return SparseRows(start, columns, owned(X.data, np.float64), X.shape[1])
