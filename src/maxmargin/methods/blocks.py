"""One sparse vector in output space per example, so that a state is only as large as the outputs.

The vectors, and other parts of variable length, are in growing pools. Example i owns the entries
``extent[i, START], ..., extent[i, START] + extent[i, SIZE] - 1`` of a pool and has space for
``extent[i, ROOM]``. A part that outgrows its space moves to the free end of the pool, which begins at
``used[0]``. Compiled code cannot replace an array. So a sweep checks for space before each step, and returns
to Python, which calls `enlarged`, if there is none.
"""

from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper
from maxmargin.compiling.loops import prefetch
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import uninterruptible
from maxmargin.structures.feature_map import next_mark

START, SIZE, ROOM = 0, 1, 2
# Numbers of entries: pools longer than the first are closed up in place; the second is copied at a time.
_MANY, _PIECE = 1 << 21, 1 << 18
# After closing up, a pool with less than a fourth of its used space free grows, until a third is free.
_LEAST, _MORE = 4, 3


def new_extents(n: int) -> IntArray:
    """Return n empty parts without space."""
    return np.zeros((n, 3), dtype=np.int64)


def longer_extents(extent: IntArray, n: int) -> IntArray:
    """Return the extents, padded with those of empty parts to n."""
    return np.concatenate([extent, new_extents(n - len(extent))])


@helper
def claim(extent, used, i, need):
    """Reserve space for ``need`` entries of part i; return where it began before and where it begins now."""
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
    """Prefetch the entries of part i."""
    prefetch(pool, extent[i, START], extent[i, START] + extent[i, SIZE])


@singledispatch
def enlarged(state: object, slack: int) -> Any:
    """Return a state with more space in its pools, ``slack`` entries for any part and more.

    The given state must not be used afterwards: pools that have enough gaps are closed up in place.
    """
    if not isinstance(state, tuple):
        return state
    return type(state)(*(enlarged(field, slack) for field in state))


