"""Problems that get more examples, each with all its outputs written out."""

from typing import NamedTuple

import numpy as np

from maxmargin.problems import Chain, Multiclass
from support import naive
from support.catalogue import Case, random_cost
from support.naive import Array

N_LABELS, N_FEATURES = 3, 3
KINDS = ("chain", "multiclass")
# The longest comes late, so that the output space grows too.
LENGTHS = (2, 1, 2, 1, 3, 2, 1, 2)


class Growing(NamedTuple):
    """Examples; a problem has the first few of them.

    Attributes
    ----------
    kind : {"chain", "multiclass"}
    X, y : lists of arrays
        Tokens and labels of each example; of one token each for a multiclass problem.
    cost : array
    """

    kind: str
    X: list[Array]
    y: list[Array]
    cost: Array

    def first(self, n: int) -> Case:
        """Return the problem of the first n examples."""
        X, y = self.X[:n], self.y[:n]
        features, labels = np.concatenate(X), np.concatenate(y)
        if self.kind == "chain":
            offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
            problem = Chain.from_encoded(features, offsets, labels, N_LABELS, loss=self.cost)
            return Case(problem, naive.enumerate_chain(X, y, N_LABELS, self.cost, True), X)
        problem = Multiclass.from_encoded(features, labels, N_LABELS, loss=self.cost)
        return Case(
            problem, naive.enumerate_multiclass(features, labels, N_LABELS, self.cost), list(features)
        )


def growing(kind: str, seed: int, lengths: tuple[int, ...] = LENGTHS) -> Growing:
    """Return random examples."""
    rng = np.random.default_rng(seed)
    lengths = lengths if kind == "chain" else (1,) * len(lengths)
    X = [rng.normal(size=(length, N_FEATURES)) for length in lengths]
    y = [rng.integers(N_LABELS, size=length) for length in lengths]
    return Growing(kind, X, y, random_cost(rng, N_LABELS))
