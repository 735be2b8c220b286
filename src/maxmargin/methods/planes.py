r"""The active set of each example: a few outputs with their dual variables.

An output y enters the dual through its loss and through :math:`\psi_i(y)`, a sparse vector in output
space. They define the plane :math:`w \mapsto H_i(y; w) = L_i(y) - \langle w, \psi_i(y) \rangle` under the
hinge. A set stores planes instead of outputs, so the oracle need not compute them again. The planes of an
example are contiguous, in one pool for planes and one for their entries.

If memory is limited, planes of small weight are merged into their mean (`fit_planes`). A merged plane stands
for a distribution over outputs. So the dual point stays the same, and merged planes can be used like any
others: its margin is at most the hinge, and weight may move to it and from it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper
from maxmargin.methods.blocks import (
    ROOM,
    SIZE,
    START,
    can_claim,
    claim,
    closed_up,
    enlarged,
    new_extents,
    packed,
)
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.structures.feature_map import add_entry, reset

# Bytes of an entry: its place and its value.
ENTRY_BYTES = 12
# Initial space for the planes of an example and for their entries; a plane has at most ``parts`` entries.
_FIRST_ROOM = 4
_FIRST_ENTRIES = 96
# Pools of few examples begin with space for this many planes: enlarging them takes as long as a sweep.
_FEW_PLANES, _MOST_ROOM = 1 << 11, 32
# Initial length of the work arrays: planes of the block being moved.
_FIRST_WORK = 64


class PlaneWork(NamedTuple):
    """Workspace for the planes of the block being moved.

    Attributes
    ----------
    margin : array
        H_i at the current weights.
    before : array
        alpha before the visit.
    change : array
        Direction in which alpha moves.
    """

    margin: FloatArray
    before: FloatArray
    change: FloatArray


class Planes(NamedTuple):
    """Active sets.

    Attributes
    ----------
    alpha, loss, stop : arrays
        For each plane its dual variable, its loss, and the end of its entries, relative to its block.
    extent, used : arrays
        Which planes belong to which example; see `maxmargin.methods.blocks`.
    where, value : arrays
        Entries of the planes' psi.
    entries, used_entries : arrays
        Which entries belong to which example.
    work : PlaneWork
    merges : array of shape (2,)
        How often planes were merged to save memory, and whether the user has been warned.
    """

    alpha: FloatArray
    loss: FloatArray
    stop: IntArray
    extent: IntArray
    used: IntArray
    where: NDArray[np.uint32]
    value: FloatArray
    entries: IntArray
    used_entries: IntArray
    work: PlaneWork
    merges: IntArray


def truth_planes(n: int, slack: int) -> Planes:
    """Return n active sets, each with the plane of the truth alone: loss 0, psi = 0, alpha = 1."""
    planes = empty_planes(n, slack)
    planes.extent[:, SIZE] = 1
    return planes


def empty_planes(n: int, slack: int) -> Planes:
    """Return n empty sets, with space for a few planes each."""
    room = min(max(_FIRST_ROOM, _FEW_PLANES // max(n, 1)), _MOST_ROOM)
    length, extent = n * (room + 1) + room, new_extents(n)
    extent[:, START], extent[:, ROOM] = np.arange(n) * room, room
    entries = n * min(_FIRST_ENTRIES // _FIRST_ROOM, slack) * room + 4 * slack
    return _new_planes(length, extent, n * room, entries)


def _new_planes(length: int, extent: IntArray, used: int, n_entries: int) -> Planes:
    """Return sets in pools of this many planes, the first ``used`` of them in use, and this many entries."""
    return Planes(
        np.ones(length),
        np.zeros(length),
        np.zeros(length, dtype=np.int64),
        extent,
        np.array([used], dtype=np.int64),
        np.empty(n_entries, dtype=np.uint32),
        np.empty(n_entries),
        new_extents(len(extent)),
        np.zeros(1, dtype=np.int64),
        _new_work(_FIRST_WORK),
        np.zeros(2, dtype=np.int64),
    )


def _new_work(capacity: int) -> PlaneWork:
    return PlaneWork(np.zeros(capacity), np.zeros(capacity), np.zeros(capacity))


@enlarged.register
def planes_enlarged(planes: Planes, slack: int) -> Planes:
    return _with_pools(closed_up, planes, slack)


def _with_pools(renew: Callable[..., tuple[Any, ...]], planes: Planes, slack: int) -> Planes:
    """Return the sets in pools that are renewed by `packed` or `closed_up`."""
    pools = planes.alpha, planes.loss, planes.stop
    extent, used, alpha, loss, stop = renew(planes.extent, _FIRST_ROOM, *pools)
    entries, used_entries, where, value = renew(planes.entries, slack, planes.where, planes.value)
    work = _new_work(2 * int(planes.extent[:, SIZE].max()) + _FIRST_WORK)
    return Planes(
        alpha, loss, stop, extent, used, where, value, entries, used_entries, work, planes.merges.copy()
    )


def copied_planes(planes: Planes, n: int, slack: int) -> Planes:
    """Return a copy of the sets, padded with empty ones to n sets."""
    more = new_extents(n - len(planes.extent))
    extent, entries = np.concatenate([planes.extent, more]), np.concatenate([planes.entries, more])
    return _with_pools(packed, planes._replace(extent=extent, entries=entries), slack)


def scaled_planes(planes: Planes, n: int, slack: int, share: float) -> Planes:
    """Return n sets with alpha scaled by ``share`` and the rest on the truth; new sets hold it alone."""
    length, entries = int(planes.extent[:, SIZE].sum()) + n, int(planes.entries[:, SIZE].sum())
    out = _new_planes(length, new_extents(n), 0, entries)
    _copy_sets(planes, share, out)
    return enlarged(out, slack)


@helper
def _copy_sets(planes, share, out):
    old = planes.extent.shape[0]
    for i in range(out.extent.shape[0]):
        _begin_set(out, i, 1.0 - share if i < old else 1.0)
        if i < old:
            _copy_set(planes, i, share, out)


@helper
def _begin_set(planes, i, alpha):
    """Begin the active set of block i at the free end of the pools, with the plane of the truth."""
    start, first = planes.used[0], planes.used_entries[0]
    planes.extent[i, START], planes.extent[i, SIZE], planes.extent[i, ROOM] = start, 1, 1
    planes.entries[i, START] = first
    planes.alpha[start] = alpha
    planes.used[0] += 1


@helper
def _copy_set(planes, i, share, out):
    """Append the planes of block i, alpha scaled by ``share``, to its set in ``out``; merge the truth."""
    begin = 0
    for c in range(planes.extent[i, START], planes.extent[i, START] + planes.extent[i, SIZE]):
        stop = planes.stop[c]
        if stop == begin and planes.loss[c] == 0.0:
            out.alpha[out.extent[i, START]] += share * planes.alpha[c]
            continue
        new, first = out.used[0], planes.entries[i, START]
        for e in range(first + begin, first + stop):
            out.where[out.used_entries[0]] = planes.where[e]
            out.value[out.used_entries[0]] = planes.value[e]
            out.used_entries[0] += 1
        out.alpha[new], out.loss[new] = share * planes.alpha[c], planes.loss[c]
        out.stop[new] = out.used_entries[0] - out.entries[i, START]
        out.used[0] += 1
        out.extent[i, SIZE] += 1
        begin = stop
    out.extent[i, ROOM] = out.extent[i, SIZE]
    out.entries[i, SIZE] = out.entries[i, ROOM] = out.used_entries[0] - out.entries[i, START]


def plane_bytes(planes: Planes) -> int:
    """Return the number of bytes in use in the pools, including bookkeeping."""
    plane = planes.alpha.itemsize + planes.loss.itemsize + planes.stop.itemsize
    entry = planes.where.itemsize + planes.value.itemsize
    bookkeeping = planes.extent.nbytes + planes.entries.nbytes
    return int(planes.used[0]) * plane + int(planes.used_entries[0]) * entry + bookkeeping


@helper
def has_plane_room(planes, i, parts):
    """Whether the pools have space for another plane of block i, of up to ``parts`` entries."""
    size = planes.extent[i, SIZE] + 1
    return (
        size <= planes.work.margin.shape[0]
        and can_claim(planes.extent, planes.used, i, size, planes.alpha.shape[0])
        and can_claim(
            planes.entries, planes.used_entries, i, planes.entries[i, SIZE] + parts, planes.where.shape[0]
        )
    )


@helper
def plane_entries(planes, i, c):
    """Return where the entries of plane c of block i begin and end in the pool."""
    first, plane = planes.entries[i, START], planes.extent[i, START] + c
    return first + (planes.stop[plane - 1] if c > 0 else 0), first + planes.stop[plane]


@helper
def dot_plane(planes, i, c, a):
    """``psi_c @ a``"""
    total = 0.0
    first, stop = plane_entries(planes, i, c)
    for e in range(first, stop):
        total += planes.value[e] * a[planes.where[e]]
    return total


@helper
def add_plane(planes, i, c, scale, move):
    """``delta += scale * psi_c``"""
    first, stop = plane_entries(planes, i, c)
    for e in range(first, stop):
        add_entry(move, planes.where[e], scale * planes.value[e])


@helper
def measure_planes(planes, i, theta):
    """Write the planes' margins and alpha to the work arrays; return the mean margin under alpha."""
    work, first = planes.work, planes.extent[i, START]
    mean = 0.0
    for c in range(planes.extent[i, SIZE]):
        work.margin[c] = planes.loss[first + c] - dot_plane(planes, i, c, theta)
        work.before[c] = planes.alpha[first + c]
        mean += planes.alpha[first + c] * work.margin[c]
    return mean


