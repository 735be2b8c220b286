r"""The Gibbs distribution over the labellings of a sequence whose scores depend on three labels in a row.

A state is a pair of neighbouring labels. For a given label in the middle, the step from pairs (i, j) to pairs
(j, k) is a step of `forward_backward`.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.inference.forward_backward import exponentials, powers_of_near, step_back
from maxmargin.inference.softmax import softmax
from maxmargin.loops import add_scaled, clear, scaled_copy


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
