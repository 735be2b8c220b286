"""What workers and client say to each other: turns, updates of weights, reports, and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from maxmargin.dask.changes import Change, total
from maxmargin.limits import OutOfTime
from maxmargin.methods.protocol import NamedMethod
from maxmargin.problems.problem import Sizes


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
