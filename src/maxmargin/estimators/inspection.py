"""What a model has learnt: its weights by name, the largest of them, and the same as DataFrames.

Every estimator lists its weights as `WeightTable`s, which name the weights. Lists of the largest weights need
no pandas: `largest_features` and `largest_transitions` return named tuples.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators.state import Estimator, snapshot
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import quoted
from maxmargin.solving.result import as_frame
from maxmargin.structures.questions import check_k

if TYPE_CHECKING:
    from pandas import DataFrame

    from maxmargin.estimators.structure import AnyEstimator


# The features of a table whose weights do not depend on any.
NO_FEATURE: tuple[None] = (None,)
# The labels of a table of a model without labels.
NO_LABEL: tuple[None] = (None,)
_MOST_NAMED = 10


class FeatureWeight(NamedTuple):
    """The weight of a feature for a label.

    Attributes
    ----------
    kind : str
        What the feature is a feature of, such as "token" or "node"; or "intercept".
    feature : object
        Its name; its column index if it has no name; None for an intercept.
    label : object
        None if the model has no labels.
    weight : float
    """

    kind: str
    feature: object
    label: object
    weight: float


class TransitionWeight(NamedTuple):
    """The weight of labels that occur together: one after another, or at the ends of an edge.

    Attributes
    ----------
    kind : str
        Such as "transition" or "edge".
    feature : object
        The feature of the edge; None if there is none.
    before, after : object
        The labels; None for the start or the end of a sequence. In a trigram, ``before`` is a pair of labels.
    weight : float
    """

    kind: str
    feature: object
    before: object
    after: object
    weight: float


@runtime_checkable
class Names(Protocol):
    """Names of features that are made on demand, many at a time."""

    def of(self, rows: list[int]) -> Sequence[object]:
        """Return the names of some features."""


class WeightTable(NamedTuple):
    """Weights of one kind, by name.

    Attributes
    ----------
    kind : str
    features : sequence
        The names of the rows.
    labels : sequence
        The names of the columns; for labels that occur together, tuples of them.
    weights : array of shape (n_features, n_labels)
    """

    kind: str
    features: Sequence[object]
    labels: Sequence[Any]
    weights: FloatArray


def joint_table(kind: str, weights: FloatArray, *labels: Sequence[object]) -> WeightTable:
    """Return the table of weights of labels that occur together, one axis of ``weights`` for each."""
    return WeightTable(kind, NO_FEATURE, list(itertools.product(*labels)), weights.reshape(1, -1))


def ranked(
    tables: Sequence[WeightTable], measure: Callable[[FloatArray], FloatArray], k: int | None = None
) -> list[FeatureWeight]:
    """Return the k nonzero weights, or all, of largest measure, the largest first."""
    places = [np.nonzero(table.weights) for table in tables]
    values = np.concatenate([table.weights[place] for table, place in zip(tables, places, strict=True)])
    stops = np.cumsum([len(rows) for rows, _ in places])
    order = _largest(measure(values), k)
    owners, taken = np.searchsorted(stops, order, side="right"), []
    found: list[FeatureWeight] = []
    for t, (table, (rows, columns)) in enumerate(zip(tables, places, strict=True)):
        mine = np.flatnonzero(owners == t)
        at = order[mine] - (stops[t] - len(rows))
        names = _named(table.features, rows[at].tolist())
        labels = [table.labels[column] for column in columns[at].tolist()]
        found += map(FeatureWeight, itertools.repeat(table.kind), names, labels, values[order[mine]].tolist())
        taken.append(mine)
    return [found[place] for place in np.argsort(np.concatenate(taken)).tolist()]


def _named(features: Sequence[object], rows: list[int]) -> Sequence[object]:
    """Return the names of some rows; names that must be looked up are looked up together."""
    return features.of(rows) if isinstance(features, Names) else [features[row] for row in rows]


def _largest(values: FloatArray, k: int | None) -> IntArray:
    """Return the indices of the k largest values, or of all, the largest first; ties go to the first."""
    if k is None or k >= len(values):
        return np.argsort(-values, kind="stable")
    # A partition is much faster than sorting millions of weights.
    least = np.partition(values, len(values) - k)[len(values) - k]
    enough = np.flatnonzero(values >= least)
    return enough[np.argsort(-values[enough], kind="stable")[:k]]


def by_name(tables: Sequence[WeightTable]) -> dict[Any, float]:
    """Return nonzero weights, largest first, by (feature, label); by the labels if there is no feature."""
    return {
        row.label if row.feature is None else (row.feature, row.label): row.weight
        for row in ranked(tables, np.positive)
    }


def largest_features(model: "AnyEstimator", label: object = None, k: int = 10) -> list[FeatureWeight]:
    """Return the k feature weights of largest absolute value of a fitted model, for one label or all."""
    checked, tables = check_k(k), model._structure.features(model)
    return ranked(tables if label is None else _of_label(tables, label), np.abs, checked)


def largest_transitions(model: "AnyEstimator", k: int = 10) -> list[TransitionWeight]:
    """Return the k weights of labels that occur together of largest absolute value."""
    rows = ranked(model._structure.transitions(model), np.abs, check_k(k))
    return [TransitionWeight(row.kind, row.feature, *_split(row.label), row.weight) for row in rows]


def _split(labels: Any) -> tuple[object, object]:
    """Return the last of some labels, and what is before it."""
    *before, after = labels
    return before[0] if len(before) == 1 else tuple(before), after


def _of_label(tables: Iterable[WeightTable], label: object) -> list[WeightTable]:
    """Return the columns of one label."""
    known = list(dict.fromkeys(itertools.chain.from_iterable(table.labels for table in tables)))
    if label not in known:
        names = ", ".join(map(quoted, known[:_MOST_NAMED])) + (", ..." if len(known) > _MOST_NAMED else "")
        raise ValueError(f"label must be one of {names}, got {quoted(label)}.")
    found = []
    for table in tables:
        if label in table.labels:
            column = list(table.labels).index(label)
            found.append(table._replace(labels=[label], weights=table.weights[:, column : column + 1]))
    return found


@snapshot
def top_features(self: "AnyEstimator", label: object = None, k: int = 10) -> "DataFrame":
    """Return the feature weights of largest absolute value, the largest first.

    Parameters
    ----------
    label : str or int, default=None
        The label whose weights to return; by default those of all labels.
    k : int, default=10
        Number of weights, >= 1. There are fewer rows if fewer weights are not zero.

    Returns
    -------
    DataFrame
        The columns kind, feature (its name, or number), label and weight. This method needs pandas.
        %(kinds)s
    """
    return _feature_frame(self, label, k)


@snapshot
def top_features_without_labels(self: "AnyEstimator", k: int = 10) -> "DataFrame":
    """Return the feature weights of largest absolute value, the largest first.

    Parameters
    ----------
    k : int, default=10
        Number of weights, >= 1. There are fewer rows if fewer weights are not zero.

    Returns
    -------
    DataFrame
        The columns kind, feature (its name, or number), label (None, as there are no labels) and weight.
        This method needs pandas.
        %(kinds)s
    """
    return _feature_frame(self, None, k)


def _feature_frame(model: "AnyEstimator", label: object, k: int) -> "DataFrame":
    rows, columns = largest_features(model, label, k), FeatureWeight._fields
    return as_frame(rows, columns, f"{type(model).__name__}.top_features", names=columns[:-1])


@snapshot
def top_transitions(self: "AnyEstimator", k: int = 10) -> "DataFrame":
    """Return the weights of labels that occur together of largest absolute value, the largest first.

    Parameters
    ----------
    k : int, default=10
        Number of weights, >= 1. There are fewer rows if fewer weights are not zero.

    Returns
    -------
    DataFrame
        The columns kind, feature, before, after and weight. This method needs pandas.
        %(transitions)s
    """
    rows, columns = largest_transitions(self, k), TransitionWeight._fields
    return as_frame(rows, columns, f"{type(self).__name__}.top_transitions", names=columns[:-1])


def sparsify(self: Estimator) -> Estimator:
    """Let ``coef_`` be a sparse matrix (CSR), as after training with ``l1_ratio`` most of it is zero.

    `fit` makes it an array again. Predictions do not change.

    Returns
    -------
    self
        The fitted estimator.
    """
    check_is_fitted(self)
    self._is_sparse = True
    return self


def densify(self: Estimator) -> Estimator:
    """Let ``coef_`` be an array again, after `sparsify`.

    Returns
    -------
    self
        The fitted estimator.
    """
    check_is_fitted(self)
    self.__dict__.pop("_is_sparse", None)
    return self


def in_form(model: "AnyEstimator", coef: FloatArray) -> Any:
    """Return ``coef_`` for users: an array, or a sparse matrix after `sparsify`."""
    return csr_array(coef) if getattr(model, "_is_sparse", False) else coef


def dense(coef: Any) -> FloatArray:
    """Return ``coef_`` as an array."""
    found: FloatArray = coef.toarray() if isinstance(coef, csr_array) else coef
    return found
