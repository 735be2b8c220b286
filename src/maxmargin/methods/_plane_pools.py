"""Pools of active sets: how they are made, enlarged, copied, and carried over to other problems."""

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.compiling import helper
from maxmargin.methods._planes import Planes, PlaneWork
from maxmargin.methods._pool import ROOM, SIZE, START, closed_up, enlarged, new_extents, packed

# Initial space for the planes of an example and for their entries; a plane has at most ``parts`` entries.
_FIRST_ROOM = 4
_FIRST_ENTRIES = 96
# Pools of few examples begin with space for this many planes: enlarging them takes as long as a sweep.
_FEW_PLANES, _MOST_ROOM = 1 << 11, 32
# Initial length of the work arrays: planes of the block being moved.
_FIRST_WORK = 64


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
