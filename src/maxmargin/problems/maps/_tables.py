"""The table of inner products of the tokens of one sequence, computed when a step needs it.

Few features of a sequence are shared by many tokens. So entries are added one by one to a hash table that
holds the last entry of each feature, and each entry links to the previous one with the same feature. Only
pairs of tokens with a common feature are visited. Terms are added in the order of columns, as in a table of
all sequences, so both give the same bits.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic, helper, subroutine
from maxmargin.rows import DenseRows, IndicatorRows, Rows, SparseRows

# Spreads column numbers over slots.
_SPREAD, _SHIFT = 40503, 7


class TableWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    values : array
        The table, row by row.
    span : array of shape (2,)
        The range of tokens in the table.
    slots : array
        A hash table of features: the number of the last entry with each, plus one; a power of two long.
    before : array
        For each entry the number of the previous one with the same feature, plus one; zero if there is none.
    owner : array
        The token of each entry.
    """

    values: FloatArray
    span: IntArray
    slots: IntArray
    before: IntArray
    owner: IntArray


def table_room(rows: Rows, tokens: IntArray) -> IntArray:
    """Return the most tokens and entries of a sequence; i has rows tokens[i, 0], ..., tokens[i, 1] - 1."""
    room = np.zeros(2, dtype=np.int64)
    room[0] = (tokens[:, 1] - tokens[:, 0]).max(initial=0)
    if not isinstance(rows, DenseRows):
        room[1] = (rows.start[tokens[:, 1]] - rows.start[tokens[:, 0]]).max(initial=0)
    return room


def new_table_work(room: IntArray) -> TableWork:
    """Return a workspace for the tables of sequences with at most this many tokens and entries."""
    longest, entries = room.tolist()
    slots = 1 << (2 * entries).bit_length()
    counts = longest**2, 2, slots, entries, entries
    return TableWork(np.zeros(counts[0]), *(np.zeros(size, dtype=np.int64) for size in counts[1:]))


@subroutine
def compute_table(rows, first, stop, work):
    """Write the inner products of the rows first, ..., stop - 1, unless the table has them already."""
    if work.span[0] == first and work.span[1] == stop:
        return
    fill_table(rows, first, stop, work)
    work.span[0], work.span[1] = first, stop


@generic
def fill_table(rows, first, stop, work):
    """Write the inner products of the rows first, ..., stop - 1."""
    raise NotImplementedError


@fill_table.register(DenseRows)
def dense_rows_fill_table(rows, first, stop, work):
    length = stop - first
    for s in range(length):
        for t in range(length):
            total = 0.0
            for f in range(rows.n_columns):
                total += np.float64(rows.values[first + t, f]) * np.float64(rows.values[first + s, f])
            work.values[s * length + t] = total


@fill_table.register(SparseRows)
def sparse_rows_fill_table(rows, first, stop, work):
    _clear(work, stop - first)
    begin, length = rows.start[first], stop - first
    for t in range(length):
        for p in range(rows.start[first + t], rows.start[first + t + 1]):
            x = np.float64(rows.values[p])
            e = _enter(rows.columns, begin, p, t, work)
            work.values[t * length + t] += x * x
            while e > 0:
                work.values[work.owner[e - 1] * length + t] += x * np.float64(rows.values[begin + e - 1])
                e = work.before[e - 1]
    _mirror(work.values, length)


@fill_table.register(IndicatorRows)
def indicator_rows_fill_table(rows, first, stop, work):
    _clear(work, stop - first)
    begin, length = rows.start[first], stop - first
    for t in range(length):
        for p in range(rows.start[first + t], rows.start[first + t + 1]):
            e = _enter(rows.columns, begin, p, t, work)
            while e > 0:
                work.values[work.owner[e - 1] * length + t] += 1.0
                e = work.before[e - 1]
        work.values[t * length + t] = 1.0 * (rows.start[first + t + 1] - rows.start[first + t])
    _mirror(work.values, length)


@helper
def _clear(work, length):
    for k in range(length * length):
        work.values[k] = 0.0
    for k in range(work.slots.shape[0]):
        work.slots[k] = 0


@helper
def _enter(columns, begin, p, t, work):
    """Add entry p of token t; return the number of the last entry with its feature plus one, or zero."""
    mask = work.slots.shape[0] - 1
    slot = ((np.int64(columns[p]) * _SPREAD) >> _SHIFT) & mask
    while work.slots[slot] > 0 and columns[begin + work.slots[slot] - 1] != columns[p]:
        slot = (slot + 1) & mask
    e = work.slots[slot]
    work.slots[slot] = p - begin + 1
    work.before[p - begin] = e
    work.owner[p - begin] = t
    return e


@helper
def _mirror(values, length):
    """Copy the upper triangle to the lower one."""
    for s in range(length):
        for t in range(s):
            values[s * length + t] = values[t * length + s]
