r"""A stabilised bundle method for regularised risk (Teo, Vishwanathan, Smola and Le 2010).

The planes and the program over them are those of the 1-slack method (`CuttingPlane`). There are three
differences. All planes are kept. The answer is the best weights so far, :math:`w^b`. They are known without
further oracle calls, because the plane that touches the risk at u also gives the objective there,
:math:`P(u) = \frac{\lambda}{2} \|u\|^2 + b - \langle a, u \rangle`. And the oracle is not called at the
minimiser w of the lower model, which oscillates while there are few planes, but at

.. math:: u = w^b + \mu (w - w^b),

as in OCAS (Franc and Sonnenburg 2009), whose line search for :math:`w^b` would cost passes here.
With :math:`\mu = 1` this is BMRM's Algorithm 1. Every :math:`\mu > 0` converges. Let g be the gap between the
best weights and the model. As the model touches P at :math:`w^b`, it is at most :math:`P(w^b) - \mu g` at u.
If P(u) is not below :math:`P(w^b) - \mu g / 2`, the new plane lifts the model at u and in a neighbourhood
that does not shrink unless g does. This can happen only finitely often for a given g.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from maxmargin.methods import cutting_plane, protocol
from maxmargin.methods.cutting_plane import Cuts
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.rules import Visits
from maxmargin.methods.sweep import advance
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import inner
from maxmargin.structures.problem import AnyProblem, sizes


class _BMRM(NamedTuple):
    lam: float
    mu: float


class BMRM(_BMRM):
    """The bundle method: one pass over all examples per plane; the answer is the best weights so far.

    All planes are kept. Each has up to one number per weight: with a million weights, 100 passes take up to
    a gigabyte, or about a tenth of it if features are sparse. The program over k planes costs k^3 operations
    per pass. Needs piqp (``pip install maxmargin[qp]``).

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    mu : float
        Position of the oracle calls between the best weights and the minimiser of the model, in (0, 1];
        1 is the method without stabilisation, which needs several times as many passes.
    """

    __slots__ = ()

    def __new__(cls, lam: float, mu: float = 0.1) -> "BMRM":
        if not (isinstance(mu, Real) and 0.0 < float(mu) <= 1.0):
            raise ValueError(f"BMRM: mu must be a number in (0, 1], got {shown(mu)}.")
        return super().__new__(cls, lam, float(mu))


class Best(NamedTuple):
    """The best weights so far, and their risk; infinite if no plane touches the risk there."""

    w: FloatArray
    risk: float


class BundleState(NamedTuple):
    """The planes with their dual variables, the weights of these, and the best weights."""

    w: FloatArray
    cuts: Cuts
    best: Best


@protocol.start.register(BMRM)
def bmrm_start(method: BMRM, problem: AnyProblem) -> BundleState:
    cutting_plane.qp_solver("BMRM")  # report a missing solver before the first pass
    w = aligned_zeros(sizes(problem).weights)
    return BundleState(w, cutting_plane.zero_cut(), Best(w, np.inf))


@advance.register(BMRM)
def bmrm_advance(
    method: BMRM, state: BundleState, problem: AnyProblem, visits: Visits | IntArray
) -> BundleState:
    u = _between(state.best.w, state.w, method.mu)
    cut = cutting_plane.cut_at(problem, u)
    found = Best(u, cutting_plane.risk_at(problem, cut, u))
    best = min(state.best, found, key=lambda weights: _primal(problem, method, weights))
    return _at_lowest(method, cutting_plane.with_cut(problem, state.cuts, cut), best)


def _between(best: FloatArray, w: FloatArray, mu: float) -> FloatArray:
    u = aligned_zeros(len(w))
    u += best + mu * (w - best)
    return u


def _primal(problem: AnyProblem, method: BMRM, found: Best) -> float:
    return 0.5 * method.lam * float(inner(problem.map, found.w, found.w)) + found.risk


def _at_lowest(method: BMRM, cuts: Cuts, best: Best) -> BundleState:
    cuts = cutting_plane.lowest(cuts, method.lam, "BMRM")
    return BundleState(cutting_plane.cut_weights(cuts, method.lam, len(best.w)), cuts, best)


@protocol.carried.register(BMRM)
def bmrm_carried(method: BMRM, state: BundleState, problem: AnyProblem, carry: Carry) -> BundleState:
    """Keep planes and risk, which do not depend on lam; a new example only adds a hinge of known sign."""
    n = sizes(problem).examples
    best = state.best if carry.n == n else Best(state.best.w, np.inf)
    return _at_lowest(method, cutting_plane.scaled_cuts(state.cuts, carry.n / n), best)


@protocol.point.register(BMRM)
def bmrm_point(method: BMRM, state: BundleState, problem: AnyProblem) -> Point:
    return Point(state.best.w, cutting_plane.cuts_ell(state.cuts), inner(problem.map, state.w, state.w))


@protocol.traits.register(BMRM)
def bmrm_traits(method: BMRM) -> Traits:
    """Return the traits of a batch method; the best iterate, like an average, is not averaged again."""
    return protocol.BATCH._replace(is_average=True)
