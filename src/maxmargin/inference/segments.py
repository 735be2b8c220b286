"""The best segmentation of a sequence (Viterbi over segments, for a semi-Markov model)."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.inference.viterbi import best_predecessor, best_predecessors
from maxmargin.loops import add_scaled, clear, copy, fill

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
