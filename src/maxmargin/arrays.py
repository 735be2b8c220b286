"""Arrays in the form that kernels are compiled for, and arrays that can no longer be changed."""

import math
import os
from typing import Any

import numpy as np
from scipy.sparse import issparse

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]

# Bytes in a cache line.
_LINE = 64


def aligned_zeros(*shape: int) -> FloatArray:
    """``np.zeros(shape)`` that begins at a cache line, so that no vector of a row straddles two."""
    size = math.prod(shape)
    padded = np.zeros(size + _LINE // 8)
    first = -padded.ctypes.data % _LINE // 8
    return padded[first : first + size].reshape(shape)


def plain(array: Any, dtype: Any) -> Any:
    """Return the array in the one form that kernels are compiled for: contiguous, aligned and writeable."""
    return np.require(array, dtype, ["C", "A", "W"])


def frozen(X: Any) -> Any:
    """Return a matrix that was just made, with its arrays read-only.

    An array that is read-only and owns its memory cannot change under a problem that uses it, so that no copy
    of it is needed.
    """
    for array in (X.data, X.indices, X.indptr) if issparse(X) else (X,):
        array.flags.writeable = False
    return X


def is_frozen(array: Any) -> bool:
    """Whether an array is one that `frozen` has made read-only."""
    return type(array) is np.ndarray and array.flags.owndata and not array.flags.writeable


def owned(array: Any, dtype: Any) -> Any:
    """Return the array in the same form, as one that no caller can change: a copy, unless it is frozen.

    Column numbers, which are not negative, may be int32 where uint32 is asked for.
    """
    array = np.asarray(array)
    alike = array.dtype == dtype or (array.dtype == np.int32 and dtype == np.uint32)
    if not (alike and is_frozen(array) and array.flags.c_contiguous and array.flags.aligned):
        return np.array(array, dtype=dtype, order="C")
    array.flags.writeable = True  # for a moment: kernels are compiled for arrays that are, and do not write
    view = array.view(dtype)
    array.flags.writeable = False
    return view


def check_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise if an array of so many bytes is larger than the memory of the machine.

    The system may promise such an array, and kill the process when it is written to.
    """
    if not hasattr(os, "sysconf"):
        return
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > most:
        raise ValueError(
            f"{what} must fit into the memory of {most / 2**30:.1f} GiB, got {n_bytes / 2**30:.1f} GiB; "
            f"{advice}."
        )
