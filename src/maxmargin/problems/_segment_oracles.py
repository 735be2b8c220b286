"""The max oracle of segmentations."""

from maxmargin.compiling import helper, subroutine
from maxmargin.inference.segments import PARTS, Marked, segment_viterbi
from maxmargin.loops import add_scaled, copy, scaled_copy, weighted_sum
from maxmargin.problems import _protocol as protocol
from maxmargin.problems.segments import Segments, head_size


@protocol.argmax.register(Segments)
def segments_argmax(problem, i, theta, y, work):
    first, stop = problem.offsets[i], problem.offsets[i + 1]
    truth = problem.truth[first:stop]
    lay_out_segments(problem, i, theta, work)
    _charge_tokens(truth, problem.token_cost[i], work.trellis)
    for d in range(problem.n_lengths):
        add_scaled(1.0, problem.segment_cost, work.trellis.lengths[d])
    # A true segment is paid for as if it were wrong, and it is one less that is missed.
    scaled_copy(2.0, problem.segment_cost, work.fines)
    _find(problem, theta, Marked(problem.starts[first:stop], truth, work.fines), work, y)


@protocol.decode.register(Segments)
def segments_decode(problem, i, theta, y, work):
    length = problem.offsets[i + 1] - problem.offsets[i]
    lay_out_segments(problem, i, theta, work)
    _find(problem, theta, Marked(work.unmarked[:length], problem.truth, work.fines), work, y)


@subroutine
def lay_out_segments(problem, i, theta, work):
    """Write the scores of tokens and of lengths to the trellis."""
    width, head, trellis = problem.width, head_size(problem), work.trellis
    parts = theta[head:].reshape((-1, PARTS * width))
    lengths = theta[problem.n_labels * width : head].reshape((-1, width))
    for t in range(problem.offsets[i + 1] - problem.offsets[i]):
        copy(parts[t][:width], trellis.sums[t + 1])
        copy(parts[t][width : 2 * width], trellis.opened[t])
    for d in range(problem.n_lengths):
        weighted_sum(1.0, lengths[d], 1.0, problem.limits[d], trellis.lengths[d])


@helper
def _charge_tokens(truth, cost, trellis):
    """Add what wrong tokens cost, but for a number, the cost of all tokens."""
    for t in range(truth.shape[0]):
        k = truth[t] >> 1
        if truth[t] & 1:
            trellis.opened[t, k] -= cost
        else:
            trellis.sums[t + 1, k] -= cost
            trellis.opened[t, k] += cost


@subroutine
def _find(problem, theta, marked, work, y):
    """Write the best segmentation to ``y``."""
    width, K = problem.width, problem.n_labels
    pairs = theta[: K * width].reshape((-1, width))
    parts = theta[head_size(problem) :].reshape((-1, PARTS * width))
    segment_viterbi(parts[: marked.starts.shape[0]], pairs, K, marked, work.trellis, y)
