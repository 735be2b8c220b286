"""The kinds of sequences that users give, their places in one matrix, and chunks of work over them."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import pairwise
from numbers import Number
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from maxmargin.runtime.arrays import FloatArray, ValueArray, freeze, is_sparse
from maxmargin.runtime.wording import described, quoted

# Elements per chunk: a few arrays of this length fit into a second-level cache together.
CHUNK = 20_000
# Elements of large arrays that are processed at a time, so that temporary arrays take little memory.
PIECE = 1 << 18


def chunk_edges(sizes: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Divide items into chunks whose sizes add up to about `limit`; chunk k is ``edges[k]:edges[k + 1]``.

    Every chunk has at least one item. Without any items there is one empty chunk.
    """
    total = np.cumsum(sizes)
    whole = int(total[-1]) if len(total) else 0
    cuts = np.searchsorted(total, np.arange(limit, whole, limit)) + 1
    return np.unique(np.concatenate(([0], cuts, [len(sizes)])))


def pieces(length: int, width: int = 1) -> Iterator[slice]:
    """Yield slices of ``length`` rows of ``width`` elements, each of about `PIECE` elements or of one row."""
    step = max(1, PIECE // max(1, width))
    return (slice(first, min(first + step, length)) for first in range(0, length, step))


def row_pieces(start: NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield the first row and the last plus one of pieces of a CSR matrix with about `PIECE` entries each."""
    cuts = np.searchsorted(start, np.arange(PIECE, int(start[-1]), PIECE))
    return pairwise(np.unique([0, *cuts, len(start) - 1]).tolist())


Offsets = NDArray[np.int64]


class Words(NamedTuple):
    """The nouns of error messages: for an example, and for its parts, which have features or labels."""

    example: str
    part: str

    def place(self, i: int, t: int) -> str:
        """Return a description of part t of example i."""
        return f"{self.part} {t} of {self.example} {i} of X"


SEQUENCES = Words("sequence", "token")


def check_widths(widths: Mapping[int, int], words: Words) -> None:
    """Raise unless all examples have the same number of features; ``widths[i]`` is that of example i."""
    first = next(iter(widths))
    for i, width in widths.items():
        if width != widths[first]:
            raise ValueError(
                f"{words.part}s of {words.example} {i} of X have {width} features, but those of "
                f"{words.example} {first} have {widths[first]}; give all {words.part}s the same features."
            )


class Tokens(NamedTuple):
    """All tokens of all sequences, one after another.

    Attributes
    ----------
    rows : ndarray of float64 or float32 (n_tokens, n_features), C-contiguous, or csr_array
        Row t holds the features of token t. A csr_array has data of either type, int64 indptr, and int32
        indices that are sorted in each row, without duplicates. The arrays are read-only. An ndarray is a
        view of the caller's array if all sequences are consecutive parts of one, else new.
    offsets : ndarray of int64 (n_sequences + 1,)
        The tokens of sequence i are ``rows[offsets[i]:offsets[i + 1]]``; there may be none.
    """

    rows: ValueArray | csr_array
    offsets: Offsets


def offsets_of(lengths: NDArray[np.int64]) -> Offsets:
    """Return where each sequence starts, and where the last one ends."""
    return np.append(0, np.cumsum(lengths)).astype(np.int64, copy=False)


def without_empty(offsets: Offsets) -> Offsets:
    """Return the offsets of the sequences that have tokens."""
    return offsets[np.append(True, np.diff(offsets) > 0)]


def place(offsets: Offsets, token: int, words: Words = SEQUENCES) -> str:
    """Return a description of the position of a token, given its number among all tokens."""
    i = int(np.searchsorted(offsets, token, side="right")) - 1
    return words.place(i, token - int(offsets[i]))


def first_not_finite(values: NDArray[np.number]) -> int | None:
    """Return the flat index of the first NaN or infinity in `values`, or None."""
    width = values.size // max(1, len(values))
    for piece in pieces(len(values), width):
        some = values[piece]
        with np.errstate(over="ignore", invalid="ignore"):
            # A sum is finite only if all its terms are. It needs no temporary array.
            if np.isfinite(some.sum(dtype=np.float64)):
                continue
        bad = np.flatnonzero(~np.isfinite(some))
        if len(bad):
            return piece.start * width + int(bad[0])
    return None


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


def as_sequences(X: object) -> list[object]:
    """Return X as a list of sequences; those that are iterators become lists."""
    advice = _advice_on_container(X)
    if advice or not isinstance(X, Iterable):
        raise TypeError(f"X must be {EXPECTED}, got {described(X)}; {advice}.")
    return [list(item) if isinstance(item, Iterator) else item for item in X]


def some_sequences(X: object) -> list[object]:
    """Return X as a list of sequences, of which one or more have tokens."""
    return checked_some(as_sequences(X), "sequence")


def checked_some(items: list[object], noun: str) -> list[object]:
    """Return the examples; raise if all of them are empty."""
    if not items:
        raise ValueError(f"X has no {noun}, expected at least one; got an empty list.")
    if all(map(is_empty, items)):
        raise ValueError(f"each {noun} of X is empty; give one or more that are not.")
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


def find_kind(sequences: list[object], words: Words = SEQUENCES) -> Kind:
    """Return the kind of the first sequence whose kind is recognisable."""
    kinds = (kind_of(sequence, i, words) for i, sequence in enumerate(sequences))
    # Tokens without features are the same as empty lists of strings.
    return next((kind for kind in kinds if kind is not None), "strings")


def kind_of(sequence: object, i: int, words: Words = SEQUENCES) -> Kind | None:
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
            f"{words.example} {i} of X is {described(sequence)}, expected a list of {words.part}s, "
            "a 2-D array or a sparse matrix; "
            + ("describe each word by features." if is_text else f"if X is one {words.example} pass [X].")
        )
    kinds = (kind_of_token(token, words.place(i, t), words) for t, token in enumerate(sequence))
    return next((kind for kind in kinds if kind is not None), None)


def kind_of_token(token: object, where: str, words: Words = SEQUENCES) -> Kind | None:
    """Return the kind of sequence that a token belongs to; None if the token has no features."""
    if isinstance(token, str | bytes):
        raise TypeError(
            f"{where} is the plain string {quoted(token)}, expected a dict or a list of "
            f"feature strings; wrap words as [[word], ...], and if X is one {words.example} pass [X]."
        )
    if isinstance(token, Number | np.bool_):
        raise ValueError(
            f"{where} is the number {quoted(token)}, so the {words.example} is 1-D; expected 2-D "
            f"(length, n_features): use reshape(-1, 1) for one feature, [X] if X is one {words.example}."
        )
    if isinstance(token, Mapping):
        return "dicts"
    if isinstance(token, set | frozenset | Iterator):
        return "strings"
    if not isinstance(token, Iterable):
        raise TypeError(
            f"{where} is {described(token)}, expected a dict, a list of feature strings or a list of numbers."
        )
    return _kind_of_features(token, where)


def _kind_of_features(token: Iterable[object], where: str) -> Kind | None:
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
        f"{where} starts with {described(first)}, expected feature strings or numbers; "
        "use a dict {name: number} for named features."
    )


def mixture(i: int, sequence: object, kind: Kind, words: Words = SEQUENCES) -> TypeError:
    """Return the error for sequence i if the sequences before it are of another kind."""
    other = kind_of(sequence, i, words)
    got = described(sequence) if other is None or other == kind else NOUNS[other]
    return TypeError(
        f"{words.example} {i} of X is {got}, but the first is {NOUNS[kind]}; "
        f"give all {words.example}s the same form."
    )


def checked_floats(values: object, name: str) -> FloatArray:
    """Return an array of float64; raise unless all values are numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers, got {described(values)}.") from None


_Encoded = TypeVar("_Encoded")

# Arrays with these names hold the places where examples begin, and where the last one ends.
_OFFSETS = ("offsets", "edge_offsets", "start")


def joined(first: _Encoded, second: _Encoded) -> _Encoded:
    """Return the examples of both, one after another.

    Examples are named tuples, tuples or lists of arrays and sparse matrices. A matrix of the result is sparse
    if either matrix is. Anything else is a number that both have in common.
    """
    both: _Encoded = _joined(first, second, "")
    return both


def _joined(first: Any, second: Any, name: str) -> Any:
    if isinstance(first, tuple):
        names = getattr(first, "_fields", ("",) * len(first))
        fields = [_joined(a, b, field) for a, b, field in zip(first, second, names, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
    if isinstance(first, list):
        return first + second
    if name in _OFFSETS:
        return np.concatenate([first, first[-1] + second[1:]])
    if is_sparse(first) or is_sparse(second):
        return freeze(csr_array(vstack([csr_array(first), csr_array(second)])))
    return freeze(np.concatenate([first, second])) if isinstance(first, np.ndarray) else first
