"""In which order the examples are visited. Randomness is data: kernels get the order as an array."""

from collections.abc import Callable

import numpy as np

from maxmargin.rows import IntArray


def permutation(rng: np.random.Generator, n: int) -> IntArray:
    """Return every example once, in random order."""
    return rng.permutation(n)


def uniform(rng: np.random.Generator, n: int) -> IntArray:
    """Return n examples drawn with replacement, as the paper's analysis assumes."""
    return rng.integers(n, size=n)


SAMPLINGS: dict[str, Callable[[np.random.Generator, int], IntArray]] = {
    "permutation": permutation,
    "uniform": uniform,
}
