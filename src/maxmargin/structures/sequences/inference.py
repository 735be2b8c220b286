"""Chains of first order: the best labelling, the k best, margins, and sums over all labellings."""

import math

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, copy, weighted_sum
from maxmargin.structures.recursions import (
    best_predecessor,
    best_predecessors,
    continue_best,
    exponentials,
    lead,
    powers_of_near,
    softmax,
    start_one,
    step_back,
    transpose,
    write_best,
)


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
def forward_backward(unary, pairwise, n_labels, value, joint, marginals, counts):
    r"""Compute the marginals of the distribution over paths with the probabilities

    .. math:: p(y) \propto \exp \left( \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t) \right) .

    Columns may be padded beyond ``n_labels``. The padding of marginals and counts becomes zero.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
        ``pairwise[j, k]`` is the score of label k after label j.
    n_labels : int
    value : array of shape (at least length, width)
        Workspace; receives v.
    joint : array of shape (2 * n_labels + 2, width)
        Workspace: the exponentials of one position, the terms factored out of them, their sums, and then
        the exponentials of ``pairwise``.
    marginals : array of shape (length, width)
        Receives the probability of each label at each position.
    counts : array of shape (n_labels, width)
        Receives the expected number of times that label k follows label j.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of the exponentials of all paths.
    """
    last, power = unary.shape[0] - 1, joint[n_labels + 2 :]
    top = powers_of_near(pairwise, n_labels, power)
    copy(unary[0], value[0])
    for t in range(1, last + 1):
        exponentials(value[t - 1], pairwise, power, top, n_labels, joint)
        for k in range(n_labels):
            value[t, k] = unary[t, k] + joint[n_labels, k] + math.log(joint[n_labels + 1, k])
    log_partition = softmax(value[last], n_labels, marginals[last])
    for j in range(n_labels):
        clear(counts[j])
    for t in range(last, 0, -1):
        exponentials(value[t - 1], pairwise, power, top, n_labels, joint)
        step_back(joint, n_labels, marginals[t], marginals[t - 1], counts)
    return log_partition


@helper
def path_margins(unary, pairwise, n_labels, value, turned, rows, y, margins):
    """Write the margins of the labels that `viterbi` found.

    Parameters
    ----------
    unary, pairwise, n_labels, value, y
        As for `viterbi`, after it.
    turned : array of shape (n_labels, width)
        Workspace: ``pairwise`` transposed, so that both passes run along rows.
    rows : array of shape (2, width)
        Workspace: the best scores after a position for each label, and sums.
    margins : array of shape (length,)
        Receives the margins.
    """
    after, total = rows[0], rows[1]
    transpose(pairwise, n_labels, turned)
    clear(after)
    for t in range(unary.shape[0] - 1, -1, -1):
        weighted_sum(1.0, value[t], 1.0, after, total)
        margins[t] = lead(total, n_labels, y[t])
        weighted_sum(1.0, unary[t], 1.0, after, total)
        best_predecessors(total, turned, n_labels, after)


@helper
def k_best_paths(unary, pairwise, work, y, scores):
    """Find the k labellings of largest score, best first; ties go to the smaller label, from the end.

    Parameters
    ----------
    unary : array of shape (length, at least n_labels)
    pairwise : array of shape (n_labels, at least n_labels)
        ``pairwise[j, k]`` is the score of label k after label j.
    work : KBestWork
    y : int array of shape (k, at least length)
        Receives the labellings.
    scores : array of shape (k,)
        Receives their scores; -inf if there are fewer labellings.
    """
    length, n_labels = unary.shape[0], work.taken.shape[0]
    for label in range(n_labels):
        start_one(unary[0, label], work.value[0, label])
    for t in range(1, length):
        for label in range(n_labels):
            continue_best(t, label, unary[t, label], 0, pairwise[:, label], work)
    write_best(length - 1, work, y, scores)
