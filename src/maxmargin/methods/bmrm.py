r"""The bundle method for regularised risk (Teo, Vishwanathan, Smola and Le 2010), stabilised.

The planes and the program over them are those of the 1-slack method (`methods._cuts`); what differs is what
is made of them. All planes are kept. The plane that touches the risk at u tells its objective too,
:math:`P(u) = \frac{\lambda}{2} \|u\|^2 + b - \langle a, u \rangle`, so that the best weights so far,
:math:`w^b`, are known without a further oracle call, and are the answer. And the oracle is called not at
the least point w of the lower model, which jumps to and fro as long as there are few planes, but at

.. math:: u = w^b + \mu (w - w^b),

as in OCAS (Franc and Sonnenburg 2009), whose line search for :math:`w^b` would cost passes here.
With :math:`\mu = 1` this is BMRM's Algorithm 1; every :math:`\mu > 0` converges: the model touches P at
:math:`w^b`, so that it is at most :math:`P(w^b) - \mu g` at u, g being the gap between best weights and
model. If P(u) is not lower than :math:`P(w^b) - \mu g / 2`, the new plane lifts the model at u, and in a
neighbourhood of it that does not shrink while g does not: there is room for finitely many of these.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.methods._cuts import (
    Cuts,
    cut_weights,
    cuts_ell,
    lowest,
    plane_at,
    qp_solver,
    risk_at,
    scaled_cuts,
    with_plane,
    zero_cut,
)
from maxmargin.methods._protocol import (
    Carry,
    Point,
    advance,
    carried,
    is_average,
    moves_blocks,
    point,
    start,
)
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import sizes


class _BMRM(NamedTuple):
    lam: float
    mu: float


class BMRM(_BMRM):
    """The bundle method: a pass over all examples per plane; the answer is the best weights so far.

    All planes are kept. Each has as many numbers as the examples have features that tell labels apart: with
    a million weights, 100 passes take up to a gigabyte, or about a tenth of it if features are sparse. The
    program over k planes costs k^3 operations a pass. Needs piqp (``pip install maxmargin[qp]``).

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    mu : float
        How far from the best weights towards the least point of the model the oracle is called, in (0, 1];
        1 is the method without stabilisation, which needs several times as many passes.
    """

    __slots__ = ()

    def __new__(cls, lam: float, mu: float = 0.1) -> "BMRM":
        if not (isinstance(mu, Real) and 0.0 < float(mu) <= 1.0):
            raise ValueError(f"BMRM: mu must be a number in (0, 1], got {mu!r}.")
        return super().__new__(cls, lam, float(mu))


class Best(NamedTuple):
    """The best weights so far, and their risk; infinite, if no plane touches it there."""

    w: FloatArray
    risk: float


class BundleState(NamedTuple):
    """The planes with their dual variables, the weights that belong to these, and the best ones."""

    w: FloatArray
    cuts: Cuts
    best: Best


@start.register(BMRM)
def bmrm_start(method: BMRM, problem: Any) -> BundleState:
    qp_solver("BMRM")  # a missing one is reported before the first pass
    w = aligned_zeros(sizes(problem).weights)
    return BundleState(w, zero_cut(), Best(w, np.inf))


@advance.register(BMRM)
def bmrm_advance(method: BMRM, state: BundleState, problem: Any, visits: Visits | IntArray) -> BundleState:
    u = _between(state.best.w, state.w, method.mu)
    plane = plane_at(problem, u)
    best = min(state.best, Best(u, risk_at(plane, u)), key=lambda found: _primal(method, found))
    return _at_lowest(method, with_plane(state.cuts, plane), best)


def _between(best: FloatArray, w: FloatArray, mu: float) -> FloatArray:
    u = aligned_zeros(len(w))
    u += best + mu * (w - best)
    return u


def _primal(method: BMRM, found: Best) -> float:
    return 0.5 * method.lam * float(found.w @ found.w) + found.risk


def _at_lowest(method: BMRM, cuts: Cuts, best: Best) -> BundleState:
    cuts = lowest(cuts, method.lam, "BMRM")
    return BundleState(cut_weights(cuts, method.lam, len(best.w)), cuts, best)


@carried.register(BMRM)
def bmrm_carried(method: BMRM, state: BundleState, problem: Any, carry: Carry) -> BundleState:
    """Planes hold for every lam, and so does the risk; of new examples nothing is known but its sign."""
    n = sizes(problem).examples
    best = state.best if carry.n == n else Best(state.best.w, np.inf)
    return _at_lowest(method, scaled_cuts(state.cuts, carry.n / n), best)


@point.register(BMRM)
def bmrm_point(method: BMRM, state: BundleState, problem: Any) -> Point:
    return Point(state.best.w, cuts_ell(state.cuts), float(state.w @ state.w))


@is_average.register(BMRM)
def bmrm_is_average(method: BMRM) -> bool:
    """Like an average, the best of the iterates is none to be averaged again."""
    return True


@moves_blocks.register(BMRM)
def bmrm_moves_blocks(method: BMRM) -> bool:
    return False
