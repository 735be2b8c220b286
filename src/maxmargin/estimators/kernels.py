"""Kernels of rows (examples, tokens or nodes), as scikit-learn's `SVC` has them; scores from support rows.

The functions take an estimator with the parameters of a kernel, whose structure learns it in its first call
(`learn_kernel`), adds it to its problem (`wrapped`), and predicts from `prediction_rows`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast, get_type_hints

import numpy as np
from scipy.sparse import csr_array, issparse

from maxmargin.encoding.matrices import checked_csr
from maxmargin.encoding.sequences import as_objects
from maxmargin.estimators.examples import Data, Examples, mean_variance, rows_of
from maxmargin.estimators.structure import COUNT, AnyEstimator, Field, Problem
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import quoted
from maxmargin.structures.feature_map import RowLayout, row_layout
from maxmargin.structures.kernel_functions import (
    GaussianKernel,
    LinearKernel,
    PolynomialKernel,
    PrecomputedKernel,
    SigmoidKernel,
)
from maxmargin.structures.kernelised import KernelisedMap, kernel_parts, kernelised_map
from maxmargin.structures.problem import Problem as PairProblem
from maxmargin.structures.wrappers import SlackRescaled

# Numbers of columns are uint32.
_MOST_FEATURES = 2**32

# Features of rows: a matrix, or an array of users' objects for a kernel of their own.
RowFeatures: TypeAlias = np.ndarray[Any, Any] | csr_array
Function = LinearKernel | PolynomialKernel | GaussianKernel | SigmoidKernel | PrecomputedKernel

_KERNELS: dict[str, type[Function]] = {
    "linear": LinearKernel,
    "poly": PolynomialKernel,
    "rbf": GaussianKernel,
    "sigmoid": SigmoidKernel,
    "callable": PrecomputedKernel,
}


class Support(NamedTuple):
    """The training rows with nonzero coefficients.

    Attributes
    ----------
    rows : matrix, or array of objects
    numbers : array of shape (n_support,)
        Which training rows they are.
    coefficients : array of shape (n_support, n_columns)
    """

    rows: RowFeatures
    numbers: IntArray
    coefficients: FloatArray


def _write_kernel(draft: Draft, name: str, function: Function) -> None:
    kind = next(kind for kind, known in _KERNELS.items() if type(function) is known)
    draft.put(name, [kind, *function])


def _read_kernel(stored: Stored, name: str) -> Function:
    found = stored.take(name)
    kind, *values = found if isinstance(found, list) and found else [None]
    known = _KERNELS.get(kind) if isinstance(kind, str) else None
    if known is None:
        stored.fail(f"{name!r} to be one of {', '.join(_KERNELS)}", quoted(found))
    types = list(get_type_hints(known).values())
    fits = [type(value) for value in values] == types
    if not fits or not np.isfinite(np.array(values, dtype=np.float64)).all():
        stored.fail(f"the numbers of a kernel for {name!r}", quoted(found))
    return known(*values)


def _write_support(draft: Draft, name: str, support: Support) -> None:
    rows, place = cast("Any", support.rows), name + ".rows"
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        kind, n_features = "dense", rows.shape[1]
        draft.put_floats(place, rows)
    elif issparse(rows):
        kind, n_features = "sparse", rows.shape[1]
        draft.put_floats(place, rows.data)
        draft.arrays |= {place + ".indices": rows.indices, place + ".indptr": rows.indptr}
    elif all(isinstance(item, str) for item in rows.tolist()):
        kind, n_features = "texts", 0
        draft.put_texts(place, rows.tolist())
    else:
        raise ValueError(
            "the kernel has training examples that are neither arrays nor texts, which files do not hold; "
            "pickle the model, or give texts or arrays to fit"
        )
    draft.put(name, [kind, n_features, support.coefficients.shape[1]])
    draft.arrays[name + ".numbers"] = support.numbers
    draft.reserve(support.coefficients.nbytes)
    draft.put_sparse(name + ".coefficients", support.coefficients)


def _read_support(stored: Stored, name: str) -> Support:
    found = stored.take(name)
    types = [type(item) for item in found] if isinstance(found, list) else None
    if types != [str, int, int] or min(cast("list[int]", found)[1:]) < 0:
        stored.fail(f"a kind of rows and two counts for {name!r}", quoted(found))
    kind, n_features, n_columns = cast("tuple[str, int, int]", found)
    if n_features > _MOST_FEATURES:
        stored.fail(f"at most 2**32 features for {name!r}", quoted(n_features))
    numbers = stored.take_ints(name + ".numbers", None)
    stored.check_room(8 * len(numbers) * n_columns, f"{name!r} to be coefficients")
    coefficients = np.zeros((len(numbers), n_columns))
    stored.take_sparse(name + ".coefficients", coefficients)
    rows = _read_rows(stored, name + ".rows", kind, len(numbers), n_features)
    return Support(rows, numbers, coefficients)


def _read_rows(stored: Stored, name: str, kind: str, n: int, n_features: int) -> RowFeatures:
    if kind == "dense":
        return stored.take_floats(name, n, n_features)
    if kind == "sparse":
        data = stored.take_floats(name, None)
        indices = stored.take_ints(name + ".indices", len(data))
        indptr = stored.take_ints(name + ".indptr", n + 1)
        matrix = csr_array((n, n_features))
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
        found = checked_csr(matrix, repr(name))
        return csr_array((found.data, found.indices, found.indptr), shape=(n, n_features))
    texts = as_objects(stored.take_texts(name))
    if kind != "texts" or len(texts) != n:
        stored.fail(f"{n} 'dense' or 'sparse' rows or 'texts' for {name!r}", f"{len(texts)} {quoted(kind)}")
    return texts


KERNEL = Field(_write_kernel, _read_kernel)
SUPPORT = Field(_write_support, _read_support)
# With a kernel of users' own objects, there is no number of features.
FIELDS = {"n_features_in_": COUNT.or_unset(), "_function": KERNEL, "_support": SUPPORT.or_unset()}
TEXTS = {
    "support": """
        support_, dual_coef_, n_support_ : arrays of shapes (n_support,), (m, n_support) and (m,)
            Indices of the training %(rows)s with nonzero coefficients, among all that were given; these
            coefficients, and their number for each label; only with a kernel other than "linear". m is the
            number of labels.
        """,
}


# Number of kernel values between test rows and support rows that are computed at a time.
_BLOCK = 4_000_000


class NotLinear(AttributeError, ValueError):
    """A model with a kernel has no feature weights; both kinds of error, as scikit-learn's NotFittedError."""


