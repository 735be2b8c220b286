"""Work arrays of a sweep; each thread has its own."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._compile import helper, subroutine
from maxmargin.methods._move import Move, add_entry, new_move
from maxmargin.problems._protocol import argmax, loss, psi, score, sizes, workspace
from maxmargin.rows import FloatArray, IntArray, aligned_zeros


class Scratch(NamedTuple):
    """What a step works in.

    Attributes
    ----------
    theta : array in output space
    y : array
        The oracle's answer.
    where, value, size : arrays
        Entries of psi, and their number.
    move : Move
    oracle : Any
        The model's own work arrays.
    """

    theta: FloatArray
    y: IntArray
    where: np.ndarray[Any, np.dtype[np.uint32]]
    value: FloatArray
    size: IntArray
    move: Move
    oracle: Any


def new_scratch(problem: Any) -> Scratch:
    """Return fresh work arrays for the problem."""
    size = sizes(problem)
    return Scratch(
        aligned_zeros(size.statistics),
        np.zeros(size.output, dtype=np.int64),
        np.zeros(size.parts, dtype=np.uint32),
        np.zeros(size.parts),
        np.zeros(1, dtype=np.int64),
        new_move(size.statistics),
        workspace(problem),
    )


@subroutine
def find_corner(problem, i, w, scratch):
    """Call the max oracle of example i at w; return the loss and the hinge of its answer.

    Afterwards ``scratch`` holds theta, the answer y and the entries of psi(y).
    """
    score(problem, i, w, scratch.theta)
    argmax(problem, i, scratch.theta, scratch.y, scratch.oracle)
    scratch.size[0] = psi(problem, i, scratch.y, scratch.where, scratch.value)
    inner = 0.0
    for c in range(scratch.size[0]):
        inner += scratch.value[c] * scratch.theta[scratch.where[c]]
    loss_y = loss(problem, i, scratch.y)
    return loss_y, loss_y - inner


@helper
def add_psi(scratch):
    """``delta += psi(y)`` for the corner found last."""
    for c in range(scratch.size[0]):
        add_entry(scratch.move, scratch.where[c], scratch.value[c])
