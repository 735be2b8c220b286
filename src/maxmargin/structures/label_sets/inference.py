"""The spanning tree that best approximates the joint distribution of labels (Chow and Liu 1968)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import minimum_spanning_tree

from maxmargin.encoding.kinds import pieces
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import OutOfTime, Pace

# The smallest mutual information of two labels, above zero so that the tree spans all labels.
_LEAST = 1e-9


def mutual_information(y: ArrayLike, row_weights: FloatArray | None = None) -> FloatArray:
    """Return the mutual information, in nats, of each pair of columns of zeros and ones."""
    both = _joint_counts(np.asarray(y), row_weights)
    n, ones = both[-1, -1], both[-1]
    total = np.zeros(both.shape)
    # The last column of ``both`` is of ones: the counts of a label with it are those of the label alone.
    absent = ones[:, None] - both
    for joint, a, b in (
        (both, ones, ones),
        (absent, ones, n - ones),
        (absent.T, n - ones, ones),
        (n - ones - absent, n - ones, n - ones),
    ):
        seen, apart = joint > 0.0, np.outer(a / n, b / n)
        total[seen] += joint[seen] / n * np.log(joint[seen] / n / apart[seen])
    return total[:-1, :-1]


def _joint_counts(y: NDArray[np.generic], row_weights: FloatArray | None) -> FloatArray:
    """Return how often each pair of columns is one in the same row; the last column is a constant.

    Rows are counted piece by piece, as y may be large. If time is up, those so far have to do.
    """
    width, pace = y.shape[1] + 1, Pace()
    total = np.zeros((width, width))
    for piece in pieces(len(y), width):
        ones = np.column_stack([y[piece], np.ones(len(y[piece]))])
        total += (ones.T if row_weights is None else ones.T * row_weights[piece]) @ ones
        try:
            pace.check()
        except OutOfTime:
            break
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
