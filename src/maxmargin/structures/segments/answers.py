"""Segments: how two segmentations differ, margins of the best one, and the k best."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, fill
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures.recursions import (
    KBestWork,
    best_predecessors,
    k_best_work,
    merge_best,
    pick_best,
    transpose,
)
from maxmargin.structures.segments.encode import Segment
from maxmargin.structures.segments.inference import SEGMENT_ROWS, write_segment


@helper
def write_differences(truth, y, width, lengths, head, index, value):
    """Write the entries of the statistics of ``truth`` minus those of ``y``, and return their number.

    The counts of lengths begin at index ``lengths``, the rows of tokens at index ``head``.
    """
    count = _write_tokens(truth, y, width, head, index, value, 0)
    count = _write_ends(truth, y, width, head, lengths, index, value, count)
    return _write_transitions(truth, y, width, index, value, count)


@helper
def _write_tokens(truth, y, width, head, index, value, count):
    """Write how labels and first tokens of segments differ, after ``count`` entries; return the new count."""
    for t in range(truth.shape[0]):
        a, b, row = truth[t], y[t], head + SEGMENT_ROWS * width * t
        if a != b:
            if a >> 1 != b >> 1:
                index[count], value[count] = row + (a >> 1), 1.0
                index[count + 1], value[count + 1] = row + (b >> 1), -1.0
                count += 2
            if a & 1:
                index[count], value[count] = row + width + (a >> 1), 1.0
                count += 1
            if b & 1:
                index[count], value[count] = row + width + (b >> 1), -1.0
                count += 1
    return count


@helper
def _write_ends(truth, y, width, head, lengths, index, value, count):
    """Write how last tokens of segments and lengths differ, after ``count`` entries; return the new count."""
    a_start, b_start = 0, 0
    for t in range(truth.shape[0]):
        a, b, row = truth[t] >> 1, y[t] >> 1, head + SEGMENT_ROWS * width * t + 2 * width
        a_start, b_start = (t if truth[t] & 1 else a_start), (t if y[t] & 1 else b_start)
        a_ends, b_ends = _is_last(truth, t, truth.shape[0]), _is_last(y, t, truth.shape[0])
        if a_ends and not (b_ends and a == b):
            index[count], value[count] = row + a, 1.0
            count += 1
        if b_ends and not (a_ends and a == b):
            index[count], value[count] = row + b, -1.0
            count += 1
        if a_ends and not (b_ends and a == b and a_start == b_start):
            index[count], value[count] = lengths + (t - a_start) * width + a, 1.0
            count += 1
        if b_ends and not (a_ends and a == b and a_start == b_start):
            index[count], value[count] = lengths + (t - b_start) * width + b, -1.0
            count += 1
    return count


@helper
def _write_transitions(truth, y, width, index, value, count):
    """Write how transitions differ, after ``count`` entries; return the new count."""
    for t in range(1, truth.shape[0]):
        a = (truth[t - 1] >> 1) * width + (truth[t] >> 1) if truth[t] & 1 else -1
        b = (y[t - 1] >> 1) * width + (y[t] >> 1) if y[t] & 1 else -1
        if a >= 0 and a != b:
            index[count], value[count] = a, 1.0
            count += 1
        if b >= 0 and a != b:
            index[count], value[count] = b, -1.0
            count += 1
    return count


@helper
def _is_last(codes, t, length):
    """Whether token t is the last of a segment."""
    return t + 1 == length or codes[t + 1] & 1 == 1


@helper
def wrong_tokens(truth, y):
    """Return the number of tokens whose codes differ."""
    count = 0
    for t in range(truth.shape[0]):
        count += truth[t] != y[t]
    return count


@helper
def segment_costs(truth, y, sizes, cost):
    """Return the cost of segments of y that are not true, and of true segments that y misses.

    ``sizes[t]`` is the number of tokens of the true segment that ends with token t, or 0.
    """
    start, total = 0, 0.0
    for t in range(truth.shape[0]):
        start = t if y[t] & 1 else start
        ends = _is_last(y, t, truth.shape[0])
        is_found = ends and sizes[t] == t + 1 - start and truth[t] >> 1 == y[t] >> 1
        if ends and not is_found:
            total += cost[y[t] >> 1]
        if sizes[t] > 0 and not is_found:
            total += cost[truth[t] >> 1]
    return total


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

    A segmentation lacks the segment that starts at token s if another segment starts there, or if none does,
    so that some segment continues across s. Both cases need the best scores of the segmentations with a given
    segment: those of a forward pass up to its start, plus those of a backward pass from its end.

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
