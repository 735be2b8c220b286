"""The best labelling of any graph: branch and bound, with the bounds of messages (Land and Doig 1960).

Labels are given to the nodes in their order, at each the one first that promises most. What the labels given
so far score, with the messages to them from behind and the bound on all that is behind, is what can be
reached at most: where that is no more than the best labelling known scores, it is not gone into. The messages
are good bounds, so that a few labellings are looked at where there are many powers of ten.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper
from maxmargin.inference.messages import MessageWork, is_best, message_work, send_down
from maxmargin.inference.tree import add_given, first_best
from maxmargin.loops import add_scaled, copy


class SearchWork(NamedTuple):
    """Work space.

    Attributes
    ----------
    messages : MessageWork
    reached : array of shape (n_nodes, width)
        What each label of a node can reach, given those before; minus infinity when it has been gone into.
    shortfall : array of shape (1,)
        How far the last labelling may be below the best.
    """

    messages: MessageWork
    reached: FloatArray
    shortfall: FloatArray


def search_work(n_nodes: int, n_edges: int, width: int) -> SearchWork:
    """Return work space for up to so many nodes, edges and labels."""
    return SearchWork(message_work(n_nodes, n_edges, width), np.zeros((n_nodes, width)), np.zeros(1))


@helper
def best_by_search(unary, tables, start, arcs, heads, n_labels, score, steps, work, y):
    """Improve a labelling to the best one, or as far as so many steps go; return its score and a bound.

    Parameters
    ----------
    unary, tables, start, arcs, heads, n_labels
        The graph, as in `best_by_messages`.
    score : float
        What ``y`` scores.
    steps : int
        How many times labels of a node are looked at.
    work : SearchWork
        With the messages of `best_by_messages`.
    y : int array of length at least n_nodes
        A good labelling, which is replaced by better ones.

    Returns
    -------
    score, bound : float
        The same, when the search has come to its end.
    """
    labels, bound, v = work.messages.y, score, 0
    reached = send_down(unary, tables, start, arcs, heads, n_labels, work.messages)
    _look(0, reached, unary, tables, start, arcs, heads, n_labels, work)
    while v >= 0:
        k = first_best(work.reached[v], n_labels)
        reached = work.reached[v, k]
        if steps == 0 or is_best(score, reached):
            bound, v = max(bound, reached), v - 1
            continue
        labels[v], work.reached[v, k] = k, -np.inf
        if v + 1 < unary.shape[0]:
            v, steps = v + 1, steps - 1
            _look(v, reached, unary, tables, start, arcs, heads, n_labels, work)
        else:
            score = reached
            for u in range(unary.shape[0]):
                y[u] = labels[u]
    return score, max(score, bound)


@helper
def _look(v, reached, unary, tables, start, arcs, heads, n_labels, work):
    """Write what the labels of v can reach, given those before, with which ``reached`` was possible.

    The messages between v and the nodes before it, and the bound on what v scores, make place for the scores
    themselves.
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
