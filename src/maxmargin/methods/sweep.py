"""The loops over examples, each written once and compiled for every pair of model and method."""

from collections.abc import Generator
from contextlib import suppress
from typing import TypeVar

import numpy as np

from maxmargin.compiling import compiled_only, inner_kernel, kernel, python_generic
from maxmargin.methods import protocol
from maxmargin.methods.between_visits import (
    NO_ACCELERATION,
    Acceleration,
    Exchange,
    before_visit,
    kappa_now,
    record,
)
from maxmargin.methods.blocks import SIZE, START, enlarged, load_block
from maxmargin.methods.planes import add_plane
from maxmargin.methods.protocol import BrokenOracle
from maxmargin.methods.rules import Visits, as_visits, expected, n_visits, note_gap, some_visits, visited
from maxmargin.methods.scratch import BlockWork, add_corner, find_corner, new_scratch, scratch_for, weight_of
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.limits import OutOfTime, Pace, is_limited, now
from maxmargin.runtime.threads import to_its_end
from maxmargin.structures.feature_map import foresee, is_euclidean, map_sizes, push, reset, score
from maxmargin.structures.oracle import foresee_truth, is_exact, shortfall
from maxmargin.structures.problem import AnyProblem

State = TypeVar("State")

# Scores beyond this count as infinite: sums of a few of them, with losses and factors, overflow.
_LARGEST_SCORE = 1e300


@inner_kernel
def take_step(phi, method, state, i, loss_y, hinge, visits, between, work):
    """Take the method's step of block i, given the oracle's answer; return its report."""
    report = protocol.step(method, state, phi, i, loss_y, hinge, work)
    if report == protocol.DONE:
        note_gap(visits, i, work.move.gap[0])
        record(between, i, work.move)
        reset(work.move)
    return report


@compiled_only
def look_ahead(problem, method, state, i):
    """Prefetch the data for the visit of example i."""
    if i >= 0:
        foresee(problem.map, i)
        foresee_truth(problem.oracle, i)
        protocol.foresee_block(method, state, i)


@kernel
def sweep(problem, method, state, w, visits, scratch, between):
    """Make the visits, whose moves change w; return how many were completed, and the last report."""
    kappa, mine = 0.0, method
    for t in range(visits.order.shape[0]):
        if not before_visit(between, t, w, scratch.block):
            return t, protocol.WAITING
        if kappa != kappa_now(between):
            kappa = kappa_now(between)
            mine = protocol.with_kappa(method, kappa)
        i = visited(visits, t)
        look_ahead(problem, method, state, expected(visits, t + 1))
        if not protocol.has_room(method, state, i, scratch.block.sizes):
            return t, protocol.FULL
        loss_y, hinge = protocol.seek(mine, state, problem, i, w, scratch)
        report = take_step(problem.map, mine, state, i, loss_y, hinge, visits, between, scratch.block)
        if report != protocol.DONE:
            return t, report
    is_over = before_visit(between, visits.order.shape[0], w, scratch.block)
    return visits.order.shape[0], protocol.DONE if is_over else protocol.WAITING


@kernel
def scores(problem, w, count, scratch):
    """Score the first examples one by one, to time a visit up to its oracle call."""
    for i in range(count):
        score(problem.map, i, w, scratch.block.theta)


@kernel
def hinges(problem, w, first, out, scratch):
    """Write the hinge of example first + t at w, or an upper bound on it, to ``out[t]``."""
    for t in range(out.shape[0]):
        _, hinge = find_corner(problem, first + t, w, scratch)
        missed = shortfall(problem.oracle, first + t, scratch.oracle)
        out[t] = hinge + weight_of(scratch.weights, first + t) * missed


