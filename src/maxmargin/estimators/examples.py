r"""The examples of an estimator: their weights, those kept for `partial_fit`, and what partitions teach.

With weights :math:`c_i` of sum S all estimators minimise

.. math:: \frac{1}{2 C S} \|w\|^2 + \frac1S \sum_i c_i \max_y H_i(y; w) ,

the mean over S examples if each occurred :math:`c_i` times: an example of weight two is one that occurs
twice, at the same C and the same tol. The minimum is that of :math:`\frac12 \|w\|^2 + C \sum_i c_i \max_y
H_i(y; w)`, as scikit-learn weights examples. The solver minimises S / n times this objective, the problem
with weights :math:`c_i` at :math:`\lambda = 1 / (C n)`, so that more examples do not change the weights of
earlier ones.

`weighed` drops examples of weight zero before anything else reads the data: they cost nothing, and contribute
no label, feature or edge. `Examples.numbers` keeps what the caller's numbers of the remaining rows are.
"""

from collections.abc import Iterator, Mapping, Sequence, Sized
from numbers import Real
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array, check_consistent_length

from maxmargin.encoding.kinds import PIECE, is_empty, joined, pieces
from maxmargin.encoding.labels import Labels
from maxmargin.runtime.arrays import FloatArray, IntArray, ValueArray
from maxmargin.runtime.wording import caller, described, quoted, shown
from maxmargin.solving.result import Measurement, Result

# Users' data, part by part: X, y and, for some estimators, one more part.
Parts = tuple[object, ...]
Data = TypeVar("Data", bound=tuple[object, ...])


# The objective to which tol refers is at least this, in units of the loss: on separable data it tends to zero
# as C grows, long after predictions stop changing.
FLOOR = 0.01


class Examples(NamedTuple, Generic[Data]):
    """Encoded examples.

    Attributes
    ----------
    data : tuple
        The features, the true states of all parts, and what else the problem needs.
    weights : ndarray of float64 or None
        The weight of each example; None if all are one.
    numbers : ndarray of int64 or None
        The number of each row (example, token or node) in the caller's data of all calls, and how many rows
        there are at the end; None if no row is left out.
    """

    data: Data
    weights: FloatArray | None
    numbers: IntArray | None = None

    @property
    def number(self) -> int:
        """The number of examples."""
        first = self.data[0]
        if hasattr(first, "offsets"):
            return len(first.offsets) - 1
        return len(first) if isinstance(first, list) else int(first.shape[0])  # type: ignore[attr-defined]

    @property
    def states(self) -> IntArray:
        """The true states of all parts."""
        found: IntArray = np.ravel(cast("IntArray", self.data[1]))
        return found

    @property
    def mean_weight(self) -> float:
        """S / n."""
        return 1.0 if self.weights is None else float(self.weights.mean())

    def numbered(self, counts: IntArray, kept: IntArray) -> Self:
        """Return the examples, which are the ``kept`` ones of those with ``counts`` rows, with numbers."""
        if len(kept) == len(counts):
            return self
        is_kept = np.zeros(len(counts), dtype=np.bool_)
        is_kept[kept] = True
        numbers = np.append(np.flatnonzero(np.repeat(is_kept, counts)), counts.sum())
        return self._replace(numbers=numbers if self.numbers is None else numbers[self.numbers])

    def _all_numbers(self) -> IntArray:
        """Return the numbers, of all rows if none is left out."""
        if self.numbers is not None:
            return self.numbers
        offsets = getattr(self.data[0], "offsets", None)
        return np.arange(1 + (self.number if offsets is None else int(offsets[-1])))


class Seen(NamedTuple, Generic[Data]):
    """The examples of `partial_fit`, where it stopped, and the parameters that determine what it learns."""

    examples: Examples[Data]
    result: Result
    parameters: dict[str, object]


def appended(seen: Seen[Data], new: Examples[Data]) -> Examples[Data]:
    """Return the examples of earlier calls followed by the new ones."""
    old, weights = seen.examples, None
    if old.weights is not None or new.weights is not None:
        parts = (np.ones(part.number) if part.weights is None else part.weights for part in (old, new))
        weights = np.concatenate(list(parts))
    numbers = None
    if old.numbers is not None or new.numbers is not None:
        before = old._all_numbers()
        numbers = np.append(before[:-1], before[-1] + new._all_numbers())
    return Examples(joined(old.data, new.data), weights, numbers)


