"""Examples appended to others that are encoded alike."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from maxmargin.arrays import frozen

# Arrays of these names say where something begins, and where the last ends.
_PLACES = ("offsets", "edge_offsets", "start")


def joined(first: Any, second: Any, name: str = "") -> Any:
    """Return the examples of both, one after another: of named tuples, arrays, sparse matrices or lists.

    A matrix is sparse if either is. What is none of these is a number that both share.
    """
    if isinstance(first, tuple):
        names = getattr(first, "_fields", ("",) * len(first))
        parts = [joined(a, b, field) for a, b, field in zip(first, second, names, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    if isinstance(first, list):
        return first + second
    if name in _PLACES:
        return np.concatenate([first, first[-1] + second[1:]])
    if issparse(first) or issparse(second):
        return frozen(csr_array(vstack([csr_array(first), csr_array(second)])))
    return frozen(np.concatenate([first, second])) if isinstance(first, np.ndarray) else first
