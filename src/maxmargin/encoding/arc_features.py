"""Features of arcs, made from words and tags by templates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import IntArray, frozen
from maxmargin.encoding._arc_names import arc_names, sentence_names
from maxmargin.encoding._arc_templates import (
    EMPTY,
    N_AROUND,
    N_TEMPLATES,
    REACH,
    known_columns,
    true_keys,
)
from maxmargin.encoding.arcs import Arcs, Indicators
from maxmargin.encoding.checked import checked_heads
from maxmargin.encoding.sentences import Tagged

# Numbers that stand for no word and no tag; known words and tags have the numbers that follow.
_UNKNOWN, _ROOT, _PAD, _FIRST = 0, 1, 2, 3
_SPECIAL = {_ROOT: "<root>", _PAD: "<none>"}


def _hashing() -> np.errstate:
    """Return a context for kernels that hash.

    Products of 64-bit words wrap around. Compiled code does so silently; NumPy's scalars, which interpreted
    kernels use, would warn.
    """
    return np.errstate(over="ignore")


class ArcEncoder:
    """Encoder of arcs: templates are filled with words and tags.

    The features are those that true arcs of the training set have.

    Parameters
    ----------
    min_count : int
        Ignore features that occur in fewer true arcs.
    """

    n_features_in_: int

    def __init__(self, *, min_count: int = 1) -> None:
        self.min_count = min_count

    def fit(self, sentences: Tagged, heads: IntArray) -> "ArcEncoder":
        """Learn the words, the tags, and the features of the true arcs."""
        heads = checked_heads(heads, sentences.offsets, "ArcEncoder")
        self._words, self._tags = _numbered(sentences.words), _numbered(sentences.tags)
        n_tags = len(self._tags) + _FIRST
        most = N_TEMPLATES + min(int(np.diff(sentences.offsets).max()), n_tags)
        keys, seen = np.empty(most * len(heads), dtype=np.uint64), np.empty(n_tags, dtype=np.int64)
        with _hashing():
            count = true_keys(*self._padded(sentences), sentences.offsets, heads, seen, keys)
        known, counts = np.unique(keys[:count], return_counts=True)
        self._learn(known[counts >= self.min_count])
        return self

    @classmethod
    def restored(cls, words: list[str], tags: list[str], keys: NDArray[np.uint64]) -> "ArcEncoder":
        """Return an encoder that has learnt these words, tags and features; raise unless they are valid."""
        encoder = cls()
        encoder._words, encoder._tags = _numbered(words), _numbered(tags)
        if len(encoder._words) < len(words) or len(encoder._tags) < len(tags):
            raise ValueError("ArcEncoder: words and tags must be distinct, got one of them twice.")
        if not len(keys) or not keys[0] or (keys[1:] <= keys[:-1]).any():
            raise ValueError("ArcEncoder: keys must be positive and rise, got others.")
        encoder._learn(keys)
        return encoder

    @property
    def learnt(self) -> tuple[list[str], list[str], NDArray[np.uint64]]:
        """The arguments of `restored`."""
        return list(self._words), list(self._tags), np.sort(self._keys[self._keys != EMPTY])

    def _learn(self, known: NDArray[np.uint64]) -> None:
        """Give each key of a feature a column, in order."""
        self.n_features_in_ = len(known)
        self._keys, self._columns = _hash_table(known)

    def transform(self, sentences: Tagged) -> Arcs:
        """Return the known features of all arcs."""
        lengths, n_tags = np.diff(sentences.offsets), len(self._tags) + _FIRST
        n_arcs, most = lengths * (lengths + 1), N_TEMPLATES + np.minimum(lengths, n_tags)
        start = np.empty(n_arcs.sum() + 1, dtype=np.int64)
        columns = np.empty((n_arcs * most).sum() + 1, dtype=np.uint32)
        seen, keys = np.empty(n_tags, dtype=np.int64), np.empty(most.max(), dtype=np.uint64)
        words, tags = self._padded(sentences)
        with _hashing():
            count = known_columns(
                words, tags, sentences.offsets, self._keys, self._columns, seen, keys, start, columns
            )
        columns.resize(count, refcheck=False)  # pages that were never written to never took memory
        return Arcs(Indicators(frozen(start), frozen(columns), self.n_features_in_), sentences.offsets)

    def names(self) -> "ArcNames":
        """Return the names of the features."""
        words, tags = (_texts(known) for known in (self._words, self._tags))
        return ArcNames(self._sorted_keys(), words, tags)

    def sentence_names(self, sentence: Tagged) -> dict[int, str]:
        """Return the names of the known features of the arcs of one sentence, by their columns."""
        words, tags = (_texts(known) for known in (self._words, self._tags))
        return sentence_names(self._padded(sentence), self._sorted_keys(), words, tags)

    def _sorted_keys(self) -> NDArray[np.uint64]:
        """Return the hash of the feature of each column: they are numbered in the order of their hashes."""
        return np.sort(self._keys[self._keys > 0])

    def _padded(self, sentences: Tagged) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the numbers of all words and of all tags, with the root and the pads of each sentence."""
        n = len(sentences.offsets) - 1
        roots = sentences.offsets[:-1] + N_AROUND * np.arange(n) + REACH
        places = np.arange(len(sentences.words)) + 1
        places += np.repeat(roots - sentences.offsets[:-1], np.diff(sentences.offsets))
        found = []
        for texts, known in ((sentences.words, self._words), (sentences.tags, self._tags)):
            numbers = np.full(len(texts) + N_AROUND * n, _PAD, dtype=np.uint64)
            numbers[roots] = _ROOT
            numbers[places] = [known.get(text, _UNKNOWN) for text in texts]
            found.append(numbers)
        return found[0], found[1]


class ArcNames(Sequence[str]):
    """The names of features by their columns, each computed on demand.

    Parameters
    ----------
    keys : array
        The hash of each feature.
    words, tags : dicts
        The words and tags that features may have, by their numbers.
    """

    def __init__(self, keys: NDArray[np.uint64], words: dict[int, str], tags: dict[int, str]) -> None:
        self._keys, self._words, self._tags = keys, words, tags

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, column: Any) -> Any:
        return self.of([column])[0]

    def of(self, columns: Sequence[int]) -> list[str]:
        """Return the names of some features."""
        found = arc_names(self._keys[list(columns)], self._words, self._tags)
        return [name or f"feature {column}" for name, column in zip(found, columns, strict=True)]


def _texts(known: dict[str, int]) -> dict[int, str]:
    """Return words or tags by their numbers."""
    return {number: text for text, number in known.items()} | _SPECIAL


def _hash_table(known: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return an open-addressing hash table of keys, with a power of two of slots, and their numbers.

    All keys look for a slot at once; where several want the same one, the first gets it.
    """
    slots = 1 << (2 * len(known)).bit_length()
    keys, columns = np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.uint32)
    left = np.arange(len(known))
    slot = ((known >> np.uint64(1)) & np.uint64(slots - 1)).astype(np.int64)
    while len(left):
        free = np.flatnonzero(keys[slot] == EMPTY)[::-1]
        keys[slot[free]], columns[slot[free]] = known[left[free]], left[free]
        lost = keys[slot] != known[left]
        left, slot = left[lost], (slot[lost] + 1) & (slots - 1)
    return keys, columns


def _numbered(texts: list[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts), start=_FIRST)}
