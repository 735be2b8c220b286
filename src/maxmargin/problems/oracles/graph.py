"""The oracles of graphs: the best labelling for scores of labels of nodes and of edges.

An output is the labels of the nodes, followed by the bonds of the edges if they have bonds. See
`maxmargin.problems.maps.graph` for the layout of its statistics, and `maxmargin.problems.oracles._labelling`
for the kinds of inference.
"""

from typing import NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.compiling.views import table
from maxmargin.loops import weighted_sum
from maxmargin.problems import oracle
from maxmargin.problems.oracles._labelling import (
    Labelling,
    LabellingWork,
    edge_psi,
    edge_size,
    find_labels,
    finds_best,
    labelling_shortfall,
    labelling_work,
    n_bonds,
)
from maxmargin.problems.subsets import indexed_by_example


@indexed_by_example("nodes", "edges", "truth")
class GraphOracle(NamedTuple):
    """Edges, true labels, costs and the kind of inference.

    Attributes
    ----------
    nodes, edges : arrays of shape (n, 2)
        Graph i has the nodes nodes[i, 0], ..., nodes[i, 1] - 1, and its edges likewise. Examples may have the
        same graph.
    truth : array of shape (n,)
        Where the true labels of each example begin.
    start, arcs, heads : arrays
        See `maxmargin.problems.oracles._labelling.Neighbours`.
    labels : array
        The true labels of all examples, one after another.
    cost : array of shape (n_labels, width)
        ``cost[a, b]`` is the cost of label b at a node whose true label is a.
    importance : array of shape (n_nodes,)
        Factor of the cost at each node.
    inference : Tree, Cut or Messages
    """

    nodes: IntArray
    edges: IntArray
    truth: IntArray
    start: IntArray
    arcs: IntArray
    heads: IntArray
    labels: IntArray
    cost: FloatArray
    importance: FloatArray
    inference: Labelling
    n_labels: int
    width: int
    most_nodes: int
    most_edges: int


class GraphOracleWork(NamedTuple):
    """Workspace: scores of labels with their costs, and the arrays of the inference."""

    unary: FloatArray
    inference: LabellingWork


@oracle.output_sizes.register(GraphOracle)
def graph_output_sizes(graph):
    nodes, edges = graph.most_nodes, graph.most_edges
    return oracle.OutputSizes(nodes + n_bonds(graph.inference, edges), 2 * (nodes + edges))


@oracle.oracle_workspace.register(GraphOracle)
def graph_oracle_workspace(graph: GraphOracle) -> GraphOracleWork:
    nodes, edges, width = graph.most_nodes, graph.most_edges, graph.width
    inference: LabellingWork = labelling_work(graph.inference, nodes, edges, width)
    return GraphOracleWork(aligned_zeros(nodes, width), inference)


@oracle.output_size.register(GraphOracle)
def graph_output_size(graph, i):
    bonds = n_bonds(graph.inference, graph.edges[i, 1] - graph.edges[i, 0])
    return graph.nodes[i, 1] - graph.nodes[i, 0] + bonds


@oracle.is_exact.register(GraphOracle)
def graph_is_exact(graph: GraphOracle) -> bool:
    return bool(finds_best(graph.inference))


@oracle.shortfall.register(GraphOracle)
def graph_shortfall(graph, i, work):
    return labelling_shortfall(graph.inference, work.inference)


@oracle.argmax.register(GraphOracle)
def graph_argmax(graph, i, theta, y, work):
    first, nodes = graph.nodes[i, 0], graph.nodes[i, 1] - graph.nodes[i, 0]
    scores = table(theta[: nodes * graph.width], graph.width)
    for v in range(nodes):
        cost = graph.cost[graph.labels[graph.truth[i] + v]]
        weighted_sum(1.0, scores[v], graph.importance[first + v], cost, work.unary[v])
    _label(graph, i, work.unary[:nodes], theta, y, work)


@oracle.decode.register(GraphOracle)
def graph_decode(graph, i, theta, y, work):
    nodes = graph.nodes[i, 1] - graph.nodes[i, 0]
    _label(graph, i, table(theta[: nodes * graph.width], graph.width), theta, y, work)


@subroutine
def _label(graph, i, unary, theta, y, work):
    """Write the best output for these scores of labels, and the scores of edges in ``theta``, to ``y``."""
    edges, begin = graph.edges[i, 1] - graph.edges[i, 0], unary.shape[0] * graph.width
    per_edge = edge_size(graph.inference, graph.n_labels, graph.width)
    pairs = table(theta[begin : begin + edges * per_edge], per_edge)
    find_labels(graph.inference, graph, i, unary, pairs, work.inference, y)


@oracle.loss.register(GraphOracle)
def graph_loss(graph, i, y):
    first, truth, total = graph.nodes[i, 0], graph.truth[i], 0.0
    for v in range(graph.nodes[i, 1] - first):
        total += graph.importance[first + v] * graph.cost[graph.labels[truth + v], y[v]]
    return total


@oracle.psi.register(GraphOracle)
def graph_psi(graph, i, y, index, value):
    nodes, width, count = graph.nodes[i, 1] - graph.nodes[i, 0], graph.width, 0
    for v in range(nodes):
        truth = graph.labels[graph.truth[i] + v]
        if truth != y[v]:
            index[count], value[count] = v * width + truth, 1.0
            index[count + 1], value[count + 1] = v * width + y[v], -1.0
            count += 2
    for e in range(graph.edges[i, 1] - graph.edges[i, 0]):
        count = edge_psi(graph.inference, graph, i, e, y, nodes, count, index, value)
    return count
