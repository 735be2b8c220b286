"""Checks of the structure of sparse matrices."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from maxmargin.arrays import CsrMatrix, SparseMatrix, is_sparse
from maxmargin.encoding.chunks import pieces

_ADVICE = "rebuild the matrix"
_Features = TypeVar("_Features")


def checked_csr(X: SparseMatrix, what: str) -> CsrMatrix:
    """Return a sparse matrix in CSR form, uncopied if it has that form; raise if an index is out of range.

    The compiled code of scipy, like ours, does not check indices. Call this before anything else reads the
    matrix.
    """
    matrix = as_csr(X, what)
    check_entries(matrix, what)
    return matrix


def sound(X: _Features, what: str) -> _Features | CsrMatrix:
    """Return X if it is dense, and `checked_csr` of it if it is sparse."""
    return checked_csr(X, what) if is_sparse(X) else X


def as_csr(X: SparseMatrix, what: str) -> CsrMatrix:
    """Return a sparse matrix in CSR form, with arrays of the lengths that its shape requires."""
    if len(X.shape) != 2:
        raise ValueError(f"{what} must be a sparse matrix of two dimensions, got shape {X.shape}.")
    matrix = _converted(X, what)
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    n_stored = checked_length(indptr, min(len(indices), len(data)), matrix.shape[0], what)
    if n_stored == len(indices) == len(data):
        return matrix
    shortened: CsrMatrix = csr_array((data[:n_stored], indices[:n_stored], indptr), shape=matrix.shape)
    return shortened


def checked_length(indptr: NDArray[np.integer], n_values: int, n_rows: int, what: str) -> int:
    """Return the number of values that ``indptr`` refers to; raise unless it fits the values and the rows."""
    n_stored = int(indptr[-1]) if len(indptr) else -1
    if len(indptr) != n_rows + 1 or indptr[0] != 0 or not 0 <= n_stored <= n_values:
        raise ValueError(
            f"{what} must have an indptr of {n_rows + 1} entries from 0 to the number of values, got "
            f"{len(indptr)} entries, the last {n_stored}, for {n_values} values; {_ADVICE}."
        )
    return n_stored


def _converted(X: SparseMatrix, what: str) -> CsrMatrix:
    """Return the matrix in CSR form; scipy checks one of another form before it converts it."""
    if X.format == "csr":
        return X.tocsr()
    try:
        if X.format == "coo" and hasattr(X, "data") and hasattr(X, "coords"):
            coo_array((X.data, X.coords), shape=X.shape)  # the constructor checks all coordinates
        elif hasattr(X, "check_format"):
            X.check_format(full_check=True)
        return X.tocsr()
    except ValueError as error:
        raise ValueError(f"{what} must be a valid sparse matrix, got one whose {error}; {_ADVICE}.") from None


def check_entries(matrix: CsrMatrix, what: str) -> None:
    """Raise unless the rows of a CSR matrix are in order and all its columns are within its shape."""
    check_indices(matrix.indptr, matrix.indices, matrix.shape[1], what)


def check_indices(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], n_columns: int, what: str
) -> None:
    """Raise unless two arrays of a CSR matrix describe rows in order, with columns within its shape."""
    for piece in pieces(len(indptr) - 1):
        decreasing = indptr[1:][piece] < indptr[:-1][piece]
        if decreasing.any():
            raise ValueError(
                f"{what} must have an indptr that never decreases, got one that decreases after row "
                f"{piece.start + int(decreasing.argmax())}; {_ADVICE}."
            )
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{what} must have column indices that are ints, got {indices.dtype}; {_ADVICE}.")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        raise ValueError(_out_of_range(indptr, indices, n_columns, what))


def is_canonical(indptr: NDArray[np.integer], indices: NDArray[np.integer]) -> bool:
    """Return whether columns increase within each row, given arrays that `check_indices` found in order."""
    for piece in pieces(len(indices) - 1):
        increasing = indices[1:][piece] > indices[:-1][piece]
        ends = np.array([piece.start, piece.stop], dtype=indptr.dtype)
        first, last = np.searchsorted(indptr, ends, side="right")
        increasing[indptr[first:last].astype(np.int64) - (piece.start + 1)] = True  # rows begin here
        if not increasing.all():
            return False
    return True


def in_order(matrix: csr_array) -> csr_array:
    """Return a new matrix with columns that increase within rows; its arrays may change.

    The values of repeated columns are added in float64, the type of all sums.
    """
    if is_canonical(matrix.indptr, matrix.indices):
        return matrix
    matrix.has_sorted_indices = matrix.has_canonical_format = False  # its own flags may be stale
    matrix.sort_indices()
    if not is_canonical(matrix.indptr, matrix.indices):
        matrix.data = matrix.data.astype(np.float64, copy=False)
        matrix.sum_duplicates()
    return matrix


def _out_of_range(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], n_columns: int, what: str
) -> str:
    """Return the message for the first column that is out of range."""
    place = int(((indices < 0) | (indices >= n_columns)).argmax())
    row = int(np.searchsorted(indptr, place, side="right")) - 1
    return (
        f"{what} must have column indices from 0 to {n_columns - 1}, got {indices[place]} in row {row}; "
        f"{_ADVICE}."
    )
