"""The oracle of segmentations: the best of them by Viterbi over segments, and what else is asked of it.

An output is given by codes: twice the label of each token, and one more where a segment starts.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.loops import add_scaled, copy, prefetch, scaled_copy, table, weighted_sum
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import oracle, recursions
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.problem import indexed_by_example
from maxmargin.structures.questions import (
    ANSWERS,
    Answers,
    PartRows,
    decode_with_margins,
    enough,
    find_k_best,
    find_means,
    part_rows,
)
from maxmargin.structures.segments.answers import (
    SegmentMarginWork,
    k_best_segmentations,
    k_best_trellis,
    segment_costs,
    segment_margin_work,
    segment_margins,
    write_differences,
    wrong_tokens,
)
from maxmargin.structures.segments.inference import (
    SEGMENT_ROWS,
    CountedSegments,
    Marked,
    Trellis,
    best_segments_by_count,
    counted_segments,
    new_trellis,
    segment_means,
    segment_viterbi,
    trace_segments_back,
)
from maxmargin.structures.slack import check_rescalable, slack_argmax, slack_workspace


@subroutine
def head_size(half):
    """Number of statistics before those of tokens: counts of transitions and of lengths.

    ``SEGMENT_ROWS`` rows of labels follow for each token: its label, its label again if it is the first of a
    segment, and again if it is the last.
    """
    return (half.n_labels + half.n_lengths) * half.width


@indexed_by_example("tokens", "token_cost")
class SegmentsOracle(NamedTuple):
    """True segments, costs and length limits.

    Attributes
    ----------
    tokens : array of shape (n, 2)
        Sequence i has the tokens tokens[i, 0], ..., tokens[i, 1] - 1.
    truth : array of shape (n_tokens,)
        The true codes.
    sizes : array of shape (n_tokens,)
        Number of tokens of the true segment that ends with the token; 0 if none does.
    token_cost : array of shape (n,)
        Cost of a wrong code of a token, in each sequence.
    segment_cost : array of shape (width,)
        Cost, for each label, of a segment that is predicted but not true, or true but not predicted.
    limits : array of shape (n_lengths, width)
        In row d, zero if a segment of d + 1 tokens may have the label, else -inf.
    """

    tokens: IntArray
    truth: IntArray
    sizes: IntArray
    token_cost: FloatArray
    segment_cost: FloatArray
    limits: FloatArray
    n_labels: int
    n_lengths: int
    width: int
    longest: int


class SegmentsOracleWork(NamedTuple):
    """Work arrays.

    Attributes
    ----------
    trellis : Trellis
    unmarked : array
        0 for each token: no segment that ends there is marked.
    fines : array
        Deduction from the score of a true segment, for each label.
    """

    trellis: Trellis
    unmarked: IntArray
    fines: FloatArray


@oracle.output_sizes.register(SegmentsOracle)
def segments_output_sizes(segments):
    return oracle.OutputSizes(segments.longest, 10 * segments.longest)


@oracle.oracle_workspace.register(SegmentsOracle)
def segments_oracle_workspace(segments: SegmentsOracle) -> SegmentsOracleWork:
    return SegmentsOracleWork(
        new_trellis(segments.longest, segments.n_lengths, segments.width),
        np.zeros(segments.longest, dtype=np.int64),
        aligned_zeros(segments.width),
    )


@oracle.output_size.register(SegmentsOracle)
def segments_output_size(segments, i):
    return segments.tokens[i, 1] - segments.tokens[i, 0]


@oracle.foresee_truth.register(SegmentsOracle)
def segments_foresee_truth(segments, i):
    prefetch(segments.truth, segments.tokens[i, 0], segments.tokens[i, 1])


@oracle.argmax.register(SegmentsOracle)
def segments_argmax(segments, i, theta, y, work):
    first, stop = segments.tokens[i, 0], segments.tokens[i, 1]
    truth = segments.truth[first:stop]
    lay_out_segments(segments, i, theta, work)
    _charge_tokens(truth, segments.token_cost[i], work.trellis)
    for d in range(min(segments.n_lengths, stop - first)):
        add_scaled(1.0, segments.segment_cost, work.trellis.lengths[d])
    # Every segment is charged as if wrong. A true one is neither wrong nor missed: deduct twice the cost.
    scaled_copy(2.0, segments.segment_cost, work.fines)
    parts, pairs = scores_of_segments(segments, i, theta)
    marked = Marked(segments.sizes[first:stop], truth, work.fines)
    segment_viterbi(parts, pairs, segments.n_labels, marked, work.trellis, y)


@oracle.decode.register(SegmentsOracle)
def segments_decode(segments, i, theta, y, work):
    parts, pairs = scores_of_segments(segments, i, theta)
    marked = Marked(work.unmarked[: parts.shape[0]], segments.truth, work.fines)
    lay_out_segments(segments, i, theta, work)
    segment_viterbi(parts, pairs, segments.n_labels, marked, work.trellis, y)


@subroutine
def lay_out_segments(segments, i, theta, work):
    """Write the scores of tokens and of lengths to the trellis."""
    width, head, trellis = segments.width, head_size(segments), work.trellis
    parts = table(theta[head:], SEGMENT_ROWS * width)
    lengths = table(theta[segments.n_labels * width : head], width)
    length = segments.tokens[i, 1] - segments.tokens[i, 0]
    for t in range(length):
        copy(parts[t][:width], trellis.sums[t + 1])
        copy(parts[t][width : 2 * width], trellis.opened[t])
    for d in range(min(segments.n_lengths, length)):
        weighted_sum(1.0, lengths[d], 1.0, segments.limits[d], trellis.lengths[d])


@helper
def _charge_tokens(truth, cost, trellis):
    """Add the costs of wrong tokens, less a constant: the cost of all tokens."""
    for t in range(truth.shape[0]):
        k = truth[t] >> 1
        if truth[t] & 1:
            trellis.opened[t, k] -= cost
        else:
            trellis.sums[t + 1, k] -= cost
            trellis.opened[t, k] += cost


@subroutine
def scores_of_segments(segments, i, theta):
    """Return the scores of tokens, as rows, and of transitions."""
    width, length = segments.width, segments.tokens[i, 1] - segments.tokens[i, 0]
    tokens = table(theta[head_size(segments) :], SEGMENT_ROWS * width)[:length]
    return tokens, table(theta[: segments.n_labels * width], width)


@oracle.loss.register(SegmentsOracle)
def segments_loss(segments, i, y):
    first, stop = segments.tokens[i, 0], segments.tokens[i, 1]
    truth = segments.truth[first:stop]
    by_segment = segment_costs(truth, y, segments.sizes[first:stop], segments.segment_cost)
    return segments.token_cost[i] * wrong_tokens(truth, y) + by_segment


@oracle.psi.register(SegmentsOracle)
def segments_psi(segments, i, y, index, value):
    truth = segments.truth[segments.tokens[i, 0] : segments.tokens[i, 1]]
    width, lengths = segments.width, segments.n_labels * segments.width
    return write_differences(truth, y, width, lengths, head_size(segments), index, value)


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
def segments_check_rescalable(segments: SegmentsOracle) -> None:
    if segments.segment_cost.any():
        raise ValueError(
            "slack rescaling needs the loss 'normalized_hamming' or 'hamming', got 'segments'; "
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
    m = recursions.costliest_count(own.scores[: length + 1])
    trace_segments_back(length, pairs, K, truth, m, work.trellis, own, y)


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
