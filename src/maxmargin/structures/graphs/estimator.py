"""Labelling of the nodes of graphs as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy.sparse import csr_array

from maxmargin.encoding.labels import Labels
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.estimators import confidence, explanation, inspection, kernels
from maxmargin.estimators.confidence import known_states, list_marginals, split_at
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import (
    Examples,
    Lesson,
    Parts,
    Tally,
    check_kind,
    check_width,
    class_costs,
    is_none,
    lesson_of,
    n_rows,
    present_weights,
    tally,
)
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, named_by, row_entries
from maxmargin.estimators.inspection import WeightTable, dense
from maxmargin.estimators.kernels import is_linear, linear_rows, n_columns, prediction_rows, wrapped
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.sequences import feature_names, named_rows
from maxmargin.estimators.state import Interval, StrOptions, check_parameters, transaction
from maxmargin.estimators.structure import (
    COUNT,
    Call,
    Cluster,
    Layout,
    Problem,
    Question,
    Structure,
    choice,
    learn_attributes,
    signed,
    tables_of_trials,
)
from maxmargin.estimators.tables import COEF, LABEL_FIELDS, SCALED_C, SCALED_TEXTS
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import caller, described
from maxmargin.solving.result import Callback
from maxmargin.structures.graphs.encode import (
    EDGES,
    NODES,
    GraphEncoder,
    Graphs,
    encode_node_labels,
    encode_node_weights,
    encode_with_void,
    has_cycles,
    labelled_nodes,
    learn_graphs,
    without_empty,
    without_nodes,
)
from maxmargin.structures.graphs.model import Graph
from maxmargin.structures.wrappers import marked_weights


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


# Graphs, the label indices of their nodes, and the weights of nodes.
GraphData = tuple[Graphs, IntArray, FloatArray]
_CYCLES = ("cycles",)  # the key of a lesson for whether a graph has cycles
# Nearby nodes are redundant: a graph with more nodes than this counts as one with this many.
_NODES = 48


def _trial(edges: list[tuple[int, int]], labels: list[int]) -> tuple[object, object]:
    return [(tables_of_trials()["dense"][:3], edges)], [labels]


def _lesson(model: "GraphSVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    examples = model._structure.encode(model, parts, weights, Call(first=True, more=False, warm=False))
    if model._node_names is not None or model._edge_names is not None:
        raise ValueError(
            "X must have the features of nodes and edges as arrays on a cluster, got "
            f"names; use maxmargin.{caller()}."
        )
    found = lesson_of(examples, model.classes_, scaled=isinstance(model.C, str))
    return found._replace(largest={_CYCLES: int(has_cycles(examples.data[0]))})


def _learn(model: "GraphSVC", lesson: Lesson) -> None:
    """Set what follows from the lesson of all partitions."""
    learn_attributes(model, lesson)
    model.classes_ = lesson.labels
    model.inference_ = _inference_for(model, bool(lesson.largest[_CYCLES]))


def _check_names(model: "GraphSVC") -> None:
    """Raise ValueError unless the attributes that a file had are those of one model."""
    kernels.check_kernel(model)
    nodes, edges = (
        (model._node_names, model.n_features_in_),
        (model._edge_names, model.n_edge_features_in_),
    )
    for part, (names, n) in {"nodes": nodes, "edges": edges}.items():
        if names is not None and names.n_features_in_ != n:
            raise ValueError(f"features of {part} must have a name each")


class LabelledGraphs(Structure["GraphSVC", GraphData, list[Labels], list[FloatArray]]):
    """Labels of the nodes of graphs."""

    scale = 3.0
    summable = "graphs without cycles and inference='tree', as no other sum over labellings is exact"
    cluster = Cluster(_lesson, _learn)
    trials: ClassVar = {
        "paths of two labels": lambda: _trial([(0, 1), (1, 2)], [0, 1, 1]),
        "cycles of two labels": lambda: _trial([(0, 1), (1, 2), (2, 0)], [0, 1, 1]),
        # As templates with label pairs make it.
        "paths with names": lambda: (
            [([["a"], ["b"], ["b"]], [(0, 1), (1, 2)], [["c"], ["d"]])],
            [[0, 1, 1]],
        ),
        "cycles of three labels": lambda: _trial([(0, 1), (1, 2), (2, 0)], [0, 1, 2]),
    }
    n_parts = 3
    fields: ClassVar = {
        **kernels.FIELDS,
        **LABEL_FIELDS,
        "_node_names": named_rows(NODES).or_none(),
        "_edge_names": named_rows(EDGES).or_none(),
        "n_edge_features_in_": COUNT.checked(_check_names),
        "inference_": choice("tree", "cut", "messages"),
    }

    def encode(
        self, model: "GraphSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[GraphData]:
        (X, y, node_weights), known = parts, call.known_classes(model)
        graphs = _learnt_graphs(model, X) if call.first else _known_graphs(model, X)
        labels, model.classes_ = encode_with_void(y, graphs, model.void, classes=known)
        counts = np.ones(graphs.offsets[-1])
        if node_weights is not None:
            counts = encode_node_weights(node_weights, graphs)
        if call.first:
            model.inference_ = _inference_for(model, has_cycles(graphs))
            kernels.learn_kernel(model, graphs.nodes)
            _check_signs(model)
        examples = _without_empty(Examples((graphs, labels, counts), weights))
        return _without_void(examples)

    def problem(self, model: "GraphSVC", examples: Examples[GraphData]) -> Problem:
        graphs, labels, counts = examples.data
        plain = Graph.from_encoded(
            graphs._replace(nodes=linear_rows(model, graphs.nodes)),
            labels,
            len(model.classes_),
            inference=model.inference_,
            loss=model.loss,
            weights=counts,
            class_costs=class_costs(model, examples, labels, counts),
            steps=model.search,
        )
        problem = wrapped(model, plain, graphs.nodes, model.rescaling)
        if model.nonnegative is None:
            return problem
        return signed(problem, marked_weights(problem, model.nonnegative, {"nodes": 1, "edges": 0}))

    def ask(self, model: "GraphSVC", X: object) -> Question[list[Labels], list[FloatArray]]:
        check_parameters(model, "search")
        if is_none(X):
            return Question(None, lambda codes: [])
        graphs = _known_graphs(model, X)
        lengths = np.diff(graphs.offsets)
        # The output of a cut has the bonds of its edges after the labels of its nodes.
        begins = graphs.offsets + graphs.edge_offsets if model.inference_ == "cut" else graphs.offsets

        def outputs(codes: IntArray) -> list[Labels]:
            places = zip(begins[:-1].tolist(), lengths.tolist(), strict=True)
            return [model.classes_[codes[a : a + m]] for a, m in places]

        def score(codes: IntArray, y: object) -> Tally:
            true, classes = encode_with_void(y, graphs, model.void)
            check_kind(classes[0], model.classes_)
            known = true >= 0
            right = classes[true[known]] == np.concatenate(outputs(codes))[known]
            return tally(right, np.append(0, np.cumsum(known))[graphs.offsets])

        return Question(
            _unlabelled(model, graphs) if graphs.offsets[-1] else None,
            outputs,
            score,
            margins=lambda codes, margins: split_at(margins, graphs.offsets),
            states=lambda y: known_states(*encode_node_labels(y, graphs), model.classes_),
            marginals=lambda values, shapes: list_marginals(values, shapes, lengths, len(model.classes_)),
        )

    def reader(self, model: "GraphSVC", x: object) -> tuple[Problem, Reader] | None:
        kernels.check_linear(model, "explain")
        graphs = _known_graphs(model, [x])
        if not graphs.offsets[-1]:
            return None
        nodes = RowReader(graphs.nodes, "node", named_by(feature_names(model)))
        edges = RowReader(graphs.edges, "edge", named_by(_edge_names(model)))
        reader = GraphReader(nodes, edges, graphs.ends, model.classes_, model._coef, model.edge_coef_)
        return _unlabelled(model, graphs), reader

    def layout(self, model: "GraphSVC") -> Layout:
        def blank() -> object:
            none = np.zeros(2, dtype=np.int64)
            nodes, edges = csr_array((1, n_columns(model))), csr_array((0, model.n_edge_features_in_))
            ends = np.zeros((0, 2), dtype=np.int64)
            return _of_graphs(model, Graphs(nodes, np.array([0, 1]), edges, none, ends)).map

        n_labels = len(model.classes_)
        per_edge = 1 if model.inference_ == "cut" else n_labels**2
        return Layout(n_labels * n_columns(model) + model.n_edge_features_in_ * per_edge, blank)

    def expose(self, model: "GraphSVC") -> None:
        model.feature_names_, model.edge_feature_names_ = (
            None if names is None else names.feature_names_
            for names in (model._node_names, model._edge_names)
        )
        model._coef, model.edge_coef_ = kernels.linear_parts(model)

    def features(self, model: "GraphSVC") -> list[WeightTable]:
        return [WeightTable("node", feature_names(model), model.classes_.tolist(), dense(model.coef_).T)]

    def transitions(self, model: "GraphSVC") -> list[WeightTable]:
        labels, weights = model.classes_.tolist(), model.edge_coef_
        if weights.ndim == 1:
            pairs = [(label, label) for label in labels]
            weights = np.repeat(weights[:, None], len(labels), axis=1)
        else:
            pairs = list(itertools.product(labels, labels))
        return [WeightTable("edge", _edge_names(model), pairs, weights.reshape(len(weights), -1))]

    def row_counts(self, X: object) -> list[int]:
        graphs = [x if isinstance(x, tuple | list) else () for x in cast("Iterable[object]", X)]
        return [n_rows(graph[0]) if graph else 0 for graph in graphs]


def _learnt_graphs(model: "GraphSVC", X: object) -> Graphs:
    """Return the graphs encoded, and keep the names and numbers of their features."""
    graphs, (model._node_names, model._edge_names) = learn_graphs(X, model.min_count)
    model.n_features_in_, model.n_edge_features_in_ = graphs.nodes.shape[1], graphs.edges.shape[1]
    return graphs


def _known_graphs(model: "GraphSVC", X: object) -> Graphs:
    """Return the graphs encoded, if they have as many features as those of `fit`."""
    graphs = GraphEncoder(model._node_names, model._edge_names).transform(X)
    check_width("nodes", graphs.nodes.shape[1], model.n_features_in_)
    check_width("edges", graphs.edges.shape[1], model.n_edge_features_in_)
    return graphs


def _without_empty(examples: Examples[GraphData]) -> Examples[GraphData]:
    """Return the examples without empty graphs, whose hinge is zero at any weights."""
    (graphs, labels, counts), weights, _ = examples
    lengths = np.diff(graphs.offsets)
    if not lengths.any():
        raise ValueError("each graph of X is empty; give one or more that are not.")
    return Examples((without_empty(graphs), labels, counts), present_weights(weights, lengths))


def _without_void(examples: Examples[GraphData]) -> Examples[GraphData]:
    """Return the examples without void nodes, whose label is -1, and without graphs that have no others."""
    (graphs, labels, counts), weights, _ = examples
    if (labels >= 0).all():
        return examples
    kept, counted = labelled_nodes(graphs, labels, counts)
    remaining = without_empty(without_nodes(graphs, kept))
    weights = None if weights is None else weights[counted]
    numbers = np.append(np.flatnonzero(kept), len(kept))
    return Examples((remaining, labels[kept], counts[kept]), weights, numbers)


def _inference_for(model: "GraphSVC", has_cycles: bool) -> str:
    if model.inference != "auto":
        return model.inference
    if not has_cycles:
        return "tree"
    return "cut" if len(model.classes_) == 2 else "messages"


def _check_signs(model: "GraphSVC") -> None:
    if model.nonnegative is not None and not is_linear(model):
        raise ValueError(
            "nonnegative must be None with a kernel other than 'linear', got "
            f"{described(model.nonnegative)}; leave it out."
        )


def _unlabelled(model: "GraphSVC", graphs: Graphs) -> Problem:
    """Return the problem of predicting the labels of the graphs that have nodes."""
    present = without_empty(graphs)
    return _of_graphs(model, present._replace(nodes=prediction_rows(model, graphs.nodes)))


def _of_graphs(model: "GraphSVC", scored: Graphs) -> Problem:
    """Return the problem of graphs; with a kernel, the features of their nodes are scores."""
    n_labels = len(model.classes_)
    return Graph.for_prediction(scored, n_labels, model.inference_, steps=model.search)


def _edge_names(model: "GraphSVC") -> Sequence[object]:
    """Return the names of the features of edges, or their numbers."""
    return model.edge_feature_names_ or range(model.n_edge_features_in_)


class GraphSVC(MaxMarginEstimator[GraphData, list[Labels], list[FloatArray]]):
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
    %(l1_ratio)s
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

    _texts: ClassVar[dict[str, str]] = SCALED_TEXTS | {
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
    _structure: ClassVar = LabelledGraphs()
    void: str | int | None
    search: int
    inference: str
    loss: str | FloatArray
    rescaling: str
    class_weight: str | Mapping[object, float] | None
    nonnegative: dict[str, object] | None
    inference_: str
    edge_coef_: FloatArray
    edge_feature_names_: list[str] | None
    n_edge_features_in_: int
    _node_names: SequenceEncoder | None
    _edge_names: SequenceEncoder | None

    _parameter_constraints: ClassVar[Constraints] = {
        "C": SCALED_C,
        "void": [str, Integral, None],
        "inference": [StrOptions({"auto", "tree", "cut", "messages"})],
        "search": [Interval(Integral, 0, None, closed="left")],
        "loss": [StrOptions(HAMMING), "array-like"],
        "nonnegative": [dict, None],
    }

    def __init__(
        self,
        C: float | str = "scale",
        *,
        l1_ratio: float | None = None,
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

    def _scaled_C(self, variance: float, size: float) -> float:
        # Smaller where graphs have many nodes. If the loss is an average over nodes, rather than a sum, C
        # times their number determines what a node counts.
        is_sum = isinstance(self.loss, str) and self.loss == "hamming"
        return super()._scaled_C(variance, size) * (min(1.0, _NODES / size) if is_sum else min(size, _NODES))

    predict_single = explanation.predict_single
    predict_margins = confidence.predict_margins
    predict_marginals = confidence.predict_marginals
    calibrate = confidence.calibrate
    explain = explanation.explain
    top_features = inspection.top_features
    sparsify = inspection.sparsify
    densify = inspection.densify
    top_transitions = inspection.top_transitions

    coef_ = COEF
    support_, dual_coef_, n_support_ = kernels.support_properties()

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
