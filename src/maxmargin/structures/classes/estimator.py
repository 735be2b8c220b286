"""Multiclass classification as a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from maxmargin.encoding.kinds import first_not_finite, pieces
from maxmargin.encoding.labels import Labels
from maxmargin.estimators import confidence, explanation, inspection, kernels, tables
from maxmargin.estimators.confidence import known_states
from maxmargin.estimators.estimator import MaxMarginEstimator
from maxmargin.estimators.examples import (
    Examples,
    Lesson,
    Parts,
    Tally,
    check_kind,
    label_weights,
    moments_of,
    tally,
)
from maxmargin.estimators.explanation import Contribution, Part, Reader, RowReader, single
from maxmargin.estimators.inspection import NO_FEATURE, WeightTable, dense
from maxmargin.estimators.kernels import is_linear, linear_rows, n_columns, prediction_rows, wrapped
from maxmargin.estimators.parameters import Constraints
from maxmargin.estimators.state import StrOptions, snapshot, transaction
from maxmargin.estimators.structure import (
    AnyEstimator,
    Call,
    Cluster,
    Layout,
    Problem,
    Question,
    Structure,
    in_each_storage,
    learn_attributes,
)
from maxmargin.estimators.tables import Table, Targets, with_constant
from maxmargin.files.checkpoint import CheckpointLike
from maxmargin.methods.block_exact import with_exact_blocks
from maxmargin.runtime.arrays import FloatArray, IntArray, ValueArray
from maxmargin.solving.result import Callback
from maxmargin.structures.classes.model import Multiclass


class ClassReader(NamedTuple):
    """Reads the class of an example."""

    example: RowReader
    classes: Labels
    coef: FloatArray
    intercept: FloatArray

    def parts(self, codes: IntArray) -> list[Part]:
        return [Part(0, None)]

    def state(self, codes: IntArray, part: Part) -> object:
        return self.output(codes)

    def output(self, codes: IntArray) -> object:
        return self.classes.tolist()[codes[0]]  # whose items may be any objects

    def contributions(self, codes: IntArray) -> list[Contribution]:
        k, label = int(codes[0]), self.output(codes)
        constant = single(None, "intercept", None, label, self.intercept[k])
        return [*self.example.contributions(0, None, label, self.coef[k]), *constant]


_Data = tuple[Table, IntArray]
_Classes = NDArray[Any]  # classes of any kind that can be sorted


def _lesson(model: "MulticlassSVC", parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what a partition teaches."""
    X, y = cast("tuple[Table, Labels]", parts)
    labels = cast("Labels", np.unique(y))
    given = _by_class(model, labels, np.searchsorted(labels, y), weights)
    given = np.ones(len(y)) if given is None else given
    moments = moments_of(X, given) if isinstance(model.C, str) else None
    return Lesson({0: len(y)}, float(given.sum()), labels, moments=moments)


def _learn(model: "MulticlassSVC", lesson: Lesson) -> None:
    """Set what follows from the lesson of all partitions."""
    learn_attributes(model, lesson)
    model.classes_ = lesson.labels
    kernels.learn_kernel(model, None)


