"""The best path through a trellis whose scores depend on three consecutive labels."""

from maxmargin.compiling import helper
from maxmargin.inference.viterbi import best_predecessor, best_predecessors


@helper
def second_order_viterbi(unary, pairwise, triples, n_labels, value, y):
    r"""Find the labelling of largest score.

    .. math:: \max_y \; \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t)
              + \sum_{t \ge 2} q(y_{t-2}, y_{t-1}, y_t)

    A state is a pair of neighbouring labels. For a given label j in the middle, the step from pairs (i, j) to
    pairs (j, k) is a step of `viterbi`, so a position takes n_labels ** 3 additions. Padding and ties are as
    in `viterbi`.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
        ``pairwise[j, k]`` is the score of label k after label j.
    triples : array of shape (n_labels, n_labels, width)
        ``triples[j, i, k]`` is the score of label k after label j after label i.
    n_labels : int
    value : array of shape (at least length, n_labels, width)
        Workspace: ``value[t, j, k]`` becomes the score of the best path that ends in label j at position
        t - 1 and label k at position t. At the first position j is 0.
    y : int array of length at least ``length``
        Receives the labelling.
    """
    last = unary.shape[0] - 1
    for k in range(unary.shape[1]):
        value[0, 0, k] = unary[0, k]
    for t in range(1, last + 1):
        for j in range(n_labels):
            ends = value[t, j]
            if t == 1:
                for k in range(ends.shape[0]):
                    ends[k] = value[0, 0, j]
            else:
                best_predecessors(value[t - 1, :, j], triples[j], n_labels, ends)
            for k in range(ends.shape[0]):
                ends[k] += pairwise[j, k] + unary[t, k]
    _trace_back(value[: last + 1], triples, n_labels, y)


@helper
def _trace_back(value, triples, n_labels, y):
    """Write the labelling, from its last pair to the first."""
    last = value.shape[0] - 1
    before, best = best_pair(value[last], n_labels if last > 0 else 1, n_labels)
    y[last] = best
    if last > 0:
        y[last - 1] = before
    for t in range(last, 1, -1):
        y[t - 2] = best_predecessor(value[t - 1, :, y[t - 1]], triples[y[t - 1], :, y[t]], n_labels)


@helper
def best_pair(value, n_before, n_labels):
    """Return the labels j < n_before and k of largest ``value[j, k]``; ties go to the smaller k, then j."""
    before, best = 0, 0
    for k in range(n_labels):
        for j in range(n_before):
            if value[j, k] > value[before, best]:
                before, best = j, k
    return before, best
