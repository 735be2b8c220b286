r"""The Gibbs distribution over the segmentations of a sequence: forward sums, backward marginals.

The forward pass sums, in the log domain, what `segment_viterbi` maximises. The backward pass computes
probabilities from conditional distributions: of the start of a segment, given its end; and of the label of
the segment before it, given its own. Each of them is normalised, so that nothing overflows.
"""

import math

import numpy as np

from maxmargin.compiling import helper
from maxmargin.inference.forward_backward import exponentials, powers_of_near, step_back
from maxmargin.inference.softmax import softmax
from maxmargin.loops import add_scaled, clear


@helper
def segment_means(token_scores, pairs, n_labels, trellis, joint, tokens, counts, lengths):
    """Compute the marginals of the distribution over segmentations, in the time of `segment_viterbi`.

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
