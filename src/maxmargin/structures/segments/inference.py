"""Segmentations of a sequence: the best by Viterbi over segments, sums over all, the best by wrong tags."""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, copy, fill
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures.recursions import (
    best_predecessor,
    best_predecessors,
    exponentials,
    powers_of_near,
    softmax,
    step_back,
)

# Rows of labels that a token has side by side: as any token, as the first and as the last of a segment.
SEGMENT_ROWS = 3
# Number of neighbouring starts that are skipped at once where none of them can be the best.
BLOCK = 32


class Trellis(NamedTuple):
    """Workspace, and the scores that the search overwrites.

    Attributes
    ----------
    sums : array of shape (at least length + 1, width)
        Row t + 1 has the scores of token t in a segment of each label; they become sums over tokens 0 to t.
    lengths : array of shape (n_lengths, width)
        Row d has the scores of segments of d + 1 tokens: -inf if not allowed; one token is always allowed.
    opened : array of shape (at least length, width)
        Row t has the scores of token t as the first of a segment of each label; they become the scores of the
        best segmentation with a segment that starts there, less the sums before.
    closed : array of shape (at least length, width)
        Scores of the best segmentation with a segment that ends at token t.
    peaks : array of shape (at least length / BLOCK, width)
        Row b has the largest scores of ``opened`` of the tokens b * BLOCK, ..., (b + 1) * BLOCK - 1.
    ceilings : array of shape (n_lengths, width)
        Row d has the largest scores of the lengths d, ..., d + BLOCK - 1.
    """

    sums: FloatArray
    lengths: FloatArray
    opened: FloatArray
    closed: FloatArray
    peaks: FloatArray
    ceilings: FloatArray


class Marked(NamedTuple):
    """Segments that score less than the sum of their terms, at most one for each last token.

    Attributes
    ----------
    sizes : array of shape (length,)
        Number of tokens of the marked segment that ends at token t; 0 if there is none.
    codes : array of shape (length,)
        Twice its label, or twice its label plus one.
    fines : array of shape (at least n_labels,)
        By how much its score is reduced, for each label.
    """

    sizes: IntArray
    codes: IntArray
    fines: FloatArray


