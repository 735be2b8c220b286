"""The kinds of inference for graphs, and the searches of those with cycles.

Messages find a labelling and a bound; a search that uses the bounds improves it. All labellings of a small
graph of two labels are scored. Trees are in `maxmargin.structures.graphs.inference`, cuts in
`maxmargin.structures.graphs.cuts`.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, not_inlined
from maxmargin.compiling.loops import add_scaled, clear, copy
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.graphs.encode import Graphs
from maxmargin.structures.graphs.inference import Neighbours, Tree, add_given, first_best, send, walked

# Largest number of nodes of a graph all of whose labellings are scored: 4,096 sets.
MOST_NODES = 12
# A labelling whose score is this close to the bound, relative to the scores, is taken as optimal.
_ROUNDING = 1e-9


class Cut(NamedTuple):
    """Exact, for two labels on any graph; edges have bonds."""


class Subsets(NamedTuple):
    """Exact, for two labels on graphs of few nodes: all labellings are scored; edges have tables."""


class Messages(NamedTuple):
    """For any graph, with a bound on how far answers are below the best; edges have tables.

    Attributes
    ----------
    passes : int
        Largest number of passes of messages.
    steps : int
        Largest number of steps of the search that follows if messages may have missed the best labelling.
    """

    passes: int
    steps: int


Labelling = Tree | Cut | Subsets | Messages
LABELLINGS = ("tree", "cut", "subsets", "messages")
PASSES, STEPS = 20, 10_000


def labelling(name: str, graphs: Graphs, arcs: Neighbours, n_labels: int, steps: int = STEPS) -> Labelling:
    """Return the kind of inference of this name, prepared for some graphs; raise if they do not suit it."""
    if name not in LABELLINGS:
        raise ValueError(f"inference must be one of {LABELLINGS}, got {shown(name)}.")
    if name == "messages":
        return Messages(PASSES, int(steps))
    if name == "tree":
        return walked(graphs, arcs)
    if n_labels != 2:
        raise ValueError(f"inference={name!r} is for two labels, got {n_labels}; use inference='messages'.")
    if name == "cut":
        return Cut()
    most = int(np.diff(graphs.offsets).max())
    if most > MOST_NODES:
        raise ValueError(
            f"inference='subsets' is for graphs of up to {MOST_NODES} nodes, got {most}; use "
            "inference='messages'."
        )
    return Subsets()


class MessageWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    messages : array of shape (n_edges, width)
        The last message along each edge, in either direction.
    value, given, sent : arrays of shape (width,)
    y : array of shape (n_nodes,)
        A labelling.
    rest : array of shape (n_nodes + 1,)
        After `send_down`: together with the messages to nodes before v, ``rest[v]`` bounds the scores of v
        and of all nodes after it, with each other and with those before.
    """

    messages: FloatArray
    value: FloatArray
    given: FloatArray
    sent: FloatArray
    y: IntArray
    rest: FloatArray


def message_work(n_nodes: int, n_edges: int, width: int) -> MessageWork:
    """Return a workspace for up to ``n_nodes`` nodes and ``n_edges`` edges."""
    value, given, sent = np.zeros((3, width))
    messages, y = np.zeros((n_edges, width)), np.zeros(n_nodes, dtype=np.int64)
    return MessageWork(messages, value, given, sent, y, np.zeros(n_nodes + 1))


@helper
def best_by_messages(unary, tables, start, arcs, heads, n_labels, passes, work, y):
    r"""Find a labelling of large score; return its score and an upper bound on all scores.

    .. math:: \max_y \; \sum_v u_v(y_v) + \sum_{e = (a, b)} p_e(y_a, y_b)

    The labelling is optimal on a tree in which all nodes but the first have one neighbour before them.
    Columns may be padded beyond ``n_labels``.

    Parameters
    ----------
    unary : array of shape (n_nodes, width)
    tables : array of shape (n_edges, n_labels, width)
        ``tables[e, j, k]`` is the score of label j at the first end of e and label k at its second.
    start, arcs, heads : int arrays
        Node v has the arcs ``arcs[start[v]:start[v + 1]]``, and arc a leads to ``heads[a]``; edge e has the
        arcs 2e, from its first end to its second, and 2e + 1.
    n_labels, passes : int
        The search ends after ``passes`` passes, or when the bound is reached.
    work : MessageWork
    y : int array of length at least n_nodes
        Receives the labelling.

    Returns
    -------
    score, bound : float
    """
    n_nodes, best, least = unary.shape[0], -np.inf, np.inf
    for e in range(tables.shape[0]):
        clear(work.messages[e])
    for _ in range(passes):
        least = min(least, send_down(unary, tables, start, arcs, heads, n_labels, work))
        score = _choose_upwards(unary, tables, start, arcs, heads, n_labels, work)
        if score > best:
            best = score
            for v in range(n_nodes):
                y[v] = work.y[v]
        if is_best(best, least):
            break
    return best + _climb(unary, tables, start, arcs, heads, n_labels, passes, work, y), least


@helper
def is_best(score, bound):
    """Return whether a score reaches the upper bound, up to rounding."""
    return score >= bound - _ROUNDING * (1.0 + abs(bound))


