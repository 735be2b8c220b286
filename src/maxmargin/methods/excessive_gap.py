r"""Excessive gap reduction (Nesterov 2005; for structural SVMs Zhang, Saha and Vishwanathan 2011).

With the entropy as prox-function, the hinges become smooth:

.. math:: P_\mu(w) = \frac{\lambda}{2} \|w\|^2 + \frac{\mu}{n} \sum_i \left(
          \log \sum_y e^{H_i(y; w) / \mu} - \log |\mathcal{Y}_i| \right) \ge P(w) - \mu \bar d, \qquad
          \bar d = \frac1n \sum_i \log |\mathcal{Y}_i| .

The method keeps weights w and dual variables :math:`\alpha` with :math:`P_\mu(w) \le D(\alpha)`, the
*excessive gap condition*, under which the duality gap is at most :math:`\mu \bar d`, and reduces :math:`\mu`.
With the Gibbs distributions :math:`\alpha^\mu(w) \propto e^{H_i(y; w) / \mu}`, a step :math:`\tau` is

.. math::

    \hat w   &= (1 - \tau) A \alpha + \tau A \alpha^\mu(w) \\
    \tilde\alpha_i(y) &\propto \alpha_i^\mu(y; w) \, e^{\gamma H_i(y; \hat w)}, \qquad
    \gamma = \frac{\tau}{(1 - \tau) \mu} \\
    w        &\leftarrow (1 - \tau) w + \tau \hat w, \qquad
    \alpha    \leftarrow (1 - \tau) \alpha + \tau \tilde\alpha, \qquad
    \mu       \leftarrow (1 - \tau) \mu .

Both distributions are Gibbs, of the vectors :math:`w / \mu` and :math:`w / \mu + \gamma \hat w`, and all else
is linear in :math:`(A \alpha, b^\top \alpha)`. So the state is a few weight vectors.

**The choice of tau.** The condition is guaranteed to hold again if :math:`\tau^2 / (1 - \tau) \le \mu / L`,
where :math:`L = R^2 / \lambda` bounds the curvature of the dual; then :math:`\mu` falls as :math:`L / k^2`.
This is the worst case over outputs. As both sides of the condition are known after a step, L is adapted
instead: it falls a little with every step. If the condition fails, the step is undone and L doubled.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.methods import protocol
from maxmargin.methods.exponentiated_gradient import GibbsMean, check_expectations, gibbs_mean
from maxmargin.methods.protocol import Point, Traits
from maxmargin.methods.rules import Visits
from maxmargin.methods.sweep import advance
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import deadline_at
from maxmargin.structures.feature_map import inner, map_sizes
from maxmargin.structures.problem import AnyProblem

_EASING = 0.9  # factor of L after a step
_TIGHTENING = 2.0  # factor of L after a step that is undone
# Tolerance for rounding in the condition, relative to its terms.
_SLACK = 1e-12


class ExcessiveGap(NamedTuple):
    """Excessive gap reduction: a batch method whose gap falls as 1 / k^2; it needs an expectation oracle.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class ExcessiveState(NamedTuple):
    r"""A primal-dual pair that satisfies the excessive gap condition.

    Attributes
    ----------
    w : array
        Weights.
    dual : array
        :math:`A \alpha`, the weights of the dual variables.
    ell : float
        Their dual loss.
    mu : float
    centre : GibbsMean
        Means under :math:`\alpha^\mu(w)`.
    entropy : float
        :math:`\bar d`.
    bound : float
        L.
    calls : int
        Number of oracle calls.
    """

    w: FloatArray
    dual: FloatArray
    ell: float
    mu: float
    centre: GibbsMean
    entropy: float
    bound: float
    calls: int


