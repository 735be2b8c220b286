r"""The Gibbs distribution over all paths through a trellis: forward sums, backward marginals.

The forward pass sums in the log domain, with the largest term of each sum factored out. The backward pass
computes marginals from the conditional distributions of a label given the next one,

.. math::

    v_t(k) &= u_t(k) + \log \sum_j e^{v_{t-1}(j) + p(j, k)} \\
    q_t(j \mid k) &\propto e^{v_{t-1}(j) + p(j, k)}, \qquad
    \mu_{t-1, t}(j, k) = q_t(j \mid k) \, \mu_t(k), \qquad
    \mu_{t-1}(j) = \sum_k \mu_{t-1, t}(j, k) .

Since every :math:`q_t(\cdot \mid k)` is normalised to sum to one, whatever the magnitude of the scores, the
marginals are those of a distribution, up to rounding in sums of probabilities.

Exponentials dominate the cost. If the scores of pairs are close enough that no exponential of one vanishes
beside another, these exponentials are computed once for all positions, and multiplied by those of
:math:`v_{t-1}`.
"""

import math

import numpy as np

from maxmargin.compiling import helper
from maxmargin.inference.softmax import softmax
from maxmargin.inference.viterbi import best_predecessors
from maxmargin.loops import add_scaled, clear, copy

# Products and quotients of exponentials of numbers in (-_NEAR, 0] neither underflow nor overflow.
_NEAR = 300.0


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
def powers_of_near(pairwise, n_labels, power):
    """``power = exp(pairwise - top)``; return the largest score, top, or infinity if scores are far apart."""
    top, bottom = pairwise[0, 0], pairwise[0, 0]
    for j in range(n_labels):
        for k in range(n_labels):
            top = pairwise[j, k] if pairwise[j, k] > top else top
            bottom = pairwise[j, k] if pairwise[j, k] < bottom else bottom
    if not top - bottom < _NEAR:
        return np.inf
    for j in range(n_labels):
        for k in range(n_labels):
            power[j, k] = math.exp(pairwise[j, k] - top)
    return top


@helper
def exponentials(before, pairwise, power, top, n_labels, joint):
    """``joint[j, k] = exp(before[j] + pairwise[j, k] - out[k])``; also write ``out`` and the sums over j."""
    out, total = joint[n_labels], joint[n_labels + 1]
    clear(total)
    if top < np.inf:
        _multiply_powers(before, power, top, n_labels, joint)
    else:
        best_predecessors(before, pairwise, n_labels, out)
        for j in range(n_labels):
            for k in range(n_labels):
                joint[j, k] = math.exp(before[j] + pairwise[j, k] - out[k])
    for j in range(n_labels):
        add_scaled(1.0, joint[j, :n_labels], total[:n_labels])


@helper
def _multiply_powers(before, power, top, n_labels, joint):
    """Fill ``joint`` from the exponentials of ``pairwise``; ``out`` is then the same for every k."""
    largest = before[0]
    for j in range(1, n_labels):
        largest = before[j] if before[j] > largest else largest
    for k in range(n_labels):
        joint[n_labels, k] = largest + top
    for j in range(n_labels):
        factor = math.exp(before[j] - largest)
        for k in range(n_labels):
            joint[j, k] = factor * power[j, k]


@helper
def step_back(joint, n_labels, after, before, counts):
    """Compute the marginals of a position from those of the next, and add those of the pair to the counts."""
    total = joint[n_labels + 1]
    for k in range(n_labels):
        total[k] = after[k] / total[k]
    clear(before)
    for j in range(n_labels):
        mass = 0.0
        for k in range(n_labels):
            pair = joint[j, k] * total[k]
            counts[j, k] += pair
            mass += pair
        before[j] = mass
