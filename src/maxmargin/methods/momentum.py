r"""The momentum of an accelerated run: operations on whole weight vectors, and the choice of kappa.

The operations are done a few times per pass; each reads and writes the vectors once.

Outside of kernels, threads share the slices of long vectors.

In the operations for acceleration, ``w`` are the weights after a pass, ``centre`` is v, and ``dual`` is the
mean of :math:`g / \lambda`, whose current value is :math:`(1 + r) w - r v` with :math:`r = \kappa / \lambda`.
"""

from typing import NamedTuple

from maxmargin.compiling import helper
from maxmargin.methods.between_visits import mix, share_since
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.threads import run_in_slices
from maxmargin.structures.feature_map import inner, is_euclidean, map_sizes, projected
from maxmargin.structures.problem import AnyProblem

_SHARE = 0.02  # fraction of the work of a pass


def affordable_updates(problem: AnyProblem, most: int) -> int:
    """Return how many such operations are cheap compared with a pass, between one and ``most``.

    A step costs about as much as a walk over the statistics.
    """
    size = map_sizes(problem.map)
    affordable = int(_SHARE * size.examples * size.statistics / max(size.weights, 1))
    return max(1, min(most, affordable, size.examples))


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
    run_in_slices(
        lambda some: _move_on(w[some], centre[some], previous[some], mean[some], dual[some], *numbers), len(w)
    )


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
