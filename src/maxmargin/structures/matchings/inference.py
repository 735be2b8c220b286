"""Matchings: products of links, and best matchings of rows to columns, by shortest augmenting paths.

In products of the features of links with weights and with moves, the matrix ``x`` has one row per feature and
one column per link. Loops take four features at a time, to save memory traffic.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear
from maxmargin.runtime.arrays import BoolArray, FloatArray, IntArray


@helper
def sum_features(x, w, out):
    """``out[:] = w @ x``."""
    clear(out)
    quads = x.shape[0] // 4
    for quad in range(quads):
        f = 4 * quad
        _add_four(w[f : f + 4], x[f], x[f + 1], x[f + 2], x[f + 3], out)
    for f in range(4 * quads, x.shape[0]):
        add_scaled(w[f], x[f], out)


@helper
def _add_four(w, x0, x1, x2, x3, out):
    """``out += w[0] * x0 + w[1] * x1 + w[2] * x2 + w[3] * x3``."""
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    if w0 == 0.0 and w1 == 0.0 and w2 == 0.0 and w3 == 0.0:  # a move changes few features
        return
    for p in range(out.shape[0]):
        out[p] += (w0 * x0[p] + w1 * x1[p]) + (w2 * x2[p] + w3 * x3[p])


@helper
def push_links(x, support, delta, further, scale, w):
    """``w += scale * x @ delta[further:]``, where ``delta`` is zero outside ``support``."""
    quads = x.shape[0] // 4
    for quad in range(quads):
        f = 4 * quad
        _push_four(
            x[f], x[f + 1], x[f + 2], x[f + 3], support, delta, np.uint32(further), scale, w[f : f + 4]
        )
    for f in range(4 * quads, x.shape[0]):
        total = 0.0
        for c in range(support.shape[0]):
            if support[c] >= further:
                total += delta[support[c]] * x[f, np.uint32(support[c] - np.uint32(further))]
        w[f] += scale * total


@helper
def _push_four(x0, x1, x2, x3, support, delta, further, scale, w):
    """Push four features at once, so that their sums are computed in parallel."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for c in range(support.shape[0]):
        p = support[c]
        if p >= further:
            d, q = delta[p], np.uint32(p - further)
            t0, t1, t2, t3 = t0 + d * x0[q], t1 + d * x1[q], t2 + d * x2[q], t3 + d * x3[q]
    w[0] += scale * t0
    w[1] += scale * t1
    w[2] += scale * t2
    w[3] += scale * t3


class AssignmentWork(NamedTuple):
    """Workspace for up to a given number of places of rows and of columns.

    Attributes
    ----------
    row_price, column_price : arrays
        Dual variables: not negative, zero where unlinked; any two sum to at least the score of their link.
    partner : int array
        The place linked to each column, or -1.
    distance : array
        Length of the shortest path found to each column.
    before : int array
        The place before each column on that path.
    settled : bool array
        Columns whose distance is final.
    reached : int array
        The settled columns, in the order of their distances.
    """

    row_price: FloatArray
    column_price: FloatArray
    partner: IntArray
    distance: FloatArray
    before: IntArray
    settled: BoolArray
    reached: IntArray


def assignment_work(n_places: int, n_columns: int) -> AssignmentWork:
    """Return a workspace for up to ``n_places`` places and ``n_columns`` columns."""
    return AssignmentWork(
        np.zeros(n_places),
        np.zeros(n_columns),
        np.zeros(n_columns, dtype=np.int64),
        np.zeros(n_columns),
        np.zeros(n_columns, dtype=np.int64),
        np.zeros(n_columns, dtype=np.bool_),
        np.zeros(n_columns, dtype=np.int64),
    )


