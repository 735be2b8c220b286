"""The tokens of many sequences in one matrix."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import ValueArray
from maxmargin.encoding.chunks import pieces

Offsets = NDArray[np.int64]


class Words(NamedTuple):
    """The nouns of error messages: for an example, and for its parts, which have features or labels."""

    example: str
    part: str

    def place(self, i: int, t: int) -> str:
        """Return a description of part t of example i."""
        return f"{self.part} {t} of {self.example} {i} of X"


SEQUENCES = Words("sequence", "token")


def check_widths(widths: Mapping[int, int], words: Words, owner: str) -> None:
    """Raise unless all examples have the same number of features; ``widths[i]`` is that of example i."""
    first = next(iter(widths))
    for i, width in widths.items():
        if width != widths[first]:
            raise ValueError(
                f"{owner}: {words.part}s of {words.example} {i} of X have {width} features, but those of "
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
