"""Visits of all examples in one kernel, which returns to Python once a pass.

An accelerated pass takes snapshots of the weights, lets kappa grow (the first pass) or moves the centre (the
second). A return to Python for each of these would take as long as a hundred short visits.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import subroutine
from maxmargin.loops import add_scaled, scale_by
from maxmargin.methods._walks import mix, share_since
from maxmargin.methods.meetings import attend, kappa_now, record

NEVER = 1 << 62
_NONE = np.zeros(0)


class Alone(NamedTuple):
    """What happens between visits in a kernel that meets no others. A separate type compiles faster.

    Every few visits, a snapshot of the weights is added to their mean over time. Another one is taken at the
    beginning of each *stretch* of a pass; then kappa grows and weights shrink, or the centre moves and
    weights follow.

    Attributes
    ----------
    done : int
        How many visits were made before this call of the kernel.
    before : int
        How many were made in the run before these.
    every, stretch : int
        The number of visits from one snapshot to the next, and from one stretch to the next.
    end : int
        The number of visits in the run at the end of the pass, where no stretch begins.
    examples : int
        n, the number of visits in a pass.
    last : array of shape (2,)
        The number of visits in the run at the last snapshot, and at the beginning of the stretch.
    mean : array
        The mean of the weights over time.
    kappa : array of shape (1,)
        What is added to lam.
    growth : float
        By how much kappa grows in this pass: lam in the first, else zero.
    centre, way : arrays
        The prox-centre, and by how much it moves in this pass; empty if it stays.
    pull : float
        The fraction of the centre's move that the weights follow.
    gamma : array
        Output: the step of each example at its last visit; empty if it is not needed.
    """

    done: int = 0
    before: int = 0
    every: int = NEVER
    stretch: int = NEVER
    end: int = NEVER
    examples: int = 1
    last: IntArray = np.zeros(2, dtype=np.int64)
    mean: FloatArray = _NONE
    kappa: FloatArray = np.zeros(1)
    growth: float = 0.0
    centre: FloatArray = _NONE
    way: FloatArray = _NONE
    pull: float = 0.0
    gamma: FloatArray = _NONE


NO_MEETINGS = Alone()


@kappa_now.register(Alone)
def alone_kappa_now(meetings):
    return meetings.kappa[0]


@record.register(Alone)
def alone_record(meetings, i, move):
    if meetings.gamma.shape[0] > 0:
        meetings.gamma[i] = move.gamma[0]


@attend.register(Alone)
def alone_attend(meetings, t, w, work):
    visits = meetings.before + meetings.done + t
    begins = visits - meetings.last[1] >= meetings.stretch and visits < meetings.end
    if begins or visits - meetings.last[0] >= meetings.every:
        mix(share_since(meetings.last[0], visits), w, meetings.mean)
        meetings.last[0] = visits
    if begins:
        ahead = min(meetings.stretch, meetings.end - visits)
        _begin_stretch(meetings, ahead / meetings.examples, w)
        meetings.last[1] = visits
    return True


@subroutine
def _begin_stretch(meetings, share, w):
    """Begin a stretch that is a share of the pass: let kappa grow, or move the centre."""
    if meetings.growth > 0.0:
        before = meetings.growth + meetings.kappa[0]
        meetings.kappa[0] += share * meetings.growth
        scale_by(before / (meetings.growth + meetings.kappa[0]), w)
    if meetings.way.shape[0] > 0:
        add_scaled(share, meetings.way, meetings.centre)
        add_scaled(share * meetings.pull, meetings.way, w)
