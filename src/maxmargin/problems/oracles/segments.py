"""The oracles of segmentations: Viterbi over segments."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.prefetch import prefetch
from maxmargin.compiling.views import table
from maxmargin.inference.segments import Marked, Trellis, new_trellis, segment_viterbi
from maxmargin.loops import add_scaled, copy, scaled_copy, weighted_sum
from maxmargin.problems import oracle
from maxmargin.problems.layouts import SEGMENT_ROWS, segment_head
from maxmargin.problems.oracles._segment_parts import segment_costs, write_differences, wrong_tokens
from maxmargin.problems.subsets import indexed_by_example


@indexed_by_example("tokens", "token_cost")
class SegmentsOracle(NamedTuple):
    """True segments, costs and length limits.

    Outputs are codes: twice the label of each token, and one more where a segment starts.

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
    _best_segments(segments, theta, Marked(segments.sizes[first:stop], truth, work.fines), work, y)


@oracle.decode.register(SegmentsOracle)
def segments_decode(segments, i, theta, y, work):
    length = segments.tokens[i, 1] - segments.tokens[i, 0]
    lay_out_segments(segments, i, theta, work)
    _best_segments(segments, theta, Marked(work.unmarked[:length], segments.truth, work.fines), work, y)


@subroutine
def head_size(segments):
    """Number of statistics before those of tokens."""
    return segment_head(segments.n_labels, segments.n_lengths, segments.width)


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
def _best_segments(segments, theta, marked, work, y):
    """Write the best segmentation to ``y``."""
    width, K = segments.width, segments.n_labels
    pairs = table(theta[: K * width], width)
    parts = table(theta[head_size(segments) :], SEGMENT_ROWS * width)
    segment_viterbi(parts[: marked.sizes.shape[0]], pairs, K, marked, work.trellis, y)


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
