"""The k best paths through a trellis."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, check_memory
from maxmargin.compiling import helper


class KBestWork(NamedTuple):
    """Work space for k paths of up to some length.

    Attributes
    ----------
    value : array of shape (length, n_states, k)
        Scores of the best paths that end in a state at a position, best first; -inf where there is none. A
        state is a label, or two in a row.
    before, rank : int arrays of shape (length, n_states, k)
        The state before, and which of its paths leads there.
    taken : int array of shape (n_states,)
        How many paths of each state have been continued.
    """

    value: FloatArray
    before: IntArray
    rank: IntArray
    taken: IntArray


def k_best_work(length: int, n_states: int, k: int) -> KBestWork:
    """Return work space for ``k`` paths of up to this length."""
    shape = (length, n_states, k)
    check_memory(24 * length * n_states * k, f"predict_k_best: the {k} best outputs", "use a smaller k")
    before, rank = (np.zeros(shape, dtype=np.int64) for _ in range(2))
    return KBestWork(np.zeros(shape), before, rank, np.zeros(n_states, dtype=np.int64))


@helper
def k_best_paths(unary, pairwise, work, y, scores):
    """Find the labellings of largest score, from the best on; ties go to the smaller label, from the end.

    Parameters
    ----------
    unary : array of shape (length, at least n_labels)
    pairwise : array of shape (n_labels, at least n_labels)
        ``pairwise[j, k]`` is the score of label k after label j.
    work : KBestWork
    y : int array of shape (k, at least length)
        Receives the labellings.
    scores : array of shape (k,)
        Receives their scores; -inf where there is no other labelling.
    """
    length, n_labels = unary.shape[0], work.taken.shape[0]
    for label in range(n_labels):
        _start_one(unary[0, label], work.value[0, label])
    for t in range(1, length):
        for label in range(n_labels):
            _continue_best(t, label, unary[t, label], 0, pairwise[:, label], work)
    _write_best(length - 1, work, y, scores)


@helper
def k_best_second_order(unary, pairwise, triples, n_labels, work, y, scores):
    """The same for scores of three labels in a row.

    A state is a label k after a label j, and has the number ``k * n_labels + j``: the ones that lead to it,
    a label j after any other, stand in a row. At the first position there is no j but 0.

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
            _start_one(unary[0, k] if j == 0 else -np.inf, work.value[0, state])
            if length > 1:
                _start_one(unary[0, j] + pairwise[j, k] + unary[1, k], work.value[1, state])
                work.before[1, state, 0], work.rank[1, state, 0] = j * n_labels, 0
    for t in range(2, length):
        for k in range(n_labels):
            for j in range(n_labels):
                gain = pairwise[j, k] + unary[t, k]
                _continue_best(t, k * n_labels + j, gain, j * n_labels, triples[j, :, k], work)
    _write_best(length - 1, work, y, scores)
    for r in range(scores.shape[0]):
        if scores[r] > -np.inf:
            for t in range(length):
                y[r, t] //= n_labels


@helper
def _start_one(score, value):
    """One path, and no other."""
    value[0] = score
    for r in range(1, value.shape[0]):
        value[r] = -np.inf


@helper
def _write_best(last, work, y, scores):
    """Write the best paths of all that end at position ``last``, as states, and their scores."""
    for state in range(work.taken.shape[0]):
        work.taken[state] = 0
    for r in range(scores.shape[0]):
        state, rank = pick_best(work.value[last], work.taken, r, scores)
        if scores[r] > -np.inf:
            _trace(last, state, rank, work, y[r])


@helper
def pick_best(lists, taken, r, scores):
    """Take the best of what is left of some lists, each in order; return which list, and its place there.

    Parameters
    ----------
    lists : array of shape (n_lists, k)
    taken : int array of shape (n_lists,)
        How many of each have been taken; one more afterwards.
    r : int
    scores : array of shape (k,)
        Receives the best at place r; -inf if nothing is left.
    """
    best, score = 0, -np.inf
    for s in range(lists.shape[0]):
        if taken[s] < lists.shape[1] and lists[s, taken[s]] > score:
            best, score = s, lists[s, taken[s]]
    scores[r] = score
    taken[best] += 1
    return best, taken[best] - 1


@helper
def _continue_best(t, state, gain, first, steps, work):
    """Merge the paths of the states before, from ``first`` on and each in order, into those to ``state``."""
    lists = work.value[t - 1, first : first + steps.shape[0]]
    value, before, rank = work.value[t, state], work.before[t, state], work.rank[t, state]
    merge_best(lists, steps, gain, first, work.taken, value, before, rank)


@helper
def merge_best(lists, steps, gain, first, taken, value, before, rank):
    """Write the k best of some lists, each in order and with a score of its own.

    Parameters
    ----------
    lists : array of shape (n_lists, k)
    steps : array of shape (n_lists,)
        What is added to the scores of each list.
    gain : float
        What is added to all.
    first : int
        The number of the first list.
    taken : int array of shape (at least n_lists,)
        Work space.
    value : array of shape (k,)
        Receives the scores, best first; -inf where there are no more.
    before, rank : int arrays of shape (k,)
        Receive the number of the list of each, and its place there.
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
def _trace(t, state, rank, work, y):
    """Write the path that ends in ``state`` at position t."""
    y[t] = state
    while t > 0:
        state, rank = work.before[t, state, rank], work.rank[t, state, rank]
        t -= 1
        y[t] = state