@kernel
def batch_corner(problem, w, scale, first, stop, total, w_s, scratch):
    """``w_s += scale * sum_i Phi_i psi_i(y_i*)``; return ``total`` plus losses, a broken example or -1."""
    work = scratch.block
    for i in range(first, stop):
        loss_y, hinge = find_corner(problem, i, w, scratch)
        if not protocol.is_sound(hinge, loss_y + abs(loss_y - hinge), work):
            return total, i
        add_corner(work.corner, work.move)
        push(problem.map, i, work.move, scale, w_s, work.map)
        total += loss_y
        reset(work.move)
    return total, -1


@kernel
def push_blocks(phi, blocks, scale, w, work):
    """``w += scale * sum_i Phi_i z_i``"""
    for i in range(blocks.extent.shape[0]):
        if blocks.extent[i, SIZE] > 0:
            load_block(blocks, i, 1.0, work.move)
            push(phi, i, work.move, scale, w, work.map)
            reset(work.move)


@kernel
def push_planes(phi, planes, scale, w, work):
    """``w += scale * sum_i sum_c alpha_c Phi_i psi_c``"""
    for i in range(planes.extent.shape[0]):
        for c in range(planes.extent[i, SIZE]):
            add_plane(planes, i, c, planes.alpha[planes.extent[i, START] + c], work.move)
        push(phi, i, work.move, scale, w, work.map)
        reset(work.move)


def sweep_all(
    problem: AnyProblem,
    method: object,
    state: State,
    visits: Visits | IntArray,
    numbers: IntArray | None = None,
    between: Exchange | Acceleration = NO_ACCELERATION,
) -> State:
    """Make the visits, and enlarge the state's pools when necessary; return the state.

    If ``numbers`` is given, errors name example i by ``numbers[i]``.
    """
    return to_its_end(sweep_in_turns(problem, method, state, visits, numbers, between))


def sweep_in_turns(
    problem: AnyProblem,
    method: object,
    state: State,
    visits: Visits | IntArray,
    numbers: IntArray | None = None,
    between: Exchange | Acceleration = NO_ACCELERATION,
) -> Generator[None, None, State]:
    """Make the visits as `sweep_all` does; yield while other parts have not reached an exchange."""
    done, left, w, traits = 0, as_visits(visits), protocol.weights(method, state), protocol.traits(method)
    # Scores may be the weights themselves, but not if these are scaled.
    own = w if traits.has_dual else None
    with scratch_for(problem, own, weighs=traits.weighs, solves=traits.solves) as (inner, scratch):
        while True:
            moved, report = sweep(inner, method, state, w, left, scratch, between)
            if report == protocol.DONE:
                protocol.notice(method, state)
                return state
            done += moved
            left, between = some_visits(visits, done), between._replace(done=done)
            if report == protocol.WAITING:
                yield
                continue
            i = int(visited(as_visits(visits), done))
            if report == protocol.FULL:
                state = _with_room(method, state, i, scratch.block)
                continue
            number = i if numbers is None else int(numbers[i])
            if report == protocol.BROKEN:
                raise fault(problem, i, w, float(protocol.factor(method, state)), number)
            raise undefined(problem, i, number)


def _with_room(method: object, state: State, i: int, work: BlockWork) -> State:
    """Return a state with space for another step of block i."""
    protocol.make_room(method, state, i, work.move)
    if protocol.has_room(method, state, i, work.sizes):
        return state
    longer: State = enlarged(state, max(work.sizes.statistics, work.sizes.parts))
    return longer


def sweep_in_time(
    problem: AnyProblem,
    method: object,
    state: State,
    visits: Visits | IntArray,
    between: Acceleration = NO_ACCELERATION,
) -> tuple[State, int]:
    """Make visits until the deadline, as `sweep_all` does; return the state, and how many were made."""
    done, total = 0, n_visits(visits)
    if not is_limited():  # one piece, which shows a run how long its own pieces should be
        begin = now()
        state = sweep_all(problem, method, state, visits, between=between)
        Pace("visits").note(total, now() - begin)
        return state, total
    with suppress(OutOfTime):
        for first, stop in Pace().pieces(0, total):
            some = some_visits(visits, first, stop)
            state, done = sweep_all(problem, method, state, some, between=between), stop
    return state, done


