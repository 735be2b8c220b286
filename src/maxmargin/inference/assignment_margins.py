r"""Margins of all links of a best matching: by how much the score falls if a link must be added or removed.

With the prices that `assignment` leaves, every matching is worse than the best one by the sum of the *tolls*
of its links, :math:`\text{row price}_p + \text{column price}_k - \text{score}_{pk} \ge 0`, and of the prices
of places and columns without a link. So the best matching with a given link results from the cheapest
exchange: the place that loses its column takes another one, and so on, until the column that became free is
taken or left free. The costs of all exchanges are shortest paths between linked places. All places and
columns without a link form one more node, *nobody*, as places of nobody cost nothing.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper


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
    """Write the margin of each link, made or not, for the matching that `assignment` found.

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
