"""Arrays in the form that kernels are compiled for, and arrays that can no longer be changed."""

import math
import os
from typing import Protocol, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
UIntArray = NDArray[np.uint32]
BoolArray = NDArray[np.bool_]

_Matrix = TypeVar("_Matrix")
_Scalar = TypeVar("_Scalar", bound=np.generic)
_CACHE_LINE_BYTES = 64


class SparseMatrix(Protocol):
    """The attributes that the package reads of any sparse matrix of scipy."""

    shape: tuple[int, ...]
    ndim: int
    format: str
    dtype: np.dtype[np.generic]

    def tocsr(self) -> "CsrMatrix":
        """Return the matrix in CSR form."""

    def reshape(self, *shape: int) -> "SparseMatrix":
        """Return the entries in another shape."""


Features = ArrayLike | SparseMatrix


class CsrMatrix(SparseMatrix, Protocol):
    """The attributes that the package reads of a sparse matrix in CSR form."""

    data: NDArray[np.number]
    indices: NDArray[np.integer]
    indptr: NDArray[np.integer]


def is_sparse(X: object) -> TypeGuard[SparseMatrix]:
    """Return whether X is a sparse matrix of scipy, of any format."""
    return bool(issparse(X))


def aligned_zeros(*shape: int) -> FloatArray:
    """Return ``np.zeros(shape)`` that begins at a cache line, so that no vector of a row straddles two."""
    size = math.prod(shape)
    padded = np.zeros(size + _CACHE_LINE_BYTES // 8)
    first = -padded.ctypes.data % _CACHE_LINE_BYTES // 8
    return padded[first : first + size].reshape(shape)


def aligned_copy(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return a copy in the form of `plain` that begins at a cache line, like `aligned_zeros`."""
    padded = np.empty(array.nbytes + _CACHE_LINE_BYTES, dtype=np.uint8)
    first = -padded.ctypes.data % _CACHE_LINE_BYTES
    copied = padded[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def plain(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return the array in the one form that kernels are compiled for: contiguous, aligned and writeable."""
    return np.require(array, dtype, ["C", "A", "W"])


def frozen(X: _Matrix) -> _Matrix:
    """Make the arrays of a new dense or sparse matrix read-only, and return the matrix.

    An array that is read-only and owns its memory cannot change under a problem that uses it. Such an array
    need not be copied.
    """
    for array in _arrays_of(X):
        array.flags.writeable = False
    return X


def _arrays_of(X: object) -> list[NDArray[np.generic]]:
    if isinstance(X, np.ndarray):
        return [X]
    return [getattr(X, name) for name in ("data", "indices", "indptr")]


def is_frozen(array: object) -> bool:
    """Return whether an array is one that `frozen` has made read-only."""
    return type(array) is np.ndarray and array.flags.owndata and not array.flags.writeable


def owned(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return the array in the form of `plain`, safe from changes by callers: a copy, unless it is frozen.

    Column numbers, which are not negative, may be int32 where uint32 is asked for.
    """
    given = np.asarray(array)
    alike = given.dtype == dtype or (given.dtype == np.int32 and dtype is np.uint32)
    if not (alike and is_frozen(given) and given.flags.c_contiguous and given.flags.aligned):
        return np.array(given, dtype=dtype, order="C")
    # Kernels are compiled for writeable arrays, but do not write to these: only the view is writeable.
    given.flags.writeable = True
    view = given.view(dtype)
    given.flags.writeable = False
    return view


def check_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise if an array of ``n_bytes`` bytes is larger than the memory of the machine.

    The operating system may grant such an array, and kill the process once it is written to.
    """
    if not hasattr(os, "sysconf"):
        return
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > available:
        raise ValueError(
            f"{what} must fit into the memory of {available / 2**30:.1f} GiB, got {n_bytes / 2**30:.1f} GiB; "
            f"{advice}."
        )
