"""Multilabel classification as a scikit-learn estimator."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_consistent_length

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.estimators._base import Call
from maxmargin.estimators._confidence import MarginEstimator
from maxmargin.estimators._examples import Examples, Parts
from maxmargin.estimators._explaining import Explainer, Reader
from maxmargin.estimators._fields import Fields, choice, ints
from maxmargin.estimators._inspection import (
    NO_FEATURE,
    LabelFeatureInspector,
    TransitionInspector,
    WeightTable,
)
from maxmargin.estimators._label_readers import LabelSetReader
from maxmargin.estimators._label_sets import LabelSetEstimator
from maxmargin.estimators._label_structures import (
    PAIR,
    PAIR_STATES,
    STRUCTURES,
    chosen_structure,
    joined_labels,
)
from maxmargin.estimators._marginals import TableMarginalEstimator
from maxmargin.estimators._parameters import HAMMING, Constraints
from maxmargin.estimators._problems import Problem, rescaled
from maxmargin.estimators._sklearn_private import StrOptions
from maxmargin.estimators._state import snapshot
from maxmargin.estimators._tables import Table, Targets, with_constant
from maxmargin.persistence.checkpoint import CheckpointLike
from maxmargin.problems.label_sets import LabelGraph, LabelSets
from maxmargin.result import Callback

_Data = tuple[Table, IntArray]
_Outputs = NDArray[Any]


class MultilabelSVC(
    Explainer,
    LabelFeatureInspector,
    TransitionInspector,
    MarginEstimator[FloatArray],
    TableMarginalEstimator[_Data, _Outputs],
    LabelSetEstimator[_Data, _Outputs],
):
    r"""Structural SVM for sets of labels, some of which occur together.

    The set of labels y, zeros and ones, scores :math:`\sum_l y_l (\langle w_l, x \rangle + b_l) +
    \sum_{(l, m)} V_{lm}(y_l, y_m)`, where the second sum runs over the pairs of labels that are joined.

    Parameters
    ----------
    %(C)s
    structure : {"auto", "independent", "tree", "full"}, default="auto"
        Which labels are joined: none, those of the tree that explains best how they occur together (Chow and
        Liu), or all. The best set is found exactly, except for "full" with more than 12 labels, where
        ``gap_`` is that of a relaxation. The default is "full" for 3 to 12 labels. It is "tree" for any other
        number of labels, and with slack rescaling or probabilities.
    loss : {"hamming", "normalized_hamming"}, default="hamming"
        The number of wrong labels, or their share.
    %(rescaling)s
        "slack" needs a structure other than "full".
    %(kernels)s
    %(training)s

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels, which are the columns of y: their names if y is a DataFrame with strings as names, else
        the numbers 0, 1, ... If y is a vector, its two classes.
    coef_ : array of shape (n_labels, n_features)
        w, the feature weights of each label.
    intercept_ : array of shape (n_labels,)
        b.
    structure_ : str
        Which labels are joined.
    edges_ : array of shape (n_edges, 2)
        The indices of the labels that are joined.
    edge_coef_ : array of shape (n_edges, 2, 2)
        V: ``edge_coef_[e, 1, 0]`` for the first label of a pair without the second.
    %(support)s
    %(temperature)s
    %(certificate)s
    %(columns)s

    Notes
    -----
    Without pairs, each label has a binary SVM of its own, with the hinge loss: that of scikit-learn's SVC at
    twice this C with "hamming", and at 2 n_labels C with "normalized_hamming". So with "normalized_hamming",
    more labels mean less regularisation, and the right C depends on the number of labels. The weights of a
    pair are regularised a ninth as much as those of labels: a label has all features of X, but a pair has
    only one, which is constant.

    Examples
    --------
    >>> from maxmargin import MultilabelSVC
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    >>> MultilabelSVC(C=10, random_state=0).fit(X, y).predict(X).tolist()
    [[0, 1, 1], [1, 0, 0], [1, 1, 1]]
    """

    _texts: ClassVar[dict[str, str]] = {
        "scale": "1",
        "y": """
            y : array of zeros and ones of shape (n_samples, n_labels), or array of shape (n_samples,)
                The set of labels of each example; or one of two classes, the second of which is the label.
            """,
        "first": "The first call chooses the tree of labels for all.",
        "predict": """
            array of zeros and ones of shape (n_samples, n_labels), or array of shape (n_samples,)
                In the form of y.
            """,
        "margins": """
            array of shape (n_samples, n_labels) or (n_samples,)
                One margin per label. With all pairs, each label takes one more prediction. Margins are exact
                for up to 12 labels, and for more if these predictions find the best sets.
            """,
        "parts": "the labels of examples",
        "marginals": """
            array of shape (n_samples, n_labels), or (n_samples, 2) if y is a vector
                The probability of each label; or of both classes, in the order of ``classes_``. Not for the
                structure "full".
            """,
        "transitions": """
            The kind is "pair", before and after are the two labels, and the feature says which
            of them an example has: "both", "first", "second" or "neither".
            """,
        "score": "Return the share of examples whose labels are all predicted.",
    }
    _summable = "structure='tree' or 'independent', as no other sum over sets of labels is exact"
    _scale = 1.0
    structure: str
    loss: str
    rescaling: str
    intercept_: FloatArray
    structure_: str
    edges_: IntArray
    edge_coef_: FloatArray
    _inference: str

    _fitted: ClassVar[Fields] = {
        "structure_": choice(*sorted(STRUCTURES)),
        "edges_": ints(None, 2),
        "_inference": choice("tree", "subsets", "messages"),
    }
    _parameter_constraints: ClassVar[Constraints] = {
        "structure": [StrOptions(STRUCTURES)],
        "loss": [StrOptions(HAMMING)],
    }

    def __init__(
        self,
        C: float | str = "scale",
        *,
        structure: str = "auto",
        loss: str = "hamming",
        rescaling: str = "margin",
        kernel: str | Callable[..., object] = "linear",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        probability: bool = False,
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
        checkpoint: CheckpointLike | None = None,
        verbose: int = 1,
        random_state: object = None,
    ) -> None:
        self._store(locals())

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y = cast("tuple[Table, Targets]", parts)
        if call.first:
            self._learn_labels(y, call)
        sets = self._sets(y)
        if call.first:
            self.structure_, self._inference = self._chosen_structure()
            self.edges_ = joined_labels(self.structure_, sets, weights)
            self._learn_kernel(X)
        return Examples((X, sets), weights)

    def _chosen_structure(self) -> tuple[str, str]:
        is_slack = self.rescaling == "slack"
        return chosen_structure(self.structure, self._n_labels, is_slack, self.probability, self._owner)

    def _problem(self, examples: Examples[_Data]) -> Problem:
        X, y = examples.data
        rows = with_constant(self._linear_rows(X))
        problem = LabelSets.from_encoded(rows, y, self._label_graph(), loss=self.loss)
        return rescaled(self._with_kernel(problem, X, by_example=True), self.rescaling, self._owner)

    def _label_graph(self) -> LabelGraph:
        return LabelGraph(self._n_labels, self.edges_, PAIR, self._inference)

    def _blank(self) -> Problem:
        if self._is_linear:
            return self._of_table(csr_array((1, self.n_features_in_)))
        return self._of_scores(np.zeros((1, self._support.coefficients.shape[1])))

    def _n_cells(self) -> int:
        return self._n_labels * self._n_columns + len(self.edges_)

    def _check_restored(self) -> None:
        super()._check_restored()
        if not self._is_linear and self._support.coefficients.shape[1] % self._n_labels:
            raise ValueError("labels must have as many coefficients each")

    def _expose(self) -> None:
        nodes, edges = self._linear_parts()
        present = (nodes[1] - nodes[0]).reshape(self._n_labels, -1)
        self._coef, self.intercept_ = present[:, :-1], present[:, -1]
        self.edge_coef_ = PAIR * edges[: len(self.edges_)]

    def _feature_tables(self) -> list[WeightTable]:
        labels, weights = self._label_names(), self.coef_.T
        return [
            WeightTable("example", self._feature_names(), labels, weights),
            WeightTable("intercept", NO_FEATURE, labels, self.intercept_[None]),
        ]

    def _transition_tables(self) -> list[WeightTable]:
        names = self._label_names()
        pairs = [(names[a], names[b]) for a, b in self.edges_.tolist()]
        return [WeightTable("pair", PAIR_STATES, pairs, self.edge_coef_.reshape(-1, 4).T)]

    def _score_columns(self, coefficients: FloatArray) -> int:
        return int(coefficients.shape[1]) // self._n_labels

    def _label_coefficients(self, coefficients: FloatArray) -> FloatArray:
        states = coefficients.reshape(len(coefficients), self._n_labels, -1)
        return (states[:, :, 1] - states[:, :, 0]).T

    @snapshot
    def decision_function(self, X: object) -> FloatArray:
        """Return how much more the best set with a label scores than the best set without it.

        It is positive where `predict` has the label, and its absolute value is that of `predict_margins`.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        array of shape (n_samples, n_labels), or (n_samples,) if y is a vector
        """
        found, margins = self._decoded_with_margins(self._unlabelled(X))
        # A tie has margin zero, but its sign must be that of the prediction.
        signed = np.where(found == 1, np.maximum(margins, np.finfo(np.float64).tiny), -margins)
        return signed if self._is_vector else signed.reshape(-1, self._n_labels)

    def _predict(self, X: object) -> _Outputs:
        found = self._decoded(self._unlabelled(X))
        return self.classes_[found] if self._is_vector else found.reshape(-1, self._n_labels)

    def _margins(self, X: object) -> FloatArray:
        found = self._decoded_with_margins(self._unlabelled(X)).margins
        return found if self._is_vector else found.reshape(-1, self._n_labels)

    def _reader(self, x: object) -> tuple[Problem, Reader]:
        self._check_linear("explain")
        table, classes = self._one_row(x), self.classes_ if self._is_vector else None
        weights = self._coef, self.intercept_, self.edges_, self.edge_coef_
        reader = LabelSetReader(self._row_reader(table), self._label_names(), classes, *weights, PAIR_STATES)
        return self._of_table(table), reader

    def _unlabelled(self, X: object) -> Problem:
        """Return the problem of predicting the labels of examples."""
        return self._of_table(self._known_table(X))

    def _of_table(self, table: Table) -> Problem:
        """Return the problem of predicting the labels of checked rows."""
        if not self._is_linear:
            return self._of_scores(self._row_scores(table))
        return LabelSets.for_prediction(with_constant(table), self._label_graph())

    def _of_scores(self, scores: FloatArray) -> Problem:
        """Return the problem of rows with a kernel."""
        return LabelSets.for_scores(scores, self._label_graph())

    def _unlabelled_problem(self, X: object) -> Problem:
        return self._unlabelled(X)

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        problem, sets = self._unlabelled(X), self._sets(self._known_targets(y))
        check_consistent_length(X, sets)
        return problem, sets.ravel()

    def _states(self, examples: Examples[_Data]) -> IntArray:
        return examples.data[1].ravel()

    def _formed(self, values: FloatArray, shapes: IntArray) -> FloatArray:
        return values.reshape(-1, 2) if self._is_vector else values[1::2].reshape(-1, self._n_labels)
