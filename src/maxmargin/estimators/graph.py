"""Labelling of the nodes of graphs as a scikit-learn estimator."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import ClassVar

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.encoding.graphs import has_cycles
from maxmargin.encoding.signs import Marks, mark_weights
from maxmargin.estimators._base import Call
from maxmargin.estimators._examples import Examples, Parts, check_margins_rescaled, label_weights
from maxmargin.estimators._explaining import Explainer, Reader
from maxmargin.estimators._graph_labels import GraphLabels
from maxmargin.estimators._graphs import GraphData
from maxmargin.estimators._inspection import LabelFeatureInspector, TransitionInspector, WeightTable
from maxmargin.estimators._label_readers import GraphReader
from maxmargin.estimators._parameters import HAMMING, Constraints
from maxmargin.estimators._problems import Problem, n_weights, rescaled, signed
from maxmargin.estimators._readers import RowReader, named_by
from maxmargin.estimators._sklearn_private import Interval, StrOptions
from maxmargin.persistence.checkpoint import CheckpointLike
from maxmargin.problems import Graph
from maxmargin.result import Callback
from maxmargin.wording import described

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
