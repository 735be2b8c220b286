"""The scales of features: their variance, and advice for a run that does not converge."""

from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from maxmargin.arrays import FloatArray

# Columns whose entries differ by this factor are worth a word.
_SPREAD = 100.0
# A variance that is a smaller share of the mean square may be rounding alone.
_ROUNDING = 1e-12
_PIECE = 1 << 16

Rows: TypeAlias = FloatArray | csr_array


def total_variance(rows: Rows, weights: FloatArray | None) -> float:
    """Return the sum of the variances of all columns, with weights of rows; zero if rows are all alike."""
    n = rows.shape[0]
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    with np.errstate(over="ignore"):
        # Piece by piece, as the squares of all pixels of many images take much memory.
        pieces = [slice(first, first + _PIECE) for first in range(0, n, _PIECE)]
        mean_square = sum(float((shares[piece] @ _squares(rows[piece])).sum()) for piece in pieces)
        variance = mean_square - float(np.square(shares @ rows).sum())
    return variance if variance > _ROUNDING * mean_square else 0.0


def _squares(rows: Rows) -> Rows:
    return np.square(rows) if isinstance(rows, np.ndarray) else rows.multiply(rows)


def scale_advice(examples: object) -> str:
    """Return what to do about encoded features on very different scales; empty if they are alike.

    Steps are as long as the largest features allow, so that the weights of small ones hardly move.
    """
    scales = _column_scales(examples)
    if not len(scales) or not (scales.max() > _SPREAD * scales.min()):
        return ""
    return (
        f"; the root mean squares of the columns of X range from {scales.min():.2g} to {scales.max():.2g}, "
        "which makes training slow: scale X, for example by sklearn's StandardScaler, within sequences or "
        "graphs by maxmargin.TokenTransformer"
    )


def _column_scales(examples: object) -> FloatArray:
    """Return the root mean square of the nonzero entries of each column that has any."""
    matrix = _features(examples)
    if isinstance(matrix, np.ndarray) and matrix.ndim == 2:
        squares, counts = np.square(matrix).sum(axis=0), np.count_nonzero(matrix, axis=0)
    elif issparse(matrix):
        rows = csr_array(matrix)
        squares = np.bincount(rows.indices, np.square(rows.data), rows.shape[1])
        counts = np.bincount(rows.indices, rows.data != 0.0, rows.shape[1])
    else:  # zeros and ones, or objects
        return np.zeros(0)
    used = counts > 0
    scales: FloatArray = np.sqrt(squares[used] / counts[used])
    return scales


def _features(examples: object) -> object:
    """Return the matrix of the features of examples, tokens, nodes or arcs, as they were encoded."""
    for name in ("rows", "nodes", "features"):
        if hasattr(examples, name):
            return getattr(examples, name)
    return examples
