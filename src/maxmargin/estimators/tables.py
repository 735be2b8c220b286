"""What the estimators over a table of features share: scikit-learn's validation, its tags and `score`."""

from collections.abc import Sequence
from typing import ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, assert_all_finite, get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from maxmargin.encoding.kinds import is_numeric
from maxmargin.encoding.labels import Labels, listed_classes
from maxmargin.encoding.matrices import sound
from maxmargin.encoding.sequences import as_objects
from maxmargin.estimators.estimator import Call, LabellingEstimator, Output
from maxmargin.estimators.examples import Data, Examples, Parts, mean_right, total_variance
from maxmargin.estimators.explanation import RowReader, named_by
from maxmargin.estimators.fields import FLAG, NAMES, Fields
from maxmargin.estimators.kernels import KernelEstimator
from maxmargin.estimators.parameters import TRAINING, Constraints
from maxmargin.estimators.problems import Problem
from maxmargin.estimators.state import StrOptions, snapshot
from maxmargin.runtime.arrays import (
    FloatArray,
    IntArray,
    ValueArray,
    csr_of,
    freeze,
    frozen_view,
    index_dtype,
    value_dtypes,
)

# Estimators whose rows have weights for each label: `coef_`, and C in units of the features.

Rows: TypeAlias = ValueArray | csr_array


class ScaledEstimator(KernelEstimator[Data, Output]):
    """Base of estimators with `coef_` and ``C="scale"``. A subclass sets `_coef` and has `_weighted_rows`.

    Its `_texts` have "scale", the number that is divided by the variance of the rows.
    """

    _parameter_constraints: ClassVar[Constraints] = {"C": [StrOptions({"scale"}), *TRAINING["C"].constraints]}
    _shared_texts: ClassVar[dict[str, str]] = {
        "C": """
            C : {"scale"} or float, default="scale"
                Inverse regularisation strength, > 0; lam = 1 / (C n). "scale" is %(scale)s divided by the sum
                of the variances of the features%(of_rows)s, so that their unit does not matter; with a kernel
                other than "linear" %(scale_of_kernels)s. ``C_`` is the number.
            """,
        "of_rows": "",
        "scale_of_kernels": "it is 1",
    }
    _coef: FloatArray
    # What C="scale" divides by the variance of the features; docs/defaults.md says how it was chosen.
    _scale: ClassVar[float]

    @property
    def coef_(self) -> FloatArray:
        """Weights of features for each label; see the class. Only linear models have them."""
        check_is_fitted(self)
        self._check_linear("coef_")
        return self._coef

    def _chosen_C(self, examples: Examples[Data]) -> float:
        if not isinstance(self.C, str):
            return super()._chosen_C(examples)
        return self._row_C(examples) * self._rows_per_example(examples)

    def _row_C(self, examples: Examples[Data]) -> float:
        """Return the C of a row."""
        if not self._is_linear:
            return 1.0
        variance = total_variance(*self._weighted_rows(examples))
        return self._scale / variance if 0.0 < variance < np.inf else 1.0

    def _weighted_rows(self, examples: Examples[Data]) -> tuple[Rows, FloatArray | None]:
        """Hook: return all rows of features, and their weights; None if all weights are one."""
        raise NotImplementedError

    def _rows_per_example(self, examples: Examples[Data]) -> float:
        """Hook: return the C of an example in units of that of a row."""
        return 1.0


Table: TypeAlias = ValueArray | csr_array
Targets = NDArray[np.generic]

# That features are finite is checked afterwards, by `_check_finite`.
_OPTIONS = {"accept_sparse": "csr", "ensure_all_finite": False}


