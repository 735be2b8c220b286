"""The tokens of many sequences in one matrix."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Offsets = NDArray[np.int64]


class Tokens(NamedTuple):
    """All tokens of all sequences, one after another.

    Attributes
    ----------
    rows : ndarray of float64 (n_tokens, n_features), C-contiguous, or csr_array
        Row t holds the features of token t. A csr_array has float64 data, int32 indices, sorted
        in each row and without duplicates, and int64 indptr. Its arrays are read-only.
    offsets : ndarray of int64 (n_sequences + 1,)
        The tokens of sequence i are ``rows[offsets[i]:offsets[i + 1]]``.
    """

    rows: NDArray[np.float64] | csr_array
    offsets: Offsets


def offsets_of(lengths: NDArray[np.int64], owner: str) -> Offsets:
    """Where each sequence starts, and the last ends; no sequence may be empty."""
    empty = np.flatnonzero(lengths == 0)
    if len(empty):
        raise ValueError(
            f"{owner}: sequence {empty[0]} of X is empty, expected at least one token; "
            "remove empty sequences from X (and from y)."
        )
    return np.append(0, np.cumsum(lengths)).astype(np.int64, copy=False)


def place(offsets: Offsets, token: int) -> str:
    """In words, where the token with this number in all is."""
    i = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"token {token - offsets[i]} of sequence {i} of X"


def first_not_finite(values: NDArray[np.float64]) -> int | None:
    """The place of the first NaN or infinity in `values`, read in order, if there is one."""
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only if all its terms are, and costs no temporary array.
        if np.isfinite(values.sum()):
            return None
    bad = np.flatnonzero(~np.isfinite(values).ravel())
    return int(bad[0]) if len(bad) else None
