"""The loops over examples, each written once and compiled for every pair of model and method."""

from typing import Any

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import generic_with_default, helper, kernel, subroutine
from maxmargin.loops import clear
from maxmargin.methods._blocks import load_block
from maxmargin.methods._move import reset
from maxmargin.methods._planes import add_plane
from maxmargin.methods._pool import SIZE, START, enlarged
from maxmargin.methods._protocol import (
    BROKEN,
    DONE,
    FULL,
    ROUNDING,
    UNDEFINED,
    BrokenOracle,
    factor,
    foresee_block,
    has_dual,
    has_room,
    is_sound,
    scale_error,
    seek,
    step,
    weights,
)
from maxmargin.methods._scratch import add_corner, corner_at_scores, find_corner, new_scratch
from maxmargin.methods.sampling import Visits, as_visits, expected, note_gap, some_visits, visited
from maxmargin.problems._protocol import (
    decode,
    foresee,
    is_exact,
    norm2,
    output_size,
    push,
    score,
    shortfall,
    sizes,
)
from maxmargin.problems.custom import Custom
from maxmargin.problems.signs import SignedCustom
from maxmargin.problems.weighted import Weighted

# Scores beyond this are as good as infinite: a few of them, with losses and factors, have no sum.
_LARGEST_SCORE = 1e300


@generic_with_default
def take_step(problem, method, state, i, loss_y, hinge, visits, scratch):
    """Make the method's step of block i, given what its oracle answered; return its report."""
    return make_step(problem, method, state, i, loss_y, hinge, visits, scratch)


@subroutine
def make_step(problem, method, state, i, loss_y, hinge, visits, scratch):
    """The same, for a problem that has no other way."""
    report = step(method, state, problem, i, loss_y, hinge, scratch)
    if report == DONE:
        note_gap(visits, i, scratch.move.gap[0])
        reset(scratch.move)
    return report


@take_step.register(Custom)
@take_step.register(SignedCustom)
def custom_take_step(problem, method, state, i, loss_y, hinge, visits, scratch):
    """The user's functions have been called: what is left is compiled."""
    return _move_in_space(problem.space, method, state, i, loss_y, hinge, visits, scratch)


@take_step.register(Weighted)
def weighted_take_step(problem, method, state, i, loss_y, hinge, visits, scratch):
    return take_weighted_step(problem.inner, problem, method, state, i, loss_y, hinge, visits, scratch)


@generic_with_default
def take_weighted_step(inner, problem, method, state, i, loss_y, hinge, visits, scratch):
    """Make the step of a weighted problem, in which ``inner`` has weights."""
    return make_step(problem, method, state, i, loss_y, hinge, visits, scratch)


@take_weighted_step.register(Custom)
@take_weighted_step.register(SignedCustom)
def custom_take_weighted_step(inner, problem, method, state, i, loss_y, hinge, visits, scratch):
    """What the oracle answered has its weight: the space knows none."""
    unweighted = scratch._replace(oracle=scratch.oracle.inner)
    return take_step(inner, method, state, i, loss_y, hinge, visits, unweighted)


@helper
def _move_in_space(space, method, state, i, loss_y, hinge, visits, scratch):
    return take_step(space, method, state, i, loss_y, hinge, visits, scratch)


@generic_with_default
def look_ahead(problem, method, state, i):
    """Ask for what the visit of example i will need."""
    if i >= 0:
        foresee(problem, i)
        foresee_block(method, state, i)


@look_ahead.register(Custom)
@look_ahead.register(SignedCustom)
def custom_look_ahead(problem, method, state, i):
    """The user's functions take longer than any memory."""


@look_ahead.register(Weighted)
def weighted_look_ahead(problem, method, state, i):
    look_ahead(problem.inner, method, state, i)


@kernel
def sweep(problem, method, state, w, visits, scratch):
    """Move the blocks visited, whose moves change w; return how many were moved, and why no more."""
    for t in range(visits.order.shape[0]):
        i = visited(visits, t)
        look_ahead(problem, method, state, expected(visits, t + 1))
        if not has_room(method, state, problem, i):
            return t, FULL
        loss_y, hinge = seek(method, state, problem, i, w, scratch)
        report = take_step(problem, method, state, i, loss_y, hinge, visits, scratch)
        if report != DONE:
            return t, report
    return visits.order.shape[0], DONE


@kernel
def scores(problem, w, count, scratch):
    """Score the first examples, one after another: what a visit costs before its oracle is called."""
    for i in range(count):
        score(problem, i, w, scratch.theta)


@kernel
def hinges(problem, w, first, out, scratch):
    """Write the hinge of example first + t to ``out[t]``, or a bound on it: a pass of the oracle at w."""
    for t in range(out.shape[0]):
        _, hinge = find_corner(problem, first + t, w, scratch)
        out[t] = hinge + shortfall(problem, first + t, scratch.oracle)


