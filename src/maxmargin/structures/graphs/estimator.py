"""Labelling of the nodes of graphs as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import is_empty
from maxmargin.encoding.labels import Labels
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.estimators.confidence import ListMarginalEstimator, ListMarginEstimator, known_states, split_at
from maxmargin.estimators.estimator import Call, LabellingEstimator, Output
from maxmargin.estimators.examples import Examples, Parts, check_margins_rescaled, label_weights, share_right
from maxmargin.estimators.explanation import (
    Contribution,
    Explainer,
    Part,
    Reader,
    RowReader,
    named_by,
    row_entries,
)
from maxmargin.estimators.fields import COUNT, Fields, choice, named_rows
from maxmargin.estimators.inspection import LabelFeatureInspector, TransitionInspector, WeightTable
from maxmargin.estimators.kernels import n_rows
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.problems import Problem, n_weights, rescaled, signed
from maxmargin.estimators.state import (
    Interval,
    SinglePrediction,
    StrOptions,
    check_parameters,
    is_none,
    present_weights,
    transaction,
)
from maxmargin.estimators.tables import Rows, ScaledEstimator
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import described
from maxmargin.solving.result import Callback
from maxmargin.structures.graphs.encode import (
    EDGES,
    NODES,
    GraphEncoder,
    Graphs,
    Marks,
    encode_node_labels,
    encode_node_weights,
    encode_with_void,
    has_cycles,
    learn_graphs,
    mark_weights,
    without_empty,
    without_nodes,
)
from maxmargin.structures.graphs.model import Graph

# What estimators over graphs take: features of nodes and edges, labels, which may be void, and weights.

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


# The labels of the nodes of graphs, predicted and scored: what `GraphSVC` does after training.


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


class GraphReader(NamedTuple):
    """Reads labels of nodes.

    Attributes
    ----------
    nodes, edges : RowReader
    ends : array of shape (n_edges, 2)
    classes : array
    weights, edge_weights : arrays
        In the shapes of `GraphSVC.coef_` and `GraphSVC.edge_coef_`.
    """

    nodes: RowReader
    edges: RowReader
    ends: IntArray
    classes: Labels
    weights: FloatArray
    edge_weights: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(v, v) for v in range(self.nodes.rows.shape[0])]

    def state(self, codes: IntArray, part: Part) -> object:
        return self.classes[codes[part.number]].item()

    def output(self, codes: IntArray) -> object:
        return self.classes[codes[: self.nodes.rows.shape[0]]]

    def contributions(self, codes: IntArray) -> list[Contribution]:
        labels = self.classes.tolist()
        found: list[Contribution] = []
        for v in range(self.nodes.rows.shape[0]):
            found += self.nodes.contributions(v, v, labels[codes[v]], self.weights[codes[v]])
        for e, (a, b) in enumerate(self.ends.tolist()):
            weights = self._edge_weights(e, int(codes[a]), int(codes[b]))
            if weights is not None:
                pair = labels[codes[a]], labels[codes[b]]
                found += self.edges.contributions(e, (a, b), pair, weights)
        return found

    def _edge_weights(self, e: int, j: int, k: int) -> FloatArray | None:
        """Return the weights of edge e between these labels; None if a bond is not made."""
        if self.edge_weights.ndim == 3:
            return self.edge_weights[:, j, k]
        columns, values = row_entries(self.edges.rows, e)
        is_bond = j == k and values @ self.edge_weights[columns] > 0.0
        return self.edge_weights if is_bond else None


# Nearby nodes are redundant: a graph with more nodes than this counts as one with this many.
_NODES = 48


class GraphSVC(Explainer, LabelFeatureInspector, TransitionInspector, GraphLabels):
    r"""Structural SVM for the labels of the nodes of graphs: trees, images or any others.

    A labelling y scores :math:`\sum_v \langle W_{y_v}, x_v \rangle + \sum_{e = (a, b)} \langle V_{y_a y_b},
    x_e \rangle`, with features of nodes and of edges. With ``inference="cut"`` the second sum is
    :math:`\sum_{e:\, y_a = y_b} \max(0, \langle V, x_e \rangle)` instead: edges favour labels that agree.
    Training minimises

    .. math:: \frac{1}{2 C n} \|(W, V)\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
              \text{score}_i(y_i) \right)

    where, for cuts, the score of the true labels includes edges of negative score.

    Parameters
    ----------
    %(C)s
    inference : {"auto", "tree", "cut", "messages"}, default="auto"
        How to find the best labelling: exactly, where no graph has a cycle; exactly, by a minimum cut, for
        two labels; or by message passing, followed by a search that the messages guide. This search is exact
        if it ends within ``search`` steps. Otherwise it bounds how much more a better labelling could score,
        and the bound is a part of ``gap_``. The default is the first of these that the training data allow.
    search : int, default=10000
        Largest number of steps of the search after message passing; 0 for none. It bounds the time of
        training and of prediction: messages visit each node of a graph at most 40 times, improve single
        labels in at most 20 visits of each, and a step of the search is one more visit of a node. So the
        default adds up to a quarter on a grid of 32 x 32 nodes, and less on larger ones.
    loss : {"hamming", "normalized_hamming"} or array (n_labels, n_labels), default="hamming"
        Number of wrong labels, share of wrong labels, or a cost ``loss[truth, label]`` averaged over the
        nodes, labels in the order of ``classes_``. Graphs of many nodes, such as images, need a smaller C.
    void : str, int or None, default=None
        A label, such as 255, that marks nodes whose true label is not known. It is not one of ``classes_``
        and is never predicted. Void nodes are removed from the training graphs, with their edges, and a graph
        without other nodes is left out. The objective is then that of the labelled nodes, still convex and
        certified. Inferring the missing labels instead would keep these edges, but the objective would have
        local minima. `predict` labels all nodes; `score` leaves void ones out.
    %(rescaling)s
        "slack" needs graphs without cycles, a Hamming loss and nodes of equal weight.
    %(class_weight)s
        Factor of the loss of a wrong node by its true label: ``{label: weight}``, 1 for labels not listed; or
        factors inversely proportional to the number of nodes of the label, by their weights, with a mean of
        1. They need margin rescaling.
    %(min_count)s
        Features of edges are counted over edges.
    nonnegative : dict or None, default=None
        Weights that must not be negative, ``{"nodes": ..., "edges": ...}`` or one of these: a list of indices
        of features, for all labels, or bools in the shape of ``coef_`` or ``edge_coef_``. Where features of
        edges are not negative, signs on all their weights make a cut submodular in the strict sense: no score
        is raised to zero. They do not make tables over labels submodular, which is a condition on sums of
        weights, ``V[f, 0, 0] + V[f, 1, 1] >= V[f, 0, 1] + V[f, 1, 0]``: bools for j = k only say that
        agreement never counts against a labelling. Training does not use threads with signs.
    %(kernels)s
    %(training)s

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Labels, sorted.
    coef_ : array of shape (n_labels, n_features)
        W, the weights of nodes' features for each label.
    edge_coef_ : array of shape (n_edge_features, n_labels, n_labels), or (n_edge_features,)
        V, the weights of edges' features: ``edge_coef_[:, j, k]`` for label j at the first end of an edge and
        k at its second, or for labels that agree.
    feature_names_, edge_feature_names_ : lists of str or None
        Names of the features of nodes and of edges, if they have names.
    inference_ : str
        How labellings are found.
    %(support)s
    %(temperature)s
    %(certificate)s
    n_features_in_, n_edge_features_in_ : int

    Notes
    -----
    On large graphs with strong edges that contradict each other, the search of "messages" does not end, and
    ``gap_`` stays large.

    A sequence is a graph, whose edges join neighbours: ``grid_edges((1, length))``. So `GraphSVC` is for
    sequences in which the score of a pair of labels depends on the tokens; `ChainSVC` is faster where it does
    not.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import GraphSVC, grid_edges
    >>> image = np.array([[0.1, 0.9, 0.8], [0.2, 0.4, 0.9], [0.1, 0.3, 0.8]])
    >>> graph = (np.c_[image.ravel(), np.ones(9)], grid_edges(image.shape))
    >>> y = np.array([[0, 1, 1], [0, 1, 1], [0, 0, 1]])
    >>> model = GraphSVC(C=100, random_state=0).fit([graph], [y])
    >>> model.inference_, model.predict([graph])[0].reshape(3, 3).tolist()
    ('cut', [[0, 1, 1], [0, 1, 1], [0, 0, 1]])

    The names of features of words, and of pairs of neighbours:

    >>> words = [["the"], ["old"], ["man"], ["the"], ["boats"]]
    >>> pairs = [["the old"], ["old man"], ["man the"], ["the boats"]]
    >>> sentence = words, grid_edges((1, 5)), pairs
    >>> model = GraphSVC(random_state=0).fit([sentence], [["DET", "NOUN", "VERB", "DET", "NOUN"]])
    >>> model.edge_feature_names_
    ['the old', 'old man', 'man the', 'the boats']
    >>> model.predict([(words[3:], [(0, 1)], pairs[3:])])
    [array(['DET', 'NOUN'], dtype='<U4')]
    """

    _texts: ClassVar[dict[str, str]] = {
        "scale": "3",
        "of_rows": " of nodes, and by m / 48 if graphs have m > 48 nodes on average",
        "scale_of_kernels": "the sum counts as 3",
        "first": "The first call chooses the inference for all, and names that it did not have are ignored.",
        "predict": """
            list of arrays
                One array of labels per graph.
            """,
        "margins": """
            list of arrays
                One margin per node, exact if inference is by "tree" or "cut". With "messages" each node takes
                one more prediction, and its margin is the difference of the scores of the two labellings
                found, or 0 if the second is better; both need not be the best.
            """,
        "parts": "the labels of nodes",
        "marginals": """
            list of arrays of shape (n_nodes, n_labels)
                A row for each node and a column for each label, in the order of ``classes_``. Graphs must
                have no cycles, and ``inference_`` must be "tree".
            """,
        "kinds": 'The kind is "node".',
        "transitions": """
            The kind is "edge", the feature is the name or the number of a feature of edges, and before
            and after are the labels of the first and the second end. With "cut", labels that agree have the
            same weight, and there are no others.
            """,
        "score": """
            Return the share of nodes whose label is predicted; void ones do not count.

            A label unknown to `fit` is wrong.
            """,
    }
    _scale = 3.0
    inference: str
    loss: str | FloatArray
    rescaling: str
    class_weight: str | Mapping[object, float] | None
    nonnegative: dict[str, object] | None
    edge_coef_: FloatArray

    _parameter_constraints: ClassVar[Constraints] = {
        "inference": [StrOptions({"auto", "tree", "cut", "messages"})],
        "search": [Interval(Integral, 0, None, closed="left")],
        "loss": [StrOptions(HAMMING), "array-like"],
        "nonnegative": [dict, None],
    }

    def __init__(
        self,
        C: float | str = "scale",
        *,
        inference: str = "auto",
        search: int = 10_000,
        loss: str | FloatArray = "hamming",
        void: str | int | None = None,
        rescaling: str = "margin",
        class_weight: str | Mapping[object, float] | None = None,
        min_count: int = 1,
        nonnegative: dict[str, object] | None = None,
        kernel: str | Callable[..., object] = "linear",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        probability: bool = False,
        method: object = "auto",
        tol: float = 0.05,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        cache_size: float = 200.0,
        callbacks: Iterable[Callback] | None = None,
        checkpoint: CheckpointLike | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[GraphData]:
        data = self._data(parts, call)
        if call.first:
            self.inference_ = self._inference_for(has_cycles(data[0]))
            self._learn_kernel(data[0].nodes)
            self._check_signs()
        return self._trained(data, weights)

    def _inference_for(self, has_cycles: bool) -> str:
        if self.inference != "auto":
            return self.inference
        if not has_cycles:
            return "tree"
        return "cut" if len(self.classes_) == 2 else "messages"

    def _problem(self, examples: Examples[GraphData]) -> Problem:
        (graphs, labels, counts), n_labels = examples.data, len(self.classes_)
        plain = Graph.from_encoded(
            graphs._replace(nodes=self._linear_rows(graphs.nodes)),
            labels,
            n_labels,
            inference=self.inference_,
            loss=self.loss,
            weights=counts,
            class_costs=None if self.class_weight is None else self._class_costs(self.class_weight, examples),
            steps=self.search,
            owner=self._owner,
        )
        problem = rescaled(self._with_kernel(plain, graphs.nodes), self.rescaling, self._owner)
        self._n_weights = n_weights(problem)
        return signed(problem, self._marks(problem))

    def _rows_per_example(self, examples: Examples[GraphData]) -> float:
        """Return the C of a graph in units of that of a node: less than one, where graphs have many nodes.

        If the loss is an average over nodes, C times their number determines what a node counts.
        """
        graphs, weights = examples.data[0], examples.weights
        return self._C_per_node(float(np.average(np.diff(graphs.offsets), weights=weights)))

    def _C_per_node(self, size: float) -> float:
        """Return the C of a graph of this many nodes in units of that of a node."""
        return min(size, _NODES) if self._averages_nodes else min(1.0, _NODES / size)

    @property
    def _averages_nodes(self) -> bool:
        """Whether the loss is an average over the nodes of a graph, rather than a sum."""
        return not (isinstance(self.loss, str) and self.loss == "hamming")

    def _class_costs(
        self, class_weight: str | Mapping[object, float], examples: Examples[GraphData]
    ) -> FloatArray:
        """Return the factor of the loss of a wrong node for each true label."""
        check_margins_rescaled(class_weight, self.rescaling, self._owner)
        (graphs, labels, counts), weights, _ = examples
        if weights is not None:
            counts = counts * np.repeat(weights, np.diff(graphs.offsets))
        return label_weights(class_weight, self.classes_, labels, counts, self._owner)

    def _marks(self, problem: Problem) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        """Return which weights must not be negative, in the order in which `unpack` has them."""
        if self.nonnegative is None:
            return None
        nodes, edges = problem.unpack(np.zeros(self._n_weights))
        parts = {"nodes": Marks(nodes, axis=1), "edges": Marks(edges, axis=0)}
        mark_weights(self.nonnegative, parts, owner=self._owner)
        return np.concatenate([nodes.ravel(), edges.ravel()]) > 0.0

    def _check_signs(self) -> None:
        if self.nonnegative is not None and not self._is_linear:
            raise ValueError(
                f"{self._owner}: nonnegative must be None with a kernel other than 'linear', got "
                f"{described(self.nonnegative)}; leave it out."
            )

    def _keep(self, problem: Problem, examples: Examples[GraphData], w: FloatArray) -> None:
        # With signs, a vector without them follows the weights.
        self._keep_support(problem, examples, examples.data[0].nodes, w[: self._n_weights].copy())
        self._expose()

    def _expose(self) -> None:
        super()._expose()
        self._coef, self.edge_coef_ = self._linear_parts()

    def _feature_tables(self) -> list[WeightTable]:
        return [WeightTable("node", self._feature_names(), self.classes_.tolist(), self.coef_.T)]

    def _transition_tables(self) -> list[WeightTable]:
        labels, weights = self.classes_.tolist(), self.edge_coef_
        if weights.ndim == 1:
            pairs = [(label, label) for label in labels]
            weights = np.repeat(weights[:, None], len(labels), axis=1)
        else:
            pairs = list(itertools.product(labels, labels))
        return [WeightTable("edge", self._edge_feature_names(), pairs, weights.reshape(len(weights), -1))]

    def _reader(self, x: object) -> tuple[Problem, Reader] | None:
        self._check_linear("explain")
        graphs = self._known_graphs([x])
        if not graphs.offsets[-1]:
            return None
        nodes = RowReader(graphs.nodes, "node", named_by(self._feature_names()))
        edges = RowReader(graphs.edges, "edge", named_by(self._edge_feature_names()))
        reader = GraphReader(nodes, edges, graphs.ends, self.classes_, self._coef, self.edge_coef_)
        return self._unlabelled(graphs), reader
