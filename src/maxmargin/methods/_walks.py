r"""Operations on whole weight vectors, done a few times per pass; each reads and writes them once.

Outside of kernels, threads share the slices of long vectors.

In the operations for acceleration, ``w`` are the weights after a pass, ``centre`` is v, and ``dual`` is the
mean of :math:`g / \lambda`, whose current value is :math:`(1 + r) w - r v` with :math:`r = \kappa / \lambda`.
"""

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.threads import run_in_slices
from maxmargin.problems.feature_map import inner, is_euclidean, map_sizes, projected
from maxmargin.problems.problem import AnyProblem

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
    """Two sums in the order of `maxmargin.loops.euclidean`."""
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
