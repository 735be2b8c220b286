"""Segments: margins, the k best segmentations, means under the Gibbs distribution, and rescaled slacks."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.intrinsics import table
from maxmargin.compiling.loops import add_scaled, clear, fill
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import counted
from maxmargin.structures.k_best import find_k_best
from maxmargin.structures.margins import decode_with_margins, enough
from maxmargin.structures.means import ANSWERS, Answers, PartRows, find_means, part_rows
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.recursions import (
    KBestWork,
    best_predecessors,
    k_best_work,
    merge_best,
    pick_best,
    transpose,
)
from maxmargin.structures.segments.encode import Segment
from maxmargin.structures.segments.inference import (
    SEGMENT_ROWS,
    CountedSegments,
    Marked,
    best_segments_by_count,
    counted_segments,
    segment_means,
    segment_viterbi,
    trace_segments_back,
    write_segment,
)
from maxmargin.structures.segments.model import (
    SegmentsOracle,
    SegmentsOracleWork,
    head_size,
    lay_out_segments,
    scores_of_segments,
)
from maxmargin.structures.slack import check_rescalable, slack_argmax, slack_workspace


def _differing(
    segments: SegmentsOracle,
    i: int,
    theta: FloatArray,
    y: IntArray,
    p: int,
    margin: float,
    work: SegmentsOracleWork,
) -> IntArray:
    """Penalise only the segment of token p."""
    starts, other = np.flatnonzero(y & 1), y.copy()
    n = int(np.searchsorted(starts, p, side="right"))
    last = (int(starts[n]) if n < len(starts) else len(y)) - 1
    marked = np.zeros(len(y), dtype=np.int64)
    marked[last] = last + 1 - starts[n - 1]
    fines = np.full(segments.width, enough(theta, margin))
    parts, pairs = scores_of_segments(segments, i, theta)
    lay_out_segments(segments, i, theta, work)
    segment_viterbi(parts, pairs, segments.n_labels, Marked(marked, y, fines), work.trellis, other)
    return other


@find_means.register(SegmentsOracle)
def segments_find_means(segments, i, theta, work, own, mean):
    K, width, head = segments.n_labels, segments.width, head_size(segments)
    lay_out_segments(segments, i, theta, work)
    parts, pairs = scores_of_segments(segments, i, theta)
    return segment_means(
        parts,
        pairs,
        K,
        work.trellis,
        own,
        table(mean[head:], SEGMENT_ROWS * width),
        table(mean[: K * width], width),
        table(mean[K * width : head], width),
    )


@part_rows.register(SegmentsOracle)
def segments_part_rows(segments, i):
    size = SEGMENT_ROWS * segments.width
    return PartRows(head_size(segments), size, output_size(segments, i), segments.n_labels)


@check_rescalable.register(SegmentsOracle)
def segments_check_rescalable(segments: SegmentsOracle, owner: str) -> None:
    if segments.segment_cost.any():
        raise ValueError(
            f"{owner}: slack rescaling needs the loss 'normalized_hamming' or 'hamming', got 'segments'; "
            "use one of these, or rescale margins."
        )


@slack_workspace.register(SegmentsOracle)
def segments_slack_workspace(segments: SegmentsOracle, length: int) -> CountedSegments:
    return counted_segments(length, segments.n_labels)


@slack_argmax.register(SegmentsOracle)
def segments_slack_argmax(segments, i, theta, y, work, own):
    truth = segments.truth[segments.tokens[i, 0] : segments.tokens[i, 1]]
    length, K = truth.shape[0], segments.n_labels
    parts, pairs = scores_of_segments(segments, i, theta)
    lay_out_segments(segments, i, theta, work)
    best_segments_by_count(parts, pairs, K, truth, work.trellis, own)
    m = counted.costliest_count(own.scores[: length + 1])
    trace_segments_back(length, pairs, K, truth, m, work.trellis, own, y)


# Margins of the segments of a best segmentation: by how much the score falls without one of them.
#
# A segmentation lacks the segment that starts at token s if another segment starts there, or if none does, so
# that some segment continues across s. Both cases need the best scores of the segmentations with a given
# segment: those of a forward pass up to its start, plus those of a backward pass from its end.


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


class SegmentsMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `segment_margins`."""

    oracle: SegmentsOracleWork
    search: SegmentMarginWork


def _margin_work(segments: SegmentsOracle) -> SegmentsMarginWork:
    search = segment_margin_work(segments.longest, segments.n_labels, segments.width)
    return SegmentsMarginWork(oracle_workspace(segments), search)


@decode_with_margins.register(SegmentsOracle)
def segments_decode_with_margins(segments, i, theta, y, margins, work):
    """Write, for each token, the margin of its segment."""
    K, found = segments.n_labels, work.oracle
    parts, pairs = scores_of_segments(segments, i, theta)
    lay_out_segments(segments, i, theta, found)
    none = Marked(found.unmarked[: parts.shape[0]], segments.truth, found.fines)
    score = segment_viterbi(parts, pairs, K, none, found.trellis, y)
    segment_margins(parts, pairs, K, score, found.trellis, work.search, y, margins)


# The k best segmentations of a sequence.


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


class KBestSegments(NamedTuple):
    """The best segmentations of a sequence, best first.

    Attributes
    ----------
    segments : list of lists of tuples
        The segments ``(start, stop, label)`` of each of them.
    margins : array of shape (at most k,)
        Score of the best minus the score of each.
    """

    segments: list[list[Segment]]
    margins: FloatArray


ANSWERS[SegmentsOracle] = Answers(
    margins=_margin_work,
    means=lambda segments: aligned_zeros(2 * segments.n_labels + 2, segments.width),
    k_best=lambda segments, k: k_best_trellis(segments.longest, segments.n_labels, segments.n_lengths, k),
    differing=_differing,
)


@find_k_best.register(SegmentsOracle)
def segments_find_k_best(segments, i, theta, work, search, y, scores):
    parts, pairs = scores_of_segments(segments, i, theta)
    lay_out_segments(segments, i, theta, work)
    k_best_segmentations(parts, pairs, segments.n_labels, work.trellis, search, y, scores)
