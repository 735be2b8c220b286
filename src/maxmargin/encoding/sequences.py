"""The encoder of sequences: users' data become one matrix with a row per token."""

from numbers import Integral
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import NOUNS, Kind, as_sequences, find_kind, is_empty, some_sequences
from maxmargin.encoding.lookup import Vocabulary
from maxmargin.encoding.names import NamedFeatures, read_named, read_nested
from maxmargin.encoding.numbered import NumberedSequences, numbered
from maxmargin.encoding.packed import are_distinct
from maxmargin.encoding.sparse_rows import drop_columns, sparse_rows
from maxmargin.encoding.stacking import stack_dense, stack_sparse
from maxmargin.encoding.tokens import SEQUENCES, Tokens, Words

ARRAYS = ("dense", "sparse")


class SequenceEncoder:
    """Turn sequences into one matrix whose rows are their tokens.

    X is a list of sequences. A sequence of `length` tokens is one of

    * a 2-D array of numbers, of shape (length, n_features);
    * a sparse matrix of that shape;
    * a list of dicts, one per token, ``{name: number | bool | str | dict | collection of strings}``;
      the text s as a value makes the feature ``"name=s"`` with value 1; the features of a dict, and the
      strings of a list, tuple or set, have the prefix ``"name:"``;
    * a list of collections of strings, one per token: the names of features with value 1.

    Values of the same name in a token are added. Strings may be bytes in UTF-8.

    All sequences of X must be arrays, or sparse matrices, or have named features; some may be empty. Named
    features, those of dicts and strings, are numbered in order of first appearance in `fit` (sorted within a
    set). `transform` ignores names that did not occur in `fit`.

    Parameters
    ----------
    min_count : int, default=1
        Drop named features that occur in fewer tokens of the training data. Arrays keep all columns.
    owner : str, default="ChainSVC"
        The name to use in error messages.
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

    def __init__(self, *, min_count: int = 1, owner: str = "ChainSVC", words: Words = SEQUENCES) -> None:
        self.min_count, self.owner, self.words = min_count, owner, words

    @classmethod
    def restored(
        cls, kind: Kind, n_features: int, names: list[str] | None, owner: str, words: Words = SEQUENCES
    ) -> Self:
        """Return an encoder that has learnt these features; raise unless they are valid."""
        encoder = cls(owner=owner, words=words)
        if (kind in ARRAYS) != (names is None) or (names is not None and len(names) != n_features):
            got = "none" if names is None else len(names)
            raise ValueError(f"{owner}: {n_features} features must have a name each or be arrays, got {got}.")
        encoder.kind_, encoder.n_features_in_, encoder.feature_names_ = kind, n_features, names
        encoder._vocabulary = None if names is None else Vocabulary(names)
        if names is not None and not are_distinct(names):
            raise ValueError(f"{owner}: names of features must be distinct, got one of them twice.")
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
        sequences = some_sequences(X, self.owner)
        kind = find_kind(sequences, self.owner, self.words)
        if kind in ARRAYS:
            return self._keep(kind, None, self._stack(sequences, kind))
        return self._keep(kind, *self._numbered(numbered(sequences, kind, self.owner, self.words)))

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
            raise ValueError(f"{self.owner}: the encoder is not fitted yet; call fit first.")
        if isinstance(X, NumberedSequences):
            if not X.offsets[-1]:
                return self._nothing(len(X.offsets) - 1)
            if self._vocabulary is not None:
                return self._renumber(self._vocabulary, X)
            X = X.listed()
        sequences = as_sequences(X, self.owner)
        if all(map(is_empty, sequences)):
            return self._nothing(len(sequences))
        kind = find_kind(sequences, self.owner, self.words)
        if (kind in ARRAYS) != (self.kind_ in ARRAYS):
            raise TypeError(
                f"{self.owner}: {self.words.example} 0 of X is {NOUNS[kind]}, but {self.owner} was fitted on "
                f"{self.words.example}s that are each {NOUNS[self.kind_]}; pass that kind."
            )
        if self._vocabulary is None:
            return self._check_n_features(self._stack(sequences, kind))
        return self._look_up(self._vocabulary, read_named(sequences, kind, self.owner, self.words))

    def _nothing(self, n: int) -> Tokens:
        """Return n sequences without tokens."""
        shape = 0, self.n_features_in_
        rows = np.zeros(shape) if self.kind_ == "dense" else csr_array(shape)
        return Tokens(rows, np.zeros(n + 1, dtype=np.int64))

    def _stack(self, sequences: list[object], kind: Kind) -> Tokens:
        stack = stack_dense if kind == "dense" else stack_sparse
        return stack(sequences, self.owner)

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
                f"{self.owner}: no {part} of X has a feature that occurs in min_count="
                f"{self.min_count} {part}s; give the {part}s features or lower min_count."
            )
        vocabulary = Vocabulary(names)
        vocabulary.expect(len(X.codes))
        return vocabulary, Tokens(rows, X.offsets)

    def _look_up(self, vocabulary: Vocabulary, features: NamedFeatures) -> Tokens:
        try:
            codes = vocabulary.lookup(features.bags, features.sizes)
        except TypeError:
            features = read_nested(features, self.owner)
            codes = vocabulary.lookup(features.bags, features.sizes)
        rows = sparse_rows(codes, features.counts, features.values, len(vocabulary))
        return Tokens(rows, features.offsets)

    def _renumber(self, vocabulary: Vocabulary, X: NumberedSequences) -> Tokens:
        """Return the tokens with the numbers of the vocabulary: each distinct name is looked up once."""
        number = vocabulary.lookup([X.names], np.array([len(X.names)]))
        rows = sparse_rows(number[X.codes], X.counts, X.values, len(vocabulary))
        return Tokens(rows, X.offsets)

    def _check_n_features(self, tokens: Tokens) -> Tokens:
        n_features = tokens.rows.shape[1]
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {self.owner} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return tokens

    def _check_min_count(self) -> None:
        valid = isinstance(self.min_count, Integral) and not isinstance(self.min_count, bool)
        if not valid or self.min_count < 1:
            raise ValueError(
                f"{self.owner}: min_count must be an integer of at least 1, got "
                f"{self.min_count!r}; use 1 to keep all features."
            )
