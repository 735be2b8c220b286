"""Sentences and their heads as arrays, from features of arcs or from lists of tagged words."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from maxmargin.encoding.kinds import (
    Offsets,
    Words,
    check_widths,
    checked_some,
    first_not_finite,
    is_empty,
    is_numeric,
    offsets_of,
)
from maxmargin.encoding.labels import checked_numbers
from maxmargin.encoding.matrices import checked_csr, in_order
from maxmargin.runtime.arrays import (
    CsrMatrix,
    IntArray,
    SparseMatrix,
    ValueArray,
    freeze,
    is_sparse,
    value_dtype,
)
from maxmargin.runtime.wording import described, quoted
from maxmargin.structures.dependency.arc_names import (
    EMPTY,
    N_AROUND,
    N_TEMPLATES,
    REACH,
    arc_names,
    known_columns,
    sentence_names,
    true_keys,
)

_HEADS = "the head of each word, 0 for the root and 1 for the first word"


class Indicators(NamedTuple):
    """Rows of zeros and ones: row t has ones in the columns ``columns[start[t]:start[t + 1]]``."""

    start: IntArray
    columns: NDArray[np.uint32]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.start) - 1, self.n_columns


class Arcs(NamedTuple):
    """The arcs of all sentences, one sentence after another.

    Attributes
    ----------
    features : ndarray of float64 or float32 (n_arcs, n_features), csr_array or Indicators
        A sentence of m words has m (m + 1) rows: for each word one row per head, the root first.
    offsets : ndarray of int64 (n_sentences + 1,)
        Sentence i consists of the words offsets[i], ..., offsets[i + 1] - 1; it may have none.
    """

    features: ValueArray | CsrMatrix | Indicators
    offsets: Offsets


def encode_arcs(X: object) -> Arcs:
    """Return the features of arcs given as arrays or as sparse matrices."""
    items = some_sentences(X)
    present = {i: item for i, item in enumerate(items) if not is_empty(item)}
    sparse = is_sparse(next(iter(present.values())))
    blocks = {i: _block(item, sparse, f"sentence {i} of X") for i, item in present.items()}
    check_widths({i: block.shape[1] for i, block in blocks.items()}, Words("sentence", "arc"))
    lengths = np.zeros(len(items), dtype=np.int64)
    lengths[list(blocks)] = [_n_words(block.shape[0]) for block in blocks.values()]
    return Arcs(freeze(_stacked(list(blocks.values()))), offsets_of(lengths))


def _stacked(blocks: list[ValueArray | CsrMatrix]) -> ValueArray | CsrMatrix:
    dense = [block for block in blocks if isinstance(block, np.ndarray)]
    if dense:
        return np.concatenate(dense)
    stacked: CsrMatrix = scipy.sparse.csr_array(scipy.sparse.vstack(blocks))
    return stacked


def as_sentences(X: object) -> list[object]:
    """Return X as a list of sentences; those that are iterators become lists."""
    one = is_sparse(X) or getattr(X, "ndim", 0) == 3
    if one or not isinstance(X, Iterable) or isinstance(X, str | bytes | dict):
        advice = "; if it is one sentence pass [X]" if one else ""
        raise TypeError(f"X must be a list of sentences, got {described(X)}{advice}.")
    return [list(item) if isinstance(item, Iterator) else item for item in X]


def some_sentences(X: object) -> list[object]:
    """Return X as a list of sentences, of which one or more have words."""
    return checked_some(as_sentences(X), "sentence")


def _n_words(n_arcs: int) -> int:
    """Return the number m of words of a sentence with m (m + 1) arcs, or 0 if there is no such m."""
    m = int((np.sqrt(1 + 4 * n_arcs) - 1) / 2 + 0.5)
    return m if m * (m + 1) == n_arcs else 0


def _block(item: object, sparse: bool, where: str) -> ValueArray | CsrMatrix:
    """Return the features of the arcs of one sentence, one row per arc."""
    if is_sparse(item) != sparse:
        expected = "a sparse matrix" if sparse else "an array"
        raise TypeError(
            f"{where} is {described(item)}, but the first is {expected}; give all sentences the same form."
        )
    block = _matrix(item, where) if is_sparse(item) else _array(item, where)
    if _n_words(block.shape[0]) == 0 or block.shape[1] == 0:
        raise ValueError(
            f"{where} is {described(item)}, expected at least one feature for each of the m (m + 1) arcs "
            "of m words: a matrix with m (m + 1) rows, or an array of shape (m, m + 1, n_features)."
        )
    if first_not_finite(block if isinstance(block, np.ndarray) else block.data) is not None:
        raise ValueError(f"{where} has a feature that is not a finite number; remove or impute it.")
    return block


def _matrix(item: SparseMatrix, where: str) -> CsrMatrix:
    matrix = checked_csr(item, where)
    canonical: CsrMatrix = in_order(
        scipy.sparse.csr_array(matrix, dtype=value_dtype(matrix.dtype), copy=True)
    )
    return canonical


def _array(item: object, where: str) -> ValueArray:
    try:
        block = np.asarray(item)
    except ValueError:  # lists of unequal lengths
        block = np.empty(0, dtype=object)
    if block.ndim != 3 or not is_numeric(block.dtype) or block.shape[1] != block.shape[0] + 1:
        raise ValueError(
            f"{where} is {described(item)}, expected numbers of shape (n_words, n_words + 1, n_features): "
            "the features of each word's arcs from the root and from each word."
        )
    values: ValueArray = block.astype(value_dtype(block.dtype), copy=False)
    return values.reshape(block.shape[0] * block.shape[1], block.shape[2])


def encode_heads(y: object, offsets: Offsets, *, projective: bool, single_root: bool) -> IntArray:
    """Return the heads of all words; raise unless they are trees of the required kind."""
    sentences = list(y) if isinstance(y, Iterable) and not isinstance(y, str | dict) else None
    if sentences is None or len(sentences) != len(offsets) - 1:
        got = described(y) if sentences is None else f"{len(sentences)} items"
        raise ValueError(f"y must be a list of the heads of {len(offsets) - 1} sentences, got {got}.")
    sizes = np.diff(offsets).tolist()
    heads = [
        _heads(item, size, f"sentence {i} of y")
        for i, (item, size) in enumerate(zip(sentences, sizes, strict=True))
    ]
    for i, of_sentence in enumerate(heads):
        _check_tree(of_sentence, f"sentence {i} of y", projective, single_root)
    return np.concatenate(heads)


def _heads(item: object, size: int, where: str) -> IntArray:
    try:
        heads = np.asarray(item, dtype=np.int64 if is_empty(item) else None)
    except ValueError:  # lists of unequal lengths
        heads = np.empty(0, dtype=object)
    if heads.shape != (size,) or heads.dtype.kind not in "iu":
        got = f"{len(heads)} of dtype {heads.dtype}" if heads.ndim == 1 else described(item)
        raise ValueError(f"{where} must have {size} ints, {_HEADS}; got {got}.")
    outside = (heads < 0) | (heads > size) | (heads == np.arange(1, size + 1))
    if outside.any():
        word = int(outside.argmax()) + 1
        raise ValueError(
            f"{where} has the head {heads[word - 1]} for word {word} of {size}, expected another word or 0 "
            "for the root; words count from 1."
        )
    return heads.astype(np.int64)


def _check_tree(heads: IntArray, where: str, projective: bool, single_root: bool) -> None:
    ends = heads
    for _ in range(len(heads).bit_length()):  # each round doubles the distance to the ancestor
        ends = np.where(ends > 0, np.append(0, ends)[ends], 0)
    if ends.any():
        word = int((ends > 0).argmax()) + 1
        raise ValueError(f"{where} has a cycle above word {word}, expected a tree; follow its heads.")
    n_roots = int((heads == 0).sum())
    if single_root and n_roots != 1 and len(heads):
        raise ValueError(
            f"{where} has {n_roots} words whose head is the root, expected one; set single_root=False."
        )
    crossing = first_crossing(heads) if projective else None
    if crossing is not None:
        raise ValueError(
            f"{where} has crossing arcs, to the words {crossing[0]} and {crossing[1]}, expected a projective "
            "tree: drop the sentence, or set projective=False."
        )


def first_crossing(heads: IntArray) -> tuple[int, int] | None:
    """Return the numbers, from 1, of two words whose arcs cross, or None."""
    nodes = np.arange(1, len(heads) + 1)
    low, high = np.minimum(heads, nodes), np.maximum(heads, nodes)
    crosses = (low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)
    found = np.argwhere(crosses)
    return (int(found[0, 0]) + 1, int(found[0, 1]) + 1) if len(found) else None


class Tagged(NamedTuple):
    """The words of all sentences, in lower case, their tags, and where each sentence begins."""

    words: list[str]
    tags: list[str]
    offsets: Offsets


def encode_tagged(X: object) -> Tagged:
    """Return the words and tags of sentences given as lists of pairs."""
    words: list[str] = []
    tags: list[str] = []
    ends = [0]
    for i, sentence in enumerate(some_sentences(X)):
        if not isinstance(sentence, Iterable) or isinstance(sentence, str | bytes | dict):
            raise TypeError(
                f"sentence {i} of X is {described(sentence)}, expected a list of pairs (word, tag); "
                "if X is one sentence pass [X]."
            )
        for token in sentence:
            if not _is_pair(token):
                raise TypeError(
                    f"word {len(words) - ends[-1] + 1} of sentence {i} of X is {quoted(token)}, "
                    "expected a pair (word, tag) of strings."
                )
            words.append(token[0].lower())
            tags.append(token[1])
        ends.append(len(words))
    return Tagged(words, tags, np.array(ends, dtype=np.int64))


def _is_pair(token: object) -> TypeGuard[Sequence[str]]:
    if not isinstance(token, Sequence) or isinstance(token, str):
        return False
    return len(token) == 2 and all(isinstance(field, str) for field in token)


def checked_heads(heads: ArrayLike, offsets: IntArray) -> IntArray:
    """Return the head of each word; raise unless it is the root or another word of the sentence."""
    lengths = np.diff(offsets)
    words = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], lengths)
    stop = np.repeat(lengths + 1, lengths)
    found = checked_numbers(heads, int(offsets[-1]), stop, name="heads")
    own = found == words
    if own.any():
        raise ValueError(
            f"heads must be other words or 0 for the root, got {found[own.argmax()]} at "
            f"position {own.argmax()}, the word itself."
        )
    return found


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
        heads = checked_heads(heads, sentences.offsets)
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
        return list(self._words), list(self._tags), self._sorted_keys()

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
        return Arcs(Indicators(freeze(start), freeze(columns), self.n_features_in_), sentences.offsets)

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
        return np.sort(self._keys[self._keys != EMPTY])

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
