"""Feature numbers of many tokens, one after another, as the rows of a sparse matrix."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import frozen
from maxmargin.encoding.chunks import CHUNK, edges_of_runs

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Values = NDArray[np.float64]


def sparse_rows(codes: Codes, counts: Counts, values: Values | None, n_features: int) -> csr_array:
    """Matrix whose row t has the values of token t, added up where a feature repeats.

    Parameters
    ----------
    codes : ndarray of int32
        Feature numbers of all tokens; `n_features` for a feature to be left out.
    counts : ndarray of int64
        How many of the codes belong to each token.
    values : ndarray of float64 or None
        One value per code; None for ones.
    n_features : int

    Returns
    -------
    csr_array
        With sorted int32 indices without duplicates, and int64 indptr.
    """
    stops = np.cumsum(counts)
    edges = edges_of_runs(counts, CHUNK).tolist()
    parts = []
    for start, stop in pairwise(edges):
        run = slice(stops[start] - counts[start], stops[stop - 1])
        value = None if values is None else values[run]
        parts.append(_canonical(codes[run], counts[start:stop], value, n_features))
    indices = np.concatenate([part.indices for part in parts])
    lengths = np.concatenate([part.counts for part in parts])
    return assemble(_joined(parts), indices, np.append(0, np.cumsum(lengths)), n_features)


def assemble(data: Values, indices: Codes, indptr: Counts, n_features: int) -> csr_array:
    """A csr_array of exactly these arrays, which must be in canonical form and are frozen.

    The constructor would give indices and indptr the same type; kernels want int32 and int64.
    """
    rows = csr_array((len(indptr) - 1, n_features), dtype=np.float64)
    rows.data, rows.indices, rows.indptr = data, indices, indptr
    rows.has_sorted_indices = rows.has_canonical_format = True
    frozen(rows)
    return rows


def drop_columns(rows: csr_array, kept: NDArray[np.bool_]) -> csr_array:
    """The columns where `kept` is true, numbered anew."""
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    inside = kept[rows.indices]
    before = np.concatenate(([0], np.cumsum(inside)))
    indices = number[rows.indices[inside]]
    return assemble(rows.data[inside], indices, before[rows.indptr], int(kept.sum()))


class _Part(NamedTuple):
    """Some rows: indices, values (None for ones) and lengths."""

    indices: Codes
    values: Values | None
    counts: Counts


def _joined(parts: list[_Part]) -> Values:
    if all(part.values is None for part in parts):
        return np.ones(sum(len(part.indices) for part in parts))
    ones = (np.ones(len(part.indices)) if part.values is None else part.values for part in parts)
    return np.concatenate(list(ones))


def _canonical(codes: Codes, counts: Counts, values: Values | None, n_features: int) -> _Part:
    """Rows of some tokens: known features only, sorted, repeated ones added up."""
    # Row and feature in one number, the narrowest that holds it, since it is sorted. Never uint64:
    # together with int64 that makes float64, and older NumPy refuses to count it.
    stride = n_features + 1
    number = np.uint32 if stride * len(counts) < 1 << 32 else np.int64
    first = np.repeat((np.arange(len(counts)) * stride).astype(number), counts)
    key = first + codes.view(np.uint32)
    if values is None:
        key.sort()
    elif np.any(key[1:] < key[:-1]):
        order = np.argsort(key, kind="stable")
        key, values = key[order], values[order]
    indices = (key - first).astype(np.int32)
    kept = indices != n_features
    repeated = key[1:] == key[:-1]
    repeated &= kept[1:]
    if repeated.any():
        values = _added_up(key, values)
        kept[1:] &= ~repeated
    if not kept.all():
        counts = counts - np.bincount(first[~kept] // stride, minlength=len(counts))
        indices, values = indices[kept], None if values is None else values[kept]
    return _Part(indices, values, counts)


def _added_up(key: NDArray[np.integer], values: Values | None) -> Values:
    """Values of which the first of each run of equal keys is the sum of the run."""
    sums = np.ones(len(key)) if values is None else values.copy()
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sums[starts] = np.add.reduceat(sums, starts)
    return sums
