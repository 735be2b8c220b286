"""What segmentations are made of: how two of them differ, in statistics and in loss.

A segmentation is given by codes: twice the label of each token, and one more where a segment starts. Its
statistics begin with the counts of transitions and of lengths, rows of ``width`` labels; for each token three
such rows follow: its label, once more if it is the first of a segment, and if it is the last.
"""

from maxmargin.compiling import helper
from maxmargin.inference.segments import PARTS
from maxmargin.problems import _protocol as protocol
from maxmargin.problems.segments import Segments, head_size


@protocol.loss.register(Segments)
def segments_loss(problem, i, y):
    first, stop = problem.offsets[i], problem.offsets[i + 1]
    truth = problem.truth[first:stop]
    by_segment = _segment_costs(truth, y, problem.starts[first:stop], problem.segment_cost)
    return problem.token_cost[i] * _wrong_tokens(truth, y) + by_segment


@protocol.psi.register(Segments)
def segments_psi(problem, i, y, index, value):
    truth = problem.truth[problem.offsets[i] : problem.offsets[i + 1]]
    width, head = problem.width, head_size(problem)
    count = _tell_tokens(truth, y, width, head, index, value, 0)
    count = _tell_ends(truth, y, width, head, problem.n_labels * width, index, value, count)
    return _tell_transitions(truth, y, width, index, value, count)


@helper
def _tell_tokens(truth, y, width, head, index, value, count):
    """Write how labels and first tokens of segments differ, behind index ``head``; return the count."""
    for t in range(truth.shape[0]):
        a, b, row = truth[t], y[t], head + PARTS * width * t
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
def _tell_ends(truth, y, width, head, lengths, index, value, count):
    """The same for last tokens, behind index ``head``, and for lengths, behind index ``lengths``."""
    a_start, b_start = 0, 0
    for t in range(truth.shape[0]):
        a, b, row = truth[t] >> 1, y[t] >> 1, head + PARTS * width * t + 2 * width
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
def _tell_transitions(truth, y, width, index, value, count):
    """The same for transitions, from index 0."""
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
def _wrong_tokens(truth, y):
    """The number of tokens whose codes differ."""
    count = 0
    for t in range(truth.shape[0]):
        count += truth[t] != y[t]
    return count


@helper
def _segment_costs(truth, y, starts, cost):
    """What the segments cost that are in one only: those of y that are not true, and the true ones missed.

    ``starts[t]`` is the start of the true segment that ends with token t, or -1.
    """
    start, total = 0, 0.0
    for t in range(truth.shape[0]):
        start = t if y[t] & 1 else start
        ends = _is_last(y, t, truth.shape[0])
        is_found = ends and starts[t] == start and truth[t] >> 1 == y[t] >> 1
        if ends and not is_found:
            total += cost[y[t] >> 1]
        if starts[t] >= 0 and not is_found:
            total += cost[truth[t] >> 1]
    return total
