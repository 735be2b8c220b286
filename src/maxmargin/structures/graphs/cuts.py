"""Attractive graphs of two labels: minimum cuts, and margins by cuts that differ."""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.runtime.arrays import FloatArray, IntArray

# The search tree that a node belongs to.
_FREE, _SOURCE, _SINK = 0, 1, 2
# Special values for the arc from a node to its parent: the parent is the terminal, or there is none.
_TERMINAL, _NONE = -1, -2


class CutWork(NamedTuple):
    """Workspace for graphs of up to a given size.

    Attributes
    ----------
    excess : array of shape (n_nodes,)
        Residual capacity from the source to each node; if negative, that from the node to the sink.
    residual : array of shape (2 * n_edges,)
        Residual capacity of each arc.
    tree : int array of shape (n_nodes,)
    parent : int array of shape (n_nodes,)
        The arc from a node towards the root of its tree.
    distance, stamp : int arrays of shape (n_nodes,)
        Distance to the root when it was last computed, and the time of that computation.
    active, is_active : int arrays of shape (n_nodes,)
        A ring buffer of nodes whose neighbours are to be visited, and which nodes are in it.
    orphans : int array of shape (n_nodes,)
        A ring buffer of nodes that have lost their parents.
    rings : int array of shape (4,)
        First place and length of the ring of active nodes, then those of the ring of orphans.
    """

    excess: FloatArray
    residual: FloatArray
    tree: IntArray
    parent: IntArray
    distance: IntArray
    stamp: IntArray
    active: IntArray
    is_active: IntArray
    orphans: IntArray
    rings: IntArray


def cut_work(n_nodes: int, n_edges: int) -> CutWork:
    """Return a workspace for up to ``n_nodes`` nodes and ``n_edges`` edges."""
    tree, parent, distance, stamp, active, is_active, orphans = np.zeros((7, n_nodes), dtype=np.int64)
    excess, residual, rings = np.zeros(n_nodes), np.zeros(2 * n_edges), np.zeros(4, dtype=np.int64)
    return CutWork(excess, residual, tree, parent, distance, stamp, active, is_active, orphans, rings)


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
        With g in ``excess`` and c in ``residual``, at both arcs of an edge; both are overwritten.
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
    """Start the trees with the nodes that are adjacent to the terminals."""
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
    """Append a node to the ring of active nodes, unless it is in it."""
    if work.is_active[v] == 0:
        work.active[_after(work.rings[0], work.rings[1], work)] = v
        work.rings[1] += 1
        work.is_active[v] = 1


@helper
def _leave(work):
    """Remove the first node from the ring of active nodes."""
    work.is_active[work.active[work.rings[0]]] = 0
    work.rings[0] = _after(work.rings[0], 1, work)
    work.rings[1] -= 1


@helper
def _after(place, steps, work):
    """Return the place ``steps`` steps further in a ring."""
    place += steps
    return place if place < work.active.shape[0] else place - work.active.shape[0]


@helper
def _grow(v, start, arcs, heads, work):
    """Add free neighbours of v to its tree; return an arc from the source tree to the sink tree, or none."""
    side = work.tree[v]
    if side == _FREE:
        return _NONE
    back = side == _SINK  # in the sink tree, flow runs towards the root
    for p in range(start[v], start[v + 1]):
        arc = arcs[p]
        if work.residual[arc ^ 1 if back else arc] > 0.0:
            u = heads[arc]
            if work.tree[u] == _FREE:
                work.tree[u], work.parent[u] = side, arc ^ 1
                work.distance[u], work.stamp[u] = work.distance[v] + 1, work.stamp[v]
                _enter(u, work)
            elif work.tree[u] != side:
                return arc ^ 1 if back else arc
            elif work.distance[u] > work.distance[v] + 1 and work.stamp[u] <= work.stamp[v]:
                work.parent[u] = arc ^ 1  # a shorter path to the root
                work.distance[u], work.stamp[u] = work.distance[v] + 1, work.stamp[v]
    return _NONE


