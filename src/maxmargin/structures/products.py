r"""Inner products of the tokens of a sequence, which give the image and the length of a move.

For the rows X of a sequence's features and a direction D, one row of labels per position, steps within the
block need only :math:`X X^\top D` and :math:`\operatorname{tr} D^\top X X^\top D`. There are three ways:

1. For sequences that are not long, the matrices :math:`X X^\top` are tabulated beforehand (`Products`), if
   all tables together take less memory than the features, or little memory.
2. Otherwise the table of such a sequence is computed when a step needs it (`compute_table`). All terms are
   added in the same order, so both give the same bits.
3. For long sequences, :math:`X^\top D` is computed first, with a row for each feature that D meets.
"""

from typing import NamedTuple, TypeVar

import numpy as np

from maxmargin.compiling import generic_with_default, helper, kernel, python_generic, subroutine
from maxmargin.compiling.loops import add_product, add_scaled, clear, count_nonzero, prefetch
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray, aligned_zeros
from maxmargin.runtime.limits import OutOfTime, Pace
from maxmargin.structures.problem import spans
from maxmargin.structures.rows import (
    DenseRows,
    Rows,
    row_add,
    row_dot,
    row_entry,
    row_push,
    row_scores,
    row_span,
    rows_prefetch,
)

# Longest sequence whose inner products are tabulated; a token takes 8 bytes times the length.
_TABULATED = 128
# Bytes that tables may take even if the features take less.
_LITTLE = 1 << 28
# A move with at most this many nonzeros per position is multiplied entry by entry.
_FEW = 10
# Number of contiguous entries of a long vector that are read in the time of one random access.
_SCALAR = 16
# Spreads column numbers over slots.
_SPREAD, _SHIFT = 40503, 7
# A named tuple with the fields rows, tokens, products, product_spans and table_room.
TokenMap = TypeVar("TokenMap", bound=tuple)  # type: ignore[type-arg]


class Products(NamedTuple):
    """The inner products of the tokens of each sequence.

    Attributes
    ----------
    values : array
        The matrices of inner products, one after another, row by row.
    spans : array of shape (n, 2)
        Where the matrix of each sequence begins and ends; both are equal for a sequence without a table.
    room : array of shape (2,)
        The most tokens, and the most entries of sparse rows, of a sequence whose table is computed.
    """

    values: FloatArray
    spans: IntArray
    room: IntArray


def no_products(rows: Rows, tokens: IntArray) -> Products:
    """Return empty tables for sequences with the rows ``tokens[i, 0], ..., tokens[i, 1] - 1``."""
    places = np.zeros((len(tokens), 2), dtype=np.int64)
    return Products(np.zeros(0), places, _room(rows, tokens, places))


@python_generic
def tabulated(rows: Rows, tokens: IntArray) -> Products:
    """Return the tables for sequences with the rows ``tokens[i, 0], ..., tokens[i, 1] - 1``.

    They are empty if they would take too much memory, or if time is up before they are computed.
    """
    if rows.n_columns == 0:
        return no_products(rows, tokens)
    lengths = tokens[:, 1] - tokens[:, 0]
    entries = np.where(lengths <= _TABULATED, lengths, 0) ** 2
    if 8 * int(entries.sum()) > max(_LITTLE, sum(getattr(part, "nbytes", 0) for part in rows)):
        return no_products(rows, tokens)
    places = spans(np.concatenate([[0], np.cumsum(entries)]))
    products = Products(np.zeros(int(entries.sum())), places, _room(rows, tokens, places))
    buffer = np.zeros(rows.n_columns)
    try:
        for first, stop in Pace().pieces(0, len(tokens)):
            some = products._replace(spans=places[first:stop])
            _fill_products(some, rows, tokens[first:stop], buffer)
    except OutOfTime:
        return no_products(rows, tokens)
    return products


def with_tables(phi: TokenMap) -> TokenMap:
    """Return a map of tokens with the tables of its sequences."""
    found = tabulated(phi.rows, phi.tokens)  # type: ignore[attr-defined]
    return phi._replace(products=found.values, product_spans=found.spans, table_room=found.room)  # type: ignore[attr-defined, no-any-return]


def _room(rows: Rows, tokens: IntArray, places: IntArray) -> IntArray:
    """Return the most tokens and entries of a sequence whose table is computed, for workspaces.

    They are measured once per problem, as a workspace is allocated for every part of a pass.
    """
    lengths, room = tokens[:, 1] - tokens[:, 0], np.zeros(2, dtype=np.int64)
    computed = (lengths <= _TABULATED) & (places[:, 0] == places[:, 1])
    first, stop = tokens[computed, 0], tokens[computed, 1]
    room[0] = (stop - first).max(initial=0)
    if not isinstance(rows, DenseRows):
        room[1] = (rows.start[stop] - rows.start[first]).max(initial=0)
    return room


