r"""Steps of dynamic programs over labels: the best, the sum over and the k best of all predecessors.

At the end are those of slack rescaling, which find the best path for each number of wrong labels.

Sums are those of a Gibbs distribution over all paths through a trellis. The forward pass sums in the log
domain, with the largest term of each sum factored out. The backward pass computes marginals from the
conditional distributions of a label given the next one,

.. math::

    v_t(k) &= u_t(k) + \log \sum_j e^{v_{t-1}(j) + p(j, k)} \\
    q_t(j \mid k) &\propto e^{v_{t-1}(j) + p(j, k)}, \qquad
    \mu_{t-1, t}(j, k) = q_t(j \mid k) \, \mu_t(k), \qquad
    \mu_{t-1}(j) = \sum_k \mu_{t-1, t}(j, k) .

Since every :math:`q_t(\cdot \mid k)` is normalised to sum to one, whatever the magnitude of the scores, the
marginals are those of a distribution, up to rounding in sums of probabilities. Exponentials dominate the
cost. If the scores of pairs are close enough that no exponential of one vanishes beside another, these are
computed once for all positions, and multiplied by those of :math:`v_{t-1}`.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, fill
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros, check_memory

# Score of a forbidden transition: finite, so that sums are finite, but too low for other scores to offset.
BARRIER = -1e30
# Scores below this include a barrier.
LEAST = BARRIER / 2
# Products and quotients of exponentials of numbers in (-NEAR, 0] neither underflow nor overflow.
NEAR = 300.0


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


@helper
def best_pair(value, n_before, n_labels):
    """Return the labels j < n_before and k of largest ``value[j, k]``; ties go to the smaller k, then j."""
    before, best = 0, 0
    for k in range(n_labels):
        for j in range(n_before):
            if value[j, k] > value[before, best]:
                before, best = j, k
    return before, best


@helper
def lead(value, n_labels, label):
    """Return by how much ``value[label]`` exceeds the largest other value; zero if it does not."""
    other = -np.inf
    for k in range(n_labels):
        other = value[k] if k != label and value[k] > other else other
    return max(value[label] - other, 0.0)


@helper
def transpose(matrix, n, out):
    """``out[:n, :n] = matrix[:n, :n].T``"""
    for j in range(n):
        for k in range(n):
            out[k, j] = matrix[j, k]


@helper
def powers_of_near(pairwise, n_labels, power):
    """``power = exp(pairwise - top)``; return the largest score, top, or infinity if scores are far apart."""
    top, bottom = pairwise[0, 0], pairwise[0, 0]
    for j in range(n_labels):
        for k in range(n_labels):
            top = pairwise[j, k] if pairwise[j, k] > top else top
            bottom = pairwise[j, k] if pairwise[j, k] < bottom else bottom
    if not top - bottom < NEAR:
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
        multiply_powers(before, power, top, n_labels, joint)
    else:
        best_predecessors(before, pairwise, n_labels, out)
        for j in range(n_labels):
            for k in range(n_labels):
                joint[j, k] = math.exp(before[j] + pairwise[j, k] - out[k])
    for j in range(n_labels):
        add_scaled(1.0, joint[j, :n_labels], total[:n_labels])


@helper
def multiply_powers(before, power, top, n_labels, joint):
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


@helper
def softmax(scores, n_labels, p):
    r"""Write :math:`p_k \propto e^{u_k}` and return :math:`\log \sum_k e^{u_k}`.

    The largest score is subtracted first, so that no exponential overflows and one of them is one.
    ``scores`` and ``p`` may be the same array, and may be padded beyond ``n_labels``; the padding of p
    becomes zero. Exponentials are those of `math`, whose bits do not depend on the caller.
    """
    largest = scores[0]
    for k in range(1, n_labels):
        largest = scores[k] if scores[k] > largest else largest
    total = 0.0
    for k in range(n_labels):
        p[k] = math.exp(scores[k] - largest)
        total += p[k]
    for k in range(n_labels):
        p[k] /= total
    for k in range(n_labels, p.shape[0]):
        p[k] = 0.0
    return largest + math.log(total)


class KBestWork(NamedTuple):
    """Workspace for k paths of up to a given length.

    Attributes
    ----------
    value : array of shape (length, n_states, k)
        Scores of the best paths that end in a state at a position, best first; -inf if there are fewer. A
        state is a label, or a pair of consecutive labels.
    before, rank : int arrays of shape (length, n_states, k)
        The preceding state, and the rank of the path among those that end there.
    taken : int array of shape (n_states,)
        Number of paths of each state that have been used.
    """

    value: FloatArray
    before: IntArray
    rank: IntArray
    taken: IntArray


def k_best_work(length: int, n_states: int, k: int) -> KBestWork:
    """Return a workspace for ``k`` paths of up to this length."""
    shape = (length, n_states, k)
    check_memory(24 * length * n_states * k, f"predict_k_best: the {k} best outputs", "use a smaller k")
    before, rank = (np.zeros(shape, dtype=np.int64) for _ in range(2))
    return KBestWork(np.zeros(shape), before, rank, np.zeros(n_states, dtype=np.int64))


@helper
def start_one(score, value):
    """Store one path and no other."""
    value[0] = score
    for r in range(1, value.shape[0]):
        value[r] = -np.inf


@helper
def write_best(last, work, y, scores):
    """Write the best paths that end at position ``last``, as states, and their scores."""
    for state in range(work.taken.shape[0]):
        work.taken[state] = 0
    for r in range(scores.shape[0]):
        state, rank = pick_best(work.value[last], work.taken, r, scores)
        if scores[r] > -np.inf:
            trace_ranked(last, state, rank, work, y[r])


@helper
def pick_best(lists, taken, r, scores):
    """Take the best remaining entry of some sorted lists; return its list, and its place in that list.

    Parameters
    ----------
    lists : array of shape (n_lists, k)
    taken : int array of shape (n_lists,)
        Number of entries taken from each list; updated.
    r : int
    scores : array of shape (k,)
        Receives the entry at place r; -inf if nothing is left.
    """
    best, score = 0, -np.inf
    for s in range(lists.shape[0]):
        if taken[s] < lists.shape[1] and lists[s, taken[s]] > score:
            best, score = s, lists[s, taken[s]]
    scores[r] = score
    taken[best] += 1
    return best, taken[best] - 1


@helper
def continue_best(t, state, gain, first, steps, work):
    """Merge the paths of the preceding states, from ``first`` on, into the best paths to ``state``."""
    lists = work.value[t - 1, first : first + steps.shape[0]]
    value, before, rank = work.value[t, state], work.before[t, state], work.rank[t, state]
    merge_best(lists, steps, gain, first, work.taken, value, before, rank)


@helper
def merge_best(lists, steps, gain, first, taken, value, before, rank):
    """Write the k best entries of some sorted lists, each list with its own offset.

    Parameters
    ----------
    lists : array of shape (n_lists, k)
    steps : array of shape (n_lists,)
        Added to the entries of each list.
    gain : float
        Added to all entries.
    first : int
        The number of the first list.
    taken : int array of shape (at least n_lists,)
        Workspace.
    value : array of shape (k,)
        Receives the scores, best first; -inf if there are fewer.
    before, rank : int arrays of shape (k,)
        Receive the number of the list of each entry, and its place there.
    """
    k = value.shape[0]
    for j in range(steps.shape[0]):
        taken[j] = 0
    for r in range(k):
        best, score = 0, -np.inf
        for j in range(steps.shape[0]):
            if taken[j] < k:
                candidate = lists[j, taken[j]] + steps[j]
                if candidate > score:
                    best, score = j, candidate
        value[r] = score + gain
        before[r], rank[r] = first + best, min(taken[best], k - 1)
        taken[best] += 1


@helper
def trace_ranked(t, state, rank, work, y):
    """Write the path that ends in ``state`` at position t."""
    y[t] = state
    while t > 0:
        state, rank = work.before[t, state, rank], work.rank[t, state, rank]
        t -= 1
        y[t] = state


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