def is_linear(model: AnyEstimator) -> bool:
    """Return whether a model has weights of features."""
    return isinstance(model._function, LinearKernel)


def check_linear(model: AnyEstimator, name: str) -> None:
    """Raise the error of an attribute that only a linear model has."""
    if not is_linear(model):
        raise NotLinear(f"{type(model).__name__}: {name} is only available when using a linear kernel.")


def learn_kernel(model: AnyEstimator, rows: RowFeatures | None) -> None:
    """Fix the parameters of the kernel, which may depend on the first examples."""
    model.__dict__.pop("_support", None)  # what an earlier fit kept
    kernel = model.kernel
    if callable(kernel):
        model._function = PrecomputedKernel(bool(getattr(kernel, "semidefinite", False)))
    elif kernel == "rbf":
        model._function = GaussianKernel(_gamma(model, rows))
    elif kernel == "poly":
        model._function = PolynomialKernel(int(model.degree), _gamma(model, rows), float(model.coef0))
    elif kernel == "sigmoid":
        model._function = SigmoidKernel(_gamma(model, rows), float(model.coef0))
    else:
        model._function = LinearKernel()


def _gamma(model: AnyEstimator, rows: RowFeatures | None) -> float:
    """Return gamma as `SVC` defines it."""
    assert rows is not None  # with the linear kernel alone
    n_features = rows.shape[1]
    if model.gamma == "auto":
        return 1.0 / n_features
    if model.gamma != "scale":
        return float(model.gamma)
    variance = mean_variance(rows)
    return 1.0 / (n_features * variance) if variance > 0.0 else 1.0


