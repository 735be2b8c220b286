"""Minimum cuts: two search trees that grow towards each other (Boykov and Kolmogorov 2004)."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper

# To which search tree a node belongs.
_FREE, _SOURCE, _SINK = 0, 1, 2
# In the place of the arc from a node to its parent: the terminal itself, or none.
_TERMINAL, _NONE = -1, -2


class CutWork(NamedTuple):
    """Work space for graphs of some size.

    Attributes
    ----------
    excess : array of shape (n_nodes,)
        What the source can still send to each node; if negative, what the node can send to the sink.
    room : array of shape (2 * n_edges,)
        What can still flow along each arc.
    tree : int array of shape (n_nodes,)
    parent : int array of shape (n_nodes,)
        The arc from a node towards the root of its tree.
    distance, stamp : int arrays of shape (n_nodes,)
        How far away the root was when last looked, and when that was.
    active, is_active : int arrays of shape (n_nodes,)
        A ring of nodes whose neighbours are to be visited, and who is in it.
    orphans : int array of shape (n_nodes,)
        A ring of nodes that lost their parents.
    rings : int array of shape (4,)
        First place and length of the one ring and of the other.
    """

    excess: FloatArray
    room: FloatArray
    tree: IntArray
    parent: IntArray
    distance: IntArray
    stamp: IntArray
    active: IntArray
    is_active: IntArray
    orphans: IntArray
    rings: IntArray


def cut_work(n_nodes: int, n_edges: int) -> CutWork:
    """Return work space for up to so many nodes and edges."""
    tree, parent, distance, stamp, active, is_active, orphans = np.zeros((7, n_nodes), dtype=np.int64)
    excess, room, rings = np.zeros(n_nodes), np.zeros(2 * n_edges), np.zeros(4, dtype=np.int64)
    return CutWork(excess, room, tree, parent, distance, stamp, active, is_active, orphans, rings)


@helper
def cut(start, arcs, heads, n_nodes, work, y):
    r"""Find the labelling by zeros and ones of largest score.

    .. math:: \max_y \; \sum_v g_v \, y_v - \sum_{e = (a, b)} c_e \, |y_a - y_b|, \qquad c_e \ge 0

    Ties go to zeros.

    Parameters
    ----------
    start, arcs, heads : int arrays
        Node v has the arcs ``arcs[start[v]:start[v + 1]]``, and arc a leads to ``heads[a]``; edge e has the
        arcs 2e and 2e + 1.
    n_nodes : int
    work : CutWork
        With g in ``excess`` and c in ``room``, at both arcs of an edge; both are overwritten.
    y : int array of length at least n_nodes
        Receives the labelling.
    """
    _plant(n_nodes, work)
    now = 1
    while work.rings[1] > 0:
        v = work.active[work.rings[0]]
        meeting = _grow(v, start, arcs, heads, work)
        if meeting == _NONE:
            _leave(work)
            continue
        now += 1
        _augment(meeting, heads, work)
        while work.rings[3] > 0:
            _adopt(_next_orphan(work), now, start, arcs, heads, work)
        if work.tree[v] == _FREE:
            _leave(work)
    for v in range(n_nodes):
        y[v] = 1 if work.tree[v] == _SOURCE else 0


@helper
def _plant(n_nodes, work):
    """Begin the trees with the nodes that the terminals reach."""
    work.rings[0] = work.rings[1] = work.rings[2] = work.rings[3] = 0
    for v in range(n_nodes):
        work.parent[v], work.distance[v], work.stamp[v], work.is_active[v] = _NONE, 0, 0, 0
        work.tree[v] = _FREE
        if work.excess[v] != 0.0:
            work.tree[v] = _SOURCE if work.excess[v] > 0.0 else _SINK
            work.parent[v], work.distance[v] = _TERMINAL, 1
            _enter(v, work)


@helper
def _enter(v, work):
    """Put a node at the end of the ring of active ones, unless it is in it."""
    if work.is_active[v] == 0:
        work.active[_after(work.rings[0], work.rings[1], work)] = v
        work.rings[1] += 1
        work.is_active[v] = 1


@helper
def _leave(work):
    """Take the first node out of the ring of active ones."""
    work.is_active[work.active[work.rings[0]]] = 0
    work.rings[0] = _after(work.rings[0], 1, work)
    work.rings[1] -= 1


@helper
def _after(place, steps, work):
    """The place so many steps further in a ring."""
    place += steps
    return place if place < work.active.shape[0] else place - work.active.shape[0]


@helper
def _grow(v, start, arcs, heads, work):
    """Let the tree of v take in free neighbours; return an arc to the other tree, from the source's side."""
    side = work.tree[v]
    if side == _FREE:
        return _NONE
    back = side == _SINK  # there flow runs towards the root
    for p in range(start[v], start[v + 1]):
        arc = arcs[p]
        if work.room[arc ^ 1 if back else arc] > 0.0:
            u = heads[arc]
            if work.tree[u] == _FREE:
                work.tree[u], work.parent[u] = side, arc ^ 1
                work.distance[u], work.stamp[u] = work.distance[v] + 1, work.stamp[v]
                _enter(u, work)
            elif work.tree[u] != side:
                return arc ^ 1 if back else arc
            elif work.distance[u] > work.distance[v] + 1 and work.stamp[u] <= work.stamp[v]:
                work.parent[u] = arc ^ 1  # a shorter way to the root
                work.distance[u], work.stamp[u] = work.distance[v] + 1, work.stamp[v]
    return _NONE


