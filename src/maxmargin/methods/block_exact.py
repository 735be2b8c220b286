r"""Exact block steps: all dual variables of a block move to the best point at once.

As a function of block i alone, with :math:`\theta` the scores before the step, the dual is

.. math:: n D(z_i') = n D(z_i) + \ell_i' - \ell_i - \langle \theta, z_i' - z_i \rangle
                      - \frac{1}{2 \lambda n} \|\Phi_i (z_i' - z_i)\|^2 .

Where all outputs are known and the columns of :math:`\Phi_i` are orthogonal and of one length, as for
multiclass classification, its maximum is a projection onto a simplex (Keerthi et al. 2008), and there is no
need for active sets: a visit costs about as much as a Frank-Wolfe step. If slacks are rescaled, the simplex
is scaled (``inference/scaled_simplex.py``).

**Blocks that rest.** Near the optimum, many blocks stay where they are: at the truth, or at one other output.
A block that did not move in its last k visits skips the next k (at most `_LONGEST`), which then cost next to
nothing. Certificates visit all examples, so they do not depend on resting. Wrappers with a loop of their
own, and gap sampling, visit all blocks that they draw.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import is_wrapper
from maxmargin.compiling.generics import has_implementation
from maxmargin.compiling.loops import clear
from maxmargin.methods import protocol
from maxmargin.methods.block_frank_wolfe import (
    block_frank_wolfe_dual_weights,
    block_frank_wolfe_foresee_block,
    block_frank_wolfe_has_room,
    block_frank_wolfe_mean_margin,
    block_frank_wolfe_point,
)
from maxmargin.methods.blocks import (
    SIZE,
    START,
    Blocks,
    add_to_block,
    empty_blocks,
    load_block,
    scaled_blocks,
    write_block,
)
from maxmargin.methods.protocol import Carry, Traits
from maxmargin.methods.rules import Listed, Visits, as_visits, dual_gain
from maxmargin.methods.sweep import advance, sweep_all
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import described
from maxmargin.structures.feature_map import add_entry, column_norm2, dot_move, push, score
from maxmargin.structures.oracle import block_optimum
from maxmargin.structures.problem import AnyProblem, sizes
from maxmargin.structures.slack import optimum_of_weight, solve_rescaled

_LONGEST = 8


class BlockExact(NamedTuple):
    """Exact block steps: each visited block is solved exactly. For multiclass problems.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class ExactState(NamedTuple):
    """The dual iterate, and which blocks rest.

    Attributes
    ----------
    w : array
        Weights.
    ell : array of shape (n,)
        Dual loss of each block.
    z : Blocks
        Each block's mean of psi under its dual variables.
    idle : array of shape (n,)
        Number of visits since the block moved.
    rest : array of shape (n,)
        Number of visits to skip.
    calls : array of shape (1,)
        Number of visits made.
    """

    w: FloatArray
    ell: FloatArray
    z: Blocks
    idle: IntArray
    rest: IntArray
    calls: IntArray


def check_solvable(problem: AnyProblem) -> None:
    """Raise unless blocks of the problem can be solved exactly."""
    if not can_solve_blocks(problem):
        raise TypeError(f"BlockExact: problem must be a Multiclass, got {described(problem)}; use Pairwise.")


def can_solve_blocks(problem: AnyProblem) -> bool:
    """Whether blocks of the problem can be solved exactly."""
    return has_implementation(problem.map, column_norm2) and has_implementation(problem.oracle, block_optimum)


def with_exact_blocks(method: Any) -> Any:
    """Return the method, or the wrapper of a method, with exact block steps at the same lam."""
    if is_wrapper(type(method)):
        return method._replace(inner=with_exact_blocks(method.inner))
    return BlockExact(lam=method.lam)


@protocol.start.register(BlockExact)
def block_exact_start(method: BlockExact, problem: AnyProblem) -> ExactState:
    check_solvable(problem)
    size = sizes(problem)
    n = size.examples
    return _awake(aligned_zeros(size.weights), np.zeros(n), empty_blocks(n, size.statistics))


def _awake(w: FloatArray, ell: FloatArray, z: Blocks) -> ExactState:
    idle, rest = (np.zeros(len(ell), dtype=np.int64) for _ in range(2))
    return ExactState(w, ell, z, idle, rest, np.zeros(1, dtype=np.int64))


protocol.has_room.register(BlockExact)(block_frank_wolfe_has_room)
protocol.foresee_block.register(BlockExact)(block_frank_wolfe_foresee_block)
protocol.mean_margin.register(BlockExact)(block_frank_wolfe_mean_margin)
protocol.dual_weights.register(BlockExact)(block_frank_wolfe_dual_weights)
protocol.point.register(BlockExact)(block_frank_wolfe_point)


