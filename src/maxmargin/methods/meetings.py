r"""Meetings: parts of the examples, each moved by a kernel, add up their moves without leaving it.

A part that has made the visits of a round comes to a meeting with the weights :math:`w^0 + d_p`. The parts
add :math:`d_p / \sigma` to the next common weights, one after another in their order, so that the sum has the
same bits whoever comes first. When the last one has, all go on from there. This costs microseconds, where a
return to Python costs several hundred.

One number tells who is next: how many moves have been added, in all meetings. A part waits for its turn, and
then for the end of the meeting, but not for long: its kernel then returns, so that Python can run another
part on this thread, or let another thread work. So any number of threads can move the parts, one is enough,
and interrupts and errors are noticed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic, helper
from maxmargin.compiling.exchange import has_reached, publish, published
from maxmargin.methods._walks import mix, share_since

# Looks at the number before a kernel returns: some tenths of a millisecond.
_PATIENCE = 50_000


class Meetings(NamedTuple):
    """The meetings of one part with the others.

    Attributes
    ----------
    after : array
        Numbers of visits of this part, after each of which it has a meeting.
    met : array of shape (1,)
        How many meetings it has left behind.
    turn : array of shape (1,)
        How many moves have been added in all meetings; all parts share it.
    common : array of shape (2, number of weights)
        The common weights before meeting m are row m mod 2, those after it the other row; all share them.
    part, parts : int
        The number of this part, and the number of parts.
    sigma : float
        What moves are divided by.
    patience : int
        How often to look for others before the kernel returns.
    done : int
        How many visits were made before this call of the kernel.
    """

    after: IntArray
    met: IntArray
    turn: IntArray
    common: FloatArray
    part: int
    parts: int
    sigma: float
    patience: int
    done: int


class Alone(NamedTuple):
    """No meetings, for visits of all examples in one kernel. A type of its own compiles sooner.

    Every few visits, a snapshot of the weights is added to their mean over time.

    Attributes
    ----------
    done : int
        How many visits were made before this call of the kernel.
    before : int
        How many were made in the run before these.
    every : int
        The number of visits from one snapshot to the next.
    last : array of shape (1,)
        The number of visits in the run at the last snapshot.
    mean : array
    """

    done: int
    before: int
    every: int
    last: IntArray
    mean: FloatArray


NO_MEETINGS = Alone(0, 0, 1 << 62, np.zeros(1, dtype=np.int64), np.zeros(0))


def _counter() -> IntArray:
    return np.zeros(1, dtype=np.int64)


def new_meetings(w: FloatArray, sigma: float, after: Sequence[IntArray], is_crowded: bool) -> list[Meetings]:
    """Return the meetings of all parts, whose common weights begin at w.

    ``after`` has the visits of each part after which it meets the others; all have as many. Where fewer
    threads than parts make the visits, it ``is_crowded``: a part may have to wait for one that needs the same
    thread, so its kernel returns at once.
    """
    common, turn = np.empty((2, len(w) if len(after[0]) > 0 else 0)), _counter()
    common[0] = w[: common.shape[1]]
    patience = 1 if is_crowded else _PATIENCE
    return [
        Meetings(visits, _counter(), turn, common, p, len(after), sigma, patience, 0)
        for p, visits in enumerate(after)
    ]


def last_common(meetings: Meetings) -> FloatArray:
    """Return the common weights after all meetings."""
    common: FloatArray = meetings.common[len(meetings.after) % 2]
    return common


@generic
def attend(meetings, t, w):
    """Attend the meetings that are due before visit t of this call; return whether all of them are over."""
    raise NotImplementedError


@attend.register(Alone)
def alone_attend(meetings, t, w):
    visits = meetings.before + meetings.done + t
    if visits - meetings.last[0] >= meetings.every:
        mix(share_since(meetings.last[0], visits), w, meetings.mean)
        meetings.last[0] = visits
    return True


@attend.register(Meetings)
def meetings_attend(meetings, t, w):
    while meetings.met[0] < meetings.after.shape[0] and meetings.after[meetings.met[0]] <= meetings.done + t:
        if not _is_over(meetings, w):
            return False
    return True


@helper
def _is_over(meetings, w):
    """Attend one meeting, and go on from the new common weights; return False if others are still to come."""
    m = meetings.met[0]
    turn = m * meetings.parts + meetings.part
    if published(meetings.turn) <= turn:
        if not has_reached(meetings.turn, turn, meetings.patience):
            return False
        _add_move(meetings.common, m % 2, meetings.part == 0, meetings.sigma, w)
        publish(meetings.turn, turn + 1)
    if not has_reached(meetings.turn, (m + 1) * meetings.parts, meetings.patience):
        return False
    for j in range(w.shape[0]):
        w[j] = meetings.common[1 - m % 2, j]
    meetings.met[0] += 1
    return True


@helper
def _add_move(common, old, is_first, sigma, w):
    """``new += (w - old) / sigma``, where ``new`` begins at ``old``."""
    new = 1 - old
    if is_first:
        for j in range(w.shape[0]):
            common[new, j] = common[old, j]
    for j in range(w.shape[0]):
        common[new, j] += (w[j] - common[old, j]) / sigma
