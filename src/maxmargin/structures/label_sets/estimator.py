"""Multilabel classification as a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length

from maxmargin.encoding.labels import Labels, check_several
from maxmargin.estimators.confidence import MarginEstimator, TableMarginalEstimator
from maxmargin.estimators.estimator import Call, Output
from maxmargin.estimators.examples import Data, Examples, Parts, check_kind
from maxmargin.estimators.explanation import Contribution, Explainer, Part, Reader, RowReader, single
from maxmargin.estimators.fields import FLAG, NAMES, Fields, choice, ints, scalar
from maxmargin.estimators.inspection import (
    NO_FEATURE,
    LabelFeatureInspector,
    TransitionInspector,
    WeightTable,
)
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.problems import Problem, rescaled
from maxmargin.estimators.state import StrOptions, snapshot, transaction
from maxmargin.estimators.tables import Table, TableEstimator, Targets, with_constant
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray, freeze
from maxmargin.runtime.wording import quoted
from maxmargin.solving.result import Callback
from maxmargin.structures.graphs.loopy import MOST_NODES
from maxmargin.structures.label_sets.inference import chow_liu
from maxmargin.structures.label_sets.model import LabelGraph, LabelSets

# Which labels of a set are joined, and how the best set is found.

STRUCTURES = {"auto", "independent", "tree", "full"}
# The feature of a pair of labels. A pair has only this feature, while a label has all those of X, so with a
# value of one the weights of pairs would be regularised too much. On the data of benchmarks/multilabel.py,
# three is best or nearly so, and ten needs three times as many passes.
PAIR = 3.0
# The names of the entries of a pair's table, row by row.
PAIR_STATES = ("neither", "second", "first", "both")


def chosen_structure(
    structure: str, n_labels: int, is_slack: bool, probability: bool, owner: str
) -> tuple[str, str]:
    """Return which labels are joined, and how the best set is found; raise if there is no oracle for it."""
    is_small = n_labels <= MOST_NODES
    if structure == "auto":
        # Up to two labels, a tree has all pairs.
        has_oracle = n_labels > 2 and is_small and not is_slack and not probability
        structure = "full" if has_oracle else "tree"
    if is_slack and structure == "full":
        raise ValueError(
            f"{owner}: structure must be 'independent' or 'tree' where rescaling is 'slack', got "
            "'full'; use one of these, or rescaling='margin'."
        )
    if structure != "full":
        return structure, "tree"
    return structure, "subsets" if is_small else "messages"


def joined_labels(structure: str, y: IntArray, weights: FloatArray | None) -> IntArray:
    """Return the pairs of labels that are joined."""
    if structure == "tree":
        return chow_liu(y, weights)
    pairs = combinations(range(y.shape[1]), 2) if structure == "full" else ()
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


# Sets of labels: the names of columns, and a check that y is not a list of labels.


def column_names(y: object, owner: str) -> Labels | None:
    """Return the names of the columns of a DataFrame if all are strings; raise if two are the same."""
    columns = list(getattr(y, "columns", ()))
    repeated = next((name for k, name in enumerate(columns) if name in columns[:k]), None)
    if repeated is not None:
        raise ValueError(
            f"{owner}: two columns of y are called {quoted(repeated)}; give each label one column."
        )
    return np.array(columns) if columns and all(isinstance(name, str) for name in columns) else None


def check_no_lists(y: object, owner: str) -> None:
    """Raise if y lists the labels of each example instead of being an indicator matrix."""
    kind = getattr(y, "dtype", None)
    is_list = isinstance(y, list | tuple) or (kind is not None and kind == np.dtype(object))
    if not is_list or getattr(y, "ndim", 1) != 1:
        return
    items = list(cast("Iterable[object]", y))
    lists = [item for item in items if isinstance(item, list | tuple)]
    has_names = any(isinstance(label, str) for item in lists for label in item)
    is_ragged = len({len(item) for item in lists}) > 1
    if has_names or is_ragged or any(isinstance(item, Set) for item in items):
        raise ValueError(
            f"{owner}: y must be zeros and ones, one column per label, got labels such as "
            f"{quoted(items[0])}; use MultiLabelBinarizer().fit_transform(y)."
        )


# Sets of labels as y: a table of zeros and ones with a column per label, or a vector of two classes.


class LabelSetEstimator(TableEstimator[Data, Output]):
    """Base of the classifiers of sets of labels; if y is a vector, the second of its classes is the label."""

    _is_vector: bool
    _n_labels: int
    _names: Labels | None

    _fitted: ClassVar[Fields] = {"classes_": NAMES, "_is_vector": FLAG, "_n_labels": scalar(int, 1)}

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

    def _validate(self, parts: Parts, call: Call) -> Parts:
        if call.first:
            self._names = column_names(parts[1], self._owner)
        else:
            self._check_columns(parts[1])
        check_no_lists(parts[1], self._owner)
        return super()._validate(parts, call)

    def _check_columns(self, y: object) -> None:
        """Raise if the columns of y have names, but not those of `fit` in their order."""
        names = column_names(y, self._owner)
        has_names = not self._is_vector and self.classes_.dtype.kind in "OUT"
        if names is not None and has_names and names.tolist() != self.classes_.tolist():
            raise ValueError(
                f"{self._owner}: y has the columns {quoted(names.tolist())}, expected "
                f"{quoted(self.classes_.tolist())}, as in the first call; give them in this order."
            )

    def _known_targets(self, y: object) -> Targets:
        self._check_columns(y)
        return self._targets(y)

    def _targets(self, y: object) -> Targets:
        check_no_lists(y, self._owner)
        targets: Targets = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if targets.ndim == 1:
            check_classification_targets(targets)
            return targets
        known = np.isin(targets, (0, 1))
        if not known.all():
            raise ValueError(
                f"{self._owner}: y must be zeros and ones, one column per label, got "
                f"{targets[~known].tolist()[0]!r}; use MultiLabelBinarizer for sets of labels."
            )
        return targets

    def _learn_labels(self, y: Targets, call: Call) -> None:
        """Learn the labels: the columns of y or, if y is a vector of two classes, the second of them."""
        self._is_vector = y.ndim == 1
        if not self._is_vector:
            self._n_labels = y.shape[1]
            self.classes_ = np.arange(y.shape[1]) if self._names is None else self._names
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
        sets = self._codes(y)[:, None] if self._is_vector else np.array(y, dtype=np.int64, order="C")
        return freeze(sets)

    def _check_restored(self) -> None:
        super()._check_restored()
        n_classes = len(self.classes_)
        if (n_classes, self._n_labels) != ((2, 1) if self._is_vector else (n_classes, n_classes)):
            raise ValueError("labels must have a class each, or two if y is a vector")

    def _label_names(self) -> list[object]:
        """Return the names of the labels; a vector has one label, the second of its two classes."""
        return self.classes_.tolist()[-self._n_labels :]

    def _is_right(self, predicted: Targets, truth: Targets) -> NDArray[np.bool_]:
        if self._is_vector and truth.ndim == 1:
            check_kind(truth[0], self.classes_, self._owner)
            return np.asarray(predicted == truth)
        return np.all(predicted == self._sets(truth), axis=1)


class LabelSetReader(NamedTuple):
    """Reads a set of labels.

    Attributes
    ----------
    example : RowReader
    labels : list
    classes : array or None
        Both classes, if outputs are one of them.
    coef, intercept, edges, edge_coef : arrays
        The weights, as `MultilabelSVC` has them.
    states : tuple of str
        The names of the entries of a pair's table.
    """

    example: RowReader
    labels: list[object]
    classes: Labels | None
    coef: FloatArray
    intercept: FloatArray
    edges: IntArray
    edge_coef: FloatArray
    states: tuple[str, ...]

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(k, label) for k, label in enumerate(self.labels)]

    def state(self, codes: IntArray, part: Part) -> object:
        return int(codes[part.number])

    def output(self, codes: IntArray) -> object:
        return codes if self.classes is None else self.classes[codes[0]].item()

    def contributions(self, codes: IntArray) -> list[Contribution]:
        found: list[Contribution] = []
        for k in np.flatnonzero(codes).tolist():
            label = self.labels[k]
            found += self.example.contributions(0, label, label, self.coef[k])
            found += single(label, "intercept", None, label, self.intercept[k])
        return [*found, *self._pairs(codes)]

    def _pairs(self, codes: IntArray) -> Iterator[Contribution]:
        """Yield the contributions of pairs of labels that are joined."""
        for (a, b), table in zip(self.edges.tolist(), self.edge_coef, strict=True):
            pair, state = (self.labels[a], self.labels[b]), self.states[2 * codes[a] + codes[b]]
            yield from single(pair, "pair", state, pair, table[codes[a], codes[b]])


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
