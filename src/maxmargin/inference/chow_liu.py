"""The spanning tree that best approximates the joint distribution of labels (Chow and Liu 1968)."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import minimum_spanning_tree

from maxmargin.arrays import FloatArray, IntArray

# The smallest mutual information of two labels, above zero so that the tree spans all labels.
_LEAST = 1e-9


def mutual_information(y: ArrayLike, row_weights: FloatArray | None = None) -> FloatArray:
    """Return the mutual information, in nats, of each pair of columns of zeros and ones."""
    ones, counts = (
        np.asarray(y, dtype=np.float64),
        np.ones(np.shape(y)[0]) if row_weights is None else row_weights,
    )
    n = counts.sum()
    total = np.zeros((ones.shape[1], ones.shape[1]))
    for a in (ones, 1.0 - ones):
        for b in (ones, 1.0 - ones):
            joint, apart = (a.T * counts) @ b / n, np.outer(counts @ a / n, counts @ b / n)
            seen = joint > 0.0
            total[seen] += joint[seen] * np.log(joint[seen] / apart[seen])
    return total


def chow_liu(y: ArrayLike, row_weights: FloatArray | None = None) -> IntArray:
    """Return the edges of the spanning tree with the largest mutual information between columns.

    Parameters
    ----------
    y : array of shape (n, n_labels)
        Zeros and ones.
    row_weights : array of shape (n,), optional
        Weight of each row; one by default.

    Returns
    -------
    array of shape (n_labels - 1, 2)
    """
    shared = np.maximum(mutual_information(y, row_weights), _LEAST)
    edges = np.argwhere(minimum_spanning_tree(-np.triu(shared, 1)).toarray() < 0.0)
    return edges.astype(np.int64)
