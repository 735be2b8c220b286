"""The best segmentation of a sequence (Viterbi over segments, for a semi-Markov model)."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.inference.viterbi import best_predecessor, best_predecessors
from maxmargin.loops import add_scaled, clear, fill

# The rows of labels that a token has side by side: as any token, as the first and as the last of a segment.
PARTS = 3


class Trellis(NamedTuple):
    """Work arrays, and the scores that are changed on the way.

    Attributes
    ----------
    sums : array of shape (at least length + 1, width)
        Row t + 1 has the scores of token t in a segment of each label; they become sums over the first t + 1.
    lengths : array of shape (n_lengths, width)
        Row d has the scores of segments of d + 1 tokens: -inf where there are none, but never for one token.
    opened : array of shape (at least length, width)
        Row t has the scores of token t as the first of a segment of each label; they become those of the best
        segmentation with a segment that starts there, less the sums before.
    closed : array of shape (at least length, width)
        Scores of the best segmentation with a segment that ends with token t.
    """

    sums: FloatArray
    lengths: FloatArray
    opened: FloatArray
    closed: FloatArray


class Marked(NamedTuple):
    """Segments that score less than the sum of their parts, at most one for each last token.

    Attributes
    ----------
    starts : array of shape (length,)
        Where the segment that ends with token t starts; -1 if there is none.
    codes : array of shape (length,)
        Twice its label, or one more.
    fines : array of shape (at least n_labels,)
        By how much less it scores, for each label.
    """

    starts: IntArray
    codes: IntArray
    fines: FloatArray


def new_trellis(length: int, n_lengths: int, width: int) -> Trellis:
    """Return work arrays for sequences of up to ``length`` tokens."""
    shapes: tuple[Any, ...] = ((length + 1, width), (n_lengths, width), (length, width), (length, width))
    return Trellis(*(aligned_zeros(*shape) for shape in shapes))


@helper
def segment_viterbi(parts, pairs, n_labels, marked, trellis, y):
    """Find the segmentation of largest score in O(T (L + k) k) and return that score.

    A segment scores the sum of its tokens' scores, what its first and last token, its length and the label
    before it add, less its fine if it is marked. Columns may be padded beyond ``n_labels``; no padded label
    is ever chosen. Ties go to the smaller label and the shorter segment, from the end backwards.

    Parameters
    ----------
    parts : array of shape (length, 3 * width)
        In the last third of row t, the scores of token t as the last of a segment.
    pairs : array of shape (n_labels, width)
        ``pairs[j, k]`` is the score of a segment with label k after one with label j.
    n_labels : int
    marked : Marked
    trellis : Trellis
        The other scores of tokens and of lengths, and work space.
    y : int array of length at least ``length``
        Receives twice the label of each token, and one more where a segment starts.
    """
    width, opened, closed = pairs.shape[1], trellis.opened, trellis.closed
    clear(trellis.sums[0])
    clear(closed[0])
    for t in range(parts.shape[0]):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        if t > 0:
            best_predecessors(closed[t - 1], pairs, n_labels, closed[t])
        _add_difference(closed[t], before, opened[t])
        kept = _fine(marked, t, opened)
        _best_lengths(opened, trellis.lengths, t, closed[t])
        _lift(marked, t, opened, kept)
        add_scaled(1.0, after, closed[t])
        add_scaled(1.0, parts[t][2 * width :], closed[t])
    return _trace_back(parts.shape[0], pairs, n_labels, marked, trellis, y)


@helper
def _trace_back(length, pairs, n_labels, marked, trellis, y):
    """Write the best segmentation to ``y``, from its last segment on, and return its score."""
    t, k = length - 1, 0
    for j in range(1, n_labels):
        if trellis.closed[t, j] > trellis.closed[t, k]:
            k = j
    score = trellis.closed[t, k]
    while t >= 0:
        kept = _fine(marked, t, trellis.opened)
        start = _best_start(trellis.opened[:, k], trellis.lengths[:, k], t)
        _lift(marked, t, trellis.opened, kept)
        write_segment(start, t, k, y)
        t = start - 1
        if t >= 0:
            k = best_predecessor(trellis.closed[t], pairs[:, k], n_labels)
    return score


@helper
def write_segment(start, last, label, y):
    """Write a segment to the tags: twice its label, and one more where it starts."""
    y[start] = 2 * label + 1
    for s in range(start + 1, last + 1):
        y[s] = 2 * label


@helper
def _add_difference(x, y, out):
    """``out += x - y``"""
    for k in range(out.shape[0]):
        out[k] += x[k] - y[k]


@helper
def _fine(marked, t, opened):
    """Lower the score of the start of the marked segment that ends with token t; return what it was."""
    start = marked.starts[t]
    if start < 0:
        return 0.0
    k = marked.codes[t] >> 1
    kept = opened[start, k]
    opened[start, k] -= marked.fines[k]
    return kept


@helper
def _lift(marked, t, opened, kept):
    """Undo that: other segments that start there have other last tokens."""
    start = marked.starts[t]
    if start >= 0:
        opened[start, marked.codes[t] >> 1] = kept


@helper
def _best_lengths(opened, lengths, t, out):
    """``out[k] = max_d opened[t - d, k] + lengths[d, k]``"""
    fill(out, -np.inf)
    for d in range(min(lengths.shape[0], t + 1)):
        start, bonus = opened[t - d], lengths[d]
        for k in range(out.shape[0]):
            value = start[k] + bonus[k]
            out[k] = value if value > out[k] else out[k]


@helper
def _best_start(opened, lengths, t):
    """The start of the best segment that ends with token t, for one label."""
    best, score = t, -np.inf
    for d in range(min(lengths.shape[0], t + 1)):
        value = opened[t - d] + lengths[d]
        best = t - d if value > score else best
        score = value if value > score else score
    return best
