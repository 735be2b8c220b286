r"""Slack rescaling of classes: the best class, and blocks solved exactly.

With :math:`\beta_k = \alpha_k L_k` the block is :math:`z = \sum_k \beta_k \psi_k`, and its dual loss
:math:`\sum_k \beta_k`. In terms of :math:`x = c \beta`, where c is the curvature, and of the scores
:math:`\theta`, its dual is, up to a constant, 1/c times

.. math:: \langle u, x \rangle - \tfrac12 \|x\|^2 - \tfrac12 \Big( \sum_k x_k \Big)^2, \qquad
          u_k = 1 + \theta_k - \theta_{y_i} + c \, (\beta^0_k + \textstyle\sum_j \beta^0_j) ,

where :math:`\beta^0` is the block before the step. The constraint that :math:`\alpha` sums to at most one,
with the rest on the truth, becomes :math:`\sum_k x_k / L_k \le c`. This is the problem of
`inference.scaled_simplex`, with :math:`r_k = m / L_k` and the total c m, where m is the smallest loss: no
quotient can overflow.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import subroutine
from maxmargin.inference.scaled_simplex import scaled_simplex, weighed
from maxmargin.loops import clear, largest
from maxmargin.problems.oracles.multiclass import MulticlassOracle
from maxmargin.problems.oracles.slack import check_rescalable, slack_argmax, slack_optimum, slack_workspace


class SlackClasses(NamedTuple):
    """Workspace: the smallest loss divided by the loss of each of some classes."""

    share: FloatArray


@check_rescalable.register(MulticlassOracle)
def multiclass_check_rescalable(classes: MulticlassOracle, owner: str) -> None:
    """Accept any loss."""


@slack_workspace.register(MulticlassOracle)
def multiclass_slack_workspace(classes: MulticlassOracle, length: int) -> SlackClasses:
    return SlackClasses(np.zeros(length * classes.n_labels))


@slack_argmax.register(MulticlassOracle)
def multiclass_slack_argmax(classes, i, theta, y, work, own):
    y[0] = _best(classes, classes.labels[i], theta)


@subroutine
def _best(classes, truth, theta):
    """Return the class of largest hinge."""
    best, value = truth, 0.0
    for k in range(classes.n_labels):
        candidate = classes.cost[truth, k] * (1.0 + theta[k] - theta[truth])
        if k != truth and not candidate <= value:  # also if it is NaN: the steps will detect it
            best, value = k, candidate
    return best


@subroutine
def _hinge(classes, truth, theta, value):
    """Return the largest hinge, or NaN if the score of the truth is not finite; ``value`` is workspace."""
    cost = classes.cost[truth]
    for k in range(classes.n_labels):
        value[k] = cost[k] * (1.0 + theta[k] - theta[truth])
    return max(largest(value, classes.n_labels), 0.0) + 0.0 * theta[truth]


@slack_optimum.register(MulticlassOracle)
def multiclass_slack_optimum(classes, i, theta, curvature, z, work, own):
    truth, where, x = classes.labels[i], work.where, work.value
    hinge = _hinge(classes, truth, theta, x)
    count, least = _list_positive(classes, truth, theta, curvature, z, work, own.share)
    clear(z)
    if curvature == 0.0:
        best = _best(classes, truth, theta)
        z[best] -= classes.cost[truth, best]
        z[truth] += classes.cost[truth, best]
    elif count > 0:
        total = curvature * least
        d, sigma, count = scaled_simplex(x, own.share, where, count, total)
        found = weighed(x, own.share, d, sigma, count)
        scale = (total / found if found > total else 1.0) / curvature  # rounding may go beyond the total
        for c in range(count):
            beta = scale * max(x[c] + d * own.share[c] - sigma, 0.0)
            z[where[c]] = -beta
            z[truth] += beta
    return z[truth], hinge


@subroutine
def _list_positive(classes, truth, theta, curvature, z, work, share):
    """List the classes whose u is positive, with u and r; return how many, and the smallest of their losses.

    No other class can have a positive x.
    """
    count, least, cost = 0, np.inf, classes.cost[truth]
    for k in range(classes.n_labels):
        u = 1.0 + theta[k] - theta[truth] + curvature * (z[truth] - z[k])
        work.where[count], work.value[count] = k, u
        count += (cost[k] > 0.0) & (u > 0.0)  # the truth costs nothing
    for c in range(count):
        least = min(least, cost[work.where[c]])
    for c in range(count):
        share[c] = least / cost[work.where[c]]
    return count, least