@helper
def send_down(unary, tables, start, arcs, heads, n_labels, work):
    """Send messages from the last node to the first; return the upper bound."""
    bound = work.rest[unary.shape[0]] = 0.0
    for v in range(unary.shape[0] - 1, -1, -1):
        share = _gather(v, unary, start, arcs, heads, work)
        bound += _subtract_best(work.value, n_labels)
        for p in range(start[v], start[v + 1]):
            if heads[arcs[p]] < v:
                bound += _pass_on(arcs[p], share, tables, n_labels, work)
        work.rest[v] = bound
    return bound


@helper
def _choose_upwards(unary, tables, start, arcs, heads, n_labels, work):
    """Choose labels from the first node to the last, sending messages on the way; return the score."""
    total = 0.0
    for v in range(unary.shape[0]):
        total += _choose(v, unary, tables, start, arcs, heads, n_labels, work)
        share = _gather(v, unary, start, arcs, heads, work)
        _subtract_best(work.value, n_labels)
        for p in range(start[v], start[v + 1]):
            if heads[arcs[p]] > v:
                _pass_on(arcs[p], share, tables, n_labels, work)
    return total


@helper
def _choose(v, unary, tables, start, arcs, heads, n_labels, work):
    """Choose the label of v from the labels before it and the messages from later nodes; return its score."""
    copy(unary[v], work.given)
    clear(work.sent)
    for p in range(start[v], start[v + 1]):
        arc, u = arcs[p], heads[arcs[p]]
        if u < v:
            add_given(tables[arc >> 1], arc & 1, work.y[u], n_labels, work.given)
        else:
            add_scaled(1.0, work.messages[arc >> 1], work.sent)
    add_scaled(1.0, work.given, work.sent)
    work.y[v] = first_best(work.sent, n_labels)
    return work.given[work.y[v]]


@helper
def _climb(unary, tables, start, arcs, heads, n_labels, passes, work, y):
    """Change single labels as long as that increases the score and passes are left; return the increase."""
    total, changed = 0.0, True
    while changed and passes > 0:
        changed, passes = False, passes - 1
        for v in range(unary.shape[0]):
            copy(unary[v], work.given)
            for p in range(start[v], start[v + 1]):
                add_given(tables[arcs[p] >> 1], arcs[p] & 1, y[heads[arcs[p]]], n_labels, work.given)
            k = first_best(work.given, n_labels)
            gain = work.given[k] - work.given[y[v]]
            if gain > _ROUNDING * (1.0 + abs(work.given[k])):  # changes within rounding might never end
                total, y[v], changed = total + gain, k, True
    return total


@helper
def _gather(v, unary, start, arcs, heads, work):
    """``value = unary[v] + messages``; return the share of it that each path through v gets."""
    before, behind = 0, 0
    copy(unary[v], work.value)
    for p in range(start[v], start[v + 1]):
        add_scaled(1.0, work.messages[arcs[p] >> 1], work.value)
        before += heads[arcs[p]] < v
        behind += heads[arcs[p]] > v
    return 1.0 / max(before, behind, 1)


@helper
def _pass_on(arc, share, tables, n_labels, work):
    """Replace the message along an edge by one in the other direction; return its largest entry."""
    message = work.messages[arc >> 1]
    for k in range(n_labels):
        work.given[k] = share * work.value[k] - message[k]
    send(work.given, tables[arc >> 1], arc & 1, n_labels, message)
    return _subtract_best(message, n_labels)


@helper
def _subtract_best(value, n_labels):
    """Subtract the largest entry from all entries, and return it."""
    best = value[first_best(value, n_labels)]
    for k in range(n_labels):
        value[k] -= best
    return best


class SearchWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    messages : MessageWork
    reached : array of shape (n_nodes, width)
        Bound for each label of a node, given the labels before; minus infinity once it has been explored.
    """

    messages: MessageWork
    reached: FloatArray


def search_work(n_nodes: int, n_edges: int, width: int) -> SearchWork:
    """Return a workspace for up to ``n_nodes`` nodes and ``n_edges`` edges."""
    return SearchWork(message_work(n_nodes, n_edges, width), np.zeros((n_nodes, width)))


@helper
@not_inlined
def best_by_search(unary, tables, start, arcs, heads, n_labels, score, steps, work, y):
    """Improve a labelling until it is optimal or ``steps`` steps are done; return its score and a bound.

    This is branch and bound, with bounds from message passing (Land and Doig 1960).

    Nodes get their labels in order, the most promising label first. The score of the labels so far, with the
    messages that they receive from later nodes and the bound on those nodes, is an upper bound on what a
    branch can reach. A branch whose bound does not exceed the best known score is pruned. The bounds are
    tight, so few labellings are visited, however many there are.

    A step costs as much as a visit of a node by messages, and the number of steps is limited. So the time is
    bounded, as a better labelling copies only the labels that steps have set since the last one.

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

    All labellings are scored, by doubling. A labelling is a set of nodes: those with label one. Sets are
    numbered by their bits, so that the sets of the first v nodes are 0, ..., 2^v - 1, and adding node v adds
    2^v. The gain of node v for all sets of earlier nodes is also computed by doubling, one neighbour at a
    time. So a set costs two additions. Ties go to the smallest number.

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
