"""Active sets as the package holds them, written out: as lists of planes, and as dual variables."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.methods.planes import Planes, PlaneWork
from maxmargin.structures.problem import sizes
from support.catalogue import Case
from support.maps import statistics
from support.naive import Array


class Plane(NamedTuple):
    """One plane: dual variable, loss, and the entries (index, value) of its psi."""

    alpha: float
    loss: float
    entries: tuple[tuple[int, float], ...]


def planes_of(planes: Planes, i: int) -> list[Plane]:
    """Return the active set of block i."""
    first, size, _ = planes.extent[i]
    begin, n_entries, _ = planes.entries[i]
    stops = [0, *planes.stop[first : first + size].tolist()]
    assert stops[-1] == n_entries
    where, value = (pool[begin : begin + n_entries].tolist() for pool in (planes.where, planes.value))
    entries = [tuple(zip(where[a:b], value[a:b], strict=True)) for a, b in pairwise(stops)]
    alpha, loss = planes.alpha[first : first + size].tolist(), planes.loss[first : first + size].tolist()
    return [Plane(*plane) for plane in zip(alpha, loss, entries, strict=True)]


def with_room(planes: Planes) -> Planes:
    """Return the same active sets in pools that need not grow."""
    pools = ("alpha", "loss", "stop", "where", "value")
    longer = {name: np.resize(getattr(planes, name), 10**5) for name in pools}
    return planes._replace(work=PlaneWork(*(np.zeros(100) for _ in planes.work)), **longer)


def dense(plane: Plane, length: int) -> Array:
    """Return psi as an array."""
    out = np.zeros(length)
    for p, value in plane.entries:
        out[p] += value
    return out


def dual_variables(case: Case, planes: Planes) -> list[Array]:
    """Return alpha over all outputs of each example; every plane must be that of one output."""
    return [_block_variables(case, planes, i) for i in range(len(case.X))]


def _block_variables(case: Case, planes: Planes, i: int) -> Array:
    data, length = case.data, sizes(case.problem).statistics
    s = np.array([statistics(case, i, y) for y in data.outputs[i]])
    psi, alpha = s[data.truths[i]] - s, np.zeros(len(s))
    for plane in planes_of(planes, i):
        (c,) = np.flatnonzero((psi == dense(plane, length)).all(axis=1))
        assert alpha[c] == 0.0
        assert abs(plane.loss - data.losses[i][c]) < 1e-14
        alpha[c] = plane.alpha
    return alpha