@helper
def assignment(scores, bonus, work, y):
    r"""Find the partial matching of largest score.

    Every row has one place for each entry of ``bonus``. Each place, and each column, has at most one link.
    Place s of row j has number j len(bonus) + s, and the matching attains

    .. math:: \max_y \; \sum_{j, s:\, y_{js} \ge 0} \text{scores}_{j y_{js}} + \text{bonus}_s .

    Links that add nothing are not made. Places are linked in order, each along a shortest augmenting path
    with respect to prices (Jonker and Volgenant), so ties are always broken in the same way.

    Parameters
    ----------
    scores : array of shape (n_rows, n_columns)
    bonus : array of shape (n_places_per_row,)
    work : AssignmentWork
    y : int array of length at least n_rows * n_places_per_row
        Receives the column linked to each place, or -1.
    """
    n_rows, n_columns = scores.shape
    n_slots = bonus.shape[0]
    for k in range(n_columns):
        work.column_price[k] = 0.0
        work.partner[k] = -1
    for row in range(n_rows):
        for slot in range(n_slots):
            place = row * n_slots + slot
            y[place] = -1
            best, price = _best_column(scores[row], bonus[slot], work.column_price)
            work.row_price[place] = price
            if price > 0.0:
                if work.partner[best] < 0:
                    y[place], work.partner[best] = best, place
                else:
                    _augment(scores, bonus, place, work, y)


@helper
def _best_column(scores, bonus, column_price):
    """Return the column with the largest gain after its price, and that gain, if it is positive."""
    best, gain = -1, 0.0
    for k in range(scores.shape[0]):
        candidate = scores[k] + bonus - column_price[k]
        best = k if candidate > gain else best
        gain = candidate if candidate > gain else gain
    return best, gain


@helper
def _augment(scores, bonus, first, work, y):
    """Link place ``first``, or leave it or another place unlinked, whichever costs least."""
    n_columns, n_slots = scores.shape[1], bonus.shape[0]
    for k in range(n_columns):
        work.distance[k] = np.inf
        work.settled[k] = False
    place, length, n_reached = first, 0.0, 0
    last, cost = first, work.row_price[first]  # the cheapest place to leave unlinked so far
    while True:
        row, slot = place // n_slots, place % n_slots
        _relax(scores[row], bonus[slot], place, length, work)
        k = _nearest(work, n_columns)
        if k < 0 or work.distance[k] >= cost:
            _reprice(work, first, cost, n_reached)
            _shift(work, last, first, y)
            return
        length = work.distance[k]
        if work.partner[k] < 0:
            _reprice(work, first, length, n_reached)
            _link(work, k, first, y)
            return
        work.settled[k] = True
        work.reached[n_reached] = k
        n_reached += 1
        place = work.partner[k]
        if length + work.row_price[place] < cost:
            last, cost = place, length + work.row_price[place]


@helper
def _relax(scores, bonus, place, length, work):
    """Relax the paths to columns through ``place``, which is at distance ``length``."""
    base = length + work.row_price[place] - bonus
    for k in range(scores.shape[0]):
        if not work.settled[k]:
            distance = base + work.column_price[k] - scores[k]
            if distance < work.distance[k]:
                work.distance[k], work.before[k] = distance, place


@helper
def _nearest(work, n_columns):
    """Return the first of the nearest unsettled columns, or -1."""
    best, distance = -1, np.inf
    for k in range(n_columns):
        if not work.settled[k] and work.distance[k] < distance:
            best, distance = k, work.distance[k]
    return best


@helper
def _reprice(work, first, length, n_reached):
    """Update the prices of everything nearer than ``length``, so that the shortest path is tight."""
    work.row_price[first] -= length
    for c in range(n_reached):
        k = work.reached[c]
        work.row_price[work.partner[k]] -= length - work.distance[k]
        work.column_price[k] += length - work.distance[k]


@helper
def _shift(work, last, first, y):
    """Unlink ``last`` and shift links along the path to it, so that ``first`` gets one."""
    if last != first:
        k = y[last]
        y[last] = -1
        _link(work, k, first, y)


@helper
def _link(work, k, first, y):
    """Give column k to the place before it on the path, that place's column to the one before, and so on."""
    while True:
        place = work.before[k]
        following = y[place]
        y[place], work.partner[k] = k, place
        if place == first:
            return
        k = following


class ExchangeWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    cost : array of shape (n_links + 1, n_links + 1)
        ``cost[a, b]``: the least cost of all exchanges in which linked place a needs a new column, and the
        column of b needs a new place. The last node, after the linked places, is nobody.
    places : int array
        The linked places.
    node : int array
        The node of each place.
    """

    cost: FloatArray
    places: IntArray
    node: IntArray


def exchange_work(n_places: int, n_columns: int) -> ExchangeWork:
    """Return a workspace for up to ``n_places`` places and ``n_columns`` columns."""
    most = min(n_places, n_columns)
    places, node = np.zeros(most, dtype=np.int64), np.zeros(n_places, dtype=np.int64)
    return ExchangeWork(np.zeros((most + 1, most + 1)), places, node)


@helper
def assignment_margins(scores, bonus, prices, work, y, margins):
    r"""Write the margin of each link, made or not, for the matching that `assignment` found.

    With the prices that `assignment` leaves, every matching is worse than the best one by the sum of the
    *tolls* of its links, :math:`\text{row price}_p + \text{column price}_k - \text{score}_{pk} \ge 0`, and of
    the prices of places and columns without a link. So the best matching with a given link results from the
    cheapest exchange: the place that loses its column takes another one, and so on, until the column that
    became free is taken or left free. The costs of all exchanges are shortest paths between linked places.
    All places and columns without a link form one more node, *nobody*, as places of nobody cost nothing.

    Parameters
    ----------
    scores, bonus, y
        As for `assignment`.
    prices : AssignmentWork
        As `assignment` leaves it.
    work : ExchangeWork
    margins : array of shape (n_rows, n_columns)
        Receives the margins.
    """
    n_rows, n_columns = scores.shape
    nobody = _number_links(y[: n_rows * bonus.shape[0]], work)
    _find_exchanges(scores, bonus, prices, nobody, work, y)
    for k in range(n_columns):
        holder = prices.partner[k]
        loser = nobody if holder < 0 else work.node[holder]
        least = prices.column_price[k] + work.cost[loser, nobody]
        for row in range(n_rows):
            margins[row, k] = _cost_to_link(scores, bonus, row, k, loser, prices, work)
            if holder < 0 or row != holder // bonus.shape[0]:
                least = min(least, margins[row, k])
        if holder >= 0:
            margins[holder // bonus.shape[0], k] = least


@helper
def _number_links(y, work):
    """Number the linked places; return their number."""
    count = 0
    for place in range(y.shape[0]):
        if y[place] >= 0:
            work.places[count], work.node[place] = place, count
            count += 1
    for place in range(y.shape[0]):
        if y[place] < 0:
            work.node[place] = count
    return count


@helper
def _toll(scores, bonus, place, k, prices):
    """Return the cost of linking a place to column k; never negative, despite rounding."""
    row, slot = place // bonus.shape[0], place % bonus.shape[0]
    gain = scores[row, k] + bonus[slot]
    return max(prices.row_price[place] + prices.column_price[k] - gain, 0.0)


@helper
def _find_exchanges(scores, bonus, prices, nobody, work, y):
    """Write the least costs of all exchanges: from single ones to all (Floyd and Warshall)."""
    cost = work.cost
    for a in range(nobody):
        place = work.places[a]
        cost[a, nobody] = prices.row_price[place]
        for k in range(scores.shape[1]):
            b = nobody if prices.partner[k] < 0 else work.node[prices.partner[k]]
            toll = _toll(scores, bonus, place, k, prices)
            cost[a, b] = min(cost[a, b], toll) if b == nobody else toll
        cost[nobody, a] = prices.column_price[y[place]]
    for place in range(scores.shape[0] * bonus.shape[0]):
        if y[place] < 0:
            for a in range(nobody):
                toll = _toll(scores, bonus, place, y[work.places[a]], prices)
                cost[nobody, a] = min(cost[nobody, a], toll)
    cost[nobody, nobody] = 0.0
    for via in range(nobody + 1):
        for a in range(nobody + 1):
            for b in range(nobody + 1):
                cost[a, b] = min(cost[a, b], cost[a, via] + cost[via, b])


@helper
def _cost_to_link(scores, bonus, row, k, loser, prices, work):
    """Return the least cost of a link of the row to column k, which node ``loser`` loses."""
    best = np.inf
    for slot in range(bonus.shape[0]):
        place = row * bonus.shape[0] + slot
        cost = _toll(scores, bonus, place, k, prices) + work.cost[loser, work.node[place]]
        best = min(best, cost)
    return best
