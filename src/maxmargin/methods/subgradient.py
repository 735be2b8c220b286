r"""Stochastic subgradient descent (SSG; Pegasos; the baseline of the paper's experiments).

Visit k, from zero on, finds :math:`y^* = \arg\max_y H_i(y; w_k)` and makes a step of size
:math:`1 / (\lambda (k + 1))` along the subgradient of example i,

.. math:: w_{k+1} = \left(1 - \frac{1}{k + 1}\right) w_k + \frac{1}{\lambda (k + 1)} \Phi_i \psi_i(y^*)
          \qquad \Longleftrightarrow \qquad
          w_k = \frac{v_k}{\lambda k}, \quad v_{k+1} = v_k + \Phi_i \psi_i(y^*) ,

so that v alone is kept, a step is one push, and the scores at :math:`w_k` are those at v times a factor.

**A lower bound.** Let :math:`m_i` count the visits of example i, and :math:`\bar L` be the mean loss of all
k answers. Dual variables proportional to how often an output was the answer,
:math:`\alpha_i(y) = s \, \frac nk \, \#_i(y)` with the rest on the truth, belong to the weights
:math:`s \, w_k` and to the dual loss :math:`s \bar L`. They are feasible for
:math:`0 \le s \le k / (n \max_i m_i)`, where the largest :math:`D = s \bar L - \frac\lambda2 s^2 \|w_k\|^2`
is taken. After whole passes of a permutation s may be one, and the bound meets the optimum in the end;
visits drawn with replacement leave it loose.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.loops import scaled_copy
from maxmargin.methods._protocol import (
    BROKEN,
    DONE,
    Carry,
    Point,
    advance,
    carried,
    factor,
    has_dual,
    has_room,
    is_sound,
    point,
    primal_point,
    projects,
    seek,
    start,
    step,
    weights,
)
from maxmargin.methods._scratch import corner_at_scores, push_corner
from maxmargin.methods._sweep import sweep_all
from maxmargin.methods.sampling import Visits
from maxmargin.methods.steps import LineSearch, step_size
from maxmargin.problems._protocol import score, sizes, statistics_size, weights_alone


class Subgradient(NamedTuple):
    """Stochastic subgradient steps of size 1 / (lam (k + 1)); to be averaged, best with weights t.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class SubgradientState(NamedTuple):
    """The iterate, of which lam is no part.

    Attributes
    ----------
    v : array
        The sum of all answers' psi, in the weights' layout.
    loss : array of shape (1,)
        The sum of their losses.
    visits : array of shape (n,)
        Of each example.
    steps : array of shape (1,)
        k, the number of all visits.
    """

    v: FloatArray
    loss: FloatArray
    visits: IntArray
    steps: IntArray


@start.register(Subgradient)
def subgradient_start(method: Subgradient, problem: Any) -> SubgradientState:
    size = sizes(problem)
    visits, steps = np.zeros(size.examples, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return SubgradientState(aligned_zeros(size.weights), np.zeros(1), visits, steps)


@weights.register(Subgradient)
def subgradient_weights(method: Subgradient, state: SubgradientState) -> FloatArray:
    return state.v


@factor.register(Subgradient)
def subgradient_factor(method, state):
    return 1.0 / (method.lam * max(state.steps[0], 1))


@has_room.register(Subgradient)
def subgradient_has_room(method, state, problem, i):
    return True


@seek.register(Subgradient)
def subgradient_seek(method, state, problem, i, w, scratch):
    size = statistics_size(problem, i)
    score(problem, i, w, scratch.image)
    scaled_copy(factor(method, state), scratch.image[:size], scratch.theta[:size])
    return corner_at_scores(problem, i, scratch)


@step.register(Subgradient)
def subgradient_step(method, state, problem, i, loss_y, hinge, scratch):
    if not is_sound(problem, hinge, loss_y + abs(hinge), scratch):
        return BROKEN
    push_corner(problem, i, method.lam, state.v, scratch)
    state.loss[0] += loss_y
    state.visits[i] += 1
    state.steps[0] += 1
    return DONE


@advance.register(Subgradient)
def subgradient_advance(
    method: Subgradient, state: SubgradientState, problem: Any, visits: Visits | IntArray
) -> SubgradientState:
    return sweep_all(problem, method, state, visits)


@carried.register(Subgradient)
def subgradient_carried(
    method: Subgradient, state: SubgradientState, problem: Any, carry: Carry
) -> SubgradientState:
    """The sums know nothing of lam, and new examples were not visited yet."""
    v = aligned_zeros(len(state.v))
    v[:] = state.v
    visits = np.concatenate([state.visits, np.zeros(sizes(problem).examples - carry.n, dtype=np.int64)])
    return SubgradientState(v, state.loss.copy(), visits, state.steps.copy())


@point.register(Subgradient)
def subgradient_point(method: Subgradient, state: SubgradientState, problem: Any) -> Point:
    w, k = factor(method, state) * weights_alone(problem, state.v), int(state.steps[0])
    if k == 0:
        return primal_point(w)
    feasible = k / (sizes(problem).examples * int(state.visits.max()))
    ell, norm2 = feasible * float(state.loss[0]) / k, feasible**2 * float(w @ w)
    share = step_size(LineSearch(), ell, method.lam * norm2, k, 1)
    return Point(w, share * ell, share**2 * norm2)


@projects.register(Subgradient)
def subgradient_projects(method: Subgradient) -> bool:
    return True


@has_dual.register(Subgradient)
def subgradient_has_dual(method: Subgradient) -> bool:
    return False
