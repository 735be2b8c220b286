r"""Inner products of the tokens of a sequence: how a move of its block changes its scores and its length.

For the rows X of a sequence's features and a direction D, one row of labels per position, steps within the
block need :math:`X X^\top D` and :math:`\operatorname{tr} D^\top X X^\top D` only. The matrix
:math:`X X^\top` is tabulated for every sequence but the longest ones.
"""

from typing import Any

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import helper, kernel, subroutine
from maxmargin.compiling.prefetch import prefetch
from maxmargin.loops import add_product, add_scaled, clear, count_nonzero
from maxmargin.rows import row_add, row_clear, row_dot, row_push, row_scores, rows_prefetch

# Longest sequence whose inner products are tabulated, at 8 length bytes a token.
_TABULATED = 128
# Up to this many nonzeros of a move per position, they are multiplied one by one.
_FEW = 10
# Entries of a long vector that are walked in the time of one entry at a place of its own.
_SCALAR = 16


def tabulated(problem: Any) -> Any:
    """Return the problem with the inner products of its tokens."""
    lengths = np.diff(problem.offsets)
    entries = np.where(lengths <= _TABULATED, lengths, 0) ** 2
    problem = problem._replace(product_offsets=np.concatenate([[0], np.cumsum(entries)]))
    products = np.zeros(problem.product_offsets[-1])
    _fill_products(problem, np.zeros(problem.rows.n_columns), products)
    return problem._replace(products=products)


def image_work(problem: Any, width: int) -> FloatArray:
    """Return the work array of `stream_products` for rows of this width; empty if all have a table."""
    return aligned_zeros(problem.rows.n_columns if problem.longest > _TABULATED else 0, width)


@kernel
def _fill_products(problem, buffer, products):
    """``products[i] = X_i @ X_i.T``, row by row; ``buffer`` is one zero per feature."""
    rows = problem.rows
    for i in range(problem.offsets.shape[0] - 1):
        p, first, last = problem.product_offsets[i], problem.offsets[i], problem.offsets[i + 1]
        if not has_table(problem, i):
            continue
        for s in range(first, last):
            row_add(rows, s, 1.0, buffer)
            for t in range(first, last):
                products[p] = row_dot(rows, t, buffer)
                p += 1
            row_add(rows, s, -1.0, buffer)  # x - x is exactly zero


@subroutine
def prefetch_tokens(problem, i):
    """Ask for the features of sequence i and their inner products ahead of its visit."""
    rows_prefetch(problem.rows, problem.offsets[i], problem.offsets[i + 1])
    prefetch(problem.products, problem.product_offsets[i], problem.product_offsets[i + 1])


@subroutine
def has_table(problem, i):
    """Whether the inner products of sequence i are tabulated."""
    return problem.product_offsets[i] < problem.product_offsets[i + 1]


@subroutine
def products_norm2(problem, i, D, G, sums, work):
    r"""Return :math:`\operatorname{tr} D^\top X_i X_i^\top D`, and with it what ``sums`` add up to.

    They have one entry for each label, and are work space, as G is.
    """
    total = 0.0
    if has_table(problem, i):
        _sum_products(problem, i, D, sums, work.nonzero)
    else:
        stream_products(problem, i, D, G, work)
        for t in range(D.shape[0]):
            add_product(1.0, D[t], G[t], sums)
    for k in range(sums.shape[0]):
        total += sums[k]
    return total


@subroutine
def _sum_products(problem, i, D, sums, positions):
    """``sums += sum_st products[s, t] D_s * D_t`` over the positions where D is not zero, label by label."""
    length, count = D.shape[0], _list_positions(D, positions)
    for a in range(count):
        s = positions[a]
        first = problem.product_offsets[i] + s * length
        add_product(problem.products[first + s], D[s], D[s], sums)
        for b in range(a):
            t = positions[b]
            add_product(2.0 * problem.products[first + t], D[s], D[t], sums)


@helper
def _list_positions(D, out):
    """List the rows of D that are not zero, and return their number."""
    count = 0
    for t in range(D.shape[0]):
        out[count] = t
        count += count_nonzero(D[t]) > 0
    return count


@subroutine
def transitions_norm2(problem, move):
    """The squared length of delta's counts of transitions."""
    return head_norm2(problem.n_labels * problem.width, move)


@helper
def head_norm2(head, move):
    """The squared length of the first ``head`` entries of delta."""
    total = 0.0
    for c in range(move.size[0]):
        if move.support[c] < head:
            entry = move.delta[move.support[c]]
            total += entry * entry  # a power is rounded otherwise where it is interpreted
    return total


@subroutine
def push_transitions(problem, move, scale, A):
    """``A += scale * delta``, of the counts of transitions alone."""
    push_head(problem.n_labels * problem.width, move, scale, A)


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
def multiply_products(problem, i, move, D, G):
    """``G = X_i X_i^T D``, by the table."""
    multiply_products_behind(problem.n_labels * problem.width, problem, i, move, D, G)


@subroutine
def multiply_products_behind(head, problem, i, move, D, G):
    """The same where ``head`` entries of the move come before D, whose rows may have any width."""
    for t in range(G.shape[0]):
        clear(G[t])
    if move.size[0] <= _FEW * G.shape[0]:
        _multiply_entries(head, problem, i, move, G)
    else:
        _multiply_rows(problem, i, D, G)


@subroutine
def _multiply_entries(head, problem, i, move, G):
    """The same from ``G = 0``, one nonzero of D after another; what follows the positions is not of D."""
    length, end = G.shape[0], head + G.size
    for c in range(move.size[0]):
        p = move.support[c]
        if head <= p < end:
            t, k = _position_and_label(p, head, G.shape[1])
            first = problem.product_offsets[i] + t * length
            column = problem.products[first : first + length]
            for s in range(length):
                G[s, k] += column[s] * move.delta[p]


@subroutine
def _multiply_rows(problem, i, D, G):
    """The same, one row of labels after another."""
    length = G.shape[0]
    for s in range(length):
        if count_nonzero(D[s]) > 0:
            for t in range(length):
                add_scaled(problem.products[problem.product_offsets[i] + s * length + t], D[s], G[t])


@subroutine
def stream_products(problem, i, D, G, work):
    """The same for a sequence too long for a table: ``image = X_i^T D``, then ``G = X_i image``."""
    rows, first = problem.rows, problem.offsets[i]
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            row_push(rows, first + t, 1.0, D[t], work.image)
    for t in range(D.shape[0]):
        row_scores(rows, first + t, work.image, G[t])
    for t in range(D.shape[0]):
        row_clear(rows, first + t, work.image)


@helper
def _position_and_label(p, head, width):
    """The position and the label that index p of the statistics stands for; narrow numbers divide fast."""
    part = np.uint32(p - np.uint32(head))
    t = part // np.uint32(width)
    return t, np.uint32(part - t * np.uint32(width))
