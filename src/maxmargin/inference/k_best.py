"""The k best paths through a trellis."""

from typing import NamedTuple

import numpy as np

from maxmargin._compile import helper
from maxmargin.rows import FloatArray, IntArray


class KBestWork(NamedTuple):
    """Work space for k paths of up to some length.

    Attributes
    ----------
    value : array of shape (length, n_labels, k)
        Scores of the best paths that end in a label at a position, best first; -inf where there is none.
    before, rank : int arrays of shape (length, n_labels, k)
        The label before, and which of its paths leads there.
    taken : int array of shape (n_labels,)
        How many paths of each label have been continued.
    """

    value: FloatArray
    before: IntArray
    rank: IntArray
    taken: IntArray


def k_best_work(length: int, n_labels: int, k: int) -> KBestWork:
    """Return work space for ``k`` paths of up to this length."""
    shape = (length, n_labels, k)
    before, rank = (np.zeros(shape, dtype=np.int64) for _ in range(2))
    return KBestWork(np.zeros(shape), before, rank, np.zeros(n_labels, dtype=np.int64))


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
    length, n_labels, k = unary.shape[0], work.taken.shape[0], scores.shape[0]
    for label in range(n_labels):
        for r in range(k):
            work.value[0, label, r] = unary[0, label] if r == 0 else -np.inf
    for t in range(1, length):
        for label in range(n_labels):
            _continue_best(t, label, unary[t, label], pairwise, work)
    for label in range(n_labels):
        work.taken[label] = 0
    for r in range(k):
        label = _next_best(work.value[length - 1], work.taken)
        rank = work.taken[label]
        scores[r] = work.value[length - 1, label, rank] if rank < k else -np.inf
        work.taken[label] += 1
        if scores[r] > -np.inf:
            _trace(length - 1, label, rank, work, y[r])


@helper
def _next_best(value, taken):
    """The label whose next path is best."""
    best, score = 0, -np.inf
    for j in range(value.shape[0]):
        if taken[j] < value.shape[1] and value[j, taken[j]] > score:
            best, score = j, value[j, taken[j]]
    return best


@helper
def _continue_best(t, label, unary, pairwise, work):
    """Merge the paths of all labels before, each in order, into those that end in ``label`` at position t."""
    n_labels, k = work.value.shape[1], work.value.shape[2]
    for j in range(n_labels):
        work.taken[j] = 0
    for r in range(k):
        best, score = 0, -np.inf
        for j in range(n_labels):
            if work.taken[j] < k:
                candidate = work.value[t - 1, j, work.taken[j]] + pairwise[j, label]
                if candidate > score:
                    best, score = j, candidate
        work.value[t, label, r] = score + unary
        work.before[t, label, r], work.rank[t, label, r] = best, min(work.taken[best], k - 1)
        work.taken[best] += 1


@helper
def _trace(t, label, rank, work, y):
    """Write the path that ends in ``label`` at position t."""
    y[t] = label
    while t > 0:
        label, rank = work.before[t, label, rank], work.rank[t, label, rank]
        t -= 1
        y[t] = label
