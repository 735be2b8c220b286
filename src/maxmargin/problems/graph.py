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
"""

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.checked import checked_count, checked_graphs, checked_importance, checked_numbers
from maxmargin.encoding.graphs import Graphs, encode_graphs, encode_node_labels, encode_node_weights
from maxmargin.problems._labels import cost_matrix, pad_columns
from maxmargin.problems.layouts import padded
from maxmargin.problems.maps.graph import GraphMap
from maxmargin.problems.oracles._labelling import STEPS, edge_size, labelling, neighbours
from maxmargin.problems.oracles.graph import GraphOracle
from maxmargin.problems.problem import Problem, fitting
from maxmargin.problems.subsets import spans
from maxmargin.rows import as_rows, n_rows

GraphProblem = Problem[GraphMap, GraphOracle]
LOSSES = ("normalized_hamming", "hamming")


class Graph:
    """Builders of graph-labelling problems."""

    @staticmethod
    def from_graphs(
        X: object,
        y: object,
        *,
        inference: str = "tree",
        loss: object = "normalized_hamming",
        node_weights: object = None,
        owner: str = "Graph",
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
        owner : str
            The name that errors begin with.
        """
        graphs = encode_graphs(X, owner=owner)
        labels, classes = encode_node_labels(y, graphs, owner=owner)
        weights = None if node_weights is None else encode_node_weights(node_weights, graphs, owner=owner)
        return Graph.from_encoded(
            graphs, labels, len(classes), inference=inference, loss=loss, weights=weights, owner=owner
        )

    @staticmethod
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
        owner: str = "Graph",
    ) -> GraphProblem:
        """Build a problem from graphs, labels 0, ..., n_labels - 1 and the nodes' ``weights``.

        If label k is true, a wrong node costs ``class_costs[k]`` times as much. The search that follows
        messages makes at most ``steps`` steps.
        """
        phi, graph = Graph.for_prediction(graphs, n_labels, inference, steps=steps, owner=owner)
        labels = checked_numbers(labels, int(phi.nodes[-1, 1]), n_labels, owner)
        cost = cost_matrix(loss, LOSSES, n_labels, owner)
        cost = cost if class_costs is None else cost * class_costs[:, None]
        counts = np.ones(len(labels)) if weights is None else checked_importance(weights, len(labels), owner)
        if not (isinstance(loss, str) and loss == "hamming"):
            totals = np.add.reduceat(counts, phi.nodes[:, 0])
            counts = counts / np.repeat(totals, phi.nodes[:, 1] - phi.nodes[:, 0])
        graph = graph._replace(labels=labels, cost=pad_columns(cost, phi.width), importance=counts)
        return Problem(phi, graph)

    @staticmethod
    def for_prediction(
        graphs: Graphs, n_labels: int, inference: str = "tree", *, steps: int = STEPS, owner: str = "Graph"
    ) -> GraphProblem:
        """Build a problem that can be decoded but not trained on: it has no labels."""
        width = padded(checked_count(n_labels, owner, "n_labels"))
        rows, edge_rows = as_rows(graphs.nodes, owner), as_rows(graphs.edges, owner)
        graphs = checked_graphs(graphs, n_rows(rows), n_rows(edge_rows), owner)
        arcs = neighbours(graphs)
        kind = labelling(inference, graphs, arcs, n_labels, owner, steps)
        nodes, edges = spans(graphs.offsets), spans(graphs.edge_offsets)
        most = (int((array[:, 1] - array[:, 0]).max()) for array in (nodes, edges))
        sizes = int(n_labels), width, *most
        labels, cost, importance = np.zeros(0, dtype=np.int64), np.zeros((0, width)), np.zeros(0)
        problem = Problem(
            GraphMap(rows, edge_rows, nodes, edges, int(edge_size(kind, n_labels, width)), *sizes),
            GraphOracle(nodes, edges, nodes[:, 0].copy(), *arcs, labels, cost, importance, kind, *sizes),
        )
        return fitting(problem, owner)
