"""The best labelling of any graph, by branch and bound with bounds from message passing (Land and Doig 1960).

Nodes get their labels in order, the most promising label first. The score of the labels so far, with the
messages that they receive from later nodes and the bound on those nodes, is an upper bound on what a branch
can reach. A branch whose bound does not exceed the best known score is pruned. The bounds are tight, so few
labellings are visited, however many there are.

A step costs as much as a visit of a node by messages, and the number of steps is limited. So the time is
bounded, as a better labelling copies only the labels that steps have set since the last one.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import apart, helper
from maxmargin.inference.messages import MessageWork, is_best, message_work, send_down
from maxmargin.inference.tree import add_given, first_best
from maxmargin.loops import add_scaled, copy


class SearchWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    messages : MessageWork
    reached : array of shape (n_nodes, width)
        Bound for each label of a node, given the labels before; minus infinity once it has been explored.
    shortfall : array of shape (1,)
        How far the score of the last labelling may be below the maximum.
    """

    messages: MessageWork
    reached: FloatArray
    shortfall: FloatArray


def search_work(n_nodes: int, n_edges: int, width: int) -> SearchWork:
    """Return a workspace for up to ``n_nodes`` nodes and ``n_edges`` edges."""
    return SearchWork(message_work(n_nodes, n_edges, width), np.zeros((n_nodes, width)), np.zeros(1))


@helper
@apart
def best_by_search(unary, tables, start, arcs, heads, n_labels, score, steps, work, y):
    """Improve a labelling until it is optimal or ``steps`` steps are done; return its score and a bound.

    Parameters
    ----------
    unary, tables, start, arcs, heads, n_labels
        The graph, as in `best_by_messages`.
    score : float
        The score of ``y``.
    steps : int
        The largest number of nodes to expand.
    work : SearchWork
        With the messages of `best_by_messages`.
    y : int array of length at least n_nodes
        A good labelling; replaced by better ones.

    Returns
    -------
    score, bound : float
        Equal, if the search was completed.
    """
    labels, bound, v, unread = work.messages.y, score, 0, 0
    reached = send_down(unary, tables, start, arcs, heads, n_labels, work.messages)
    _expand(0, reached, unary, tables, start, arcs, heads, n_labels, work)
    while v >= 0:
        k = first_best(work.reached[v], n_labels)
        reached = work.reached[v, k]
        if steps == 0 or is_best(score, reached):
            bound, v = max(bound, reached), v - 1
            continue
        labels[v], work.reached[v, k], unread = k, -np.inf, min(unread, v)
        if v + 1 < unary.shape[0]:
            v, steps = v + 1, steps - 1
            _expand(v, reached, unary, tables, start, arcs, heads, n_labels, work)
        else:
            score = reached
            for u in range(unread, unary.shape[0]):
                y[u] = labels[u]
            unread = unary.shape[0]
    return score, max(score, bound)


@helper
def _expand(v, reached, unary, tables, start, arcs, heads, n_labels, work):
    """Write the bounds of the labels of v, given the labels before, whose bound was ``reached``.

    The exact scores replace the messages between v and the nodes before it, and the bound on the score of v.
    """
    labels, messages, rest = work.messages.y, work.messages.messages, work.messages.rest
    reached -= rest[v] - rest[v + 1]
    copy(unary[v], work.reached[v])
    for p in range(start[v], start[v + 1]):
        arc, u = arcs[p], heads[arcs[p]]
        if u < v:
            add_given(tables[arc >> 1], arc & 1, labels[u], n_labels, work.reached[v])
            reached -= messages[arc >> 1, labels[u]]
        else:
            add_scaled(1.0, messages[arc >> 1], work.reached[v])
    for k in range(n_labels):
        work.reached[v, k] += reached
