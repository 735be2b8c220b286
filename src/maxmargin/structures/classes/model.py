r"""Multiclass classification (Crammer and Singer): one label per example.

.. math:: \langle w, \phi(x, y) \rangle = \langle W_y, x \rangle

The weights are a matrix with one row per feature and one column per class, padded to ``width`` columns. The
statistics of an output are the indicator of its class, so :math:`\Phi_i` multiplies it by x_i.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.compiling import subroutine
from maxmargin.compiling.loops import clear, largest, table, weighted_sum
from maxmargin.encoding.labels import checked_count, checked_numbers, cost_matrix, pad_columns
from maxmargin.encoding.matrices import sound
from maxmargin.runtime.arrays import Features, FloatArray, IntArray, aligned_zeros, value_dtypes
from maxmargin.runtime.wording import on_one_line
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.classes.inference import list_near, scaled_simplex, simplex_threshold, weighed
from maxmargin.structures.oracle import decode
from maxmargin.structures.problem import Problem, builder, fitting, indexed_by_example, padded
from maxmargin.structures.questions import (
    ANSWERS,
    Answers,
    PartRows,
    decode_with_margins,
    find_means,
    part_rows,
)
from maxmargin.structures.recursions import lead, softmax
from maxmargin.structures.rows import (
    Rows,
    as_rows,
    n_rows,
    row_push,
    row_scores,
    row_shrink,
    rows_prefetch,
    squared_norms,
)
from maxmargin.structures.slack import check_rescalable, slack_argmax, slack_optimum, slack_workspace


class MulticlassWeights(NamedTuple):
    """Weights of a multiclass model: ``unary[k]`` are the feature weights of class k."""

    unary: FloatArray


@indexed_by_example("row", "squared_norms")
class MulticlassMap(NamedTuple):
    """Features of examples.

    Attributes
    ----------
    rows : Rows
        Features.
    row : array of shape (n,)
        The row of each example.
    squared_norms : array of shape (n,)
        Squared length of each example's features.
    """

    rows: Rows
    row: IntArray
    squared_norms: FloatArray
    n_labels: int
    width: int


@feature_map.map_sizes.register(MulticlassMap)
def multiclass_map_sizes(phi):
    return feature_map.MapSizes(phi.row.shape[0], phi.rows.n_columns * phi.width, phi.width)


@feature_map.statistics_size.register(MulticlassMap)
def multiclass_statistics_size(phi, i):
    return phi.width


@feature_map.foresee.register(MulticlassMap)
def multiclass_foresee(phi, i):
    rows_prefetch(phi.rows, phi.row[i], phi.row[i] + 1)


@feature_map.score.register(MulticlassMap)
def multiclass_score(phi, i, w, theta):
    row_scores(phi.rows, phi.row[i], table(w, phi.width), theta)


@feature_map.gram.register(MulticlassMap)
def multiclass_gram(phi, i, move, image, work):
    for k in range(phi.width):
        image[k] = phi.squared_norms[i] * move.delta[k]


@feature_map.column_norm2.register(MulticlassMap)
def multiclass_column_norm2(phi, i):
    return phi.squared_norms[i]


@feature_map.push.register(MulticlassMap)
def multiclass_push(phi, i, move, scale, w, work):
    row_push(phi.rows, phi.row[i], scale, move.delta, table(w, phi.width))


@feature_map.refresh.register(MulticlassMap)
def multiclass_refresh(phi, i, move, prox, v, w):
    row_shrink(phi.rows, phi.row[i], phi.width, 0, phi.width, prox, v, w)


@feature_map.row_layout.register(MulticlassMap)
def multiclass_row_layout(phi: MulticlassMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(np.column_stack([phi.row, phi.row + 1]), 0, phi.width)


@feature_map.unpack.register(MulticlassMap)
def multiclass_unpack(phi: MulticlassMap, w: FloatArray) -> MulticlassWeights:
    return MulticlassWeights(w.reshape(-1, phi.width)[:, : phi.n_labels].T)


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


class SlackClasses(NamedTuple):
    """Workspace: the smallest loss divided by the loss of each of some classes."""

    share: FloatArray


@check_rescalable.register(MulticlassOracle)
def multiclass_check_rescalable(classes: MulticlassOracle) -> None:
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
    r"""Solve the block exactly, with rescaled slacks.

    With :math:`\beta_k = \alpha_k L_k` the block is :math:`z = \sum_k \beta_k \psi_k`, and its dual loss
    :math:`\sum_k \beta_k`. In terms of :math:`x = c \beta`, where c is the curvature, and of the scores
    :math:`\theta`, its dual is, up to a constant, 1/c times

    .. math:: \langle u, x \rangle - \tfrac12 \|x\|^2 - \tfrac12 \Big( \sum_k x_k \Big)^2, \qquad
              u_k = 1 + \theta_k - \theta_{y_i} + c \, (\beta^0_k + \textstyle\sum_j \beta^0_j) ,

    where :math:`\beta^0` is the block before the step. The constraint that :math:`\alpha` sums to at most
    one, with the rest on the truth, becomes :math:`\sum_k x_k / L_k \le c`. This is the problem of
    `scaled_simplex`, with :math:`r_k = m / L_k` and the total c m, where m is the smallest loss: no quotient
    can overflow.
    """
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


@decode_with_margins.register(MulticlassOracle)
def multiclass_decode_with_margins(classes, i, theta, y, margins, work):
    decode(classes, i, theta, y, work.oracle)
    margins[0] = lead(theta, classes.n_labels, y[0])


ANSWERS[MulticlassOracle] = Answers(means=lambda classes: np.zeros(0))


@find_means.register(MulticlassOracle)
def multiclass_find_means(classes, i, theta, work, own, mean):
    return softmax(theta, classes.n_labels, mean)


@part_rows.register(MulticlassOracle)
def multiclass_part_rows(classes, i):
    return PartRows(0, classes.n_labels, 1, classes.n_labels)


MulticlassProblem = Problem[MulticlassMap, MulticlassOracle]


class Multiclass:
    """Builders of multiclass problems."""

    @staticmethod
    @builder("Multiclass")
    def from_arrays(X: object, y: object, *, loss: object = "zero_one") -> MulticlassProblem:
        """Build a problem from features and labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any sortable kind; classes are numbered in sorted order.
        loss : "zero_one" or array of shape (n_classes, n_classes)
            ``loss[a, b]`` is the cost of predicting class b where the truth is a.
        """
        from sklearn.utils.validation import check_X_y

        features = sound(X, "Multiclass: X")
        try:
            features, truth = check_X_y(
                features, y, accept_sparse="csr", dtype=value_dtypes(X), estimator="Multiclass"
            )
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(on_one_line(f"Multiclass: {error}")) from None
        classes, labels = np.unique(truth, return_inverse=True)
        return Multiclass.from_encoded(features, labels, len(classes), loss=loss)

    @staticmethod
    @builder("Multiclass")
    def from_encoded(
        X: Features, labels: ArrayLike, n_labels: int, *, loss: object = "zero_one"
    ) -> MulticlassProblem:
        """Build a problem from features and labels 0, ..., n_labels - 1."""
        rows = as_rows(X)
        n, width = n_rows(rows), padded(checked_count(n_labels, "n_labels"))
        labels = checked_numbers(labels, checked_count(n, "the number of rows"), n_labels)
        cost = pad_columns(cost_matrix(loss, ("zero_one",), n_labels), width)
        problem = Problem(
            MulticlassMap(rows, np.arange(n), squared_norms(rows), int(n_labels), width),
            MulticlassOracle(labels, cost, int(n_labels)),
        )
        return fitting(problem)
