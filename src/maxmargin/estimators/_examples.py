r"""Examples of estimators: how much each counts, and those kept for `partial_fit`.

With weights :math:`c_i` of sum S all estimators minimise

.. math:: \frac{1}{2 C S} \|w\|^2 + \frac1S \sum_i c_i \max_y H_i(y; w) ,

the mean over S examples if each occurred :math:`c_i` times: an example of weight two is one that occurs
twice, at the same C and the same tol. The minimum is that of :math:`\frac12 \|w\|^2 + C \sum_i c_i \max_y
H_i(y; w)`, as scikit-learn weighs examples. What is solved is S / n times that, the problem with weights
:math:`c_i` at :math:`\lambda = 1 / (C n)`, so that more examples leave weights of earlier ones as they are.

Examples of weight zero are dropped before anything is made of the data, in `weighed`: they cost nothing then,
and no label, feature or tree of labels comes from them.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.joined import joined
from maxmargin.history import Measurement
from maxmargin.problems import Weighted
from maxmargin.result import Result


class Examples(NamedTuple):
    """Encoded examples, and how much each counts; None if all count the same."""

    data: Any
    weights: FloatArray | None


class Seen(NamedTuple):
    """What `partial_fit` has trained on, where it stopped, and the parameters that say what is learnt."""

    examples: Examples
    result: Result
    parameters: dict[str, Any]


def appended(seen: Seen | None, new: Examples) -> Examples:
    """Return the examples seen and the new ones."""
    if seen is None:
        return new
    old = seen.examples
    weights = None
    if old.weights is not None or new.weights is not None:
        weights = np.concatenate([_filled(part) for part in (old, new)])
    return Examples(joined(old.data, new.data), weights)


def _filled(examples: Examples) -> FloatArray:
    """The weights, of which each is one if there are none."""
    return np.ones(n_examples(examples.data)) if examples.weights is None else examples.weights


def n_examples(data: tuple[Any, ...]) -> int:
    """Return the number of encoded examples."""
    first = data[0]
    if hasattr(first, "offsets"):
        return len(first.offsets) - 1
    return len(first) if isinstance(first, list) else int(first.shape[0])


def weighed(
    parts: tuple[Any, ...], sample_weight: Any, owner: str
) -> tuple[tuple[Any, ...], FloatArray | None]:
    """Return the examples that count, given part by part, and how much they do; None if all do the same."""
    if sample_weight is None:
        return parts, None
    given = [part for part in parts if part is not None]
    weights = _check_sample_weight(sample_weight, parts[0], dtype=np.float64, copy=True)
    check_consistent_length(*given)
    negative = np.flatnonzero(weights < 0.0)
    if len(negative):
        i = negative[0]
        raise ValueError(f"{owner}: sample_weight must be >= 0, got {weights[i]} for example {i}.")
    kept = np.flatnonzero(weights)
    if not len(kept):
        raise ValueError(f"{owner}: sample_weight must have a number > 0, got zeros only.")
    if len(kept) == len(weights):
        return parts, weights
    return tuple(None if part is None else _safe_indexing(part, kept) for part in parts), weights[kept]


def label_weights(
    class_weight: Any, classes: Any, codes: IntArray, weights: FloatArray | None, owner: str
) -> FloatArray:
    """Return the weight of each class; balanced ones make all classes count the same in ``codes``."""
    if isinstance(class_weight, str):
        counts = np.bincount(codes, weights, minlength=len(classes))
        return counts.sum() / (len(classes) * counts)
    found = compute_class_weight(class_weight, classes=classes, y=classes)
    bad = np.flatnonzero(~((found > 0.0) & (found < np.inf)))
    if len(bad):
        raise ValueError(
            f"{owner}: class_weight must be finite and > 0, got {found[bad[0]]} for {classes[bad[0]]!r}."
        )
    return np.asarray(found, dtype=np.float64)


def check_fixed(class_weight: Any, owner: str) -> None:
    """Raise if weights of classes would change with every call of `partial_fit`."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"{owner}: class_weight must be None or a dict for partial_fit, got {class_weight!r}, whose "
            "weights would change with every call."
        )


def weighted(problem: Any, weights: FloatArray | None) -> Any:
    """Return the problem with these weights of its examples."""
    return problem if weights is None else Weighted(problem, weights)


def mean_weight(problem: Any) -> float:
    """Return S / n."""
    return float(problem.weights.mean()) if isinstance(problem, Weighted) else 1.0


def per_weight(row: Measurement, mean: float) -> Measurement:
    """Return a certificate of what is solved as one of what is minimised."""
    return row._replace(primal=row.primal / mean, dual=row.dual / mean, gap=row.gap / mean)
