"""The oracles of graphs: the best labelling for scores of labels of nodes and of edges.

An output is the labels of the nodes, followed by the bonds of the edges if they have bonds. See
`maxmargin.structures.graphs.model` for the layout of its statistics. There is a type for each kind of search
for the best labelling. It determines the statistics of an edge: a table over the labels of its two ends, or a
*bond*, which is possible only between ends of the same label.

Margins of the labels of nodes are found by messages on trees, by flows for cuts, else by a new labelling for
each. With ``inference="messages"`` a margin is the difference of the scores of two answers. It is exact if
both are best, and zero if the second is no worse than the first.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, generic_with_default, helper, not_inlined, subroutine
from maxmargin.compiling.loops import table, weighted_sum
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import oracle
from maxmargin.structures.graphs.cuts import (
    CutMarginWork,
    CutWork,
    cut,
    cut_margin_work,
    cut_margins,
    cut_work,
    load_terms,
    make_bonds,
)
from maxmargin.structures.graphs.inference import (
    CountedTree,
    Tree,
    TreeWork,
    best_on_tree,
    best_on_tree_by_count,
    count_rows,
    counted_tree,
    trace_tree_back,
    tree_margins,
    tree_means,
)
from maxmargin.structures.graphs.loopy import (
    Cut,
    Labelling,
    Messages,
    SearchWork,
    Subsets,
    SubsetWork,
    best_by_messages,
    best_by_search,
    best_subset,
    is_best,
    search_work,
    subset_work,
)
from maxmargin.structures.oracle import decode, oracle_workspace
from maxmargin.structures.problem import indexed_by_example
from maxmargin.structures.questions import (
    ANSWERS,
    Answers,
    DecodingAgain,
    PartRows,
    decode_with_margins,
    decoding_again,
    find_means,
    forbid,
    margins_by,
    n_parts,
    output_score,
    part_rows,
)
from maxmargin.structures.recursions import costliest_count
from maxmargin.structures.slack import check_counts, check_rescalable, slack_argmax, slack_workspace

LabellingWork = TreeWork | CutWork | SubsetWork | SearchWork


@generic_with_default
def n_bonds(kind, n_edges):
    """Return the number of bonds, which follow the labels in an output."""
    return 0


@n_bonds.register(Cut)
def cut_n_bonds(kind, n_edges):
    return n_edges


@subroutine
def edge_size(kind, n_labels, width):
    """Return the number of statistics of an edge."""
    return 1 if n_bonds(kind, 1) == 1 else n_labels * width


def labelling_work(kind: Labelling, n_nodes: int, n_edges: int, width: int) -> LabellingWork:
    """Return a workspace for graphs of at most this many nodes and edges."""
    if isinstance(kind, Tree):
        return TreeWork(np.zeros((n_nodes, width)), np.zeros(width))
    if isinstance(kind, Cut):
        return cut_work(n_nodes, n_edges)
    return subset_work(n_nodes) if isinstance(kind, Subsets) else search_work(n_nodes, n_edges, width)


@subroutine
def _arcs_of(graph, i):
    """Return where the arcs of each node of graph i begin, and the nodes that its arcs lead to."""
    start = graph.start[graph.nodes[i, 0] : graph.nodes[i, 1] + 1]
    return start, graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]]


@subroutine
def _forest(kind, graph, i):
    """Return the order of the nodes of graph i, the arcs to their parents, and where arcs lead to."""
    first, stop = graph.nodes[i, 0], graph.nodes[i, 1]
    return kind.order[first:stop], kind.parent[first:stop], _arcs_of(graph, i)[1]


@subroutine
def _split(graph, i, theta):
    """Return the scores of the labels of nodes, and the tables of edges."""
    nodes, edges = graph.nodes[i, 1] - graph.nodes[i, 0], graph.edges[i, 1] - graph.edges[i, 0]
    K, width, begin = graph.n_labels, graph.width, nodes * graph.width
    tables = theta[begin : begin + edges * K * width].reshape((edges, K, width))
    return table(theta[:begin], width), tables


@generic
def find_labels(kind, graph, i, unary, pairs, work, y):
    """Write the best output of graph i to ``y``, for scores of its nodes and edges.

    Return an upper bound on how far its score is below the best.
    """
    raise NotImplementedError


@find_labels.register(Tree)
def tree_find_labels(kind, graph, i, unary, pairs, work, y):
    tables, K = pairs.reshape((pairs.shape[0], graph.n_labels, graph.width)), graph.n_labels
    order, parent, heads = _forest(kind, graph, i)
    best_on_tree(unary, tables, order, parent, heads, K, work.value, work.message, y)
    return 0.0


@find_labels.register(Subsets)
def subsets_find_labels(kind, graph, i, unary, pairs, work, y):
    start, heads = _arcs_of(graph, i)
    tables = pairs.reshape((pairs.shape[0], graph.n_labels, graph.width))
    best_subset(unary, tables, start, graph.arcs, heads, work, y)
    return 0.0


@find_labels.register(Messages)
@not_inlined
def messages_find_labels(kind, graph, i, unary, pairs, work, y):
    start, heads = _arcs_of(graph, i)
    tables = pairs.reshape((pairs.shape[0], graph.n_labels, graph.width))
    score, bound = best_by_messages(
        unary, tables, start, graph.arcs, heads, graph.n_labels, kind.passes, work.messages, y
    )
    if kind.steps > 0 and not is_best(score, bound):
        score, reached = best_by_search(
            unary, tables, start, graph.arcs, heads, graph.n_labels, score, kind.steps, work, y
        )
        bound = min(bound, reached)
    return max(bound - score, 0.0)


@find_labels.register(Cut)
@not_inlined
def cut_find_labels(kind, graph, i, unary, pairs, work, y):
    start, heads = _arcs_of(graph, i)
    load_terms(unary, pairs, work.excess, work.residual)
    cut(start, graph.arcs, heads, unary.shape[0], work, y)
    make_bonds(pairs, heads, unary.shape[0], y)
    return 0.0


@subroutine
def _table_psi(graph, i, e, y, n_nodes, count, index, value):
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


@subroutine
def _bond_psi(graph, i, e, y, n_nodes, count, index, value):
    """Do the same for an edge with a bond."""
    edge, truth = graph.edges[i, 0] + e, graph.truth[i]
    b, a = graph.heads[2 * edge], graph.heads[2 * edge + 1]
    bond = 1 if graph.labels[truth + a] == graph.labels[truth + b] else 0
    if bond == y[n_nodes + e]:
        return count
    index[count], value[count] = n_nodes * graph.width + e, bond - y[n_nodes + e]
    return count + 1


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
        See `Neighbours`.
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
    """Workspace: scores of labels with their costs, the arrays of the inference, and its last shortfall."""

    unary: FloatArray
    inference: LabellingWork
    shortfall: FloatArray


@oracle.output_sizes.register(GraphOracle)
def graph_output_sizes(graph):
    nodes, edges = graph.most_nodes, graph.most_edges
    return oracle.OutputSizes(nodes + n_bonds(graph.inference, edges), 2 * (nodes + edges))


@oracle.oracle_workspace.register(GraphOracle)
def graph_oracle_workspace(graph: GraphOracle) -> GraphOracleWork:
    nodes, edges, width = graph.most_nodes, graph.most_edges, graph.width
    inference = labelling_work(graph.inference, nodes, edges, width)
    return GraphOracleWork(aligned_zeros(nodes, width), inference, np.zeros(1))


@oracle.output_size.register(GraphOracle)
def graph_output_size(graph, i):
    bonds = n_bonds(graph.inference, graph.edges[i, 1] - graph.edges[i, 0])
    return graph.nodes[i, 1] - graph.nodes[i, 0] + bonds


@oracle.is_exact.register(GraphOracle)
def graph_is_exact(graph: GraphOracle) -> bool:
    return not isinstance(graph.inference, Messages)


@oracle.shortfall.register(GraphOracle)
def graph_shortfall(graph, i, work):
    return work.shortfall[0]


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
    work.shortfall[0] = find_labels(graph.inference, graph, i, unary, pairs, work.inference, y)


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
        if n_bonds(graph.inference, 1) == 1:
            count = _bond_psi(graph, i, e, y, nodes, count, index, value)
        else:
            count = _table_psi(graph, i, e, y, nodes, count, index, value)
    return count


class TreeLabelMarginWork(NamedTuple):
    """Workspace for trees: of the oracle, and rows of labels for messages."""

    oracle: GraphOracleWork
    rows: FloatArray


class CutLabelMarginWork(NamedTuple):
    """Workspace for cuts: of the oracle, and of `cut_margins`."""

    oracle: GraphOracleWork
    search: CutMarginWork


def _margin_work(graph: GraphOracle) -> TreeLabelMarginWork | CutLabelMarginWork | DecodingAgain:
    if isinstance(graph.inference, Tree):
        return TreeLabelMarginWork(oracle_workspace(graph), aligned_zeros(2, graph.width))
    if isinstance(graph.inference, Cut):
        search = cut_margin_work(graph.most_nodes, graph.most_edges)
        return CutLabelMarginWork(oracle_workspace(graph), search)
    return decoding_again(graph)


@n_parts.register(GraphOracle)
def graph_n_parts(graph, i):
    """Return the number of nodes: bonds follow from the labels."""
    return graph.nodes[i, 1] - graph.nodes[i, 0]


@decode_with_margins.register(GraphOracle)
def graph_decode_with_margins(graph, i, theta, y, margins, work):
    margins_by(graph.inference, graph, i, theta, y, margins, work)


@margins_by.register(Tree)
def tree_margins_by(kind, graph, i, theta, y, margins, work):
    decode(graph, i, theta, y, work.oracle)
    (_, tables), (order, parent, heads) = _split(graph, i, theta), _forest(kind, graph, i)
    value = work.oracle.inference.value
    tree_margins(tables, order, parent, heads, graph.n_labels, value, work.rows, y, margins)


@margins_by.register(Cut)
def cut_margins_by(kind, graph, i, theta, y, margins, work):
    decode(graph, i, theta, y, work.oracle)
    start, heads = _arcs_of(graph, i)
    cut_margins(start, graph.arcs, heads, work.oracle.inference, work.search, y, margins)


@output_score.register(GraphOracle)
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


@forbid.register(GraphOracle)
def graph_forbid(graph, i, theta, y, p):
    """Lower the score of a label by more than a change of this label alone can cost, with tables of edges."""
    first, K, width, nodes = graph.nodes[i, 0], graph.n_labels, graph.width, n_parts(graph, i)
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


@check_rescalable.register(GraphOracle)
def graph_check_rescalable(graph: GraphOracle) -> None:
    if not isinstance(graph.inference, Tree):
        raise ValueError(
            "slack rescaling needs inference='tree', got "
            f"{type(graph.inference).__name__.lower()!r}; remove cycles, or rescale margins."
        )
    check_counts(graph.cost)
    for i, (first, stop) in enumerate(graph.nodes.tolist()):
        if graph.importance[first:stop].min() != graph.importance[first:stop].max():
            raise ValueError(
                "slack rescaling needs nodes of equal weight, got node weights that differ in "
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
    (unary, tables), (order, parent, heads) = _split(graph, i, theta), _forest(graph.inference, graph, i)
    n_nodes, K = unary.shape[0], graph.n_labels
    truth = graph.labels[graph.truth[i] : graph.truth[i] + n_nodes]
    best_on_tree_by_count(unary, tables, order, parent, heads, truth, K, own)
    m = costliest_count(own.scores[: n_nodes + 1])
    trace_tree_back(tables, order, parent, heads, m, K, own, y)


class TreeMeansWork(NamedTuple):
    """Workspace: exponentials of the step from a node to its parent, and the table of their edge."""

    joint: FloatArray
    oriented: FloatArray


def _means_work(graph: GraphOracle) -> TreeMeansWork | None:
    if not isinstance(graph.inference, Tree):
        return None
    K, width = graph.n_labels, graph.width
    return TreeMeansWork(aligned_zeros(2 * K + 2, width), aligned_zeros(K, width))


ANSWERS[GraphOracle] = Answers(margins=_margin_work, means=_means_work)


@find_means.register(GraphOracle)
def graph_find_means(graph, i, theta, work, own, mean):
    """Compute the means of a graph without cycles, for the inference `Tree`."""
    (unary, tables), (marginals, pairs) = _split(graph, i, theta), _split(graph, i, mean)
    (order, parent, heads), K, value = (
        _forest(graph.inference, graph, i),
        graph.n_labels,
        work.inference.value,
    )
    joint, oriented = own.joint, own.oriented
    return tree_means(unary, tables, order, parent, heads, K, value, joint, oriented, marginals, pairs)


@part_rows.register(GraphOracle)
def graph_part_rows(graph, i):
    return PartRows(0, graph.width, graph.nodes[i, 1] - graph.nodes[i, 0], graph.n_labels)
