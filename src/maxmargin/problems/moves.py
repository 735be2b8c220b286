"""The direction in which a block moves: a vector in output space with few nonzeros.

``delta`` is dense, so that a model can iterate over it, and comes with the list of its nonzeros, so that
making, measuring and clearing it costs time proportional to their number.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import FloatArray, IntArray, UIntArray, aligned_zeros
from maxmargin.compiling import helper


class Move(NamedTuple):
    """A direction, and the step taken in it.

    Attributes
    ----------
    delta : array
        The direction; zero outside ``support[:size[0]]``.
    support, size : arrays
    gamma : array of shape (1,)
        Step size: the block's vector z moves by ``gamma * delta``.
    gap : array of shape (1,)
        n times the block gap at the start of the visit.
    ell : array of shape (1,)
        Change of the block's dual loss.
    gain : array of shape (1,)
        n times the increase of the dual.
    marks, mark : arrays
        ``marks[p] == mark[0]`` says that index p is in the set being built.
    """

    delta: FloatArray
    support: UIntArray
    size: IntArray
    gamma: FloatArray
    gap: FloatArray
    ell: FloatArray
    gain: FloatArray
    marks: NDArray[np.int32]
    mark: NDArray[np.int32]


def new_move(n_statistics: int) -> Move:
    """Return the zero direction in an output space of this dimension."""
    return Move(
        aligned_zeros(n_statistics),
        np.zeros(n_statistics + 1, dtype=np.uint32),
        np.zeros(1, dtype=np.int64),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(n_statistics, dtype=np.int32),
        np.ones(1, dtype=np.int32),
    )


@helper
def next_mark(move):
    """Return a mark that no index has."""
    move.mark[0] += 1
    return move.mark[0]


@helper
def reset(move):
    """Reset the direction to zero."""
    for c in range(move.size[0]):
        move.delta[move.support[c]] = 0.0
    move.size[0] = 0
    move.gamma[0] = move.gap[0] = move.ell[0] = move.gain[0] = 0.0
    next_mark(move)


@helper
def dot_move(move, a):
    """``delta @ a``"""
    total = 0.0
    for c in range(move.size[0]):
        total += move.delta[move.support[c]] * a[move.support[c]]
    return total


@helper
def add_entry(move, p, value):
    """``delta[p] += value``, without a branch, which the processor could not predict."""
    move.support[move.size[0]] = p
    move.size[0] += move.marks[p] != move.mark[0]
    move.marks[p] = move.mark[0]
    move.delta[p] += value
