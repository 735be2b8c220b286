"""The best labelling of a tree for each number of wrong labels."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.inference.tree import ROOT, add_given, first_best, send
from maxmargin.loops import copy, fill


class CountedTree(NamedTuple):
    """Workspace.

    A *branch* is a node with the branches of some of its children. It has a table with one row for each
    number of wrong labels, from zero on: the best score for each label of the node.

    Attributes
    ----------
    tables : array of shape (n_rows, width)
        The tables of all branches, one after another.
    begin : int array of shape (n_nodes,)
        Where the table of the largest branch of each node begins.
    before : int array of shape (n_nodes,)
        Where the table of the branch begins that the node's branch was joined to.
    size : int array of shape (n_nodes,)
        Number of nodes of the branch of each node.
    wrong : int array of shape (n_nodes,)
        Number of wrong labels in it.
    message : array of shape (width,)
    scores : array of shape (n_nodes + 1,)
        Score of the best labelling for each number of wrong labels.
    """

    tables: FloatArray
    begin: IntArray
    before: IntArray
    size: IntArray
    wrong: IntArray
    message: FloatArray
    scores: FloatArray


def counted_tree(n_nodes: int, n_rows: int, width: int) -> CountedTree:
    """Return a workspace for forests of up to ``n_nodes`` nodes whose tables have ``n_rows`` rows."""
    begin, before, size, wrong = np.zeros((4, n_nodes), dtype=np.int64)
    message, scores = aligned_zeros(width), np.zeros(n_nodes + 1)
    return CountedTree(aligned_zeros(n_rows, width), begin, before, size, wrong, message, scores)


@helper
def count_rows(order, parent, heads, size):
    """Return the number of rows of the tables of a forest; ``size`` is workspace."""
    n_nodes, total = order.shape[0], 2 * order.shape[0]
    for v in range(n_nodes):
        size[v] = 1
    for t in range(n_nodes - 1, 0, -1):
        v, to = order[t], _joined_to(order, parent, heads, order[t])
        size[to] += size[v]
        total += size[to] + 1
    return total


@helper
def _joined_to(order, parent, heads, v):
    """Return the parent of a node; for a root, which has none, the first root.

    This makes the forest one tree, in which some edges have no scores.
    """
    return order[0] if parent[v] == ROOT else heads[parent[v]]


@helper
def best_on_tree_by_count(unary, pairs, order, parent, heads, truth, n_labels, work):
    r"""Fill ``work.scores[m]``: the score of the best labelling of a forest with m wrong labels.

    Branches are joined from the leaves up: if the branches of a node and of its child have i and j wrong
    labels, the joined branch has i + j. Each pair of nodes takes one step in the join that unites them, times
    the number of labels; messages take at most as many steps, times its square.

    Parameters
    ----------
    unary : array of shape (n_nodes, width)
    pairs : array of shape (n_edges, n_labels, width)
        ``pairs[e, j, k]`` is the score of label j at the first end of e and label k at its second.
    order, parent : int arrays of shape (n_nodes,)
        As made by `span`.
    heads : int array
        The node that each arc leads to.
    truth : int array of shape (n_nodes,)
    n_labels : int
    work : CountedTree
    """
    n_nodes, top = unary.shape[0], 2 * unary.shape[0]
    for v in range(n_nodes):
        work.begin[v], work.size[v] = 2 * v, 1
        _begin(unary[v], truth[v], n_labels, work.tables[2 * v : 2 * v + 2])
    for t in range(n_nodes - 1, 0, -1):
        v, to = order[t], _joined_to(order, parent, heads, order[t])
        work.before[v] = work.begin[to]
        _join(v, to, top, pairs, parent[v], n_labels, work)
        work.begin[to], work.size[to] = top, work.size[to] + work.size[v]
        top += work.size[to] + 1
    for m in range(n_nodes + 1):
        row = work.tables[work.begin[order[0]] + m]
        work.scores[m] = row[first_best(row, n_labels)]


@helper
def _begin(unary, right, n_labels, table):
    """Fill the table of a single node: one label is right, the others are wrong."""
    fill(table[0], -np.inf)
    copy(unary, table[1])
    table[0, right], table[1, right] = unary[right], -np.inf


@helper
def _join(v, to, top, pairs, arc, n_labels, work):
    """Write the table of the branch of ``to`` joined with that of its child v, from row ``top`` on."""
    tables, message, own, other = work.tables, work.message, work.begin[to], work.begin[v]
    for m in range(work.size[to] + work.size[v] + 1):
        fill(tables[top + m], -np.inf)
    for j in range(work.size[v] + 1):
        _send_up(tables[other + j], pairs, arc, n_labels, message)
        for i in range(work.size[to] + 1):
            _keep_larger(tables[own + i], message, tables[top + i + j])


@helper
def _send_up(row, pairs, arc, n_labels, message):
    """Write the best score that a child adds to each label of its parent."""
    if arc == ROOT:
        fill(message, row[first_best(row, n_labels)])
    else:
        send(row, pairs[arc >> 1], arc & 1, n_labels, message)


@helper
def _keep_larger(x, y, out):
    """``out = max(out, x + y)``"""
    for k in range(out.shape[0]):
        value = x[k] + y[k]
        out[k] = value if value > out[k] else out[k]


@helper
def trace_tree_back(pairs, order, parent, heads, m, n_labels, work, y):
    """Write the best labelling with m wrong labels; joins are undone in reverse order."""
    root = order[0]
    work.wrong[root] = m
    y[root] = first_best(work.tables[work.begin[root] + m], n_labels)
    for t in range(1, order.shape[0]):
        v, to = order[t], _joined_to(order, parent, heads, order[t])
        work.size[to] -= work.size[v]
        work.wrong[v] = _share(v, to, pairs, parent[v], n_labels, work, y[to])
        work.wrong[to] -= work.wrong[v]
        y[v] = _choose(work.tables[work.begin[v] + work.wrong[v]], pairs, parent[v], y[to], n_labels, work)


@helper
def _share(v, to, pairs, arc, n_labels, work, label):
    """Return how many of the wrong labels of ``to`` are in the branch of its child v, given its label."""
    tables, total = work.tables, work.wrong[to]
    best, score = max(total - work.size[to], 0), -np.inf
    for j in range(best, min(total, work.size[v]) + 1):
        k = _choose(tables[work.begin[v] + j], pairs, arc, label, n_labels, work)
        candidate = tables[work.before[v] + total - j, label] + work.message[k]
        if candidate > score:
            best, score = j, candidate
    return best


@helper
def _choose(row, pairs, arc, label, n_labels, work):
    """Return the best label of a child, given its parent's; ``work.message`` receives all scores."""
    copy(row, work.message)
    if arc != ROOT:
        add_given(pairs[arc >> 1], arc & 1, label, n_labels, work.message)
    return first_best(work.message, n_labels)
