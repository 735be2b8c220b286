"""Multilabel classification as a scikit-learn estimator."""

from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from maxmargin.arrays import FloatArray, IntArray, frozen
from maxmargin.encoding.graphs import Graphs
from maxmargin.encoding.matrices import sound
from maxmargin.estimators._base import RESCALINGS, StructuralSVC, rescaled
from maxmargin.estimators._examples import Examples, appended, weighed
from maxmargin.estimators._scores import mean_right
from maxmargin.estimators._state import snapshot, transaction
from maxmargin.inference.chow_liu import chow_liu
from maxmargin.problems import Graph

_INFERENCE = {"independent": "tree", "tree": "tree", "full": "messages"}


class MultilabelSVC(StructuralSVC):
    r"""Structural SVM for sets of labels, of which some go together.

    The set of labels y, zeros and ones, scores :math:`\sum_l y_l (\langle w_l, x \rangle + b_l) +
    \sum_{(l, m)} V_{lm}(y_l, y_m)`, where the second sum runs over the pairs of labels that are joined. The
    loss is the share of labels that are wrong.

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, > 0; lam = 1 / (C n).
    structure : {"independent", "tree", "full"}, default="tree"
        Which labels are joined: none, those of the tree that tells most of how they occur together (Chow and
        Liu), or all. The best set is found exactly but for the last, where ``gap_`` is that of a relaxation.
    rescaling : {"margin", "slack"}, default="margin"
        What a loss stands for: the margin by which the truth must be ahead, or the price of a margin below
        one, ``loss * (1 + score - score of the truth)``; the latter unless all labels are joined.
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
    coef_ : array of shape (n_labels, n_features)
        w, by how much features speak for each label.
    intercept_ : array of shape (n_labels,)
        b.
    edges_ : array of shape (n_edges, 2)
        The labels that are joined.
    edge_coef_ : array of shape (n_edges, 2, 2)
        V: ``edge_coef_[e, 1, 0]`` for the first label of a pair without the second.
    gap_ : float
        Certified bound on how far the objective is from its minimum; loose where a relaxation is.
    history_ : History
        All certificates.
    n_iter_ : int
        Passes over the data.
    n_features_in_ : int

    Examples
    --------
    >>> from maxmargin import MultilabelSVC
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    >>> MultilabelSVC(C=10, random_state=0).fit(X, y).predict(X).tolist()
    [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    """

    coef_: FloatArray
    intercept_: FloatArray
    edges_: IntArray
    edge_coef_: FloatArray
    n_features_in_: int
    _inference: str

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StructuralSVC._parameter_constraints,
        "structure": [StrOptions(set(_INFERENCE))],
        "rescaling": [StrOptions(set(RESCALINGS))],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        structure: str = "tree",
        rescaling: str = "margin",
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
        self.structure = structure
        self.rescaling = rescaling
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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : array of zeros and ones of shape (n, n_labels)
        sample_weight : array of shape (n,), optional
            How often each row counts, as if it occurred so many times, also for the tree; zero is without it.

        Returns
        -------
        MultilabelSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight)

    @transaction
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on these rows and all those of earlier calls, from where the last call stopped.

        The rows are kept: the answer is certified for all of them, as that of `fit` is. Only the work is
        saved that the last call has done. The first call chooses the tree of labels for all.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : array of zeros and ones of shape (n, n_labels)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        MultilabelSVC
            The fitted estimator.
        """
        return self._learn(X, y, sample_weight, more=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, more: bool = False) -> Self:
        self._check_structure()
        seen = self._before(more)
        X = sound(X, "X")
        # What `partial_fit` keeps may not change with the caller's array.
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=seen is None, copy=more)
        y = _checked_sets(X, y, None if seen is None else len(self.intercept_))
        (X, y), weights = weighed((X, y), sample_weight, "MultilabelSVC")
        n_labels = y.shape[1]
        edges = _joined(self.structure, y, weights) if seen is None else self.edges_
        inference = _INFERENCE[self.structure] if seen is None else self._inference
        examples = appended(seen, Examples((X, y), weights))
        X, y = examples.data
        problem = Graph.from_encoded(label_graphs(X, n_labels, edges), y.ravel(), 2, inference=inference)
        problem = rescaled(problem, self.rescaling, "MultilabelSVC")
        self._w = self._fit_more(problem, examples) if more else self._fit(problem, examples.weights)
        found = problem.unpack(self._w)
        ones = (found.nodes[1] - found.nodes[0]).reshape(n_labels, -1)
        self.coef_, self.intercept_ = ones[:, :-1], ones[:, -1]
        self.edges_, self.edge_coef_ = edges, found.edges[: len(edges)]
        self._inference = inference
        return self

    def _check_structure(self) -> None:
        """Raise unless sets of labels can be found in the way in which losses are used."""
        if self.rescaling == "slack" and self.structure == "full":
            raise ValueError(
                "MultilabelSVC: structure must be 'independent' or 'tree' where rescaling is 'slack', got "
                "'full'; use one of these, or rescaling='margin'."
            )

    @snapshot
    def predict(self, X: Any) -> IntArray:
        """Return the set of labels of best score for each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)

        Returns
        -------
        array of zeros and ones of shape (n, n_labels)
        """
        X = validate_data(self, sound(X, "X"), accept_sparse="csr", dtype=np.float64, reset=False)
        graphs = label_graphs(X, len(self.intercept_), self.edges_)
        problem = Graph.for_prediction(graphs, 2, self._inference)
        return self._decoded(problem, self._w).reshape(X.shape[0], -1)

    @snapshot
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels are all predicted, as scikit-learn's classifiers do.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : array of zeros and ones of shape (n, n_labels)
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        float
        """
        predicted = self.predict(X)
        truth = _checked_sets(predicted, y, predicted.shape[1])
        return mean_right((predicted == truth).all(axis=1), sample_weight, "MultilabelSVC")


