"""The best path through a trellis (Viterbi)."""

import numpy as np

from maxmargin.compiling import helper
from maxmargin.loops import add_scaled, copy


@helper
def viterbi(unary, pairwise, n_labels, value, y):
    r"""Find the labelling of largest score and return that score.

    .. math:: \max_y \; \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t)

    Columns of ``unary``, ``pairwise`` and ``value`` may be padded beyond ``n_labels``; no padded label is
    ever chosen. Ties go to the smaller label, from the last position backwards.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
        ``pairwise[j, k]`` is the score of label k after label j.
    n_labels : int
    value : array of shape (at least length, width)
        Workspace: ``value[t, k]`` becomes the score of the best path that ends in label k at position t.
    y : int array of length at least ``length``
        Receives the labelling.
    """
    last = unary.shape[0] - 1
    copy(unary[0], value[0])
    for t in range(1, last + 1):
        best_predecessors(value[t - 1], pairwise, n_labels, value[t])
        add_scaled(1.0, unary[t], value[t])
    best = 0
    for k in range(1, n_labels):
        if value[last, k] > value[last, best]:
            best = k
    score = value[last, best]
    y[last] = best
    for t in range(last, 0, -1):
        best = best_predecessor(value[t - 1], pairwise[:, best], n_labels)
        y[t - 1] = best
    return score


@helper
def best_predecessors(before, pairwise, n_labels, out):
    """``out[k] = max_j before[j] + pairwise[j, k]``, four j at a time to reduce memory traffic."""
    first, row = before[0], pairwise[0]
    for k in range(out.shape[0]):
        out[k] = first + row[k]
    quads = (n_labels - 1) // 4
    for quad in range(quads):
        j = 1 + 4 * quad
        b0, b1, b2, b3 = before[j], before[j + 1], before[j + 2], before[j + 3]
        p0, p1, p2, p3 = pairwise[j], pairwise[j + 1], pairwise[j + 2], pairwise[j + 3]
        for k in range(out.shape[0]):
            s0, s1, s2, s3 = b0 + p0[k], b1 + p1[k], b2 + p2[k], b3 + p3[k]
            low = s0 if s0 > s1 else s1
            high = s2 if s2 > s3 else s3
            best = low if low > high else high
            out[k] = best if best > out[k] else out[k]
    for j in range(1 + 4 * quads, n_labels):
        last, row = before[j], pairwise[j]
        for k in range(out.shape[0]):
            score = last + row[k]
            out[k] = score if score > out[k] else out[k]


@helper
def best_predecessor(before, column, n_labels):
    """``argmax_j before[j] + column[j]``: needed for only one label per position, so not tabulated."""
    best, score = 0, -np.inf
    for j in range(n_labels):
        candidate = before[j] + column[j]
        best = j if candidate > score else best
        score = candidate if candidate > score else score
    return best
