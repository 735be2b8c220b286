"""Chunks of work that fit into the cache of the processor."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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
