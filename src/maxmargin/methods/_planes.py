r"""The active set of each example: a few outputs with their dual variables.

An output y enters the dual through its loss and through :math:`\psi_i(y)`, a sparse vector in output
space. They define the plane :math:`w \mapsto H_i(y; w) = L_i(y) - \langle w, \psi_i(y) \rangle` under the
hinge. A set stores planes instead of outputs, so the oracle need not compute them again. The planes of an
example are contiguous, in one pool for planes and one for their entries.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper
from maxmargin.methods._pool import SIZE, START, can_claim, claim
from maxmargin.problems.moves import add_entry


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
        Which planes belong to which example; see `maxmargin.methods._pool`.
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
