r"""Multiclass classification (Crammer and Singer): one label per example.

The statistics of an output are the indicator of its class, and :math:`\Phi_i` is multiplication by
:math:`x_i`.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.checked import checked_count, checked_numbers
from maxmargin.encoding.matrices import sound
from maxmargin.inference.softmax import softmax
from maxmargin.loops import weighted_sum
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.problems._labels import check_several, cost_matrix, pad_columns, padded
from maxmargin.rows import Rows, as_rows, n_rows, row_push, row_scores, rows_prefetch, squared_norms


class MulticlassWeights(NamedTuple):
    """Weights of a multiclass model: ``unary[k]`` are the feature weights of class k."""

    unary: FloatArray


class Multiclass(NamedTuple):
    """A multiclass problem; made by `from_arrays`.

    The weights are a matrix with one row per feature and one column per class, padded to ``width`` columns.
    """

    rows: Rows
    labels: IntArray
    squared_norms: FloatArray
    cost: FloatArray
    n_labels: int
    width: int

    @classmethod
    def from_arrays(cls, X: Any, y: Any, *, loss: Any = "zero_one") -> "Multiclass":
        """Build the problem from features and labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any sortable kind; classes are numbered in sorted order.
        loss : "zero_one" or array of shape (n_classes, n_classes)
            ``loss[a, b]`` is what it costs to predict class b when the truth is a.
        """
        from sklearn.utils.validation import check_X_y

        X = sound(X, "Multiclass: X")
        X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, estimator="Multiclass")
        classes, labels = np.unique(y, return_inverse=True)
        check_several(len(classes), "Multiclass")
        return cls.from_encoded(X, labels, len(classes), loss=loss)

    @classmethod
    def from_encoded(cls, X: Any, labels: Any, n_labels: int, *, loss: Any = "zero_one") -> "Multiclass":
        """Build the problem from features and labels 0, ..., n_labels - 1."""
        owner, rows = "Multiclass", as_rows(X, "Multiclass")
        n, width = n_rows(rows), padded(checked_count(n_labels, owner, "n_labels"))
        labels = checked_numbers(labels, checked_count(n, owner, "the number of rows"), n_labels, owner)
        cost = pad_columns(cost_matrix(loss, ("zero_one",), n_labels, owner), width)
        return fitting(cls(rows, labels, squared_norms(rows), cost, int(n_labels), width), owner)

    def unpack(self, w: FloatArray) -> MulticlassWeights:
        """Return the weights by class, as views of ``w``."""
        return MulticlassWeights(w.reshape(-1, self.width)[:, : self.n_labels].T)


@protocol.sizes.register(Multiclass)
def multiclass_sizes(problem):
    width = problem.width
    return protocol.Sizes(problem.labels.shape[0], problem.rows.n_columns * width, width, 1, 2)


@protocol.workspace.register(Multiclass)
def multiclass_workspace(problem):
    return np.empty(0)


@protocol.output_size.register(Multiclass)
def multiclass_output_size(problem, i):
    return 1


@protocol.score.register(Multiclass)
def multiclass_score(problem, i, w, theta):
    row_scores(problem.rows, i, w.reshape((-1, problem.width)), theta)


@protocol.argmax.register(Multiclass)
def multiclass_argmax(problem, i, theta, y, work):
    cost = problem.cost[problem.labels[i]]
    best = 0
    for k in range(1, problem.n_labels):
        if theta[k] + cost[k] > theta[best] + cost[best]:
            best = k
    y[0] = best


@protocol.decode.register(Multiclass)
def multiclass_decode(problem, i, theta, y, work):
    best = 0
    for k in range(1, problem.n_labels):
        if theta[k] > theta[best]:
            best = k
    y[0] = best


@protocol.loss.register(Multiclass)
def multiclass_loss(problem, i, y):
    return problem.cost[problem.labels[i], y[0]]


@protocol.psi.register(Multiclass)
def multiclass_psi(problem, i, y, index, value):
    truth = problem.labels[i]
    if y[0] == truth:
        return 0
    index[0], value[0] = truth, 1.0
    index[1], value[1] = y[0], -1.0
    return 2


@protocol.gram.register(Multiclass)
def multiclass_gram(problem, i, move, image, work):
    for k in range(problem.width):
        image[k] = problem.squared_norms[i] * move.delta[k]


@protocol.push.register(Multiclass)
def multiclass_push(problem, i, move, scale, w, work):
    row_push(problem.rows, i, scale, move.delta, w.reshape((-1, problem.width)))


@protocol.foresee.register(Multiclass)
def multiclass_foresee(problem, i):
    rows_prefetch(problem.rows, i, i + 1)


@protocol.statistics_size.register(Multiclass)
def multiclass_statistics_size(problem, i):
    return problem.width


@protocol.expectation.register(Multiclass)
def multiclass_expectation(problem, i, theta, share, z, work):
    truth = problem.labels[i]
    cost = problem.cost[truth]
    weighted_sum(1.0, theta, share, cost, z)
    log_partition = softmax(z, problem.n_labels, z) - theta[truth]
    mean = 0.0
    for k in range(problem.width):
        mean += z[k] * cost[k]
        z[k] = -z[k]
    z[truth] += 1.0
    return log_partition, mean