@helper
def shift_margins(planes, i, scale, image):
    """``margin_c -= scale * psi_c @ image``"""
    for c in range(planes.extent[i, SIZE]):
        planes.work.margin[c] -= scale * dot_plane(planes, i, c, image)


@helper
def include_corner(planes, i, loss, margin, corner):
    """Add the corner's plane to block i with alpha = 0, unless it is there already; return its index."""
    for c in range(planes.extent[i, SIZE]):
        if _is_corner(planes, i, c, loss, corner):
            return c
    m, size = planes.extent[i, SIZE], planes.entries[i, SIZE]
    start = _claim_plane(planes, i)
    first = _claim_entries(planes, i, corner.size[0])
    for e in range(corner.size[0]):
        planes.where[first + size + e] = corner.where[e]
        planes.value[first + size + e] = corner.value[e]
    planes.alpha[start + m], planes.loss[start + m] = 0.0, loss
    planes.entries[i, SIZE] = planes.stop[start + m] = size + corner.size[0]
    planes.extent[i, SIZE] = m + 1
    planes.work.margin[m], planes.work.before[m] = margin, 0.0
    return m


@helper
def _is_corner(planes, i, c, loss, corner):
    first, stop = plane_entries(planes, i, c)
    if stop - first != corner.size[0] or planes.loss[planes.extent[i, START] + c] != loss:
        return False
    different = 0
    for e in range(corner.size[0]):
        different += planes.where[first + e] != corner.where[e]
        different += planes.value[first + e] != corner.value[e]
    return different == 0


