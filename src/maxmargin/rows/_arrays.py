"""Arrays in the form that kernels are compiled for, and loops over them."""

import math
import os
from typing import Any

import numpy as np

from maxmargin._compile import helper
from maxmargin.encoding.matrices import is_frozen

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


@helper
def add_scaled(scale, x, out):
    """``out += scale * x``"""
    for k in range(out.shape[0]):
        out[k] += scale * x[k]


@helper
def add_product(scale, x, y, out):
    """``out += scale * x * y``"""
    for k in range(out.shape[0]):
        out[k] += scale * x[k] * y[k]


@helper
def weighted_sum(a, x, b, y, out):
    """``out[:] = a * x + b * y``"""
    for k in range(out.shape[0]):
        out[k] = a * x[k] + b * y[k]


@helper
def scaled_copy(scale, x, out):
    """``out[:] = scale * x``"""
    for k in range(out.shape[0]):
        out[k] = scale * x[k]


@helper
def copy(x, out):
    """``out[:] = x``"""
    for k in range(out.shape[0]):
        out[k] = x[k]


@helper
def fill(out, value):
    """``out[:] = value``"""
    for k in range(out.shape[0]):
        out[k] = value


@helper
def clear(out):
    """``out[:] = 0``"""
    for k in range(out.shape[0]):
        out[k] = 0.0


@helper
def count_nonzero(x):
    """``np.count_nonzero(x)``"""
    count = 0
    for k in range(x.shape[0]):
        count += x[k] != 0.0
    return count


@helper
def list_nonzero(x, out):
    """``out[:count] = np.flatnonzero(x)``; return the count. ``out`` has one entry to spare."""
    count = 0
    for k in range(x.shape[0]):
        out[count] = k
        count += x[k] != 0.0
    return count
