"""The rows of a table, which classes and sets of labels share; labels, and C in units of the features."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from maxmargin.encoding.kinds import is_numeric
from maxmargin.encoding.matrices import sound
from maxmargin.encoding.sequences import as_objects
from maxmargin.estimators import kernels
from maxmargin.estimators.examples import Parts
from maxmargin.estimators.explanation import RowReader, named_by
from maxmargin.estimators.inspection import in_form
from maxmargin.estimators.kernels import check_linear, is_linear
from maxmargin.estimators.parameters import TRAINING
from maxmargin.estimators.state import StrOptions
from maxmargin.estimators.structure import FLAG, LABELS, NAMES, AnyEstimator, Call
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

SCALED_C = [StrOptions({"scale"}), *TRAINING["C"].constraints]
# A class adds "scale", the number that is divided by the variance of the rows.
SCALED_TEXTS = kernels.TEXTS | {
    "C": """
        C : {"scale", "auto"}, float or CrossValidated, default="scale"
            Inverse regularisation strength, > 0; lam = 1 / (C n). "scale" is %(scale)s divided by the sum of
            the variances of the features%(of_rows)s, so that their unit does not matter; with a kernel other
            than "linear" %(scale_of_kernels)s. "auto" chooses C by cross-validation, and a `CrossValidated`
            has options for this. ``C_`` is the number.
        """,
    "of_rows": "",
    "scale_of_kernels": "it is 1",
}


def _coef(self: AnyEstimator) -> FloatArray:
    check_is_fitted(self)
    check_linear(self, "coef_")
    found: FloatArray = in_form(self, self._coef)
    return found


COEF = property(_coef, doc="Weights of features for each label; see the class. Only linear models have them.")
LABEL_FIELDS = {"classes_": LABELS}


def check_classes(y: NDArray[np.generic]) -> None:
    """Raise unless ``y`` holds classes, none of which is missing."""
    missing = [i for i, label in enumerate(y.tolist()) if label is None] if y.dtype == object else []
    if missing:
        raise ValueError(f"y must have a class for each example, got None for example {missing[0]}.")
    check_classification_targets(y)


Table: TypeAlias = ValueArray | csr_array
Targets = NDArray[np.generic]
TEXTS = SCALED_TEXTS | {
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
# That features are finite is checked afterwards.
_OPTIONS = {"accept_sparse": "csr", "ensure_all_finite": False}


def check_finite(model: AnyEstimator, table: Table) -> None:
    """Raise if a feature is NaN or infinite."""
    assert_all_finite(table, input_name="X")


CheckFinite = Callable[[AnyEstimator, Table], None]


def validated(
    model: AnyEstimator,
    parts: Parts,
    call: Call,
    targets: Callable[[object], Targets],
    check: CheckFinite = check_finite,
) -> Parts:
    """Return rows and ``targets`` of true outputs checked; the first call learns the names of columns."""
    X, y = parts
    if call.first:
        model._has_objects = callable(model.kernel) and not is_table(X)
    if model._has_objects:
        check_consistent_length(X, y)
        return as_objects(X), targets(y)
    multi_output = get_tags(model).target_tags.multi_output
    options = _OPTIONS | {"dtype": value_dtypes(X), "multi_output": multi_output, "reset": call.first}
    X, y = validate_data(model, sound(X, "X"), y, **options)
    check(model, X)
    return call.held(csr_array(X) if issparse(X) else X), targets(y)


def known_table(model: AnyEstimator, X: object, check: CheckFinite = check_finite) -> Table:
    """Return the features checked, if they are those of `fit`."""
    if model._has_objects:
        return as_objects(X)
    table: Table = validate_data(model, sound(X, "X"), **_OPTIONS, dtype=value_dtypes(X), reset=False)
    check(model, table)
    return frozen_view(table)


def check_table(model: AnyEstimator) -> None:
    """Raise ValueError unless the kernel, support rows and names that a file had go together."""
    kernels.check_kernel(model)
    if model._has_objects != (not is_linear(model) and model._support.rows.ndim == 1):
        raise ValueError("support rows must be of the kind that the model was fitted with")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (model._has_objects or len(names) != model.n_features_in_):
        raise ValueError("features must have a name each")


FIELDS = kernels.FIELDS | {"_has_objects": FLAG.checked(check_table), "feature_names_in_": NAMES.or_unset()}


def feature_names(model: AnyEstimator) -> Sequence[object]:
    """Return the names of the columns of X, or their numbers."""
    names: Sequence[object] = getattr(model, "feature_names_in_", range(model.n_features_in_))
    return list(names)


def one_row(model: AnyEstimator, x: object, check: CheckFinite = check_finite) -> tuple[Table, RowReader]:
    """Return one row of features as a table, and its reader; raise if it is not one row."""
    table = known_table(model, x if len(getattr(x, "shape", ())) == 2 else _as_table(x), check)
    if table.shape[0] != 1:
        raise ValueError(f"x must be one row of features, got {table.shape[0]} rows.")
    return table, RowReader(table, "example", named_by(feature_names(model)))


def class_codes(model: AnyEstimator, y: Targets) -> IntArray:
    """Return the numbers of the classes of ``y``, all of which must be known."""
    unknown = np.setdiff1d(y, model.classes_)
    if len(unknown):
        raise ValueError(
            f"y has the class {unknown.tolist()[0]!r}, expected one of the "
            f"{len(model.classes_)} classes of the first call; give all classes to the first call of "
            "partial_fit."
        )
    return np.searchsorted(model.classes_, y)


def is_table(X: object) -> bool:
    """Return whether X is a matrix of numbers, and not a list of users' objects."""
    if issparse(X) or hasattr(X, "columns"):
        return True
    try:
        array = np.asarray(X)
    except ValueError:  # objects of several lengths
        return False
    return array.ndim == 2 and is_numeric(array.dtype)


def _as_table(x: object) -> object:
    """Return a vector, which may be a row of a pandas frame, as a table with one row."""
    return x.to_frame().T if hasattr(x, "to_frame") and hasattr(x, "iloc") else [x]


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
