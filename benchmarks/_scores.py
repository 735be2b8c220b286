"""Scores that are functions of sums over examples, so that a bootstrap need not predict again."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.evaluation import phrases

FloatArray = NDArray[np.float64]
_RESAMPLES = 1000


class Score(NamedTuple):
    """A score: what is counted in each example, and the score of the sums of counts.

    Attributes
    ----------
    name : str
    count : callable
        From the truth and the prediction of an example to a tuple of numbers.
    of_sums : callable
        From the sums of these numbers over examples to the score, between 0 and 1.
    """

    name: str
    count: Callable[[Any, Any], tuple[float, ...]]
    of_sums: Callable[[FloatArray], float]

    def counts(self, truth: Sequence[Any], predicted: Sequence[Any]) -> FloatArray:
        """Return the counts, one row per example."""
        return np.array([self.count(*pair) for pair in zip(truth, predicted, strict=True)], dtype=np.float64)

    def value(self, counts: FloatArray) -> float:
        """Return the score of all examples."""
        return self.of_sums(counts.sum(axis=0))


def count_equal(truth: Any, predicted: Any) -> tuple[float, ...]:
    """Return how many entries of an output are right, and how many there are."""
    right = np.ravel(truth) == np.ravel(predicted)
    return np.count_nonzero(right), right.size


def count_whole(truth: Any, predicted: Any) -> tuple[float, ...]:
    """Return whether all entries are right."""
    return float(np.array_equal(truth, predicted)), 1.0


def count_chunks(truth: Any, predicted: Any) -> tuple[float, ...]:
    """Return how many chunks are found, and how many are true or predicted, of a sentence's tags."""
    a, b = set(phrases(truth)), set(phrases(predicted))
    return len(a & b), len(a) + len(b)


def count_links(truth: Any, predicted: Any) -> tuple[float, ...]:
    """Return the two sums of the alignment error rate, for the sure and possible links of a pair."""
    S, P = ({tuple(link) for link in links} for links in truth)
    A = {(j, int(k)) for j, k in enumerate(predicted) if k >= 0}
    return len(A & S) + len(A & (P | S)), len(A) + len(S)


def count_overlap(truth: Any, predicted: Any) -> tuple[float, ...]:
    """Return the intersection over union of the ones of an image."""
    a, b = np.ravel(truth) == 1, np.ravel(predicted) == 1
    union = np.count_nonzero(a | b)
    return (np.count_nonzero(a & b) / union if union else 1.0), 1.0


def _ratio(sums: FloatArray) -> float:
    return float(sums[0] / sums[1]) if sums[1] else 1.0


def _f1(sums: FloatArray) -> float:
    return float(2.0 * sums[0] / sums[1]) if sums[1] else 0.0


ACCURACY = Score("accuracy", count_equal, _ratio)
SUBSETS = Score("subset accuracy", count_whole, _ratio)
CHUNKS = Score("F1", count_chunks, _f1)
LINKS = Score("1 - AER", count_links, _ratio)
OVERLAP = Score("IoU", count_overlap, _ratio)


class Difference(NamedTuple):
    """A difference of two scores on one test set, with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def bootstrap(score: Score, ours: FloatArray, theirs: FloatArray, seed: int = 0) -> Difference:
    """Return the difference ours - theirs, with the interval of a paired bootstrap over examples."""
    n, rng = len(ours), np.random.default_rng(seed)
    found = []
    for _ in range(_RESAMPLES):
        times = np.bincount(rng.integers(n, size=n), minlength=n)
        found.append(score.of_sums(times @ ours) - score.of_sums(times @ theirs))
    low, high = np.quantile(found, [0.025, 0.975])
    return Difference(score.value(ours) - score.value(theirs), float(low), float(high))
