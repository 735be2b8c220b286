"""The oracles of multiclass classification: the best class."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.inference.simplex import simplex_threshold
from maxmargin.inference.softmax import softmax
from maxmargin.loops import weighted_sum
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


@oracle.output_sizes.register(MulticlassOracle)
def multiclass_output_sizes(classes):
    return oracle.OutputSizes(1, 2)


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

    All entries are relative to the largest of these sums times c, so that a small c loses no digits.
    """
    truth, K = classes.labels[i], classes.n_labels
    cost, hinge, largest, best = classes.cost[truth], theta[truth], -np.inf, truth
    z[truth] -= 1.0
    for k in range(K):
        value = theta[k] + cost[k]
        hinge = max(hinge, value)
        z[k] = value - curvature * z[k]
        if z[k] > largest:
            largest, best = z[k], k
    for k in range(K):
        z[k] -= largest
    tau = simplex_threshold(z, K, 0.0, curvature) if curvature > 0.0 else 0.0
    mean = 0.0
    for k in range(K):
        alpha = max(z[k] - tau, 0.0) / curvature if curvature > 0.0 else 1.0 * (k == best)
        mean += alpha * cost[k]
        z[k] = -alpha
    z[truth] += 1.0
    return mean, hinge - theta[truth]
