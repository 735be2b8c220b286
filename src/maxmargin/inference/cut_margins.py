r"""Margins of the labels of a minimum cut: by how much the score falls if one label has to change.

The flow that `cut` leaves proves that the cut is minimal. If a node has to be on the other side, the cut
grows by as much as the flow can grow when this node becomes a terminal (Kohli and Torr 2008): by the flow
from the node to the sink, or from the source to the node, in the residual graph. This flow usually stays near
the node, so that the margins of all nodes take far less time than as many cuts.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper

_NONE = -1


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
            if end == _NONE:
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
    work.queue[0], work.seen[v], work.came[v] = v, number, _NONE
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
    return _NONE, n_changed


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
