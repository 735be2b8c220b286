"""Shared by models over labels: losses as cost matrices, and padded rows of labels."""

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.wording import described, shown


def pad_columns(matrix: FloatArray, width: int) -> FloatArray:
    """Return ``matrix`` with zero columns added up to ``width``."""
    out = aligned_zeros(len(matrix), width)
    out[:, : matrix.shape[1]] = matrix
    return out


def cost_matrix(loss: object, names: tuple[str, ...], n_labels: int, owner: str) -> FloatArray:
    """Return cost[truth, label] for a loss given by name (all 0/1) or as a matrix, of two labels or more."""
    check_several(n_labels, owner)
    if isinstance(loss, str):
        if loss not in names:
            raise ValueError(
                f"{owner}: loss must be one of {', '.join(map(repr, names))} or a cost matrix "
                f"of shape ({n_labels}, {n_labels}), got {shown(loss)}."
            )
        return 1.0 - np.eye(n_labels)
    cost = _numbers(loss, n_labels, owner)
    if cost.shape != (n_labels, n_labels):
        raise ValueError(
            f"{owner}: a cost matrix must have one row and column per label, shape "
            f"({n_labels}, {n_labels}), got {cost.shape}."
        )
    if not np.isfinite(cost).all() or (cost < 0).any() or np.diagonal(cost).any():
        raise ValueError(
            f"{owner}: a cost matrix must be finite and nonnegative with zeros on its diagonal "
            f"(the truth costs nothing)."
        )
    return cost


def _numbers(loss: object, n_labels: int, owner: str) -> FloatArray:
    try:
        return np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{owner}: loss must be a name or a matrix of numbers of shape ({n_labels}, {n_labels}), "
            f"got {described(loss)}."
        ) from None


def check_several(n_labels: int, owner: str) -> None:
    """Raise unless there are at least two labels."""
    if n_labels < 2:
        raise ValueError(
            f"{owner}: y must have at least two different labels, got {n_labels} class; "
            f"with one label there is nothing to learn."
        )
