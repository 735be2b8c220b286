"""What partitions teach before training: labels, names of features and sums, merged in a tree.

Names are numbered in the order of their first appearance, partition after partition, as on one machine.
"""

from typing import Any, NamedTuple, cast

import dask
import numpy as np
from distributed import Client, Future
from scipy.sparse import csr_array

from maxmargin.arrays import FloatArray
from maxmargin.compiling import python_generic
from maxmargin.dask.messages import PartitionError, failed, naming
from maxmargin.dask.partitions import Source, as_examples, is_nothing
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.encoding.labels import Labels, holds_arrays
from maxmargin.estimators._base import Call, MaxMarginEstimator
from maxmargin.estimators._examples import Parts, label_weights, weighed
from maxmargin.estimators._sequences import SequenceEstimator
from maxmargin.estimators._state import twin

FIRST, NEXT = (Call(first=first, more=False, warm=False) for first in (True, False))
_FAN_IN = 4
# An estimator of the local class, as workers need it.
Prototype = MaxMarginEstimator[tuple[object, ...], object]


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
    """

    numbers: dict[int, int]
    weight: float
    labels: Labels
    names: dict[str, int] | None
    attributes: dict[str, Any]
    moments: Moments | None

    @property
    def number(self) -> int:
        """The number of examples."""
        return sum(self.numbers.values())


def learn_from(client: Client, sources: list[Source], prototype: Prototype) -> Lesson:
    """Return what all partitions teach; raise if there is no example."""
    task, merge = dask.delayed(learnt, pure=False), dask.delayed(merged, pure=False)
    shared = dask.delayed(prototype, pure=False, traverse=False)
    lessons = level = [task(p, shared, *source) for p, source in enumerate(sources)]
    while len(level) > 1:
        level = [merge(*level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
    *parts, whole = client.compute([*lessons, *level])
    try:
        found: Lesson = whole.result()
    except PartitionError:
        raise
    except Exception as error:
        raise next((failed(p, part.exception()) for p, part in _broken(parts)), error) from error
    if not found.number:
        raise ValueError(
            f"{prototype._owner}: X must have an example, got none in {len(sources)} partitions."
        )
    return found


def _broken(parts: list[Future]) -> list[tuple[int, Future]]:
    return [(p, part) for p, part in enumerate(parts) if part.status == "error"]


def learnt(p: int, prototype: Prototype, X: object, y: object, sample_weight: object) -> Lesson:
    """Task: return what a partition teaches."""
    with naming(p):
        X, y = as_examples(X, y)
        if is_nothing(X):
            return Lesson({p: 0}, 0.0, np.zeros(0, dtype=np.int64), None, {}, None)
        draft = twin(prototype, dict(vars(prototype)))
        parts, weights = weighed(draft._validate((X, y), FIRST), sample_weight, draft._owner)
        own = lesson(draft, p, parts, weights)
        new = {name: value for name, value in vars(draft).items() if name not in vars(prototype)}
        return own._replace(attributes=own.attributes | new)


@python_generic
def lesson(draft: Prototype, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what the rows of a table teach an estimator."""
    X, y = cast("tuple[FloatArray | csr_array, Labels]", parts)
    given = np.ones(len(y)) if weights is None else weights
    labels = cast("Labels", np.unique(y))
    if draft.class_weight is not None:
        codes = np.searchsorted(labels, y)
        each = label_weights(draft.class_weight, labels, codes, weights, draft._owner)
        given = np.multiply(given, each[codes])
    moments = None
    if isinstance(draft.C, str):
        square = X.multiply(X) if isinstance(X, csr_array) else np.square(X)
        moments = Moments(float(given.sum()), float((given @ square).sum()), np.asarray(given @ X))
    return Lesson({p: len(y)}, float(given.sum()), labels, None, {}, moments)


@lesson.register(SequenceEstimator)
def sequence_lesson(draft: Prototype, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return what sequences teach: names, and in how many tokens they occur."""
    X, y = parts
    encoder = SequenceEncoder(owner=draft._owner)
    tokens = encoder.fit_transform(X)
    labels = encode_labels(y, tokens.offsets, owner=draft._owner)[1]
    names = None
    if encoder.feature_names_ is not None:
        counts = np.bincount(csr_array(tokens.rows).indices, minlength=encoder.n_features_in_)
        names = dict(zip(encoder.feature_names_, counts.tolist(), strict=True))
    present = np.diff(tokens.offsets) > 0
    attributes = {
        "kind": encoder.kind_,
        "n_features_in_": encoder.n_features_in_,
        "gives_arrays": holds_arrays(y),
    }
    weight = float(present.sum() if weights is None else weights[present].sum())
    return Lesson({p: int(present.sum())}, weight, labels, names, attributes, None)


def merged(first: Lesson, *others: Lesson) -> Lesson:
    """Task: return what several partitions teach, in this order."""
    for other in others:
        first = _with(first, other)
    return first


def _with(first: Lesson, second: Lesson) -> Lesson:
    numbers = first.numbers | second.numbers
    for one, other in ((first, second), (second, first)):
        if not one.number and not one.attributes:
            return other._replace(numbers=numbers)
    _check_alike(first, second)
    names = first.names
    if names is not None and second.names is not None:
        for name, count in second.names.items():
            names[name] = names.get(name, 0) + count
    moments = None
    if first.moments is not None and second.moments is not None:
        a, b = first.moments, second.moments
        moments = Moments(a.weight + b.weight, a.squares + b.squares, a.features + b.features)
    labels = np.union1d(first.labels, second.labels)
    return Lesson(numbers, first.weight + second.weight, labels, names, first.attributes, moments)


def _check_alike(first: Lesson, second: Lesson) -> None:
    """Raise unless features and labels of two partitions go together."""
    p, q = min(first.numbers), min(second.numbers)
    if (first.labels.dtype.kind == "U") != (second.labels.dtype.kind == "U"):
        raise PartitionError(
            f"maxmargin.dask: partition {q} must have labels like those of partition {p}, "
            f"{first.labels[:3].tolist()}, got {second.labels[:3].tolist()}; make all str or all int."
        )
    one, other = (
        "names" if each.names is not None else f"{each.attributes.get('n_features_in_')} columns"
        for each in (first, second)
    )
    if one != other:
        raise PartitionError(
            f"maxmargin.dask: partition {q} must have the features of partition {p}, {one}, got {other}."
        )
