"""Tokens of sequences, which labellings and segmentations share: how they are encoded, named and stored."""

import os
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TypeVar, cast

import numpy as np
from scipy.sparse import csr_array

from maxmargin.encoding.kinds import (
    NOUNS,
    Kind,
    Offsets,
    Tokens,
    Words,
    as_sequences,
    some_sequences,
    without_empty,
)
from maxmargin.encoding.sequences import (
    MOST_BITS,
    HashingEncoder,
    NumberedSequences,
    ObjectEncoder,
    SequenceEncoder,
    holds_arrays,
)
from maxmargin.estimators import kernels
from maxmargin.estimators.examples import Examples, Lesson, Parts, present_weights
from maxmargin.estimators.explanation import RowReader, named_by
from maxmargin.estimators.inspection import in_form
from maxmargin.estimators.kernels import check_linear, is_linear, learn_kernel, prediction_rows
from maxmargin.estimators.state import snapshot, transaction
from maxmargin.estimators.structure import COUNT, AnyEstimator, Call, Field, Problem, choice
from maxmargin.files.corpus.opening import Corpus, CorpusSequences, open_corpus
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros, frozen_view
from maxmargin.structures.questions import k_best_outputs

# Tokens, and the indices of their labels.
TokenData = tuple[Tokens, IntArray]
_Estimator = TypeVar("_Estimator", bound=AnyEstimator)

TEXTS = kernels.TEXTS | {
    "rows": "tokens",
    "example": "sequence",
    "examples": "sequences",
    "X": """
        X : list of sequences
            Each is a 2-D array or sparse matrix with one row per token, or a list with one dict or one
            iterable of strings per token. Dicts have numbers, bools, strings, vectors (arrays with one
            axis), lists of strings or dicts as values. All sequences of all calls are of the same kind.
            Empty sequences have an empty output, and change nothing in training. Arrays may be read in
            place: do not change them during a call. `fit` also takes a corpus, or its directory, without y
            (`encode_files`).
        """,
}
_OBJECTS, _HASHED = "objects", "hashed"
_SIZE = ".size"
TokenEncoder = SequenceEncoder | HashingEncoder | ObjectEncoder


def _write_tokens(draft: Draft, name: str, encoder: TokenEncoder) -> None:
    kind: str = getattr(encoder, "kind_", _OBJECTS if isinstance(encoder, ObjectEncoder) else _HASHED)
    draft.put(name, kind)
    draft.put(name + _SIZE, encoder.n_features_in_)
    if encoder.feature_names_ is not None:
        draft.put_texts(name, encoder.feature_names_)


def _read_tokens(stored: Stored, name: str) -> TokenEncoder:
    kind = choice(_OBJECTS, _HASHED, *NOUNS).read(stored, name)
    size = COUNT.read(stored, name + _SIZE)
    if kind == _OBJECTS:
        return ObjectEncoder()
    if kind == _HASHED:
        return HashingEncoder(_checked_bits(stored, size))
    names = stored.take_texts(name) if stored.has(name) else None
    return SequenceEncoder.restored(cast("Kind", kind), size, names)


def _checked_bits(stored: Stored, size: int) -> int:
    bits = size.bit_length() - 1
    if size != 1 << max(bits, 0) or not 1 <= bits <= MOST_BITS:
        stored.fail("a power of two of hashed features", str(size))
    return bits


def named_rows(words: Words) -> Field:
    """Return the field of the encoder of the names of features of these parts."""

    def read(stored: Stored, name: str) -> SequenceEncoder:
        kind = choice("dicts", "strings").read(stored, name)
        size, names = COUNT.read(stored, name + _SIZE), stored.take_texts(name)
        return SequenceEncoder.restored(cast("Kind", kind), size, names, words)

    return Field(_write_tokens, read)


@transaction
def fit(self: _Estimator, X: object, y: object = None, sample_weight: object = None) -> _Estimator:
    """%(fit)s"""
    return self._learn((X, y), sample_weight)


