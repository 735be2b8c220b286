"""The best path through a trellis for each number of wrong labels."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, fill
from maxmargin.runtime.arrays import FloatArray, aligned_zeros
from maxmargin.structures.recursions import best_pair, best_predecessor, best_predecessors


class Counted(NamedTuple):
    """Workspace: for each number of wrong labels, the best scores of paths to each label, and of all."""

    value: FloatArray
    scores: FloatArray


def counted_work(length: int, *labels: int) -> Counted:
    """Return a workspace for paths of up to ``length`` positions, with states of this shape."""
    return Counted(aligned_zeros(length + 1, length, *labels), np.zeros(length + 1))


@helper
def costliest_count(scores):
    """Return the number m of wrong labels that maximises ``m * (1 + scores[m] - scores[0])``.

    ``scores[m]`` is the best score with m wrong labels. A NaN counts as a maximum, so that the step that
    follows detects it.
    """
    best, value = 0, 0.0
    for m in range(1, scores.shape[0]):
        candidate = m * (1.0 + scores[m] - scores[0])
        if not candidate <= value:
            best, value = m, candidate
    return best


@helper
def best_by_count(unary, pairwise, truth, n_labels, value):
    r"""Fill ``value[m, t, k]``: the best score of a path to label k at position t with m wrong labels so far.

    .. math:: v_{m,t}(k) = u_t(k) + \max_j \left( v_{m - [k \ne y_t], t - 1}(j) + p(j, k) \right)

    It is minus infinity if there is no such path. At most t + 1 labels can be wrong at position t; entries
    beyond are not written. The cost is that of `viterbi` times half the length.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
    truth : int array of shape (length,)
    n_labels : int
    value : array of shape (at least length + 1, at least length, width)
    """
    _begin(unary, truth, n_labels, value)
    for t in range(1, unary.shape[0]):
        for m in range(t + 2):
            row, right = value[m, t], truth[t]
            if m > 0:
                best_predecessors(value[m - 1, t - 1], pairwise, n_labels, row)
            else:
                fill(row, -np.inf)
            row[right] = -np.inf
            if m <= t:
                before = value[m, t - 1]
                j = best_predecessor(before, pairwise[:, right], n_labels)
                row[right] = before[j] + pairwise[j, right]
            add_scaled(1.0, unary[t], row)


@helper
def _begin(unary, truth, n_labels, value):
    """Fill the first position: one label is right, the others are wrong."""
    for m in range(2):
        fill(value[m, 0], -np.inf)
    for k in range(n_labels):
        value[0 if k == truth[0] else 1, 0, k] = unary[0, k]


@helper
def best_end(value, m, last, n_labels):
    """Return the label in which the best path with m wrong labels ends, at position ``last``."""
    best = 0
    for k in range(1, n_labels):
        if value[m, last, k] > value[m, last, best]:
            best = k
    return best


@helper
def best_scores(value, length, n_labels, scores):
    """Write the score of the best path for each number of wrong labels."""
    for m in range(length + 1):
        scores[m] = value[m, length - 1, best_end(value, m, length - 1, n_labels)]


@helper
def trace_back(value, pairwise, truth, m, last, n_labels, y):
    """Write the best path with m wrong labels that ends at position ``last``."""
    label = best_end(value, m, last, n_labels)
    y[last] = label
    for t in range(last, 0, -1):
        if label != truth[t]:
            m -= 1
        label = best_predecessor(value[m, t - 1], pairwise[:, label], n_labels)
        y[t - 1] = label


@helper
def best_pairs_by_count(unary, pairwise, triples, truth, n_labels, value):
    r"""Fill ``value[m, t, j, k]``: the best score of a path to label k after label j with m wrong labels.

    Scores depend on three labels in a row:

    .. math:: v_{m,t}(j, k) = u_t(k) + p(j, k)
              + \max_i \left( v_{m - [k \ne y_t], t - 1}(i, j) + q(i, j, k) \right)

    At the first position j is 0.

    Parameters
    ----------
    unary, pairwise, triples : arrays
        As for `second_order_viterbi`.
    truth : int array of shape (length,)
    n_labels : int
    value : array of shape (at least length + 1, at least length, n_labels, width)
    """
    _begin(unary, truth, n_labels, value[:, :, 0])
    for t in range(1, unary.shape[0]):
        for m in range(t + 2):
            for j in range(n_labels):
                row, right = value[m, t, j], truth[t]
                if m > 0:
                    _arrive(value[m - 1, t - 1], t, j, triples[j], n_labels, row)
                else:
                    fill(row, -np.inf)
                before = value[m, t - 1]
                row[right] = _arrive_at(before, t, j, triples[j, :, right], n_labels) if m <= t else -np.inf
                add_scaled(1.0, pairwise[j], row)
                add_scaled(1.0, unary[t], row)


@helper
def _arrive(before, t, j, triples, n_labels, out):
    """Write the best scores of paths to label j at position t - 1 and each label at position t."""
    if t == 1:
        fill(out, before[0, j])
    else:
        best_predecessors(before[:, j], triples, n_labels, out)


@helper
def _arrive_at(before, t, j, triples, n_labels):
    """Return the best score of a path to label j at position t - 1 and one given label at position t."""
    if t == 1:
        return before[0, j]
    i = best_predecessor(before[:, j], triples, n_labels)
    return before[i, j] + triples[i]


@helper
def best_scores_of_pairs(value, length, n_labels, scores):
    """Write the score of the best path for each number of wrong labels, if states are pairs of labels."""
    for m in range(length + 1):
        j, k = best_pair(value[m, length - 1], n_labels if length > 1 else 1, n_labels)
        scores[m] = value[m, length - 1, j, k]


@helper
def trace_back_pairs(value, triples, truth, m, last, n_labels, y):
    """Write the best path with m wrong labels that ends at position ``last``."""
    before, label = best_pair(value[m, last], n_labels if last > 0 else 1, n_labels)
    y[last] = label
    if last > 0:
        y[last - 1] = before
    for t in range(last, 1, -1):
        if y[t] != truth[t]:
            m -= 1
        y[t - 2] = best_predecessor(value[m, t - 1, :, y[t - 1]], triples[y[t - 1], :, y[t]], n_labels)
