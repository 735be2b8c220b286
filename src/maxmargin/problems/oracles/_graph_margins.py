"""Margins of the labels of nodes: by messages on trees, by flows for cuts, else by a new labelling for each.

With ``inference="messages"`` a margin is the difference of the scores of two answers. It is exact if both are
best, and zero if the second is no worse than the first.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import generic, helper
from maxmargin.inference.cut_margins import CutMarginWork, cut_margin_work, cut_margins
from maxmargin.inference.margins import tree_margins
from maxmargin.problems import margins as protocol
from maxmargin.problems.oracle import decode, oracle_workspace
from maxmargin.problems.oracles._labelling import Cut, Messages, Subsets, Tree
from maxmargin.problems.oracles.graph import GraphOracle, GraphOracleWork


class TreeLabelMarginWork(NamedTuple):
    """Workspace for trees: of the oracle, and rows of labels for messages."""

    oracle: GraphOracleWork
    rows: FloatArray


class CutLabelMarginWork(NamedTuple):
    """Workspace for cuts: of the oracle, and of `cut_margins`."""

    oracle: GraphOracleWork
    search: CutMarginWork


@protocol.margin_workspace.register(GraphOracle)
def graph_margin_workspace(
    graph: GraphOracle,
) -> TreeLabelMarginWork | CutLabelMarginWork | protocol.DecodingAgain:
    work, kind = oracle_workspace(graph), graph.inference
    if isinstance(kind, Tree):
        return TreeLabelMarginWork(work, aligned_zeros(2, graph.width))
    if isinstance(kind, Cut):
        return CutLabelMarginWork(work, cut_margin_work(graph.most_nodes, graph.most_edges))
    return protocol.DecodingAgain(work, np.zeros(graph.most_nodes, dtype=np.int64))


@protocol.n_parts.register(GraphOracle)
def graph_n_parts(graph, i):
    """Return the number of nodes: bonds follow from the labels."""
    return graph.nodes[i, 1] - graph.nodes[i, 0]


@protocol.decode_with_margins.register(GraphOracle)
def graph_decode_with_margins(graph, i, theta, y, margins, work):
    _labels_with_margins(graph.inference, graph, i, theta, y, margins, work)


@generic
def _labels_with_margins(kind, graph, i, theta, y, margins, work):
    """Write the labels of nodes and their margins."""
    raise NotImplementedError


@_labels_with_margins.register(Tree)
def tree_labels_with_margins(kind, graph, i, theta, y, margins, work):
    decode(graph, i, theta, y, work.oracle)
    first, stop, K, width = graph.nodes[i, 0], graph.nodes[i, 1], graph.n_labels, graph.width
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
    edges, begin = heads.shape[0] // 2, (stop - first) * width
    tables = theta[begin : begin + edges * K * width].reshape((edges, K, width))
    order, parent, value = kind.order[first:stop], kind.parent[first:stop], work.oracle.inference.value
    tree_margins(tables, order, parent, heads, K, value, work.rows, y, margins)


@_labels_with_margins.register(Cut)
def cut_labels_with_margins(kind, graph, i, theta, y, margins, work):
    decode(graph, i, theta, y, work.oracle)
    start = graph.start[graph.nodes[i, 0] : graph.nodes[i, 1] + 1]
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
    cut_margins(start, graph.arcs, heads, work.oracle.inference, work.search, y, margins)


@_labels_with_margins.register(Subsets)
def subsets_labels_with_margins(kind, graph, i, theta, y, margins, work):
    protocol.decode_again(graph, i, theta, y, margins, work)


@_labels_with_margins.register(Messages)
def messages_labels_with_margins(kind, graph, i, theta, y, margins, work):
    protocol.decode_again(graph, i, theta, y, margins, work)


@protocol.output_score.register(GraphOracle)
def graph_output_score(graph, i, theta, y):
    """Return the score of a labelling, with tables of edges."""
    nodes, width, total = graph.nodes[i, 1] - graph.nodes[i, 0], graph.width, 0.0
    for v in range(nodes):
        total += theta[v * width + y[v]]
    for e in range(graph.edges[i, 1] - graph.edges[i, 0]):
        arc = 2 * (graph.edges[i, 0] + e)
        b, a = graph.heads[arc], graph.heads[arc + 1]
        total += theta[(nodes + e * graph.n_labels + y[a]) * width + y[b]]
    return total


@protocol.forbid.register(GraphOracle)
def graph_forbid(graph, i, theta, y, p):
    """Lower the score of a label by more than a change of this label alone can cost, with tables of edges."""
    first, K, width, nodes = graph.nodes[i, 0], graph.n_labels, graph.width, protocol.n_parts(graph, i)
    rows = theta[: (theta.shape[0] // width) * width].reshape((-1, width))
    fine = 1.0 + _range_of_rows(rows[p : p + 1], K)
    for a in range(graph.start[first + p], graph.start[first + p + 1]):
        begin = nodes + (graph.arcs[a] >> 1) * K
        fine += _range_of_rows(rows[begin : begin + K], K)
    before = rows[p, y[p]]
    rows[p, y[p]] -= fine
    return p * width + y[p], before


@helper
def _range_of_rows(rows, n_labels):
    """Return the difference of the largest and the smallest score."""
    low, high = np.inf, -np.inf
    for j in range(rows.shape[0]):
        for k in range(n_labels):
            low, high = min(low, rows[j, k]), max(high, rows[j, k])
    return high - low
