r"""The cache of each example: planes that its oracle returned before, and when they are good enough.

A cached plane takes the oracle's place in a visit of example i if its block gap :math:`\hat g_i` is as
large as what the oracle is likely to find (Osokin et al. 2016):

.. math:: \hat g_i > 0, \qquad \hat g_i \ge \max \left( F g_i, \; \frac{\nu}{n} \sum_j g_j \right),
          \qquad F = 1, \quad \nu = 0.01,

where :math:`g_i` is the block gap at the last call of its oracle, infinite before the first, and the sum is
that at the end of the last pass. The authors have F = 0.25; smaller gaps are left here to the replays of
`maxmargin.methods.cached`, which then need fewer visits and no more calls. A plane is dropped when it was not
the best one in the last few visits (Shah, Kolmogorov and Lampert 2015).
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper
from maxmargin.methods._planes import (
    Planes,
    dot_plane,
    drop_planes,
    include_corner,
    plane_entries,
)
from maxmargin.methods._pool import SIZE, START

_SHARE = 1.0  # F
_FLOOR = 0.01  # nu


class Cache(NamedTuple):
    """Working planes.

    Attributes
    ----------
    planes : Planes
        Their ``alpha`` is the life that is left to a plane: in how many visits it may still not be the best.
    gap : array of shape (n,)
        n times the block gap at the last call of the oracle.
    floor : array of shape (1,)
        The least gap, times n, of a hit.
    hits : array of shape (1,)
        Visits in which no oracle was called.
    gain : array of shape (1,)
        n times what the dual gained in this pass.
    """

    planes: Planes
    gap: FloatArray
    floor: FloatArray
    hits: IntArray
    gain: FloatArray


def new_cache(planes: Planes) -> Cache:
    """Return a cache that begins with these planes."""
    gap, hits = np.full(len(planes.extent), np.inf), np.zeros(1, dtype=np.int64)
    return Cache(planes, gap, np.zeros(1), hits, np.zeros(1))


def set_floor(cache: Cache) -> None:
    """Take the gaps of now as what the gap of a hit is compared with."""
    known = cache.gap[np.isfinite(cache.gap)]
    cache.floor[0] = _FLOOR * known.sum() / max(len(cache.gap), 1)


@helper
def is_hit(cache, i, gap):
    """Whether a cached plane with this gap, times n, may take the oracle's place."""
    return gap > 0.0 and gap >= max(_SHARE * cache.gap[i], cache.floor[0])


@helper
def best_plane(planes, i, theta):
    """The plane of largest margin, and its margin; -1 and -inf if there is none."""
    start, best, largest = planes.extent[i, START], -1, -np.inf
    for c in range(planes.extent[i, SIZE]):
        margin = planes.loss[start + c] - dot_plane(planes, i, c, theta)
        if margin > largest:
            best, largest = c, margin
    return best, largest


@helper
def copy_plane(planes, i, c, corner):
    """Make plane c the corner; return its loss."""
    first, stop = plane_entries(planes, i, c)
    for e in range(stop - first):
        corner.where[e] = planes.where[first + e]
        corner.value[e] = planes.value[first + e]
    corner.size[0] = stop - first
    return planes.loss[planes.extent[i, START] + c]


@helper
def renew_plane(planes, i, c, life):
    """Give plane c its whole life again."""
    planes.alpha[planes.extent[i, START] + c] = life


@helper
def age_planes(planes, i, best, life):
    """Take one visit from the life of every plane but the best, and drop those that have none left."""
    start = planes.extent[i, START]
    for c in range(planes.extent[i, SIZE]):
        planes.alpha[start + c] = life if c == best else planes.alpha[start + c] - 1.0
    drop_planes(planes, i)


@helper
def keep_corner(planes, i, loss, hinge, corner, life, capacity):
    """Put the oracle's answer into the cache; beyond the capacity the plane with least life goes."""
    renew_plane(planes, i, include_corner(planes, i, loss, hinge, corner), life)
    if planes.extent[i, SIZE] > capacity:
        _drop_shortest_lived(planes, i)


@helper
def _drop_shortest_lived(planes, i):
    start = planes.extent[i, START]
    shortest = 0
    for c in range(1, planes.extent[i, SIZE]):
        if planes.alpha[start + c] < planes.alpha[start + shortest]:
            shortest = c
    planes.alpha[start + shortest] = 0.0
    drop_planes(planes, i)
