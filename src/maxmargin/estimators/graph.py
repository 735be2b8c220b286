"""Labelling of the nodes of graphs as a scikit-learn estimator."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from maxmargin.arrays import FloatArray
from maxmargin.encoding.graphs import (
    Graphs,
    check_features,
    encode_graphs,
    encode_node_labels,
    encode_node_weights,
    has_cycles,
)
from maxmargin.encoding.signs import Marks, mark_weights
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, check_loss, rescaled
from maxmargin.estimators._examples import Examples, appended, weighed
from maxmargin.estimators._scores import check_kind, mean_right
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.problems import Graph, SignConstrained
from maxmargin.problems._labelling import LABELLINGS
from maxmargin.problems._labels import check_several
from maxmargin.problems._protocol import output_size, sizes
from maxmargin.problems.graph import LOSSES


class GraphSVC(StructuralSVC):
    r"""Structural SVM for the labels of the nodes of graphs: trees, images, any other.

    A labelling y scores :math:`\sum_v \langle W_{y_v}, x_v \rangle + \sum_{e = (a, b)} \langle V_{y_a y_b},
    x_e \rangle`, with features of nodes and of edges. With ``inference="cut"`` the second sum is
    :math:`\sum_{e:\, y_a = y_b} \max(0, \langle V, x_e \rangle)` instead: edges are for labels that agree.
    Training minimises

    .. math:: \frac{1}{2 C n} \|(W, V)\|^2 + \frac1n \sum_i \max_y \left( L_i(y) + \text{score}_i(y) -
    \text{score}_i(y_i) \right)

    where the true labels of edges that score below zero in a cut are taken at that score.

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    inference : {"auto", "tree", "cut", "messages"}, default="auto"
        How the best labelling is found: exactly, where no graph has a cycle; exactly, by a minimum cut, for
        two labels; or by messages between nodes and a search that they guide, which is exact if it comes to
        its end in 10,000 steps, and else bounds what the labels found may lack: a part of ``gap_``. By
        default the first of these that the training data allow.
    loss : {"normalized_hamming", "hamming"} or array of shape (n_labels, n_labels),
    default="normalized_hamming"
        Share of wrong labels, number of wrong labels, or a cost ``loss[truth, label]`` averaged over the
        nodes, labels in the order of ``classes_``. For graphs of many nodes, such as images, "hamming" with
        a small C and a tol in numbers of nodes is the easier problem.
    rescaling : {"margin", "slack"}, default="margin"
        What a loss stands for: the margin by which the truth must be ahead, as above, or the price of a
        margin below one, ``loss * (1 + score - score of the truth)``; the latter for graphs without cycles,
        Hamming losses and nodes that count alike.
    nonnegative : dict, optional
        Weights that must not be negative, ``{"nodes": ..., "edges": ...}`` or one of these: a list of indices
        of features, for all labels, or bools in the shape of ``coef_`` or ``edge_coef_``. Where features of
        edges are not negative, signs of all their weights make a cut submodular in the strict sense: no
        score is raised to zero. Tables over labels are not made so, which takes sums of their weights,
        ``V[f, 0, 0] + V[f, 1, 1] >= V[f, 0, 1] + V[f, 1, 0]``: bools for j = k say only that to agree never
        counts against a labelling. Training does not use threads then.
    method : {"auto", "pairwise", "away", "bcfw", "bcfw-wavg", "bcfw-tavg", "bcfw-avg", "fw", "fw-wavg", \
"ssg", "ssg-wavg", "ssg-avg", "perceptron", "perceptron-avg"}, default="auto"
        Accelerated pairwise steps; pairwise or away block steps; block-coordinate or batch Frank-Wolfe,
        stochastic subgradient steps or the perceptron, and which average of their iterates is returned:
        none, weighted, suffix or uniform. The perceptron has no certificate, and steps that know no C.
    tol : float, default=0.01
        Stop when the duality gap is at most this.
    max_iter : int, default=1000
        Largest number of passes over the data.
    time_limit : float, optional
        Largest number of seconds.
    check_every : int, default=5
        Passes between certificates of the gap.
    sampling : {"permutation", "uniform", "gap"}, default="permutation"
        Order in which examples are visited.
    warm_start : bool, default=False
        Go on from the last `fit`, also at another C; from nothing if the data are others.
    n_jobs : int, optional
        Threads for certificates, for `predict` and, with method "auto", for training. For training any number
        but 1 divides the examples into two parts, whatever the number: the answer is that of two parts.
    verbose : bool or int, default=1
        Show a progress line on a terminal when training takes more than two seconds; 0 for none.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        Labels, sorted.
    coef_ : array of shape (n_labels, n_features)
        W, the weights of nodes' features for each label.
    edge_coef_ : array of shape (n_edge_features, n_labels, n_labels), or (n_edge_features,)
        V, the weights of edges' features: ``edge_coef_[:, j, k]`` for label j at the first end of an edge
        and k at its second, or for labels that agree.
    inference_ : str
        How labellings are found.
    gap_ : float
        Certified bound on how far the objective is from its minimum. On large graphs with strong edges that
        contradict each other, where the search of "messages" does not come to its end, it stays large.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
    n_features_in_, n_edge_features_in_ : int

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
    """

    classes_: np.ndarray[Any, Any]
    coef_: FloatArray
    edge_coef_: FloatArray
    inference_: str
    n_features_in_: int
    n_edge_features_in_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "inference": [StrOptions({"auto", *LABELLINGS})],
        "loss": [StrOptions(set(LOSSES)), "array-like"],
        "rescaling": [StrOptions(set(RESCALINGS))],
        "nonnegative": [dict, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        inference: str = "auto",
        loss: Any = "normalized_hamming",
        rescaling: str = "margin",
        nonnegative: dict[str, Any] | None = None,
        method: str = "auto",
        tol: float = 1e-2,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 1,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.inference = inference
        self.loss = loss
        self.rescaling = rescaling
        self.nonnegative = nonnegative
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.check_every = check_every
        self.sampling = sampling
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @transaction
    def fit(self, X: Any, y: Any, node_weights: Any = None, sample_weight: Any = None) -> Self:
        """Train on graphs.

        Parameters
        ----------
        X : list of tuples (node_features, edges) or (node_features, edges, edge_features)
            Arrays or sparse matrices with one row per node and per edge, and an int array of shape
            (n_edges, 2): the two nodes of each. Without features an edge has a single one, which is 1.
        y : list of arrays of labels
            Strings or ints, one per node; of any shape, read in order.
        node_weights : list of arrays, optional
            How much each node counts in the loss, its share included. Weights of labels are weights of the
            nodes that have them.
        sample_weight : array of shape (n_graphs,), optional
            How often each graph counts, as if it occurred so many times; zero is without it.

        Returns
        -------
        GraphSVC
            The fitted estimator.
        """
        return self._learn(X, y, node_weights, sample_weight)

    @transaction
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, node_weights: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train on these graphs and all those of earlier calls, from where the last call stopped.

        The graphs are kept: the answer is certified for all of them, as that of `fit` is. Only the work is
        saved that the last call has done. The first call chooses the inference for all.

        Parameters
        ----------
        X : list of tuples (node_features, edges) or (node_features, edges, edge_features)
        y : list of arrays of labels
        classes : array-like, optional
            All labels, in the first call; by default those of its ``y``.
        node_weights : list of arrays, optional
        sample_weight : array of shape (n_graphs,), optional

        Returns
        -------
        GraphSVC
            The fitted estimator.
        """
        return self._learn(X, y, node_weights, sample_weight, classes, more=True)

    def _learn(
        self, X: Any, y: Any, node_weights: Any, sample_weight: Any, classes: Any = None, more: bool = False
    ) -> Self:
        (X, y, node_weights), weights = weighed((X, y, node_weights), sample_weight, "GraphSVC")
        seen = self._before(more)
        graphs = encode_graphs(X, owner="GraphSVC") if seen is None else self._known_graphs(X)
        known = (None if classes is None else np.unique(classes)) if seen is None else self.classes_
        labels, known = encode_node_labels(y, graphs, owner="GraphSVC", classes=known)
        counts = _importance(node_weights, graphs)
        check_several(len(known), "GraphSVC")
        check_loss(self.loss, len(known), "GraphSVC")
        examples = appended(seen, Examples((graphs, labels, counts), weights))
        graphs, labels, counts = examples.data
        inference = self._chosen_inference(graphs, len(known)) if seen is None else self.inference_
        problem = Graph.from_encoded(
            graphs, labels, len(known), inference=inference, loss=self.loss, weights=counts
        )
        problem = rescaled(problem, self.rescaling, "GraphSVC")
        signed = self._signed(problem)
        w = self._fit_more(signed, examples) if more else self._fit(signed, examples.weights)
        self._w = w[: sizes(problem).weights].copy()
        self.classes_, self.inference_ = known, inference
        self.coef_, self.edge_coef_ = problem.unpack(self._w)
        self.n_features_in_, self.n_edge_features_in_ = graphs.nodes.shape[1], graphs.edges.shape[1]
        return self

    def _chosen_inference(self, graphs: Graphs, n_labels: int) -> str:
        if self.inference != "auto":
            return self.inference
        if not has_cycles(graphs):
            return "tree"
        return "cut" if n_labels == 2 else "messages"

    def _signed(self, problem: Any) -> Any:
        """The problem, with the signs of its weights if any are imposed."""
        if self.nonnegative is None:
            return problem
        marks = problem.unpack(np.zeros(sizes(problem).weights))
        parts = {"nodes": Marks(marks.nodes, axis=1), "edges": Marks(marks.edges, axis=0)}
        mark_weights(self.nonnegative, parts, owner="GraphSVC")
        return SignConstrained(problem, np.concatenate([np.ravel(part) for part in marks]) > 0.0)

    @snapshot
    def predict(self, X: Any) -> list[np.ndarray[Any, Any]]:
        """Return the labels of the nodes of each graph.

        Parameters
        ----------
        X : list of tuples (node_features, edges) or (node_features, edges, edge_features)

        Returns
        -------
        list of arrays
            One array of labels per graph.
        """
        graphs = self._known_graphs(X)
        problem = Graph.for_prediction(graphs, len(self.classes_), self.inference_)
        outputs = self._decoded(problem, self._w)
        lengths = np.diff(graphs.offsets).tolist()
        begins = np.cumsum([0, *(output_size(problem, i) for i in range(len(lengths)))])
        return [self.classes_[outputs[a : a + m]] for a, m in zip(begins[:-1], lengths, strict=True)]

    def _known_graphs(self, X: Any) -> Graphs:
        """The graphs, if they have as many features as those of `fit`."""
        graphs = encode_graphs(X, owner="GraphSVC")
        check_features(graphs, self.n_features_in_, self.n_edge_features_in_, owner="GraphSVC")
        return graphs

    @snapshot
    def score(self, X: Any, y: Any) -> float:
        """Return the share of nodes whose label is predicted; a label not seen in `fit` counts as wrong.

        Parameters
        ----------
        X : list of tuples (node_features, edges) or (node_features, edges, edge_features)
        y : list of arrays of labels

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        codes, classes = encode_node_labels(y, encode_graphs(X, owner="GraphSVC"), owner="GraphSVC")
        check_kind(classes[0], self.classes_, "GraphSVC")
        return mean_right(classes[codes] == np.concatenate(predicted), None, "GraphSVC")


def _importance(node_weights: Any, graphs: Graphs) -> FloatArray:
    """Return how much each node counts: one if that is not given."""
    if node_weights is None:
        return np.ones(graphs.offsets[-1])
    return encode_node_weights(node_weights, graphs, owner="GraphSVC")