@kernel
def batch_corner(problem, w, scale, w_s, scratch):
    """``w_s += scale * sum_i Phi_i psi_i(y_i*)``; return the sum of losses and a broken example or -1."""
    total = 0.0
    for i in range(sizes(problem).examples):
        loss_y, hinge = find_corner(problem, i, w, scratch)
        if not is_sound(problem, hinge, loss_y + abs(loss_y - hinge), scratch):
            return total, i
        add_corner(scratch.corner, scratch.move)
        push(problem, i, scratch.move, scale, w_s, scratch.oracle)
        total += loss_y
        reset(scratch.move)
    return total, -1


@kernel
def first_corners(problem, examples, scratch):
    """Return the sums of ``|Phi_i psi_i(y_i*)|^2`` and of losses over the examples, at w = 0."""
    squares, losses = 0.0, 0.0
    clear(scratch.theta)
    for t in range(examples.shape[0]):
        loss_y, _ = corner_at_scores(problem, examples[t], scratch)
        add_corner(scratch.corner, scratch.move)
        squares += norm2(problem, examples[t], scratch.move, scratch.image, scratch.oracle)
        losses += loss_y
        reset(scratch.move)
    return squares, losses


@kernel
def push_blocks(problem, blocks, scale, w, scratch):
    """``w += scale * sum_i Phi_i z_i``"""
    for i in range(blocks.extent.shape[0]):
        if blocks.extent[i, SIZE] > 0:
            load_block(blocks, i, 1.0, scratch.move)
            push(problem, i, scratch.move, scale, w, scratch.oracle)
            reset(scratch.move)


@kernel
def push_planes(problem, planes, scale, w, scratch):
    """``w += scale * sum_i sum_c alpha_c Phi_i psi_c``"""
    for i in range(planes.extent.shape[0]):
        for c in range(planes.extent[i, SIZE]):
            add_plane(planes, i, c, planes.alpha[planes.extent[i, START] + c], scratch.move)
        push(problem, i, scratch.move, scale, w, scratch.oracle)
        reset(scratch.move)


@kernel
def predictions(problem, w, first, stop, out, scratch):
    """Decode the examples first, ..., stop - 1; their outputs stand one after another in ``out``."""
    end = 0
    for i in range(first, stop):
        score(problem, i, w, scratch.theta)
        decode(problem, i, scratch.theta, scratch.y, scratch.oracle)
        for t in range(output_size(problem, i)):
            out[end] = scratch.y[t]
            end += 1


def sweep_all(problem: Any, method: Any, state: Any, visits: Visits | IntArray) -> Any:
    """Move the blocks visited, enlarging the state's pools on the way; return the state."""
    done, w = 0, weights(method, state)
    own = w if has_dual(method) else None  # scores may be the weights themselves, but not scaled ones
    scratch = new_scratch(problem, own)
    while True:
        moved, report = sweep(problem, method, state, w, some_visits(visits, done), scratch)
        done += moved
        if report == DONE:
            return state
        if report == BROKEN:
            raise fault(problem, int(visited(as_visits(visits), done)), w, _factor(method, state))
        if report == UNDEFINED:
            raise undefined(problem, int(visited(as_visits(visits), done)))
        state = enlarged(state, max(sizes(problem).statistics, sizes(problem).parts))


def _factor(method: Any, state: Any) -> float:
    """Return the factor of the innermost method, by which its scores are multiplied."""
    while hasattr(method, "inner") and hasattr(state, "inner"):
        method, state = method.inner, state.inner
    return float(factor(method, state))


def fault(problem: Any, i: int, w: FloatArray, c: float = 1.0) -> ValueError:
    """Return the error for example i, whose gap at c times the scores of w is negative or undefined."""
    return _broken_oracle(i) if _has_scores(problem, i, w, c) else undefined(problem, i)


def undefined(problem: Any, i: int) -> ValueError:
    """Return the error for example i, of which some number is not finite.

    Features and scores that are finite where all weights are zero are no fault of the data.
    """
    if _has_scores(problem, i, np.zeros(sizes(problem).weights)):
        return scale_error(f"the scores of example {i}")
    return _broken_oracle(i)


def _has_scores(problem: Any, i: int, w: FloatArray, c: float = 1.0) -> bool:
    """Whether the scores of example i at w, times c, are numbers of which float64 can make sums."""
    theta = aligned_zeros(sizes(problem).statistics)
    with np.errstate(all="ignore"):
        score(problem, i, w, theta)
        theta *= c
    return bool((np.abs(theta) < _LARGEST_SCORE).all())


def _broken_oracle(i: int) -> BrokenOracle:
    return BrokenOracle(
        f"solve: example {i} has a negative or undefined block gap: its argmax returned an output "
        f"that is not the best, or its features or scores are not finite; check argmax, loss and the data."
    )


def broken_example(problem: Any, w: FloatArray, hinge: FloatArray) -> int:
    """Return the first example whose hinge at w is undefined or, unless approximate, negative; or -1."""
    finite = np.isfinite(hinge)
    least = -np.inf
    if is_exact(problem):
        least = -ROUNDING * (1.0 + np.abs(hinge).max(initial=0.0, where=finite))
    scratch = new_scratch(problem)
    for i in np.flatnonzero(~(finite & (hinge >= least))):
        loss_y, found = find_corner(problem, i, w, scratch)
        if not is_sound(problem, found, loss_y + abs(found), scratch):
            return int(i)
    return -1
