"""The Gibbs distribution over the labellings of a forest: sums from the leaves up, marginals on the way back.

The step between a node and its parent is one of `forward_backward`.
"""

import math

import numpy as np

from maxmargin.compiling import helper
from maxmargin.inference.forward_backward import exponentials, step_back
from maxmargin.inference.softmax import softmax
from maxmargin.inference.tree import ROOT
from maxmargin.loops import clear, copy


@helper
def tree_means(unary, tables, order, parent, heads, n_labels, value, joint, oriented, marginals, pairs):
    r"""Compute the marginals of the distribution over labellings with the probabilities

    .. math:: p(y) \propto \exp \left( \sum_v u_v(y_v) + \sum_{e = (a, b)} p_e(y_a, y_b) \right) .

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
