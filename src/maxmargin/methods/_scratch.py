"""Work arrays of a sweep; each thread has its own."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper, subroutine
from maxmargin.methods._move import Move, add_entry, new_move
from maxmargin.problems._protocol import argmax, loss, psi, push, score, scores_at, sizes, workspace


class Corner(NamedTuple):
    """The entries ``where[:size[0]]``, ``value[:size[0]]`` of psi of an output."""

    where: np.ndarray[Any, np.dtype[np.uint32]]
    value: FloatArray
    size: IntArray


class Scratch(NamedTuple):
    """What a step works in.

    Attributes
    ----------
    theta, image : arrays in output space
        Scores, and how they change.
    y : array
        The oracle's answer.
    corner : Corner
        Its psi.
    move : Move
    oracle : Any
        The model's own work arrays.
    """

    theta: FloatArray
    image: FloatArray
    y: IntArray
    corner: Corner
    move: Move
    oracle: Any


def new_scratch(problem: Any, w: FloatArray | None = None) -> Scratch:
    """Return fresh work arrays for the problem, for scores at ``w`` if it is the same array throughout."""
    size = sizes(problem)
    return Scratch(
        scores_at(problem, w),
        aligned_zeros(size.statistics),
        np.zeros(size.output, dtype=np.int64),
        Corner(np.zeros(size.parts, dtype=np.uint32), np.zeros(size.parts), np.zeros(1, dtype=np.int64)),
        new_move(size.statistics),
        workspace(problem),
    )


@subroutine
def find_corner(problem, i, w, scratch):
    """Call the max oracle of example i at w; return the loss and the hinge of its answer.

    Afterwards ``scratch`` holds theta, the answer y and its corner psi(y).
    """
    score(problem, i, w, scratch.theta)
    return corner_at_scores(problem, i, scratch)


@subroutine
def corner_at_scores(problem, i, scratch):
    """The same, at the scores in ``scratch.theta``."""
    argmax(problem, i, scratch.theta, scratch.y, scratch.oracle)
    return corner_of_answer(problem, i, scratch)


@subroutine
def corner_of_answer(problem, i, scratch):
    """Write the corner of the output in ``scratch.y``; return its loss and its hinge."""
    corner = scratch.corner
    corner.size[0] = psi(problem, i, scratch.y, corner.where, corner.value)
    loss_y = loss(problem, i, scratch.y)
    return loss_y, loss_y - dot_corner(corner, scratch.theta)


@helper
def dot_corner(corner, a):
    """``psi @ a``"""
    total = 0.0
    for c in range(corner.size[0]):
        total += corner.value[c] * a[corner.where[c]]
    return total


@helper
def score_terms(corner, theta):
    """A bound on the terms of which the scores of outputs are sums: entries of psi by the largest score."""
    largest, entries = 0.0, 1.0 * corner.value.shape[0]
    for p in range(theta.shape[0]):
        largest = max(largest, abs(theta[p]))
    for c in range(corner.size[0]):
        entries += abs(corner.value[c])
    return largest * entries


@helper
def add_corner(corner, move):
    """``delta += psi``"""
    for c in range(corner.size[0]):
        add_entry(move, corner.where[c], corner.value[c])


@subroutine
def push_corner(problem, i, lam, w, scratch):
    """``w += Phi_i psi``, as a move of block i; none if psi is zero."""
    move = scratch.move
    if scratch.corner.size[0] > 0:
        add_corner(scratch.corner, move)
        push(problem, i, move, 1.0, w, scratch.oracle)
        move.gamma[0] = lam * sizes(problem).examples  # gamma / (lam n) is what delta is pushed by
