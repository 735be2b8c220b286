r"""Block-coordinate Frank-Wolfe (the paper's Algorithm 4), with its state in output space.

With :math:`w_i = \Phi_i z_i / (\lambda n)` and :math:`w_s = \Phi_i \psi_i(y^*) / (\lambda n)` the
lines of the algorithm become, for :math:`\delta = \psi_i(y^*) - z_i`,

.. math::

    g_i    &= \frac1n \left( L_i(y^*) - \ell_i - \langle \theta, \delta \rangle \right) \\
    \gamma &= \operatorname{clip}_{[0, 1]} \left( g_i \middle/
              \frac{\langle \delta, \Phi_i^\top \Phi_i \delta \rangle}{\lambda n^2} \right) \\
    z_i    &\leftarrow z_i + \gamma \delta, \qquad
    \ell_i  \leftarrow \ell_i + \gamma (L_i(y^*) - \ell_i), \qquad
    w       \leftarrow w + \frac{\gamma}{\lambda n} \Phi_i \delta .

Here :math:`\ell_i` is the loss of block i without the paper's factor 1/n.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.methods import protocol
from maxmargin.methods.blocks import (
    Blocks,
    add_to_block,
    dot_block,
    empty_blocks,
    has_slack,
    load_block,
    prefetch_block,
    scaled_blocks,
)
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.rules import LineSearch, Predefined, dual_gain, step_size
from maxmargin.methods.scratch import add_corner, new_scratch
from maxmargin.methods.sweep import push_blocks
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures.feature_map import norm2, push
from maxmargin.structures.problem import AnyProblem, sizes


class BlockFrankWolfe(NamedTuple):
    """Block-coordinate Frank-Wolfe: one oracle call and one step per visited example.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    step : LineSearch() or Predefined()
        Step size: exact line search, or 2n / (nu k + 2n).
    """

    lam: float
    step: LineSearch | Predefined = LineSearch()


class BlockState(NamedTuple):
    """The dual iterate.

    Attributes
    ----------
    w : array
        Weights.
    ell : array of shape (n,)
        Dual loss of each block.
    z : Blocks
        Each block's mean of psi under its dual variables.
    steps : array of shape (1,)
        k, the number of steps taken.
    """

    w: FloatArray
    ell: FloatArray
    z: Blocks
    steps: IntArray


@protocol.start.register(BlockFrankWolfe)
def block_frank_wolfe_start(method: BlockFrankWolfe, problem: AnyProblem) -> BlockState:
    size = sizes(problem)
    return BlockState(
        aligned_zeros(size.weights),
        np.zeros(size.examples),
        empty_blocks(size.examples, size.statistics),
        np.zeros(1, dtype=np.int64),
    )


@protocol.has_room.register(BlockFrankWolfe)
def block_frank_wolfe_has_room(method, state, i, sizes):
    return has_slack(state.z, i, sizes.statistics)


@protocol.foresee_block.register(BlockFrankWolfe)
def block_frank_wolfe_foresee_block(method, state, i):
    prefetch_block(state.z, i)


@protocol.mean_margin.register(BlockFrankWolfe)
def block_frank_wolfe_mean_margin(method, state, i, theta):
    return state.ell[i] - dot_block(state.z, i, theta)


@protocol.step.register(BlockFrankWolfe)
def block_frank_wolfe_step(method, state, phi, i, loss_y, hinge, work):
    n, move = state.ell.shape[0], work.move
    hinge_z = protocol.mean_margin(method, state, i, work.theta)
    if not protocol.is_sound(hinge - hinge_z, loss_y + abs(hinge) + abs(hinge_z), work):
        return protocol.BROKEN
    load_block(state.z, i, -1.0, move)
    add_corner(work.corner, move)
    gap = (hinge - hinge_z) / n
    move.gap[0] = hinge - hinge_z

    scale = 1.0 / (method.lam * n)
    curvature = scale / n * norm2(phi, i, move, work.image, work.map)

    gamma = step_size(method.step, gap, curvature, state.steps[0], n)
    move.gamma[0], move.gain[0] = gamma, n * dual_gain(gamma, gap, curvature)
    move.ell[0] = gamma * (loss_y - state.ell[i])
    state.steps[0] += 1
    if gamma > 0.0:
        push(phi, i, move, gamma * scale, state.w, work.map)
        add_to_block(state.z, i, gamma, move)
        state.ell[i] += move.ell[0]
    return protocol.DONE


@protocol.carried.register(BlockFrankWolfe)
def block_frank_wolfe_carried(
    method: BlockFrankWolfe, state: BlockState, problem: AnyProblem, carry: Carry
) -> BlockState:
    n = sizes(problem).examples
    z = scaled_blocks(state.z, n, carry.share)
    return BlockState(
        protocol.carried_w(problem, state.w, carry),
        protocol.carried_ell(state.ell, n, carry),
        z,
        state.steps.copy(),
    )


@protocol.dual_weights.register(BlockFrankWolfe)
def block_frank_wolfe_dual_weights(
    method: BlockFrankWolfe, state: BlockState, problem: AnyProblem
) -> FloatArray:
    w = np.zeros(sizes(problem).weights)
    push_blocks(problem.map, state.z, 1.0, w, new_scratch(problem).block)
    return w


@protocol.point.register(BlockFrankWolfe)
def block_frank_wolfe_point(method: BlockFrankWolfe, state: BlockState, problem: AnyProblem) -> Point:
    return protocol.dual_point(problem, state.w, protocol.dual_loss(method, state))


@protocol.traits.register(BlockFrankWolfe)
def block_frank_wolfe_traits(method: BlockFrankWolfe) -> Traits:
    return Traits(projects=True, weighs=True, joins=True)
