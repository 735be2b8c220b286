"""Sequences whose named features are already numbered, as fast readers produce them."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import IntArray
from maxmargin.encoding.kinds import Kind
from maxmargin.encoding.lookup import learn
from maxmargin.encoding.names import read_named, read_nested
from maxmargin.encoding.tokens import SEQUENCES, Offsets, Words


class NumberedSequences(NamedTuple):
    """Sequences of tokens with named features, given by the numbers of the names.

    Estimators over sequences accept it as X, and learn the same from it as from the lists of `listed`.

    Attributes
    ----------
    names : list of str
        The distinct names, in order of first appearance.
    codes : ndarray of int32
        The name ``names[codes[k]]`` of each feature, one token after another.
    values : ndarray of float64 or None
        The value of each feature; None if all are one.
    counts : ndarray of int64
        The number of features of each token.
    offsets : ndarray of int64
        The tokens of sequence i are those from ``offsets[i]`` to ``offsets[i + 1]``.
    """

    names: list[str]
    codes: NDArray[np.int32]
    values: NDArray[np.float64] | None
    counts: IntArray
    offsets: Offsets

    def listed(self) -> list[list[list[str]]] | list[list[dict[str, float]]]:
        """Return the sequences as lists of tokens: lists of names, or dicts if features have values."""
        edges = pairwise(np.append(0, np.cumsum(self.counts)).tolist())
        texts = [self.names[code] for code in self.codes.tolist()]
        if self.values is None:
            named = [texts[a:b] for a, b in edges]
            return [named[a:b] for a, b in pairwise(self.offsets.tolist())]
        values = self.values.tolist()
        valued = [_summed(texts[a:b], values[a:b]) for a, b in edges]
        return [valued[a:b] for a, b in pairwise(self.offsets.tolist())]


def numbered(sequences: list[object], kind: Kind, owner: str, words: Words = SEQUENCES) -> NumberedSequences:
    """Number the named features of sequences whose tokens are dicts or collections of strings."""
    features = read_named(sequences, kind, owner, words)
    try:
        names, codes = learn(features.bags, int(features.sizes.sum()))
    except TypeError:
        features = read_nested(features, owner)
        names, codes = learn(features.bags, int(features.sizes.sum()))
    return NumberedSequences(names, codes, features.values, features.counts, features.offsets)


def _summed(names: list[str], values: list[float]) -> dict[str, float]:
    """Return the sum of the values of each name."""
    found: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        found[name] = found.get(name, 0.0) + value
    return found
