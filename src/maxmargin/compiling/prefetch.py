"""Prefetching: load the data of the next visit from memory during the current one.

Examples are visited in random order, which the processor cannot predict. Without prefetching, a pass over the
OCR words takes an eighth more time.
"""

from collections.abc import Callable

import numpy as np
from numba import types
from numba.extending import overload

from maxmargin.compiling.generics import helper
from maxmargin.compiling.numba_private import CAN_PREFETCH, PART, prefetch_line

_LINE = 64
# On a longer walk the processor prefetches by itself.
_MOST_LINES = 32


def _request(array: np.ndarray, p: int) -> None:
    """Prefetch the cache line of entry p of an array; do nothing in the interpreter."""


@overload(_request, strict=False, jit_options=PART)
def _request_compiled(array: types.Array, p: types.Integer) -> Callable[..., None]:
    if CAN_PREFETCH:
        return lambda array, p: prefetch_line(array, p)
    return lambda array, p: None


@helper
def prefetch(array, first, stop):
    """Prefetch the entries first, ..., stop - 1 of a contiguous array, counted over all of its axes."""
    step = _LINE // array.itemsize
    for p in range(first, min(stop, first + _MOST_LINES * step), step):
        _request(array, p)