def listed(parts: Parts) -> Parts:
    """Return users' data, with lists instead of iterators, which could be read only once."""
    return tuple(list(part) if isinstance(part, Iterator) else part for part in parts)


def weighed(parts: Parts, sample_weight: object) -> tuple[Parts, FloatArray | None]:
    """Return the examples of positive weight, given part by part, and their weights; None if all are one."""
    if sample_weight is None:
        return parts, None
    parts = listed(parts)
    weights = _checked_weights(sample_weight, parts)
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise ValueError("sample_weight must have a number > 0, got zeros only.")
    if len(kept) == len(weights):
        return parts, weights
    return tuple(_taken(part, kept) for part in parts), weights[kept]


def _checked_weights(sample_weight: object, parts: Parts) -> FloatArray:
    """Return the weights as an array, if they are finite, not negative, and one per example."""
    given = [part for part in parts if part is not None]
    shape = getattr(given[0], "shape", ())
    n = shape[0] if shape else len(given[0])  # type: ignore[arg-type]
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    weights: FloatArray = check_array(
        _numbers(sample_weight, "sample_weight must have one number for each example"),
        ensure_2d=False,
        dtype=np.float64,
        copy=True,
        input_name="sample_weight",
    )
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got shape {weights.shape}.")
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}!")
    check_consistent_length(*given)
    negative = np.flatnonzero(weights < 0.0)
    if len(negative):
        i = negative[0]
        raise ValueError(f"sample_weight must be >= 0, got {weights[i]} for example {i}.")
    return weights


def _numbers(values: object, expected: str) -> FloatArray:
    """Return an array of float64; raise if values are not numbers, or not as many in each row."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}, got {described(values)}: {error}") from None


def _taken(part: object, kept: IntArray) -> object:
    """Return some of the examples of a part: of a frame, an array, a sparse matrix or a list."""
    if part is None:
        return None
    if hasattr(part, "iloc"):
        return part.iloc[kept]
    if hasattr(part, "shape"):
        return part[kept]  # type: ignore[index]
    items: Sequence[object] = part if isinstance(part, Sequence) else list(part)  # type: ignore[call-overload]
    return [items[i] for i in kept.tolist()]


def present_weights(weights: FloatArray | None, lengths: IntArray) -> FloatArray | None:
    """Return the weights of the examples that are not empty."""
    return None if weights is None else weights[lengths > 0]


def is_none(X: object) -> bool:
    """Return whether X is a list, or another collection, without examples."""
    return isinstance(X, Sized) and is_empty(X)


def n_rows(features: object) -> int:
    """Return the number of rows of features; zero for what has none."""
    shape = getattr(features, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else 0
    return len(features) if isinstance(features, Sized) else 0


def check_width(what: str, n_features: int, known: int) -> None:
    """Raise unless the data have the number of features seen in `fit`."""
    if n_features != known:
        raise ValueError(
            f"{what} of X have {n_features} features, but {caller()} was fitted with {known}; give the "
            "features that were given to fit."
        )


def label_weights(
    class_weight: str | Mapping[object, float], classes: Labels, codes: IntArray, weights: FloatArray | None
) -> FloatArray:
    """Return the weight of each class; balanced weights give each class the same total in ``codes``."""
    if isinstance(class_weight, str):
        counts = np.bincount(codes, weights, minlength=len(classes))
        balanced: FloatArray = counts.sum() / (len(classes) * counts)
        return balanced
    names = classes.tolist()
    unknown = [label for label in class_weight if label not in names]
    if unknown and any(label not in class_weight for label in names):
        raise ValueError(
            f"class_weight has the label {quoted(unknown[0])}, which is not in y; labels are {quoted(names)}."
        )
    chosen = [class_weight.get(label, 1.0) for label in names]
    found = _numbers(chosen, "class_weight must have a number for each label")
    bad = np.flatnonzero(~((found > 0.0) & (found < np.inf)))
    if len(bad):
        raise ValueError(f"class_weight must be finite and > 0, got {found[bad[0]]} for {names[bad[0]]!r}.")
    return found


def class_costs(
    model: Any, examples: Examples[Data], labels: IntArray, counts: FloatArray | None = None
) -> FloatArray | None:
    """Return the factor of the loss of a wrong label of a row, by the true label; ``counts`` weigh rows."""
    if model.class_weight is None:
        return None
    if model.rescaling == "slack":  # the oracle for slacks only counts wrong labels
        raise ValueError(
            f"class_weight must be None where rescaling is 'slack', got {described(model.class_weight)}; "
            "leave it out, or use rescaling='margin'."
        )
    weights = weights_of_rows(examples)
    if counts is not None:
        weights = counts if weights is None else counts * weights
    return label_weights(model.class_weight, model.classes_, labels, weights)


def check_fixed(class_weight: object) -> None:
    """Raise if the weights of classes would change with every call of `partial_fit`."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight must be None or a dict for partial_fit, got {shown(class_weight)}, whose "
            "weights would change with every call."
        )


