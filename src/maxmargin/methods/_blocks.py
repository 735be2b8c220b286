"""One sparse vector in output space per example, in one growing pool.

This is what makes the state of a solver as large as the outputs: example i owns the entries
``start[i], ..., start[i] + size[i] - 1`` of the pool and room for ``room[i]`` in all. A block that
outgrows its room moves to the end of the pool. Compiled code cannot replace an array, so a sweep
asks `has_slack` before each step and hands back to Python, which calls `enlarged`, when the end of
the pool comes near.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._compile import helper
from maxmargin.methods._move import next_mark
from maxmargin.rows import FloatArray, IntArray

_FIRST_ROOM = 8


class Blocks(NamedTuple):
    """A pool of sparse vectors; ``used[0]`` is where its free end begins."""

    where: np.ndarray[Any, np.dtype[np.uint32]]
    value: FloatArray
    start: IntArray
    size: IntArray
    room: IntArray
    used: IntArray


def empty_blocks(n: int, slack: int) -> Blocks:
    """Return n empty vectors, in a pool with room for a few entries each."""
    length = n * _FIRST_ROOM + 4 * slack
    zeros = np.zeros(n, dtype=np.int64)
    return Blocks(
        np.empty(length, dtype=np.uint32),
        np.empty(length),
        zeros,
        zeros.copy(),
        zeros.copy(),
        np.zeros(1, dtype=np.int64),
    )


def enlarged(blocks: Blocks, slack: int) -> Blocks:
    """Return the same vectors in a pool at least half empty, without holes between them."""
    length = 2 * int(blocks.size.sum()) + 4 * slack
    bigger = empty_blocks(len(blocks.size), 0)._replace(
        where=np.empty(length, dtype=np.uint32), value=np.empty(length)
    )
    _copy_blocks(blocks, bigger)
    return bigger


def state_bytes(blocks: Blocks) -> int:
    """Return the bytes of the pool that are in use, bookkeeping included."""
    entry = blocks.where.itemsize + blocks.value.itemsize
    return int(blocks.used[0]) * entry + 3 * blocks.size.nbytes


@helper
def _copy_blocks(blocks, out):
    end = 0
    for i in range(blocks.size.shape[0]):
        out.start[i] = end
        out.size[i] = out.room[i] = blocks.size[i]
        for e in range(blocks.size[i]):
            out.where[end + e] = blocks.where[blocks.start[i] + e]
            out.value[end + e] = blocks.value[blocks.start[i] + e]
        end += blocks.size[i]
    out.used[0] = end


@helper
def has_slack(blocks, slack):
    """Whether a block of ``slack`` entries can still be moved to the end of the pool and grow."""
    return blocks.used[0] + 2 * slack <= blocks.where.shape[0]


@helper
def clear_blocks(blocks):
    """Make every vector zero."""
    for i in range(blocks.size.shape[0]):
        blocks.size[i] = 0


@helper
def add_to_block(blocks, i, scale, move):
    """``z_i += scale * delta``, where ``move.delta`` is zero outside ``move.support``."""
    _include(blocks, i, move)
    first = blocks.start[i]
    for e in range(first, first + blocks.size[i]):
        blocks.value[e] += scale * move.delta[blocks.where[e]]


@helper
def _include(blocks, i, move):
    """Give vector i an entry, at first zero, for each index of the move's support."""
    if not _begins_with(blocks, i, move):
        _put_first(blocks, i, move)
    known, size = blocks.size[i], move.size[0]
    _reserve(blocks, i, size)
    first = blocks.start[i]
    for c in range(known, size):
        blocks.where[first + c] = move.support[c]
        blocks.value[first + c] = 0.0
    blocks.size[i] = size


@helper
def _begins_with(blocks, i, move):
    """Whether the support begins with the indices of vector i, as that of a step on this vector does."""
    first, known = blocks.start[i], blocks.size[i]
    if known > move.size[0]:
        return False
    different = 0
    for e in range(known):
        different += blocks.where[first + e] != move.support[e]
    return different == 0


@helper
def _put_first(blocks, i, move):
    """Reorder the support, and extend it where delta is zero, so that it begins with those of vector i."""
    mark = next_mark(move)
    first, known = blocks.start[i], blocks.size[i]
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
def _reserve(blocks, i, need):
    """Make room for ``need`` entries of vector i, at the end of the pool if need be."""
    if need <= blocks.room[i]:
        return
    old, new = blocks.start[i], blocks.used[0]
    for e in range(blocks.size[i]):
        blocks.where[new + e] = blocks.where[old + e]
        blocks.value[new + e] = blocks.value[old + e]
    blocks.start[i] = new
    blocks.room[i] = need + need // 4
    blocks.used[0] = new + blocks.room[i]


@helper
def load_block(blocks, i, scale, move):
    """``delta = scale * z_i``, in a move that was zero."""
    first, size = blocks.start[i], blocks.size[i]
    for e in range(size):
        p = blocks.where[first + e]
        move.marks[p] = move.mark[0]
        move.support[e] = p
        move.delta[p] = scale * blocks.value[first + e]
    move.size[0] = size


@helper
def dot_block(blocks, i, a):
    """``z_i @ a``"""
    total = 0.0
    first = blocks.start[i]
    for e in range(first, first + blocks.size[i]):
        total += blocks.value[e] * a[blocks.where[e]]
    return total
