"""Checks of encoded examples. Kernels do not check indices, so they are checked here first.

Each function returns arrays in the form that kernels are compiled for, or raises. The arrays are copies,
except where nothing can change the original, such as a mapped file.
"""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.encoding.kinds import pieces
from maxmargin.runtime.arrays import BoolArray, IntArray, kernel_copy
from maxmargin.runtime.wording import described


def checked_offsets(
    offsets: ArrayLike, n_rows: int | None, *, name: str = "offsets", least: int = 1
) -> IntArray:
    """Return where each example begins and the last one ends; raise if one has fewer than ``least`` rows."""
    array = _integers(offsets, name)
    if len(array) < 2 or array[0] != 0 or n_rows not in (None, array[-1]):
        ends = "none" if len(array) == 0 else f"{len(array)} from {array[0]} to {array[-1]}"
        stop = "the number of rows" if n_rows is None else f"{n_rows}, the number of rows"
        raise ValueError(f"{name} must be two or more ints from 0 to {stop}, got {ends}.")
    short = array[1:] < array[:-1] + least  # a difference might overflow
    if short.any():
        i = int(short.argmax())
        raise ValueError(
            f"{name} must rise by at least {least}, got {array[i]} and {array[i + 1]} for "
            f"example {i}; leave out empty examples."
        )
    return array


def checked_numbers(
    values: ArrayLike, length: int, stop: int | IntArray, *, name: str = "labels", begin: int = 0
) -> IntArray:
    """Return ``length`` ints; raise unless each is at least ``begin`` and below ``stop``."""
    array = _integers(values, name)
    if len(array) != length:
        raise ValueError(f"{name} must be {length} ints, got {len(array)}; give one for each.")
    for piece in pieces(length):
        limit = stop[piece] if isinstance(stop, np.ndarray) else stop
        outside = (array[piece] < begin) | (array[piece] >= limit)
        if outside.any():
            at = piece.start + int(outside.argmax())
            most = int(np.broadcast_to(stop, length)[at]) - 1
            raise ValueError(f"{name} must be from {begin} to {most}, got {array[at]} at position {at}.")
    return array


def checked_count(value: object, name: str) -> int:
    """Return the value as an int; raise unless it is at least one, and small enough for an index."""
    if not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be an int >= 1, got {described(value)}.")
    if int(value) > _MOST:
        raise ValueError(f"{name} must be at most {_MOST}, got {described(value)}.")
    return int(value)


def checked_flags(values: ArrayLike, length: int, name: str) -> BoolArray:
    """Return ``length`` bools."""
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype != np.bool_:
        raise ValueError(f"{name} must be {length} bools, got {described(values)} of dtype {array.dtype}.")
    return array.copy()


def _integers(values: ArrayLike, name: str) -> IntArray:
    """Return a vector of ints."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a vector of ints, got {described(values)} of dtype {array.dtype}.")
    return kernel_copy(array, np.int64)


_MOST = 1 << 48  # for counts, which are multiplied in 64 bits; later checks ensure that all fits into memory
