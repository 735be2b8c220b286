"""Feature matrices whose structure is sound."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse

_ADVICE = "build the matrix anew"


def checked_csr(X: Any, what: str) -> Any:
    """Return a sparse matrix in CSR form, itself if it has that form; raise if an index is outside.

    scipy's compiled code, like ours, reads whatever indices say: nothing may be done with a matrix before.
    """
    matrix = as_csr(X, what)
    check_entries(matrix, what)
    return matrix


def sound(X: Any, what: str) -> Any:
    """Return X as it is, or as `checked_csr` does if it is sparse."""
    return checked_csr(X, what) if issparse(X) else X


def as_csr(X: Any, what: str) -> Any:
    """Return a sparse matrix in CSR form, whose arrays are of the lengths that its shape asks for."""
    if len(X.shape) != 2:
        raise ValueError(f"{what} must be a sparse matrix of two dimensions, got shape {X.shape}.")
    if X.format != "csr":
        X = _converted(X, what)
    indptr, indices, data = X.indptr, X.indices, X.data
    n_stored = int(indptr[-1]) if len(indptr) else -1
    if len(indptr) != X.shape[0] + 1 or indptr[0] != 0 or not 0 <= n_stored <= min(len(indices), len(data)):
        raise ValueError(
            f"{what} must have an indptr of {X.shape[0] + 1} entries from 0 to the number of values, got "
            f"{len(indptr)} entries, the last {n_stored}, for {len(data)} values; {_ADVICE}."
        )
    if n_stored == len(indices) == len(data):
        return X
    return csr_array((data[:n_stored], indices[:n_stored], indptr), shape=X.shape)


def _converted(X: Any, what: str) -> Any:
    """The matrix in CSR form, by scipy, once its checks have passed."""
    try:
        if X.format == "coo":
            coo_array((X.data, X.coords), shape=X.shape)  # the constructor looks at all coordinates
        elif hasattr(X, "check_format"):
            X.check_format(full_check=True)
        return X.tocsr()
    except ValueError as error:
        raise ValueError(f"{what} must be a valid sparse matrix, got one whose {error}; {_ADVICE}.") from None


def check_entries(matrix: Any, what: str) -> None:
    """Raise unless the rows of a CSR matrix follow each other and all its columns are within its shape."""
    indptr, indices, n_columns = matrix.indptr, matrix.indices, matrix.shape[1]
    falling = indptr[1:] < indptr[:-1]
    if falling.any():
        raise ValueError(
            f"{what} must have an indptr that never falls, got one that falls after row "
            f"{int(falling.argmax())}; {_ADVICE}."
        )
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{what} must have column indices that are ints, got {indices.dtype}; {_ADVICE}.")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_columns):
        raise ValueError(_outside(indptr, indices, n_columns, what))


def _outside(indptr: NDArray[Any], indices: NDArray[Any], n_columns: int, what: str) -> str:
    """What to say of the first column outside of the shape."""
    place = int(((indices < 0) | (indices >= n_columns)).argmax())
    row = int(np.searchsorted(indptr, place, side="right")) - 1
    return (
        f"{what} must have column indices from 0 to {n_columns - 1}, got {indices[place]} in row {row}; "
        f"{_ADVICE}."
    )
