r"""Steps within an active set: pairwise and away (Lacoste-Julien and Jaggi 2015; Osokin et al. 2016).

A visit of example i calls the oracle once, adds its answer to the active set, and moves the dual variables
of the set: once, and again after each step that drops an output. Along a direction d of :math:`\alpha_i`, the
derivative of the dual is :math:`\frac1n \sum_c d_c H_i(y_c)`; the best step is

.. math::

    \delta &= \sum_c d_c \, \psi_i(y_c), \qquad
    \gamma = \operatorname{clip}_{[0, \gamma_{\max}]} \frac{\lambda n \sum_c d_c H_i(y_c)}
             {\langle \delta, \Phi_i^\top \Phi_i \delta \rangle}, \qquad
    \gamma_{\max} = \min_{c : d_c < 0} \frac{\alpha_i(y_c)}{-d_c} \\
    H_i(y_c) &\leftarrow H_i(y_c) - \frac{\gamma}{\lambda n}
                \langle \psi_i(y_c), \Phi_i^\top \Phi_i \delta \rangle .

These steps do not need the weights. The sum of all moves is added to them once, at the end of the visit.

**Memory.** The sets of sequences of many thousand tokens would grow without bound. Where a set exceeds its
budget, the outputs of smallest dual weight are merged: two planes become their mean under
:math:`\alpha`, with the sum of their dual variables. The dual point, and so w and the certificate, stay the
same, and every later step is feasible, as it moves weight between distributions over outputs. If the budget
has room for one mean only, the steps are those of `BlockFrankWolfe`.
"""

import warnings
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, helper, subroutine
from maxmargin.methods import protocol
from maxmargin.methods.blocks import SIZE, START, prefetch_part
from maxmargin.methods.planes import (
    ENTRY_BYTES,
    Planes,
    add_plane,
    drop_planes,
    fit_planes,
    has_plane_room,
    include_corner,
    measure_planes,
    scaled_planes,
    shift_margins,
    truth_planes,
)
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.rules import dual_gain
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import push_planes
from maxmargin.runtime.arrays import FloatArray, aligned_zeros
from maxmargin.structures.feature_map import Move, gram, norm2, push, reset
from maxmargin.structures.problem import AnyProblem, sizes

# Bytes: about ten outputs of a sequence of 20,000 tokens.
BUDGET = 1 << 22


class Pairwise(NamedTuple):
    """Pairwise block steps: dual weight moves from the worst output of the active set to the best.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    inner_steps : int
        Largest number of steps within a block per call of its oracle; each but the last drops an output from
        its set.
    budget : int
        Largest size of an active set in bytes before a visit, which adds an output. In a larger set, the
        outputs of smallest dual weight are merged into their mean. Certificates stay exact, but late passes
        gain less. Only the sets of long sequences or large graphs get this large.
    """

    lam: float
    inner_steps: int = 3
    budget: int = BUDGET


class Away(NamedTuple):
    """Frank-Wolfe and away block steps: towards the best output of the active set or away from the worst.

    Parameters
    ----------
    lam, inner_steps, budget
        As for `Pairwise`.
    """

    lam: float
    inner_steps: int = 3
    budget: int = BUDGET


class ActiveState(NamedTuple):
    """The dual iterate: weights, dual losses of the blocks, and their active sets."""

    w: FloatArray
    ell: FloatArray
    planes: Planes


@protocol.start.register(Pairwise)
@protocol.start.register(Away)
def pairwise_start(method: Pairwise | Away, problem: AnyProblem) -> ActiveState:
    size = sizes(problem)
    return ActiveState(
        aligned_zeros(size.weights), np.zeros(size.examples), truth_planes(size.examples, size.parts)
    )


@protocol.foresee_block.register(Pairwise)
@protocol.foresee_block.register(Away)
def pairwise_foresee_block(method, state, i):
    prefetch_part(state.planes.entries, i, state.planes.where)
    prefetch_part(state.planes.entries, i, state.planes.value)


