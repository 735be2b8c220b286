"""The workspace of a visit; each thread has its own.

The oracle and the steps have separate workspaces, so that a step can be compiled even if the oracle is a
Python object.

A run on few examples makes dozens of short sweeps and certificates, and allocating a workspace takes as long
as several visits. So a run keeps its workspace from one to the next (`kept_scratch`), one per thread.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray, aligned_zeros
from maxmargin.runtime.threads import n_threads
from maxmargin.structures.feature_map import (
    Move,
    add_entry,
    map_workspace,
    new_move,
    push,
    score,
    score_buffer,
)
from maxmargin.structures.oracle import argmax, is_exact, loss, oracle_workspace, psi
from maxmargin.structures.problem import AnyProblem, Sizes, sizes
from maxmargin.structures.slack import (
    NO_WEIGHTS,
    Rescaling,
    no_rescaling,
    rescaling,
    search_rescaled,
    unwrapped,
    with_optimum,
)


class Corner(NamedTuple):
    """The psi of an output: entries ``where[:size[0]]``, ``value[:size[0]]``."""

    where: UIntArray
    value: FloatArray
    size: IntArray


class BlockWork(NamedTuple):
    """The workspace of a step.

    Attributes
    ----------
    theta, image : arrays in output space
        Scores, and their change due to a move.
    corner : Corner
        The psi of the oracle's answer.
    move : Move
        The direction of the step.
    map : workspace of the feature map
    sizes : Sizes
    exact : bool
        Whether the oracle is exact.
    """

    theta: FloatArray
    image: FloatArray
    corner: Corner
    move: Move
    map: object
    sizes: Sizes
    exact: bool


class Scratch(NamedTuple):
    """The workspace of a visit: that of the oracle, with its answer, and that of a step.

    Attributes
    ----------
    y : array
        The oracle's answer.
    oracle : workspace of the oracle
    weights : array
        Weights of the examples, in addition to those that the oracle itself has; empty if there are none.
    rescaling : Rescaling
        How the slacks of the oracle are rescaled, if they are; if so, there are weights too.
    block : BlockWork
    """

    y: IntArray
    oracle: object
    weights: FloatArray
    rescaling: Rescaling
    block: BlockWork


def new_scratch(problem: AnyProblem, w: FloatArray | None = None) -> Scratch:
    """Return a workspace for the problem; pass ``w`` if all scores will be at this same array."""
    return _scratch(problem, w, NO_WEIGHTS, rescales=False, solves=False)


def _scratch(
    problem: AnyProblem, w: FloatArray | None, weights: FloatArray, rescales: bool, solves: bool
) -> Scratch:
    """Return a workspace that applies weights and rescales slacks; ``w`` is as in `new_scratch`."""
    size = sizes(problem)
    if rescales and len(weights) == 0:  # loops look only at the slacks of weighted examples
        weights = np.ones(size.examples)
    corner = Corner(np.zeros(size.parts, dtype=np.uint32), np.zeros(size.parts), np.zeros(1, dtype=np.int64))
    block = BlockWork(
        score_buffer(problem.map, w),
        aligned_zeros(size.statistics),
        corner,
        new_move(size.statistics),
        map_workspace(problem.map),
        size,
        is_exact(problem.oracle),
    )
    y, work = np.zeros(size.output, dtype=np.int64), oracle_workspace(problem.oracle)
    if not rescales:
        return Scratch(y, work, weights, no_rescaling(problem.oracle), block)
    slacks = rescaling(problem.oracle, block.theta, y, work)
    if solves:
        slacks = with_optimum(slacks, problem.oracle, block.theta, block.image, work)
    return Scratch(y, work, weights, slacks, block)


class _Free(NamedTuple):
    """A free workspace, the problem that loops take with it, and what it was made for.

    ``w`` are the weights that the scores are a view of, if they are.
    """

    inner: AnyProblem
    scratch: Scratch
    problem: AnyProblem
    w: FloatArray | None
    weighs: bool
    solves: bool

    def serves(self, problem: AnyProblem, w: FloatArray | None, weighs: bool, solves: bool) -> bool:
        """Whether the workspace is as a new one would be, or has more."""
        if self.problem.map is not problem.map or self.problem.oracle is not problem.oracle:
            return False
        if (solves and not self.solves) or (weighs != self.weighs and self.inner is not self.problem):
            return False
        return self.w is None or self.w is w


class _Kept(list[_Free]):
    """Free workspaces, last used at the end: for each thread, one of a part and one of all examples."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 2 * n_threads()


