r"""Mini-batches: oracles are called in parallel, steps are taken one after another.

The oracles of a batch are all called at the weights w with which the batch begins, on as many threads as
there are. Its blocks then move in turn: block i by the inner method's own step towards its corner, with the
scores :math:`\theta = \Phi_i^\top w` at the weights of that moment. A corner is a corner wherever it was
found, and each step is exact where it is taken, so that the dual still never decreases and the
certificate holds. A corner that no longer promises anything is asked for anew.

The result depends on the size of batches and not on the number of threads.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._compile import kernel, subroutine
from maxmargin._threads import n_threads, run_all
from maxmargin.methods._move import reset
from maxmargin.methods._pool import enlarged
from maxmargin.methods._protocol import (
    BROKEN,
    DONE,
    FULL,
    Carry,
    Point,
    advance,
    carried,
    grain,
    has_room,
    has_step,
    moves_blocks,
    oracle_calls,
    point,
    start,
    step,
    takes_corners,
    weights,
)
from maxmargin.methods._scratch import Scratch, find_corner, new_scratch
from maxmargin.methods._sweep import broken_oracle
from maxmargin.methods.sampling import Visits, as_visits, n_visits, note_gap, some_visits, visited
from maxmargin.problems._protocol import score, sizes
from maxmargin.rows import FloatArray, IntArray


class _Batched(NamedTuple):
    inner: Any
    size: int


class Batched(_Batched):
    """A block method that calls the oracles of several examples at once.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise, Away, or an average of one
        The method that moves the blocks.
    size : int
        Examples per batch.
    """

    __slots__ = ()

    def __new__(cls, inner: Any, size: int = 64) -> "Batched":
        if not (has_step(inner) and moves_blocks(inner) and takes_corners(inner)):
            raise ValueError(
                "Batched: inner must be a method that moves one block at a time to a corner, such as "
                f"Pairwise(lam=0.01), got {type(inner).__name__}."
            )
        if not (isinstance(size, int | np.integer) and size >= 1):
            raise ValueError(f"Batched: size must be an int >= 1, got {size!r}.")
        return super().__new__(cls, inner, int(size))


class BatchedState(NamedTuple):
    """The inner method's state, and how often a corner was asked for anew, an array of shape (1,)."""

    inner: Any
    anew: IntArray


class Corners(NamedTuple):
    """The corners of a batch: entries of psi, their number and their loss, one row each."""

    where: np.ndarray[Any, np.dtype[np.uint32]]
    value: FloatArray
    size: IntArray
    loss: FloatArray


def _new_corners(length: int, parts: int) -> Corners:
    return Corners(
        np.zeros((length, parts), dtype=np.uint32),
        np.zeros((length, parts)),
        np.zeros(length, dtype=np.int64),
        np.zeros(length),
    )


def _some(corners: Corners, part: slice) -> Corners:
    return Corners(corners.where[part], corners.value[part], corners.size[part], corners.loss[part])


@kernel
def find_corners(problem, w, examples, corners, scratch):
    """Call the oracle of each example at w and keep its answer."""
    corner = scratch.corner
    for t in range(examples.shape[0]):
        corners.loss[t], _ = find_corner(problem, examples[t], w, scratch)
        corners.size[t] = corner.size[0]
        for c in range(corner.size[0]):
            corners.where[t, c] = corner.where[c]
            corners.value[t, c] = corner.value[c]


@kernel
def move_to_corners(problem, method, state, w, visits, examples, corners, first, anew, scratch):
    """Move the blocks first, first + 1, ... of a batch; return how far it came, and why no further."""
    for t in range(first, examples.shape[0]):
        i = examples[t]
        if not has_room(method, state, problem, i):
            return t, FULL
        hinge = _recall(problem, i, w, corners, t, scratch)
        report = BROKEN
        if np.isfinite(hinge):  # an oracle's own answer is never below the truth, but this one may be
            report = step(method, state, problem, i, corners.loss[t], hinge, scratch)
        if report == BROKEN:  # the corner is out of date, or there is none
            loss_y, hinge = find_corner(problem, i, w, scratch)
            report = step(method, state, problem, i, loss_y, hinge, scratch)
            anew[0] += 1
        if report != DONE:
            return t, report
        note_gap(visits, i, scratch.move.gap[0])
        reset(scratch.move)
    return examples.shape[0], DONE


@subroutine
def _recall(problem, i, w, corners, t, scratch):
    """Write the scores of example i at w and corner t to ``scratch``; return the corner's hinge."""
    corner = scratch.corner
    score(problem, i, w, scratch.theta)
    corner.size[0] = corners.size[t]
    inner = 0.0
    for c in range(corners.size[t]):
        corner.where[c] = corners.where[t, c]
        corner.value[c] = corners.value[t, c]
        inner += corner.value[c] * scratch.theta[corner.where[c]]
    return corners.loss[t] - inner


@start.register(Batched)
def _(method: Batched, problem: Any) -> BatchedState:
    return _new_state(start(method.inner, problem))


def _new_state(inner: Any) -> BatchedState:
    return BatchedState(inner, np.zeros(1, dtype=np.int64))


@advance.register(Batched)
def _(method: Batched, state: BatchedState, problem: Any, visits: Visits | IntArray) -> BatchedState:
    serial = find_corners.mode(problem) == "interpreted"
    scratches = [new_scratch(problem) for _ in range(1 if serial else n_threads())]
    corners = _new_corners(min(method.size, max(n_visits(visits), 1)), sizes(problem).parts)
    for first in range(0, max(n_visits(visits), 1), method.size):
        batch = as_visits(some_visits(visits, first, first + method.size))
        examples = np.array([visited(batch, t) for t in range(n_visits(batch))], dtype=np.int64)
        _find_in_parallel(problem, weights(method, state), examples, corners, scratches)
        state = _move_all(method.inner, state, problem, batch, examples, corners, scratches[0])
    return state


def _find_in_parallel(
    problem: Any, w: FloatArray, examples: IntArray, corners: Corners, scratches: list[Scratch]
) -> None:
    """Call the oracles of a batch, a share of it on each thread."""
    bounds = np.linspace(0, len(examples), len(scratches) + 1).astype(np.int64)

    def find(share: int) -> None:
        part = slice(bounds[share], bounds[share + 1])
        find_corners(problem, w, examples[part], _some(corners, part), scratches[share])

    run_all(find, range(len(scratches)))


def _move_all(
    inner: Any,
    state: BatchedState,
    problem: Any,
    visits: Visits,
    examples: IntArray,
    corners: Corners,
    scratch: Scratch,
) -> BatchedState:
    """Move the blocks of a batch, enlarging the state's pools on the way; return the state."""
    done, w = 0, weights(inner, state.inner)
    while True:
        done, report = move_to_corners(
            problem, inner, state.inner, w, visits, examples, corners, done, state.anew, scratch
        )
        if report == DONE:
            return state
        if report == BROKEN:
            raise broken_oracle(int(examples[done]))
        state = enlarged(state, max(sizes(problem).statistics, sizes(problem).parts))


@point.register(Batched)
def _(method: Batched, state: BatchedState, problem: Any) -> Point:
    return point(method.inner, state.inner, problem)


@carried.register(Batched)
def _(method: Batched, state: BatchedState, problem: Any, carry: Carry) -> BatchedState:
    return _new_state(carried(method.inner, state.inner, problem, carry))


@grain.register(Batched)
def _(method: Batched) -> int:
    return method.size


@oracle_calls.register(Batched)
def _(method: Batched, state: BatchedState, visits: int) -> int:
    return visits + int(state.anew[0])
