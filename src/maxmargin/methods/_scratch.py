"""Work arrays of a sweep; each thread has its own."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._compile import subroutine
from maxmargin.methods._move import Move, add_entry, new_move
from maxmargin.problems._protocol import psi, sizes, workspace
from maxmargin.rows import FloatArray, IntArray


class Scratch(NamedTuple):
    """What a step works in.

    Attributes
    ----------
    theta, image : arrays in output space
    y : array
        The oracle's answer.
    where, value : arrays
        Entries of psi.
    move : Move
    oracle : Any
        The model's own work arrays.
    """

    theta: FloatArray
    image: FloatArray
    y: IntArray
    where: IntArray
    value: FloatArray
    move: Move
    oracle: Any


def new_scratch(problem: Any) -> Scratch:
    """Return fresh work arrays for the problem."""
    size = sizes(problem)
    return Scratch(
        np.zeros(size.statistics),
        np.zeros(size.statistics),
        np.zeros(size.output, dtype=np.int64),
        np.zeros(size.parts, dtype=np.int64),
        np.zeros(size.parts),
        new_move(size.statistics),
        workspace(problem),
    )


@subroutine
def add_psi(problem, i, scratch):
    """``delta += psi_i(y)`` for the output y in ``scratch``."""
    count = psi(problem, i, scratch.y, scratch.where, scratch.value)
    for c in range(count):
        add_entry(scratch.move, scratch.where[c], scratch.value[c])
