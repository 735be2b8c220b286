r"""Walks over all weights, which methods make a few times a pass; each reads and writes them once.

In those of acceleration ``w`` are the weights after a pass, ``centre`` is v, ``dual`` the mean of
:math:`g / \lambda`, of which the present one is :math:`(1 + r) w - r v` with :math:`r = \kappa / \lambda`.
"""

from typing import Any

from maxmargin.compiling import helper
from maxmargin.problems._protocol import sizes

_SHARE = 0.02  # of the work of a pass


def affordable_walks(problem: Any, most: int) -> int:
    """Return how many walks cost next to nothing beside a pass, at least one and at most so many.

    A step costs about as much as a walk over the statistics.
    """
    size = sizes(problem)
    affordable = int(_SHARE * size.examples * size.statistics / size.weights)
    return max(1, min(most, affordable, size.examples))


@helper
def meet(rows, w):
    """``w[:] = rows.mean(axis=0)``"""
    for j in range(w.shape[0]):
        total = 0.0
        for p in range(rows.shape[0]):
            total += rows[p, j]
        w[j] = total / rows.shape[0]


@helper
def mix(share, x, mean):
    """``mean += share * (x - mean)``"""
    for j in range(mean.shape[0]):
        mean[j] += share * (x[j] - mean[j])


@helper
def measure_dual(w, centre, dual, projection, r):
    """Return ``d @ projection`` and ``d @ d`` for the difference ``d`` of the present dual point to the mean.

    ``projection`` are the weights of the mean, ``dual`` itself where none is projected.
    """
    inner, square = 0.0, 0.0
    for j in range(w.shape[0]):
        d = (1.0 + r) * w[j] - r * centre[j] - dual[j]
        inner += d * projection[j]
        square += d * d
    return inner, square


@helper
def move_on(w, centre, previous, mean, dual, r, share, gamma, beta, new_r):
    """Put the weights into their mean and the dual's into its own, and extrapolate by ``beta``.

    The weights follow the centre: they become :math:`(r' v' + g / \\lambda) / (1 + r')` at the new centre
    and the new ratio.
    """
    for j in range(w.shape[0]):
        x = w[j]
        mean[j] += share * (x - mean[j])
        present = (1.0 + r) * x - r * centre[j]
        new_centre = x + beta * (x - previous[j])
        dual[j] += gamma * (present - dual[j])
        w[j] = (present + new_r * new_centre) / (1.0 + new_r)
        centre[j] = new_centre
        previous[j] = x
