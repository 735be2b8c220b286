"""The oracles of multiclass classification: the best class."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.inference.simplex import list_near, simplex_threshold
from maxmargin.inference.softmax import softmax
from maxmargin.loops import clear, largest, weighted_sum
from maxmargin.problems import oracle
from maxmargin.problems.subsets import indexed_by_example


@indexed_by_example("labels")
class MulticlassOracle(NamedTuple):
    """True classes and costs.

    Attributes
    ----------
    labels : array of shape (n,)
    cost : array of shape (n_labels, width)
        ``cost[a, b]`` is the loss of class b where the truth is a.
    """

    labels: IntArray
    cost: FloatArray
    n_labels: int


class MulticlassOracleWork(NamedTuple):
    """Workspace for some classes: their numbers and their values."""

    where: IntArray
    value: FloatArray


@oracle.output_sizes.register(MulticlassOracle)
def multiclass_output_sizes(classes):
    return oracle.OutputSizes(1, 2)


@oracle.oracle_workspace.register(MulticlassOracle)
def multiclass_oracle_workspace(classes: MulticlassOracle) -> MulticlassOracleWork:
    width = classes.cost.shape[1]
    return MulticlassOracleWork(np.zeros(width, dtype=np.int64), aligned_zeros(width))


@oracle.output_size.register(MulticlassOracle)
def multiclass_output_size(classes, i):
    return 1


@oracle.argmax.register(MulticlassOracle)
def multiclass_argmax(classes, i, theta, y, work):
    cost = classes.cost[classes.labels[i]]
    best = 0
    for k in range(1, classes.n_labels):
        if theta[k] + cost[k] > theta[best] + cost[best]:
            best = k
    y[0] = best


@oracle.decode.register(MulticlassOracle)
def multiclass_decode(classes, i, theta, y, work):
    best = 0
    for k in range(1, classes.n_labels):
        if theta[k] > theta[best]:
            best = k
    y[0] = best


@oracle.loss.register(MulticlassOracle)
def multiclass_loss(classes, i, y):
    return classes.cost[classes.labels[i], y[0]]


@oracle.psi.register(MulticlassOracle)
def multiclass_psi(classes, i, y, index, value):
    truth = classes.labels[i]
    if y[0] == truth:
        return 0
    index[0], value[0] = truth, 1.0
    index[1], value[1] = y[0], -1.0
    return 2


@oracle.expectation.register(MulticlassOracle)
def multiclass_expectation(classes, i, theta, share, z, work):
    truth = classes.labels[i]
    cost = classes.cost[truth]
    weighted_sum(1.0, theta, share, cost, z)
    log_partition = softmax(z, classes.n_labels, z) - theta[truth]
    mean = 0.0
    for k in range(z.shape[0]):
        mean += z[k] * cost[k]
        z[k] = -z[k]
    z[truth] += 1.0
    return log_partition, mean


@oracle.block_optimum.register(MulticlassOracle)
def multiclass_block_optimum(classes, i, theta, curvature, z, work):
    r"""Project onto the simplex: the best alpha is nearest to :math:`\alpha + (L + \theta) / c`.

    All entries are relative to the largest of these sums times c, so that a small c loses no digits. Only
    entries less than c below the largest can be positive. They are few, and the search skips the others.
    """
    truth, K = classes.labels[i], classes.n_labels
    cost, value, where = classes.cost[truth], work.value, work.where
    weighted_sum(1.0, theta, 1.0, cost, value)
    hinge = largest(value, K) - theta[truth]
    z[truth] -= 1.0
    weighted_sum(1.0, value, -curvature, z, z)
    count = list_near(z, K, largest(z, K), curvature, where, value)
    clear(z)
    mean = 0.0
    if curvature == 0.0:
        mean, z[where[0]] = cost[where[0]], -1.0
    else:
        tau = simplex_threshold(value, count, 0.0, curvature)
        for c in range(count):
            alpha = max(value[c] - tau, 0.0) / curvature
            mean += alpha * cost[where[c]]
            z[where[c]] = -alpha
    z[truth] += 1.0
    return mean, hinge
