"""Multiclass classification as a scikit-learn estimator."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from maxmargin.encoding.kinds import first_not_finite, pieces
from maxmargin.encoding.labels import Labels
from maxmargin.estimators.confidence import MarginEstimator, TableMarginalEstimator, known_states
from maxmargin.estimators.estimator import Call
from maxmargin.estimators.examples import Examples, Parts, check_kind, label_weights
from maxmargin.estimators.explanation import Contribution, Explainer, Part, Reader, RowReader, single
from maxmargin.estimators.inspection import NO_FEATURE, LabelFeatureInspector, WeightTable
from maxmargin.estimators.parameters import Constraints
from maxmargin.estimators.problems import Problem, rescaled
from maxmargin.estimators.state import StrOptions, snapshot
from maxmargin.estimators.tables import Table, TableEstimator, Targets, with_constant
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
        return self.classes[codes[0]].item()

    def output(self, codes: IntArray) -> object:
        return self.classes[codes[0]].item()

    def contributions(self, codes: IntArray) -> list[Contribution]:
        k, label = int(codes[0]), self.classes[codes[0]].item()
        constant = single(None, "intercept", None, label, self.intercept[k])
        return [*self.example.contributions(0, None, label, self.coef[k]), *constant]


_Data = tuple[Table, IntArray]
_Classes = NDArray[Any]  # classes of any kind that can be sorted


class MulticlassSVC(
    Explainer,
    LabelFeatureInspector,
    MarginEstimator[FloatArray],
    TableMarginalEstimator[_Data, _Classes],
    TableEstimator[_Data, _Classes],
):
    r"""Multiclass SVM of Crammer and Singer, with a certificate.

    .. math:: \min_W \frac{1}{2 C n} \|W\|^2 + \frac1n \sum_i \max_y
              \left( L(y_i, y) + \langle W_y - W_{y_i}, x_i \rangle \right)

    Parameters
    ----------
    %(C)s
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

    _texts: ClassVar[dict[str, str]] = {
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
    _scale = 3.0
    loss: str | FloatArray
    rescaling: str
    fit_intercept: bool
    class_weight: str | Mapping[object, float] | None
    intercept_: FloatArray

    _parameter_constraints: ClassVar[Constraints] = {"loss": [StrOptions({"zero_one"}), "array-like"]}

    def __init__(
        self,
        C: float | str = "scale",
        *,
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

    def _targets(self, y: object) -> Targets:
        targets = check_array(column_or_1d(y), ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(targets)
        return np.asarray(targets)

    def _check_finite(self, table: Table) -> None:
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
            f"{self._owner}: feature {feature} of example {example} of X is "
            f"{'NaN' if np.isnan(value) else value}, expected a finite number; remove or impute it."
        )

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[_Data]:
        X, y = cast("tuple[Table, Targets]", parts)
        known = self._known_classes(call)
        self.classes_ = cast("Labels", np.unique(y)) if known is None else known
        labels = self._codes(y)
        if call.first:
            self._learn_kernel(X)
        if self.class_weight is not None:
            by_class = label_weights(self.class_weight, self.classes_, labels, weights, self._owner)
            weights = by_class[labels] if weights is None else by_class[labels] * weights
        return Examples((X, labels), weights)

    def _problem(self, examples: Examples[_Data]) -> Problem:
        X, labels = examples.data
        linear = self._linear_rows(X)
        features = with_constant(linear) if self.fit_intercept else linear
        problem = Multiclass.from_encoded(
            features, labels, len(self.classes_), loss=self.loss, owner=self._owner
        )
        return rescaled(self._with_kernel(problem, X), self._effective_rescaling, self._owner)

    @property
    def _effective_rescaling(self) -> str:
        """What is rescaled: where every mistake costs 1, slacks and margins are the same problem."""
        return "margin" if isinstance(self.loss, str) else self.rescaling

    def _method(self, lam: float, problem: Problem) -> object:
        """Return the method; the default one solves blocks exactly."""
        method = super()._method(lam, problem)
        return with_exact_blocks(method) if self.method == "auto" else method

    def _blank(self) -> Problem:
        return self._of_rows(csr_array((1, self._n_columns)))

    def _n_cells(self) -> int:
        return len(self.classes_) * self._n_columns

    def _expose(self) -> None:
        weights = self._linear_parts()[0]
        self.intercept_ = weights[:, -1].copy() if self.fit_intercept else np.zeros(len(weights))
        self._coef = np.ascontiguousarray(weights[:, : -1 if self.fit_intercept else None])

    def _feature_tables(self) -> list[WeightTable]:
        classes, weights = self.classes_.tolist(), self.coef_.T
        return [
            WeightTable("example", self._feature_names(), classes, weights),
            WeightTable("intercept", NO_FEATURE, classes, self.intercept_[None]),
        ]

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
        table = self._known_table(X)
        if self._is_linear:
            scores = _products(table, self._coef) + self.intercept_
        else:
            scores = self._row_scores(table)[:, : len(self.classes_)] + self.intercept_
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

    def _reader(self, x: object) -> tuple[Problem, Reader]:
        self._check_linear("explain")
        table = self._one_row(x)
        reader = ClassReader(self._row_reader(table), self.classes_, self._coef, self.intercept_)
        return self._of_table(table), reader

    def _unlabelled_problem(self, X: object) -> Problem:
        return self._of_table(self._known_table(X))

    def _of_table(self, table: Table) -> Problem:
        """Return the problem of predicting the classes of checked rows."""
        return self._of_rows(self._prediction_rows(table))

    def _of_rows(self, rows: Table) -> Problem:
        """Return the problem of predicting the classes of rows, which are scores if there is a kernel."""
        features = with_constant(rows) if self.fit_intercept else rows
        return Multiclass.from_encoded(features, np.zeros(rows.shape[0], dtype=np.int64), len(self.classes_))

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        problem, (classes, codes) = (
            self._unlabelled_problem(X),
            np.unique(self._targets(y), return_inverse=True),
        )
        check_consistent_length(X, codes)
        return problem, known_states(codes, cast("Labels", classes), self.classes_, self._owner)

    def _formed(self, values: FloatArray, shapes: IntArray) -> FloatArray:
        return values.reshape(-1, len(self.classes_))

    def _is_right(self, predicted: Targets, truth: Targets) -> NDArray[np.bool_]:
        check_kind(truth[0], self.classes_, self._owner)
        return np.asarray(predicted == truth)


def _products(table: Table, coef: FloatArray) -> FloatArray:
    """Return the inner products of rows and weights, in float64, without a copy of all rows in it."""
    if issparse(table):
        return np.asarray(table @ coef.T)
    out = np.empty((table.shape[0], len(coef)))
    for piece in pieces(*table.shape):
        np.matmul(table[piece], coef.T, out=out[piece])
    return out
