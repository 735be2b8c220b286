"""The scales of features: their variance, and advice for a run that does not converge."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array, issparse

from maxmargin.arrays import FloatArray, ValueArray
from maxmargin.encoding.chunks import PIECE, pieces

# Columns whose scales differ by this factor are worth a warning.
_SPREAD = 100.0
# A variance that is a smaller fraction of the mean square may be pure rounding error.
_ROUNDING = 1e-12


def total_variance(rows: ValueArray | csr_array, weights: FloatArray | None) -> float:
    """Return the sum of the variances of all columns, with weights of rows; zero if rows are all alike."""
    shares = np.full(rows.shape[0], 1.0 / rows.shape[0]) if weights is None else weights / weights.sum()
    with np.errstate(over="ignore"):
        mean, mean_square = np.zeros(rows.shape[1]), 0.0
        for piece in _pieces(rows):
            some = rows[piece].astype(np.float64)
            mean += shares[piece] @ some
            mean_square += float((shares[piece] @ _squared(some)).sum())
        variance = mean_square - float(np.square(mean).sum())
    return variance if variance > _ROUNDING * mean_square else 0.0


def mean_variance(rows: ValueArray | csr_array) -> float:
    """Return the variance of all entries, as scikit-learn measures it for gamma="scale"."""
    total, squares, size = 0.0, 0.0, rows.shape[0] * rows.shape[1]
    for piece in _pieces(rows):
        some = rows[piece].astype(np.float64)
        total, squares = total + some.sum(), squares + _squared(some).sum()
    return float(squares / size - (total / size) ** 2)


def _pieces(rows: ValueArray | csr_array) -> Iterator[slice]:
    """Yield slices of rows, so that temporary arrays computed from them stay small."""
    width = rows.shape[1] if isinstance(rows, np.ndarray) else rows.nnz // max(1, rows.shape[0])
    return pieces(rows.shape[0], width)


def _squared(some: FloatArray | csr_array) -> FloatArray | csr_array:
    return np.square(some) if isinstance(some, np.ndarray) else some.multiply(some)


def scale_advice(examples: object) -> str:
    """Return advice on encoded features whose scales differ widely; empty if they are similar.

    Steps are as long as the largest features allow, so that the weights of small ones hardly move.
    """
    scales = _column_scales(examples)
    if not len(scales) or not (scales.max() > _SPREAD * scales.min()):
        return ""
    return (
        f"; the root mean squares of the columns of X range from {scales.min():.2g} to {scales.max():.2g}, "
        "which makes training slow: scale X, for example by sklearn's StandardScaler; for sequences and "
        "graphs, wrap it in maxmargin.TokenTransformer"
    )


def _column_scales(examples: object) -> FloatArray:
    """Return the root mean square of the nonzero entries of each column that has any."""
    matrix = _features(examples)
    if isinstance(matrix, np.ndarray) and matrix.ndim == 2:
        squares, counts = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], dtype=np.int64)
        for piece in pieces(*matrix.shape):
            squares += np.square(matrix[piece], dtype=np.float64).sum(axis=0)
            counts += np.count_nonzero(matrix[piece], axis=0)
    elif issparse(matrix):
        rows: csr_array = matrix if matrix.format == "csr" else csr_array(matrix)  # type: ignore[attr-defined, assignment]
        squares, counts = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
        step = max(PIECE, rows.shape[1])
        for first in range(0, len(rows.data), step):
            columns, values = rows.indices[first : first + step], rows.data[first : first + step]
            squares += np.bincount(columns, np.square(values, dtype=np.float64), rows.shape[1])
            counts += np.bincount(columns, values != 0.0, rows.shape[1])
    else:  # zeros and ones, or objects
        return np.zeros(0)
    used = counts > 0
    scales: FloatArray = np.sqrt(squares[used] / counts[used])
    return scales


def _features(examples: object) -> object:
    """Return the matrix of the features of examples, tokens, nodes, arcs or links, as they were encoded."""
    for name in ("rows", "nodes", "by_link", "features"):
        if hasattr(examples, name):
            return getattr(examples, name)
    return examples