def per_weight(row: Measurement, mean: float) -> Measurement:
    """Return a certificate of the solver's objective in units of the estimator's objective."""
    return row._replace(primal=row.primal / mean, dual=row.dual / mean, gap=row.gap / mean)


# Scores of predictions, which compare labels of one kind only.


def check_kind(label: object, classes: Labels) -> None:
    """Raise if a true label is a string and the predicted labels are numbers, or the other way round."""
    label, known = label.item() if isinstance(label, np.generic) else label, classes.tolist()[0]
    if isinstance(label, str) != isinstance(known, str):
        raise TypeError(
            f"y has the label {described(label)}, but {caller()} was fitted with labels such as "
            f"{described(known)}; give labels of the same kind."
        )


class Tally(NamedTuple):
    """What examples add to a score, an entry for each: how much there is, and how much of it is right."""

    right: FloatArray
    total: FloatArray

    def share(self, sample_weight: object) -> float:
        """Return how much is right of all, by the weights of examples; 1 if there is nothing."""
        kept, weights = weighed(self, sample_weight)
        factors = np.array(1.0) if weights is None else weights
        right, total = (np.asarray(part, np.float64) * factors for part in kept)
        whole = float(total.sum())
        return float(right.sum()) / whole if whole else 1.0


def tally(right: NDArray[np.bool_], offsets: IntArray) -> Tally:
    """Return how many parts there are, and are right; ``offsets`` say where those of each example begin."""
    before = np.append(0, np.cumsum(right))[offsets]
    return Tally(np.diff(before).astype(np.float64), np.diff(offsets).astype(np.float64))


# The scales of features: their variance, and advice for a run that does not converge.

# Columns whose scales differ by this factor are worth a warning.
_SPREAD = 100.0
# A variance that is a smaller fraction of the mean square may be pure rounding error.
_ROUNDING = 1e-12


def total_variance(rows: ValueArray | csr_array, weights: FloatArray | None) -> float:
    """Return the sum of the variances of all columns, with weights of rows; zero if rows are all alike."""
    shares = np.full(rows.shape[0], 1.0 / rows.shape[0]) if weights is None else weights / weights.sum()
    with np.errstate(over="ignore"):
        mean, mean_square = np.zeros(rows.shape[1]), 0.0
        for piece in _pieces(rows):
            some = rows[piece].astype(np.float64)
            mean += shares[piece] @ some
            mean_square += float((shares[piece] @ _squared(some)).sum())
        variance = mean_square - float(np.square(mean).sum())
    return variance if variance > _ROUNDING * mean_square else 0.0


def mean_variance(rows: ValueArray | csr_array) -> float:
    """Return the variance of all entries, as scikit-learn measures it for gamma="scale"."""
    total, squares, size = 0.0, 0.0, rows.shape[0] * rows.shape[1]
    for piece in _pieces(rows):
        some = rows[piece].astype(np.float64)
        total, squares = total + some.sum(), squares + _squared(some).sum()
    return float(squares / size - (total / size) ** 2)


def _pieces(rows: ValueArray | csr_array) -> Iterator[slice]:
    """Yield slices of rows, so that temporary arrays computed from them stay small."""
    width = rows.shape[1] if isinstance(rows, np.ndarray) else rows.nnz // max(1, rows.shape[0])
    return pieces(rows.shape[0], width)


def _squared(some: FloatArray | csr_array) -> FloatArray | csr_array:
    return np.square(some) if isinstance(some, np.ndarray) else some.multiply(some)


def scale_advice(examples: object) -> str:
    """Return advice on encoded features whose scales differ widely; empty if they are similar.

    Steps are as long as the largest features allow, so that the weights of small ones hardly move.
    """
    scales = _column_scales(examples)
    if not len(scales) or not (scales.max() > _SPREAD * scales.min()):
        return ""
    return (
        f"; the root mean squares of the columns of X range from {scales.min():.2g} to {scales.max():.2g}, "
        "which makes training slow: scale X, for example by sklearn's StandardScaler; for sequences and "
        "graphs, wrap it in maxmargin.TokenTransformer"
    )


