"""Work in runs short enough for the processor's cache."""

import numpy as np
from numpy.typing import NDArray

# Elements per run: some arrays of this length fit a second-level cache together.
CHUNK = 20_000


def edges_of_runs(sizes: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Edges of runs of items whose sizes add up to about `limit`: run k is edges[k]:edges[k+1].

    Every run has an item at least; there is one run, of none, if there are no items.
    """
    total = np.cumsum(sizes)
    whole = int(total[-1]) if len(total) else 0
    cuts = np.searchsorted(total, np.arange(limit, whole, limit)) + 1
    return np.unique(np.concatenate(([0], cuts, [len(sizes)])))
