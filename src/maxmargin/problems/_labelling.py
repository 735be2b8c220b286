"""How the labelling of a graph is found: one type for each kind of inference, and what depends on it.

A kind fixes what an edge scores, and so its statistics: a table over the labels of its two ends, or a *bond*
that only ends of the same label can have.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic, helper
from maxmargin.inference.cut import CutWork, cut, cut_work
from maxmargin.inference.messages import best_by_messages, is_best
from maxmargin.inference.search import SearchWork, best_by_search, search_work
from maxmargin.inference.tree import best_on_tree, span


class Tree(NamedTuple):
    """Exact, where no graph has a cycle; edges have tables.

    Attributes
    ----------
    order, parent : arrays of shape (n_nodes,)
        The nodes of each graph, parents first, and the arc from each to its parent.
    """

    order: IntArray
    parent: IntArray


class Cut(NamedTuple):
    """Exact for two labels, on any graph; edges have bonds, and only those are made that add to the score."""


class Messages(NamedTuple):
    """On any graph, with a bound on what is lacking; edges have tables.

    Attributes
    ----------
    passes : int
        Most passes of messages.
    steps : int
        Most steps of the search that follows where the labelling found by messages may not be the best.
    """

    passes: int
    steps: int


Labelling = Tree | Cut | Messages
LABELLINGS = ("tree", "cut", "messages")
_PASSES, _STEPS = 20, 10_000


class TreeWork(NamedTuple):
    """What is known below each node, and a message."""

    value: FloatArray
    message: FloatArray


def labelling(name: str, graph: Any, owner: str) -> Labelling:
    """Return the kind of inference of this name, prepared for the graphs of a problem, if it serves them."""
    if name == "cut":
        if graph.n_labels != 2:
            raise ValueError(
                f"{owner}: inference='cut' is for two labels, got {graph.n_labels}; use inference='messages'."
            )
        return Cut()
    if name == "messages":
        return Messages(_PASSES, _STEPS)
    order, parent = np.zeros((2, int(graph.offsets[-1])), dtype=np.int64)
    cyclic = first_cyclic(graph, order, parent)
    if cyclic >= 0:
        raise ValueError(
            f"{owner}: graph {cyclic} of X has a cycle, but inference='tree' is for graphs without; remove "
            "edges, or use inference='messages', or 'cut' for two labels."
        )
    return Tree(order, parent)


def first_cyclic(graph: Any, order: IntArray, parent: IntArray) -> int:
    """Write how each forest is walked; return the first graph that is none, or -1."""
    for i in range(len(graph.offsets) - 1):
        nodes, arcs = slice(*graph.offsets[i : i + 2]), slice(*2 * graph.edge_offsets[i : i + 2])
        start = graph.start[graph.offsets[i] : graph.offsets[i + 1] + 1]
        if not span(start, graph.arcs, graph.heads[arcs], order[nodes], parent[nodes]):
            return i
    return -1


@generic
def edge_size(kind, n_labels, width):
    """Return how many statistics an edge has."""
    return n_labels * width


@edge_size.register(Tree)
@edge_size.register(Messages)
def tree_edge_size(kind, n_labels, width):
    return n_labels * width


@edge_size.register(Cut)
def cut_edge_size(kind, n_labels, width):
    return 1


@generic
def n_bonds(kind, n_edges):
    """Return how many entries an output has after its labels."""
    raise NotImplementedError


@n_bonds.register(Tree)
@n_bonds.register(Messages)
def tree_n_bonds(kind, n_edges):
    return 0


@n_bonds.register(Cut)
def cut_n_bonds(kind, n_edges):
    return n_edges


@generic
def is_exact(kind):
    """Whether the labelling found is always a best one."""
    raise NotImplementedError


@is_exact.register(Tree)
@is_exact.register(Cut)
def tree_is_exact(kind):
    return True


@is_exact.register(Messages)
def messages_is_exact(kind):
    return False


@generic
def labels_lack(kind, work):
    """Return how far the last labelling found is below the best score, at most."""
    raise NotImplementedError


@labels_lack.register(Tree)
@labels_lack.register(Cut)
def tree_labels_lack(kind, work):
    return 0.0


@labels_lack.register(Messages)
def messages_labels_lack(kind, work):
    return work.shortfall[0]


@generic
def labelling_work(kind, graph):
    """Return work space for the graphs of a problem."""
    raise NotImplementedError


@labelling_work.register(Tree)
def tree_labelling_work(kind: Tree, graph: Any) -> TreeWork:
    return TreeWork(np.zeros((graph.most_nodes, graph.width)), np.zeros(graph.width))


@labelling_work.register(Cut)
def cut_labelling_work(kind: Cut, graph: Any) -> CutWork:
    return cut_work(graph.most_nodes, graph.most_edges)


@labelling_work.register(Messages)
def messages_labelling_work(kind: Messages, graph: Any) -> SearchWork:
    return search_work(graph.most_nodes, graph.most_edges, graph.width)


@generic
def find_labels(kind, graph, i, unary, pairs, work, y):
    """Write the output of graph i of best score, for scores of its nodes and edges."""
    raise NotImplementedError


@find_labels.register(Tree)
def tree_find_labels(kind, graph, i, unary, pairs, work, y):
    first, stop = graph.offsets[i], graph.offsets[i + 1]
    heads = graph.heads[2 * graph.edge_offsets[i] : 2 * graph.edge_offsets[i + 1]]
    tables = pairs.reshape((pairs.shape[0], graph.n_labels, graph.width))
    best_on_tree(
        unary,
        tables,
        kind.order[first:stop],
        kind.parent[first:stop],
        heads,
        graph.n_labels,
        work.value,
        work.message,
        y,
    )


@find_labels.register(Messages)
def messages_find_labels(kind, graph, i, unary, pairs, work, y):
    start = graph.start[graph.offsets[i] : graph.offsets[i + 1] + 1]
    heads = graph.heads[2 * graph.edge_offsets[i] : 2 * graph.edge_offsets[i + 1]]
    tables = pairs.reshape((pairs.shape[0], graph.n_labels, graph.width))
    score, bound = best_by_messages(
        unary, tables, start, graph.arcs, heads, graph.n_labels, kind.passes, work.messages, y
    )
    if kind.steps > 0 and not is_best(score, bound):
        score, reached = best_by_search(
            unary, tables, start, graph.arcs, heads, graph.n_labels, score, kind.steps, work, y
        )
        bound = min(bound, reached)
    work.shortfall[0] = max(bound - score, 0.0)


@find_labels.register(Cut)
def cut_find_labels(kind, graph, i, unary, pairs, work, y):
    start = graph.start[graph.offsets[i] : graph.offsets[i + 1] + 1]
    heads = graph.heads[2 * graph.edge_offsets[i] : 2 * graph.edge_offsets[i + 1]]
    _load_terms(unary, pairs, work.excess, work.room)
    cut(start, graph.arcs, heads, unary.shape[0], work, y)
    _make_bonds(pairs, heads, unary.shape[0], y)


@helper
def _load_terms(unary, pairs, excess, room):
    """What label 1 gains at each node, and what is lost where the ends of an edge differ."""
    for v in range(unary.shape[0]):
        excess[v] = unary[v, 1] - unary[v, 0]
    for e in range(pairs.shape[0]):
        room[2 * e] = room[2 * e + 1] = max(pairs[e, 0], 0.0)


@helper
def _make_bonds(pairs, heads, n_nodes, y):
    """Make every bond that can be made and takes nothing from the score."""
    for e in range(pairs.shape[0]):
        same = y[heads[2 * e]] == y[heads[2 * e + 1]]
        y[n_nodes + e] = 1 if same and pairs[e, 0] >= 0.0 else 0


@generic
def edge_psi(kind, graph, first, e, y, n_nodes, count, index, value):
    """Write what edge e adds to psi after the first ``count`` entries; return their number."""
    raise NotImplementedError


@edge_psi.register(Tree)
@edge_psi.register(Messages)
def tree_edge_psi(kind, graph, first, e, y, n_nodes, count, index, value):
    edge, node, width = graph.edge_offsets[first] + e, graph.offsets[first], graph.width
    b, a = graph.heads[2 * edge], graph.heads[2 * edge + 1]
    true_a, true_b = graph.labels[node + a], graph.labels[node + b]
    if true_a == y[a] and true_b == y[b]:
        return count
    begin = n_nodes * width + e * graph.n_labels * width
    index[count], value[count] = begin + true_a * width + true_b, 1.0
    index[count + 1], value[count + 1] = begin + y[a] * width + y[b], -1.0
    return count + 2


@edge_psi.register(Cut)
def cut_edge_psi(kind, graph, first, e, y, n_nodes, count, index, value):
    edge, node = graph.edge_offsets[first] + e, graph.offsets[first]
    b, a = graph.heads[2 * edge], graph.heads[2 * edge + 1]
    bond = 1 if graph.labels[node + a] == graph.labels[node + b] else 0
    if bond == y[n_nodes + e]:
        return count
    index[count], value[count] = n_nodes * graph.width + e, bond - y[n_nodes + e]
    return count + 1
