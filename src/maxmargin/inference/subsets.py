"""The best labelling of a small graph by zeros and ones: all labellings are scored, by doubling.

A labelling is a set of nodes: those with label one. Sets are numbered by their bits, so that the sets of the
first v nodes are 0, ..., 2^v - 1, and adding node v adds 2^v. The gain of node v for all sets of earlier
nodes is also computed by doubling, one neighbour at a time. So a set costs two additions.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper

# Largest number of nodes: 4,096 sets.
MOST_NODES = 12


class SubsetWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    score : array of shape (2^n_nodes,)
        The score of each set, relative to that of the empty set.
    gain : array of shape (2^n_nodes,)
        What a node adds to the score of each set of earlier nodes.
    change : array of shape (n_nodes,)
        How the gain changes with each earlier node.
    """

    score: FloatArray
    gain: FloatArray
    change: FloatArray


def subset_work(n_nodes: int) -> SubsetWork:
    """Return a workspace for up to ``n_nodes`` nodes."""
    return SubsetWork(np.zeros(2**n_nodes), np.zeros(2**n_nodes), np.zeros(n_nodes))


@helper
def best_subset(unary, tables, start, arcs, heads, work, y):
    r"""Find the labelling by zeros and ones of largest score.

    .. math:: \max_y \; \sum_v u_v(y_v) + \sum_{e = (a, b)} p_e(y_a, y_b)

    Ties go to the smallest number.

    Parameters
    ----------
    unary : array of shape (n_nodes, width)
    tables : array of shape (n_edges, 2, width)
        ``tables[e, j, k]`` is the score of label j at the first end of e and label k at its second.
    start, arcs, heads : int arrays
        Node v has the arcs ``arcs[start[v]:start[v + 1]]``, and arc a leads to ``heads[a]``; edge e has the
        arcs 2e, from its first end to its second, and 2e + 1.
    work : SubsetWork
    y : int array of length at least n_nodes
        Receives the labelling.
    """
    n_nodes, score = unary.shape[0], work.score
    score[0] = 0.0
    for v in range(n_nodes):
        _gains(v, unary, tables, start, arcs, heads, work)
        for s in range(1 << v):
            score[s + (1 << v)] = score[s] + work.gain[s]
    best = 0
    for s in range(1, 1 << n_nodes):
        best = s if score[s] > score[best] else best
    for v in range(n_nodes):
        y[v] = (best >> v) & 1


@helper
def _gains(v, unary, tables, start, arcs, heads, work):
    """Write what label one at v adds to the score of each set of earlier nodes, later labels being zero."""
    gain, change = work.gain, work.change
    gain[0] = unary[v, 1] - unary[v, 0]
    for u in range(v):
        change[u] = 0.0
    for p in range(start[v], start[v + 1]):
        u, table = heads[arcs[p]], tables[arcs[p] >> 1]
        alone = table[1, 0] if arcs[p] & 1 == 0 else table[0, 1]
        gain[0] += alone - table[0, 0]
        if u < v:
            change[u] = table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0]
    for u in range(v):
        for s in range(1 << u):
            gain[s + (1 << u)] = gain[s] + change[u]
