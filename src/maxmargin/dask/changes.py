"""Changes of weight vectors as messages: sparse where they are sparse, and their sums.

A message has the numbers of the entries and their values, 12 bytes each, or all values, 8 bytes each,
whichever is shorter.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import FloatArray

_DENSE_BYTES, _SPARSE_BYTES = 8, 12
_MOST = 2**32  # entries that uint32 can number


class Change(NamedTuple):
    """A vector of ``size`` entries: ``values`` at ``where``, else zero; at all places if it is None."""

    size: int
    where: NDArray[np.uint32] | None
    values: FloatArray

    @property
    def n_bytes(self) -> int:
        """The length of the message."""
        return self.values.nbytes + (0 if self.where is None else self.where.nbytes)


def encoded(vector: FloatArray) -> Change:
    """Return a vector as the shorter message; it is copied."""
    return _chosen(vector, np.flatnonzero(vector))


def difference(new: FloatArray, old: FloatArray) -> Change:
    """Return the entries of ``new`` that differ from ``old``, as they are: to be written, not added."""
    return _chosen(new, np.flatnonzero(new != old))


def _chosen(vector: FloatArray, where: NDArray[np.intp]) -> Change:
    if len(where) * _SPARSE_BYTES < len(vector) * _DENSE_BYTES and len(vector) <= _MOST:
        return Change(len(vector), where.astype(np.uint32), vector[where])
    return Change(len(vector), None, vector.copy())


def write(change: Change, vector: FloatArray) -> None:
    """Give the entries of a `difference` to a vector."""
    vector[slice(None) if change.where is None else change.where] = change.values


def add(change: Change, scale: float, vector: FloatArray) -> None:
    """``vector += scale * change``"""
    vector[slice(None) if change.where is None else change.where] += scale * change.values


def dense(change: Change) -> FloatArray:
    """Return a change as a vector."""
    vector = np.zeros(change.size)
    write(change, vector)
    return vector


def total(first: Change, second: Change) -> Change:
    """Return the sum of two changes."""
    if first.where is None or second.where is None:
        vector = dense(first)
        add(second, 1.0, vector)
        return Change(first.size, None, vector)
    where = np.union1d(first.where, second.where)
    values = np.zeros(len(where))
    for part in (first, second):
        values[np.searchsorted(where, part.where)] += part.values  # type: ignore[arg-type]
    if len(where) * _SPARSE_BYTES < first.size * _DENSE_BYTES:
        return Change(first.size, where, values)
    return Change(first.size, None, dense(Change(first.size, where, values)))
