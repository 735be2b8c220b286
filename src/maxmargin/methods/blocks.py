"""One sparse vector in output space per example, so that a state is only as large as the outputs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper
from maxmargin.methods.planes import (
    SIZE,
    START,
    can_claim,
    claim,
    closed_up,
    enlarged,
    longer_extents,
    new_extents,
    prefetch_part,
    shrink,
)
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.structures.feature_map import next_mark

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