class Classes(Structure["MulticlassSVC", _Data, _Classes, FloatArray]):
    """A class of each row of a table."""

    in_lists = False
    scale = 3.0
    cluster = Cluster(_lesson, _learn)
    trials = in_each_storage(lambda X, labels: (X, labels))
    fields: ClassVar = {**tables.FIELDS, **tables.LABEL_FIELDS}

    def validate(self, model: "MulticlassSVC", parts: Parts, call: Call) -> Parts:
        return tables.validated(model, parts, call, _targets, _check_finite)

    def encode(
        self, model: "MulticlassSVC", parts: Parts, weights: FloatArray | None, call: Call
    ) -> Examples[_Data]:
        X, y = cast("tuple[Table, Targets]", parts)
        known = call.known_classes(model)
        model.classes_ = cast("Labels", np.unique(y)) if known is None else known
        labels = tables.class_codes(model, y)
        if call.first:
            kernels.learn_kernel(model, X)
        return Examples((X, labels), _by_class(model, model.classes_, labels, weights))

    def problem(self, model: "MulticlassSVC", examples: Examples[_Data]) -> Problem:
        X, labels = examples.data
        linear = linear_rows(model, X)
        features = with_constant(linear) if model.fit_intercept else linear
        problem = Multiclass.from_encoded(features, labels, len(model.classes_), loss=model.loss)
        # Where every mistake costs 1, slacks and margins are the same problem.
        rescaling = "margin" if isinstance(model.loss, str) else model.rescaling
        return wrapped(model, problem, X, rescaling)

    def ask(self, model: "MulticlassSVC", X: object) -> Question[_Classes, FloatArray]:
        table = tables.known_table(model, X, _check_finite)

        def states(y: object) -> IntArray:
            classes, codes = np.unique(_targets(y), return_inverse=True)
            check_consistent_length(X, codes)
            return known_states(codes, cast("Labels", classes), model.classes_)

        def score(codes: IntArray, y: object) -> Tally:
            truth = _targets(y)
            check_consistent_length(codes, truth)
            check_kind(truth[0], model.classes_)
            return tally(np.asarray(model.classes_[codes] == truth), np.arange(len(codes) + 1))

        return Question(
            _of_rows(model, prediction_rows(model, table)),
            lambda codes: model.classes_[codes],
            score,
            states=states,
            marginals=lambda values, shapes: values.reshape(-1, len(model.classes_)),
        )

    def reader(self, model: "MulticlassSVC", x: object) -> tuple[Problem, Reader]:
        kernels.check_linear(model, "explain")
        table, rows = tables.one_row(model, x, _check_finite)
        return _of_rows(model, table), ClassReader(rows, model.classes_, model._coef, model.intercept_)

    def layout(self, model: "MulticlassSVC") -> Layout:
        n = n_columns(model)
        return Layout(len(model.classes_) * n, lambda: _of_rows(model, csr_array((1, n))).map)

    def expose(self, model: "MulticlassSVC") -> None:
        weights = kernels.linear_parts(model)[0]
        model.intercept_ = weights[:, -1].copy() if model.fit_intercept else np.zeros(len(weights))
        model._coef = np.ascontiguousarray(weights[:, : -1 if model.fit_intercept else None])

    def features(self, model: "MulticlassSVC") -> list[WeightTable]:
        classes, weights = model.classes_.tolist(), dense(model.coef_).T
        return [
            WeightTable("example", tables.feature_names(model), classes, weights),
            WeightTable("intercept", NO_FEATURE, classes, model.intercept_[None]),
        ]


def _targets(y: object) -> Targets:
    """Return the true classes checked."""
    targets = check_array(column_or_1d(y), ensure_2d=False, dtype=None, input_name="y")
    tables.check_classes(targets)
    return np.asarray(targets)


def _check_finite(model: AnyEstimator, table: Table) -> None:
    """Raise if a feature is NaN or infinite; say which."""
    values: ValueArray = table if isinstance(table, np.ndarray) else table.data
    bad = first_not_finite(values)
    if bad is None:
        return
    if isinstance(table, np.ndarray):
        example, feature = divmod(bad, table.shape[1])
    else:
        example, feature = int(np.searchsorted(table.indptr, bad, side="right")) - 1, table.indices[bad]
    value = values.ravel()[bad]
    raise ValueError(
        f"feature {feature} of example {example} of X is "
        f"{'NaN' if np.isnan(value) else value}, expected a finite number; remove or impute it."
    )


def _by_class(
    model: "MulticlassSVC", classes: Labels, labels: IntArray, weights: FloatArray | None
) -> FloatArray | None:
    """Return the weights of examples times those of their classes."""
    if model.class_weight is None:
        return weights
    each = label_weights(model.class_weight, classes, labels, weights)[labels]
    return each if weights is None else each * weights


def _of_rows(model: "MulticlassSVC", rows: Table) -> Problem:
    """Return the problem of predicting the classes of rows, which are scores if there is a kernel."""
    features = with_constant(rows) if model.fit_intercept else rows
    return Multiclass.from_encoded(features, np.zeros(rows.shape[0], dtype=np.int64), len(model.classes_))


