"""Kernels of estimators: the parameters of scikit-learn's `SVC`, and scores from support rows."""

from collections.abc import Callable, Sequence, Sized
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast, get_type_hints

import numpy as np
from scipy.sparse import csr_array, issparse

from maxmargin.encoding.matrices import checked_csr
from maxmargin.encoding.sequences import as_objects
from maxmargin.estimators.estimator import Call, MaxMarginEstimator, Output
from maxmargin.estimators.examples import Data, Examples, Parts, mean_variance
from maxmargin.estimators.fields import COUNT, Field, Fields
from maxmargin.estimators.problems import Problem, kernel_weights, kernelised
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import quoted
from maxmargin.structures.kernel_functions import (
    GaussianKernel,
    LinearKernel,
    PolynomialKernel,
    PrecomputedKernel,
    SigmoidKernel,
)

# Support rows of models with a kernel, and how they and the kernel are stored.

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
    texts = as_objects(stored.take_texts(name), name)
    if kind != "texts" or len(texts) != n:
        stored.fail(f"{n} 'dense' or 'sparse' rows or 'texts' for {name!r}", f"{len(texts)} {quoted(kind)}")
    return texts


KERNEL = Field(_write_kernel, _read_kernel)
SUPPORT = Field(_write_support, _read_support)


# Number of kernel values between test rows and support rows that are computed at a time.
_BLOCK = 4_000_000


class NotLinear(AttributeError, ValueError):
    """A model with a kernel has no feature weights; both kinds of error, as scikit-learn's NotFittedError."""


