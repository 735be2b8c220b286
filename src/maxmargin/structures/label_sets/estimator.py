"""Multilabel classification as a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_consistent_length

from maxmargin.encoding.labels import Labels, check_several
from maxmargin.estimators import confidence, explanation, inspection, kernels, tables
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import Examples, Lesson, Parts, Tally, check_kind, lesson_of, tally
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, single
from maxmargin.estimators.inspection import NO_FEATURE, WeightTable, dense
from maxmargin.estimators.kernels import is_linear, linear_rows, n_columns, wrapped
from maxmargin.estimators.parameters import HAMMING, Constraints
from maxmargin.estimators.state import StrOptions, snapshot, transaction
from maxmargin.estimators.structure import (
    FLAG,
    NAMES,
    Call,
    Cluster,
    Layout,
    Problem,
    Question,
    Structure,
    choice,
    in_each_storage,
    ints,
    scalar,
)
from maxmargin.estimators.tables import Table, Targets, with_constant
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.runtime.arrays import FloatArray, IntArray, freeze
from maxmargin.runtime.wording import caller
from maxmargin.solving.result import Callback
from maxmargin.structures.label_sets.model import (
    LabelGraph,
    LabelSets,
    check_column_names,
    check_no_lists,
    check_sets,
    chosen_structure,
    column_names,
    joined_labels,
)

STRUCTURES = {"auto", "independent", "tree", "full"}

# The only feature of a pair of labels: with a value of one, its weights would be regularised too much. On the
# data of benchmarks/multilabel.py, three is best or nearly so, and ten needs three times as many passes.
PAIR = 3.0
# The names of the entries of a pair's table, row by row.
PAIR_STATES = ("neither", "second", "first", "both")


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
    """

    example: RowReader
    labels: list[object]
    classes: Labels | None
    coef: FloatArray
    intercept: FloatArray
    edges: IntArray
    edge_coef: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(k, label) for k, label in enumerate(self.labels)]

    def state(self, codes: IntArray, part: Part) -> object:
        return int(codes[part.number])

    def output(self, codes: IntArray) -> object:
        return codes if self.classes is None else self.classes.tolist()[codes[0]]

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
            pair, state = (self.labels[a], self.labels[b]), PAIR_STATES[2 * codes[a] + codes[b]]
            yield from single(pair, "pair", state, pair, table[codes[a], codes[b]])


_Data = tuple[Table, IntArray]
_Outputs = NDArray[Any]


