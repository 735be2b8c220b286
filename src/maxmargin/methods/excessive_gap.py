r"""Excessive gap reduction (Nesterov 2005; for structural SVMs Zhang, Saha and Vishwanathan 2011).

With the entropy as prox-function the hinges become smooth,

.. math:: P_\mu(w) = \frac{\lambda}{2} \|w\|^2 + \frac{\mu}{n} \sum_i \left(
          \log \sum_y e^{H_i(y; w) / \mu} - \log |\mathcal{Y}_i| \right) \ge P(w) - \mu \bar d, \qquad
          \bar d = \frac1n \sum_i \log |\mathcal{Y}_i| .

The method keeps weights w and dual variables :math:`\alpha` with :math:`P_\mu(w) \le D(\alpha)`, the
*excessive gap condition*, from which the duality gap is at most :math:`\mu \bar d`, and makes :math:`\mu`
smaller. :math:`\alpha^\mu(w)` are the Gibbs distributions :math:`\propto e^{H_i(y; w) / \mu}`. A step
:math:`\tau` is

.. math::

    \hat w   &= (1 - \tau) A \alpha + \tau A \alpha^\mu(w) \\
    \tilde\alpha_i(y) &\propto \alpha_i^\mu(y; w) \, e^{\gamma H_i(y; \hat w)}, \qquad
    \gamma = \frac{\tau}{(1 - \tau) \mu} \\
    w        &\leftarrow (1 - \tau) w + \tau \hat w, \qquad
    \alpha    \leftarrow (1 - \tau) \alpha + \tau \tilde\alpha, \qquad
    \mu       \leftarrow (1 - \tau) \mu .

Both distributions are Gibbs, of the vectors :math:`w / \mu` and :math:`w / \mu + \gamma \hat w`, and all
else is linear in :math:`(A \alpha, b^\top \alpha)`: the state is a few vectors as long as the weights.

**The choice of tau.** The condition is sure to hold again if :math:`\tau^2 / (1 - \tau) \le \mu / L`, where
:math:`L = R^2 / \lambda` bounds the curvature of the dual; then :math:`\mu` falls as :math:`L / k^2`. That is
the bound of the worst outputs. As both sides of the condition are known after a step, L is found instead:
it falls a little with every step, and where the condition fails, the step is taken back and L doubled.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.methods._gibbs import GibbsMean, check_expectations, gibbs_mean
from maxmargin.methods._protocol import (
    Point,
    advance,
    is_average,
    moves_blocks,
    oracle_calls,
    point,
    scale_error,
    start,
)
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import sizes

_EASING = 0.9  # of L after a step
_TIGHTENING = 2.0  # of L after a step that is taken back
# How far rounding may push one side of the condition above the other, relative to its terms.
_SLACK = 1e-12


class ExcessiveGap(NamedTuple):
    """Excessive gap reduction: a batch method whose gap falls as 1 / k^2, in need of an expectation oracle.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class ExcessiveState(NamedTuple):
    r"""A pair that fulfils the excessive gap condition.

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
        How often the oracle was called.
    """

    w: FloatArray
    dual: FloatArray
    ell: float
    mu: float
    centre: GibbsMean
    entropy: float
    bound: float
    calls: int


@start.register(ExcessiveGap)
def excessive_gap_start(method: ExcessiveGap, problem: Any) -> ExcessiveState:
    r"""Return the first pair: w of uniform distributions, and :math:`\alpha = \alpha^\mu(w)`.

    The condition is sure to hold for :math:`\mu = L`; the mean loss, which has the same unit, is tried first.
    """
    check_expectations(method, problem)
    size, lam = sizes(problem), method.lam
    uniform = gibbs_mean(problem, np.zeros(size.weights), 0.0)
    w, mu, calls = uniform.g / lam, uniform.ell if uniform.ell > 0.0 else 1.0, size.examples
    while True:
        centre = gibbs_mean(problem, w / mu, 1.0 / mu)
        calls += size.examples
        first = ExcessiveState(w, centre.g / lam, centre.ell, mu, centre, uniform.log_partition, mu, calls)
        if _excess_in_range(method, first) <= 0.0:
            return first
        mu *= _TIGHTENING


def smoothed_primal(method: ExcessiveGap, state: ExcessiveState) -> float:
    r"""Return :math:`P_\mu(w)`."""
    smoothed = state.mu * (state.centre.log_partition - state.entropy)
    return 0.5 * method.lam * float(state.w @ state.w) + smoothed


def excess(method: ExcessiveGap, state: ExcessiveState) -> float:
    r"""Return :math:`P_\mu(w) - D(\alpha)`, less what may be rounding."""
    quadratic = 0.5 * method.lam * float(state.dual @ state.dual)
    terms = state.ell + quadratic + state.mu * (state.centre.log_partition + state.entropy)
    return smoothed_primal(method, state) - (state.ell - quadratic) - _SLACK * terms


def _excess_in_range(method: ExcessiveGap, state: ExcessiveState) -> float:
    """The same; raise if it is no number, as no other step would make it one."""
    value = excess(method, state)
    if not np.isfinite(value):
        raise scale_error("the excessive gap of ExcessiveGap")
    return value


@advance.register(ExcessiveGap)
def excessive_gap_advance(
    method: ExcessiveGap, state: ExcessiveState, problem: Any, visits: Visits | IntArray
) -> ExcessiveState:
    while True:
        ahead = _stepped(method, state, problem)
        if _excess_in_range(method, ahead) <= 0.0:
            return ahead._replace(bound=_EASING * ahead.bound)
        state = state._replace(bound=_TIGHTENING * state.bound, calls=ahead.calls)


def _stepped(method: ExcessiveGap, state: ExcessiveState, problem: Any) -> ExcessiveState:
    """Return the state after a step as long as the bound allows, by two oracle calls per example."""
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
        calls=state.calls + 2 * sizes(problem).examples,
    )


def _step(ratio: float) -> float:
    r"""Return the :math:`\tau` in (0, 1) with :math:`\tau^2 / (1 - \tau)` equal to the ratio."""
    return 2.0 / (1.0 + float(np.sqrt(1.0 + 4.0 / ratio)))


@point.register(ExcessiveGap)
def excessive_gap_point(method: ExcessiveGap, state: ExcessiveState, problem: Any) -> Point:
    return Point(state.w, state.ell, float(state.dual @ state.dual), (state.dual,))


@oracle_calls.register(ExcessiveGap)
def excessive_gap_oracle_calls(method: ExcessiveGap, state: ExcessiveState, visits: int) -> int:
    return state.calls


@moves_blocks.register(ExcessiveGap)
def excessive_gap_moves_blocks(method: ExcessiveGap) -> bool:
    return False


@is_average.register(ExcessiveGap)
def excessive_gap_is_average(method: ExcessiveGap) -> bool:
    return True