_FREE: ContextVar[_Kept | None] = ContextVar("free workspace", default=None)
_LOCK = threading.Lock()


@contextmanager
def kept_scratch() -> Iterator[None]:
    """Let `scratch_for` keep workspaces from one call to the next in this block."""
    token = _FREE.set(_Kept())
    try:
        yield
    finally:
        _FREE.reset(token)


@contextmanager
def scratch_for(
    problem: AnyProblem, w: FloatArray | None = None, *, weighs: bool = True, solves: bool = False
) -> Iterator[tuple[AnyProblem, Scratch]]:
    """Lend what a loop over the examples takes: a problem and a workspace, of an earlier call or new.

    After an error it is not lent again, as it may hold an unfinished move.

    Parameters
    ----------
    problem : Problem
    w : array, optional
        The weights, if all scores will be at this same array.
    weighs : bool
        Whether the loop applies example weights and rescales slacks itself, as `find_corner` does; it then
        gets the problem without them.
    solves : bool
        Whether the loop solves blocks exactly, and does not only search for the best output.
    """
    kept = _FREE.get()
    lent = None if kept is None else _taken(kept, problem, w, weighs, solves)
    if lent is None:
        inner, weights, rescales = unwrapped(problem) if weighs else (problem, NO_WEIGHTS, False)
        scratch = _scratch(inner, w, weights, rescales, solves)
        is_view = w is not None and np.may_share_memory(scratch.block.theta, w)
        lent = _Free(inner, scratch, problem, w if is_view else None, weighs, solves)
    yield lent.inner, lent.scratch
    if kept is not None:
        with _LOCK:
            kept.append(lent)
            del kept[: -kept.most]


def _taken(
    kept: list[_Free], problem: AnyProblem, w: FloatArray | None, weighs: bool, solves: bool
) -> _Free | None:
    """Take a suitable workspace out of those kept; return None if there is none."""
    with _LOCK:
        for k in reversed(range(len(kept))):
            if kept[k].serves(problem, w, weighs, solves):
                return kept.pop(k)
    return None


@subroutine
def find_corner(problem, i, w, scratch):
    """Call the max oracle of example i at w; return the loss and the hinge of its answer.

    Afterwards ``scratch`` holds theta, the answer y and its corner psi(y).
    """
    score(problem.map, i, w, scratch.block.theta)
    return corner_at_scores(problem, i, scratch)


@subroutine
def corner_at_scores(problem, i, scratch):
    """Call the max oracle of example i at the scores in ``scratch.block.theta``."""
    theta, slacks = scratch.block.theta, scratch.rescaling
    if slacks.search == 0:
        argmax(problem.oracle, i, theta, scratch.y, scratch.oracle)
    else:
        search_rescaled(slacks.search, problem.oracle, i, theta, scratch.y, scratch.oracle, slacks.own)
    return corner_of_answer(problem, i, scratch)


@subroutine
def corner_of_answer(problem, i, scratch):
    """Write the corner of the output in ``scratch.y``; return its loss and its hinge."""
    corner = scratch.block.corner
    corner.size[0] = psi(problem.oracle, i, scratch.y, corner.where, corner.value)
    loss_y = loss(problem.oracle, i, scratch.y)
    if scratch.weights.shape[0] > 0:
        if scratch.rescaling.search != 0:
            corner.size[0] *= loss_y != 0.0
            scale_corner(corner, loss_y)
        scale_corner(corner, scratch.weights[i])
        loss_y *= scratch.weights[i]
    return loss_y, loss_y - dot_corner(corner, scratch.block.theta)


@helper
def scale_corner(corner, c):
    """``psi *= c``"""
    for e in range(corner.size[0]):
        corner.value[e] *= c


@helper
def weight_of(weights, i):
    """Return the weight of example i: one, if there are no weights."""
    return weights[i] if weights.shape[0] > 0 else 1.0


@helper
def dot_corner(corner, a):
    """``psi @ a``"""
    total = 0.0
    for c in range(corner.size[0]):
        total += corner.value[c] * a[corner.where[c]]
    return total


@helper
def score_terms(corner, theta):
    """Return a bound on the terms of the scores of outputs: the entries of psi times the largest score."""
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
def push_corner(phi, i, lam, w, work):
    """``w += Phi_i psi``, as a move of block i; no move if psi is zero."""
    move = work.move
    if work.corner.size[0] > 0:
        add_corner(work.corner, move)
        push(phi, i, move, 1.0, w, work.map)
        move.gamma[0] = lam * work.sizes.examples  # delta is pushed by gamma / (lam n)
