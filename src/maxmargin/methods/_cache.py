r"""The cache of each example: planes that its oracle returned earlier, and when one may replace a call.

A cached plane replaces the oracle in a visit of example i if its block gap :math:`\hat g_i` is as large as
the one that the oracle is likely to find (Osokin et al. 2016):

.. math:: \hat g_i > 0, \qquad \hat g_i \ge \max \left( F g_i, \; \frac{\nu}{n} \sum_j g_j \right),
          \qquad F = 1, \quad \nu = 0.01,

where :math:`g_i` is the block gap at the last call of its oracle, infinite before the first call, and the
sum is taken at the end of the last pass. The authors use F = 0.25. Here, smaller gaps are left to the replays
of `maxmargin.methods.cached`: this takes fewer visits and no more calls. A plane is dropped if it was not the
best one in the last few visits (Shah, Kolmogorov and Lampert 2015).
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper
from maxmargin.methods._planes import Planes, dot_plane, drop_planes, include_corner, plane_entries
from maxmargin.methods._pool import SIZE, START

_SHARE = 1.0  # F
_FLOOR = 0.01  # nu


class Cache(NamedTuple):
    """Cached planes.

    Attributes
    ----------
    planes : Planes
        ``alpha`` is a plane's remaining life: the number of visits in which it may fail to be the best.
    gap : array of shape (n,)
        n times the block gap at the last call of the oracle.
    floor : array of shape (1,)
        n times the smallest gap of a hit.
    hits : array of shape (1,)
        Number of visits without an oracle call.
    gain : array of shape (1,)
        n times the increase of the dual in this pass.
    """

    planes: Planes
    gap: FloatArray
    floor: FloatArray
    hits: IntArray
    gain: FloatArray


def new_cache(planes: Planes) -> Cache:
    """Return a cache that starts with these planes."""
    gap, hits = np.full(len(planes.extent), np.inf), np.zeros(1, dtype=np.int64)
    return Cache(planes, gap, np.zeros(1), hits, np.zeros(1))


def set_floor(cache: Cache) -> None:
    """Make the current gaps the reference for hits."""
    known = cache.gap[np.isfinite(cache.gap)]
    cache.floor[0] = _FLOOR * known.sum() / max(len(cache.gap), 1)


@helper
def is_hit(cache, i, gap):
    """Whether a cached plane with this gap, times n, may replace an oracle call."""
    return gap > 0.0 and gap >= max(_SHARE * cache.gap[i], cache.floor[0])


@helper
def best_plane(planes, i, theta):
    """Return the plane of largest margin, and its margin; -1 and -inf if there is none."""
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
    """Reset the life of plane c to its full length."""
    planes.alpha[planes.extent[i, START] + c] = life


@helper
def age_planes(planes, i, best, life):
    """Shorten the life of every plane but the best by one visit; drop the planes whose life is over."""
    start = planes.extent[i, START]
    for c in range(planes.extent[i, SIZE]):
        planes.alpha[start + c] = life if c == best else planes.alpha[start + c] - 1.0
    drop_planes(planes, i)


@helper
def keep_corner(planes, i, loss, hinge, corner, life, capacity):
    """Add the oracle's answer to the cache; if it is full, drop the plane with the shortest life."""
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
