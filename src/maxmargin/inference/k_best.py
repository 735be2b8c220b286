"""The k best paths through a trellis."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, check_memory
from maxmargin.compiling import helper


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
        _start_one(unary[0, label], work.value[0, label])
    for t in range(1, length):
        for label in range(n_labels):
            _continue_best(t, label, unary[t, label], 0, pairwise[:, label], work)
    _write_best(length - 1, work, y, scores)


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
    """Store one path and no other."""
    value[0] = score
    for r in range(1, value.shape[0]):
        value[r] = -np.inf


@helper
def _write_best(last, work, y, scores):
    """Write the best paths that end at position ``last``, as states, and their scores."""
    for state in range(work.taken.shape[0]):
        work.taken[state] = 0
    for r in range(scores.shape[0]):
        state, rank = pick_best(work.value[last], work.taken, r, scores)
        if scores[r] > -np.inf:
            _trace(last, state, rank, work, y[r])


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
def _continue_best(t, state, gain, first, steps, work):
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
def _trace(t, state, rank, work, y):
    """Write the path that ends in ``state`` at position t."""
    y[t] = state
    while t > 0:
        state, rank = work.before[t, state, rank], work.rank[t, state, rank]
        t -= 1
        y[t] = state