@helper
def _augment(meeting, heads, work):
    """Send as much as there is room for through an arc between the trees; who is cut off is an orphan."""
    source_end, sink_end = heads[meeting ^ 1], heads[meeting]
    flow = min(work.room[meeting], _bottleneck(source_end, heads, work), _bottleneck(sink_end, heads, work))
    work.room[meeting] -= flow
    work.room[meeting ^ 1] += flow
    _send(source_end, flow, heads, work)
    _send(sink_end, flow, heads, work)


@helper
def _bottleneck(v, heads, work):
    """The least room between v and its terminal."""
    turn = 1 if work.tree[v] == _SOURCE else 0
    least = np.inf
    while work.parent[v] != _TERMINAL:
        least = min(least, work.room[work.parent[v] ^ turn])
        v = heads[work.parent[v]]
    return min(least, abs(work.excess[v]))


@helper
def _send(v, flow, heads, work):
    """Let the flow run between v and its terminal."""
    turn = 1 if work.tree[v] == _SOURCE else 0
    while work.parent[v] != _TERMINAL:
        arc = work.parent[v] ^ turn
        work.room[arc] -= flow
        work.room[arc ^ 1] += flow
        following = heads[work.parent[v]]
        if work.room[arc] <= 0.0:
            _orphan(v, work)
        v = following
    work.excess[v] -= flow if turn == 1 else -flow
    if work.excess[v] == 0.0:
        _orphan(v, work)


@helper
def _orphan(v, work):
    """Take v's parent away, and put v at the end of the ring of orphans."""
    work.parent[v] = _NONE
    work.orphans[_after(work.rings[2], work.rings[3], work)] = v
    work.rings[3] += 1


@helper
def _next_orphan(work):
    """Take the first node out of the ring of orphans."""
    v = work.orphans[work.rings[2]]
    work.rings[2] = _after(work.rings[2], 1, work)
    work.rings[3] -= 1
    return v


@helper
def _adopt(v, now, start, arcs, heads, work):
    """Find v a new parent, the nearest to the root; without one it is free, and its children are orphans."""
    side = work.tree[v]
    turn = 1 if side == _SOURCE else 0
    best, nearest = _NONE, np.iinfo(np.int64).max
    for p in range(start[v], start[v + 1]):
        arc = arcs[p]
        if work.room[arc ^ turn] > 0.0 and work.tree[heads[arc]] == side:
            distance = _distance(heads[arc], now, heads, work)
            if 0 <= distance < nearest:
                best, nearest = arc, distance
    if best != _NONE:
        work.parent[v], work.distance[v], work.stamp[v] = best, nearest + 1, now
        return
    work.tree[v] = _FREE
    for p in range(start[v], start[v + 1]):
        arc, u = arcs[p], heads[arcs[p]]
        if work.tree[u] == side:
            if work.room[arc ^ turn] > 0.0:
                _enter(u, work)
            if work.parent[u] == arc ^ 1:
                _orphan(u, work)


@helper
def _distance(v, now, heads, work):
    """How far v is from its root, noted on the way for all that are passed; -1 if it has none any more."""
    u, steps = v, 0
    while work.stamp[u] != now or work.parent[u] == _NONE:
        if work.parent[u] == _NONE:
            return -1
        steps += 1
        if work.parent[u] == _TERMINAL:
            work.distance[u], work.stamp[u] = 1, now
            steps -= 1
            break
        u = heads[work.parent[u]]
    total = work.distance[u] + steps
    u, left = v, total
    while work.stamp[u] != now:
        work.distance[u], work.stamp[u] = left, now
        left -= 1
        u = heads[work.parent[u]]
    return total
