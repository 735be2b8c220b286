"""Arrays in the form that kernels are compiled for, and loops over them."""

import math
from typing import Any

import numpy as np

from maxmargin._compile import helper

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
