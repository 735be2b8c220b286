"""Append encoded examples to others of the same kind."""

from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array, vstack

from maxmargin.arrays import frozen, is_sparse

_Encoded = TypeVar("_Encoded")

# Arrays with these names hold the places where examples begin, and where the last one ends.
_OFFSETS = ("offsets", "edge_offsets", "start")


def joined(first: _Encoded, second: _Encoded) -> _Encoded:
    """Return the examples of both, one after another.

    Examples are named tuples, tuples or lists of arrays and sparse matrices. A matrix of the result is sparse
    if either matrix is. Anything else is a number that both have in common.
    """
    both: _Encoded = _joined(first, second, "")
    return both


def _joined(first: Any, second: Any, name: str) -> Any:
    if isinstance(first, tuple):
        names = getattr(first, "_fields", ("",) * len(first))
        fields = [_joined(a, b, field) for a, b, field in zip(first, second, names, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
    if isinstance(first, list):
        return first + second
    if name in _OFFSETS:
        return np.concatenate([first, first[-1] + second[1:]])
    if is_sparse(first) or is_sparse(second):
        return frozen(csr_array(vstack([csr_array(first), csr_array(second)])))
    return frozen(np.concatenate([first, second])) if isinstance(first, np.ndarray) else first
