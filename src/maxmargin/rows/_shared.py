"""Rows that several parts of an example share, each part with weights of its own.

The label sets of an example of L labels have L rows with the same features, in the columns of L different
blocks. Stored as such, the features would be there L times.
"""

from typing import NamedTuple

from maxmargin.compiling import subroutine
from maxmargin.rows import _access
from maxmargin.rows._storage import Rows


class SharedRows(NamedTuple):
    """The Kronecker product of a row of features and the identity, for each row of a matrix.

    Row t has the features of row ``t // times`` of the matrix, in block ``t % times`` of the columns.

    Attributes
    ----------
    stored : Rows
    times : int
        How many rows share features: the number of blocks.
    n_columns : int
        That of all blocks.
    """

    stored: Rows
    times: int
    n_columns: int


def shared_rows(stored: Rows, times: int) -> SharedRows:
    """Return the rows, each as often as it has blocks of columns."""
    return SharedRows(stored, int(times), int(times) * stored.n_columns)


@subroutine
def _place(rows, t):
    """Return the stored row, and the first and last column of its block."""
    s = t // rows.times
    first = (t - s * rows.times) * rows.stored.n_columns
    return s, first, first + rows.stored.n_columns


@_access.row_scores.register(SharedRows)
def shared_rows_row_scores(rows, t, W, out):
    s, first, stop = _place(rows, t)
    _access.row_scores(rows.stored, s, W[first:stop], out)


@_access.row_push.register(SharedRows)
def shared_rows_row_push(rows, t, scale, delta, W):
    s, first, stop = _place(rows, t)
    _access.row_push(rows.stored, s, scale, delta, W[first:stop])


@_access.row_add_two.register(SharedRows)
def shared_rows_row_add_two(rows, t, a, b, W, j, k):
    s, first, stop = _place(rows, t)
    _access.row_add_two(rows.stored, s, a, b, W[first:stop], j, k)


@_access.rows_prefetch.register(SharedRows)
def shared_rows_rows_prefetch(rows, first, stop):
    _access.rows_prefetch(rows.stored, first // rows.times, (stop + rows.times - 1) // rows.times)


@_access.row_clear.register(SharedRows)
def shared_rows_row_clear(rows, t, W):
    s, first, stop = _place(rows, t)
    _access.row_clear(rows.stored, s, W[first:stop])


@_access.row_add.register(SharedRows)
def shared_rows_row_add(rows, t, scale, out):
    s, first, stop = _place(rows, t)
    _access.row_add(rows.stored, s, scale, out[first:stop])


@_access.row_dot.register(SharedRows)
def shared_rows_row_dot(rows, t, v):
    s, first, stop = _place(rows, t)
    return _access.row_dot(rows.stored, s, v[first:stop])


@_access.row_wipe.register(SharedRows)
def shared_rows_row_wipe(rows, t, v):
    s, first, stop = _place(rows, t)
    return _access.row_wipe(rows.stored, s, v[first:stop])


@_access.row_wipe_two.register(SharedRows)
def shared_rows_row_wipe_two(rows, t, W, j, k):
    s, first, stop = _place(rows, t)
    return _access.row_wipe_two(rows.stored, s, W[first:stop], j, k)