@helper
def _augment(meeting, heads, work):
    """Push as much flow as possible through an arc between the trees; nodes cut off become orphans."""
    source_end, sink_end = heads[meeting ^ 1], heads[meeting]
    flow = min(
        work.residual[meeting], _bottleneck(source_end, heads, work), _bottleneck(sink_end, heads, work)
    )
    work.residual[meeting] -= flow
    work.residual[meeting ^ 1] += flow
    _send(source_end, flow, heads, work)
    _send(sink_end, flow, heads, work)


@helper
def _bottleneck(v, heads, work):
    """Return the smallest residual capacity between v and its terminal."""
    turn = 1 if work.tree[v] == _SOURCE else 0
    least = np.inf
    while work.parent[v] != _TERMINAL:
        least = min(least, work.residual[work.parent[v] ^ turn])
        v = heads[work.parent[v]]
    return min(least, abs(work.excess[v]))


@helper
def _send(v, flow, heads, work):
    """Push the flow between v and its terminal."""
    turn = 1 if work.tree[v] == _SOURCE else 0
    while work.parent[v] != _TERMINAL:
        arc = work.parent[v] ^ turn
        work.residual[arc] -= flow
        work.residual[arc ^ 1] += flow
        following = heads[work.parent[v]]
        if work.residual[arc] <= 0.0:
            _orphan(v, work)
        v = following
    work.excess[v] -= flow if turn == 1 else -flow
    if work.excess[v] == 0.0:
        _orphan(v, work)


@helper
def _orphan(v, work):
    """Remove the parent of v, and append v to the ring of orphans."""
    work.parent[v] = _NONE
    work.orphans[_after(work.rings[2], work.rings[3], work)] = v
    work.rings[3] += 1


@helper
def _next_orphan(work):
    """Remove the first node from the ring of orphans and return it."""
    v = work.orphans[work.rings[2]]
    work.rings[2] = _after(work.rings[2], 1, work)
    work.rings[3] -= 1
    return v


@helper
def _adopt(v, now, start, arcs, heads, work):
    """Find a new parent for v, nearest to the root; if there is none, free v and orphan its children."""
    side = work.tree[v]
    turn = 1 if side == _SOURCE else 0
    best, nearest = _NONE, np.iinfo(np.int64).max
    for p in range(start[v], start[v + 1]):
        arc = arcs[p]
        if work.residual[arc ^ turn] > 0.0 and work.tree[heads[arc]] == side:
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
            if work.residual[arc ^ turn] > 0.0:
                _enter(u, work)
            if work.parent[u] == arc ^ 1:
                _orphan(u, work)


@helper
def _distance(v, now, heads, work):
    """Return the distance of v to its root, or -1 if it has none; store it for all nodes on the way."""
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


@helper
def load_terms(unary, pairs, excess, residual):
    """Write the gain of label 1 at each node, and the loss of each edge if its ends differ."""
    for v in range(unary.shape[0]):
        excess[v] = unary[v, 1] - unary[v, 0]
    for e in range(pairs.shape[0]):
        residual[2 * e] = residual[2 * e + 1] = max(pairs[e, 0], 0.0)


@helper
def make_bonds(pairs, heads, n_nodes, y):
    """Make every bond that is possible and does not lower the score."""
    for e in range(pairs.shape[0]):
        same = y[heads[2 * e]] == y[heads[2 * e + 1]]
        y[n_nodes + e] = 1 if same and pairs[e, 0] >= 0.0 else 0


_NO_NODE = -1


class CutMarginWork(NamedTuple):
    """Workspace for graphs of up to a given size.

    Attributes
    ----------
    excess, residual : arrays
        The residual graph as `cut` left it, to which that of `CutWork` returns after each node.
    queue : int array of shape (n_nodes,)
        The nodes of a breadth-first search, in the order in which they are reached.
    came : int array of shape (n_nodes,)
        The arc by which each of them was reached.
    seen : int array of shape (n_nodes,)
        The last search that reached each node.
    changed, is_changed : int arrays of shape (n_nodes,)
        The nodes that the searches from one node have reached, as a list and as marks.
    """

    excess: FloatArray
    residual: FloatArray
    queue: IntArray
    came: IntArray
    seen: IntArray
    changed: IntArray
    is_changed: IntArray