def linear_rows(model: AnyEstimator, rows: RowFeatures) -> RowFeatures:
    """Return the features that stay linear: all, or none if there is a kernel."""
    return rows if is_linear(model) else np.zeros((rows.shape[0], 0))


def wrapped(
    model: AnyEstimator, problem: Problem, rows: RowFeatures, rescaling: str, *, by_example: bool = False
) -> Problem:
    """Return the problem with the kernel of the model, if it has one, and with margins or slacks rescaled.

    ``by_example`` says that an example is one row.
    """
    if not is_linear(model):
        problem = _with_kernel(model, problem, rows, by_example)
    return problem if rescaling == "margin" else SlackRescaled(problem)


def _with_kernel(model: AnyEstimator, problem: Problem, rows: RowFeatures, by_example: bool) -> Problem:
    layout: RowLayout = row_layout(problem.map)
    if by_example:
        n, per_example = len(layout.spans), int(layout.spans[0, 1] - layout.spans[0, 0])
        numbers = np.arange(n)
        layout = RowLayout(np.column_stack([numbers, numbers + 1]), layout.head, per_example * layout.width)
    if callable(model.kernel):
        double = _double(rows)
        rows = _values(model, double, double)
    phi = kernelised_map(problem.map, layout, rows, model._function, model.cache_size, model._dtype)
    return PairProblem(phi, problem.oracle)


def kept_weights(
    model: AnyEstimator, problem: Problem, examples: Examples[Data], w: FloatArray
) -> FloatArray:
    """Return the weights for predictions with a kernel; keep support rows."""
    linear, coefficients, _ = kernel_parts(cast("KernelisedMap", problem.map), w)
    numbers = np.flatnonzero(coefficients.any(axis=1))
    known = numbers if examples.numbers is None else examples.numbers[numbers]
    model._support = Support(_double(rows_of(examples)[numbers]), known, coefficients[numbers])
    # In predictions, the scores of rows are their features, each the score of one label.
    return np.concatenate([np.eye(n_columns(model)).ravel(), linear])


def n_columns(model: AnyEstimator) -> int:
    """Return the number of features, or of the scores that take their place in predictions."""
    if is_linear(model):
        return model.n_features_in_
    return int(model._support.coefficients.shape[1]) // model._n_labels


def linear_parts(model: AnyEstimator) -> tuple[FloatArray, ...]:
    """Return the weights by meaning. The first are of rows; those of a kernel's scores are left out."""
    first, *others = model._structure.layout(model).unpack(model._w)
    return first[:, 0 if is_linear(model) else n_columns(model) :], *others


def check_kernel(model: AnyEstimator) -> None:
    """Raise ValueError unless the kernel and the support rows that a file had go together."""
    if is_linear(model) == hasattr(model, "_support"):
        raise ValueError("support rows must be those of a kernel")
    if callable(model.kernel) != isinstance(model._function, PrecomputedKernel):
        raise ValueError("the kernel must be callable where it is in the file, and only there")
    n_features = getattr(model, "n_features_in_", None)
    if n_features is None if is_linear(model) else model._support.rows.shape[1:] not in ((), (n_features,)):
        raise ValueError("rows must have the features of the model")


