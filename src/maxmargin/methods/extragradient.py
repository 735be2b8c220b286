r"""Dual extragradient (Taskar, Lacoste-Julien and Jordan 2006; Nesterov 2007), with the entropy of outputs.

The problem is a saddle point in weights and dual variables,

.. math:: \min_w \max_\alpha \; \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \sum_y \alpha_i(y) H_i(y; w) .

Each step of size :math:`\eta` first looks ahead, from v to u, and then adds the gradients at u, not those at
v, to their sums. With the prox-functions :math:`\frac{\kappa}{2} \|w\|^2` and the entropy, the Bregman
projections of the dual variables are Gibbs distributions,

.. math:: \alpha_i(y; W, S) \propto \exp \left( S L_i(y) - \langle W, \psi_i(y) \rangle \right) .

With :math:`g(\alpha) = \lambda A \alpha`, and the regulariser within the projection of the weights,

.. math::

    v_w &= \frac{G}{\kappa + S \lambda}, \qquad v_\alpha = \alpha(W, S) \\
    u_w &= \frac{G + \eta \, g(v_\alpha)}{\kappa + (S + \eta) \lambda}, \qquad
    u_\alpha = \alpha(W + \eta v_w, S + \eta) \\
    W &\leftarrow W + \eta u_w, \qquad G \leftarrow G + \eta \, g(u_\alpha), \qquad S \leftarrow S + \eta .

The answer is the mean of the points u: the weights W / S, and the dual variables whose weights are
:math:`G / (\lambda S)`. As everything is linear, no dual variables are kept.

**The choice of eta.** With the potential

.. math:: \Psi = - \frac{\|G\|^2}{2 (\kappa + S \lambda)} - \frac1n \sum_i \log \sum_y
          e^{S L_i(y) - \langle W, \psi_i(y) \rangle}

a step satisfies the condition of the theory if it raises :math:`\Psi` by at least
:math:`\eta (\frac{\lambda}{2} \|u_w\|^2 - b^\top u_\alpha)`. If all steps do, the duality gap of the means is
at most

.. math:: \frac1S \left( \frac{\kappa}{2} \Big\| \frac{G}{\lambda S} \Big\|^2
          + \frac1n \sum_i \log |\mathcal{Y}_i| \right) .

:math:`\eta \le \sqrt{\kappa + S \lambda} / R` is sufficient. As both sides are known after a step,
:math:`\eta` is adapted: it grows with every step, and if the gain is too small, the step is undone and
:math:`\eta` halved. :math:`\kappa` balances the two terms of the bound, as
:math:`\lambda \|w^*\|^2` is at most the mean loss.
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

_GROWTH = 1.2  # factor of eta after a step
_SHRINKING = 0.5  # factor of eta after a step that is undone
# Tolerance for rounding in the gain of the potential, relative to its terms.
_SLACK = 1e-12


class Extragradient(NamedTuple):
    """Dual extragradient: a batch method for the saddle point; needs an expectation oracle.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class SaddleState(NamedTuple):
    r"""Sums over all steps.

    Attributes
    ----------
    W, G : arrays
        Sums of :math:`\eta u_w` and of :math:`\eta \, g(u_\alpha)`.
    S, ell : float
        Sums of :math:`\eta` and of :math:`\eta \, b^\top u_\alpha`.
    centre : GibbsMean
        Means under :math:`v_\alpha`.
    kappa, eta : float
    calls : int
        Number of oracle calls.
    """

    W: FloatArray
    G: FloatArray
    S: float
    ell: float
    centre: GibbsMean
    kappa: float
    eta: float
    calls: int


@protocol.start.register(Extragradient)
@deadline_at(math.inf)  # there is no answer before the start is complete
def extragradient_start(method: Extragradient, problem: AnyProblem) -> SaddleState:
    check_expectations(method, problem)
    size = map_sizes(problem.map)
    centre = gibbs_mean(problem, np.zeros(size.weights), 0.0)
    loss, length = centre.ell, float(np.sqrt(inner(problem.map, centre.g, centre.g)))
    kappa = method.lam * (2.0 * centre.log_partition / loss if loss > 0.0 else 1.0)
    eta = float(np.sqrt(kappa)) / length if length > 0.0 else 1.0
    W, G = np.zeros(size.weights), np.zeros(size.weights)
    return SaddleState(W, G, 0.0, 0.0, centre, kappa, eta, size.examples)


@advance.register(Extragradient)
def extragradient_advance(
    method: Extragradient, state: SaddleState, problem: AnyProblem, visits: Visits | IntArray
) -> SaddleState:
    while True:
        ahead, needed = _stepped(method, state, problem)
        potential = _potential(method, ahead, problem)
        terms = abs(potential) + abs(needed)
        if not np.isfinite(terms):
            raise protocol.scale_error("the potential of Extragradient")
        if potential - _potential(method, state, problem) >= needed - _SLACK * terms:
            return ahead._replace(eta=_GROWTH * ahead.eta)
        state = state._replace(eta=_SHRINKING * state.eta, calls=ahead.calls)


def _stepped(method: Extragradient, state: SaddleState, problem: AnyProblem) -> tuple[SaddleState, float]:
    """Return the state after a step, and the required gain; costs two oracle calls per example."""
    lam, eta, S, rigidity = method.lam, state.eta, state.S + state.eta, _rigidity(method, state)
    u_w = (state.G + eta * state.centre.g) / (rigidity + eta * lam)
    u = gibbs_mean(problem, state.W + eta / rigidity * state.G, S)
    W = state.W + eta * u_w
    ahead = state._replace(
        W=W,
        G=state.G + eta * u.g,
        S=S,
        ell=state.ell + eta * u.ell,
        centre=gibbs_mean(problem, W, S),
        calls=state.calls + 2 * map_sizes(problem.map).examples,
    )
    return ahead, eta * (0.5 * lam * float(inner(problem.map, u_w, u_w)) - u.ell)


def _rigidity(method: Extragradient, state: SaddleState) -> float:
    """Return the factor of the squared weights in the projection."""
    return state.kappa + state.S * method.lam


def _potential(method: Extragradient, state: SaddleState, problem: AnyProblem) -> float:
    square = float(inner(problem.map, state.G, state.G))
    return -0.5 * square / _rigidity(method, state) - state.centre.log_partition


@protocol.point.register(Extragradient)
def extragradient_point(method: Extragradient, state: SaddleState, problem: AnyProblem) -> Point:
    if state.S == 0.0:  # the dual variables of the truths are one
        return Point(state.W, 0.0, 0.0)
    dual = state.G / (method.lam * state.S)
    return Point(state.W / state.S, state.ell / state.S, inner(problem.map, dual, dual), (dual,))


@protocol.oracle_calls.register(Extragradient)
def extragradient_oracle_calls(method: Extragradient, state: SaddleState, visits: int) -> int:
    return state.calls


@protocol.traits.register(Extragradient)
def extragradient_traits(method: Extragradient) -> Traits:
    return protocol.BATCH._replace(is_average=True)
