"""The best path through a trellis for each number of its labels that are wrong."""

import numpy as np

from maxmargin._compile import helper
from maxmargin.inference.viterbi import best_predecessor, best_predecessors
from maxmargin.rows import add_scaled, fill


@helper
def best_by_count(unary, pairwise, truth, n_labels, value):
    r"""Fill ``value[m, t, k]``: the best score of a path to label k at position t with m wrong labels so far.

    .. math:: v_{m,t}(k) = u_t(k) + \max_j \left( v_{m - [k \ne y_t], t - 1}(j) + p(j, k) \right)

    It is minus infinity where there is no such path. The number of wrong labels adds a factor of the length
    to the work of `viterbi`.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
    truth : int array of shape (length,)
    n_labels : int
    value : array of shape (at least length + 1, at least length, width)
    """
    length = unary.shape[0]
    _begin(unary, truth, n_labels, value)
    for t in range(1, length):
        for m in range(length + 1):
            row = value[m, t]
            if m > 0:
                best_predecessors(value[m - 1, t - 1], pairwise, n_labels, row)
            else:
                fill(row, -np.inf)
            right = truth[t]
            row[right] = -np.inf
            for j in range(n_labels):
                row[right] = max(row[right], value[m, t - 1, j] + pairwise[j, right])
            add_scaled(1.0, unary[t], row)


@helper
def _begin(unary, truth, n_labels, value):
    """The first position: one label is right, the others are wrong."""
    for m in range(unary.shape[0] + 1):
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
def trace_back(value, pairwise, truth, m, last, n_labels, y):
    """Write the best path with m wrong labels that ends at position ``last``."""
    label = best_end(value, m, last, n_labels)
    y[last] = label
    for t in range(last, 0, -1):
        if label != truth[t]:
            m -= 1
        label = best_predecessor(value[m, t - 1], pairwise[:, label], n_labels)
        y[t - 1] = label
