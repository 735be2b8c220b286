"""The ways in which feature rows are stored."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from maxmargin.rows._arrays import FloatArray, IntArray, plain

# Up to this share of nonzeros a sparse row is walked faster than a dense one.
_SPARSE_BELOW = 2 / 3


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


def as_rows(X: Any) -> Rows:
    """Wrap an array or a CSR matrix without duplicates; an array with many zeros is stored sparsely."""
    if not scipy.sparse.issparse(X):
        X = plain(X, np.float64)
        if np.count_nonzero(X) > _SPARSE_BELOW * X.size:
            return DenseRows(X, X.shape[1])
    X = scipy.sparse.csr_array(X)
    start, columns = plain(X.indptr, np.int64), plain(X.indices, np.uint32)
    if (X.data == 1.0).all():
        return IndicatorRows(start, columns, X.shape[1])
    return SparseRows(start, columns, plain(X.data, np.float64), X.shape[1])
