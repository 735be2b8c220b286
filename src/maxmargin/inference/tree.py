"""Best labellings of forests: messages from the leaves to the roots, then choices on the way back."""

import numpy as np

from maxmargin.compiling import helper
from maxmargin.inference.viterbi import best_predecessors
from maxmargin.loops import add_scaled, copy

# Stands for the arc to the parent of a root, which has none.
ROOT = -1


@helper
def span(start, arcs, heads, order, parent):
    """Order the nodes of a forest from its roots outwards; return False if the graph is not a forest.

    Edge e has the arcs 2e, from its first end to its second, and 2e + 1 back.

    Parameters
    ----------
    start, arcs, heads : int arrays
        Node v has the arcs ``arcs[start[v]:start[v + 1]]``, and arc a leads to ``heads[a]``.
    order : int array of shape (n_nodes,)
        Receives the nodes, parents before children, the trees one after another.
    parent : int array of shape (n_nodes,)
        Receives the arc from each node to its parent, or `ROOT`.
    """
    unseen, n_nodes = -2, order.shape[0]
    for v in range(n_nodes):
        parent[v] = unseen
    done = found = 0
    for root in range(n_nodes):
        if parent[root] == unseen:
            parent[root], order[found] = ROOT, root
            found += 1
        while done < found:
            v = order[done]
            done += 1
            for p in range(start[v], start[v + 1]):
                if arcs[p] != parent[v]:
                    u = heads[arcs[p]]
                    if parent[u] != unseen:
                        return False
                    parent[u], order[found] = arcs[p] ^ 1, u
                    found += 1
    return True


@helper
def best_on_tree(unary, tables, order, parent, heads, n_labels, value, message, y):
    r"""Find the labelling of a forest of largest score.

    .. math:: \max_y \; \sum_v u_v(y_v) + \sum_{e = (a, b)} p_e(y_a, y_b)

    Columns may be padded beyond ``n_labels``; no padded label is ever chosen. Ties go to the smaller label,
    from the roots outwards.

    Parameters
    ----------
    unary : array of shape (n_nodes, width)
    tables : array of shape (n_edges, n_labels, width)
        ``tables[e, j, k]`` is the score of label j at the first end of e and label k at its second.
    order, parent : int arrays of shape (n_nodes,)
        As made by `span`.
    heads : int array
        The node that each arc leads to.
    n_labels : int
    value : array of shape (at least n_nodes, width)
        Workspace; receives the score of the best labelling of the subtree of each node, given its label.
    message : array of shape (width,)
        Workspace.
    y : int array of length at least n_nodes
        Receives the labelling.
    """
    n_nodes = unary.shape[0]
    for v in range(n_nodes):
        copy(unary[v], value[v])
    for t in range(n_nodes - 1, -1, -1):
        v = order[t]
        if parent[v] != ROOT:
            send(value[v], tables[parent[v] >> 1], parent[v] & 1, n_labels, message)
            add_scaled(1.0, message, value[heads[parent[v]]])
    for t in range(n_nodes):
        v = order[t]
        copy(value[v], message)
        if parent[v] != ROOT:
            add_given(tables[parent[v] >> 1], parent[v] & 1, y[heads[parent[v]]], n_labels, message)
        y[v] = first_best(message, n_labels)


@helper
def send(value, table, side, n_labels, out):
    """``out[k] = max_j value[j] + table(j, k)``, from the end ``side`` (0: rows, 1: columns) to the other."""
    if side == 0:
        best_predecessors(value, table, n_labels, out)
        return
    for j in range(n_labels):
        row, best = table[j], -np.inf
        for k in range(n_labels):
            best = row[k] + value[k] if row[k] + value[k] > best else best
        out[j] = best


@helper
def add_given(table, side, label, n_labels, out):
    """``out[k] += table(k, label)``, where ``label`` is the label of the end opposite to ``side``."""
    if side == 1:
        add_scaled(1.0, table[label], out)
        return
    for k in range(n_labels):
        out[k] += table[k, label]


@helper
def first_best(value, n_labels):
    """Return the first label of largest value."""
    best = 0
    for k in range(1, n_labels):
        best = k if value[k] > value[best] else best
    return best