def _column_scales(examples: object) -> FloatArray:
    """Return the root mean square of the nonzero entries of each column that has any."""
    matrix = _matrix(examples)
    if isinstance(matrix, np.ndarray) and matrix.ndim == 2:
        squares, counts = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], dtype=np.int64)
        for piece in pieces(*matrix.shape):
            squares += np.square(matrix[piece], dtype=np.float64).sum(axis=0)
            counts += np.count_nonzero(matrix[piece], axis=0)
    elif issparse(matrix):
        rows: csr_array = matrix if matrix.format == "csr" else csr_array(matrix)  # type: ignore[attr-defined, assignment]
        squares, counts = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
        step = max(PIECE, rows.shape[1])
        for first in range(0, len(rows.data), step):
            columns, values = rows.indices[first : first + step], rows.data[first : first + step]
            squares += np.bincount(columns, np.square(values, dtype=np.float64), rows.shape[1])
            counts += np.bincount(columns, values != 0.0, rows.shape[1])
    else:  # zeros and ones, or objects
        return np.zeros(0)
    used = counts > 0
    scales: FloatArray = np.sqrt(squares[used] / counts[used])
    return scales


def rows_of(examples: Examples[Data]) -> ValueArray | csr_array:
    """Return the features of the rows (examples, tokens, nodes or arcs) of encoded examples."""
    return _matrix(examples.data[0])  # type: ignore[return-value]


def weights_of_rows(examples: Examples[Data]) -> FloatArray | None:
    """Return the weight of each row: that of its example; None if all weights are one."""
    offsets, weights = getattr(examples.data[0], "offsets", None), examples.weights
    return weights if weights is None or offsets is None else np.repeat(weights, np.diff(offsets))


def _matrix(data: object) -> object:
    """Return the matrix of the features of examples, tokens, nodes, arcs or links, as they were encoded."""
    for name in ("rows", "nodes", "by_link", "features"):
        if hasattr(data, name):
            return getattr(data, name)
    return data


NO_LABELS: Labels = np.zeros(0, dtype=np.int64)


class Moments(NamedTuple):
    """Sums over rows: of weights, of weighted squares, and of weighted features."""

    weight: float
    squares: float
    features: FloatArray

    @property
    def variance(self) -> float:
        """The sum of the variances of all columns."""
        return self.squares / self.weight - float(np.square(self.features / self.weight).sum())


class Lesson(NamedTuple):
    """What one or more partitions teach.

    Attributes
    ----------
    numbers : dict
        The number of examples of each partition.
    weight : float
        The sum of their weights.
    labels : array
        All labels, sorted.
    names : dict or None
        In how many rows each feature occurs, in the order of first appearance; None if features are columns.
    attributes : dict
        What validation sets on an estimator.
    moments : Moments or None
        Sums, where C depends on them.
    largest : dict
        Numbers of which the largest counts: the longest segments by label, whether a graph has cycles.
    """

    numbers: dict[int, int]
    weight: float
    labels: Labels = NO_LABELS
    names: dict[str, int] | None = None
    attributes: dict[str, Any] = {}  # noqa: RUF012 (defaults of a named tuple; nobody changes them)
    moments: Moments | None = None
    largest: dict[object, int] = {}  # noqa: RUF012

    @property
    def number(self) -> int:
        """The number of examples."""
        return sum(self.numbers.values())


def lesson_of(examples: Examples[Data], labels: Labels = NO_LABELS, *, scaled: bool = False) -> Lesson:
    """Return the lesson of encoded examples, with sums over rows if C is ``scaled`` by them."""
    n = examples.number
    moments = moments_of(rows_of(examples), weights_of_rows(examples)) if scaled else None
    return Lesson({0: n}, n * examples.mean_weight, labels, moments=moments)


def moments_of(rows: ValueArray | csr_array, weights: FloatArray | None) -> Moments:
    """Return the sums of weighted rows."""
    given = np.ones(rows.shape[0]) if weights is None else weights
    square = rows.multiply(rows) if isinstance(rows, csr_array) else np.square(rows)
    return Moments(float(given.sum()), float((given @ square).sum()), np.asarray(given @ rows))