def _checked_sets(X: Any, y: Any, n_labels: int | None) -> IntArray:
    """Return the labels of all rows, if they are zeros and ones, as many rows as X has."""
    y = check_array(y, dtype=None, input_name="y")
    check_consistent_length(X, y)
    if not np.isin(y, (0, 1)).all():
        bad = y[~np.isin(y, (0, 1))][0]
        raise ValueError(
            f"MultilabelSVC: y must be zeros and ones, one column per label, got {bad!r}; use "
            "MultiLabelBinarizer for lists of labels."
        )
    if n_labels not in (None, y.shape[1]):
        raise ValueError(
            f"MultilabelSVC: y has {y.shape[1]} columns, expected {n_labels}, one for each label that "
            "MultilabelSVC was fitted with."
        )
    return np.array(y, dtype=np.int64, order="C")


def _joined(structure: str, y: IntArray, weights: FloatArray | None) -> IntArray:
    """Return the pairs of labels that are joined."""
    if structure == "tree":
        return chow_liu(y, weights)
    pairs = combinations(range(y.shape[1]), 2) if structure == "full" else ()
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def label_graphs(X: Any, n_labels: int, edges: IntArray) -> Graphs:
    """Return one graph per row: a node per label, with the row's features and a one in a place of its own."""
    n, n_edges = X.shape[0], len(edges)
    rows = scipy.sparse.hstack([scipy.sparse.csr_array(X), np.ones((n, 1))], format="csr")
    by_label = scipy.sparse.kron(scipy.sparse.eye_array(n_labels), rows, format="csr")
    nodes = by_label[(np.arange(n)[:, None] + n * np.arange(n_labels)).ravel()]
    features = scipy.sparse.csr_array(np.eye(max(n_edges, 1))[np.tile(np.arange(n_edges), n)])
    ends = np.tile(edges, (n, 1))
    return Graphs(frozen(nodes), n_labels * np.arange(n + 1), features, n_edges * np.arange(n + 1), ends)
