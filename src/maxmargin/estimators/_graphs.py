"""What estimators over graphs take: features of nodes and edges, labels, which may be void, and weights."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import ClassVar, Self, cast

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.graph_features import EDGES, NODES, GraphEncoder, learn_graphs
from maxmargin.encoding.graphs import (
    Graphs,
    encode_node_weights,
    encode_with_void,
    without_empty,
    without_nodes,
)
from maxmargin.estimators._base import Call, LabellingEstimator, Output
from maxmargin.estimators._encoders import named_rows
from maxmargin.estimators._examples import Examples, Parts
from maxmargin.estimators._fields import COUNT, Fields
from maxmargin.estimators._kernels import n_rows
from maxmargin.estimators._parameters import Constraints
from maxmargin.estimators._scaled import Rows, ScaledEstimator
from maxmargin.estimators._single import present_weights
from maxmargin.estimators._state import transaction

# Graphs, the label indices of their nodes, and the weights of nodes.
GraphData = tuple[Graphs, IntArray, FloatArray]


class GraphEstimator(LabellingEstimator[GraphData, Output], ScaledEstimator[GraphData, Output]):
    """Base of the estimators over graphs."""

    void: str | int | None
    min_count: int
    feature_names_: list[str] | None
    edge_feature_names_: list[str] | None
    n_edge_features_in_: int
    _node_names: SequenceEncoder | None
    _edge_names: SequenceEncoder | None

    _fitted: ClassVar[Fields] = {
        "_node_names": named_rows(NODES).or_none(),
        "_edge_names": named_rows(EDGES).or_none(),
        "n_edge_features_in_": COUNT,
    }
    _parameter_constraints: ClassVar[Constraints] = {"void": [str, Integral, None]}
    _shared_texts: ClassVar[dict[str, str]] = {
        "rows": "nodes",
        "example": "graph",
        "examples": "graphs",
        "X": """
            X : list of tuples (node_features, edges) or (node_features, edges, edge_features)
                Features are arrays or sparse matrices with one row per node and per edge, or lists with one
                dict or one collection of strings per node and per edge. Edges are an int array of shape
                (n_edges, 2): the two nodes of each. Without features an edge has a single feature, which is
                1. A graph may have no nodes: it has an empty output, and changes nothing in training.
            """,
        "y": """
            y : list of arrays of labels
                Strings or ints, one per node; of any shape, read in order.
            """,
        "extra": """
            node_weights : list of arrays, default=None
                Weight of each node in the loss, and in the number of nodes by which "normalized_hamming"
                divides.
            """,
    }

    @transaction
    def fit(  # type: ignore[override]
        self, X: object, y: object, node_weights: object = None, sample_weight: object = None
    ) -> Self:
        """%(fit)s"""
        return self._learn((X, y, node_weights), sample_weight)

    @transaction
    def partial_fit(  # type: ignore[override]
        self,
        X: object,
        y: object,
        classes: object = None,
        node_weights: object = None,
        sample_weight: object = None,
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y, node_weights), sample_weight, more=True, classes=classes)

    def _data(self, parts: Parts, call: Call) -> GraphData:
        """Return the graphs, labels and weights of nodes encoded; the first call learns the features."""
        (X, y, node_weights), known = parts, self._known_classes(call)
        graphs = self._learnt_graphs(X) if call.first else self._known_graphs(X)
        labels, self.classes_ = encode_with_void(y, graphs, self.void, owner=self._owner, classes=known)
        counts = np.ones(graphs.offsets[-1])
        if node_weights is not None:
            counts = encode_node_weights(node_weights, graphs, owner=self._owner)
        return graphs, labels, counts

    def _trained(self, data: GraphData, weights: FloatArray | None) -> Examples[GraphData]:
        """Return the examples to train on, without empty graphs and void nodes."""
        return _without_void(_without_empty(Examples(data, weights), self._owner), self._owner)

    def _counted_rows(self, X: object) -> Sequence[int]:
        graphs = [x if isinstance(x, tuple | list) else () for x in cast("Iterable[object]", X)]
        return [n_rows(graph[0]) if graph else 0 for graph in graphs]

    def _learnt_graphs(self, X: object) -> Graphs:
        """Return the graphs encoded, and keep the names and numbers of their features."""
        graphs, (self._node_names, self._edge_names) = learn_graphs(X, self.min_count, self._owner)
        self.n_features_in_, self.n_edge_features_in_ = graphs.nodes.shape[1], graphs.edges.shape[1]
        return graphs

    def _known_graphs(self, X: object) -> Graphs:
        """Return the graphs encoded, if they have as many features as those of `fit`."""
        graphs = GraphEncoder(self._node_names, self._edge_names).transform(X, self._owner)
        self._check_width("nodes", graphs.nodes.shape[1], self.n_features_in_)
        self._check_width("edges", graphs.edges.shape[1], self.n_edge_features_in_)
        return graphs

    def _weighted_rows(self, examples: Examples[GraphData]) -> tuple[Rows, FloatArray | None]:
        graphs, weights = examples.data[0], examples.weights
        return graphs.nodes, None if weights is None else np.repeat(weights, np.diff(graphs.offsets))

    def _expose(self) -> None:
        self.feature_names_, self.edge_feature_names_ = (
            None if names is None else names.feature_names_ for names in (self._node_names, self._edge_names)
        )

    def _check_restored(self) -> None:
        super()._check_restored()
        sizes = self.n_features_in_, self.n_edge_features_in_
        for part, names, n in zip(
            ("nodes", "edges"), (self._node_names, self._edge_names), sizes, strict=True
        ):
            if names is not None and names.n_features_in_ != n:
                raise ValueError(f"features of {part} must have a name each")

    def _feature_names(self) -> Sequence[object]:
        """Return the names of the features of nodes, or their numbers."""
        return self.feature_names_ or range(self.n_features_in_)

    def _edge_feature_names(self) -> Sequence[object]:
        """Return the names of the features of edges, or their numbers."""
        return self.edge_feature_names_ or range(self.n_edge_features_in_)


def _without_empty(examples: Examples[GraphData], owner: str) -> Examples[GraphData]:
    """Return the examples without empty graphs, whose hinge is zero at any weights."""
    (graphs, labels, counts), weights, _ = examples
    lengths = np.diff(graphs.offsets)
    if not lengths.any():
        raise ValueError(f"{owner}: each graph of X is empty; give one or more that are not.")
    return Examples((without_empty(graphs), labels, counts), present_weights(weights, lengths))


def _without_void(examples: Examples[GraphData], owner: str) -> Examples[GraphData]:
    """Return the examples without void nodes, whose label is -1, and without graphs that have no others."""
    (graphs, labels, counts), weights, _ = examples
    kept = labels >= 0
    if kept.all():
        return examples
    # A graph whose other nodes all have weight zero has no loss, nor a number of nodes to divide it by.
    counted = np.add.reduceat(np.where(kept, counts, 0.0), graphs.offsets[:-1]) > 0.0
    if not counted.any():
        raise ValueError(
            f"{owner}: node_weights are zero at all nodes that are not void; weight some of them."
        )
    kept &= np.repeat(counted, np.diff(graphs.offsets))
    remaining = without_empty(without_nodes(graphs, kept))
    weights = None if weights is None else weights[counted]
    numbers = np.append(np.flatnonzero(kept), len(kept))
    return Examples((remaining, labels[kept], counts[kept]), weights, numbers)
