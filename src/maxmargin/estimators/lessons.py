"""What the partitions of data teach before training on a cluster: labels, names of features and sums."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from maxmargin.encoding.labels import Labels
from maxmargin.estimators.examples import Data, Examples, rows_of, weights_of_rows
from maxmargin.runtime.arrays import FloatArray, ValueArray

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