def corners_of_all(problem: AnyProblem, w: FloatArray, scale: float, w_s: FloatArray) -> float:
    """``w_s += scale * sum_i Phi_i psi_i(y_i*)``; return the sum of losses. Costs one pass of the oracle.

    `OutOfTime` is raised at the deadline.
    """
    total = 0.0
    with scratch_for(problem, w) as (inner, scratch):
        for first, stop in Pace().pieces(0, scratch.block.sizes.examples):
            total, broken = batch_corner(inner, w, scale, first, stop, total, w_s, scratch)
            if broken >= 0:
                raise fault(problem, broken, w)
    return total


@python_generic
def advance(method, state, problem, visits):
    """Make the visits, a part of a pass or all of it, and return the state.

    By default the loop over examples makes them, with one step each. A method that moves all blocks at once
    may raise `OutOfTime` at the deadline; its state must then be as before.
    """
    if callable(getattr(method, "advance", None)):
        return method.advance(state, problem, visits)
    return sweep_all(problem, method, state, visits)


def is_swept(method: object) -> bool:
    """Whether `advance` leaves the visits of this method to the loop over examples."""
    has_own = callable(getattr(method, "advance", None))
    return advance.dispatch(type(method)) is advance.dispatch(object) and not has_own


def fault(
    problem: AnyProblem, i: int, w: FloatArray, c: float = 1.0, number: int | None = None
) -> ValueError:
    """Return the error for example i, whose gap at c times the scores of w is negative or undefined."""
    number = i if number is None else number
    return _broken(problem, number) if _has_scores(problem, i, w, c) else undefined(problem, i, number)


def undefined(problem: AnyProblem, i: int, number: int | None = None) -> ValueError:
    """Return the error for example i, which has a number that is not finite.

    If its features, and its scores at zero weights, are finite, the data are not at fault.
    """
    number = i if number is None else number
    if _has_scores(problem, i, np.zeros(map_sizes(problem.map).weights)):
        return protocol.scale_error(f"the scores of example {number}")
    return _broken(problem, number)


def _has_scores(problem: AnyProblem, i: int, w: FloatArray, c: float = 1.0) -> bool:
    """Whether float64 can hold sums of the scores of example i at w, times c."""
    theta = aligned_zeros(map_sizes(problem.map).statistics)
    with np.errstate(all="ignore"):
        score(problem.map, i, w, theta)
        theta *= c
    return bool((np.abs(theta) < _LARGEST_SCORE).all())


def _broken(problem: AnyProblem, i: int) -> BrokenOracle:
    kernel = "" if is_euclidean(problem.map) else ", or the kernel is not positive semidefinite"
    return BrokenOracle(
        f"solve: example {i} has a negative or undefined block gap: its argmax returned an output "
        f"that is not the best, or its features or scores are not finite{kernel}; check argmax, loss and the "
        "data."
    )


def broken_example(problem: AnyProblem, w: FloatArray, hinge: FloatArray, start: int = 0) -> int:
    """Return the first example whose hinge at w is undefined or, for an exact oracle, negative; or -1.

    ``hinge[t]`` is that of example ``start + t``.
    """
    if hinge.min(initial=0.0) >= 0.0 and hinge.max(initial=0.0) < np.inf:
        return -1
    finite = np.isfinite(hinge)
    least = -np.inf
    if is_exact(problem.oracle):
        least = -protocol.ROUNDING * (1.0 + np.abs(hinge).max(initial=0.0, where=finite))
    suspects = start + np.flatnonzero(~(finite & (hinge >= least)))
    if len(suspects) == 0:
        return -1
    scratch = new_scratch(problem)
    for i in suspects:
        loss_y, found = find_corner(problem, i, w, scratch)
        if not protocol.is_sound(found, loss_y + abs(found), scratch.block):
            return int(i)
    return -1