def validated(model: AnyEstimator, parts: Parts) -> Parts:
    """Return users' sequences and outputs; a corpus holds both."""
    X, y = parts
    if y is None and isinstance(X, str | os.PathLike):
        X = open_corpus(X)
    parts = (X.X, X.y) if y is None and isinstance(X, Corpus) else parts
    if model.kernel != "linear" and not isinstance(parts[0], NumberedSequences | CorpusSequences):
        parts = as_sequences(parts[0]), parts[1]
    return parts


def encoded(model: AnyEstimator, X: object, call: Call) -> Tokens:
    """Return the tokens encoded; the first call learns the features."""
    if isinstance(X, CorpusSequences):
        return _mapped(model, X, call)
    if not call.first:
        X = X if isinstance(X, NumberedSequences) else some_sequences(X)
        return _held(model._encoder.transform(X), call)
    if callable(model.kernel) and not holds_arrays(X):
        model._encoder = ObjectEncoder()
    else:
        model._encoder = SequenceEncoder(min_count=model.min_count)
    tokens = model._encoder.fit_transform(X)
    name_features(model)
    learn_kernel(model, tokens.rows)
    return _held(tokens, call)


def _mapped(model: AnyEstimator, X: CorpusSequences, call: Call) -> Tokens:
    """Return the tokens of a corpus as they are, with the features that it was encoded with."""
    if call.more or not model.kernel == "linear" or model.min_count != 1:
        raise ValueError(
            "a corpus is for fit with kernel='linear' and min_count=1; encode it with "
            "another min_count, or pass lists of sequences."
        )
    if X.names is None:
        model._encoder = HashingEncoder(cast("int", X.hash_bits))
    else:
        n_features = len(X.names)
        model._encoder = SequenceEncoder.restored(X.kind, n_features, X.names)
    name_features(model)
    learn_kernel(model, X.tokens.rows)
    return X.tokens


def _held(tokens: Tokens, call: Call) -> Tokens:
    return tokens._replace(rows=call.held(tokens.rows))


def trained(tokens: Tokens, outputs: IntArray, weights: FloatArray | None) -> Examples[TokenData]:
    """Return the examples to train on: all but empty sequences, whose hinge is zero at any weights."""
    kept = present_weights(weights, np.diff(tokens.offsets))
    return Examples((tokens._replace(offsets=without_empty(tokens.offsets)), outputs), kept)


def name_features(model: AnyEstimator) -> None:
    """Set the attributes that follow from the encoder."""
    model.n_features_in_, model.feature_names_ = model._encoder.n_features_in_, model._encoder.feature_names_


def check_tokens(model: AnyEstimator) -> None:
    """Raise ValueError unless the encoder and the kernel that a file had go together."""
    name_features(model)
    kernels.check_kernel(model)
    if isinstance(model._encoder, ObjectEncoder) != (not is_linear(model) and model._support.rows.ndim == 1):
        raise ValueError("support rows must be of the kind that the encoder makes")


FIELDS = kernels.FIELDS | {"_encoder": Field(_write_tokens, _read_tokens, check=check_tokens)}


def read(model: AnyEstimator, X: object) -> Tokens:
    """Return the tokens of sequences whose outputs are to be predicted."""
    is_encoded = isinstance(X, CorpusSequences) and _has_features_of(model, X)
    tokens = cast("CorpusSequences", X).tokens if is_encoded else model._encoder.transform(X)
    return tokens._replace(rows=prediction_rows(model, frozen_view(tokens.rows)))


def _has_features_of(model: AnyEstimator, X: CorpusSequences) -> bool:
    """Whether a corpus was encoded with the features of this model."""
    if isinstance(model._encoder, HashingEncoder):
        return X.hash_bits == model._encoder.bits
    return X.names is not None and X.names == model._encoder.feature_names_


def blank(model: AnyEstimator) -> Tokens:
    """Return a sequence of one token without features."""
    return Tokens(csr_array((1, kernels.n_columns(model))), np.array([0, 1]))


