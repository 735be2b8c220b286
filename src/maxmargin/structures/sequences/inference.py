"""Sequences: the best labelling, margins, the k best, and sums over all labellings.

Loops of first order come first. In chains of second order, whose scores depend on three labels in a row, a
state is a pair of neighbouring labels. For a given label j in the middle, the step from pairs (i, j) to pairs
(j, k) is a step of the loop of first order, so a position takes ``n_labels ** 3`` additions.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, copy, scaled_copy, weighted_sum
from maxmargin.runtime.arrays import FloatArray, aligned_zeros
from maxmargin.structures.recursions import (
    best_pair,
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


@helper
def second_order_viterbi(unary, pairwise, triples, n_labels, value, y):
    r"""Find the labelling of largest score.

    .. math:: \max_y \; \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t)
              + \sum_{t \ge 2} q(y_{t-2}, y_{t-1}, y_t)

    Padding and ties are as in `viterbi`.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
        ``pairwise[j, k]`` is the score of label k after label j.
    triples : array of shape (n_labels, n_labels, width)
        ``triples[j, i, k]`` is the score of label k after label j after label i.
    n_labels : int
    value : array of shape (at least length, n_labels, width)
        Workspace: ``value[t, j, k]`` becomes the score of the best path that ends in label j at position
        t - 1 and label k at position t. At the first position j is 0.
    y : int array of length at least ``length``
        Receives the labelling.
    """
    last = unary.shape[0] - 1
    for k in range(unary.shape[1]):
        value[0, 0, k] = unary[0, k]
    for t in range(1, last + 1):
        for j in range(n_labels):
            ends = value[t, j]
            if t == 1:
                for k in range(ends.shape[0]):
                    ends[k] = value[0, 0, j]
            else:
                best_predecessors(value[t - 1, :, j], triples[j], n_labels, ends)
            for k in range(ends.shape[0]):
                ends[k] += pairwise[j, k] + unary[t, k]
    _trace_back(value[: last + 1], triples, n_labels, y)


@helper
def _trace_back(value, triples, n_labels, y):
    """Write the labelling, from its last pair to the first."""
    last = value.shape[0] - 1
    before, best = best_pair(value[last], n_labels if last > 0 else 1, n_labels)
    y[last] = best
    if last > 0:
        y[last - 1] = before
    for t in range(last, 1, -1):
        y[t - 2] = best_predecessor(value[t - 1, :, y[t - 1]], triples[y[t - 1], :, y[t]], n_labels)


@helper
def second_order_margins(unary, pairwise, triples, n_labels, value, turned, behind, rows, y, margins):
    """Write the margins of the labels that `second_order_viterbi` found.

    Parameters
    ----------
    unary, pairwise, triples, n_labels, value, y
        As for `second_order_viterbi`, after it.
    turned : array of shape (n_labels, n_labels, width)
        Workspace: ``triples`` with the outer labels exchanged.
    behind : array of shape (2, n_labels, width)
        Workspace: ``behind[t % 2, k, j]`` is the best score after position t, of label k, after label j.
    rows : array of shape (2, width)
        Workspace.
    margins : array of shape (length,)
        Receives the margins.
    """
    last = unary.shape[0] - 1
    if last == 0:
        margins[0] = lead(value[0, 0], n_labels, y[0])
        return
    for j in range(n_labels):
        transpose(triples[j], n_labels, turned[j])
        clear(behind[last % 2, j])
    for t in range(last, 0, -1):
        after, before = behind[t % 2], behind[(t - 1) % 2]
        _best_of_pairs(value[t], after, n_labels, rows[0], rows[1])
        margins[t] = lead(rows[1], n_labels, y[t])
        for j in range(n_labels):
            for k in range(n_labels):
                rows[1, k] = pairwise[j, k] + unary[t, k] + after[k, j]
            best_predecessors(rows[1], turned[j], n_labels, before[j])
    margins[0] = lead(rows[0], n_labels, y[0])


@helper
def _best_of_pairs(value, after, n_labels, first, second):
    """Write the max-marginals of two neighbours, from those of their pairs of labels."""
    for k in range(n_labels):
        first[k] = second[k] = -np.inf
    for j in range(n_labels):
        for k in range(n_labels):
            total = value[j, k] + after[k, j]
            first[j] = total if total > first[j] else first[j]
            second[k] = total if total > second[k] else second[k]


@helper
def k_best_second_order(unary, pairwise, triples, n_labels, work, y, scores):
    """Find the k labellings of largest score, if scores depend on three labels in a row.

    A state is a label k after a label j, and has number ``k * n_labels + j``. The states that lead to it,
    label j after any other, are contiguous. At the first position j is 0.

    Parameters
    ----------
    unary, pairwise, triples : arrays
        As for `second_order_viterbi`.
    n_labels : int
    work : KBestWork
        For n_labels ** 2 states.
    y, scores : arrays
        As for `k_best_paths`.
    """
    length = unary.shape[0]
    for k in range(n_labels):
        for j in range(n_labels):
            state = k * n_labels + j
            start_one(unary[0, k] if j == 0 else -np.inf, work.value[0, state])
            if length > 1:
                start_one(unary[0, j] + pairwise[j, k] + unary[1, k], work.value[1, state])
                work.before[1, state, 0], work.rank[1, state, 0] = j * n_labels, 0
    for t in range(2, length):
        for k in range(n_labels):
            for j in range(n_labels):
                gain = pairwise[j, k] + unary[t, k]
                continue_best(t, k * n_labels + j, gain, j * n_labels, triples[j, :, k], work)
    write_best(length - 1, work, y, scores)
    for r in range(scores.shape[0]):
        if scores[r] > -np.inf:
            for t in range(length):
                y[r, t] //= n_labels


class PairSums(NamedTuple):
    """Workspace.

    Attributes
    ----------
    joint : array of shape (n_labels + 2, width)
        Exponentials of one step, as in `forward_backward`.
    powers, tops : arrays of shapes (n_labels, n_labels, width) and (n_labels,)
        Exponentials of the scores of trigrams, by their label in the middle; see `powers_of_near`.
    pairs : array of shape (2, n_labels, width)
        The probabilities of the pairs of labels at two positions.
    """

    joint: FloatArray
    powers: FloatArray
    tops: FloatArray
    pairs: FloatArray


def pair_sums(n_labels: int, width: int) -> PairSums:
    """Return a workspace for sequences of any length."""
    powers, pairs = aligned_zeros(n_labels, n_labels, width), aligned_zeros(2, n_labels, width)
    return PairSums(aligned_zeros(n_labels + 2, width), powers, np.zeros(n_labels), pairs)


@helper
def second_order_means(unary, pairwise, triples, n_labels, value, work, marginals, counts, trigrams):
    r"""Compute the marginals of the distribution over labellings with the probabilities

    .. math:: p(y) \propto \exp \Big( \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t)
              + \sum_{t \ge 2} q(y_{t-2}, y_{t-1}, y_t) \Big) .

    Columns may be padded beyond ``n_labels``. The padding of marginals and counts becomes zero.

    Parameters
    ----------
    unary, pairwise, triples : arrays
        As for `second_order_viterbi`.
    n_labels : int
    value : array of shape (at least length, n_labels, width)
        Workspace: the logarithm of the sum over all paths that end in label j at position t - 1 and label k
        at position t. At the first position j is 0.
    work : PairSums
    marginals : array of shape (length, width)
        Receives the probability of each label at each position.
    counts : array of shape (n_labels, width)
        Receives the expected number of times that label k follows label j.
    trigrams : array of shape (n_labels, n_labels, width)
        Receives the expected number of each trigram, in the order of ``triples``.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of the exponentials of all labellings.
    """
    last, pairs = unary.shape[0] - 1, work.pairs
    for j in range(n_labels):
        clear(counts[j])
        for i in range(n_labels):
            clear(trigrams[j, i])
        work.tops[j] = powers_of_near(triples[j], n_labels, work.powers[j])
    if last == 0:
        return softmax(unary[0], n_labels, marginals[0])
    _sum_forward(unary, pairwise, triples, n_labels, value, work)
    log_partition = _softmax_of_pairs(value[last], n_labels, work.joint, pairs[last & 1])
    for t in range(last, 0, -1):
        _add_up(pairs[t & 1], n_labels, marginals[t], counts)
        if t > 1:
            after, before = pairs[t & 1], pairs[(t - 1) & 1]
            _step_pairs_back(value[t - 1], triples, n_labels, work, after, before, trigrams)
    clear(marginals[0])
    for j in range(n_labels):
        for k in range(n_labels):
            marginals[0, j] += pairs[1, j, k]
    return log_partition


@helper
def _sum_forward(unary, pairwise, triples, n_labels, value, work):
    """Fill ``value`` from the second position on."""
    joint = work.joint
    for t in range(1, unary.shape[0]):
        for j in range(n_labels):
            row = value[t, j]
            for k in range(n_labels):
                row[k] = pairwise[j, k] + unary[t, k]
            if t == 1:
                for k in range(n_labels):
                    row[k] += unary[0, j]
            else:
                before = value[t - 1, :, j]
                exponentials(before, triples[j], work.powers[j], work.tops[j], n_labels, joint)
                for k in range(n_labels):
                    row[k] += joint[n_labels, k] + math.log(joint[n_labels + 1, k])


@helper
def _softmax_of_pairs(value, n_labels, joint, pairs):
    """Write the probabilities of the last two labels, and return the log-partition."""
    sums, p = joint[0], joint[1]
    for j in range(n_labels):
        sums[j] = softmax(value[j], n_labels, pairs[j])
    log_partition = softmax(sums, n_labels, p)
    for j in range(n_labels):
        scaled_copy(p[j], pairs[j], pairs[j])
    return log_partition


@helper
def _add_up(pairs, n_labels, marginals, counts):
    """Write the marginals of a position, and add the probabilities of its pairs to the counts."""
    clear(marginals)
    for j in range(n_labels):
        add_scaled(1.0, pairs[j], marginals)
        add_scaled(1.0, pairs[j], counts[j])


@helper
def _step_pairs_back(value, triples, n_labels, work, after, before, trigrams):
    """Compute the probabilities of the pairs of a position from those of the next."""
    for i in range(n_labels):
        clear(before[i])
    for j in range(n_labels):
        exponentials(value[:, j], triples[j], work.powers[j], work.tops[j], n_labels, work.joint)
        step_back(work.joint, n_labels, after[j], before[:, j], trigrams[j])
