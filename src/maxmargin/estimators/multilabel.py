"""Multilabel classification as a scikit-learn estimator."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted

from maxmargin.arrays import FloatArray, IntArray, frozen
from maxmargin.encoding.graphs import Graphs
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._base import Call
from maxmargin.estimators._examples import Examples, Parts
from maxmargin.estimators._parameters import Constraints
from maxmargin.estimators._problems import Problem, check_several, rescaled
from maxmargin.estimators._scores import check_kind
from maxmargin.estimators._sklearn_private import StrOptions
from maxmargin.estimators._state import transaction
from maxmargin.estimators._tables import X_TEXT, Table, TableEstimator, Targets, with_constant
from maxmargin.inference.chow_liu import chow_liu
from maxmargin.problems import Graph
from maxmargin.result import Callback

_INFERENCE = {"independent": "tree", "tree": "tree", "full": "messages"}
_Data = tuple[Table, IntArray]
_Outputs = NDArray[Any]


class MultilabelSVC(TableEstimator[_Data, _Outputs]):
    r"""Structural SVM for sets of labels, some of which occur together.

    The set of labels y, zeros and ones, scores :math:`\sum_l y_l (\langle w_l, x \rangle + b_l) +
    \sum_{(l, m)} V_{lm}(y_l, y_m)`, where the second sum runs over the pairs of labels that are joined. The
    loss is the share of labels that are wrong.

    Parameters
    ----------
    %(C)s
    structure : {"independent", "tree", "full"}, default="tree"
        Which labels are joined: none, those of the tree that explains best how they occur together (Chow and
        Liu), or all. The best set is found exactly except for the last, where ``gap_`` is that of a
        relaxation.
    %(rescaling)s
        "slack" needs a structure other than "full".
    %(kernels)s
    %(training)s

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The numbers of the labels, 0, 1, ...: the columns of y. If y is a vector, its two classes.
    coef_ : array of shape (n_labels, n_features)
        w, by how much features speak for each label.
    intercept_ : array of shape (n_labels,)
        b.
    edges_ : array of shape (n_edges, 2)
        The labels that are joined.
    edge_coef_ : array of shape (n_edges, 2, 2)
        V: ``edge_coef_[e, 1, 0]`` for the first label of a pair without the second.
    support_, dual_coef_, n_support_ : arrays of shapes (n_support,), (n_labels, n_support) and (n_labels,)
        Numbers of the training examples with nonzero coefficients, these coefficients, and how many there are
        of each; only with a kernel other than "linear".
    %(certificate)s
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Names of the columns of X; only if all of them are strings.

    Examples
    --------
    >>> from maxmargin import MultilabelSVC
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    >>> MultilabelSVC(C=10, random_state=0).fit(X, y).predict(X).tolist()
    [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    """

    _texts: ClassVar[dict[str, str]] = {
        "rows": "examples",
        "examples": "examples",
        "X": X_TEXT,
        "y": """
            y : array of zeros and ones of shape (n_samples, n_labels), or array of shape (n_samples,)
                The set of labels of each example; or one of two classes, the second of which is the label.
            """,
        "first": "The first call chooses the tree of labels for all.",
        "predict": """
            array of zeros and ones of shape (n_samples, n_labels), or array of shape (n_samples,)
                In the form of y.
            """,
        "score": "Return the share of examples whose labels are all predicted.",
    }
    structure: str
    rescaling: str
    _coef: FloatArray
    intercept_: FloatArray
    edges_: IntArray
    edge_coef_: FloatArray
    _inference: str
    _is_vector: bool
    _n_labels: int

    _parameter_constraints: ClassVar[Constraints] = {"structure": [StrOptions(set(_INFERENCE))]}

    def __init__(
        self,
        C: float = 1.0,
        *,
        structure: str = "tree",
        rescaling: str = "margin",
        kernel: str | Callable[..., object] = "linear",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        method: object = "auto",
        tol: float = 1e-2,
        max_iter: int = 1000,
        time_limit: float | None = None,
        check_every: int = 5,
        sampling: str = "permutation",
        warm_start: bool = False,
        n_jobs: int | None = None,
        cache_size: float = 200.0,
        callbacks: Iterable[Callback] | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, sample_weight: object = None, classes: object = None
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y), sample_weight, more=True, classes=classes)

    def _targets(self, y: object) -> Targets:
        targets: Targets = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if targets.ndim == 1:
            check_classification_targets(targets)
            return targets
        known = np.isin(targets, (0, 1))
        if not known.all():
            raise ValueError(
                f"{self._owner}: y must be zeros and ones, one column per label, got "
                f"{targets[~known][0]!r}; use MultiLabelBinarizer for lists of labels."
            )
        return targets

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y = cast("tuple[Table, Targets]", parts)
        if call.first:
            self._check_structure()
            self._learn_labels(y, call)
        sets = self._sets(y)
        if call.first:
            self._inference, self.edges_ = _INFERENCE[self.structure], _joined(self.structure, sets, weights)
            self._learn_kernel(X)
        return Examples((X, sets), weights)

    def _learn_labels(self, y: Targets, call: Call) -> None:
        """Set what the labels are: the columns of y, or whether a vector y has the second of two classes."""
        self._is_vector = y.ndim == 1
        if not self._is_vector:
            self._n_labels, self.classes_ = y.shape[1], np.arange(y.shape[1])
            return
        known = self._known_classes(call)
        self._n_labels, self.classes_ = 1, cast("Labels", np.unique(y)) if known is None else known
        check_several(len(self.classes_), self._owner)
        if len(self.classes_) > 2:
            raise ValueError(
                f"{self._owner}: Only binary classification is supported where y is a vector, got "
                f"{len(self.classes_)} classes; give one column of zeros and ones per label, or use "
                "MulticlassSVC."
            )

    def _sets(self, y: Targets) -> IntArray:
        """Return y as zeros and ones, one column for each label of `fit`."""
        if self._is_vector != (y.ndim == 1) or (y.ndim == 2 and y.shape[1] != self._n_labels):
            expected = "none, a vector" if self._is_vector else f"{self._n_labels}, one for each label"
            raise ValueError(
                f"{self._owner}: y has {'no' if y.ndim == 1 else y.shape[1]} columns, expected {expected}, "
                f"as {self._owner} was fitted with."
            )
        return self._codes(y)[:, None] if self._is_vector else np.array(y, dtype=np.int64, order="C")

    def _check_structure(self) -> None:
        """Raise unless there is an oracle for the structure with this rescaling."""
        if self.rescaling == "slack" and self.structure == "full":
            raise ValueError(
                f"{self._owner}: structure must be 'independent' or 'tree' where rescaling is 'slack', got "
                "'full'; use one of these, or rescaling='margin'."
            )

    def _problem(self, examples: Examples[_Data]) -> Problem:
        X, y = examples.data
        graphs = label_graphs(self._linear_rows(X), self._n_labels, self.edges_)
        problem = Graph.from_encoded(graphs, y.ravel(), 2, inference=self._inference)
        return rescaled(self._with_kernel(problem, X, by_example=True), self.rescaling, self._owner)

    def _keep(self, problem: Problem, examples: Examples[_Data], w: FloatArray) -> None:
        parts = self._keep_support(problem, examples.data[0], w)
        nodes, edges = parts[0], parts[1]
        present = (nodes[1] - nodes[0]).reshape(self._n_labels, -1)
        self._coef, self.intercept_ = present[:, :-1], present[:, -1]
        self.edge_coef_ = edges[: len(self.edges_)]

    @property
    def coef_(self) -> FloatArray:
        """By how much features speak for each label."""
        check_is_fitted(self)
        self._check_linear("coef_")
        return self._coef

    def _score_columns(self, coefficients: FloatArray) -> int:
        return int(coefficients.shape[1]) // self._n_labels

    def _label_coefficients(self, coefficients: FloatArray) -> FloatArray:
        states = coefficients.reshape(len(coefficients), self._n_labels, -1)
        return (states[:, :, 1] - states[:, :, 0]).T

    def _predict(self, X: object) -> _Outputs:
        table = self._known_table(X)
        graphs = label_graphs(self._linear_rows(table), self._n_labels, self.edges_)
        if not self._is_linear:
            graphs = self._scored(graphs, table)
        found = self._decoded(Graph.for_prediction(graphs, 2, self._inference))
        return self.classes_[found] if self._is_vector else found.reshape(table.shape[0], -1)

    def _scored(self, graphs: Graphs, table: Table) -> Graphs:
        """Return the graphs of labels with the scores of their nodes by the kernel as first features."""
        scores = self._row_scores(table)
        nodes = scores.reshape(table.shape[0] * self._n_labels, -1)
        return graphs._replace(nodes=frozen(csr_array(scipy.sparse.hstack([nodes, graphs.nodes]))))

    def _is_right(self, predicted: Targets, truth: Targets) -> NDArray[np.bool_]:
        if self._is_vector and truth.ndim == 1:
            check_kind(truth[0], self.classes_, self._owner)
            return np.asarray(predicted == truth)
        return np.all(predicted == self._sets(truth), axis=1)


def _joined(structure: str, y: IntArray, weights: FloatArray | None) -> IntArray:
    """Return the pairs of labels that are joined."""
    if structure == "tree":
        return chow_liu(y, weights)
    pairs = combinations(range(y.shape[1]), 2) if structure == "full" else ()
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def label_graphs(table: Table, n_labels: int, edges: IntArray) -> Graphs:
    """Return one graph per row: a node per label, with the row's features and a one in a place of its own."""
    n, n_edges = table.shape[0], len(edges)
    rows = with_constant(scipy.sparse.csr_array(table))
    by_label = scipy.sparse.kron(scipy.sparse.eye_array(n_labels), rows, format="csr")
    nodes = by_label[(np.arange(n)[:, None] + n * np.arange(n_labels)).ravel()]
    features = scipy.sparse.csr_array(np.eye(max(n_edges, 1))[np.tile(np.arange(n_edges), n)])
    ends = np.tile(edges, (n, 1))
    return Graphs(frozen(nodes), n_labels * np.arange(n + 1), features, n_edges * np.arange(n + 1), ends)