@protocol.has_room.register(Pairwise)
@protocol.has_room.register(Away)
def pairwise_has_room(method, state, i, sizes):
    planes, most = state.planes, method.budget // ENTRY_BYTES
    fits = planes.entries[i, SIZE] <= most or planes.extent[i, SIZE] == 1
    return fits and has_plane_room(planes, i, sizes.parts)


@protocol.make_room.register(Pairwise)
@protocol.make_room.register(Away)
def pairwise_make_room(method: Pairwise | Away, state: ActiveState, i: int, move: Move) -> None:
    fit_planes(state.planes, i, method.budget // ENTRY_BYTES, move)


@protocol.mean_margin.register(Pairwise)
@protocol.mean_margin.register(Away)
def pairwise_mean_margin(method, state, i, theta):
    return measure_planes(state.planes, i, theta)


@protocol.step.register(Pairwise)
@protocol.step.register(Away)
def pairwise_step(method, state, phi, i, loss_y, hinge, work):
    mean = protocol.mean_margin(method, state, i, work.theta)
    if not protocol.is_sound(hinge - mean, loss_y + abs(hinge) + abs(mean), work):
        return protocol.BROKEN
    include_corner(state.planes, i, loss_y, hinge, work.corner)
    if state.planes.extent[i, SIZE] == 1:  # one plane has all the weight: nothing can move
        work.move.gap[0] = hinge - mean
        return protocol.DONE
    move_block(method, state, phi, i, hinge - mean, work)
    drop_planes(state.planes, i)
    return protocol.DONE


@subroutine
def move_block(method, state, phi, i, gap, work):
    """Take the steps within block i, whose margins are up to date, and add their sum to w and ell."""
    move, scale = work.move, 1.0 / (method.lam * state.ell.shape[0])
    gain = _move_within(method, state.planes, phi, i, scale, work)
    if move.gamma[0] > 0.0:
        state.ell[i] += move.ell[0]
        push(phi, i, move, scale * move.gamma[0], state.w, work.map)
    move.gap[0], move.gain[0] = gap, gain


@subroutine
def _move_within(method, planes, phi, i, scale, work):
    """Take the steps within block i and write their sum to the move; return the gain of n D.

    A step that drops a plane is followed by another, as the best plane can take weight from others too. After
    any other step, the two planes have equal margins. Steps between the remaining planes would gain too
    little to justify updating the margins.
    """
    move, steps, gamma, gain, goes_on = work.move, 0, 0.0, 0.0, True
    while goes_on:
        if steps > 0:
            gram(phi, i, move, work.image, work.map)
            shift_margins(planes, i, gamma * scale, work.image)
        slope = direction(method, planes, i)
        if slope <= 0.0:
            break
        reset(move)
        _load_direction(planes, i, move)
        curvature = scale * norm2(phi, i, move, work.image, work.map)
        gamma, dropped = _move_alpha(planes, i, slope, curvature)
        gain += dual_gain(gamma, slope, curvature)
        steps += 1
        goes_on = dropped and steps < method.inner_steps and planes.extent[i, SIZE] > 2
    if steps > 0:
        _load_sum_of_moves(planes, i, steps, gamma, move)
    return gain


@generic
def direction(method, planes, i):
    """Write the direction of alpha to the work arrays; return its slope, the derivative of n D."""
    raise NotImplementedError


@direction.register(Pairwise)
def pairwise_direction(method, planes, i):
    best, worst = _best_and_worst(planes, i)
    work = planes.work
    for c in range(planes.extent[i, SIZE]):
        work.change[c] = 0.0
    work.change[best] += 1.0
    work.change[worst] -= 1.0
    return work.margin[best] - work.margin[worst]


@direction.register(Away)
def away_direction(method, planes, i):
    best, worst = _best_and_worst(planes, i)
    work, first, m = planes.work, planes.extent[i, START], planes.extent[i, SIZE]
    mean = 0.0
    for c in range(m):
        mean += planes.alpha[first + c] * work.margin[c]
    towards, away = work.margin[best] - mean, mean - work.margin[worst]
    sign = 1.0 if towards >= away else -1.0
    for c in range(m):
        work.change[c] = -sign * planes.alpha[first + c]
    work.change[best if towards >= away else worst] += sign
    return max(towards, away)


@helper
def _best_and_worst(planes, i):
    """Return the plane of largest margin, and the plane of smallest margin among those with alpha > 0."""
    work, first = planes.work, planes.extent[i, START]
    best, worst = 0, -1
    for c in range(planes.extent[i, SIZE]):
        if work.margin[c] > work.margin[best]:
            best = c
        if planes.alpha[first + c] > 0.0 and (worst < 0 or work.margin[c] < work.margin[worst]):
            worst = c
    return best, worst


@helper
def _load_direction(planes, i, move):
    """``delta = sum_c change_c psi_c``, in a move that is zero before."""
    for c in range(planes.extent[i, SIZE]):
        if planes.work.change[c] != 0.0:
            add_plane(planes, i, c, planes.work.change[c], move)


@helper
def _move_alpha(planes, i, slope, curvature):
    """Move alpha along the direction by the best step; return it, and whether it drops a plane."""
    work, first, m = planes.work, planes.extent[i, START], planes.extent[i, SIZE]
    limit, blocking = np.inf, -1
    for c in range(m):
        if work.change[c] < 0.0 and planes.alpha[first + c] < -limit * work.change[c]:
            limit, blocking = planes.alpha[first + c] / -work.change[c], c
    if blocking < 0:  # no direction: one plane has alpha = 1
        return 0.0, False
    dropped = slope >= limit * curvature
    gamma = limit if dropped else slope / curvature
    for c in range(m):
        planes.alpha[first + c] = max(planes.alpha[first + c] + gamma * work.change[c], 0.0)
    if dropped:
        planes.alpha[first + blocking] = 0.0  # exactly zero, despite rounding
    return gamma, dropped


@helper
def _load_sum_of_moves(planes, i, steps, gamma, move):
    """Write the gain of ell and, unless one step left it there, ``sum_c (alpha_c - before_c) psi_c``."""
    first, ell = planes.extent[i, START], 0.0
    if steps > 1:
        reset(move)
    for c in range(planes.extent[i, SIZE]):
        change = planes.alpha[first + c] - planes.work.before[c]
        if change != 0.0:
            ell += change * planes.loss[first + c]
            if steps > 1:
                add_plane(planes, i, c, change, move)
    move.gamma[0], move.ell[0] = 1.0 if steps > 1 else gamma, ell


@protocol.carried.register(Pairwise)
@protocol.carried.register(Away)
def pairwise_carried(
    method: Pairwise | Away, state: ActiveState, problem: AnyProblem, carry: Carry
) -> ActiveState:
    size = sizes(problem)
    planes = scaled_planes(state.planes, size.examples, size.parts, carry.share)
    return ActiveState(
        protocol.carried_w(problem, state.w, carry),
        protocol.carried_ell(state.ell, size.examples, carry),
        planes,
    )


@protocol.dual_weights.register(Pairwise)
@protocol.dual_weights.register(Away)
def pairwise_dual_weights(method: Pairwise | Away, state: ActiveState, problem: AnyProblem) -> FloatArray:
    w = np.zeros(sizes(problem).weights)
    push_planes(problem.map, state.planes, 1.0, w, new_scratch(problem).block)
    return w


@protocol.notice.register(Pairwise)
@protocol.notice.register(Away)
def pairwise_notice(method: Pairwise | Away, state: ActiveState) -> None:
    merges = state.planes.merges
    if merges[0] > 0 and merges[1] == 0:
        merges[1] = 1
        warnings.warn(
            f"{type(method).__name__}: an active set took more than budget={method.budget} bytes, so "
            "its outputs of smallest dual weight were merged, and late passes gain less; for long sequences "
            "use Anchored, or raise budget.",
            stacklevel=2,
        )


@protocol.point.register(Pairwise)
@protocol.point.register(Away)
def pairwise_point(method: Pairwise | Away, state: ActiveState, problem: AnyProblem) -> Point:
    return protocol.dual_point(problem, state.w, protocol.dual_loss(method, state))


@protocol.traits.register(Pairwise)
@protocol.traits.register(Away)
def pairwise_traits(method: Pairwise | Away) -> Traits:
    return Traits(projects=True, weighs=True)
