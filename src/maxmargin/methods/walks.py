r"""Operations on whole weight vectors, done a few times per pass; each reads and writes them once.

Outside of kernels, threads share the slices of long vectors.

In the operations for acceleration, ``w`` are the weights after a pass, ``centre`` is v, and ``dual`` is the
mean of :math:`g / \lambda`, whose current value is :math:`(1 + r) w - r v` with :math:`r = \kappa / \lambda`.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.loops import add_scaled, scale_by
from maxmargin.methods.meetings import attend, kappa_now, record
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.threads import run_in_slices
from maxmargin.structures.feature_map import inner, is_euclidean, map_sizes, projected
from maxmargin.structures.problem import AnyProblem

_SHARE = 0.02  # fraction of the work of a pass


def affordable_walks(problem: AnyProblem, most: int) -> int:
    """Return how many such operations are cheap compared with a pass, between one and ``most``.

    A step costs about as much as a walk over the statistics.
    """
    size = map_sizes(problem.map)
    affordable = int(_SHARE * size.examples * size.statistics / max(size.weights, 1))
    return max(1, min(most, affordable, size.examples))


@subroutine
def share_since(last, now):
    """Return the share of the time from ``last`` to ``now`` in all time until ``now``, with density t^2."""
    ratio = last / now
    return 1.0 - ratio * ratio * ratio


@helper
def mix(share, x, mean):
    """``mean += share * (x - mean)``"""
    for j in range(mean.shape[0]):
        mean[j] += share * (x[j] - mean[j])


def mix_in_slices(share: float, x: FloatArray, mean: FloatArray) -> None:
    """``mean += share * (x - mean)``"""
    run_in_slices(lambda some: mix(share, x[some], mean[some]), len(mean))


def difference_products(
    phi: object, w: FloatArray, centre: FloatArray, dual: FloatArray, r: float, work: FloatArray
) -> tuple[float, float]:
    r"""Return :math:`\langle d, g \rangle` and :math:`\langle d, d \rangle`, with g = ``dual``.

    :math:`d = (1 + r) w - r v - g` is the current dual point minus the mean. Where weights are measured by
    the dot product, d is not stored: that would take longer than the rest. Other maps get it in ``work``.
    """
    if is_euclidean(phi):
        products = run_in_slices(
            lambda some: _difference_products(w[some], centre[some], dual[some], r), len(w)
        )
        return float(sum(along for along, _ in products)), float(sum(square for _, square in products))
    run_in_slices(lambda some: _subtract_mean(w[some], centre[some], dual[some], r, work[some]), len(w))
    return inner(phi, work, projected(phi, dual)), inner(phi, work, work)


@helper
def _difference_products(w, centre, dual, r):
    """Two sums in the order of `maxmargin.compiling.loops.euclidean`."""
    a = b = c = d = e = f = g = h = 0.0
    whole = w.shape[0] - w.shape[0] % 4
    for j in range(0, whole, 4):
        x0 = (1.0 + r) * w[j] - r * centre[j] - dual[j]
        x1 = (1.0 + r) * w[j + 1] - r * centre[j + 1] - dual[j + 1]
        x2 = (1.0 + r) * w[j + 2] - r * centre[j + 2] - dual[j + 2]
        x3 = (1.0 + r) * w[j + 3] - r * centre[j + 3] - dual[j + 3]
        a, b, c, d = a + x0 * dual[j], b + x1 * dual[j + 1], c + x2 * dual[j + 2], d + x3 * dual[j + 3]
        e, f, g, h = e + x0 * x0, f + x1 * x1, g + x2 * x2, h + x3 * x3
    for j in range(whole, w.shape[0]):
        x0 = (1.0 + r) * w[j] - r * centre[j] - dual[j]
        a, e = a + x0 * dual[j], e + x0 * x0
    return (a + b) + (c + d), (e + f) + (g + h)


@helper
def _subtract_mean(w, centre, dual, r, out):
    for j in range(w.shape[0]):
        out[j] = (1.0 + r) * w[j] - r * centre[j] - dual[j]


def move_on(
    w: FloatArray,
    centre: FloatArray,
    previous: FloatArray,
    mean: FloatArray,
    dual: FloatArray,
    numbers: tuple[float, float, float, float, float],
) -> None:
    """Update the means of the weights and of the dual, and extrapolate.

    The numbers are r, the share of the weights in their mean, gamma, beta and the next r. The weights follow:
    they become :math:`(r' v' + g / \\lambda) / (1 + r')` with the new centre and ratio.
    """

    def on_slice(some: slice) -> None:
        _move_on(w[some], centre[some], previous[some], mean[some], dual[some], *numbers)

    run_in_slices(on_slice, len(w))


@helper
def _move_on(w, centre, previous, mean, dual, r, share, gamma, beta, new_r):
    for j in range(w.shape[0]):
        x = w[j]
        mean[j] += share * (x - mean[j])
        present = (1.0 + r) * x - r * centre[j]
        new_centre = x + beta * (x - previous[j])
        dual[j] += gamma * (present - dual[j])
        w[j] = (present + new_r * new_centre) / (1.0 + new_r)
        centre[j] = new_centre
        previous[j] = x


# The numbers of an accelerated run: the share of each snapshot in the mean, and how kappa adapts.

_BAND = 0.15, 0.5  # kappa stays while the smoothed step is between these
_SMOOTHING = 0.4
_FACTOR = 1.5
_BEFORE_RAISING, _BEFORE_LOWERING = 3, 5  # passes before kappa may change again


class Momentum(NamedTuple):
    """The numbers of an accelerated run.

    Attributes
    ----------
    kappa : float
    passes : int
        Passes made.
    visits : int
        Blocks visited in this pass.
    time : float
        When the last snapshot was taken, in passes; zero if there is none.
    ell : float
        Dual loss of the mean dual point.
    step : float
        Smoothed step of its line search.
    falling : bool
        Whether it became smaller in the last pass.
    since : int
        Passes since kappa changed.
    """

    kappa: float
    passes: int = 0
    visits: int = 0
    time: float = 0.0
    ell: float = 0.0
    step: float = 1.0
    falling: bool = False
    since: int = 0


def snapshot_share(momentum: Momentum, n: int) -> float:
    """Return the share of a snapshot taken now: that of the time since the last one, as kernels count it."""
    return float(share_since(round(momentum.time * n), momentum.passes * n + momentum.visits))


def noted(momentum: Momentum, n: int) -> Momentum:
    """Record that a snapshot is taken now."""
    return momentum._replace(time=momentum.passes + momentum.visits / n)


def adapted_kappa(momentum: Momentum, gamma: float) -> Momentum:
    """Record the step of the line search; raise or lower kappa if the smoothed step has left its band.

    Far from the optimum, steps are small but growing, which is no reason to lower kappa.
    """
    low, high = _BAND
    step, since = momentum.step + _SMOOTHING * (gamma - momentum.step), momentum.since + 1
    momentum = momentum._replace(step=step, falling=step < momentum.step, since=since)
    if step > high and since > _BEFORE_RAISING:
        return momentum._replace(kappa=momentum.kappa * _FACTOR, since=0)
    if step < low and momentum.falling and since > _BEFORE_LOWERING:
        return momentum._replace(kappa=momentum.kappa / _FACTOR, since=0)
    return momentum


# Visits of all examples in one kernel, which returns to Python once a pass.
#
# An accelerated pass takes snapshots of the weights, lets kappa grow (the first pass) or moves the centre
# (the second). A return to Python for each of these would take as long as a hundred short visits.

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
