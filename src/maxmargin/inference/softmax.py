"""The Gibbs distribution over a set of labels (softmax)."""

import math

from maxmargin.compiling import helper


@helper
def softmax(scores, n_labels, p):
    r"""Write :math:`p_k \propto e^{u_k}` and return :math:`\log \sum_k e^{u_k}`.

    The largest score is subtracted first, so that no exponential overflows and one of them is one.
    ``scores`` and ``p`` may be the same array, and may be padded beyond ``n_labels``; the padding of p
    becomes zero. Exponentials are those of `math`, whose bits do not depend on the caller.
    """
    largest = scores[0]
    for k in range(1, n_labels):
        largest = scores[k] if scores[k] > largest else largest
    total = 0.0
    for k in range(n_labels):
        p[k] = math.exp(scores[k] - largest)
        total += p[k]
    for k in range(n_labels):
        p[k] /= total
    for k in range(n_labels, p.shape[0]):
        p[k] = 0.0
    return largest + math.log(total)
