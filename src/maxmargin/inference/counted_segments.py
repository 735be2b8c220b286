"""The best segmentation for each number of its tokens whose tags are wrong."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper
from maxmargin.inference.segments import write_segment
from maxmargin.loops import add_scaled, clear, fill


class CountedSegments(NamedTuple):
    """Work space.

    Attributes
    ----------
    opened : array of shape (length, n_labels, length + 1)
        ``opened[t, k, m]`` is the score of the best segmentation of the tokens before t, m of them wrong, and
        of a segment with label k that starts there; less the sums of scores before.
    closed : array of shape (length, n_labels, length + 1)
        ``closed[t, k, m]`` is that of the best with a segment of label k that ends with token t.
    scores : array of shape (length + 1,)
        Scores of the best segmentations.
    """

    opened: FloatArray
    closed: FloatArray
    scores: FloatArray


def counted_segments(length: int, n_labels: int) -> CountedSegments:
    """Return work space for sequences of up to ``length`` tokens."""
    opened, closed = np.zeros((2, length, n_labels, length + 1))
    return CountedSegments(opened, closed, np.zeros(length + 1))


@helper
def best_segments_by_count(parts, pairs, n_labels, truth, trellis, work):
    """Fill ``work.scores[m]``: the score of the best segmentation in which m tags are wrong.

    It is minus infinity where there is none. The number of wrong tags adds a factor of the length to the work
    of `segment_viterbi`, and stands innermost, so that a step is one row of arithmetic.

    Parameters
    ----------
    parts, pairs, n_labels
        As for `segment_viterbi`.
    truth : int array of shape (length,)
        The true tags: twice the label of each token, and one more where a segment starts.
    trellis : Trellis
        The other scores of tokens and of lengths; those of tokens become sums.
    work : CountedSegments
    """
    length, width = parts.shape[0], pairs.shape[1]
    clear(trellis.sums[0])
    for t in range(length):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        for k in range(n_labels):
            _open(t, k, pairs[:, k], trellis.opened[t, k] - before[k], work)
        for k in range(n_labels):
            _close(t, k, trellis.lengths[:, k], truth, after[k] + parts[t, 2 * width + k], work)
    for m in range(length + 1):
        work.scores[m] = work.closed[length - 1, _best_end(work.closed[length - 1], m, n_labels), m]


@helper
def _open(t, k, steps, gain, work):
    """Start a segment of label k at token t: up to t tags before it are wrong."""
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
    """End a segment of label k with token t, wherever it starts."""
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
    """The label of the last segment, where m tags are wrong."""
    best = 0
    for k in range(1, n_labels):
        best = k if closed[k, m] > closed[best, m] else best
    return best


@helper
def trace_segments_back(length, pairs, n_labels, truth, m, trellis, work, y):
    """Write the tags of the best segmentation in which m of them are wrong."""
    t, k = length - 1, _best_end(work.closed[length - 1], m, n_labels)
    while t >= 0:
        start, m = _best_start(t, k, trellis.lengths[:, k], truth, m, work.opened)
        write_segment(start, t, k, y)
        t = start - 1
        if t >= 0:
            k = _best_before(work.closed[t], pairs[:, k], m)


@helper
def _best_start(t, k, lengths, truth, m, opened):
    """Where the best segment of label k starts that ends with token t, and how many tags before are wrong."""
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
    """The best label of the segment before, where m tags up to its end are wrong."""
    best, score = 0, -np.inf
    for j in range(steps.shape[0]):
        if closed[j, m] + steps[j] > score:
            best, score = j, closed[j, m] + steps[j]
    return best