def _lesson(model: "MultilabelSVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    _, y = cast("tuple[Table, IntArray]", parts)
    if y.ndim == 1:
        raise ValueError("y must have a column for each label on a cluster, got a vector.")
    examples = model._structure.encode(model, parts, weights, Call(first=True, more=False, warm=False))
    if model.structure_ == "tree" and y.shape[1] > 2:
        raise ValueError(
            f"structure must be 'independent' or 'full' for {y.shape[1]} labels on a cluster, got 'tree'."
        )
    return lesson_of(examples, model.classes_, scaled=isinstance(model.C, str))


def _check_labels(model: "MultilabelSVC") -> None:
    """Raise ValueError unless the attributes that a file had are those of one model."""
    n_classes = len(model.classes_)
    if (n_classes, model._n_labels) != ((2, 1) if model._is_vector else (n_classes, n_classes)):
        raise ValueError("labels must have a class each, or two if y is a vector")
    if not is_linear(model) and model._support.coefficients.shape[1] % model._n_labels:
        raise ValueError("labels must have as many coefficients each")


class LabelledRows(Structure["MultilabelSVC", _Data, _Outputs, FloatArray]):
    """Sets of labels of the rows of a table; if y is a vector, the second of its classes is the label."""

    in_lists = False
    scores_whole = True
    summable = "structure='tree' or 'independent', as no other sum over sets of labels is exact"
    cluster = Cluster(_lesson)
    trials = in_each_storage(lambda X, labels: (X, np.column_stack([labels == 0, labels == 1]).astype(int)))
    fields: ClassVar = {
        **tables.FIELDS,
        "classes_": NAMES,
        "_is_vector": FLAG,
        "_n_labels": scalar(int, 1).checked(_check_labels),
        "structure_": choice(*sorted(STRUCTURES)),
        "edges_": ints(None, 2),
        "_inference": choice("tree", "subsets", "messages"),
    }

    def validate(self, model: "MultilabelSVC", parts: Parts, call: Call) -> Parts:
        if call.first:
            model._names = column_names(parts[1])
        else:
            _check_columns(model, parts[1])
        check_no_lists(parts[1])
        return tables.validated(model, parts, call, lambda y: _targets(model, y))

    def encode(
        self, model: "MultilabelSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[_Data]:
        X, y = cast("tuple[Table, Targets]", parts)
        if call.first:
            _learn_labels(model, y, call)
        sets = _sets(model, y)
        if call.first:
            model.structure_, model._inference = chosen_structure(
                model.structure, model._n_labels, model.rescaling == "slack", model.probability
            )
            model.edges_ = joined_labels(model.structure_, sets, weights)
            kernels.learn_kernel(model, X)
        return Examples((X, sets), weights)

    def problem(self, model: "MultilabelSVC", examples: Examples[_Data]) -> Problem:
        X, y = examples.data
        rows = with_constant(linear_rows(model, X))
        problem = LabelSets.from_encoded(rows, y, _label_graph(model), loss=model.loss)
        return wrapped(model, problem, X, model.rescaling, by_example=True)

    def ask(self, model: "MultilabelSVC", X: object) -> Question[_Outputs, FloatArray]:
        table, n_labels = tables.known_table(model, X), model._n_labels

        def states(y: object) -> IntArray:
            sets = _sets(model, self.known_targets(model, y))
            check_consistent_length(X, sets)
            return sets.ravel()

        def shaped(values: _Outputs) -> _Outputs:
            return values if model._is_vector else values.reshape(-1, n_labels)

        def marginals(values: FloatArray, shapes: IntArray) -> FloatArray:
            return values.reshape(-1, 2) if model._is_vector else values[1::2].reshape(-1, n_labels)

        def outputs(codes: IntArray) -> _Outputs:
            return model.classes_[codes] if model._is_vector else shaped(codes)

        def score(codes: IntArray, y: object) -> Tally:
            predicted, truth = outputs(codes), self.known_targets(model, y)
            check_consistent_length(predicted, truth)
            if model._is_vector and truth.ndim == 1:
                check_kind(truth[0], model.classes_)
                right = np.asarray(predicted == truth)
            else:
                right = np.all(predicted == _sets(model, truth), axis=1)
            return tally(right, np.arange(len(right) + 1))

        return Question(
            _of_table(model, table),
            outputs,
            score,
            margins=lambda codes, margins: shaped(margins),
            states=states,
            marginals=marginals,
        )

    def reader(self, model: "MultilabelSVC", x: object) -> tuple[Problem, Reader]:
        kernels.check_linear(model, "explain")
        table, rows = tables.one_row(model, x)
        classes = model.classes_ if model._is_vector else None
        weights = model._coef, model.intercept_, model.edges_, model.edge_coef_
        reader = LabelSetReader(rows, _label_names(model), classes, *weights)
        return _of_table(model, table), reader

    def layout(self, model: "MultilabelSVC") -> Layout:
        def blank() -> object:
            if is_linear(model):
                return _of_table(model, csr_array((1, model.n_features_in_))).map
            scores = np.zeros((1, model._support.coefficients.shape[1]))
            return LabelSets.for_scores(scores, _label_graph(model)).map

        return Layout(model._n_labels * n_columns(model) + len(model.edges_), blank)

    def expose(self, model: "MultilabelSVC") -> None:
        nodes, edges = kernels.linear_parts(model)
        present = (nodes[1] - nodes[0]).reshape(model._n_labels, -1)
        model._coef, model.intercept_ = present[:, :-1], present[:, -1]
        model.edge_coef_ = PAIR * edges[: len(model.edges_)]

    def features(self, model: "MultilabelSVC") -> list[WeightTable]:
        labels, weights = _label_names(model), dense(model.coef_).T
        return [
            WeightTable("example", tables.feature_names(model), labels, weights),
            WeightTable("intercept", NO_FEATURE, labels, model.intercept_[None]),
        ]

    def transitions(self, model: "MultilabelSVC") -> list[WeightTable]:
        names = _label_names(model)
        pairs = [(names[a], names[b]) for a, b in model.edges_.tolist()]
        return [WeightTable("pair", PAIR_STATES, pairs, model.edge_coef_.reshape(-1, 4).T)]

    def known_targets(self, model: Any, y: object) -> Targets:
        """Return the true sets checked, if their columns are those of `fit`."""
        _check_columns(model, y)
        return _targets(model, y)


def _check_columns(model: "MultilabelSVC", y: object) -> None:
    """Raise if the columns of y have names, but not those of `fit` in their order."""
    if not model._is_vector and model.classes_.dtype.kind in "OUT":
        check_column_names(y, model.classes_)


def _targets(model: "MultilabelSVC", y: object) -> Targets:
    check_no_lists(y)
    targets: Targets = check_array(y, ensure_2d=False, dtype=None, input_name="y")
    if targets.ndim == 1:
        tables.check_classes(targets)
        return targets
    check_sets(targets)
    return targets


def _learn_labels(model: "MultilabelSVC", y: Targets, call: Call) -> None:
    """Learn the labels: the columns of y or, if y is a vector of two classes, the second of them."""
    model._is_vector = y.ndim == 1
    if not model._is_vector:
        model._n_labels = y.shape[1]
        model.classes_ = np.arange(y.shape[1]) if model._names is None else model._names
        return
    known = call.known_classes(model)
    model._n_labels, model.classes_ = 1, cast("Labels", np.unique(y)) if known is None else known
    check_several(len(model.classes_))
    if len(model.classes_) > 2:
        raise ValueError(
            "Only binary classification is supported where y is a vector, got "
            f"{len(model.classes_)} classes; give one column of zeros and ones per label, or use "
            "MulticlassSVC."
        )


def _sets(model: "MultilabelSVC", y: Targets) -> IntArray:
    """Return y as zeros and ones, one column for each label of `fit`."""
    if model._is_vector != (y.ndim == 1) or (y.ndim == 2 and y.shape[1] != model._n_labels):
        expected = "none, a vector" if model._is_vector else f"{model._n_labels}, one for each label"
        raise ValueError(
            f"y has {'no' if y.ndim == 1 else y.shape[1]} columns, expected {expected}, "
            f"as {caller()} was fitted with."
        )
    sets = tables.class_codes(model, y)[:, None] if model._is_vector else y
    return freeze(np.array(sets, dtype=np.int64, order="C"))


def _label_names(model: "MultilabelSVC") -> list[object]:
    """Return the names of the labels; a vector has one label, the second of its two classes."""
    return model.classes_.tolist()[-model._n_labels :]


def _label_graph(model: "MultilabelSVC") -> LabelGraph:
    return LabelGraph(model._n_labels, model.edges_, PAIR, model._inference)


def _of_table(model: "MultilabelSVC", table: Table) -> Problem:
    """Return the problem of predicting the labels of checked rows."""
    if not is_linear(model):
        return LabelSets.for_scores(kernels.row_scores(model, table), _label_graph(model))
    return LabelSets.for_prediction(with_constant(table), _label_graph(model))


def _label_coefficients(model: "MultilabelSVC", coefficients: FloatArray) -> FloatArray:
    """Return the coefficients of each label: of having it less those of not having it."""
    states = coefficients.reshape(len(coefficients), model._n_labels, -1)
    return (states[:, :, 1] - states[:, :, 0]).T


class MultilabelSVC(ClassifierMixin, MaxMarginEstimator[_Data, _Outputs, FloatArray]):  # type: ignore[misc]
    r"""Structural SVM for sets of labels, some of which occur together.

    The set of labels y, zeros and ones, scores :math:`\sum_l y_l (\langle w_l, x \rangle + b_l) +
    \sum_{(l, m)} V_{lm}(y_l, y_m)`, where the second sum runs over the pairs of labels that are joined.

    Parameters
    ----------
    %(C)s
    %(l1_ratio)s
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

    _texts: ClassVar[dict[str, str]] = tables.TEXTS | {
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
    _structure: ClassVar = LabelledRows()
    structure: str
    loss: str
    rescaling: str
    intercept_: FloatArray
    structure_: str
    edges_: IntArray
    edge_coef_: FloatArray
    _is_vector: bool
    _n_labels: int
    _names: Labels | None
    _inference: str

    _parameter_constraints: ClassVar[Constraints] = {
        "C": tables.SCALED_C,
        "structure": [StrOptions(STRUCTURES)],
        "loss": [StrOptions(HAMMING)],
    }

    def __init__(
        self,
        C: float | str = "scale",
        *,
        l1_ratio: float | None = None,
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

    score = MaxMarginEstimator.score
    predict_margins = confidence.predict_margins
    predict_marginals = confidence.predict_marginals
    predict_proba = confidence.predict_proba
    calibrate = confidence.calibrate
    explain = explanation.explain
    top_features = inspection.top_features
    sparsify = inspection.sparsify
    densify = inspection.densify
    top_transitions = inspection.top_transitions

    coef_ = tables.COEF
    support_, dual_coef_, n_support_ = kernels.support_properties(_label_coefficients)

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
        found, margins = confidence.with_margins(self, self._structure.ask(self, X).problem)
        # A tie has margin zero, but its sign must be that of the prediction.
        signed = np.where(found == 1, np.maximum(margins, np.finfo(np.float64).tiny), -margins)
        return signed if self._is_vector else signed.reshape(-1, self._n_labels)
