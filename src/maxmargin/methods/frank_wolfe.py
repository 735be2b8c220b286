r"""Batch Frank-Wolfe (the paper's Algorithm 2): one oracle call per example, then one step of all blocks.

.. math::

    w_s    &= \frac{1}{\lambda n} \sum_i \psi_i(y_i^*), \qquad \ell_s = \frac1n \sum_i L_i(y_i^*) \\
    \gamma &= \operatorname{clip}_{[0, 1]}
              \frac{\lambda (w - w_s)^\top w - \ell + \ell_s}{\lambda \|w - w_s\|^2} \\
    w      &\leftarrow (1 - \gamma) w + \gamma w_s, \qquad \ell \leftarrow (1 - \gamma) \ell + \gamma \ell_s .

This is a batch subgradient step on the primal with step size :math:`\gamma / \lambda`.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.methods import protocol
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.rules import LineSearch, Predefined, Visits, step_size
from maxmargin.methods.sweep import advance, corners_of_all
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures.feature_map import inner, settle, unprojected
from maxmargin.structures.problem import AnyProblem, sizes


class FrankWolfe(NamedTuple):
    """Batch Frank-Wolfe: one pass over all examples per step.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    step : LineSearch() or Predefined()
        Step size: exact line search, or 2 / (nu k + 2).
    """

    lam: float
    step: LineSearch | Predefined = LineSearch()


class BatchState(NamedTuple):
    """The dual iterate: weights, dual loss ``ell[0]`` and number of steps ``steps[0]``."""

    w: FloatArray
    ell: FloatArray
    steps: IntArray


@protocol.start.register(FrankWolfe)
def frank_wolfe_start(method: FrankWolfe, problem: AnyProblem) -> BatchState:
    return BatchState(aligned_zeros(sizes(problem).weights), np.zeros(1), np.zeros(1, dtype=np.int64))


@advance.register(FrankWolfe)
def frank_wolfe_advance(
    method: FrankWolfe, state: BatchState, problem: AnyProblem, visits: Visits | IntArray
) -> BatchState:
    n, lam, w = sizes(problem).examples, method.lam, state.w
    w_s = np.zeros_like(w)
    ell_s = corners_of_all(problem, w, 1.0 / (lam * n), w_s) / n
    phi, v = problem.map, unprojected(problem.map, w)
    direction = unprojected(phi, w_s) - v  # of images
    gap = ell_s - state.ell[0] - lam * inner(phi, direction, w)
    curvature = lam * inner(phi, direction, direction)
    gamma = step_size(method.step, gap, curvature, int(state.steps[0]), 1)
    settle(phi, v + gamma * direction, w)
    state.ell[0] += gamma * (ell_s - state.ell[0])
    state.steps[0] += 1
    return state


@protocol.carried.register(FrankWolfe)
def frank_wolfe_carried(
    method: FrankWolfe, state: BatchState, problem: AnyProblem, carry: Carry
) -> BatchState:
    ell = carry.share * state.ell * carry.n / sizes(problem).examples
    return BatchState(protocol.carried_w(problem, state.w, carry), ell, state.steps.copy())


@protocol.point.register(FrankWolfe)
def frank_wolfe_point(method: FrankWolfe, state: BatchState, problem: AnyProblem) -> Point:
    return protocol.dual_point(problem, state.w, protocol.dual_loss(method, state))


@protocol.traits.register(FrankWolfe)
def frank_wolfe_traits(method: FrankWolfe) -> Traits:
    return protocol.BATCH._replace(projects=True)