def k_best(
    model: AnyEstimator, problem: Problem | None, offsets: Offsets, k: int
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Return the codes of the k best outputs of each sequence, and their margins."""
    found = iter(() if problem is None else k_best_outputs(problem, model._w, k))
    for length in np.diff(offsets).tolist():
        yield next(found) if length else (np.zeros((1, 0), dtype=np.int64), np.zeros(1))


def feature_names(model: AnyEstimator) -> Sequence[object]:
    """Return the names of features, or their indices."""
    return model.feature_names_ or range(model.n_features_in_)


def token_reader(model: AnyEstimator, tokens: Tokens, kind: str) -> RowReader:
    """Return a reader of the features of tokens."""
    return RowReader(tokens.rows, kind, named_by(feature_names(model)))


@snapshot
def weights_of(model: AnyEstimator) -> tuple[FloatArray, ...]:
    """Return the weights by meaning."""
    return model._structure.layout(model).unpack(model._w)


def forget_unused(model: AnyEstimator) -> None:
    """Drop the names of features whose weights are all zero, as names unknown to a model score nothing.

    Of the features ``name[0]``, ``name[1]`` and so on all stay if one does: they tell how long the vectors of
    that name are.
    """
    parts, encoder = model._structure.named_parts, getattr(model, "_encoder", None)
    if not (parts and isinstance(encoder, SequenceEncoder) and isinstance(model.feature_names_, list)):
        return
    names = model.feature_names_
    before = weights_of(model)._asdict()  # type: ignore[attr-defined]
    used = np.any([before[part].any(axis=0) for part in parts], axis=0)
    used[0] |= not used.any()  # no model is without features
    vectors = [name.rpartition("[")[0] if name.endswith("]") else "" for name in names]
    stay = set(compress(vectors, used)) - {""}
    used |= [vector in stay for vector in vectors]
    kept = [name for name, is_used in zip(names, used.tolist(), strict=True) if is_used]
    model._encoder = SequenceEncoder.restored(encoder.kind_, len(kept), kept)
    name_features(model)
    layout = model._structure.layout(model)
    model._w = aligned_zeros(layout.size)
    for name, part in layout.unpack(model._w)._asdict().items():  # type: ignore[attr-defined]
        part[...] = before[name][:, used] if name in parts else before[name]


def weights_part(name: str, meaning: str, linear: str = "") -> property:
    """Return a property of an estimator: one part of its weights, by its name in the problem.

    ``linear`` is the name of an attribute that only a linear model has.
    """

    def part(self: AnyEstimator) -> FloatArray:
        found: FloatArray = getattr(weights_of(self), name)
        if linear:
            check_linear(self, linear)
            found = in_form(self, found)
        return found

    return property(part, doc=meaning)


def tokens_lesson(model: AnyEstimator, X: object, weights: FloatArray | None) -> tuple[Tokens, Lesson]:
    """Return the tokens of sequences, and what they teach: names, and in how many tokens they occur."""
    encoder = SequenceEncoder()
    tokens = encoder.fit_transform(X)
    names = None
    if encoder.feature_names_ is not None:
        counts = np.bincount(csr_array(tokens.rows).indices, minlength=encoder.n_features_in_)
        names = dict(zip(encoder.feature_names_, counts.tolist(), strict=True))
    is_present = np.diff(tokens.offsets) > 0
    attributes = {"kind": encoder.kind_, "n_features_in_": encoder.n_features_in_}
    weight = float(is_present.sum() if weights is None else weights[is_present].sum())
    return tokens, Lesson({0: int(is_present.sum())}, weight, names=names, attributes=attributes)


def learn_tokens(model: AnyEstimator, lesson: Lesson) -> None:
    """Set what encoding needs, from the lesson of all sequences."""
    names, about = lesson.names, lesson.attributes
    if names is not None:
        names = {name: count for name, count in names.items() if count >= model.min_count}
        if not names:
            raise ValueError(f"no feature occurs in min_count={model.min_count} tokens; lower min_count.")
    n_features = about["n_features_in_"] if names is None else len(names)
    listed = None if names is None else list(names)
    model._encoder = SequenceEncoder.restored(about["kind"], n_features, listed)
    model._dtype = about["_dtype"]
    name_features(model)
    learn_kernel(model, None)
