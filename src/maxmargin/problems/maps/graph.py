r"""The feature map of graphs: from labels of nodes and of edges to weights, and back to scores.

.. math:: \langle w, \phi(x, y) \rangle = \sum_v \langle W_{y_v}, x_v \rangle
          + \sum_e \langle V s_e(y), x_e \rangle

The statistics of an output are the indicator of the label of each node, as rows padded to ``width``, and then
``per_edge`` numbers for each edge: the indicator of its pair of labels, as padded rows, or of its bond. The
weights are a matrix with one row per feature of nodes and ``width`` columns, then one with one row per
feature of edges and ``per_edge`` columns.

To measure a move, `gram` and `norm2` use a vector of the size of the weights, and clear only the entries that
they wrote. So the cost is that of the features that the move touches.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import apart, helper, subroutine
from maxmargin.compiling.views import table
from maxmargin.problems import feature_map
from maxmargin.problems.layouts import padded
from maxmargin.problems.subsets import indexed_by_example
from maxmargin.rows import (
    Rows,
    SharedRows,
    row_add,
    row_add_two,
    row_scores,
    row_wipe,
    row_wipe_two,
    rows_prefetch,
)


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
@apart
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
