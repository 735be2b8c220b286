"""Margins of the labels of nodes: by messages to and fro on trees, else by labelling once more for each node.

With ``inference="messages"`` a margin is the difference of the scores of two answers. It is exact if both are
best, and zero if the second is no worse than the first.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import generic_with_default, helper
from maxmargin.inference.margins import tree_margins
from maxmargin.problems import margins as protocol
from maxmargin.problems.oracle import decode, oracle_workspace, output_sizes
from maxmargin.problems.oracles._labelling import Cut, Tree, edge_size
from maxmargin.problems.oracles.graph import GraphOracle, GraphOracleWork


class GraphMarginWork(NamedTuple):
    """Work space: of the oracle, another output, and rows of labels for messages."""

    oracle: GraphOracleWork
    y: IntArray
    rows: FloatArray


@protocol.margin_workspace.register(GraphOracle)
def graph_margin_workspace(graph: GraphOracle) -> GraphMarginWork:
    y = np.zeros(output_sizes(graph).output, dtype=np.int64)
    return GraphMarginWork(oracle_workspace(graph), y, aligned_zeros(2, graph.width))


@protocol.n_parts.register(GraphOracle)
def graph_n_parts(graph, i):
    """Return the number of nodes: bonds follow from the labels."""
    return graph.nodes[i, 1] - graph.nodes[i, 0]


@protocol.decode_with_margins.register(GraphOracle)
def graph_decode_with_margins(graph, i, theta, y, margins, work):
    _labels_with_margins(graph.inference, graph, i, theta, y, margins, work)


@generic_with_default
def _labels_with_margins(kind, graph, i, theta, y, margins, work):
    """Write the labels of nodes and their margins."""
    protocol.decode_again(graph, i, theta, y, margins, work)


@_labels_with_margins.register(Tree)
def tree_labels_with_margins(kind, graph, i, theta, y, margins, work):
    decode(graph, i, theta, y, work.oracle)
    first, stop, K, width = graph.nodes[i, 0], graph.nodes[i, 1], graph.n_labels, graph.width
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
    edges, begin = heads.shape[0] // 2, (stop - first) * width
    tables = theta[begin : begin + edges * K * width].reshape((edges, K, width))
    order, parent, value = kind.order[first:stop], kind.parent[first:stop], work.oracle.inference.value
    tree_margins(tables, order, parent, heads, K, value, work.rows, y, margins)


@protocol.output_score.register(GraphOracle)
def graph_output_score(graph, i, theta, y):
    nodes, width, total = graph.nodes[i, 1] - graph.nodes[i, 0], graph.width, 0.0
    for v in range(nodes):
        total += theta[v * width + y[v]]
    per_edge = edge_size(graph.inference, graph.n_labels, width)
    for e in range(graph.edges[i, 1] - graph.edges[i, 0]):
        begin = nodes * width + e * per_edge
        total += _edge_score(graph.inference, graph, i, e, theta[begin : begin + per_edge], y)
    return total


@generic_with_default
def _edge_score(kind, graph, i, e, scores, y):
    """Return the score of edge e in an output."""
    arc = 2 * (graph.edges[i, 0] + e)
    b, a = graph.heads[arc], graph.heads[arc + 1]
    return scores[y[a] * graph.width + y[b]]


@_edge_score.register(Cut)
def cut_edge_score(kind, graph, i, e, scores, y):
    return y[graph.nodes[i, 1] - graph.nodes[i, 0] + e] * scores[0]


@protocol.forbid.register(GraphOracle)
def graph_forbid(graph, i, theta, y, p):
    """Lower the score of a label by more than a change of this label alone can cost."""
    first, width, nodes = graph.nodes[i, 0], graph.width, graph.nodes[i, 1] - graph.nodes[i, 0]
    per_edge = edge_size(graph.inference, graph.n_labels, width)
    fine = 1.0 + _range(theta[p * width : p * width + graph.n_labels])
    for a in range(graph.start[first + p], graph.start[first + p + 1]):
        begin = nodes * width + (graph.arcs[a] >> 1) * per_edge
        fine += _edge_range(graph.inference, theta[begin : begin + per_edge], graph.n_labels, width)
    index = p * width + y[p]
    before = theta[index]
    theta[index] -= fine
    return index, before


@generic_with_default
def _edge_range(kind, scores, n_labels, width):
    """Return by how much the score of an edge can change."""
    low, high = np.inf, -np.inf
    for j in range(n_labels):
        for k in range(n_labels):
            score = scores[j * width + k]
            low, high = min(low, score), max(high, score)
    return high - low


@_edge_range.register(Cut)
def cut_edge_range(kind, scores, n_labels, width):
    return abs(scores[0])


@helper
def _range(scores):
    """Return the difference of the largest and the smallest score."""
    low, high = np.inf, -np.inf
    for k in range(scores.shape[0]):
        low, high = min(low, scores[k]), max(high, scores[k])
    return high - low
