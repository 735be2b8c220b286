"""The best segmentation for each number of wrong tags."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper
from maxmargin.inference.segments import write_segment
from maxmargin.loops import add_scaled, clear, fill


class CountedSegments(NamedTuple):
    """Workspace.

    Attributes
    ----------
    opened : array of shape (length, n_labels, length + 1)
        ``opened[t, k, m]`` is the score of the best segmentation of the tokens before t, with m wrong tags,
        and of a segment with label k that starts at t, less the sum of the token scores before t.
    closed : array of shape (length, n_labels, length + 1)
        ``closed[t, k, m]`` is the score of the best segmentation with a segment of label k that ends at t.
    scores : array of shape (length + 1,)
        Score of the best segmentation for each number of wrong tags.
    """

    opened: FloatArray
    closed: FloatArray
    scores: FloatArray


def counted_segments(length: int, n_labels: int) -> CountedSegments:
    """Return a workspace for sequences of up to ``length`` tokens."""
    opened, closed = np.zeros((2, length, n_labels, length + 1))
    return CountedSegments(opened, closed, np.zeros(length + 1))


@helper
def best_segments_by_count(token_scores, pairs, n_labels, truth, trellis, work):
    """Fill ``work.scores[m]``: the score of the best segmentation in which m tags are wrong.

    It is minus infinity if there is none. The cost is that of `segment_viterbi` times the length. The number
    of wrong tags is the innermost index, so that a step is arithmetic on whole rows.

    Parameters
    ----------
    token_scores, pairs, n_labels
        As for `segment_viterbi`.
    truth : int array of shape (length,)
        The true tags: twice the label of each token, plus one where a segment starts.
    trellis : Trellis
        The other scores of tokens, which become cumulative sums, and the scores of lengths.
    work : CountedSegments
    """
    length, width = token_scores.shape[0], pairs.shape[1]
    clear(trellis.sums[0])
    for t in range(length):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        for k in range(n_labels):
            _open(t, k, pairs[:, k], trellis.opened[t, k] - before[k], work)
        for k in range(n_labels):
            _close(t, k, trellis.lengths[:, k], truth, after[k] + token_scores[t, 2 * width + k], work)
    for m in range(length + 1):
        work.scores[m] = work.closed[length - 1, _best_end(work.closed[length - 1], m, n_labels), m]


@helper
def _open(t, k, steps, gain, work):
    """Start a segment of label k at token t, with up to t wrong tags before it."""
    row = work.opened[t, k][: t + 1]
    fill(row, -np.inf)
    if t == 0:
        row[0] = 0.0
    else:
        for j in range(steps.shape[0]):
            _keep_larger(work.closed[t - 1, j][: t + 1], steps[j], row)
    for m in range(t + 1):
        row[m] += gain


@helper
def _close(t, k, lengths, truth, gain, work):
    """End a segment of label k at token t, for every possible start."""
    row, inside = work.closed[t, k][: t + 2], 0
    fill(row, -np.inf)
    for d in range(min(lengths.shape[0], t + 1)):
        s = t - d
        wrong = inside + (truth[s] != 2 * k + 1)
        if lengths[d] > -np.inf:
            _keep_larger(work.opened[s, k][: s + 1], lengths[d], row[wrong : wrong + s + 1])
        inside += truth[s] != 2 * k
    for m in range(t + 2):
        row[m] += gain


@helper
def _keep_larger(x, gain, out):
    """``out = max(out, x + gain)``"""
    for m in range(out.shape[0]):
        value = x[m] + gain
        out[m] = value if value > out[m] else out[m]


@helper
def _best_end(closed, m, n_labels):
    """Return the label of the last segment of the best segmentation with m wrong tags."""
    best = 0
    for k in range(1, n_labels):
        best = k if closed[k, m] > closed[best, m] else best
    return best


@helper
def trace_segments_back(length, pairs, n_labels, truth, m, trellis, work, y):
    """Write the tags of the best segmentation with m wrong tags."""
    t, k = length - 1, _best_end(work.closed[length - 1], m, n_labels)
    while t >= 0:
        start, m = _best_start(t, k, trellis.lengths[:, k], truth, m, work.opened)
        write_segment(start, t, k, y)
        t = start - 1
        if t >= 0:
            k = _best_before(work.closed[t], pairs[:, k], m)


@helper
def _best_start(t, k, lengths, truth, m, opened):
    """Return the start of the best segment of label k that ends at t, and the number of wrong tags before."""
    best, rest, inside, score = t, max(m - (truth[t] != 2 * k + 1), 0), 0, -np.inf
    for d in range(min(lengths.shape[0], t + 1)):
        s = t - d
        before = m - inside - (truth[s] != 2 * k + 1)
        if 0 <= before <= s and opened[s, k, before] + lengths[d] > score:
            best, rest, score = s, before, opened[s, k, before] + lengths[d]
        inside += truth[s] != 2 * k
    return best, rest


@helper
def _best_before(closed, steps, m):
    """Return the best label of the preceding segment, with m wrong tags up to its end."""
    best, score = 0, -np.inf
    for j in range(steps.shape[0]):
        if closed[j, m] + steps[j] > score:
            best, score = j, closed[j, m] + steps[j]
    return best
