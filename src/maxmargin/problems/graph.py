r"""Graphs: one label per node, and a score for the labels of the two ends of each edge.

.. math:: \langle w, \phi(x, y) \rangle = \sum_v \langle W_{y_v}, x_v \rangle
          + \sum_{e = (a, b)} \langle V_{y_a y_b}, x_e \rangle

with features of nodes and of edges. For inference by minimum cuts, exact on any graph with two labels, an
edge has one score instead, that of a bond between ends of the same label:

.. math:: \sum_v \langle W_{y_v}, x_v \rangle + \sum_e b_e \, \langle V, x_e \rangle, \qquad
          b_e \in \{0, 1\}, \quad b_e \le [y_a = y_b] .

**Signs.** A cut needs scores of bonds that are not negative. Here no sign has to be imposed, because the
bonds are a part of the output, and one of negative score is not made: the best output is the cut for the
positive parts of the scores, exactly, and the objective with its dual and certificate is that of any other
model. The truth has all bonds that its labels allow, so that a bond of it that scores below zero costs by how
much: the hinge is at least that of the model with these scores at zero, and the same where all bonds score
zero or more. With one feature of edges, not negative, the optimum is that of a weight that must not be.

Rows of labels are padded to ``width``. The statistics of an output are the indicators of the label of each
node, then for each edge those of the pair of labels, row by row, or of the bond. An output is the labels
followed by the bonds, if there are any.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros, plain
from maxmargin.compiling import subroutine
from maxmargin.encoding.checked import checked_count, checked_graphs, checked_importance, checked_numbers
from maxmargin.encoding.graphs import Graphs, encode_graphs, encode_node_labels, encode_node_weights
from maxmargin.loops import weighted_sum
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.problems._labelling import (
    LABELLINGS,
    Cut,
    Labelling,
    edge_psi,
    edge_size,
    find_labels,
    is_exact,
    labelling,
    labelling_work,
    labels_lack,
    n_bonds,
)
from maxmargin.problems._labels import check_several, cost_matrix, pad_columns, padded
from maxmargin.rows import Rows, as_rows, n_rows

LOSSES = ("normalized_hamming", "hamming")


class GraphWeights(NamedTuple):
    """Weights of a graph: of the features of nodes for each label, and of those of edges.

    ``edges[f, j, k]`` is for label j at the first end of an edge and k at its second; ``edges[f]`` for bonds.
    """

    nodes: FloatArray
    edges: FloatArray


class GraphWork(NamedTuple):
    """Work arrays: scores of labels with losses, the feature vector of a move, and those of the inference.

    The feature vector is zero between calls, so that making it costs no more than its nonzeros.
    """

    unary: FloatArray
    image: FloatArray
    inference: Any


class Graph(NamedTuple):
    """A problem of labelling graphs; made by `from_graphs`.

    Attributes
    ----------
    rows, edge_rows : Rows
        Features of all nodes and of all edges.
    offsets, edge_offsets : arrays of shape (n + 1,)
        Graph i has the nodes offsets[i], ..., offsets[i + 1] - 1.
    start, arcs, heads : arrays
        Node v of all has the arcs ``arcs[start[v]:start[v + 1]]``. Within a graph arc a leads to node
        ``heads[2 * edge_offsets[i] + a]``; edge e has the arcs 2e, to its second end, and 2e + 1.
    labels : array of shape (n_nodes,)
    cost : array of shape (n_labels, width)
    importance : array of shape (n_nodes,)
        What the cost of a node's label is multiplied by.
    inference : Tree, Cut or Messages
    """

    rows: Rows
    edge_rows: Rows
    offsets: IntArray
    edge_offsets: IntArray
    start: IntArray
    arcs: IntArray
    heads: IntArray
    labels: IntArray
    cost: FloatArray
    importance: FloatArray
    inference: Any
    n_labels: int
    width: int
    most_nodes: int
    most_edges: int

    @classmethod
    def from_graphs(
        cls,
        X: Any,
        y: Any,
        *,
        inference: str = "tree",
        loss: Any = "normalized_hamming",
        node_weights: Any = None,
    ) -> "Graph":
        """Build the problem from graphs and the labels of their nodes.

        Parameters
        ----------
        X : list of tuples (node_features, edges) or (node_features, edges, edge_features)
            Arrays or sparse matrices with one row per node and per edge, and an int array of shape
            (n_edges, 2): the two nodes of each. Without features an edge has a single one, which is 1.
        y : list of arrays of labels
            Strings or ints, one per node; of any shape, read in order.
        inference : {"tree", "cut", "messages"}
            Exact on graphs without cycles; exact for two labels, where edges have bonds; or on any graphs,
            exact if a search comes to its end, and else with a bound on what may be lacking.
        loss : "normalized_hamming", "hamming" or array of shape (n_labels, n_labels)
            Share of wrong labels (default), number of wrong labels, or ``loss[a, b]`` for the cost of
            label b where the truth is a, averaged over the nodes.
        node_weights : list of arrays, optional
            How much each node counts in the loss, its share included.
        """
        graphs = encode_graphs(X, owner="Graph")
        labels, classes = encode_node_labels(y, graphs, owner="Graph")
        weights = None if node_weights is None else encode_node_weights(node_weights, graphs, owner="Graph")
        return cls.from_encoded(graphs, labels, len(classes), inference=inference, loss=loss, weights=weights)

    @classmethod
    def from_encoded(
        cls,
        graphs: Graphs,
        labels: IntArray,
        n_labels: int,
        *,
        inference: str = "tree",
        loss: Any = "normalized_hamming",
        weights: FloatArray | None = None,
    ) -> "Graph":
        """Build the problem from graphs and labels 0, ..., n_labels - 1."""
        problem = cls.for_prediction(graphs, n_labels, inference)
        check_several(n_labels, "Graph")
        labels = checked_numbers(labels, n_rows(problem.rows), n_labels, "Graph")
        cost = cost_matrix(loss, LOSSES, n_labels, "Graph")
        counts = np.ones(len(labels)) if weights is None else checked_importance(weights, len(labels))
        if not (isinstance(loss, str) and loss == "hamming"):
            totals = np.add.reduceat(counts, problem.offsets[:-1])
            counts = counts / np.repeat(totals, np.diff(problem.offsets))
        return problem._replace(labels=labels, cost=pad_columns(cost, problem.width), importance=counts)

    @classmethod
    def for_prediction(cls, graphs: Graphs, n_labels: int, inference: str = "tree") -> "Graph":
        """Build a problem that can be decoded but not trained on: it has no labels."""
        if inference not in LABELLINGS:
            raise ValueError(f"Graph: inference must be one of {LABELLINGS}, got {inference!r}.")
        width = padded(checked_count(n_labels, "Graph", "n_labels"))
        rows, edge_rows = as_rows(graphs.nodes, "Graph"), as_rows(graphs.edges, "Graph")
        graphs = checked_graphs(graphs, n_rows(rows), n_rows(edge_rows))
        start, arcs, heads = _neighbours(graphs)
        problem = cls(
            rows=rows,
            edge_rows=edge_rows,
            offsets=graphs.offsets,
            edge_offsets=graphs.edge_offsets,
            start=start,
            arcs=arcs,
            heads=heads,
            labels=np.zeros(0, dtype=np.int64),
            cost=np.zeros((0, width)),
            importance=np.zeros(0),
            inference=None,
            n_labels=int(n_labels),
            width=width,
            most_nodes=int(np.diff(graphs.offsets).max()),
            most_edges=int(np.diff(graphs.edge_offsets).max()),
        )
        return fitting(problem._replace(inference=labelling(inference, problem, "Graph")), "Graph")

    def unpack(self, w: FloatArray) -> GraphWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return unpack_graph(w, self.rows.n_columns, self.n_labels, self.inference)


def unpack_graph(w: FloatArray, n_features: int, n_labels: int, inference: Labelling) -> GraphWeights:
    """Return the weights of a graph by what they mean, as views of ``w``."""
    width = padded(n_labels)
    nodes, edges = w[: n_features * width], w[n_features * width :]
    if not isinstance(inference, Cut):
        edges = edges.reshape(-1, n_labels, width)[:, :, :n_labels]
    return GraphWeights(nodes.reshape(-1, width)[:, :n_labels].T, edges)


def _neighbours(graphs: Graphs) -> tuple[IntArray, IntArray, IntArray]:
    """Return the arcs of every node, numbered within their graph, and where each leads to."""
    graph = np.repeat(np.arange(len(graphs.offsets) - 1), 2 * np.diff(graphs.edge_offsets))
    tails = graphs.ends.ravel() + graphs.offsets[graph]
    start = np.append(0, np.cumsum(np.bincount(tails, minlength=int(graphs.offsets[-1]))))
    arcs = np.argsort(tails, kind="stable")
    return start, plain(arcs - 2 * graphs.edge_offsets[graph[arcs]], np.int64), graphs.ends[:, ::-1].ravel()


@protocol.sizes.register(Graph)
def graph_sizes(problem):
    per_edge = edge_size(problem.inference, problem.n_labels, problem.width)
    nodes, edges = problem.most_nodes, problem.most_edges
    return protocol.Sizes(
        problem.offsets.shape[0] - 1,
        problem.rows.n_columns * problem.width + problem.edge_rows.n_columns * per_edge,
        nodes * problem.width + edges * per_edge,
        nodes + n_bonds(problem.inference, edges),
        2 * (nodes + edges),
    )


@protocol.workspace.register(Graph)
def graph_workspace(problem):
    return GraphWork(
        aligned_zeros(problem.most_nodes, problem.width),
        aligned_zeros(protocol.sizes(problem).weights),
        labelling_work(problem.inference, problem),
    )


@protocol.is_exact.register(Graph)
def graph_is_exact(problem):
    return is_exact(problem.inference)


@protocol.shortfall.register(Graph)
def graph_shortfall(problem, i, work):
    return labels_lack(problem.inference, work.inference)


@protocol.is_bounded.register(Graph)
def graph_is_bounded(problem):
    return True


@protocol.output_size.register(Graph)
def graph_output_size(problem, i):
    edges = problem.edge_offsets[i + 1] - problem.edge_offsets[i]
    return problem.offsets[i + 1] - problem.offsets[i] + n_bonds(problem.inference, edges)


@protocol.statistics_size.register(Graph)
def graph_statistics_size(problem, i):
    per_edge = edge_size(problem.inference, problem.n_labels, problem.width)
    nodes, edges = problem.offsets[i + 1] - problem.offsets[i], problem.edge_offsets[i + 1]
    return nodes * problem.width + (edges - problem.edge_offsets[i]) * per_edge


@protocol.argmax.register(Graph)
def graph_argmax(problem, i, theta, y, work):
    first, nodes = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    scores = theta[: nodes * problem.width].reshape((nodes, problem.width))
    for v in range(nodes):
        cost = problem.cost[problem.labels[first + v]]
        weighted_sum(1.0, scores[v], problem.importance[first + v], cost, work.unary[v])
    _label(problem, i, work.unary[:nodes], theta, y, work)


@protocol.decode.register(Graph)
def graph_decode(problem, i, theta, y, work):
    nodes = problem.offsets[i + 1] - problem.offsets[i]
    _label(problem, i, theta[: nodes * problem.width].reshape((nodes, problem.width)), theta, y, work)


@subroutine
def _label(problem, i, unary, theta, y, work):
    """The best output for these scores of labels, and those of edges in ``theta``."""
    edges, begin = problem.edge_offsets[i + 1] - problem.edge_offsets[i], unary.shape[0] * problem.width
    per_edge = edge_size(problem.inference, problem.n_labels, problem.width)
    pairs = theta[begin : begin + edges * per_edge].reshape((edges, per_edge))
    find_labels(problem.inference, problem, i, unary, pairs, work.inference, y)


@protocol.loss.register(Graph)
def graph_loss(problem, i, y):
    first, total = problem.offsets[i], 0.0
    for v in range(problem.offsets[i + 1] - first):
        total += problem.importance[first + v] * problem.cost[problem.labels[first + v], y[v]]
    return total


@protocol.psi.register(Graph)
def graph_psi(problem, i, y, index, value):
    first, width, count = problem.offsets[i], problem.width, 0
    nodes = problem.offsets[i + 1] - first
    for v in range(nodes):
        truth = problem.labels[first + v]
        if truth != y[v]:
            index[count], value[count] = v * width + truth, 1.0
            index[count + 1], value[count + 1] = v * width + y[v], -1.0
            count += 2
    for e in range(problem.edge_offsets[i + 1] - problem.edge_offsets[i]):
        count = edge_psi(problem.inference, problem, i, e, y, nodes, count, index, value)
    return count
