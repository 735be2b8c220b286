r"""Graphs: one label per node, and a score for the labels of the two ends of each edge.

.. math:: \langle w, \phi(x, y) \rangle = \sum_v \langle W_{y_v}, x_v \rangle
          + \sum_{e = (a, b)} \langle V_{y_a y_b}, x_e \rangle

with features of nodes and of edges. For inference by minimum cuts, which is exact on any graph with two
labels, an edge has a single score instead, for a *bond* between ends of the same label:

.. math:: \sum_v \langle W_{y_v}, x_v \rangle + \sum_e b_e \, \langle V, x_e \rangle, \qquad
          b_e \in \{0, 1\}, \quad b_e \le [y_a = y_b] .

**Signs.** A cut needs bonds whose scores are not negative. No sign has to be imposed on the weights for this,
because the bonds are part of the output, and the best output leaves out every bond of negative score. So the
best output is the minimum cut for the positive parts of the scores. It is exact, and objective, dual and
certificate are defined as usual. The truth has all bonds that its labels allow, including those of negative
score. The hinge is therefore at least that of the model whose negative bond scores are replaced by zero, and
equal to it if no score is negative. With a single nonnegative edge feature, the optimum is that of the model
whose bond weight is constrained to be nonnegative.

**Layout.** The statistics of an output are the indicator of the label of each node, as rows padded to
``width``, and then ``per_edge`` numbers for each edge: the indicator of its pair of labels, as padded rows,
or of its bond. The weights are a matrix with one row per feature of nodes and ``width`` columns, then one
with one row per feature of edges and ``per_edge`` columns. To measure a move, `gram` and `norm2` use a vector
of the size of the weights, and clear only the entries that they wrote. So the cost is that of the features
that the move touches.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, not_inlined, subroutine
from maxmargin.compiling.loops import table
from maxmargin.encoding.kinds import checked_floats
from maxmargin.encoding.labels import (
    checked_count,
    checked_numbers,
    checked_offsets,
    cost_matrix,
    pad_columns,
)
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import described
from maxmargin.structures import feature_map
from maxmargin.structures.graphs.encode import Graphs, encode_graphs, encode_node_labels, encode_node_weights
from maxmargin.structures.graphs.inference import Neighbours, neighbours
from maxmargin.structures.graphs.loopy import STEPS, Labelling, labelling
from maxmargin.structures.graphs.oracle import GraphOracle, edge_size
from maxmargin.structures.problem import Problem, builder, fitting, indexed_by_example, padded, spans
from maxmargin.structures.rows import (
    Rows,
    SharedRows,
    as_rows,
    n_rows,
    row_add,
    row_add_two,
    row_scores,
    row_shrink,
    row_wipe,
    row_wipe_two,
    rows_prefetch,
)

LOSSES = ("normalized_hamming", "hamming")


class GraphWeights(NamedTuple):
    """Weights of a graph by meaning.

    ``nodes[k]`` are the weights of the features of nodes for label k. ``edges[f, j, k]`` is the weight of
    feature f of edges for label j at the first end and k at the second. With bonds, there is one weight
    ``edges[f]`` for each feature.
    """

    nodes: FloatArray
    edges: FloatArray


@indexed_by_example("nodes", "edges")
class GraphMap(NamedTuple):
    """Features of nodes and edges.

    Attributes
    ----------
    rows, edge_rows : Rows
        Features of all nodes and of all edges of all graphs, one graph after another. Nodes may share rows.
    nodes, edges : arrays of shape (n, 2)
        Graph i has the nodes nodes[i, 0], ..., nodes[i, 1] - 1, and its edges likewise. Examples may have the
        same edges.
    per_edge : int
        Number of statistics of an edge: n_labels * width, or 1 if edges have bonds.
    """

    rows: Rows | SharedRows
    edge_rows: Rows
    nodes: IntArray
    edges: IntArray
    per_edge: int
    n_labels: int
    width: int
    most_nodes: int
    most_edges: int


class GraphMapWork(NamedTuple):
    """Work array: the feature vector of a move, zero between calls."""

    image: FloatArray


@feature_map.map_sizes.register(GraphMap)
def graph_map_sizes(phi):
    n_weights = phi.rows.n_columns * phi.width + phi.edge_rows.n_columns * phi.per_edge
    statistics = phi.most_nodes * phi.width + phi.most_edges * phi.per_edge
    return feature_map.MapSizes(phi.nodes.shape[0], n_weights, statistics)


@feature_map.map_workspace.register(GraphMap)
def graph_map_workspace(phi: GraphMap) -> GraphMapWork:
    return GraphMapWork(aligned_zeros(feature_map.map_sizes(phi).weights))


@feature_map.statistics_size.register(GraphMap)
def graph_statistics_size(phi, i):
    nodes, edges = phi.nodes[i, 1] - phi.nodes[i, 0], phi.edges[i, 1] - phi.edges[i, 0]
    return nodes * phi.width + edges * phi.per_edge


@feature_map.foresee.register(GraphMap)
def graph_foresee(phi, i):
    rows_prefetch(phi.rows, phi.nodes[i, 0], phi.nodes[i, 1])
    rows_prefetch(phi.edge_rows, phi.edges[i, 0], phi.edges[i, 1])


@feature_map.score.register(GraphMap)
def graph_score(phi, i, w, theta):
    width, per_edge, split = phi.width, phi.per_edge, phi.rows.n_columns * phi.width
    nodes, edges = phi.nodes[i, 1] - phi.nodes[i, 0], phi.edges[i, 1] - phi.edges[i, 0]
    W, V = table(w[:split], width), table(w[split:], per_edge)
    unary = table(theta[: nodes * width], width)
    pairs = table(theta[nodes * width : nodes * width + edges * per_edge], per_edge)
    for v in range(nodes):
        row_scores(phi.rows, phi.nodes[i, 0] + v, W, unary[v])
    for e in range(edges):
        row_scores(phi.edge_rows, phi.edges[i, 0] + e, V, pairs[e])


@feature_map.gram.register(GraphMap)
@not_inlined
def graph_gram(phi, i, move, image, work):
    feature_map.push(phi, i, move, 1.0, work.image, work)
    feature_map.score(phi, i, work.image, image)
    _wipe(phi, i, move, work.image)


@feature_map.norm2.register(GraphMap)
def graph_norm2(phi, i, move, image, work):
    feature_map.push(phi, i, move, 1.0, work.image, work)
    return _wipe(phi, i, move, work.image)


@feature_map.push.register(GraphMap)
def graph_push(phi, i, move, scale, w, work):
    width, split = phi.width, phi.rows.n_columns * phi.width
    W, V = table(w[:split], width), table(w[split:], phi.per_edge)
    nodes = np.uint32((phi.nodes[i, 1] - phi.nodes[i, 0]) * width)
    c = 0
    while c < move.size[0]:
        p = move.support[c]
        c += 1
        if p < nodes:
            c += _push_node(phi, i, move, c, scale, W)
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(phi.per_edge))
            row_add(phi.edge_rows, phi.edges[i, 0] + e, scale * move.delta[p], V[:, k])


@feature_map.refresh.register(GraphMap)
def graph_refresh(phi, i, move, prox, v, w):
    width, split = phi.width, phi.rows.n_columns * phi.width
    nodes = np.uint32((phi.nodes[i, 1] - phi.nodes[i, 0]) * width)
    for c in range(move.size[0]):
        p = move.support[c]
        if p < nodes:
            u, k = _row_and_column(p, np.uint32(width))
            at = np.int64(k)
            row_shrink(phi.rows, phi.nodes[i, 0] + u, width, at, at + 1, prox, v, w)
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(phi.per_edge))
            at = split + np.int64(k)
            row_shrink(phi.edge_rows, phi.edges[i, 0] + e, phi.per_edge, at, at + 1, prox, v, w)


@subroutine
def _push_node(phi, i, move, c, scale, W):
    """Push entry c - 1 of the support, a label of a node, and entry c if it is a label of the same node.

    In most moves, the true label of a node is next to the wrong one. Return the number of entries pushed,
    minus one.
    """
    p, width = move.support[c - 1], np.uint32(phi.width)
    v, k = _row_and_column(p, width)
    t, q = phi.nodes[i, 0] + v, move.support[c]
    if c < move.size[0] and q // width == v:
        row_add_two(phi.rows, t, scale * move.delta[p], scale * move.delta[q], W, k, q - v * width)
        return 1
    row_add(phi.rows, t, scale * move.delta[p], W[:, k])
    return 0


@subroutine
def _wipe(phi, i, move, image):
    """Set the feature vector of a move back to zero; return its squared length."""
    total = 0.0
    if image.shape[0] <= move.size[0]:  # it is faster to walk the whole vector
        for p in range(image.shape[0]):
            total += image[p] * image[p]
            image[p] = 0.0
        return total
    width, split = phi.width, phi.rows.n_columns * phi.width
    W, V = table(image[:split], width), table(image[split:], phi.per_edge)
    nodes = np.uint32((phi.nodes[i, 1] - phi.nodes[i, 0]) * width)
    c = 0
    while c < move.size[0]:
        p = move.support[c]
        c += 1
        if p < nodes:
            square, more = _wipe_node(phi, i, move, c, W)
            total, c = total + square, c + more
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(phi.per_edge))
            total += row_wipe(phi.edge_rows, phi.edges[i, 0] + e, V[:, k])
    return total


@subroutine
def _wipe_node(phi, i, move, c, W):
    """Clear what `_push_node` wrote; return the sum of squares, and the number of entries minus one."""
    width = np.uint32(phi.width)
    v, k = _row_and_column(move.support[c - 1], width)
    t, q = phi.nodes[i, 0] + v, move.support[c]
    if c < move.size[0] and q // width == v:
        return row_wipe_two(phi.rows, t, W, k, q - v * width), 1
    return row_wipe(phi.rows, t, W[:, k]), 0


@helper
def _row_and_column(p, width):
    """Return the row and the column of entry p of a matrix; 32-bit numbers divide fast."""
    row = p // width
    return row, np.uint32(p - row * width)


@feature_map.row_layout.register(GraphMap)
def graph_row_layout(phi: GraphMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(phi.nodes, 0, phi.width)


@feature_map.unpack.register(GraphMap)
def graph_unpack(phi: GraphMap, w: FloatArray) -> GraphWeights:
    return unpack_graph(w, phi.rows.n_columns, phi.n_labels, phi.per_edge)


def unpack_graph(w: FloatArray, n_features: int, n_labels: int, per_edge: int) -> GraphWeights:
    """Return the weights of a graph by meaning, as views of ``w``."""
    width = padded(n_labels)
    nodes, edges = w[: n_features * width], w[n_features * width :]
    if per_edge > 1:  # the edges have tables, not bonds
        edges = edges.reshape(-1, n_labels, width)[:, :, :n_labels]
    return GraphWeights(nodes.reshape(-1, width)[:, :n_labels].T, edges)


GraphProblem = Problem[GraphMap, GraphOracle]


class Graph:
    """Builders of graph-labelling problems."""

    @staticmethod
    @builder("Graph")
    def from_graphs(
        X: object,
        y: object,
        *,
        inference: str = "tree",
        loss: object = "normalized_hamming",
        node_weights: object = None,
    ) -> GraphProblem:
        """Build a problem from graphs and the labels of their nodes.

        Parameters
        ----------
        X : list of tuples (node_features, edges) or (node_features, edges, edge_features)
            Features are arrays or sparse matrices with one row per node and per edge. ``edges`` is an int
            array of shape (n_edges, 2) with the two nodes of each edge. Without edge features, each edge has
            a single feature, which is 1.
        y : list of arrays of labels
            Strings or ints, one per node, in arrays of any shape, which are read in C order.
        inference : {"tree", "cut", "subsets", "messages"}
            "tree" is exact, for graphs without cycles. "cut" is exact, for two labels; edges then have bonds.
            "subsets" is exact, for two labels and up to 12 nodes. "messages" is for all graphs: it is exact
            if a search ends within its limit, and otherwise bounds how far its answers are below the best.
        loss : "normalized_hamming", "hamming" or array of shape (n_labels, n_labels)
            Fraction of wrong labels (default), number of wrong labels, or ``loss[a, b]`` for the cost of
            label b where the truth is a, averaged over the nodes.
        node_weights : list of arrays, optional
            Weight of each node in the loss and in its averages.
        """
        graphs = encode_graphs(X)
        labels, classes = encode_node_labels(y, graphs)
        weights = None if node_weights is None else encode_node_weights(node_weights, graphs)
        return Graph.from_encoded(
            graphs, labels, len(classes), inference=inference, loss=loss, weights=weights
        )

    @staticmethod
    @builder("Graph")
    def from_encoded(
        graphs: Graphs,
        labels: IntArray,
        n_labels: int,
        *,
        inference: str = "tree",
        loss: object = "normalized_hamming",
        weights: FloatArray | None = None,
        class_costs: FloatArray | None = None,
        steps: int = STEPS,
    ) -> GraphProblem:
        """Build a problem from graphs, labels 0, ..., n_labels - 1 and the nodes' ``weights``.

        If label k is true, a wrong node costs ``class_costs[k]`` times as much. The search that follows
        messages makes at most ``steps`` steps.
        """
        phi, kind, arcs = _graph_map(graphs, n_labels, inference, steps)
        labels = checked_numbers(labels, int(phi.nodes[-1, 1]), n_labels)
        cost = cost_matrix(loss, LOSSES, n_labels)
        cost = cost if class_costs is None else cost * class_costs[:, None]
        counts = np.ones(len(labels)) if weights is None else _checked_importance(weights, len(labels))
        if not (isinstance(loss, str) and loss == "hamming"):
            totals = np.add.reduceat(counts, phi.nodes[:, 0])
            counts = counts / np.repeat(totals, phi.nodes[:, 1] - phi.nodes[:, 0])
        return Problem(phi, _graph_oracle(phi, kind, arcs, labels, pad_columns(cost, phi.width), counts))

    @staticmethod
    @builder("Graph")
    def for_prediction(
        graphs: Graphs, n_labels: int, inference: str = "tree", *, steps: int = STEPS
    ) -> GraphProblem:
        """Build a problem that can be decoded but not trained on: it has no labels."""
        phi, kind, arcs = _graph_map(graphs, n_labels, inference, steps)
        labels, cost, importance = np.zeros(0, dtype=np.int64), np.zeros((0, phi.width)), np.zeros(0)
        return Problem(phi, _graph_oracle(phi, kind, arcs, labels, cost, importance))


def _graph_map(
    graphs: Graphs, n_labels: int, inference: str, steps: int
) -> tuple[GraphMap, Labelling, Neighbours]:
    """Return the map of checked graphs, their inference and arcs; raise if weights do not fit into memory."""
    width = padded(checked_count(n_labels, "n_labels"))
    rows, edge_rows = as_rows(graphs.nodes), as_rows(graphs.edges)
    graphs = _checked_graphs(graphs, n_rows(rows), n_rows(edge_rows))
    arcs = neighbours(graphs)
    kind = labelling(inference, graphs, arcs, n_labels, steps)
    nodes, edges = spans(graphs.offsets), spans(graphs.edge_offsets)
    per_edge = int(edge_size(kind, n_labels, width))
    most = (int((array[:, 1] - array[:, 0]).max()) for array in (nodes, edges))
    phi = GraphMap(rows, edge_rows, nodes, edges, per_edge, int(n_labels), width, *most)
    return fitting(Problem(phi, phi)).map, kind, arcs


def _graph_oracle(
    phi: GraphMap,
    kind: Labelling,
    arcs: Neighbours,
    labels: IntArray,
    cost: FloatArray,
    importance: FloatArray,
) -> GraphOracle:
    """Return the oracle of the graphs of a map."""
    truth, sizes = phi.nodes[:, 0].copy(), (phi.n_labels, phi.width, phi.most_nodes, phi.most_edges)
    return GraphOracle(phi.nodes, phi.edges, truth, *arcs, labels, cost, importance, kind, *sizes)


def _checked_graphs(graphs: Graphs, n_nodes: int, n_edges: int) -> Graphs:
    """Return the graphs with copies of all but their features, if each edge joins two nodes of its graph."""
    offsets = checked_offsets(graphs.offsets, n_nodes)
    edge_offsets = checked_offsets(graphs.edge_offsets, n_edges, name="edge_offsets", least=0)
    if len(edge_offsets) != len(offsets) or np.shape(graphs.ends) != (n_edges, 2):
        raise ValueError(
            f"edge_offsets and ends must have shapes ({len(offsets)},) and ({n_edges}, 2), got "
            f"({len(edge_offsets)},) and {np.shape(graphs.ends)}."
        )
    most = np.repeat(np.repeat(np.diff(offsets), np.diff(edge_offsets)), 2)
    ends = checked_numbers(np.ravel(graphs.ends), 2 * n_edges, most, name="ends of edges")
    ends = ends.reshape(n_edges, 2)
    loops = ends[:, 0] == ends[:, 1]
    if loops.any():
        raise ValueError(
            f"edge {int(loops.argmax())} must join two nodes, got {ends[loops.argmax(), 0]} twice."
        )
    return graphs._replace(offsets=offsets, edge_offsets=edge_offsets, ends=ends)


def _checked_importance(weights: object, n_nodes: int) -> FloatArray:
    """Return the weight of each node in the loss."""
    array = checked_floats(weights, "weights").copy()
    if array.shape != (n_nodes,) or not ((array >= 0.0) & (array < np.inf)).all():
        raise ValueError(
            f"weights must be {n_nodes} finite numbers >= 0, one per node, got {described(weights)}."
        )
    return array
