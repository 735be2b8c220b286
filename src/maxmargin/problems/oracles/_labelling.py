"""Inference for graphs: a type for each kind of search for the best labelling.

The kind determines the statistics of an edge: a table over the labels of its two ends, or a *bond*, which is
possible only between ends of the same label.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, plain
from maxmargin.compiling import apart, generic, generic_with_default, helper
from maxmargin.encoding.graphs import Graphs
from maxmargin.inference.cut import CutWork, cut, cut_work
from maxmargin.inference.messages import best_by_messages, is_best
from maxmargin.inference.search import SearchWork, best_by_search, search_work
from maxmargin.inference.subsets import MOST_NODES, SubsetWork, best_subset, subset_work
from maxmargin.inference.tree import best_on_tree, span
from maxmargin.wording import shown


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
    arcs = plain(arcs - 2 * graphs.edge_offsets[graph[arcs]], np.int64)
    return Neighbours(start, arcs, graphs.ends[:, ::-1].ravel())


class Tree(NamedTuple):
    """Exact, for graphs without cycles; edges have tables.

    Attributes
    ----------
    order, parent : arrays of shape (n_nodes,)
        The nodes of each graph, parents before children, and the arc from each to its parent.
    """

    order: IntArray
    parent: IntArray


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


class TreeWork(NamedTuple):
    """Work arrays: the best score below each node for each of its labels, and a message."""

    value: FloatArray
    message: FloatArray


LabellingWork = TreeWork | CutWork | SubsetWork | SearchWork


def labelling(
    name: str, graphs: Graphs, arcs: Neighbours, n_labels: int, owner: str, steps: int = STEPS
) -> Labelling:
    """Return the kind of inference of this name, prepared for some graphs; raise if they do not suit it."""
    if name not in LABELLINGS:
        raise ValueError(f"{owner}: inference must be one of {LABELLINGS}, got {shown(name)}.")
    if name == "messages":
        return Messages(PASSES, int(steps))
    if name == "tree":
        return _walked(graphs, arcs, owner)
    if n_labels != 2:
        raise ValueError(
            f"{owner}: inference={name!r} is for two labels, got {n_labels}; use inference='messages'."
        )
    if name == "cut":
        return Cut()
    most = int(np.diff(graphs.offsets).max())
    if most > MOST_NODES:
        raise ValueError(
            f"{owner}: inference='subsets' is for graphs of up to {MOST_NODES} nodes, got {most}; use "
            "inference='messages'."
        )
    return Subsets()


def _walked(graphs: Graphs, arcs: Neighbours, owner: str) -> Tree:
    """Return a traversal order for each graph; raise if one has a cycle."""
    order, parent = np.zeros((2, int(graphs.offsets[-1])), dtype=np.int64)
    for i in range(len(graphs.offsets) - 1):
        first, stop = graphs.offsets[i : i + 2]
        heads = arcs.heads[2 * graphs.edge_offsets[i] : 2 * graphs.edge_offsets[i + 1]]
        start = arcs.start[first : stop + 1]
        if not span(start, arcs.arcs, heads, order[first:stop], parent[first:stop]):
            raise ValueError(
                f"{owner}: graph {i} of X has a cycle, but inference='tree' is for graphs without; remove "
                "edges, or use inference='messages', or 'cut' for two labels."
            )
    return Tree(order, parent)


@generic_with_default
def edge_size(kind, n_labels, width):
    """Return the number of statistics of an edge."""
    return n_labels * width


@edge_size.register(Cut)
def cut_edge_size(kind, n_labels, width):
    return 1


@generic_with_default
def n_bonds(kind, n_edges):
    """Return the number of bonds, which follow the labels in an output."""
    return 0


@n_bonds.register(Cut)
def cut_n_bonds(kind, n_edges):
    return n_edges


@generic_with_default
def finds_best(kind):
    """Whether the search always finds a best labelling."""
    return True


@finds_best.register(Messages)
def messages_finds_best(kind):
    return False


@generic_with_default
def labelling_shortfall(kind, work):
    """Return an upper bound on how far the last labelling is below the best."""
    return 0.0


@labelling_shortfall.register(Messages)
def messages_labelling_shortfall(kind, work):
    return work.shortfall[0]


@generic
def labelling_work(kind, n_nodes, n_edges, width):
    """Return a workspace for graphs of at most this many nodes and edges."""
    raise NotImplementedError


@labelling_work.register(Tree)
def tree_labelling_work(kind: Tree, n_nodes: int, n_edges: int, width: int) -> TreeWork:
    return TreeWork(np.zeros((n_nodes, width)), np.zeros(width))


@labelling_work.register(Cut)
def cut_labelling_work(kind: Cut, n_nodes: int, n_edges: int, width: int) -> CutWork:
    return cut_work(n_nodes, n_edges)


@labelling_work.register(Subsets)
def subsets_labelling_work(kind: Subsets, n_nodes: int, n_edges: int, width: int) -> SubsetWork:
    return subset_work(n_nodes)


@labelling_work.register(Messages)
def messages_labelling_work(kind: Messages, n_nodes: int, n_edges: int, width: int) -> SearchWork:
    return search_work(n_nodes, n_edges, width)


@generic
def find_labels(kind, graph, i, unary, pairs, work, y):
    """Write the best output of graph i of a `GraphOracle` to ``y``, for scores of its nodes and edges."""
    raise NotImplementedError


@find_labels.register(Tree)
def tree_find_labels(kind, graph, i, unary, pairs, work, y):
    first, stop = graph.nodes[i, 0], graph.nodes[i, 1]
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
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


@find_labels.register(Subsets)
def subsets_find_labels(kind, graph, i, unary, pairs, work, y):
    start = graph.start[graph.nodes[i, 0] : graph.nodes[i, 1] + 1]
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
    tables = pairs.reshape((pairs.shape[0], graph.n_labels, graph.width))
    best_subset(unary, tables, start, graph.arcs, heads, work, y)


@find_labels.register(Messages)
@apart
def messages_find_labels(kind, graph, i, unary, pairs, work, y):
    start = graph.start[graph.nodes[i, 0] : graph.nodes[i, 1] + 1]
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
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
@apart
def cut_find_labels(kind, graph, i, unary, pairs, work, y):
    start = graph.start[graph.nodes[i, 0] : graph.nodes[i, 1] + 1]
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
    _load_terms(unary, pairs, work.excess, work.residual)
    cut(start, graph.arcs, heads, unary.shape[0], work, y)
    _make_bonds(pairs, heads, unary.shape[0], y)


@helper
def _load_terms(unary, pairs, excess, residual):
    """Write the gain of label 1 at each node, and the loss of each edge if its ends differ."""
    for v in range(unary.shape[0]):
        excess[v] = unary[v, 1] - unary[v, 0]
    for e in range(pairs.shape[0]):
        residual[2 * e] = residual[2 * e + 1] = max(pairs[e, 0], 0.0)


@helper
def _make_bonds(pairs, heads, n_nodes, y):
    """Make every bond that is possible and does not lower the score."""
    for e in range(pairs.shape[0]):
        same = y[heads[2 * e]] == y[heads[2 * e + 1]]
        y[n_nodes + e] = 1 if same and pairs[e, 0] >= 0.0 else 0


@generic_with_default
def edge_psi(kind, graph, i, e, y, n_nodes, count, index, value):
    """Write the entries of psi for edge e of graph i after the first ``count``; return the new count."""
    edge, truth, width = graph.edges[i, 0] + e, graph.truth[i], graph.width
    b, a = graph.heads[2 * edge], graph.heads[2 * edge + 1]
    true_a, true_b = graph.labels[truth + a], graph.labels[truth + b]
    if true_a == y[a] and true_b == y[b]:
        return count
    begin = n_nodes * width + e * graph.n_labels * width
    index[count], value[count] = begin + true_a * width + true_b, 1.0
    index[count + 1], value[count + 1] = begin + y[a] * width + y[b], -1.0
    return count + 2


@edge_psi.register(Cut)
def cut_edge_psi(kind, graph, i, e, y, n_nodes, count, index, value):
    edge, truth = graph.edges[i, 0] + e, graph.truth[i]
    b, a = graph.heads[2 * edge], graph.heads[2 * edge + 1]
    bond = 1 if graph.labels[truth + a] == graph.labels[truth + b] else 0
    if bond == y[n_nodes + e]:
        return count
    index[count], value[count] = n_nodes * graph.width + e, bond - y[n_nodes + e]
    return count + 1