def new_trellis(length: int, n_lengths: int, width: int) -> Trellis:
    """Return a workspace for sequences of up to ``length`` tokens."""
    n_rows = (length + 1, n_lengths, length, length, length // BLOCK + 1, n_lengths)
    return Trellis(*(aligned_zeros(n, width) for n in n_rows))


@helper
def segment_viterbi(token_scores, pairs, n_labels, marked, trellis, y):
    """Find the segmentation of largest score in O(T (L + k) k), or less, and return that score.

    The score of a segment is the sum of the scores of its tokens, of its first token, last token and length,
    and of its label after that of the preceding segment, less its fine if it is marked. Columns may be padded
    beyond ``n_labels``; no padded label is ever chosen. Ties go to the smaller label and the shorter segment,
    from the end backwards. If there are many lengths, most are skipped (`_best_starts`).

    Parameters
    ----------
    token_scores : array of shape (length, SEGMENT_ROWS * width)
        In the last third of row t, the scores of token t as the last of a segment.
    pairs : array of shape (n_labels, width)
        ``pairs[j, k]`` is the score of a segment with label k after one with label j.
    n_labels : int
    marked : Marked
    trellis : Trellis
        The other scores of tokens, the scores of lengths, and workspace.
    y : int array of length at least ``length``
        Receives twice the label of each token, plus one where a segment starts.
    """
    width, opened, closed = pairs.shape[1], trellis.opened, trellis.closed
    most = min(token_scores.shape[0], trellis.lengths.shape[0])
    clear(trellis.sums[0])
    clear(closed[0])
    if most > BLOCK:
        _find_ceilings(trellis.lengths[:most], trellis.ceilings)
    for t in range(token_scores.shape[0]):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        if t > 0:
            best_predecessors(closed[t - 1], pairs, n_labels, closed[t])
        _add_difference(closed[t], before, opened[t])
        if most > BLOCK:
            _raise_peak(opened[t], t, trellis.peaks[t // BLOCK])
        kept = _fine(marked, t, opened)
        _best_starts(trellis, t, n_labels, closed[t])
        _lift(marked, t, opened, kept)
        add_scaled(1.0, after, closed[t])
        add_scaled(1.0, token_scores[t][2 * width :], closed[t])
    return _trace_back(token_scores.shape[0], pairs, n_labels, marked, trellis, y)


@helper
def _trace_back(length, pairs, n_labels, marked, trellis, y):
    """Write the best segmentation to ``y``, from its last segment to the first, and return its score."""
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
    """Write the tags of a segment: twice its label, plus one where it starts."""
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
    """Reduce the score of the start of the marked segment that ends at token t; return the old score."""
    if marked.sizes[t] == 0:
        return 0.0
    start, k = t + 1 - marked.sizes[t], marked.codes[t] >> 1
    kept = opened[start, k]
    opened[start, k] -= marked.fines[k]
    return kept


@helper
def _lift(marked, t, opened, kept):
    """Undo `_fine`, since other segments that start there end elsewhere."""
    if marked.sizes[t] > 0:
        opened[t + 1 - marked.sizes[t], marked.codes[t] >> 1] = kept


@helper
def _find_ceilings(lengths, out):
    """``out[d, k] = max_e lengths[e, k]`` over the BLOCK lengths e from d on."""
    reach = 1
    for d in range(lengths.shape[0]):
        copy(lengths[d], out[d])
    while reach < BLOCK:
        for d in range(lengths.shape[0] - reach):
            _keep_larger(out[d + reach], out[d])
        reach *= 2


@helper
def _raise_peak(scores, t, peak):
    """Take token t, which follows the others of its block, into account."""
    if t % BLOCK == 0:
        copy(scores, peak)
    else:
        _keep_larger(scores, peak)


@helper
def _keep_larger(x, out):
    """``out = max(out, x)``"""
    for k in range(out.shape[0]):
        out[k] = x[k] if x[k] > out[k] else out[k]


@helper
def _best_starts(trellis, t, n_labels, out):
    """``out[k] = max_d opened[t - d, k] + lengths[d, k]``

    A block of starts is skipped if the largest score of a start, plus that of a length, is not larger than
    what has been found, for any label. Sums remain monotone when they are rounded, so this changes no bit.
    """
    most = min(trellis.lengths.shape[0], t + 1)
    fill(out, -np.inf)
    if most <= BLOCK:
        _best_lengths(trellis.opened, trellis.lengths, t, 0, most, out)
        return
    for block in range(t // BLOCK, (t + 1 - most) // BLOCK - 1, -1):
        first, stop = max(t + 1 - BLOCK * (block + 1), 0), min(t + 1 - BLOCK * block, most)
        if _can_be_larger(trellis.peaks[block], trellis.ceilings[first], n_labels, out):
            _best_lengths(trellis.opened, trellis.lengths, t, first, stop, out)


@helper
def _can_be_larger(peak, ceiling, n_labels, found):
    """Whether a sum with these bounds can be larger than what has been found for its label."""
    count = 0
    for k in range(n_labels):
        count += peak[k] + ceiling[k] > found[k]
    return count > 0


@helper
def _best_lengths(opened, lengths, t, first, stop, out):
    """``out[k] = max(out[k], max_d opened[t - d, k] + lengths[d, k])`` for ``first <= d < stop``"""
    for d in range(first, stop):
        start, bonus = opened[t - d], lengths[d]
        for k in range(out.shape[0]):
            value = start[k] + bonus[k]
            out[k] = value if value > out[k] else out[k]


@helper
def _best_start(opened, lengths, t):
    """Return the start of the best segment that ends at token t, for one label."""
    best, score = t, -np.inf
    for d in range(min(lengths.shape[0], t + 1)):
        value = opened[t - d] + lengths[d]
        best = t - d if value > score else best
        score = value if value > score else score
    return best


@helper
def segment_means(token_scores, pairs, n_labels, trellis, joint, tokens, counts, lengths):
    """Compute the marginals of the distribution over segmentations, in the time of `segment_viterbi`.

    The forward pass sums, in the log domain, what `segment_viterbi` maximises. The backward pass computes
    probabilities from conditional distributions: of the start of a segment, given its end; and of the label
    of the segment before it, given its own. Each of them is normalised, so that nothing overflows.

    The probability of a segmentation is proportional to the exponential of its score. Columns may be padded
    beyond ``n_labels``. The padding of marginals and counts becomes zero.

    Parameters
    ----------
    token_scores, pairs, n_labels
        As for `segment_viterbi`.
    trellis : Trellis
        The other scores of tokens, the scores of lengths, and workspace.
    joint : array of shape (2 * n_labels + 2, width)
        Workspace of `forward_backward`.
    tokens : array of shape (length, SEGMENT_ROWS * width)
        Receives the probability of each label at each token; of a segment with the label that starts there;
        and of one that ends there.
    counts : array of shape (n_labels, width)
        Receives the expected number of times that a segment of label k follows one of label j.
    lengths : array of shape (n_lengths, width)
        Receives the expected number of segments of d + 1 tokens with each label.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of the exponentials of all segmentations.
    """
    length, width = token_scores.shape[0], pairs.shape[1]
    power = joint[n_labels + 2 :]
    top = powers_of_near(pairs, n_labels, power)
    _sum_forward(token_scores, pairs, power, top, n_labels, trellis, joint)
    for row in range(length):
        clear(tokens[row])
    for row in range(n_labels):
        clear(counts[row])
    for row in range(lengths.shape[0]):
        clear(lengths[row])
    log_partition = softmax(trellis.closed[length - 1], n_labels, tokens[length - 1, 2 * width :])
    for t in range(length - 1, -1, -1):
        _find_starts(t, n_labels, width, trellis, tokens, lengths)
        if t > 0:
            exponentials(trellis.closed[t - 1], pairs, power, top, n_labels, joint)
            step_back(joint, n_labels, tokens[t, width : 2 * width], tokens[t - 1, 2 * width :], counts)
    _cover(n_labels, width, tokens)
    return log_partition


@helper
def _sum_forward(token_scores, pairs, power, top, n_labels, trellis, joint):
    """Fill the trellis with the logarithms of sums over segmentations, as `segment_viterbi` with maxima."""
    width, opened, closed = pairs.shape[1], trellis.opened, trellis.closed
    clear(trellis.sums[0])
    for t in range(token_scores.shape[0]):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        add_scaled(-1.0, before, opened[t])
        if t > 0:
            exponentials(closed[t - 1], pairs, power, top, n_labels, joint)
            for k in range(n_labels):
                opened[t, k] += joint[n_labels, k] + math.log(joint[n_labels + 1, k])
        for k in range(n_labels):
            total = _sum_lengths(opened[:, k], trellis.lengths[:, k], t)
            closed[t, k] = total + after[k] + token_scores[t, 2 * width + k]


@helper
def _sum_lengths(opened, lengths, t):
    """Return the logarithm of the sum over the starts of a segment that ends at token t, for one label."""
    most, largest, total = min(lengths.shape[0], t + 1), -np.inf, 0.0
    for d in range(most):
        largest = max(largest, opened[t - d] + lengths[d])
    if largest == -np.inf:  # the label has no segments
        return largest
    for d in range(most):
        total += math.exp(opened[t - d] + lengths[d] - largest)
    return largest + math.log(total)


@helper
def _find_starts(t, n_labels, width, trellis, tokens, lengths):
    """Distribute the probability of the segments that end at token t over their starts and lengths."""
    for k in range(n_labels):
        ends, opened, bonus = tokens[t, 2 * width + k], trellis.opened[:, k], trellis.lengths[:, k]
        if ends > 0.0:
            total = _sum_lengths(opened, bonus, t)
            for d in range(min(bonus.shape[0], t + 1)):
                p = ends * math.exp(opened[t - d] + bonus[d] - total)
                tokens[t - d, width + k] += p
                lengths[d, k] += p


@helper
def _cover(n_labels, width, tokens):
    """Write the probability of each label at each token: of segments that have started and not ended."""
    for k in range(n_labels):
        inside = 0.0
        for t in range(tokens.shape[0]):
            inside += tokens[t, width + k]
            tokens[t, k] = min(max(inside, 0.0), 1.0)
            inside -= tokens[t, 2 * width + k]


class CountedSegments(NamedTuple):
    """Workspace.

    Attributes
    ----------
    opened : array of shape (length, n_labels, length + 1)
        ``opened[t, k, m]`` is the score of the best segmentation of the tokens before t, with m wrong tags,
        and of a segment with label k that starts at t, less the sum of the token scores before t.
    closed : array of shape (length, n_labels, length + 1)
        ``closed[t, k, m]`` is the score of the best segmentation with a segment of label k that ends at t.
    scores : array of shape (length + 1,)
        Score of the best segmentation for each number of wrong tags.
    """

    opened: FloatArray
    closed: FloatArray
    scores: FloatArray


def counted_segments(length: int, n_labels: int) -> CountedSegments:
    """Return a workspace for sequences of up to ``length`` tokens."""
    opened, closed = np.zeros((2, length, n_labels, length + 1))
    return CountedSegments(opened, closed, np.zeros(length + 1))


@helper
def best_segments_by_count(token_scores, pairs, n_labels, truth, trellis, work):
    """Fill ``work.scores[m]``: the score of the best segmentation in which m tags are wrong.

    It is minus infinity if there is none. The cost is that of `segment_viterbi` times the length. The number
    of wrong tags is the innermost index, so that a step is arithmetic on whole rows.

    Parameters
    ----------
    token_scores, pairs, n_labels
        As for `segment_viterbi`.
    truth : int array of shape (length,)
        The true tags: twice the label of each token, plus one where a segment starts.
    trellis : Trellis
        The other scores of tokens, which become cumulative sums, and the scores of lengths.
    work : CountedSegments
    """
    length, width = token_scores.shape[0], pairs.shape[1]
    clear(trellis.sums[0])
    for t in range(length):
        before, after = trellis.sums[t], trellis.sums[t + 1]
        add_scaled(1.0, before, after)
        for k in range(n_labels):
            _open(t, k, pairs[:, k], trellis.opened[t, k] - before[k], work)
        for k in range(n_labels):
            _close(t, k, trellis.lengths[:, k], truth, after[k] + token_scores[t, 2 * width + k], work)
    for m in range(length + 1):
        work.scores[m] = work.closed[length - 1, _best_end(work.closed[length - 1], m, n_labels), m]


@helper
def _open(t, k, steps, gain, work):
    """Start a segment of label k at token t, with up to t wrong tags before it."""
    row = work.opened[t, k][: t + 1]
    fill(row, -np.inf)
    if t == 0:
        row[0] = 0.0
    else:
        for j in range(steps.shape[0]):
            _keep_larger_count(work.closed[t - 1, j][: t + 1], steps[j], row)
    for m in range(t + 1):
        row[m] += gain


@helper
def _close(t, k, lengths, truth, gain, work):
    """End a segment of label k at token t, for every possible start."""
    row, inside = work.closed[t, k][: t + 2], 0
    fill(row, -np.inf)
    for d in range(min(lengths.shape[0], t + 1)):
        s = t - d
        wrong = inside + (truth[s] != 2 * k + 1)
        if lengths[d] > -np.inf:
            _keep_larger_count(work.opened[s, k][: s + 1], lengths[d], row[wrong : wrong + s + 1])
        inside += truth[s] != 2 * k
    for m in range(t + 2):
        row[m] += gain


@helper
def _keep_larger_count(x, gain, out):
    """``out = max(out, x + gain)``"""
    for m in range(out.shape[0]):
        value = x[m] + gain
        out[m] = value if value > out[m] else out[m]


@helper
def _best_end(closed, m, n_labels):
    """Return the label of the last segment of the best segmentation with m wrong tags."""
    best = 0
    for k in range(1, n_labels):
        best = k if closed[k, m] > closed[best, m] else best
    return best


@helper
def trace_segments_back(length, pairs, n_labels, truth, m, trellis, work, y):
    """Write the tags of the best segmentation with m wrong tags."""
    t, k = length - 1, _best_end(work.closed[length - 1], m, n_labels)
    while t >= 0:
        start, m = _best_counted_start(t, k, trellis.lengths[:, k], truth, m, work.opened)
        write_segment(start, t, k, y)
        t = start - 1
        if t >= 0:
            k = _best_before(work.closed[t], pairs[:, k], m)


@helper
def _best_counted_start(t, k, lengths, truth, m, opened):
    """Return the start of the best segment of label k that ends at t, and the number of wrong tags before."""
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
    """Return the best label of the preceding segment, with m wrong tags up to its end."""
    best, score = 0, -np.inf
    for j in range(steps.shape[0]):
        if closed[j, m] + steps[j] > score:
            best, score = j, closed[j, m] + steps[j]
    return best