def row_scores(model: AnyEstimator, rows: RowFeatures) -> FloatArray:
    """Return the scores of rows, one column for each column of coefficients, block by block."""
    support = model._support
    out = np.zeros((rows.shape[0], support.coefficients.shape[1]))
    step = max(1, _BLOCK // max(1, len(support.numbers)))
    for first in range(0, len(out) if len(support.numbers) else 0, step):
        block = _values(model, _double(rows[first : first + step]), support.rows)
        out[first : first + step] = block @ support.coefficients
    return out


def prediction_rows(model: AnyEstimator, rows: RowFeatures) -> RowFeatures:
    """Return the rows for predictions: features, or with a kernel the scores that take their place."""
    return rows if is_linear(model) else row_scores(model, rows)


def _values(model: AnyEstimator, a: RowFeatures, b: RowFeatures) -> FloatArray:
    """Return the values of the kernel between rows."""
    from sklearn.metrics import pairwise  # linear models do not need it

    function = model._function
    if isinstance(function, PolynomialKernel):
        return np.asarray(pairwise.polynomial_kernel(a, b, *function))
    if isinstance(function, GaussianKernel):
        return np.asarray(pairwise.rbf_kernel(a, b, *function))
    if isinstance(function, SigmoidKernel):
        return np.asarray(pairwise.sigmoid_kernel(a, b, *function))
    return _called(model, a, b)


def _called(model: AnyEstimator, a: RowFeatures, b: RowFeatures) -> FloatArray:
    """Return the matrix of the user's kernel; raise unless it is one of numbers, in the right shape."""
    first, second = (list(x) if x.dtype == object else x for x in (a, b))
    values = cast("Callable[..., object]", model.kernel)(first, second)
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"kernel must return a matrix of numbers: {error}") from error
    if found.shape != (a.shape[0], b.shape[0]):
        raise ValueError(
            f"kernel must return a matrix of shape ({a.shape[0]}, {b.shape[0]}), one row "
            f"and column for each of its arguments, got {found.shape}."
        )
    return found


def label_coefficients(model: AnyEstimator, coefficients: FloatArray) -> FloatArray:
    """Return the coefficients of support rows in the form of `dual_coef_`, one row per label."""
    found: FloatArray = coefficients[:, : len(model.classes_)].T
    return found


def support_properties(
    by_label: Callable[[Any, FloatArray], FloatArray] = label_coefficients,
) -> tuple[property, property, property]:
    """Return the properties ``support_``, ``dual_coef_`` and ``n_support_`` of an estimator."""

    def numbers(self: AnyEstimator) -> IntArray:
        return _known_support(self, "support_").numbers

    def coefficients(self: AnyEstimator) -> FloatArray:
        return by_label(self, _known_support(self, "dual_coef_").coefficients)

    def counts(self: AnyEstimator) -> IntArray:
        found: IntArray = np.count_nonzero(
            by_label(self, _known_support(self, "n_support_").coefficients), axis=1
        )
        return found

    return (
        property(numbers, doc="Indices of the training rows with nonzero coefficients, in order."),
        property(coefficients, doc="Coefficients of the support rows for each label."),
        property(counts, doc="Number of support rows with a nonzero coefficient for each label."),
    )


def _known_support(model: AnyEstimator, name: str) -> Support:
    if not hasattr(model, "_support"):
        raise AttributeError(
            f"{type(model).__name__}: {name} needs a fitted model with a kernel other than 'linear'; a "
            "linear model has coef_."
        )
    return model._support


def _double(rows: RowFeatures) -> RowFeatures:
    """Return the features as float64, in which values of kernels are computed; objects stay what they are."""
    return rows if rows.dtype == object else rows.astype(np.float64, copy=False)


def row_dtype(X: object) -> type[np.floating]:
    """Return float32 if all arrays of features are of this type, else float64: the type of kernel values."""
    parts = [X] if hasattr(X, "dtype") else list(X) if isinstance(X, list | tuple) else []
    arrays = [part[0] if isinstance(part, tuple) and part else part for part in parts]
    is_single = bool(arrays) and all(getattr(array, "dtype", None) == np.float32 for array in arrays)
    return np.float32 if is_single else np.float64
