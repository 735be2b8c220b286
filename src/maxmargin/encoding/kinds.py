"""What kind of sequences X holds, and errors for what is none."""

from collections.abc import Iterable, Iterator, Mapping
from numbers import Number
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

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


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether the dtype is boolean, integer or real."""
    return dtype.kind in "biuf"


def as_sequences(X: Any, owner: str) -> list[Any]:
    """X as a list of sequences, none of them an iterator."""
    advice = _advice_on_container(X)
    if advice:
        raise TypeError(f"{owner}: X must be {EXPECTED}, got {described(X)}; {advice}.")
    sequences = [list(item) if isinstance(item, Iterator) else item for item in X]
    if not sequences:
        raise ValueError(f"{owner}: X has no sequence, expected at least one; got {described(X)}.")
    return sequences


def _advice_on_container(X: Any) -> str:
    """What to do instead if X is no list of sequences; empty if it may be one."""
    if isinstance(X, str | bytes):
        return "split the text into sequences of tokens and describe each token by its features"
    if isinstance(X, Mapping):
        return "pass a list of its sequences"
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return "pass one array per sequence, as [g.to_numpy() for _, g in frame.groupby(...)]"
    if issparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and is_numeric(X.dtype)):
        return "if it is one sequence pass [X], else split its rows into one matrix per sequence"
    if isinstance(X, np.ndarray) and X.ndim < 2 and X.dtype != object:
        return "pass a list of 2-D arrays of shape (length, n_features)"
    return "" if isinstance(X, Iterable) else "pass a list"


def find_kind(sequences: list[Any], owner: str) -> Kind:
    """The kind of the first sequence that shows one."""
    kinds = (kind_of(sequence, i, owner) for i, sequence in enumerate(sequences))
    # Tokens without any feature look like lists of no strings.
    return next((kind for kind in kinds if kind is not None), "strings")


def kind_of(sequence: Any, i: int, owner: str) -> Kind | None:
    """The kind of sequence i; None if it has no tokens, or only tokens without features."""
    if issparse(sequence):
        return "sparse"
    if hasattr(sequence, "__array__"):
        array = np.asarray(sequence)
        if is_numeric(array.dtype):
            return "dense"
        sequence = array.tolist()
    if isinstance(sequence, str | bytes | Mapping) or not isinstance(sequence, Iterable):
        is_text = isinstance(sequence, str | bytes)
        raise TypeError(
            f"{owner}: sequence {i} of X is {described(sequence)}, expected a list of tokens, "
            "a 2-D array or a sparse matrix; "
            + ("describe each word by features." if is_text else "if X is one sequence pass [X].")
        )
    kinds = (
        kind_of_token(token, f"token {t} of sequence {i} of X", owner) for t, token in enumerate(sequence)
    )
    return next((kind for kind in kinds if kind is not None), None)


def kind_of_token(token: Any, where: str, owner: str) -> Kind | None:
    """The kind of sequence that such a token belongs to; None if it has no features."""
    if isinstance(token, str | bytes):
        raise TypeError(
            f"{owner}: {where} is the plain string {quoted(token)}, expected a dict or a list of "
            "feature strings; wrap words as [[word], ...], and if X is one sequence pass [X]."
        )
    if isinstance(token, Number | np.bool_):
        raise ValueError(
            f"{owner}: {where} is the number {quoted(token)}, so the sequence is 1-D; expected 2-D "
            "(length, n_features): use reshape(-1, 1) for one feature, [X] if X is one sequence."
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


def _kind_of_features(token: Iterable[Any], where: str, owner: str) -> Kind | None:
    """The kind of a token by its first feature."""
    nothing = object()
    first = next(iter(token), nothing)
    if first is nothing:
        return None
    if isinstance(first, str):
        return "strings"
    if isinstance(first, Number | np.bool_):
        return "dense"
    raise TypeError(
        f"{owner}: {where} starts with {described(first)}, expected feature strings or numbers; "
        "use a dict {name: number} for named features."
    )


def mixture(i: int, sequence: Any, kind: Kind, owner: str) -> Exception:
    """The error for sequence i of a list whose other sequences are of another kind."""
    other = kind_of(sequence, i, owner)
    got = NOUNS[other] if other not in (None, kind) else described(sequence)
    return TypeError(
        f"{owner}: sequence {i} of X is {got}, but the first is {NOUNS[kind]}; "
        "give all sequences in one form."
    )