@advance.register(BlockExact)
def block_exact_advance(
    method: BlockExact, state: ExactState, problem: AnyProblem, visits: Visits | IntArray
) -> ExactState:
    """Make the visits of blocks that do not rest."""
    visits = as_visits(visits)
    if not isinstance(visits, Listed):
        return sweep_all(problem, method, state, visits)
    for order in _without_repeats(visits.order):
        awake = state.rest[order] == 0
        state.rest[order[~awake]] -= 1
        state = sweep_all(problem, method, state, Listed(order[awake]))
    return state


def _without_repeats(order: IntArray) -> list[IntArray]:
    """Split an order where an example recurs: whether it rests there depends on its previous visit."""
    if np.bincount(order).max(initial=0) <= 1:
        return [order]
    by_example = np.argsort(order, kind="stable")
    comes_again = order[by_example[1:]] == order[by_example[:-1]]
    before = np.full(len(order), -1)  # where each example came before
    before[by_example[1:][comes_again]] = by_example[:-1][comes_again]
    cuts = [0]
    while (later := np.flatnonzero(before[cuts[-1] :] >= cuts[-1])).size:
        cuts.append(cuts[-1] + int(later[0]))
    return np.split(order, cuts[1:])


@protocol.seek.register(BlockExact)
def block_exact_seek(method, state, problem, i, w, scratch):
    """Write the best z of block i to ``work.image``; return its dual loss, and the hinge."""
    work = scratch.block
    score(problem.map, i, w, work.theta)
    clear(work.image)
    write_block(state.z, i, work.image)
    curvature = column_norm2(problem.map, i) / (method.lam * state.ell.shape[0])
    if scratch.weights.shape[0] == 0:
        return block_optimum(problem.oracle, i, work.theta, curvature, work.image, scratch.oracle)
    c, slacks = scratch.weights[i], scratch.rescaling
    if slacks.optimum == 0:
        return optimum_of_weight(problem.oracle, i, work.theta, curvature, c, work.image, scratch.oracle)
    address, oracle, answer = slacks.optimum, problem.oracle, slacks.answer
    solve_rescaled(
        address, oracle, i, work.theta, curvature, c, work.image, scratch.oracle, slacks.own, answer
    )
    return answer[0], answer[1]


@protocol.step.register(BlockExact)
def block_exact_step(method, state, phi, i, loss_y, hinge, work):
    mean, move = protocol.mean_margin(method, state, i, work.theta), work.move
    if not protocol.is_sound(hinge - mean, loss_y + abs(hinge) + abs(mean), work):
        return protocol.BROKEN
    load_block(state.z, i, -1.0, move)
    for p in range(work.image.shape[0]):
        if work.image[p] != 0.0:
            add_entry(move, p, work.image[p])
    move.gap[0] = hinge - mean
    square = dot_move(move, move.delta)
    state.calls[0] += 1
    state.idle[i] = 0 if square > 0.0 else state.idle[i] + 1
    state.rest[i] = min(state.idle[i], _LONGEST)
    if square > 0.0:
        scale = 1.0 / (method.lam * state.ell.shape[0])
        move.gamma[0], move.ell[0] = 1.0, loss_y - state.ell[i]
        slope, curvature = move.ell[0] - dot_move(move, work.theta), scale * column_norm2(phi, i) * square
        move.gain[0] = dual_gain(1.0, slope, curvature)
        push(phi, i, move, scale, state.w, work.map)
        add_to_block(state.z, i, 1.0, move)
        state.ell[i] = loss_y
    return protocol.DONE


def squared_lengths(state: ExactState, problem: AnyProblem, examples: IntArray) -> float:
    r"""Return :math:`\sum_i \|\Phi_i z_i\|^2` over some blocks."""
    total = 0.0
    for i in examples.tolist():
        first, size = state.z.extent[i, START], state.z.extent[i, SIZE]
        total += column_norm2(problem.map, i) * float(np.square(state.z.value[first : first + size]).sum())
    return total


@protocol.oracle_calls.register(BlockExact)
def block_exact_oracle_calls(method: BlockExact, state: ExactState, visits: int) -> int:
    return int(state.calls[0])


@protocol.carried.register(BlockExact)
def block_exact_carried(
    method: BlockExact, state: ExactState, problem: AnyProblem, carry: Carry
) -> ExactState:
    """Keep the dual variables; all blocks are visited again."""
    n = sizes(problem).examples
    w, ell = protocol.carried_w(problem, state.w, carry), protocol.carried_ell(state.ell, n, carry)
    return _awake(w, ell, scaled_blocks(state.z, n, carry.share))


@protocol.traits.register(BlockExact)
def block_exact_traits(method: BlockExact) -> Traits:
    return Traits(takes_corners=False, projects=True, weighs=True, solves=True)