class KernelEstimator(MaxMarginEstimator[Data, Output]):
    """Base of the estimators that may have a kernel of rows: of examples, tokens or nodes."""

    kernel: str | Callable[..., object]
    degree: int
    gamma: str | float
    coef0: float
    cache_size: float
    _function: Function
    _dtype: type[np.floating]
    _support: Support

    _shared_texts: ClassVar[dict[str, str]] = {
        "support": """
            support_, dual_coef_, n_support_ : arrays of shapes (n_support,), (m, n_support) and (m,)
                Indices of the training %(rows)s with nonzero coefficients, among all that were given; these
                coefficients, and their number for each label; only with a kernel other than "linear". m is
                the number of labels.
            """,
    }
    # With a kernel of users' own objects, there is no number of features.
    _fitted: ClassVar[Fields] = {
        "n_features_in_": COUNT.or_unset(),
        "_function": KERNEL,
        "_support": SUPPORT.or_unset(),
    }

    @property
    def _is_linear(self) -> bool:
        return isinstance(self._function, LinearKernel)

    def _validate(self, parts: Parts, call: Call) -> Parts:
        if call.first:
            self._dtype = row_dtype(parts[0])
        return super()._validate(parts, call)

    def _learn_kernel(self, rows: RowFeatures) -> None:
        """Fix the parameters of the kernel, which may depend on the first examples."""
        self.__dict__.pop("_support", None)  # what an earlier fit kept
        gamma = 0.0 if self.kernel == "linear" or callable(self.kernel) else self._gamma(rows)
        if callable(self.kernel):
            self._function = PrecomputedKernel(bool(getattr(self.kernel, "semidefinite", False)))
        elif self.kernel == "rbf":
            self._function = GaussianKernel(gamma)
        elif self.kernel == "poly":
            self._function = PolynomialKernel(int(self.degree), gamma, float(self.coef0))
        elif self.kernel == "sigmoid":
            self._function = SigmoidKernel(gamma, float(self.coef0))
        else:
            self._function = LinearKernel()

    def _gamma(self, rows: RowFeatures) -> float:
        """Return gamma as `SVC` defines it."""
        n_features = rows.shape[1]
        if self.gamma == "auto":
            return 1.0 / n_features
        if self.gamma != "scale":
            return float(self.gamma)
        variance = mean_variance(rows)
        return 1.0 / (n_features * variance) if variance > 0.0 else 1.0

    def _linear_rows(self, rows: RowFeatures) -> RowFeatures:
        """Return the features that stay linear: all, or none if there is a kernel."""
        return rows if self._is_linear else np.zeros((rows.shape[0], 0))

    def _with_kernel(self, problem: Problem, rows: RowFeatures, *, by_example: bool = False) -> Problem:
        """Return the problem with the kernel, if there is one; ``by_example`` if an example is one row."""
        if self._is_linear:
            return problem
        double = _double(rows) if callable(self.kernel) else rows
        features = self._values(double, double) if callable(self.kernel) else rows
        return kernelised(
            problem, features, self._function, self.cache_size, self._dtype, by_example, self._owner
        )

    def _row_counts(self, X: object) -> IntArray | None:
        return None if self.kernel == "linear" else np.array(self._counted_rows(X), dtype=np.int64)

    def _counted_rows(self, X: object) -> Sequence[int]:
        """Hook: return the number of rows of each example, which may be wrong; one, if examples are rows."""
        return [1] * n_rows(X)

    def _keep_support(
        self, problem: Problem, examples: Examples[Data], rows: RowFeatures, w: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Keep support rows and weights for prediction; return the weights of parts without kernel."""
        if self._is_linear:
            self._w = w
            return problem.unpack(w)
        linear, parts, coefficients = kernel_weights(problem, w)
        numbers = np.flatnonzero(coefficients.any(axis=1))
        known = numbers if examples.numbers is None else examples.numbers[numbers]
        self._support = Support(_double(rows[numbers]), known, coefficients[numbers])
        # In predictions, the scores of rows are their features, each the score of one label.
        self._w = np.concatenate([np.eye(self._score_columns(coefficients)).ravel(), linear])
        return parts

    @property
    def _n_columns(self) -> int:
        """Number of the features, or of the scores that take their place in predictions."""
        return self.n_features_in_ if self._is_linear else self._score_columns(self._support.coefficients)

    def _linear_parts(self) -> tuple[FloatArray, ...]:
        """Return the weights by meaning. The first are of rows; those of a kernel's scores are left out."""
        first, *others = self._layout().unpack(self._w)
        return first[:, 0 if self._is_linear else self._n_columns :], *others

    def _check_restored(self) -> None:
        super()._check_restored()
        if self._is_linear == hasattr(self, "_support"):
            raise ValueError("support rows must be those of a kernel")
        if callable(self.kernel) != isinstance(self._function, PrecomputedKernel):
            raise ValueError("the kernel must be callable where it is in the file, and only there")
        n_features = getattr(self, "n_features_in_", None)
        if n_features is None if self._is_linear else self._support.rows.shape[1:] not in ((), (n_features,)):
            raise ValueError("rows must have the features of the model")

    def _score_columns(self, coefficients: FloatArray) -> int:
        """Hook: return the number of scores that a row has in predictions."""
        return int(coefficients.shape[1])

    def _row_scores(self, rows: RowFeatures) -> FloatArray:
        """Return the scores of rows, one column for each column of coefficients, block by block."""
        support = self._support
        out = np.zeros((rows.shape[0], support.coefficients.shape[1]))
        step = max(1, _BLOCK // max(1, len(support.numbers)))
        for first in range(0, len(out) if len(support.numbers) else 0, step):
            block = self._values(_double(rows[first : first + step]), support.rows)
            out[first : first + step] = block @ support.coefficients
        return out

    def _prediction_rows(self, rows: RowFeatures) -> RowFeatures:
        """Return the rows for predictions: features, or with a kernel the scores that take their place."""
        return rows if self._is_linear else self._row_scores(rows)

    def _values(self, a: RowFeatures, b: RowFeatures) -> FloatArray:
        """Return the values of the kernel between rows."""
        from sklearn.metrics import pairwise  # linear models do not need it

        function = self._function
        if isinstance(function, PolynomialKernel):
            return np.asarray(pairwise.polynomial_kernel(a, b, *function))
        if isinstance(function, GaussianKernel):
            return np.asarray(pairwise.rbf_kernel(a, b, *function))
        if isinstance(function, SigmoidKernel):
            return np.asarray(pairwise.sigmoid_kernel(a, b, *function))
        return self._called(a, b)

    def _called(self, a: RowFeatures, b: RowFeatures) -> FloatArray:
        """Return the matrix of the user's kernel; raise unless it is one of numbers, in the right shape."""
        first, second = (list(x) if x.dtype == object else x for x in (a, b))
        values = cast("Callable[..., object]", self.kernel)(first, second)
        try:
            found = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self._owner}: kernel must return a matrix of numbers: {error}") from error
        if found.shape != (a.shape[0], b.shape[0]):
            raise ValueError(
                f"{self._owner}: kernel must return a matrix of shape ({a.shape[0]}, {b.shape[0]}), one row "
                f"and column for each of its arguments, got {found.shape}."
            )
        return found

    @property
    def support_(self) -> IntArray:
        """Indices of the training rows with nonzero coefficients, in order."""
        return self._known_support("support_").numbers

    @property
    def dual_coef_(self) -> FloatArray:
        """Coefficients of the support rows for each label."""
        return self._label_coefficients(self._known_support("dual_coef_").coefficients)

    @property
    def n_support_(self) -> IntArray:
        """Number of support rows with a nonzero coefficient for each label."""
        coefficients = self._label_coefficients(self._known_support("n_support_").coefficients)
        found: IntArray = np.count_nonzero(coefficients, axis=1)
        return found

    def _label_coefficients(self, coefficients: FloatArray) -> FloatArray:
        """Hook: return the coefficients of support rows in the form of `dual_coef_`, one row per label."""
        found: FloatArray = coefficients[:, : len(self.classes_)].T
        return found

    def _known_support(self, name: str) -> Support:
        if not hasattr(self, "_support"):
            raise AttributeError(
                f"{self._owner}: {name} needs a fitted model with a kernel other than 'linear'; a linear "
                "model has coef_."
            )
        return self._support

    def _check_linear(self, name: str) -> None:
        """Raise the error of an attribute that only a linear model has."""
        if not self._is_linear:
            raise NotLinear(f"{self._owner}: {name} is only available when using a linear kernel.")


def _double(rows: RowFeatures) -> RowFeatures:
    """Return the features as float64, in which values of kernels are computed; objects stay what they are."""
    return rows if rows.dtype == object else rows.astype(np.float64, copy=False)


def n_rows(features: object) -> int:
    """Return the number of rows of features; zero for what has none."""
    shape = getattr(features, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else 0
    return len(features) if isinstance(features, Sized) else 0


def row_dtype(X: object) -> type[np.floating]:
    """Return float32 if all arrays of features are of this type, else float64: the type of kernel values."""
    parts = [X] if hasattr(X, "dtype") else list(X) if isinstance(X, list | tuple) else []
    arrays = [part[0] if isinstance(part, tuple) and part else part for part in parts]
    is_single = bool(arrays) and all(getattr(array, "dtype", None) == np.float32 for array in arrays)
    return np.float32 if is_single else np.float64
