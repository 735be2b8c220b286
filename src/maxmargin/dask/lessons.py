"""What partitions teach before training: labels, names of features and sums, and how lessons are merged.

Names are numbered in the order of their first appearance, partition after partition, as on one machine.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.dask.messages import PartitionError
from maxmargin.encoding.labels import Labels

# Keys of `Lesson.largest`; labels are str or int.
OUTSIDE, CYCLES = ("outside",), ("cycles",)


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
    labels: Labels
    names: dict[str, int] | None
    attributes: dict[str, Any]
    moments: Moments | None
    largest: dict[object, int] = {}  # noqa: RUF012 (a default of a named tuple; nobody changes it)

    @property
    def number(self) -> int:
        """The number of examples."""
        return sum(self.numbers.values())


def merged(first: Lesson, *others: Lesson) -> Lesson:
    """Task: merge lessons in this order; return the lesson of all their partitions."""
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
    largest = {
        key: max(each.largest.get(key, 0) for each in (first, second))
        for key in {**first.largest, **second.largest}
    }
    return Lesson(numbers, first.weight + second.weight, labels, names, first.attributes, moments, largest)


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
