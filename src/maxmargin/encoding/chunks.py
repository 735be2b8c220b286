"""Chunks of work that fit into the cache of the processor."""

import numpy as np
from numpy.typing import NDArray

# Elements per chunk: a few arrays of this length fit into a second-level cache together.
CHUNK = 20_000


def chunk_edges(sizes: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Divide items into chunks whose sizes add up to about `limit`; chunk k is ``edges[k]:edges[k + 1]``.

    Every chunk has at least one item. Without any items there is one empty chunk.
    """
    total = np.cumsum(sizes)
    whole = int(total[-1]) if len(total) else 0
    cuts = np.searchsorted(total, np.arange(limit, whole, limit)) + 1
    return np.unique(np.concatenate(([0], cuts, [len(sizes)])))
