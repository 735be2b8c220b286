"""Recognise the kind of sequences that X holds, and report what cannot be a sequence."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from numbers import Number
from typing import Literal

import numpy as np

from maxmargin.arrays import FloatArray, is_sparse
from maxmargin.encoding.tokens import SEQUENCES, Words
from maxmargin.wording import described, quoted

Kind = Literal["dense", "sparse", "dicts", "strings"]

NOUNS = {
    "dense": "a 2-D array of numbers",
    "sparse": "a sparse matrix",
    "dicts": "a list of dicts",
    "strings": "a list of lists of feature strings",
}
EXPECTED = (
    "a list of sequences, each a 2-D array, a sparse matrix, "
    "or a list of tokens that are dicts or lists of feature strings"
)


def is_numeric(dtype: np.dtype[np.generic]) -> bool:
    """Return whether the dtype is boolean, integer or real."""
    return dtype.kind in "biuf"


def as_sequences(X: object, owner: str) -> list[object]:
    """Return X as a list of sequences; those that are iterators become lists."""
    advice = _advice_on_container(X)
    if advice or not isinstance(X, Iterable):
        raise TypeError(f"{owner}: X must be {EXPECTED}, got {described(X)}; {advice}.")
    return [list(item) if isinstance(item, Iterator) else item for item in X]


def some_sequences(X: object, owner: str) -> list[object]:
    """Return X as a list of sequences, of which one or more have tokens."""
    return checked_some(as_sequences(X, owner), "sequence", owner)


def checked_some(items: list[object], noun: str, owner: str) -> list[object]:
    """Return the examples; raise if all of them are empty."""
    if not items:
        raise ValueError(f"{owner}: X has no {noun}, expected at least one; got an empty list.")
    if all(map(is_empty, items)):
        raise ValueError(f"{owner}: each {noun} of X is empty; give one or more that are not.")
    return items


def is_empty(sequence: object) -> bool:
    """Return whether a sequence has no tokens; texts and dicts are not sequences, whatever their length."""
    shape = getattr(sequence, "shape", None)
    if isinstance(shape, tuple):
        return bool(shape) and shape[0] == 0
    return (
        isinstance(sequence, Sized) and not isinstance(sequence, str | bytes | Mapping) and not len(sequence)
    )


def _advice_on_container(X: object) -> str:
    """Return advice if X cannot be a list of sequences, or an empty string if it can."""
    if isinstance(X, str | bytes):
        return "split the text into sequences of tokens and describe each token by its features"
    if isinstance(X, Mapping):
        return "pass a list of its sequences"
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return "pass one array per sequence, as [g.to_numpy() for _, g in frame.groupby(...)]"
    if is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and is_numeric(X.dtype)):
        return "if it is one sequence pass [X], else split its rows into one matrix per sequence"
    if isinstance(X, np.ndarray) and X.ndim < 2 and X.dtype != object:
        return "pass a list of 2-D arrays of shape (length, n_features)"
    return "" if isinstance(X, Iterable) else "pass a list"


def find_kind(sequences: list[object], owner: str, words: Words = SEQUENCES) -> Kind:
    """Return the kind of the first sequence whose kind is recognisable."""
    kinds = (kind_of(sequence, i, owner, words) for i, sequence in enumerate(sequences))
    # Tokens without features are the same as empty lists of strings.
    return next((kind for kind in kinds if kind is not None), "strings")


def kind_of(sequence: object, i: int, owner: str, words: Words = SEQUENCES) -> Kind | None:
    """Return the kind of sequence i; None if it has no tokens, or only tokens without features."""
    if is_sparse(sequence):
        return "sparse"
    if hasattr(sequence, "__array__"):
        array = np.asarray(sequence)
        if is_numeric(array.dtype):
            return "dense"
        sequence = array.tolist()
    if isinstance(sequence, str | bytes | Mapping) or not isinstance(sequence, Iterable):
        is_text = isinstance(sequence, str | bytes)
        raise TypeError(
            f"{owner}: {words.example} {i} of X is {described(sequence)}, expected a list of {words.part}s, "
            "a 2-D array or a sparse matrix; "
            + ("describe each word by features." if is_text else f"if X is one {words.example} pass [X].")
        )
    kinds = (kind_of_token(token, words.place(i, t), owner, words) for t, token in enumerate(sequence))
    return next((kind for kind in kinds if kind is not None), None)


def kind_of_token(token: object, where: str, owner: str, words: Words = SEQUENCES) -> Kind | None:
    """Return the kind of sequence that a token belongs to; None if the token has no features."""
    if isinstance(token, str | bytes):
        raise TypeError(
            f"{owner}: {where} is the plain string {quoted(token)}, expected a dict or a list of "
            f"feature strings; wrap words as [[word], ...], and if X is one {words.example} pass [X]."
        )
    if isinstance(token, Number | np.bool_):
        raise ValueError(
            f"{owner}: {where} is the number {quoted(token)}, so the {words.example} is 1-D; expected 2-D "
            f"(length, n_features): use reshape(-1, 1) for one feature, [X] if X is one {words.example}."
        )
    if isinstance(token, Mapping):
        return "dicts"
    if isinstance(token, set | frozenset | Iterator):
        return "strings"
    if not isinstance(token, Iterable):
        raise TypeError(
            f"{owner}: {where} is {described(token)}, expected a dict, a list of feature strings "
            "or a list of numbers."
        )
    return _kind_of_features(token, where, owner)


def _kind_of_features(token: Iterable[object], where: str, owner: str) -> Kind | None:
    """Return the kind of a token, recognised by its first feature; None if it has no features."""
    nothing = object()
    first = next(iter(token), nothing)
    if first is nothing:
        return None
    if isinstance(first, str | bytes):
        return "strings"
    if isinstance(first, Number | np.bool_):
        return "dense"
    raise TypeError(
        f"{owner}: {where} starts with {described(first)}, expected feature strings or numbers; "
        "use a dict {name: number} for named features."
    )


def mixture(i: int, sequence: object, kind: Kind, owner: str, words: Words = SEQUENCES) -> TypeError:
    """Return the error for sequence i if the sequences before it are of another kind."""
    other = kind_of(sequence, i, owner, words)
    got = described(sequence) if other is None or other == kind else NOUNS[other]
    return TypeError(
        f"{owner}: {words.example} {i} of X is {got}, but the first is {NOUNS[kind]}; "
        f"give all {words.example}s the same form."
    )


def checked_floats(values: object, owner: str, name: str) -> FloatArray:
    """Return an array of float64; raise unless all values are numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{owner}: {name} must be numbers, got {described(values)}.") from None