class TableEstimator(
    ClassifierMixin,  # type: ignore[misc]
    LabellingEstimator[Data, Output],
    ScaledEstimator[Data, Output],
):
    """Base of the classifiers of the rows of a table. A subclass defines `_targets` and `_is_right`."""

    _has_objects: bool

    _fitted: ClassVar[Fields] = {"_has_objects": FLAG, "feature_names_in_": NAMES.or_unset()}
    _shared_texts: ClassVar[dict[str, str]] = {
        "rows": "examples",
        "example": "row of X",
        "examples": "examples",
        "X": """
            X : array or sparse matrix of shape (n_samples, n_features)
                It may be read in place: do not change it during a call.
            """,
        "columns": """
            n_features_in_ : int
            feature_names_in_ : array of shape (n_features,)
                Names of the columns of X; only if all of them are strings.
            """,
        "kinds": 'The kind is "example", or "intercept" without a feature.',
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags

    def _keep(self, problem: Problem, examples: Examples[Data], w: FloatArray) -> None:
        self._keep_support(problem, examples, cast("Table", examples.data[0]), w)
        self._expose()

    def _check_restored(self) -> None:
        super()._check_restored()
        if self._has_objects != (not self._is_linear and self._support.rows.ndim == 1):
            raise ValueError("support rows must be of the kind that the model was fitted with")
        names = getattr(self, "feature_names_in_", None)
        if names is not None and (self._has_objects or len(names) != self.n_features_in_):
            raise ValueError("features must have a name each")

    def _validate(self, parts: Parts, call: Call) -> Parts:
        X, y = super()._validate(parts, call)
        if call.first:
            self._has_objects = callable(self.kernel) and not is_table(X)
        if self._has_objects:
            check_consistent_length(X, y)
            return as_objects(X, self._owner), self._targets(y)
        multi_output = get_tags(self).target_tags.multi_output
        options = _OPTIONS | {"dtype": value_dtypes(X), "multi_output": multi_output, "reset": call.first}
        X, y = validate_data(self, sound(X, "X"), y, **options)
        self._check_finite(X)
        return call.held(csr_array(X) if issparse(X) else X), self._targets(y)

    def _weighted_rows(self, examples: Examples[Data]) -> tuple[Table, FloatArray | None]:
        return examples.data[0], examples.weights  # type: ignore[return-value]

    def _known_table(self, X: object) -> Table:
        """Return the features checked, if they are those of `fit`."""
        if self._has_objects:
            return as_objects(X, self._owner)
        table: Table = validate_data(self, sound(X, "X"), **_OPTIONS, dtype=value_dtypes(X), reset=False)
        self._check_finite(table)
        return frozen_view(table)

    def _check_finite(self, table: Table) -> None:
        """Raise if a feature is NaN or infinite."""
        assert_all_finite(table, input_name="X")

    def _feature_names(self) -> Sequence[object]:
        """Return the names of the columns of X, or their numbers."""
        names: Sequence[object] = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return list(names)

    def _one_row(self, x: object) -> Table:
        """Return one row of features as a table; raise if it is not one row."""
        given = x if getattr(x, "ndim", 1) == 2 else _as_table(x)
        table = self._known_table(given)
        if table.shape[0] != 1:
            raise ValueError(f"{self._owner}: x must be one row of features, got {table.shape[0]} rows.")
        return table

    def _row_reader(self, table: Table) -> RowReader:
        """Return a reader of the features of rows."""
        return RowReader(table, "example", named_by(self._feature_names()))

    def _given_classes(self, classes: object) -> Labels:
        labels = listed_classes(classes, self._owner)  # may be floats, as those of scikit-learn
        return np.unique(classes if isinstance(classes, np.ndarray) else labels)  # type: ignore[arg-type]

    def _targets(self, y: object) -> Targets:
        """Hook: return the true outputs checked."""
        raise NotImplementedError

    def _known_targets(self, y: object) -> Targets:
        """Hook: return the true outputs checked, if they are of the form of those of `fit`."""
        return self._targets(y)

    def _is_right(self, predicted: Targets, truth: Targets) -> NDArray[np.bool_]:
        """Hook: return which predictions are right."""
        raise NotImplementedError

    def _codes(self, y: Targets) -> IntArray:
        """Return the numbers of the classes of ``y``, all of which must be known."""
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"{self._owner}: y has the class {unknown.tolist()[0]!r}, expected one of the "
                f"{len(self.classes_)} classes of the first call; give all classes to the first call of "
                "partial_fit."
            )
        return np.searchsorted(self.classes_, y)

    @snapshot
    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """%(score)s

        Parameters
        ----------
        %(X)s
        %(y)s
        sample_weight : array of shape (n_samples,), default=None
            How much each example counts.

        Returns
        -------
        float
        """
        predicted, truth = np.asarray(self._predict(X)), self._known_targets(y)
        check_consistent_length(predicted, truth)
        return mean_right(self._is_right(predicted, truth), sample_weight, self._owner)


def is_table(X: object) -> bool:
    """Return whether X is a matrix of numbers, and not a list of users' objects."""
    if issparse(X) or hasattr(X, "iloc"):
        return True
    try:
        array = np.asarray(X)
    except ValueError:  # objects of several lengths
        return False
    return array.ndim == 2 and is_numeric(array.dtype)


def _as_table(x: object) -> object:
    """Return a vector, which may be a row of a frame, as a table with one row."""
    return x.to_frame().T if hasattr(x, "to_frame") else [x]


def with_constant(table: Table) -> Table:
    """Return the table with a column of ones appended."""
    if issparse(table):
        return _with_last(table)
    return freeze(np.hstack([table, np.ones((table.shape[0], 1), dtype=table.dtype)]))


def _with_last(table: csr_array) -> csr_array:
    """Return the sparse table with a one at the end of each row; scipy's own way takes twice the memory."""
    n_stored = len(table.data) + table.shape[0]
    dtype = index_dtype(table.indices, max(n_stored, table.shape[1]))
    start = table.indptr.astype(dtype) + np.arange(len(table.indptr), dtype=dtype)
    is_given = np.ones(start[-1], dtype=np.bool_)
    is_given[start[1:] - 1] = False
    values = np.ones(start[-1], dtype=table.dtype)
    columns = np.full(start[-1], table.shape[1], dtype=dtype)
    values[is_given], columns[is_given] = table.data, table.indices
    return freeze(csr_of(values, columns, start, table.shape[1] + 1))