@protocol.start.register(ExcessiveGap)
@deadline_at(math.inf)  # there is no answer before the start is complete
def excessive_gap_start(method: ExcessiveGap, problem: AnyProblem) -> ExcessiveState:
    r"""Return the initial pair: w of uniform distributions, and :math:`\alpha = \alpha^\mu(w)`.

    The condition is guaranteed for :math:`\mu = L`; the mean loss, which has the same unit, is tried first.
    """
    check_expectations(method, problem)
    size, lam = map_sizes(problem.map), method.lam
    uniform = gibbs_mean(problem, np.zeros(size.weights), 0.0)
    w, mu, calls = uniform.g / lam, uniform.ell if uniform.ell > 0.0 else 1.0, size.examples
    while True:
        centre = gibbs_mean(problem, w / mu, 1.0 / mu)
        calls += size.examples
        first = ExcessiveState(w, centre.g / lam, centre.ell, mu, centre, uniform.log_partition, mu, calls)
        if _excess_in_range(method, first, problem) <= 0.0:
            return first
        mu *= _TIGHTENING


def smoothed_primal(method: ExcessiveGap, state: ExcessiveState, problem: AnyProblem) -> float:
    r"""Return :math:`P_\mu(w)`."""
    smoothed = state.mu * (state.centre.log_partition - state.entropy)
    return 0.5 * method.lam * float(inner(problem.map, state.w, state.w)) + smoothed


def excess(method: ExcessiveGap, state: ExcessiveState, problem: AnyProblem) -> float:
    r"""Return :math:`P_\mu(w) - D(\alpha)`, minus a tolerance for rounding."""
    quadratic = 0.5 * method.lam * float(inner(problem.map, state.dual, state.dual))
    terms = state.ell + quadratic + state.mu * (state.centre.log_partition + state.entropy)
    return smoothed_primal(method, state, problem) - (state.ell - quadratic) - _SLACK * terms


def _excess_in_range(method: ExcessiveGap, state: ExcessiveState, problem: AnyProblem) -> float:
    """Return the excess; raise if it is not finite, which no other step could fix."""
    value = excess(method, state, problem)
    if not np.isfinite(value):
        raise protocol.scale_error("the excessive gap of ExcessiveGap")
    return value


@advance.register(ExcessiveGap)
def excessive_gap_advance(
    method: ExcessiveGap, state: ExcessiveState, problem: AnyProblem, visits: Visits | IntArray
) -> ExcessiveState:
    while True:
        ahead = _stepped(method, state, problem)
        if _excess_in_range(method, ahead, problem) <= 0.0:
            return ahead._replace(bound=_EASING * ahead.bound)
        state = state._replace(bound=_TIGHTENING * state.bound, calls=ahead.calls)


def _stepped(method: ExcessiveGap, state: ExcessiveState, problem: AnyProblem) -> ExcessiveState:
    """Return the state after the longest step that the bound allows; costs two oracle calls per example."""
    lam, mu = method.lam, state.mu
    tau = _step(mu / state.bound)
    gamma = tau / ((1.0 - tau) * mu)
    between = (1.0 - tau) * state.dual + tau / lam * state.centre.g
    towards = gibbs_mean(problem, state.w / mu + gamma * between, 1.0 / mu + gamma)
    w, mu = (1.0 - tau) * state.w + tau * between, (1.0 - tau) * mu
    return state._replace(
        w=w,
        dual=(1.0 - tau) * state.dual + tau / lam * towards.g,
        ell=(1.0 - tau) * state.ell + tau * towards.ell,
        mu=mu,
        centre=gibbs_mean(problem, w / mu, 1.0 / mu),
        calls=state.calls + 2 * map_sizes(problem.map).examples,
    )


def _step(ratio: float) -> float:
    r"""Return the :math:`\tau` in (0, 1) with :math:`\tau^2 / (1 - \tau)` equal to the ratio."""
    return 2.0 / (1.0 + float(np.sqrt(1.0 + 4.0 / ratio)))


@protocol.point.register(ExcessiveGap)
def excessive_gap_point(method: ExcessiveGap, state: ExcessiveState, problem: AnyProblem) -> Point:
    return Point(state.w, state.ell, inner(problem.map, state.dual, state.dual), (state.dual,))


@protocol.oracle_calls.register(ExcessiveGap)
def excessive_gap_oracle_calls(method: ExcessiveGap, state: ExcessiveState, visits: int) -> int:
    return state.calls


@protocol.traits.register(ExcessiveGap)
def excessive_gap_traits(method: ExcessiveGap) -> Traits:
    return protocol.BATCH._replace(is_average=True)
