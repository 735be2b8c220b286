r"""Stochastic subgradient descent (SSG; Pegasos; the baseline of the paper's experiments).

Visit k = 0, 1, ... finds :math:`y^* = \arg\max_y H_i(y; w_k)` and takes a step of size
:math:`1 / (\lambda (k + 1))` along the subgradient of example i,

.. math:: w_{k+1} = \left(1 - \frac{1}{k + 1}\right) w_k + \frac{1}{\lambda (k + 1)} \Phi_i \psi_i(y^*)
          \qquad \Longleftrightarrow \qquad
          w_k = \frac{v_k}{\lambda k}, \quad v_{k+1} = v_k + \Phi_i \psi_i(y^*) ,

so the state is only v, a step is one push, and the scores at :math:`w_k` are those at v times a factor.

**A lower bound.** Let :math:`m_i` count the visits of example i, and :math:`\bar L` be the mean loss of all
k answers. Dual variables proportional to the number of times that an output was the answer,
:math:`\alpha_i(y) = s \, \frac nk \, \#_i(y)` with the rest on the truth, belong to the weights
:math:`s \, w_k` and to the dual loss :math:`s \bar L`. They are feasible for
:math:`0 \le s \le k / (n \max_i m_i)`; the bound is the largest
:math:`D = s \bar L - \frac\lambda2 s^2 \|w_k\|^2` over these s. After whole passes of a permutation s may be
one, and the bound converges to the optimum; visits drawn with replacement leave it loose.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling.loops import scaled_copy
from maxmargin.methods import protocol
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.rules import LineSearch, step_size
from maxmargin.methods.scratch import corner_at_scores, push_corner
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures.feature_map import inner, score, statistics_size
from maxmargin.structures.problem import AnyProblem, sizes


class Subgradient(NamedTuple):
    """Stochastic subgradient steps of size 1 / (lam (k + 1)); best averaged, with weight t for iterate t.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class SubgradientState(NamedTuple):
    """The iterate, which does not depend on lam.

    Attributes
    ----------
    v : array
        The sum of all answers' psi, in the weights' layout.
    loss : array of shape (1,)
        The sum of their losses.
    visits : array of shape (n,)
        Number of visits of each example.
    steps : array of shape (1,)
        k, the total number of visits.
    """

    v: FloatArray
    loss: FloatArray
    visits: IntArray
    steps: IntArray


@protocol.start.register(Subgradient)
def subgradient_start(method: Subgradient, problem: AnyProblem) -> SubgradientState:
    size = sizes(problem)
    visits, steps = np.zeros(size.examples, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return SubgradientState(aligned_zeros(size.weights), np.zeros(1), visits, steps)


@protocol.weights.register(Subgradient)
def subgradient_weights(method: Subgradient, state: SubgradientState) -> FloatArray:
    return state.v


@protocol.factor.register(Subgradient)
def subgradient_factor(method, state):
    return 1.0 / (method.lam * max(state.steps[0], 1))


@protocol.seek.register(Subgradient)
def subgradient_seek(method, state, problem, i, w, scratch):
    size, work = statistics_size(problem.map, i), scratch.block
    score(problem.map, i, w, work.image)
    scaled_copy(protocol.factor(method, state), work.image[:size], work.theta[:size])
    return corner_at_scores(problem, i, scratch)


@protocol.step.register(Subgradient)
def subgradient_step(method, state, phi, i, loss_y, hinge, work):
    if not protocol.is_sound(hinge, loss_y + abs(hinge), work):
        return protocol.BROKEN
    push_corner(phi, i, method.lam, state.v, work)
    state.loss[0] += loss_y
    state.visits[i] += 1
    state.steps[0] += 1
    return protocol.DONE


@protocol.carried.register(Subgradient)
def subgradient_carried(
    method: Subgradient, state: SubgradientState, problem: AnyProblem, carry: Carry
) -> SubgradientState:
    """Keep the sums, which do not depend on lam; new examples have not been visited."""
    v = aligned_zeros(len(state.v))
    v[:] = state.v
    visits = np.concatenate([state.visits, np.zeros(sizes(problem).examples - carry.n, dtype=np.int64)])
    return SubgradientState(v, state.loss.copy(), visits, state.steps.copy())


@protocol.point.register(Subgradient)
def subgradient_point(method: Subgradient, state: SubgradientState, problem: AnyProblem) -> Point:
    w, k = protocol.factor(method, state) * state.v, int(state.steps[0])
    if k == 0:
        return protocol.primal_point(w)
    feasible = k / (sizes(problem).examples * int(state.visits.max()))
    ell, norm2 = feasible * float(state.loss[0]) / k, feasible**2 * inner(problem.map, w, w)
    share = step_size(LineSearch(), ell, method.lam * norm2, k, 1)
    return Point(w, share * ell, share**2 * norm2)


@protocol.traits.register(Subgradient)
def subgradient_traits(method: Subgradient) -> Traits:
    return Traits(
        takes_corners=False, searches=False, has_dual=False, notes_gaps=False, projects=True, weighs=True
    )
