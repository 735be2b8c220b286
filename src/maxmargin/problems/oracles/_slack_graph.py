"""The oracle of slack rescaling for graphs without cycles; `_slack_oracles` explains how it works."""

import numpy as np

from maxmargin.compiling.views import table
from maxmargin.inference.counted import costliest_count
from maxmargin.inference.counted_tree import (
    CountedTree,
    best_on_tree_by_count,
    count_rows,
    counted_tree,
    trace_tree_back,
)
from maxmargin.problems.oracles._labelling import Tree
from maxmargin.problems.oracles.graph import GraphOracle
from maxmargin.problems.oracles.slack import check_counts, check_rescalable, slack_argmax, slack_workspace


@check_rescalable.register(GraphOracle)
def graph_check_rescalable(graph: GraphOracle, owner: str) -> None:
    if not isinstance(graph.inference, Tree):
        raise ValueError(
            f"{owner}: slack rescaling needs inference='tree', got "
            f"{type(graph.inference).__name__.lower()!r}; remove cycles, or rescale margins."
        )
    check_counts(graph.cost, owner)
    for i, (first, stop) in enumerate(graph.nodes.tolist()):
        if graph.importance[first:stop].min() != graph.importance[first:stop].max():
            raise ValueError(
                f"{owner}: slack rescaling needs nodes of equal weight, got node weights that differ in "
                f"graph {i}; leave them out, or rescale margins."
            )


@slack_workspace.register(GraphOracle)
def graph_slack_workspace(graph: GraphOracle, length: int) -> CountedTree:
    if length == 0:
        return counted_tree(0, 0, graph.width)
    assert isinstance(graph.inference, Tree)  # or check_rescalable has raised
    size, n_rows = np.zeros(length, dtype=np.int64), 0
    for (first, stop), edges in zip(graph.nodes, graph.edges, strict=True):
        order, parent = graph.inference.order[first:stop], graph.inference.parent[first:stop]
        n_rows = max(n_rows, count_rows(order, parent, graph.heads[2 * edges[0] : 2 * edges[1]], size))
    return counted_tree(length, n_rows, graph.width)


@slack_argmax.register(GraphOracle)
def graph_slack_argmax(graph, i, theta, y, work, own):
    first, stop, width, K = graph.nodes[i, 0], graph.nodes[i, 1], graph.width, graph.n_labels
    n_nodes, n_edges = stop - first, graph.edges[i, 1] - graph.edges[i, 0]
    order, parent = graph.inference.order[first:stop], graph.inference.parent[first:stop]
    heads = graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]
    unary = table(theta[: n_nodes * width], width)
    pairs = theta[n_nodes * width : (n_nodes + n_edges * K) * width].reshape((n_edges, K, width))
    truth = graph.labels[graph.truth[i] : graph.truth[i] + n_nodes]
    best_on_tree_by_count(unary, pairs, order, parent, heads, truth, K, own)
    m = costliest_count(own.scores[: n_nodes + 1])
    trace_tree_back(pairs, order, parent, heads, m, K, own, y)
