r"""The examples of an estimator: their weights, and those kept for `partial_fit`.

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

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.joined import joined
from maxmargin.encoding.labels import Labels
from maxmargin.history import Measurement
from maxmargin.result import Result
from maxmargin.wording import described, quoted, shown

# Users' data, part by part: X, y and, for some estimators, one more part.
Parts = tuple[object, ...]
Data = TypeVar("Data", bound=tuple[object, ...])


class Examples(NamedTuple, Generic[Data]):
    """Encoded examples.

    Attributes
    ----------
    data : tuple
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


def appended(seen: Seen[Data] | None, new: Examples[Data]) -> Examples[Data]:
    """Return the examples of earlier calls followed by the new ones."""
    if seen is None:
        return new
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


def weighed(parts: Parts, sample_weight: object, owner: str) -> tuple[Parts, FloatArray | None]:
    """Return the examples of positive weight, given part by part, and their weights; None if all are one."""
    if sample_weight is None:
        return parts, None
    parts = listed(parts)
    weights = _checked_weights(sample_weight, parts, owner)
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise ValueError(f"{owner}: sample_weight must have a number > 0, got zeros only.")
    if len(kept) == len(weights):
        return parts, weights
    return tuple(_taken(part, kept) for part in parts), weights[kept]


def _checked_weights(sample_weight: object, parts: Parts, owner: str) -> FloatArray:
    """Return the weights as an array, if they are finite, not negative, and one per example."""
    given = [part for part in parts if part is not None]
    shape = getattr(given[0], "shape", ())
    n = shape[0] if shape else len(given[0])  # type: ignore[arg-type]
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    weights: FloatArray = check_array(
        _numbers(sample_weight, "sample_weight must have one number for each example", owner),
        ensure_2d=False,
        dtype=np.float64,
        copy=True,
        input_name="sample_weight",
    )
    if weights.ndim != 1:
        raise ValueError(f"{owner}: Sample weights must be 1D array or scalar, got shape {weights.shape}.")
    if len(weights) != n:
        raise ValueError(f"{owner}: sample_weight.shape == {weights.shape}, expected {(n,)}!")
    check_consistent_length(*given)
    negative = np.flatnonzero(weights < 0.0)
    if len(negative):
        i = negative[0]
        raise ValueError(f"{owner}: sample_weight must be >= 0, got {weights[i]} for example {i}.")
    return weights


def _numbers(values: object, expected: str, owner: str) -> FloatArray:
    """Return an array of float64; raise if values are not numbers, or not as many in each row."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner}: {expected}, got {described(values)}: {error}") from None


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


def label_weights(
    class_weight: str | Mapping[object, float],
    classes: Labels,
    codes: IntArray,
    weights: FloatArray | None,
    owner: str,
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
            f"{owner}: class_weight has the label {quoted(unknown[0])}, which is not in y; labels are "
            f"{quoted(names)}."
        )
    chosen = [class_weight.get(label, 1.0) for label in names]
    found = _numbers(chosen, "class_weight must have a number for each label", owner)
    bad = np.flatnonzero(~((found > 0.0) & (found < np.inf)))
    if len(bad):
        raise ValueError(
            f"{owner}: class_weight must be finite and > 0, got {found[bad[0]]} for {names[bad[0]]!r}."
        )
    return found


def check_margins_rescaled(class_weight: object, rescaling: str, owner: str) -> None:
    """Raise if classes are weighted and slacks rescaled: the oracle for slacks only counts wrong labels."""
    if rescaling == "slack":
        raise ValueError(
            f"{owner}: class_weight must be None where rescaling is 'slack', got {described(class_weight)}; "
            "leave it out, or use rescaling='margin'."
        )


def check_fixed(class_weight: object, owner: str) -> None:
    """Raise if the weights of classes would change with every call of `partial_fit`."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"{owner}: class_weight must be None or a dict for partial_fit, got {shown(class_weight)}, whose "
            "weights would change with every call."
        )


def per_weight(row: Measurement, mean: float) -> Measurement:
    """Return a certificate of the solver's objective in units of the estimator's objective."""
    return row._replace(primal=row.primal / mean, dual=row.dual / mean, gap=row.gap / mean)