class MulticlassSVC(
    ClassifierMixin,  # type: ignore[misc]
    MaxMarginEstimator[_Data, _Classes, FloatArray],
):
    r"""Multiclass SVM of Crammer and Singer, with a certificate.

    .. math:: \min_W \frac{1}{2 C n} \|W\|^2 + \frac1n \sum_i \max_y
              \left( L(y_i, y) + \langle W_y - W_{y_i}, x_i \rangle \right)

    Parameters
    ----------
    %(C)s
    %(l1_ratio)s
    loss : "zero_one" or array of shape (n_classes, n_classes), default="zero_one"
        Cost 1 for every mistake, or ``loss[truth, label]``, classes in the order of ``classes_``.
    %(rescaling)s
    %(fit_intercept)s
    %(class_weight)s
        Weights of examples by class, multiplied by ``sample_weight``: ``{class: weight}``, 1 for classes not
        listed; or weights inversely proportional to the number of examples of the class, with a mean of 1.
    %(kernels)s
    %(training)s

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes, sorted.
    coef_ : array of shape (n_classes, n_features)
        Feature weights of each class, also if there are only two.
    intercept_ : array of shape (n_classes,)
    %(support)s
    %(temperature)s
    %(certificate)s
    %(columns)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVC(C=1.0, tol=0.01, random_state=0).fit(X, y)
    >>> bool(model.gap_ <= 0.01 * model.history_.primal.min())  # tol is relative
    True
    >>> model.score(X, y) > 0.9
    True
    """

    _texts: ClassVar[dict[str, str]] = tables.TEXTS | {
        "scale": "3",
        "y": """
            y : array of shape (n_samples,)
                Strings or ints.
            """,
        "predict": """
            array of shape (n_samples,)
                The class of each example.
            """,
        "margins": """
            array of shape (n_samples,)
                The score of the class of each example less the largest score of the others.
            """,
        "parts": "the classes of examples",
        "marginals": """
            array of shape (n_samples, n_classes)
                The probability of each class, in the order of ``classes_``.
            """,
        "score": "Return the share of examples whose class is predicted.",
    }
    _structure: ClassVar = Classes()
    loss: str | FloatArray
    rescaling: str
    fit_intercept: bool
    class_weight: str | Mapping[object, float] | None
    intercept_: FloatArray

    _parameter_constraints: ClassVar[Constraints] = {
        "C": tables.SCALED_C,
        "loss": [StrOptions({"zero_one"}), "array-like"],
    }

    def __init__(
        self,
        C: float | str = "scale",
        *,
        l1_ratio: float | None = None,
        loss: str | FloatArray = "zero_one",
        rescaling: str = "margin",
        fit_intercept: bool = True,
        class_weight: str | Mapping[object, float] | None = None,
        kernel: str | Callable[..., object] = "linear",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        probability: bool = False,
        method: object = "auto",
        tol: float = 0.02,
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

    coef_ = tables.COEF
    support_, dual_coef_, n_support_ = kernels.support_properties()

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, classes: object = None, sample_weight: object = None
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y), sample_weight, more=True, classes=classes)

    @snapshot
    def decision_function(self, X: object) -> FloatArray:
        """Return the score of each class.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, the score of the second minus that of the first.
        """
        table = tables.known_table(self, X, _check_finite)
        if is_linear(self):
            scores = _products(table, self._coef) + self.intercept_
        else:
            scores = kernels.row_scores(self, table)[:, : len(self.classes_)] + self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _predict(self, X: object) -> _Classes:
        # scikit-learn defines predictions by the decision function, to the last bit.
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _margins(self, X: object) -> FloatArray:
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.abs(scores)
        second, first = np.partition(scores, -2, axis=1)[:, -2:].T
        return first - second

    def _method(self, lam: float, problem: Problem) -> object:
        """Return the method; the default one solves blocks exactly."""
        method = super()._method(lam, problem)
        return with_exact_blocks(method) if self.method == "auto" else method


def _products(table: Table, coef: FloatArray) -> FloatArray:
    """Return the inner products of rows and weights, in float64, without a copy of all rows in it."""
    if issparse(table):
        return np.asarray(table @ coef.T)
    out = np.empty((table.shape[0], len(coef)))
    for piece in pieces(*table.shape):
        np.matmul(table[piece], coef.T, out=out[piece])
    return out
