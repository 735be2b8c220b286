"""The k best segmentations of a sequence."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.compiling import helper
from maxmargin.inference.k_best import KBestWork, k_best_work, merge_best, pick_best
from maxmargin.inference.segments import write_segment
from maxmargin.loops import add_scaled, clear


class KBestTrellis(NamedTuple):
    """Workspace for k segmentations.

    Attributes
    ----------
    opened : KBestWork
        For the best segmentations with a segment of a given label that starts at a token, less the sums of
        token scores before. Preceding states are labels of the segments that end there.
    closed : KBestWork
        For those with a segment that ends at a token. Preceding states are its lengths minus one.
    taken : int array
        Workspace of merges.
    """

    opened: KBestWork
    closed: KBestWork
    taken: IntArray


def k_best_trellis(length: int, n_labels: int, n_lengths: int, k: int) -> KBestTrellis:
    """Return a workspace for ``k`` segmentations of up to ``length`` tokens."""
    opened, closed = (k_best_work(length, n_labels, k) for _ in range(2))
    return KBestTrellis(opened, closed, np.zeros(max(n_labels, n_lengths), dtype=np.int64))


@helper
def k_best_segmentations(token_scores, pairs, n_labels, trellis, work, y, scores):
    """Find the k segmentations of largest score, best first; ties are broken as in `segment_viterbi`.

    Parameters
    ----------
    token_scores, pairs, n_labels, trellis
        As for `segment_viterbi`, without marked segments.
    work : KBestTrellis
    y : int array of shape (k, at least length)
        Receives twice the label of each token, plus one where a segment starts.
    scores : array of shape (k,)
        Receives their scores; -inf if there are fewer segmentations.
    """
    length, width = token_scores.shape[0], pairs.shape[1]
    clear(trellis.sums[0])
    for t in range(length):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        for k in range(n_labels):
            _open(t, k, pairs[:, k], trellis.opened[t, k] - before[k], work)
        for k in range(n_labels):
            _close(t, k, trellis.lengths[:, k], after[k] + token_scores[t, 2 * width + k], work)
    for k in range(n_labels):
        work.closed.taken[k] = 0
    for r in range(scores.shape[0]):
        label, rank = pick_best(work.closed.value[length - 1], work.closed.taken, r, scores)
        if scores[r] > -np.inf:
            _trace(length - 1, label, rank, work, y[r])


@helper
def _open(t, label, steps, gain, work):
    """Start a segment at token t, after any segment that ends before it."""
    opened, closed = work.opened, work.closed
    value, before, rank = opened.value[t, label], opened.before[t, label], opened.rank[t, label]
    if t > 0:
        merge_best(closed.value[t - 1], steps, gain, 0, work.taken, value, before, rank)
        return
    value[0] = gain
    for r in range(1, value.shape[0]):
        value[r] = -np.inf


@helper
def _close(t, label, lengths, gain, work):
    """End a segment at token t, for every possible start."""
    closed, first = work.closed, max(t + 1 - lengths.shape[0], 0)
    value, before, rank = closed.value[t, label], closed.before[t, label], closed.rank[t, label]
    starts = work.opened.value[first : t + 1, label][::-1]
    merge_best(starts, lengths[: t + 1 - first], gain, 0, work.taken, value, before, rank)


@helper
def _trace(t, label, rank, work, y):
    """Write the segmentation with this segment that ends at token t."""
    while t >= 0:
        start = t - work.closed.before[t, label, rank]
        rank = work.closed.rank[t, label, rank]
        write_segment(start, t, label, y)
        label, rank = work.opened.before[start, label, rank], work.opened.rank[start, label, rank]
        t = start - 1
