"""Graphs without cycles: the best labels, sums over all, and the best by number of wrong labels."""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import add_scaled, clear, copy, fill, weighted_sum
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros, kernel_array
from maxmargin.structures.graphs.encode import Graphs
from maxmargin.structures.recursions import best_predecessors, exponentials, lead, softmax, step_back

# Stands for the arc to the parent of a root, which has none.
ROOT = -1


class Neighbours(NamedTuple):
    """The edges of all graphs as seen from their nodes; edge e of a graph has the arcs 2e and 2e + 1.

    Attributes
    ----------
    start : array of shape (n_nodes + 1,)
    arcs : array of shape (2 * n_edges,)
        The arcs ``arcs[start[v]:start[v + 1]]`` leave node v. Arcs are numbered within their graph.
    heads : array of shape (2 * n_edges,)
        The node that each arc leads to, numbered within the graph; graph after graph. Arc 2e leads from the
        first end of edge e to the second, arc 2e + 1 back.
    """

    start: IntArray
    arcs: IntArray
    heads: IntArray


def neighbours(graphs: Graphs) -> Neighbours:
    """Return the arcs of all nodes."""
    graph = np.repeat(np.arange(len(graphs.offsets) - 1), 2 * np.diff(graphs.edge_offsets))
    tails = graphs.ends.ravel() + graphs.offsets[graph]
    start = np.append(0, np.cumsum(np.bincount(tails, minlength=int(graphs.offsets[-1]))))
    arcs = np.argsort(tails, kind="stable")
    arcs = kernel_array(arcs - 2 * graphs.edge_offsets[graph[arcs]], np.int64)
    return Neighbours(start, arcs, graphs.ends[:, ::-1].ravel())


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


class Tree(NamedTuple):
    """Exact, for graphs without cycles; edges have tables.

    Attributes
    ----------
    order, parent : arrays of shape (n_nodes,)
        The nodes of each graph, parents before children, and the arc from each to its parent.
    """

    order: IntArray
    parent: IntArray


def walked(graphs: Graphs, arcs: Neighbours) -> Tree:
    """Return a traversal order for each graph; raise if one has a cycle."""
    order, parent = np.zeros((2, int(graphs.offsets[-1])), dtype=np.int64)
    for i in range(len(graphs.offsets) - 1):
        first, stop = graphs.offsets[i : i + 2]
        heads = arcs.heads[2 * graphs.edge_offsets[i] : 2 * graphs.edge_offsets[i + 1]]
        start = arcs.start[first : stop + 1]
        if not span(start, arcs.arcs, heads, order[first:stop], parent[first:stop]):
            raise ValueError(
                f"graph {i} of X has a cycle, but inference='tree' is for graphs without; remove "
                "edges, or use inference='messages', or 'cut' for two labels."
            )
    return Tree(order, parent)


class TreeWork(NamedTuple):
    """Work arrays: the best score below each node for each of its labels, and a message."""

    value: FloatArray
    message: FloatArray


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


@helper
def tree_means(unary, tables, order, parent, heads, n_labels, value, joint, oriented, marginals, pairs):
    r"""Compute the marginals of the distribution over labellings with the probabilities

    .. math:: p(y) \propto \exp \left( \sum_v u_v(y_v) + \sum_{e = (a, b)} p_e(y_a, y_b) \right) .

    Sums go from the leaves up, marginals on the way back. The step between a node and its parent is one of
    `forward_backward`.

    Columns may be padded beyond ``n_labels``. The padding of marginals becomes zero.

    Parameters
    ----------
    unary, tables, order, parent, heads, n_labels
        As for `best_on_tree`.
    value : array of shape (at least n_nodes, width)
        Workspace: the logarithm of the sum over the subtree of each node, given its label.
    joint : array of shape (2 * n_labels + 2, width)
        Workspace of `forward_backward`.
    oriented : array of shape (n_labels, width)
        Workspace: a table with one row for each label of the child.
    marginals : array of shape (n_nodes, width)
        Receives the probability of each label at each node.
    pairs : array of shape (n_edges, n_labels, width)
        Receives the probability of each pair of labels at the ends of each edge.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of the exponentials of all labellings.
    """
    n_nodes, log_partition = unary.shape[0], 0.0
    for v in range(n_nodes):
        copy(unary[v], value[v])
    for t in range(n_nodes - 1, -1, -1):
        v = order[t]
        if parent[v] != ROOT:
            above = value[heads[parent[v]]]
            _join(value[v], tables, parent[v], n_labels, joint, oriented)
            for k in range(n_labels):
                above[k] += joint[n_labels, k] + math.log(joint[n_labels + 1, k])
    for t in range(n_nodes):
        v = order[t]
        if parent[v] == ROOT:
            log_partition += softmax(value[v], n_labels, marginals[v])
        else:
            _join(value[v], tables, parent[v], n_labels, joint, oriented)
            for k in range(n_labels):
                clear(oriented[k])
            step_back(joint, n_labels, marginals[heads[parent[v]]], marginals[v], oriented)
            _orient(oriented, parent[v] & 1, n_labels, pairs[parent[v] >> 1])
    return log_partition


@helper
def _join(value, tables, arc, n_labels, joint, oriented):
    """Write the exponentials of the step from a node to its parent, along ``arc``."""
    _orient(tables[arc >> 1], arc & 1, n_labels, oriented)
    exponentials(value, oriented, joint[n_labels + 2 :], np.inf, n_labels, joint)


@helper
def _orient(table, side, n_labels, out):
    """Copy a table, transposed if ``side`` is 1: its rows are for the first end of an edge."""
    for j in range(n_labels):
        clear(out[j])
        for k in range(n_labels):
            out[j, k] = table[j, k] if side == 0 else table[k, j]


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
        _join_counts(v, to, top, pairs, parent[v], n_labels, work)
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
def _join_counts(v, to, top, pairs, arc, n_labels, work):
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
