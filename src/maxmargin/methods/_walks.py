r"""Operations on whole weight vectors, done a few times per pass; each reads and writes them once.

Outside of kernels, threads share the slices of long vectors.

In those for acceleration, ``w`` are the weights after a pass, ``centre`` is v, and ``dual`` is the mean of
:math:`g / \lambda`, whose current value is :math:`(1 + r) w - r v` with :math:`r = \kappa / \lambda`.
"""

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.threads import run_in_slices
from maxmargin.problems.feature_map import map_sizes
from maxmargin.problems.problem import AnyProblem

_SHARE = 0.02  # share of the work of a pass


def affordable_walks(problem: AnyProblem, most: int) -> int:
    """Return how many such operations are cheap compared with a pass, between one and ``most``.

    A step costs about as much as a walk over the statistics.
    """
    size = map_sizes(problem.map)
    affordable = int(_SHARE * size.examples * size.statistics / max(size.weights, 1))
    return max(1, min(most, affordable, size.examples))


@subroutine
def share_since(last, now):
    """Return the share of the time from ``last`` to ``now`` in all time until now, with density t^2."""
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


def subtract_mean(w: FloatArray, centre: FloatArray, dual: FloatArray, r: float, out: FloatArray) -> None:
    """``out[:] = (1 + r) * w - r * centre - dual``: the current dual point minus the mean."""
    run_in_slices(lambda some: _subtract_mean(w[some], centre[some], dual[some], r, out[some]), len(w))


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
