"""Euclidean projection onto a simplex, and the best point of a scaled one."""

import numpy as np

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


_MOST = 100  # pieces are few, and bisection reaches the precision of float64 sooner


@helper
def scaled_simplex(u, r, where, count, total):
    r"""Return d and :math:`\sigma` of the best point, and how many entries may be positive.

    The point is that of all dual variables of a block whose slacks are rescaled,

    .. math:: \max_{x \ge 0} \; \langle u, x \rangle - \tfrac12 \|x\|^2 - \tfrac12 \Big( \sum_k x_k \Big)^2
              \quad \text{subject to} \quad \langle r, x \rangle \le \text{total}, \qquad u, r > 0 .

    By its optimality conditions :math:`x_k = \max(u_k - \sigma - \mu r_k, 0)`, where :math:`\sigma` is the
    sum of all :math:`x_k`, and :math:`\mu` is zero unless the constraint holds with equality. So only two
    numbers are unknown. With :math:`M = \max_k u_k / r_k`, where all x are zero, :math:`\mu = M - d`, and

    .. math:: x_k = \max(e_k + d r_k - \sigma, 0), \qquad e_k = u_k - M r_k \le 0 .

    This loses no digits if the total is small: the largest of the :math:`e_k` is exactly zero.

    These come first in r, ``where`` and u, which becomes e; u stays, and d is zero, if the constraint does
    not hold with equality. Then :math:`\mu = 0` and d = M, and in both cases d is at most D,

    .. math:: d = (x_b + \sigma) / r_b, \qquad D = \text{total} \, (1 / r_b + 1 / \min_k r_k) / r_b ,

    where b is the entry with :math:`e_b = 0`. So an entry with :math:`e_k + D r_k \le 0` is zero.
    """
    best, high, least = 0, u[0] / r[0], r[0]
    for k in range(1, count):
        ratio = u[k] / r[k]
        best, high = (k, ratio) if ratio > high else (best, high)
        least = r[k] if r[k] < least else least
    most = total * (1.0 / r[best] + 1.0 / least) / r[best]
    if not most < high:
        sigma = common_level(u, r, 0.0, count)
        if weighed(u, r, 0.0, sigma, count) <= total:
            return 0.0, sigma, count
    near, first = 0, 2.0 * total / (r[best] * r[best])
    for k in range(count):
        e = 0.0 if k == best else min(u[k] - high * r[k], 0.0)
        u[near], r[near], where[near] = e, r[k], where[k]
        near += k == best or e + most * r[near] > 0.0
    d, sigma = _meeting_point(u, r, near, total, high, first)
    return d, sigma, near


@helper
def _meeting_point(e, r, count, total, high, d):
    r"""Return the d below ``high`` at which :math:`\langle r, x \rangle` is the total, and its sigma.

    This is a continuous, nondecreasing, piecewise linear function of d. Each step goes to where the current
    piece reaches the total; the search ends when a piece comes up twice. If a step would leave the interval
    in which the answer lies, the interval is halved instead.
    """
    low, d = 0.0, d if d < high else 0.5 * high
    for _ in range(_MOST):
        sigma = common_level(e, r, d, count)
        if weighed(e, r, d, sigma, count) > total:
            high = d
        else:
            low = d
        ahead = _where_piece_ends(e, r, d, sigma, count, total)
        if ahead == d:
            return d, sigma
        d = ahead if low < ahead < high else 0.5 * (low + high)
        if not low < d < high:
            break
    return high, common_level(e, r, high, count)  # a little above the total


@helper
def common_level(e, r, d, count):
    r"""Return :math:`\sigma = \sum_k \max(e_k + d r_k - \sigma, 0)`.

    With too many entries, sigma is too small. So entries are dropped until all the rest are positive.
    """
    sigma, size = 0.0, count + 1
    while True:
        above, total = 0, 0.0
        for k in range(count):
            value = e[k] + d * r[k]
            if value > sigma:
                above += 1
                total += value
        if above >= size or above == 0:
            return sigma
        sigma, size = total / (above + 1), above


@helper
def weighed(e, r, d, sigma, count):
    r"""Return :math:`\langle r, x \rangle`."""
    total = 0.0
    for k in range(count):
        total += r[k] * max(e[k] + d * r[k] - sigma, 0.0)
    return total


@helper
def _where_piece_ends(e, r, d, sigma, count, total):
    r"""Return the d at which :math:`\langle r, x \rangle` is the total if no x becomes zero or positive."""
    size, r_sum, r_squares, e_sum, products = 1.0, 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        if e[k] + d * r[k] > sigma:
            size += 1.0
            r_sum += r[k]
            r_squares += r[k] * r[k]
            e_sum += e[k]
            products += e[k] * r[k]
    slope = r_squares - r_sum * r_sum / size
    return (total - products + r_sum * e_sum / size) / slope if slope > 0.0 else np.inf
