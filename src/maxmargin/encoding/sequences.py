"""The encoder of sequences: users' data become one matrix with a row per token.

`SequenceEncoder` learns the names of features, and `HashingEncoder` needs no vocabulary. `ObjectEncoder`
leaves sequences as they are, for a kernel function of the user. Fast readers number names themselves
(`NumberedSequences`).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, count, pairwise
from numbers import Integral
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import (
    NOUNS,
    SEQUENCES,
    Kind,
    Offsets,
    Tokens,
    Words,
    as_sequences,
    find_kind,
    is_empty,
    is_numeric,
    offsets_of,
    some_sequences,
)
from maxmargin.encoding.matrices import assemble, drop_columns, ones, sparse_rows, stack_dense, stack_sparse
from maxmargin.encoding.names import NamedFeatures, read_named, read_nested
from maxmargin.encoding.table import Vocabulary, learn
from maxmargin.runtime.arrays import IntArray, is_sparse
from maxmargin.runtime.wording import caller, described


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


def joined(blocks: Iterable[NumberedSequences]) -> NumberedSequences:
    """Return the sequences of one block after another, none of which has values, with the names of all."""
    number: defaultdict[str, int] = defaultdict(count().__next__)
    codes, counts, lengths = [], [], []
    for block in blocks:
        which = np.fromiter(map(number.__getitem__, block.names), np.int32, len(block.names))
        codes.append(which[block.codes])
        counts.append(block.counts)
        lengths.append(np.diff(block.offsets))
    offsets = offsets_of(np.concatenate(lengths))
    return NumberedSequences(list(number), np.concatenate(codes), None, np.concatenate(counts), offsets)


def numbered(sequences: list[object], kind: Kind, words: Words = SEQUENCES) -> NumberedSequences:
    """Number the named features of sequences whose tokens are dicts or collections of strings."""
    features = read_named(sequences, kind, words)
    try:
        return number(features)
    except TypeError:
        return number(read_nested(features))


def number(features: NamedFeatures) -> NumberedSequences:
    """Number named features in order of first appearance, those of vectors after the others."""
    names, codes = learn(features.bags, int(features.sizes.sum()))
    if features.vectors:
        known = dict(zip(names, range(len(names)), strict=True))
        codes, counts, values = features.with_vectors(codes, lambda name: known.setdefault(name, len(known)))
        return NumberedSequences(list(known), codes, values, counts, features.offsets)
    return NumberedSequences(names, codes, features.values, features.counts, features.offsets)


def _summed(names: list[str], values: list[float]) -> dict[str, float]:
    """Return the sum of the values of each name."""
    found: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        found[name] = found.get(name, 0.0) + value
    return found


ARRAYS = ("dense", "sparse")


class SequenceEncoder:
    """Turn sequences into one matrix whose rows are their tokens.

    X is a list of sequences. A sequence of `length` tokens is one of

    * a 2-D array of numbers, of shape (length, n_features);
    * a sparse matrix of that shape;
    * a list of dicts, one per token, ``{name: number | bool | str | vector | dict | collection of strings}``;
      the text s as a value makes the feature ``"name=s"`` with value 1; number j of a vector, an array with
      one axis, is the value of ``"name[j]"``; the features of a dict, and the strings of a list, tuple or
      set, have the prefix ``"name:"``;
    * a list of collections of strings, one per token: the names of features with value 1.

    Values of the same name in a token are added. Strings may be bytes in UTF-8.

    All sequences of X must be arrays, or sparse matrices, or have named features; some may be empty. Named
    features, those of dicts and strings, are numbered in order of first appearance in `fit` (sorted within a
    set, those of vectors after all others). `transform` ignores names that did not occur in `fit`. Vectors of
    one name are equally long.

    Parameters
    ----------
    min_count : int, default=1
        Drop named features that occur in fewer tokens of the training data. Arrays keep all columns.
    words : Words, optional
        What error messages call sequences and tokens.

    Attributes
    ----------
    kind_ : {"dense", "sparse", "dicts", "strings"}
        The kind of sequences seen in `fit`.
    n_features_in_ : int
        Number of features.
    feature_names_ : list of str or None
        Names of the features; None for arrays.

    Examples
    --------
    >>> encoder = SequenceEncoder()
    >>> rows, offsets = encoder.fit_transform([[["w=the", "det"], ["w=dog"]], [["w=dog"]]])
    >>> encoder.feature_names_
    ['w=the', 'det', 'w=dog']
    >>> rows.toarray()
    array([[1., 1., 0.],
           [0., 0., 1.],
           [0., 0., 1.]])
    >>> offsets
    array([0, 2, 3])
    """

    kind_: Kind
    n_features_in_: int
    feature_names_: list[str] | None
    _vocabulary: Vocabulary | None

    def __init__(self, *, min_count: int = 1, words: Words = SEQUENCES) -> None:
        self.min_count, self.words = min_count, words

    @classmethod
    def restored(cls, kind: Kind, n_features: int, names: list[str] | None, words: Words = SEQUENCES) -> Self:
        """Return an encoder that has learnt these features; raise unless they are valid."""
        encoder = cls(words=words)
        if (kind in ARRAYS) != (names is None) or (names is not None and len(names) != n_features):
            got = "none" if names is None else len(names)
            raise ValueError(f"{n_features} features must have a name each or be arrays, got {got}.")
        encoder.kind_, encoder.n_features_in_, encoder.feature_names_ = kind, n_features, names
        encoder._vocabulary = None if names is None else Vocabulary(names)
        if names is not None and len(set(names)) != len(names):
            raise ValueError("names of features must be distinct, got one of them twice.")
        return encoder

    def fit(self, X: object) -> Self:
        """Learn the features of X.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        SequenceEncoder
            The encoder itself.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: object) -> Tokens:
        """Learn the features of X and encode it, reading it once.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        Tokens
            ``(rows, offsets)``, as `transform` returns for the same X.
        """
        self._check_min_count()
        if isinstance(X, NumberedSequences):
            kind: Kind = "strings" if X.values is None else "dicts"
            return self._keep(kind, *self._numbered(X))
        sequences = some_sequences(X)
        kind = find_kind(sequences, self.words)
        if kind in ARRAYS:
            return self._keep(kind, None, self._stack(sequences, kind))
        return self._keep(kind, *self._numbered(numbered(sequences, kind, self.words)))

    def _keep(self, kind: Kind, vocabulary: Vocabulary | None, tokens: Tokens) -> Tokens:
        """Store the learnt attributes, and return the tokens."""
        self.kind_ = kind
        self.n_features_in_ = tokens.rows.shape[1]
        self.feature_names_ = None if vocabulary is None else vocabulary.names
        self._vocabulary = vocabulary
        return tokens

    def transform(self, X: object) -> Tokens:
        """Encode X with the features learnt.

        An encoder fitted on arrays also takes sparse matrices and vice versa. One fitted on dicts also
        takes strings and vice versa.

        Parameters
        ----------
        X : list of sequences

        Returns
        -------
        Tokens
            ``(rows, offsets)``. `rows` is an ndarray for arrays, else a csr_array whose rows have
            sorted indices without duplicates.
        """
        if not hasattr(self, "kind_"):
            raise ValueError("the encoder is not fitted yet; call fit first.")
        if isinstance(X, NumberedSequences):
            if not X.offsets[-1]:
                return self._nothing(len(X.offsets) - 1)
            if self._vocabulary is not None:
                return self._renumber(self._vocabulary, X)
            X = X.listed()
        sequences = as_sequences(X)
        if all(map(is_empty, sequences)):
            return self._nothing(len(sequences))
        kind = find_kind(sequences, self.words)
        if (kind in ARRAYS) != (self.kind_ in ARRAYS):
            raise TypeError(
                f"{self.words.example} 0 of X is {NOUNS[kind]}, but {caller('the encoder')} was fitted on "
                f"{self.words.example}s that are each {NOUNS[self.kind_]}; pass that kind."
            )
        if self._vocabulary is None:
            return self._check_n_features(self._stack(sequences, kind))
        return self._look_up(self._vocabulary, read_named(sequences, kind, self.words))

    def _nothing(self, n: int) -> Tokens:
        """Return n sequences without tokens."""
        shape = 0, self.n_features_in_
        rows = np.zeros(shape) if self.kind_ == "dense" else csr_array(shape)
        return Tokens(rows, np.zeros(n + 1, dtype=np.int64))

    def _stack(self, sequences: list[object], kind: Kind) -> Tokens:
        stack = stack_dense if kind == "dense" else stack_sparse
        return stack(sequences)

    def _numbered(self, X: NumberedSequences) -> tuple[Vocabulary, Tokens]:
        """Return the vocabulary of the names that are frequent enough, and the tokens."""
        names, part = X.names, self.words.part
        rows = sparse_rows(X.codes, X.counts, X.values, len(names))
        if self.min_count > 1:
            kept = np.bincount(rows.indices, minlength=len(names)) >= self.min_count
            names = [name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
            rows = drop_columns(rows, kept)
        if not names:
            raise ValueError(
                f"no {part} of X has a feature that occurs in min_count="
                f"{self.min_count} {part}s; give the {part}s features or lower min_count."
            )
        vocabulary = Vocabulary(names)
        vocabulary.expect(len(X.codes))
        return vocabulary, Tokens(rows, X.offsets)

    def _look_up(self, vocabulary: Vocabulary, features: NamedFeatures) -> Tokens:
        try:
            codes = vocabulary.lookup(features.bags, features.sizes)
        except TypeError:
            features = read_nested(features)
            codes = vocabulary.lookup(features.bags, features.sizes)
        if features.vectors:
            features.check_vectors(vocabulary.codes)
        unknown = len(vocabulary.names)
        found = features.with_vectors(codes, lambda name: vocabulary.codes.get(name, unknown))
        rows = sparse_rows(found.codes, found.counts, found.values, unknown)
        return Tokens(rows, features.offsets)

    def _renumber(self, vocabulary: Vocabulary, X: NumberedSequences) -> Tokens:
        """Return the tokens with the numbers of the vocabulary: each distinct name is looked up once."""
        number = vocabulary.lookup([X.names], np.array([len(X.names)]))
        rows = sparse_rows(number[X.codes], X.counts, X.values, len(vocabulary.names))
        return Tokens(rows, X.offsets)

    def _check_n_features(self, tokens: Tokens) -> Tokens:
        n_features = tokens.rows.shape[1]
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {caller('the encoder')} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return tokens

    def _check_min_count(self) -> None:
        valid = isinstance(self.min_count, Integral) and not isinstance(self.min_count, bool)
        if not valid or self.min_count < 1:
            raise ValueError(
                "min_count must be an integer of at least 1, got "
                f"{self.min_count!r}; use 1 to keep all features."
            )


MOST_BITS = 30  # numbers of columns are int32


class HashingEncoder:
    """Turn sequences of named features into one matrix with ``2**bits`` columns.

    No vocabulary is learnt or kept: the column of a name is a hash of it. Two names may share a column, and
    names cannot be told from columns. The hash is MurmurHash3, as in scikit-learn's `FeatureHasher`, but
    without signs: indicators stay indicators, which take less memory.

    Tokens are dicts or collections of strings, as `SequenceEncoder` takes them. A column that several names
    of a token share has the sum of their values, or one if all names are without values.

    Parameters
    ----------
    bits : int
        From 1 to 30.

    Attributes
    ----------
    n_features_in_ : int
        ``2**bits``.
    feature_names_ : None

    Examples
    --------
    >>> rows, offsets = HashingEncoder(4).transform([[["w=the", "det"], ["w=dog"]]])
    >>> rows.shape, offsets.tolist(), rows.sum(axis=1).tolist()
    ((2, 16), [0, 2], [2.0, 1.0])
    """

    feature_names_ = None

    def __init__(self, bits: int) -> None:
        self.bits, self.n_features_in_ = bits, 1 << bits

    def transform(self, X: object) -> Tokens:
        """Return the rows of all tokens of all sequences, and the offsets of the sequences."""
        if not isinstance(X, NumberedSequences):
            X = self._numbered(as_sequences(X))
        return Tokens(hashed_rows(X, self.bits), X.offsets)

    def _numbered(self, sequences: list[object]) -> NumberedSequences:
        kind = "strings" if all(map(is_empty, sequences)) else find_kind(sequences)
        if kind not in ("dicts", "strings"):
            raise TypeError(
                "X must have tokens that are dicts or lists of strings, whose names are "
                f"hashed, got {kind} matrices; pass names."
            )
        return numbered(sequences, kind)


def hashed_rows(X: NumberedSequences, bits: int) -> csr_array:
    """Return the matrix of all tokens, whose columns are hashes of the names."""
    rows = sparse_rows(hashes(X.names, bits)[X.codes], X.counts, X.values, 1 << bits)
    if X.values is not None:
        return rows
    return assemble(ones(len(rows.indices)), rows.indices, rows.indptr, rows.shape[1])


def hashes(names: list[str], bits: int) -> NDArray[np.int32]:
    """Return the columns of names."""
    from sklearn.utils import murmurhash3_32  # not at the top: encoding needs arrays only

    encoded = (name.encode("utf-8", "surrogatepass") for name in names)
    found = np.fromiter((murmurhash3_32(name) for name in encoded), np.int64, len(names))
    return (np.abs(found) & ((1 << bits) - 1)).astype(np.int32)


def holds_arrays(X: object) -> bool:
    """Whether X is a collection of arrays of numbers or of sparse matrices, one per sequence."""
    if isinstance(X, np.ndarray):
        return is_numeric(X.dtype)
    items = list(X) if isinstance(X, list | tuple) else []
    return bool(items) and all(is_sparse(item) or _is_numbers(item) for item in items)


def _is_numbers(item: object) -> bool:
    return isinstance(item, np.ndarray) and item.ndim == 2 and is_numeric(item.dtype)


def as_list(items: object, name: str = "X") -> list[object]:
    """Return a collection of objects, one per example, as a list."""
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise TypeError(f"{name} must be a list with one object per example, got {described(items)}.")
    return list(items)


def paired_lists(X: object, y: object) -> tuple[list[object], list[object]]:
    """Return examples and outputs as lists of the same length, which must not be empty."""
    examples, outputs = as_list(X), as_list(y, "y")
    if not examples or len(examples) != len(outputs):
        raise ValueError(
            f"X and y must have one entry per example, and one or more, got {len(examples)} and "
            f"{len(outputs)}."
        )
    return examples, outputs


def as_objects(items: object) -> np.ndarray:
    """Return an array with one entry per object, whatever the objects are."""
    listed = as_list(items)
    array = np.empty(len(listed), dtype=object)
    for i, item in enumerate(listed):  # a slice would unpack objects that are sequences
        array[i] = item
    return array


class ObjectEncoder:
    """Turn lists of objects, one per token, into one array of objects; see `SequenceEncoder`."""

    n_features_in_ = 0
    feature_names_ = None

    def fit_transform(self, X: object) -> Tokens:
        """Return the objects of all sequences."""
        return self.transform(some_sequences(X))

    def transform(self, X: object) -> Tokens:
        """Return the objects of all sequences."""
        sequences = [self._listed(i, sequence) for i, sequence in enumerate(as_sequences(X))]
        offsets = offsets_of(np.array([len(sequence) for sequence in sequences], dtype=np.int64))
        return Tokens(as_objects(chain.from_iterable(sequences)), offsets)

    def _listed(self, i: int, sequence: object) -> list[object]:
        if not isinstance(sequence, Iterable) or isinstance(sequence, str | bytes):
            raise TypeError(
                f"sequence {i} of X must be a list with one object per token, got {described(sequence)}."
            )
        return list(sequence)