@helper
def _claim_plane(planes, i):
    """Make space for another plane; return where the block's planes begin."""
    m = planes.extent[i, SIZE]
    old, start = claim(planes.extent, planes.used, i, m + 1)
    if old != start:
        for c in range(m):
            planes.alpha[start + c] = planes.alpha[old + c]
            planes.loss[start + c] = planes.loss[old + c]
            planes.stop[start + c] = planes.stop[old + c]
    return start


@helper
def _claim_entries(planes, i, more):
    """Make space for more entries; return where the block's entries begin."""
    size = planes.entries[i, SIZE]
    old, first = claim(planes.entries, planes.used_entries, i, size + more)
    if old != first:
        for e in range(size):
            planes.where[first + e] = planes.where[old + e]
            planes.value[first + e] = planes.value[old + e]
    return first


@helper
def drop_planes(planes, i):
    """Remove from block i the planes with alpha = 0."""
    start, first = planes.extent[i, START], planes.entries[i, START]
    kept = end = begin = 0
    for c in range(planes.extent[i, SIZE]):
        stop = planes.stop[start + c]
        if planes.alpha[start + c] != 0.0:
            if kept < c:
                planes.alpha[start + kept] = planes.alpha[start + c]
                planes.loss[start + kept] = planes.loss[start + c]
                for e in range(stop - begin):
                    planes.where[first + end + e] = planes.where[first + begin + e]
                    planes.value[first + end + e] = planes.value[first + begin + e]
            end += stop - begin
            planes.stop[start + kept] = end
            kept += 1
        begin = stop
    planes.extent[i, SIZE], planes.entries[i, SIZE] = kept, end


@helper
def fit_planes(planes, i, most, move):
    """Merge the planes of block i, those of smallest alpha first, until they have at most ``most`` entries.

    A merged plane is the mean of its planes under alpha, so the dual point of the block stays the same. The
    move is workspace, zero before and afterwards.
    """
    if planes.entries[i, SIZE] > most:
        drop_planes(planes, i)
    while planes.entries[i, SIZE] > most and planes.extent[i, SIZE] > 1:
        _merge_smallest(planes, i, move)
        planes.merges[0] += 1


@helper
def _merge_smallest(planes, i, move):
    """Replace the two planes of block i with the smallest alpha by their mean, which becomes the last one."""
    start, a, b = planes.extent[i, START], 0, 1
    if planes.alpha[start + b] < planes.alpha[start + a]:
        a, b = b, a
    for c in range(2, planes.extent[i, SIZE]):
        if planes.alpha[start + c] < planes.alpha[start + a]:
            a, b = c, a
        elif planes.alpha[start + c] < planes.alpha[start + b]:
            b = c
    alpha = planes.alpha[start + a] + planes.alpha[start + b]
    share = planes.alpha[start + a] / alpha
    loss = share * planes.loss[start + a] + (1.0 - share) * planes.loss[start + b]
    add_plane(planes, i, a, share, move)
    add_plane(planes, i, b, 1.0 - share, move)
    planes.alpha[start + a] = planes.alpha[start + b] = 0.0
    drop_planes(planes, i)
    _append_move(planes, i, alpha, loss, move)
    reset(move)


@helper
def _append_move(planes, i, alpha, loss, move):
    """Add the plane whose psi is delta to block i, which has space for it."""
    plane, end = planes.extent[i, START] + planes.extent[i, SIZE], planes.entries[i, SIZE]
    first = planes.entries[i, START]
    for c in range(move.size[0]):
        p = move.support[c]
        if move.delta[p] != 0.0:
            planes.where[first + end], planes.value[first + end] = p, move.delta[p]
            end += 1
    planes.alpha[plane], planes.loss[plane] = alpha, loss
    planes.entries[i, SIZE] = planes.stop[plane] = end
    planes.extent[i, SIZE] += 1