def closed_up(extent: IntArray, slack: int, *pools: Any) -> tuple[Any, ...]:
    """Return extents without gaps, the number of entries, and the pools, longer if they are short.

    In large pools the parts are moved to the beginning, and pools that are too short grow in place. So a run
    never holds two copies of a pool.
    """
    size = extent[:, SIZE]
    end, spare = int(size.sum()), 4 * (int(size.max(initial=0)) + slack)
    if len(pools[0]) < _MANY or not all(map(_can_grow, pools)):
        return packed(extent, slack, *pools)
    is_short = end + end // _LEAST + spare > len(pools[0])
    _close_up(extent, end + end // _MORE + spare if is_short else len(pools[0]), pools)
    return extent, np.array([end]), *pools


def shrink(extent: IntArray, used: IntArray, *pools: NDArray[np.generic]) -> None:
    """Close up pools in place, and release the memory after their entries."""
    if all(map(_can_grow, pools)):
        end = int(extent[:, SIZE].sum())
        _close_up(extent, end, pools)
        used[0] = end


def _close_up(extent: IntArray, length: int, pools: tuple[NDArray[np.generic], ...]) -> None:
    """Move the parts to the beginning of their pools, and give these another length."""
    size, order = extent[:, SIZE], np.argsort(extent[:, START], kind="stable")
    start = np.empty_like(size)
    start[order] = np.cumsum(size[order]) - size[order]
    with uninterruptible():  # extents and pools change together
        for pool in pools:
            _slide(extent, order, pool)
            # Large blocks of memory grow without a copy. The pool is not a view, and has no views.
            pool.resize(length, refcheck=False)
        extent[:, START], extent[:, ROOM] = start, size


def _can_grow(pool: NDArray[np.generic]) -> bool:
    """Whether an array holds memory of its own, which may be enlarged."""
    return bool(pool.flags.owndata and pool.flags.writeable)


@helper
def _slide(extent, order, pool):
    """Move the parts, in the order in which they begin, to the beginning of the pool."""
    end = 0
    for k in range(order.shape[0]):
        first = extent[order[k], START]
        for e in range(first, first + extent[order[k], SIZE]):
            pool[end] = pool[e]
            end += 1


def packed(extent: IntArray, slack: int, *pools: Any) -> tuple[Any, ...]:
    """Return extents without gaps, the number of entries, and copies of the pools, with zeros after them."""
    size = extent[:, SIZE]
    start, end = np.cumsum(size) - size, int(size.sum())
    length = end + _free(end) + 4 * (int(size.max(initial=0)) + slack)
    longer = [np.zeros(length, dtype=pool.dtype) for pool in pools]
    for first, stop in _pieces(start, end):
        entries = np.repeat(extent[first:stop, START] - start[first:stop], size[first:stop])
        begin = int(start[first])
        entries += np.arange(begin, begin + len(entries))
        for pool, copy in zip(pools, longer, strict=True):
            copy[begin : begin + len(entries)] = pool[entries]
    return np.column_stack([start, size, size]), np.array([end]), *longer


def _free(used: int) -> int:
    """Return the free space of a pool after its entries: twice their number, or half of it if many."""
    return max(used // 2, min(2 * used, _MANY))


def _pieces(start: IntArray, end: int) -> list[tuple[int, int]]:
    """Return ranges of parts with few entries each, as an index of all entries would take much memory."""
    cuts = np.unique(np.searchsorted(start, np.arange(0, end, _PIECE))).tolist()
    return list(pairwise([cut for cut in cuts if cut < len(start)] + [len(start)]))


_FIRST_ROOM = 8


class Blocks(NamedTuple):
    """A pool of sparse vectors."""

    where: NDArray[np.uint32]
    value: FloatArray
    extent: IntArray
    used: IntArray


def empty_blocks(n: int, slack: int) -> Blocks:
    """Return n empty vectors, in a pool with space for a few entries each."""
    length = n * _FIRST_ROOM + 4 * slack
    # Zeros, as `scaled_blocks` also multiplies unused entries, and other values could overflow.
    return Blocks(
        np.zeros(length, dtype=np.uint32), np.zeros(length), new_extents(n), np.zeros(1, dtype=np.int64)
    )


@enlarged.register
def blocks_enlarged(blocks: Blocks, slack: int) -> Blocks:
    """Return the vectors without zeros, which steps to a corner leave behind, in a pool with more space."""
    drop_zeros(blocks)
    extent, used, where, value = closed_up(blocks.extent, slack, blocks.where, blocks.value)
    return Blocks(where, value, extent, used)


def shrink_blocks(blocks: Blocks) -> None:
    """Drop zeros, and release all memory that is not in use."""
    drop_zeros(blocks)
    shrink(blocks.extent, blocks.used, blocks.where, blocks.value)


def scaled_blocks(blocks: Blocks, n: int, share: float) -> Blocks:
    """Return the vectors scaled by ``share``, copied and padded with empty ones to n vectors."""
    extent = longer_extents(blocks.extent, n)
    return Blocks(blocks.where.copy(), share * blocks.value, extent, blocks.used.copy())


def state_bytes(blocks: Blocks) -> int:
    """Return the number of bytes in use in the pool, including bookkeeping."""
    entry = blocks.where.itemsize + blocks.value.itemsize
    return int(blocks.used[0]) * entry + blocks.extent.nbytes


@helper
def has_slack(blocks, i, slack):
    """Whether vector i can grow to ``slack`` entries within the pool."""
    return can_claim(blocks.extent, blocks.used, i, slack, blocks.where.shape[0])


@helper
def prefetch_block(blocks, i):
    """Prefetch vector i."""
    prefetch_part(blocks.extent, i, blocks.where)
    prefetch_part(blocks.extent, i, blocks.value)


@helper
def clear_blocks(blocks):
    """Set every vector to zero."""
    for i in range(blocks.extent.shape[0]):
        blocks.extent[i, SIZE] = 0


@helper
def drop_zeros(blocks):
    """Remove the entries that are zero; the others stay in their order."""
    for i in range(blocks.extent.shape[0]):
        first = blocks.extent[i, START]
        end = first
        for e in range(first, first + blocks.extent[i, SIZE]):
            if blocks.value[e] != 0.0:
                blocks.where[end], blocks.value[end] = blocks.where[e], blocks.value[e]
                end += 1
        blocks.extent[i, SIZE] = end - first


@helper
def add_to_block(blocks, i, scale, move):
    """``z_i += scale * delta``, where ``move.delta`` is zero outside ``move.support``."""
    _include(blocks, i, move)
    first = blocks.extent[i, START]
    for e in range(first, first + blocks.extent[i, SIZE]):
        blocks.value[e] += scale * move.delta[blocks.where[e]]


@helper
def _include(blocks, i, move):
    """Add a zero entry to vector i for each index of the move's support that it lacks."""
    if not _begins_with(blocks, i, move):
        _put_first(blocks, i, move)
    known, size = blocks.extent[i, SIZE], move.size[0]
    old, first = claim(blocks.extent, blocks.used, i, size)
    if old != first:
        for e in range(known):
            blocks.where[first + e] = blocks.where[old + e]
            blocks.value[first + e] = blocks.value[old + e]
    for c in range(known, size):
        blocks.where[first + c] = move.support[c]
        blocks.value[first + c] = 0.0
    blocks.extent[i, SIZE] = size


@helper
def _begins_with(blocks, i, move):
    """Whether the support begins with the indices of vector i, as it does in a step on this vector."""
    first, known = blocks.extent[i, START], blocks.extent[i, SIZE]
    if known > move.size[0]:
        return False
    different = 0
    for e in range(known):
        different += blocks.where[first + e] != move.support[e]
    return different == 0


@helper
def _put_first(blocks, i, move):
    """Reorder and extend the support so that it begins with the indices of vector i."""
    mark = next_mark(move)
    first, known = blocks.extent[i, START], blocks.extent[i, SIZE]
    for e in range(first, first + known):
        move.marks[blocks.where[e]] = mark
    kept = 0
    for c in range(move.size[0]):
        move.support[kept] = move.support[c]
        kept += move.marks[move.support[c]] != mark
    for c in range(kept - 1, -1, -1):
        move.support[known + c] = move.support[c]
    for e in range(known):
        move.support[e] = blocks.where[first + e]
    move.size[0] = known + kept


@helper
def load_block(blocks, i, scale, move):
    """``delta = scale * z_i``, in a move that is zero before."""
    first, size = blocks.extent[i, START], blocks.extent[i, SIZE]
    for e in range(size):
        p = blocks.where[first + e]
        move.marks[p] = move.mark[0]
        move.support[e] = p
        move.delta[p] = scale * blocks.value[first + e]
    move.size[0] = size


@helper
def write_block(blocks, i, out):
    """``out[:] = z_i``, in an array that is zero before."""
    first = blocks.extent[i, START]
    for e in range(first, first + blocks.extent[i, SIZE]):
        out[blocks.where[e]] = blocks.value[e]


@helper
def dot_block(blocks, i, a):
    """``z_i @ a``"""
    total = 0.0
    first = blocks.extent[i, START]
    for e in range(first, first + blocks.extent[i, SIZE]):
        total += blocks.value[e] * a[blocks.where[e]]
    return total
