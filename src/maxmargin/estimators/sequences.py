"""What the estimators over sequences share: the encoding of tokens, and the parts of the weights."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self, cast

import numpy as np
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import Offsets, Tokens, as_sequences, some_sequences, without_empty
from maxmargin.encoding.sequences import (
    HashingEncoder,
    NumberedSequences,
    ObjectEncoder,
    SequenceEncoder,
    holds_arrays,
)
from maxmargin.estimators.estimator import Call, Output
from maxmargin.estimators.examples import Data, Examples, Parts
from maxmargin.estimators.explanation import RowReader, named_by
from maxmargin.estimators.fields import TOKENS, Fields
from maxmargin.estimators.kernels import KernelEstimator, RowFeatures, n_rows
from maxmargin.estimators.problems import Problem, SequenceProblem
from maxmargin.estimators.state import SinglePrediction, present_weights, snapshot, transaction
from maxmargin.files.corpus.opening import Corpus, CorpusSequences, open_corpus
from maxmargin.runtime.arrays import FloatArray, IntArray, frozen_view
from maxmargin.structures.k_best import check_k, k_best_outputs

# Tokens, and the indices of their labels.
TokenData = tuple[Tokens, IntArray]


class SequenceEstimator(SinglePrediction, KernelEstimator[Data, Output]):
    """Base of the estimators over sequences of tokens. A subclass defines `_for_prediction`."""

    min_count: int
    feature_names_: list[str] | None
    _encoder: SequenceEncoder | HashingEncoder | ObjectEncoder

    _fitted: ClassVar[Fields] = {"_encoder": TOKENS}
    _shared_texts: ClassVar[dict[str, str]] = {
        "rows": "tokens",
        "example": "sequence",
        "examples": "sequences",
        "X": """
            X : list of sequences
                Each is a 2-D array or sparse matrix with one row per token, or a list with one dict or one
                iterable of strings per token. Dicts have numbers, bools, strings, lists of strings or dicts
                as values. All sequences of all calls are of the same kind. Empty sequences have an empty
                output, and change nothing in training. Arrays may be read in place: do not change them during
                a call. `fit` also takes a corpus, or its directory, without y (`encode_files`).
            """,
    }

    @transaction
    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """%(fit)s"""
        return self._learn((X, y), sample_weight)

    def _validate(self, parts: Parts, call: Call) -> Parts:
        X, y = parts
        if y is None and isinstance(X, str | os.PathLike):
            X = open_corpus(X)
        parts = (X.X, X.y) if y is None and isinstance(X, Corpus) else parts
        if self.kernel != "linear" and not isinstance(parts[0], NumberedSequences | CorpusSequences):
            parts = as_sequences(parts[0], self._owner), parts[1]
        return super()._validate(parts, call)

    def _counted_rows(self, X: object) -> Sequence[int]:
        return [n_rows(x) for x in cast("Iterable[object]", X)]

    def _keep(self, problem: Problem, examples: Examples[Data], w: FloatArray) -> None:
        tokens = cast("Tokens", examples.data[0])
        self._keep_support(problem, examples, tokens.rows, w)

    def _tokens(self, X: object, call: Call) -> Tokens:
        """Return the tokens encoded; the first call learns the features."""
        if isinstance(X, CorpusSequences):
            return self._mapped_tokens(X, call)
        X = X if isinstance(X, NumberedSequences) else some_sequences(X, self._owner)
        if not call.first:
            return _held(self._encoder.transform(X), call)
        if callable(self.kernel) and not holds_arrays(X):
            self._encoder = ObjectEncoder(self._owner)
        else:
            self._encoder = SequenceEncoder(min_count=self.min_count, owner=self._owner)
        tokens = self._encoder.fit_transform(X)
        self._name_features()
        self._learn_kernel(tokens.rows)
        return _held(tokens, call)

    def _mapped_tokens(self, X: CorpusSequences, call: Call) -> Tokens:
        """Return the tokens of a corpus as they are, with the features that it was encoded with."""
        if call.more or not self.kernel == "linear" or self.min_count != 1:
            raise ValueError(
                f"{self._owner}: a corpus is for fit with kernel='linear' and min_count=1; encode it with "
                "another min_count, or pass lists of sequences."
            )
        if X.names is None:
            self._encoder = HashingEncoder(cast("int", X.hash_bits), self._owner)
        else:
            n_features = len(X.names)
            self._encoder = SequenceEncoder.restored(X.kind, n_features, X.names, self._owner)
        self._name_features()
        self._learn_kernel(X.tokens.rows)
        return X.tokens

    def _has_features_of(self, X: CorpusSequences) -> bool:
        """Whether a corpus was encoded with the features of this model."""
        if isinstance(self._encoder, HashingEncoder):
            return X.hash_bits == self._encoder.bits
        return X.names is not None and X.names == self._encoder.feature_names_

    def _name_features(self) -> None:
        """Set the attributes that follow from the encoder."""
        self.n_features_in_, self.feature_names_ = self._encoder.n_features_in_, self._encoder.feature_names_

    def _expose(self) -> None:
        self._name_features()

    def _check_restored(self) -> None:
        self._name_features()
        super()._check_restored()
        if isinstance(self._encoder, ObjectEncoder) != (not self._is_linear and self._support.rows.ndim == 1):
            raise ValueError("support rows must be of the kind that the encoder makes")

    def _trained(self, tokens: Tokens, outputs: IntArray, weights: FloatArray | None) -> Examples[TokenData]:
        """Return the examples to train on: all but empty sequences, whose hinge is zero at any weights."""
        kept = present_weights(weights, np.diff(tokens.offsets))
        return Examples((tokens._replace(offsets=without_empty(tokens.offsets)), outputs), kept)

    def _for_prediction(self, tokens: Tokens) -> SequenceProblem:
        """Hook: return the problem of predicting the outputs of encoded sequences, none of them empty."""
        raise NotImplementedError

    def _unlabelled(self, tokens: Tokens) -> SequenceProblem:
        """Return the problem of predicting the outputs of the sequences that have tokens.

        Its outputs, one after another, are those of all sequences: an empty sequence adds none.
        """
        return self._for_prediction(tokens._replace(offsets=_present(tokens)))

    def _read(self, X: object) -> Tokens:
        """Return the tokens of sequences whose outputs are to be predicted.

        If there is no token at all, a blank one is added, outside of all sequences.
        """
        is_encoded = isinstance(X, CorpusSequences) and self._has_features_of(X)
        tokens = cast("CorpusSequences", X).tokens if is_encoded else self._encoder.transform(X)
        rows = self._prediction_rows(frozen_view(tokens.rows))
        return tokens._replace(rows=rows if rows.shape[0] else _blank(rows))

    def _k_best(self, X: object, k: int) -> Iterator[tuple[IntArray, FloatArray]]:
        """Return the codes of the k best outputs of each sequence, and their margins."""
        checked, tokens = check_k(k, self._owner), self._read(X)
        found = iter(k_best_outputs(self._unlabelled(tokens), self._w, checked))
        for length in np.diff(tokens.offsets).tolist():
            yield next(found) if length else (np.zeros((1, 0), dtype=np.int64), np.zeros(1))

    def _feature_names(self) -> Sequence[object]:
        """Return the names of features, or their indices."""
        return self.feature_names_ or range(self.n_features_in_)

    def _token_reader(self, tokens: Tokens, kind: str) -> RowReader:
        """Return a reader of the features of tokens."""
        return RowReader(tokens.rows, kind, named_by(self._feature_names()))

    @property
    @snapshot
    def _weights(self) -> tuple[FloatArray, ...]:
        """The weights by meaning."""
        return self._blank().unpack(self._w)

    def _blank(self) -> SequenceProblem:
        return self._unlabelled(Tokens(csr_array((1, self._n_columns)), np.array([0, 1])))


def _held(tokens: Tokens, call: Call) -> Tokens:
    return tokens._replace(rows=call.held(tokens.rows))


def _present(tokens: Tokens) -> Offsets:
    """Return the offsets of the sequences that have tokens, or of all tokens if there is none."""
    offsets = without_empty(tokens.offsets)
    return offsets if len(offsets) > 1 else np.array([0, tokens.rows.shape[0]])


def _blank(rows: RowFeatures) -> RowFeatures:
    """Return a row without features, in the form of these rows."""
    shape = 1, rows.shape[1]
    return np.zeros(shape) if isinstance(rows, np.ndarray) else csr_array(shape)


def weights_part(name: str, meaning: str) -> property:
    """Return a property of an estimator: one part of its weights, by its name in the problem."""

    def part(self: SequenceEstimator[Data, Output]) -> FloatArray:
        found: FloatArray = getattr(self._weights, name)
        return found

    return property(part, doc=meaning)


def feature_part(name: str, attribute: str, meaning: str) -> property:
    """Return a property like `weights_part`, of weights that only a linear model has."""

    def part(self: SequenceEstimator[Data, Output]) -> FloatArray:
        found: FloatArray = getattr(self._weights, name)
        self._check_linear(attribute)
        return found

    return property(part, doc=meaning)
