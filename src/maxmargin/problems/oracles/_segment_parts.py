"""Differences between two segmentations, in statistics and in loss.

A segmentation is given by codes: twice the label of each token, and one more where a segment starts. See
`maxmargin.problems.layouts.segment_head` for the layout of its statistics.
"""

from maxmargin.compiling import helper
from maxmargin.problems.layouts import SEGMENT_ROWS


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
