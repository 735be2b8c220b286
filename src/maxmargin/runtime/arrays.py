"""Arrays in the form that kernels are compiled for, and who may change them.

An array is *frozen* if nothing can change it (`is_frozen`). `freeze` makes it so, and `frozen_view` takes its
owner's word. `frozen_copy`, and `kernel_copy` for kernels, copy an array unless it is frozen.
"""

import math
import os
from collections.abc import Sequence
from mmap import mmap
from typing import Any, Protocol, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

FloatArray = NDArray[np.float64]
# Features, in one of the two types that kernels are compiled for.
ValueArray = NDArray[np.float64 | np.float32]
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


def csr_of(
    data: NDArray[np.generic], indices: NDArray[np.integer], indptr: NDArray[np.integer], n_columns: int
) -> csr_array:
    """Return a csr_array of exactly these arrays.

    scipy's constructor would make views of them, which do not count as frozen even if the arrays do, and
    would give both kinds of indices the same type, where kernels need int32 and int64.
    """
    matrix = csr_array((len(indptr) - 1, n_columns), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def index_dtype(indices: NDArray[np.integer], most: int) -> np.dtype[np.integer]:
    """Return the type for both index arrays of a CSR matrix: int32 if it holds these and up to ``most``.

    Like scipy's `get_index_dtype`, which is not public in the oldest version that we support.
    """
    fits = np.can_cast(indices.dtype, np.int32) and most <= np.iinfo(np.int32).max
    return np.dtype(np.int32 if fits else np.int64)


def is_sparse(X: object) -> TypeGuard[SparseMatrix]:
    """Return whether X is a sparse matrix of scipy, of any format."""
    return bool(issparse(X))


def aligned_zeros(*shape: int) -> FloatArray:
    """Return ``np.zeros(shape)`` that begins at a cache line, so that no vector of a row straddles two."""
    size = math.prod(shape)
    padded = np.zeros(size + _CACHE_LINE_BYTES // 8)
    first = -_address(padded) % _CACHE_LINE_BYTES // 8
    return padded[first : first + size].reshape(shape)


def aligned_copy(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return a copy in the form of `kernel_array` that begins at a cache line, like `aligned_zeros`."""
    padded = np.empty(array.nbytes + _CACHE_LINE_BYTES, dtype=np.uint8)
    first = -_address(padded) % _CACHE_LINE_BYTES
    copied = padded[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def kernel_array(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return the array in the one form that kernels are compiled for: contiguous, aligned and writeable."""
    return np.require(array, dtype, ["C", "A", "W"])


class _View:
    """The memory of an array, from which NumPy makes another one: read-only or not, and of any shape.

    By itself, NumPy refuses to make a writeable view of read-only memory.
    """

    def __init__(self, array: NDArray[np.generic], **changes: object) -> None:
        self.base = array
        self.__array_interface__ = array.__array_interface__ | changes


class _Loan(_View):
    """Memory that its owner promised not to change; see `frozen_view`."""


def freeze(X: _Matrix) -> _Matrix:
    """Make the arrays of a new dense or sparse matrix read-only, and return the matrix."""
    for array in _arrays_of(X):
        array.flags.writeable = False
    return X


def _arrays_of(X: object) -> list[NDArray[np.generic]]:
    if isinstance(X, np.ndarray):
        return [X]
    return [getattr(X, name) for name in ("data", "indices", "indptr")]


def frozen_view(X: _Matrix) -> _Matrix:
    """Return a view of an array whose owner does not change it for as long as the view is used.

    The view is read-only and counts as frozen. Of a CSR matrix this holds for the values only. An index that
    changes after it was checked would make kernels read and write anywhere in memory.
    """
    if isinstance(X, np.ndarray):
        fixed = is_frozen(X) or not X.size or X.dtype.hasobject
        return X if fixed else np.asarray(_Loan(X, data=(_address(X), True)))  # type: ignore[return-value]
    if is_frozen(X.data):  # type: ignore[attr-defined]
        return X
    matrix = cast("CsrMatrix", X)
    return cast("_Matrix", csr_of(frozen_view(matrix.data), matrix.indices, matrix.indptr, matrix.shape[1]))


def frozen_copy(X: _Matrix) -> _Matrix:
    """Return a frozen dense or CSR matrix: a copy, unless its arrays are frozen already."""
    arrays: Any = _arrays_of(X)
    if all(map(is_frozen, arrays)) or arrays[0].dtype.hasobject:
        return X
    if isinstance(X, np.ndarray):
        return cast("_Matrix", freeze(X.copy()))
    data, indices, indptr = (array.copy() for array in arrays)
    return cast("_Matrix", freeze(csr_of(data, indices, indptr, cast("CsrMatrix", X).shape[1])))


def is_frozen(array: object) -> bool:
    """Return whether nothing can change an array, so that a problem that outlives a call need not copy it.

    It and all arrays that it is a view of must be read-only, down to one that owns its memory, to a file that
    is mapped for reading only, or to a loan.
    """
    while isinstance(array, np.ndarray | _View):
        if isinstance(array, _Loan):
            return True
        if isinstance(array, np.ndarray) and array.flags.writeable:
            return False
        array = array.base
    return array is None or _is_read_only(array)


def _is_read_only(memory: Any) -> bool:
    try:
        with memoryview(memory) as buffer:
            return buffer.readonly
    except TypeError:
        return False


def is_mapped(array: object) -> bool:
    """Return whether an array is, or is a view of, a file that is mapped into memory."""
    return isinstance(memory_of(array), mmap)


def memory_of(array: object) -> object:
    """Return the owner of an array's memory: the array at the end of its chain of views, or a buffer."""
    while isinstance(array, np.ndarray | _View) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def joint_view(blocks: Sequence[NDArray[_Scalar]]) -> NDArray[_Scalar] | None:
    """Return the rows of all blocks as a read-only view, or None if they do not follow one another in memory.

    The blocks have one row or more each and the same number of columns. A view is possible if they are
    consecutive parts of one array.
    """
    first, memory, address = blocks[0], memory_of(blocks[0]), _address(blocks[0])
    for block in blocks:
        follows = _address(block) == address and block.dtype == first.dtype
        if not follows or not block.flags.c_contiguous or memory_of(block) is not memory:
            return None
        address += block.nbytes
    shape = sum(len(block) for block in blocks), first.shape[1]
    return np.asarray(_View(first, shape=shape, data=(_address(first), True)))


def _address(array: NDArray[np.generic]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def value_dtype(given: np.dtype[np.generic]) -> type[np.float32] | type[np.float64]:
    """Return the type in which kernels read features of some type: all arithmetic is in float64.

    Kernels are compiled for these two types and no other. Half precision becomes float32, and integers become
    float64.
    """
    return np.float32 if given.kind == "f" and given.itemsize <= 4 else np.float64


def value_dtypes(X: object) -> list[type[np.float32] | type[np.float64]]:
    """Return the types in which scikit-learn may leave a table; it converts any other to the first."""
    dtype = getattr(X, "dtype", None)
    return [value_dtype(dtype)] if isinstance(dtype, np.dtype) else [np.float64, np.float32]


def kernel_copy(array: ArrayLike, dtype: type[_Scalar]) -> NDArray[_Scalar]:
    """Return the array as `kernel_array` does, safe from changes by callers: a copy, unless it is frozen.

    Column indices, which are not negative, may be int32 where uint32 is asked for.
    """
    given = np.asarray(array)
    alike = given.dtype == dtype or (given.dtype == np.int32 and dtype is np.uint32)
    if not (alike and is_frozen(given) and given.flags.c_contiguous and given.flags.aligned):
        return np.array(given, dtype=dtype, order="C")
    # Kernels are compiled for writeable arrays, but do not write to these: only the view is writeable.
    writeable = _View(given, data=(_address(given), False), typestr=np.dtype(dtype).str)
    return np.asarray(writeable)


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
