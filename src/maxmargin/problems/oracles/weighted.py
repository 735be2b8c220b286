r"""Example weights: factors of the hinges.

With weights :math:`c_i > 0` the objective is

.. math:: \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i c_i \max_y H_i(y; w), \qquad
          c_i H_i(y; w) = c_i L_i(y) - \langle w, c_i \psi_i(y) \rangle ,

which is that of losses :math:`c_i L_i` and differences :math:`c_i \psi_i`. Only losses and psi change; the
best output of an example, its scores and its feature map do not.

Loops that call the max oracle take the weights as an array, and the inner oracle: `problems.bare` gives both.
So they are compiled once, for problems with weights and without.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.problems import oracle
from maxmargin.problems.subsets import indexed_by_example

NO_WEIGHTS = np.zeros(0)


@indexed_by_example("weights")
class WeightedOracle(NamedTuple):
    """An oracle whose examples have weights.

    Attributes
    ----------
    inner : oracle
    weights : array of shape (n,)
    statistics : int
        Length of the scores for the expectation oracle; zero if there is none.
    """

    inner: object
    weights: FloatArray
    statistics: int


class WeightedWork(NamedTuple):
    """Workspace of the inner oracle, and scores for its expectation oracle."""

    inner: object
    theta: FloatArray


@oracle.oracle_workspace.register(WeightedOracle)
def weighted_oracle_workspace(weighted: WeightedOracle) -> WeightedWork:
    return WeightedWork(oracle.oracle_workspace(weighted.inner), aligned_zeros(weighted.statistics))


@oracle.loss.register(WeightedOracle)
def weighted_loss(weighted, i, y):
    return weighted.weights[i] * oracle.loss(weighted.inner, i, y)


@oracle.shortfall.register(WeightedOracle)
def weighted_shortfall(weighted, i, work):
    return weighted.weights[i] * oracle.shortfall(weighted.inner, i, work.inner)


@oracle.psi.register(WeightedOracle)
def weighted_psi(weighted, i, y, index, value):
    count, scale = oracle.psi(weighted.inner, i, y, index, value), weighted.weights[i]
    for c in range(count):
        value[c] *= scale
    return count


@oracle.expectation.register(WeightedOracle)
def weighted_expectation(weighted, i, theta, share, z, work):
    """Call the inner oracle with c times the scores and c times the share of losses."""
    c = weighted.weights[i]
    for p in range(z.shape[0]):
        work.theta[p] = c * theta[p]
    log_partition, loss = oracle.expectation(weighted.inner, i, work.theta, c * share, z, work.inner)
    for p in range(z.shape[0]):
        z[p] *= c
    return log_partition, c * loss


@oracle.block_optimum.register(WeightedOracle)
def weighted_block_optimum(weighted, i, theta, curvature, z, work):
    return optimum_of_weight(weighted.inner, i, theta, curvature, weighted.weights[i], z, work.inner)


@subroutine
def optimum_of_weight(inner, i, theta, curvature, c, z, work):
    """Solve a block of weight c: c times the inner objective, at z / c and c times the curvature."""
    for p in range(z.shape[0]):
        z[p] /= c
    loss, hinge = oracle.block_optimum(inner, i, theta, c * curvature, z, work)
    for p in range(z.shape[0]):
        z[p] *= c
    return c * loss, c * hinge
