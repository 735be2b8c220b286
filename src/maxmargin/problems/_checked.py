"""Whether weights belong to a problem, and whether a problem fits into memory."""

from typing import Any, TypeVar

import numpy as np

from maxmargin.arrays import FloatArray, check_memory, plain
from maxmargin.problems import _protocol as protocol
from maxmargin.wording import described

Problem = TypeVar("Problem")

# Kernels number the entries of output space by uint32.
_MOST_STATISTICS = 2**32


def checked_weights(problem: Any, w: Any) -> FloatArray:
    """Return a vector of weights for kernels, if it has as many entries as the problem has weights."""
    array, n = np.asarray(w), protocol.sizes(problem).weights
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{type(problem).__name__}: w must be {n} real numbers, one per weight, got {described(w)} of "
            f"dtype {array.dtype}; use the w of a result for a problem of the same features and labels."
        )
    found: FloatArray = plain(w, np.float64)
    return found


def fitting(problem: Problem, owner: str) -> Problem:
    """Return the problem, if kernels can number its statistics and its weights fit into memory."""
    size = protocol.sizes(problem)
    if size.statistics > _MOST_STATISTICS:
        raise ValueError(
            f"{owner}: the largest example must have at most 2**32 statistics, got {size.statistics}; split "
            "it, or use fewer labels."
        )
    check_memory(8 * size.weights, f"{owner}: {size.weights} weights", "use fewer features or labels")
    return problem
