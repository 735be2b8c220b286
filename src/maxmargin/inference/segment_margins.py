r"""Margins of the segments of a best segmentation: by how much the score falls without one of them.

A segmentation lacks the segment that starts at token s if another segment starts there, or if none does, so
that some segment continues across s. Both cases need the best scores of the segmentations with a given
segment: those of a forward pass up to its start, plus those of a backward pass from its end.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.inference.margins import transpose
from maxmargin.inference.viterbi import best_predecessors
from maxmargin.loops import add_scaled, clear, fill


class SegmentMarginWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    turned : array of shape (n_labels, width)
        The scores of transitions, transposed.
    begins : array of shape (width,)
        Best scores of what begins at a token with a segment of each label.
    tails : array of shape (length, width)
        Best scores of what follows a segment of each label that ends at a token, plus those of this last
        token and the sums of token scores up to it.
    across : array of shape (length,)
        Best scores of the segmentations in which no segment starts at a token.
    """

    turned: FloatArray
    begins: FloatArray
    tails: FloatArray
    across: FloatArray


def segment_margin_work(length: int, n_labels: int, width: int) -> SegmentMarginWork:
    """Return a workspace for sequences of up to ``length`` tokens."""
    turned, begins, tails = (
        aligned_zeros(*shape) for shape in ((n_labels, width), (width,), (length, width))
    )
    return SegmentMarginWork(turned, begins, tails, np.zeros(length))


@helper
def segment_margins(token_scores, pairs, n_labels, score, trellis, work, y, margins):
    """Write the margins of the segments that `segment_viterbi` found, in the same time.

    Parameters
    ----------
    token_scores, pairs, n_labels, trellis, y
        As for `segment_viterbi`, after it, without marked segments.
    score : float
        The score of ``y``.
    work : SegmentMarginWork
    margins : array of shape (length,)
        Receives, for each token, the margin of its segment.
    """
    length, width = token_scores.shape[0], pairs.shape[1]
    stop = length
    transpose(pairs, n_labels, work.turned)
    fill(work.across[:length], -np.inf)
    for s in range(length - 1, -1, -1):
        _follow(s, length, token_scores[s][2 * width :], n_labels, trellis.sums[s + 1], work)
        is_start = y[s] & 1
        margins[s] = _start(s, length, stop - s - 1 if is_start else -1, y[s] >> 1, n_labels, trellis, work)
        add_scaled(1.0, token_scores[s][width : 2 * width], work.begins)
        add_scaled(-1.0, trellis.sums[s], work.begins)
        stop = s if is_start else stop
    for t in range(length):
        other = max(margins[t], work.across[t])
        margins[t] = max(score - other, 0.0) if y[t] & 1 else margins[t - 1]


@helper
def _follow(t, length, last_scores, n_labels, sums, work):
    """Write the best scores of what follows a segment that ends at token t."""
    tail = work.tails[t]
    if t == length - 1:
        clear(tail)
    else:
        best_predecessors(work.begins, work.turned, n_labels, tail)
    add_scaled(1.0, sums, tail)
    add_scaled(1.0, last_scores, tail)


@helper
def _start(s, length, d_found, label, n_labels, trellis, work):
    """Find the best segments that start at token s, and return the best of their scores, leaving one out.

    The one left out has ``d_found`` tokens beyond the first, and a label; -1 leaves out none. Longer segments
    come first, as each of them crosses all later starts up to its end.
    """
    other = longest = -np.inf
    fill(work.begins, -np.inf)
    for d in range(min(trellis.lengths.shape[0], length - s) - 1, -1, -1):
        bonus, tail = trellis.lengths[d], work.tails[s + d]
        for k in range(n_labels):
            rest = bonus[k] + tail[k]
            work.begins[k] = rest if rest > work.begins[k] else work.begins[k]
            total = trellis.opened[s, k] + rest
            longest = total if total > longest else longest
            if total > other and not (d == d_found and k == label):
                other = total
        if d > 0 and longest > work.across[s + d]:
            work.across[s + d] = longest
    return other
