"""Sparse matrices made from the feature numbers of many tokens."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import ValueArray, csr_of, frozen
from maxmargin.encoding.chunks import CHUNK, chunk_edges

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Values = NDArray[np.float64]


def sparse_rows(codes: Codes, counts: Counts, values: Values | None, n_features: int) -> csr_array:
    """Return the matrix whose row t has the values of token t; values of repeated features are added.

    Parameters
    ----------
    codes : ndarray of int32
        Feature numbers of all tokens, one token after another; `n_features` for unknown features.
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
    if not len(counts):
        return assemble(np.zeros(0), np.zeros(0, np.int32), np.zeros(1, np.int64), n_features)
    stops = np.cumsum(counts)
    edges = chunk_edges(counts, CHUNK).tolist()
    chunks = []
    for start, stop in pairwise(edges):
        entries = slice(stops[start] - counts[start], stops[stop - 1])
        value = None if values is None else values[entries]
        chunks.append(_canonical(codes[entries], counts[start:stop], value, n_features))
    indices = np.concatenate([chunk.indices for chunk in chunks])
    lengths = np.concatenate([chunk.counts for chunk in chunks])
    return assemble(_joined_values(chunks), indices, np.append(0, np.cumsum(lengths)), n_features)


def assemble(data: ValueArray, indices: Codes, indptr: Counts, n_features: int) -> csr_array:
    """Return a csr_array of exactly these arrays, which must be in canonical form, and freeze them."""
    rows = csr_of(data, indices, indptr, n_features)
    rows.has_sorted_indices = rows.has_canonical_format = True
    frozen(rows)
    return rows


def drop_columns(rows: csr_array, kept: NDArray[np.bool_]) -> csr_array:
    """Return the matrix of the columns where `kept` is true."""
    number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    inside = kept[rows.indices]
    before = np.concatenate(([0], np.cumsum(inside)))
    indices = number[rows.indices[inside]]
    return assemble(rows.data[inside], indices, before[rows.indptr], int(kept.sum()))


class _Chunk(NamedTuple):
    """Some rows: their indices, values (None for ones) and lengths."""

    indices: Codes
    values: Values | None
    counts: Counts


def _joined_values(chunks: list[_Chunk]) -> Values:
    if all(chunk.values is None for chunk in chunks):
        return np.ones(sum(len(chunk.indices) for chunk in chunks))
    values = [np.ones(len(chunk.indices)) if chunk.values is None else chunk.values for chunk in chunks]
    return np.concatenate(values)


def _canonical(codes: Codes, counts: Counts, values: Values | None, n_features: int) -> _Chunk:
    """Return the rows of some tokens, with known features only, sorted, repeated ones added up."""
    # One number for row and feature, as narrow as possible, since sorting takes most of the time. Never
    # uint64: together with int64 it makes float64, and older versions of NumPy cannot count it.
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
    return _Chunk(indices, values, counts)


def _added_up(key: NDArray[np.integer], values: Values | None) -> Values:
    """Return the values, with the sum of each run of equal keys at the first place of the run."""
    sums = np.ones(len(key)) if values is None else values.copy()
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sums[starts] = np.add.reduceat(sums, starts)
    return sums
