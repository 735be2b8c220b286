"""The tree of labels that tells most of their joint distribution (Chow and Liu 1968)."""

from typing import Any

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from maxmargin.arrays import FloatArray, IntArray

# What every pair of labels is taken to share at least, so that the tree joins them all.
_LEAST = 1e-9


def mutual_information(y: Any, weights: FloatArray | None = None) -> FloatArray:
    """Return the mutual information of every two columns of zeros and ones, in nats, of weighted rows."""
    ones, counts = np.asarray(y, dtype=np.float64), np.ones(len(y)) if weights is None else weights
    n = counts.sum()
    total = np.zeros((ones.shape[1], ones.shape[1]))
    for a in (ones, 1.0 - ones):
        for b in (ones, 1.0 - ones):
            joint, apart = (a.T * counts) @ b / n, np.outer(counts @ a / n, counts @ b / n)
            seen = joint > 0.0
            total[seen] += joint[seen] * np.log(joint[seen] / apart[seen])
    return total


def chow_liu(y: Any, weights: FloatArray | None = None) -> IntArray:
    """Return the edges of the spanning tree of largest mutual information between columns of zeros and ones.

    Parameters
    ----------
    y : array of shape (n, n_labels)
    weights : array of shape (n,), optional
        How often each row counts.

    Returns
    -------
    array of shape (n_labels - 1, 2)
    """
    shared = np.maximum(mutual_information(y, weights), _LEAST)
    edges = np.argwhere(minimum_spanning_tree(-np.triu(shared, 1)).toarray() < 0.0)
    return edges.astype(np.int64)
