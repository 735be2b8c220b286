r"""Margins of the labels of a best labelling: by how much the score falls if a label has to differ.

The *max-marginal* :math:`m_t(k)` is the largest score of all labellings in which position t has label k. It
is the sum of the scores that a forward pass and a backward pass find. The margin of label :math:`y_t` is
:math:`m_t(y_t) - \max_{k \ne y_t} m_t(k)`: zero if another labelling is as good, infinite if there is no
other label.
"""

import numpy as np

from maxmargin.compiling import helper
from maxmargin.inference.tree import ROOT, send
from maxmargin.inference.viterbi import best_predecessors
from maxmargin.loops import add_scaled, clear, weighted_sum


@helper
def lead(value, n_labels, label):
    """Return by how much ``value[label]`` exceeds the largest other value; zero if it does not."""
    other = -np.inf
    for k in range(n_labels):
        other = value[k] if k != label and value[k] > other else other
    return max(value[label] - other, 0.0)


@helper
def transpose(matrix, n, out):
    """``out[:n, :n] = matrix[:n, :n].T``"""
    for j in range(n):
        for k in range(n):
            out[k, j] = matrix[j, k]


@helper
def path_margins(unary, pairwise, n_labels, value, turned, rows, y, margins):
    """Write the margins of the labels that `viterbi` found.

    Parameters
    ----------
    unary, pairwise, n_labels, value, y
        As for `viterbi`, after it.
    turned : array of shape (n_labels, width)
        Workspace: ``pairwise`` transposed, so that both passes run along rows.
    rows : array of shape (2, width)
        Workspace: the best scores after a position for each label, and sums.
    margins : array of shape (length,)
        Receives the margins.
    """
    after, total = rows[0], rows[1]
    transpose(pairwise, n_labels, turned)
    clear(after)
    for t in range(unary.shape[0] - 1, -1, -1):
        weighted_sum(1.0, value[t], 1.0, after, total)
        margins[t] = lead(total, n_labels, y[t])
        weighted_sum(1.0, unary[t], 1.0, after, total)
        best_predecessors(total, turned, n_labels, after)


@helper
def second_order_margins(unary, pairwise, triples, n_labels, value, turned, behind, rows, y, margins):
    """Write the margins of the labels that `second_order_viterbi` found.

    Parameters
    ----------
    unary, pairwise, triples, n_labels, value, y
        As for `second_order_viterbi`, after it.
    turned : array of shape (n_labels, n_labels, width)
        Workspace: ``triples`` with the outer labels exchanged.
    behind : array of shape (2, n_labels, width)
        Workspace: ``behind[t % 2, k, j]`` is the best score after position t, of label k, after label j.
    rows : array of shape (2, width)
        Workspace.
    margins : array of shape (length,)
        Receives the margins.
    """
    last = unary.shape[0] - 1
    if last == 0:
        margins[0] = lead(value[0, 0], n_labels, y[0])
        return
    for j in range(n_labels):
        transpose(triples[j], n_labels, turned[j])
        clear(behind[last % 2, j])
    for t in range(last, 0, -1):
        after, before = behind[t % 2], behind[(t - 1) % 2]
        _best_of_pairs(value[t], after, n_labels, rows[0], rows[1])
        margins[t] = lead(rows[1], n_labels, y[t])
        for j in range(n_labels):
            for k in range(n_labels):
                rows[1, k] = pairwise[j, k] + unary[t, k] + after[k, j]
            best_predecessors(rows[1], turned[j], n_labels, before[j])
    margins[0] = lead(rows[0], n_labels, y[0])


@helper
def _best_of_pairs(value, after, n_labels, first, second):
    """Write the max-marginals of two neighbours, from those of their pairs of labels."""
    for k in range(n_labels):
        first[k] = second[k] = -np.inf
    for j in range(n_labels):
        for k in range(n_labels):
            total = value[j, k] + after[k, j]
            first[j] = total if total > first[j] else first[j]
            second[k] = total if total > second[k] else second[k]


@helper
def tree_margins(tables, order, parent, heads, n_labels, value, rows, y, margins):
    """Write the margins of the labels that `best_on_tree` found.

    Parameters
    ----------
    tables, order, parent, heads, n_labels, y
        As for `best_on_tree`.
    value : array of shape (at least n_nodes, width)
        As `best_on_tree` leaves it: the best scores of the subtree of each node, for each of its labels. They
        become the max-marginals of the whole tree.
    rows : array of shape (2, width)
        Workspace.
    margins : array of shape (n_nodes,)
        Receives the margins.
    """
    message, rest = rows[0], rows[1]
    for t in range(order.shape[0]):
        v = order[t]
        if parent[v] != ROOT:
            above, table, side = value[heads[parent[v]]], tables[parent[v] >> 1], parent[v] & 1
            send(value[v], table, side, n_labels, message)
            weighted_sum(1.0, above, -1.0, message, rest)  # the parent without this subtree
            send(rest, table, 1 - side, n_labels, message)
            add_scaled(1.0, message, value[v])
        margins[v] = lead(value[v], n_labels, y[v])