@kernel
def _fill_products(products, rows, tokens, buffer):
    """Write ``X_i @ X_i.T`` for each sequence; ``buffer`` has one zero per feature."""
    for i in range(tokens.shape[0]):
        begin, first, length = products.spans[i, 0], tokens[i, 0], tokens[i, 1] - tokens[i, 0]
        if begin == products.spans[i, 1]:
            continue
        for s in range(length):
            row_add(rows, first + s, 1.0, buffer)
            for t in range(s, length):
                value = row_dot(rows, first + t, buffer)
                products.values[begin + s * length + t] = value
                products.values[begin + t * length + s] = value
            row_add(rows, first + s, -1.0, buffer)  # x - x is exactly zero


@subroutine
def prefetch_tokens(phi, i):
    """Prefetch the features of sequence i and their inner products."""
    rows_prefetch(phi.rows, phi.tokens[i, 0], phi.tokens[i, 1])
    prefetch(phi.products, phi.product_spans[i, 0], phi.product_spans[i, 1])


@subroutine
def _has_table(phi, i):
    """Whether the inner products of sequence i are tabulated."""
    return phi.product_spans[i, 0] < phi.product_spans[i, 1]


class TableWork(NamedTuple):
    """Workspace for the table of one sequence.

    Few features of a sequence are shared by many tokens. So entries are added one by one to a hash table that
    holds the last entry of each feature, and each entry links to the previous one with the same feature.
    Only pairs of tokens with a common feature are visited, in the order of columns.

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


@generic_with_default
def fill_table(rows, first, stop, work):
    """Write the inner products of the rows first, ..., stop - 1."""
    _clear(work, stop - first)
    begin, length = row_span(rows, first)[1], stop - first
    for t in range(length):
        s, start, end, _ = row_span(rows, first + t)
        for p in range(start, end):
            x, e = row_entry(rows, s, p)[1], _enter(rows.columns, begin, p, t, work)
            work.values[t * length + t] += x * x
            while e > 0:
                other = row_entry(rows, s, begin + e - 1)[1]
                work.values[work.owner[e - 1] * length + t] += x * other
                e = work.before[e - 1]
    _mirror(work.values, length)


@fill_table.register(DenseRows)
def dense_rows_fill_table(rows, first, stop, work):
    length = stop - first
    for s in range(length):
        for t in range(length):
            total = 0.0
            for f in range(rows.n_columns):
                total += np.float64(rows.values[first + t, f]) * np.float64(rows.values[first + s, f])
            work.values[s * length + t] = total


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


class TokenMapWork(NamedTuple):
    """Workspace of a map of tokens.

    Attributes
    ----------
    stream : array
        The feature vector of a move, for sequences without a table of inner products. It has room for all
        features; memory that is not written to takes none.
    place : array
        For each feature its row of the stream, plus one; zero if it has none.
    nonzero : array
        Positions or labels where a move is not zero.
    table : TableWork
        The inner products of the tokens of one sequence, for those without a table.
    """

    stream: FloatArray
    place: UIntArray
    nonzero: UIntArray
    table: TableWork


@python_generic
def token_map_work(rows: Rows, longest: int, width: int, room: IntArray) -> TokenMapWork:
    """Return the workspace of a map of tokens with rows of this width."""
    n_columns = rows.n_columns if longest > _TABULATED else 0
    place, nonzero = (np.zeros(size, dtype=np.uint32) for size in (n_columns, max(longest, width) + 1))
    return TokenMapWork(aligned_zeros(n_columns, width), place, nonzero, new_table_work(room))


@subroutine
def products_norm2(phi, i, D, G, sums, work):
    r"""Return :math:`\operatorname{tr} D^\top X_i X_i^\top D` plus the sum of ``sums``.

    ``sums``, with one entry for each label, and G are workspace.
    """
    if _has_table(phi, i):
        return table_norm2(phi, i, D, sums, work.nonzero)
    if D.shape[0] <= phi.table_room[0]:
        compute_table(phi.rows, phi.tokens[i, 0], phi.tokens[i, 1], work.table)
        _sum_products(work.table.values, 0, D, sums, work.nonzero)
        return _sum(sums)
    stream_norm2(phi.rows, phi.tokens[i, 0], D, G, sums, work)
    return _sum(sums)


@subroutine
def table_norm2(phi, i, D, sums, positions):
    r"""Return :math:`\operatorname{tr} D^\top X_i X_i^\top D`, from the table, plus the sum of ``sums``."""
    _sum_products(phi.products, phi.product_spans[i, 0], D, sums, positions)
    return _sum(sums)


@helper
def _sum(values):
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    return total


@helper
def _sum_products(products, begin, D, sums, positions):
    """``sums += sum_st products[s, t] D_s * D_t`` over the positions where D is not zero, label by label.

    The table begins at ``products[begin]``.
    """
    length, count = D.shape[0], _list_positions(D, positions)
    for a in range(count):
        s = positions[a]
        first = begin + s * length
        add_product(products[first + s], D[s], D[s], sums)
        for b in range(a):
            t = positions[b]
            add_product(2.0 * products[first + t], D[s], D[t], sums)


@helper
def _list_positions(D, out):
    """List the rows of D that are not zero, and return their number."""
    count = 0
    for t in range(D.shape[0]):
        out[count] = t
        count += count_nonzero(D[t]) > 0
    return count


@subroutine
def multiply_products(head, phi, i, move, D, G, work):
    """``G = X_i X_i^T D``; D follows ``head`` other entries of the move."""
    if _has_table(phi, i):
        multiply_table(head, phi.products, phi.product_spans[i, 0], move, D, G)
    elif D.shape[0] <= phi.table_room[0]:
        compute_table(phi.rows, phi.tokens[i, 0], phi.tokens[i, 1], work.table)
        multiply_table(head, work.table.values, 0, move, D, G)
    else:
        stream_products(phi.rows, phi.tokens[i, 0], D, G, work)


@helper
def multiply_table(head, products, begin, move, D, G):
    """``G = X X^T D``, from a table at ``products[begin]``; D follows ``head`` other entries of the move."""
    for t in range(G.shape[0]):
        clear(G[t])
    if move.size[0] <= _FEW * G.shape[0]:
        _multiply_entries(head, products, begin, move, G)
    else:
        _multiply_rows(products, begin, D, G)


@helper
def _multiply_entries(head, products, begin, move, G):
    """``G += X_i X_i^T D``, from the table, nonzero by nonzero; entries of the move after D are skipped."""
    length, end = G.shape[0], head + G.size
    for c in range(move.size[0]):
        p = move.support[c]
        if head <= p < end:
            t, k = position_and_label(p, head, G.shape[1])
            first = begin + t * length
            column = products[first : first + length]
            for s in range(length):
                G[s, k] += column[s] * move.delta[p]


@helper
def _multiply_rows(products, begin, D, G):
    """``G += X_i X_i^T D``, from the table, for each nonzero row of D."""
    length = G.shape[0]
    for s in range(length):
        if count_nonzero(D[s]) > 0:
            for t in range(length):
                add_scaled(products[begin + s * length + t], D[s], G[t])


@generic_with_default
def stream_products(rows, first, D, G, work):
    """``G = X X^T D`` for the rows X from ``first`` on.

    The rows of the stream are those of features in the order in which D meets them: few, and close together,
    where features are many. Features that it does not meet add nothing.
    """
    count = _enter_stream(rows, first, D, work)
    for t in range(D.shape[0]):
        clear(G[t])
        s, begin, stop, shift = row_span(rows, first + t)
        for p in range(begin, stop):
            f, x = row_entry(rows, s, p)
            place = np.int64(work.place[shift + f])
            if place > 0:
                add_scaled(x, work.stream[place - 1], G[t])
    _leave_stream(rows, first, D, count, work)


@generic_with_default
def stream_norm2(rows, first, D, G, sums, work):
    """Add the squares of ``X^T D`` to ``sums``, label by label; G is workspace."""
    count = _enter_stream(rows, first, D, work)
    for c in range(count):
        add_product(1.0, work.stream[c], work.stream[c], sums)
    _leave_stream(rows, first, D, count, work)


@subroutine
def _leave_stream(rows, first, D, count, work):
    """Set the stream and its places to zero."""
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            s, begin, stop, shift = row_span(rows, first + t)
            for p in range(begin, stop):
                work.place[shift + row_entry(rows, s, p)[0]] = 0
    for c in range(count):
        clear(work.stream[c])


@subroutine
def _enter_stream(rows, first, D, work):
    """Write ``X^T D`` to the stream, and the places of its rows plus one; return their number."""
    count = 0
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            s, begin, stop, shift = row_span(rows, first + t)
            for p in range(begin, stop):
                f, x = row_entry(rows, s, p)
                if work.place[shift + f] == 0:
                    count += 1
                    work.place[shift + f] = count
                add_scaled(x, D[t], work.stream[np.int64(work.place[shift + f]) - 1])
    return count


@stream_products.register(DenseRows)
def dense_rows_stream_products(rows, first, D, G, work):
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            row_push(rows, first + t, 1.0, D[t], work.stream)
    for t in range(D.shape[0]):
        row_scores(rows, first + t, work.stream, G[t])
    for f in range(rows.n_columns):
        clear(work.stream[f])


@stream_norm2.register(DenseRows)
def dense_rows_stream_norm2(rows, first, D, G, sums, work):
    stream_products(rows, first, D, G, work)
    for t in range(D.shape[0]):
        add_product(1.0, D[t], G[t], sums)


@helper
def head_norm2(head, move):
    """Return the squared length of the first ``head`` entries of delta."""
    total = 0.0
    for c in range(move.size[0]):
        if move.support[c] < head:
            entry = move.delta[move.support[c]]
            total += entry * entry  # the interpreter would round a power differently
    return total


@helper
def push_head(head, move, scale, out):
    """``out[:head] += scale * delta[:head]``; few entries one by one."""
    if _SCALAR * move.size[0] > head:
        add_scaled(scale, move.delta[:head], out)
        return
    for c in range(move.size[0]):
        p = move.support[c]
        if p < head:
            out[p] += scale * move.delta[p]


@helper
def position_and_label(p, head, width):
    """Return the position and the label of index p of the statistics; 32-bit numbers divide fast."""
    part = np.uint32(p - np.uint32(head))
    t = part // np.uint32(width)
    return t, np.uint32(part - t * np.uint32(width))