def cut_margin_work(n_nodes: int, n_edges: int) -> CutMarginWork:
    """Return a workspace for up to ``n_nodes`` nodes and ``n_edges`` edges."""
    return CutMarginWork(np.zeros(n_nodes), np.zeros(2 * n_edges), *np.zeros((5, n_nodes), dtype=np.int64))


@helper
def cut_margins(start, arcs, heads, flow, work, y, margins):
    """Write the margins of the labels that `cut` found.

    The flow that `cut` leaves proves that the cut is minimal. If a node has to be on the other side, the cut
    grows by as much as the flow can grow when this node becomes a terminal (Kohli and Torr 2008): by the flow
    from the node to the sink, or from the source to the node, in the residual graph. This flow usually stays
    near the node, so that the margins of all nodes take far less time than as many cuts.

    Parameters
    ----------
    start, arcs, heads, y
        As for `cut`.
    flow : CutWork
        As `cut` leaves it.
    work : CutMarginWork
    margins : array of shape (n_nodes,)
        Receives the margins.
    """
    n_nodes, searches = margins.shape[0], 0
    for v in range(n_nodes):
        work.excess[v], work.seen[v], work.is_changed[v] = flow.excess[v], 0, 0
    for a in range(heads.shape[0]):
        work.residual[a] = flow.residual[a]
    for v in range(n_nodes):
        total, n_changed = 0.0, 0
        while True:
            searches += 1
            end, n_changed = _search(v, y[v], searches, n_changed, start, arcs, heads, flow, work)
            if end == _NO_NODE:
                break
            total += _push(v, end, y[v], heads, flow, work)
        margins[v] = total
        _undo(n_changed, start, arcs, flow, work)


@helper
def _capacity(u, side, flow):
    """Return the capacity from node u to the sink, or from the source to u if side is 1; negative if none."""
    return flow.excess[u] if side == 1 else -flow.excess[u]


@helper
def _search(v, side, number, n_changed, start, arcs, heads, flow, work):
    """Find the nearest node with capacity along residual arcs from v, or to v if its side is 1.

    Return it, or a marker that there is none, and the number of nodes marked as changed.
    """
    work.queue[0], work.seen[v], work.came[v] = v, number, _NO_NODE
    done, found = 0, 1
    while done < found:
        u = work.queue[done]
        done += 1
        if work.is_changed[u] == 0:
            work.is_changed[u], work.changed[n_changed] = 1, u
            n_changed += 1
        if _capacity(u, side, flow) > 0.0:
            return u, n_changed
        for p in range(start[u], start[u + 1]):
            arc = arcs[p]
            if flow.residual[arc ^ side] > 0.0 and work.seen[heads[arc]] != number:
                work.seen[heads[arc]], work.came[heads[arc]], work.queue[found] = number, arc, heads[arc]
                found += 1
    return _NO_NODE, n_changed


@helper
def _push(v, end, side, heads, flow, work):
    """Push as much flow as possible along the path that was found; return how much."""
    most, u = _capacity(end, side, flow), end
    while u != v:
        most = min(most, flow.residual[work.came[u] ^ side])
        u = heads[work.came[u] ^ 1]
    u = end
    while u != v:
        arc = work.came[u] ^ side
        flow.residual[arc] -= most
        flow.residual[arc ^ 1] += most
        u = heads[work.came[u] ^ 1]
    flow.excess[end] -= most if side == 1 else -most
    return most


@helper
def _undo(n_changed, start, arcs, flow, work):
    """Restore the residual graph at the nodes that were reached."""
    for c in range(n_changed):
        u = work.changed[c]
        work.is_changed[u] = 0
        flow.excess[u] = work.excess[u]
        for p in range(start[u], start[u + 1]):
            arc = arcs[p]
            flow.residual[arc], flow.residual[arc ^ 1] = work.residual[arc], work.residual[arc ^ 1]
