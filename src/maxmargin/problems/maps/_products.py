r"""Inner products of the tokens of a sequence, which give the image and the length of a move.

For the rows X of a sequence's features and a direction D, one row of labels per position, steps within the
block need only :math:`X X^\top D` and :math:`\operatorname{tr} D^\top X X^\top D`. For sequences that are
not long, the matrices :math:`X X^\top` are tabulated if all tables together take less memory than the
features, or little memory. Otherwise the table of a sequence is computed when a step needs it. For long
sequences, :math:`X^\top D` is computed first, in an array like that of the weights.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper, kernel, subroutine
from maxmargin.compiling.prefetch import prefetch
from maxmargin.limits import OutOfTime, Pace
from maxmargin.loops import add_product, add_scaled, clear, count_nonzero
from maxmargin.problems.maps._tables import compute_table, table_room
from maxmargin.problems.subsets import spans
from maxmargin.rows import (
    Rows,
    row_add,
    row_clear,
    row_dot,
    row_push,
    row_scores,
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


def _room(rows: Rows, tokens: IntArray, places: IntArray) -> IntArray:
    """Return the sizes of the largest table that is computed, for which workspaces are allocated.

    They are measured once per problem, as a workspace is allocated for every part of a pass.
    """
    lengths = tokens[:, 1] - tokens[:, 0]
    computed = (lengths <= _TABULATED) & (places[:, 0] == places[:, 1])
    return table_room(rows, tokens[computed])


def stream_buffer(rows: Rows, longest: int, width: int) -> FloatArray:
    """Return the work array of `stream_products` for rows of this width; empty if all have a table."""
    return aligned_zeros(rows.n_columns if longest > _TABULATED else 0, width)


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
def has_table(phi, i):
    """Whether the inner products of sequence i are tabulated."""
    return phi.product_spans[i, 0] < phi.product_spans[i, 1]


@subroutine
def products_norm2(phi, i, D, G, sums, work):
    r"""Return :math:`\operatorname{tr} D^\top X_i X_i^\top D` plus the sum of ``sums``.

    ``sums``, with one entry for each label, and G are workspace.
    """
    if has_table(phi, i):
        return table_norm2(phi, i, D, sums, work.nonzero)
    if D.shape[0] <= _TABULATED:
        compute_table(phi.rows, phi.tokens[i, 0], phi.tokens[i, 1], work.table)
        _sum_products(work.table.values, 0, D, sums, work.nonzero)
        return _sum(sums)
    _stream_products(phi, i, D, G, work)
    for t in range(D.shape[0]):
        add_product(1.0, D[t], G[t], sums)
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
def transitions_norm2(phi, move):
    """Return the squared length of delta's counts of transitions."""
    return head_norm2(phi.n_labels * phi.width, move)


@helper
def head_norm2(head, move):
    """Return the squared length of the first ``head`` entries of delta."""
    total = 0.0
    for c in range(move.size[0]):
        if move.support[c] < head:
            entry = move.delta[move.support[c]]
            total += entry * entry  # the interpreter would round a power differently
    return total


@subroutine
def push_transitions(phi, move, scale, A):
    """``A += scale * delta``, for the counts of transitions only."""
    push_head(phi.n_labels * phi.width, move, scale, A)


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


@subroutine
def multiply_products(phi, i, move, D, G):
    """``G = X_i X_i^T D``, from the table."""
    multiply_products_behind(phi.n_labels * phi.width, phi, i, move, D, G)


@subroutine
def multiply_products_behind(head, phi, i, move, D, G):
    """``G = X_i X_i^T D``, from the table; D follows ``head`` other entries of the move."""
    _multiply_table(head, phi.products, phi.product_spans[i, 0], move, D, G)


@helper
def _multiply_table(head, products, begin, move, D, G):
    """``G = X X^T D``, from the table that begins at ``products[begin]``."""
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


@subroutine
def compute_products(head, phi, i, move, D, G, work):
    """``G = X_i X_i^T D``, without a table; D follows ``head`` other entries of the move."""
    if D.shape[0] <= _TABULATED:
        compute_table(phi.rows, phi.tokens[i, 0], phi.tokens[i, 1], work.table)
        _multiply_table(head, work.table.values, 0, move, D, G)
    else:
        _stream_products(phi, i, D, G, work)


@subroutine
def _stream_products(phi, i, D, G, work):
    """``G = X_i X_i^T D`` for long sequences: ``X_i^T D`` first, then ``X_i`` times it."""
    rows, first = phi.rows, phi.tokens[i, 0]
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            row_push(rows, first + t, 1.0, D[t], work.stream)
    for t in range(D.shape[0]):
        row_scores(rows, first + t, work.stream, G[t])
    for t in range(D.shape[0]):
        row_clear(rows, first + t, work.stream)


@helper
def position_and_label(p, head, width):
    """Return the position and the label of index p of the statistics; 32-bit numbers divide fast."""
    part = np.uint32(p - np.uint32(head))
    t = part // np.uint32(width)
    return t, np.uint32(part - t * np.uint32(width))
