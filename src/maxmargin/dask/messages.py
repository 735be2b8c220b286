"""What workers and client say to each other: turns, updates of weights, reports, and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.methods.protocol import NamedMethod
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import OutOfTime
from maxmargin.structures.problem import Sizes

# Changes of weight vectors as messages: sparse where they are sparse, and their sums.
#
# A message has the numbers of the entries and their values, 12 bytes each, or all values, 8 bytes each,
# whichever is shorter.

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


class Lost(Exception):
    """What a task needs is not on this worker, or its epoch is over."""


class PartitionError(ValueError):
    """A partition that cannot be loaded or trained on; the message has its number."""


class Turn(NamedTuple):
    """What parts do in a round.

    Attributes
    ----------
    method : method
        The block method, with the lam of the whole problem.
    sigma : float
        How often a part's steps count.
    n : int
        Number of examples of all partitions.
    seed, sampling : int, str
        What the visits of this pass are drawn from.
    first, stop : int
        Which of the n visits of the pass.
    """

    method: NamedMethod
    sigma: float
    n: int
    seed: int
    sampling: str
    first: int
    stop: int


class Update(NamedTuple):
    """The common weights: entries that changed since version ``base``, or all nonzero ones if it is None."""

    version: int
    base: int | None
    change: Change


class Report(NamedTuple):
    """What parts have done: the sum of their moves, that of the moves' squares, and the sum of dual losses.

    ``seconds`` are the longest of a part, ``n_bytes`` those of all messages that this one was made from.
    """

    change: Change
    square: float
    ell: float
    seconds: float
    n_bytes: int


class Description(NamedTuple):
    """What the client needs to know of a partition."""

    sizes: Sizes
    kind: str
    is_bounded: bool
    digest: str


@contextmanager
def naming(p: int) -> Iterator[None]:
    """Let errors within the block name the partition."""
    try:
        yield
    except (Lost, OutOfTime, PartitionError):
        raise
    except Exception as error:
        raise failed(p, error) from error


def failed(p: int | None, error: BaseException) -> PartitionError:
    """Return the error for a partition, or for a task that is about several."""
    what, cause = "a task" if p is None else f"partition {p}", " ".join(str(error).split())
    return PartitionError(f"maxmargin.dask: {what} failed: {type(error).__name__}: {cause}")


def combined(first: Report | None, *others: Report | None) -> Report | None:
    """Task: add up reports; None if one is missing."""
    for other in others:
        if first is None or other is None:
            return None
        change = total(first.change, other.change)
        first = Report(
            change,
            first.square + other.square,
            first.ell + other.ell,
            max(first.seconds, other.seconds),
            first.n_bytes + other.n_bytes,
        )
    return first


def listed(*answers: object) -> list[object]:
    """Task: return answers together, so that they travel as one."""
    return list(answers)
