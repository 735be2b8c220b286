"""The labels of the nodes of graphs, predicted and scored: what `GraphSVC` does after training."""

from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.graphs import Graphs, encode_node_labels, encode_with_void, without_empty
from maxmargin.encoding.kinds import is_empty
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._confidence import ListMarginEstimator, split_at
from maxmargin.estimators._fields import Fields, choice
from maxmargin.estimators._graphs import GraphData, GraphEstimator
from maxmargin.estimators._marginals import ListMarginalEstimator, known_states
from maxmargin.estimators._problems import Problem
from maxmargin.estimators._scores import share_right
from maxmargin.estimators._single import SinglePrediction, is_none
from maxmargin.estimators._state import check_parameters
from maxmargin.problems import Graph


class GraphLabels(
    ListMarginEstimator,
    SinglePrediction,
    ListMarginalEstimator[GraphData, list[Labels]],
    GraphEstimator[list[Labels]],
):
    """Base of `GraphSVC`: predictions, their margins, their probabilities and their score."""

    search: int
    inference_: str

    _fitted: ClassVar[Fields] = {"inference_": choice("tree", "cut", "messages")}
    _summable = "graphs without cycles and inference='tree', as no other sum over labellings is exact"

    def _predict(self, X: object) -> list[Labels]:
        check_parameters(self, "search")
        if is_none(X):
            return []
        graphs = self._known_graphs(X)
        outputs, lengths = self._decoded(self._unlabelled(graphs)), np.diff(graphs.offsets)
        # The output of a cut has the bonds of its edges after the labels of its nodes.
        begins = graphs.offsets + graphs.edge_offsets if self.inference_ == "cut" else graphs.offsets
        places = zip(begins[:-1].tolist(), lengths.tolist(), strict=True)
        return [self.classes_[outputs[a : a + m]] for a, m in places]

    def _margin_arrays(self, X: object) -> list[FloatArray]:
        graphs = self._known_graphs(X)
        return split_at(self._decoded_with_margins(self._unlabelled(graphs)).margins, graphs.offsets)

    def _score(self, X: object, y: object) -> float:
        predicted, graphs = self._predict(X), self._known_graphs(X)
        codes, classes = encode_with_void(y, graphs, self.void, owner=self._owner)
        known = codes >= 0
        parts = np.split(known, graphs.offsets[1:-1])
        predicted = [labels[part] for labels, part in zip(predicted, parts, strict=True)]
        return share_right(predicted, codes[known], classes, self.classes_, self._owner)

    def _unlabelled_problem(self, X: object) -> Problem:
        return self._unlabelled(self._known_graphs(X))

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        graphs = self._known_graphs(X)
        codes, classes = encode_node_labels(y, graphs, owner=self._owner)
        return self._unlabelled(graphs), known_states(codes, classes, self.classes_, self._owner)

    def _unlabelled(self, graphs: Graphs) -> Problem:
        """Return the problem of predicting the labels of the graphs that have nodes.

        Its outputs, one after another, are those of all graphs. If there is no node at all, a blank one is
        added, outside of all graphs.
        """
        if not graphs.offsets[-1]:
            return self._blank()
        present = without_empty(graphs)
        return self._of_graphs(present._replace(nodes=self._prediction_rows(graphs.nodes)))

    def _of_graphs(self, scored: Graphs) -> Problem:
        """Return the problem of graphs; with a kernel, the features of their nodes are scores."""
        n_labels, owner = len(self.classes_), self._owner
        return Graph.for_prediction(scored, n_labels, self.inference_, steps=self.search, owner=owner)

    def _blank(self) -> Problem:
        none = np.zeros(2, dtype=np.int64)
        nodes, edges = csr_array((1, self._n_columns)), csr_array((0, self.n_edge_features_in_))
        return self._of_graphs(Graphs(nodes, np.array([0, 1]), edges, none, np.zeros((0, 2), dtype=np.int64)))

    def _n_cells(self) -> int:
        n_labels = len(self.classes_)
        return n_labels * self._n_columns + self.n_edge_features_in_ * (
            1 if self.inference_ == "cut" else n_labels**2
        )

    def _has_no_parts(self, x: object) -> bool:
        return isinstance(x, tuple | list) and len(x) > 0 and is_empty(x[0])

    def _n_states(self) -> int:
        return len(self.classes_)
