"""Maximum-weight partial matchings between rows and columns, by shortest augmenting paths."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import BoolArray, FloatArray, IntArray
from maxmargin.compiling import helper


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
