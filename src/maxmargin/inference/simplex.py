"""Euclidean projection onto a simplex."""

from maxmargin.compiling import helper


@helper
def simplex_threshold(v, count, largest, total):
    r"""Return tau with :math:`\sum_{k < \text{count}} \max(v_k - \tau, 0) = \text{total}`, total > 0.

    The entries :math:`\max(v_k - \tau, 0)` are the point nearest to v of nonnegative entries with this sum.
    ``largest`` is the largest entry of v.

    The threshold of a subset of the entries is never above tau. So the search starts with the threshold of
    the largest entry alone, and continues with that of all entries above the last threshold, until no entry
    drops out (Michelot 1986).
    """
    tau, size = largest - total, count + 1
    while True:
        above, excess = 0, -total
        for k in range(count):
            if v[k] > tau:
                above += 1
                excess += v[k]
        if above >= size or above == 0:
            return tau
        tau, size = excess / above, above


@helper
def list_near(v, count, largest, total, where, value):
    """List the entries of v at most ``total`` below the largest, minus the largest; return their number.

    No other entry can be above the threshold.
    """
    near = 0
    for k in range(count):
        where[near], value[near] = k, v[k] - largest
        near += value[near] >= -total
    return near
