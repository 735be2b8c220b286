"""Parts of different length in one growing pool: who owns which entries.

Example i owns the entries ``extent[i, START], ..., extent[i, START] + extent[i, SIZE] - 1`` of the pool and
has room for ``extent[i, ROOM]``. A part that outgrows its room moves to the free end of the pool, which
begins at ``used[0]``. Compiled code cannot replace an array: a sweep asks before each step whether there is
room, and hands back to Python, which calls `enlarged`, when there is none.
"""

from functools import singledispatch
from typing import Any

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.compiling import helper
from maxmargin.compiling.prefetch import prefetch

START, SIZE, ROOM = 0, 1, 2


def new_extents(n: int) -> IntArray:
    """Return n parts without entries or room."""
    return np.zeros((n, 3), dtype=np.int64)


def longer_extents(extent: IntArray, n: int) -> IntArray:
    """Return the extents followed by those of parts without entries, n in all."""
    return np.concatenate([extent, new_extents(n - len(extent))])


@helper
def claim(extent, used, i, need):
    """Give part i room for ``need`` entries; return where it stood and where it now begins."""
    old = extent[i, START]
    if need > extent[i, ROOM]:
        extent[i, START] = used[0]
        extent[i, ROOM] = need + need // 4
        used[0] += extent[i, ROOM]
    return old, extent[i, START]


@helper
def can_claim(extent, used, i, need, length):
    """Whether `claim` would stay within a pool of this length."""
    return need <= extent[i, ROOM] or used[0] + need + need // 4 <= length


@helper
def prefetch_part(extent, i, pool):
    """Ask for the entries of part i ahead of their use."""
    prefetch(pool, extent[i, START], extent[i, START] + extent[i, SIZE])


@singledispatch
def enlarged(state: Any, slack: int) -> Any:
    """Return a state with pools of thrice their entries, and ``slack`` entries more for any part."""
    if not isinstance(state, tuple):
        return state
    return type(state)(*(enlarged(field, slack) for field in state))


def packed(extent: IntArray, slack: int, *pools: Any) -> tuple[Any, ...]:
    """Return extents without holes, the number of entries, and the pools copied to longer ones."""
    size = extent[:, SIZE]
    start, end = np.cumsum(size) - size, int(size.sum())
    entries = np.repeat(extent[:, START] - start, size) + np.arange(end)
    longer = [np.empty(3 * end + 4 * (int(size.max(initial=0)) + slack), dtype=pool.dtype) for pool in pools]
    for pool, copy in zip(pools, longer, strict=True):
        np.take(pool, entries, out=copy[:end])
    return np.column_stack([start, size, size]), np.array([end]), *longer
