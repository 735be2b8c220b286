r"""The 1-slack cutting-plane method (Joachims, Finley and Yu 2009, Algorithm 3, margin rescaling).

A pass calls the oracle of every example at w, adds the resulting plane under the risk, and moves w to the
minimum of :math:`\frac{\lambda}{2} \|w\|^2` plus the maximum of all planes (formulas: `methods._cuts`).
"""

from typing import NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.methods import _cuts, protocol
from maxmargin.methods._cuts import Cuts
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.sampling import Visits
from maxmargin.methods.sweep import advance
from maxmargin.problems.problem import AnyProblem, sizes

# A plane that has not touched the envelope for this many passes is dropped, as in the authors' SVM-struct.
_LIFE = 50


class CuttingPlane(NamedTuple):
    """The 1-slack cutting-plane method: one pass over all examples and a small quadratic program per plane.

    A run keeps the planes of the last 50 passes and those in use, often about a hundred. A plane has up to
    one number per weight: with a million weights, they take up to a gigabyte, or about a tenth of it if
    features are sparse. Needs piqp (``pip install maxmargin[qp]``).

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class CutState(NamedTuple):
    """The planes with their dual variables, and the weights of these."""

    w: FloatArray
    cuts: Cuts


@protocol.start.register(CuttingPlane)
def cutting_plane_start(method: CuttingPlane, problem: AnyProblem) -> CutState:
    _cuts.qp_solver("CuttingPlane")  # report a missing solver before the first pass
    return CutState(aligned_zeros(sizes(problem).weights), _cuts.zero_cut())


@advance.register(CuttingPlane)
def cutting_plane_advance(
    method: CuttingPlane, state: CutState, problem: AnyProblem, visits: Visits | IntArray
) -> CutState:
    cuts = _cuts.with_cut(problem, state.cuts, _cuts.cut_at(problem, state.w))
    cuts = _cuts.without_idle(_cuts.lowest(cuts, method.lam, "CuttingPlane"), _LIFE)
    return CutState(_cuts.cut_weights(cuts, method.lam, len(state.w)), cuts)


@protocol.carried.register(CuttingPlane)
def cutting_plane_carried(
    method: CuttingPlane, state: CutState, problem: AnyProblem, carry: Carry
) -> CutState:
    """Keep the planes, which do not depend on lam, and solve the program again: no scaling is better.

    New examples start at their truths, and add nothing to the sums whose means are the planes.
    """
    cuts = _cuts.scaled_cuts(state.cuts, carry.n / sizes(problem).examples)
    cuts = _cuts.lowest(cuts, method.lam, "CuttingPlane")
    return CutState(_cuts.cut_weights(cuts, method.lam, len(state.w)), cuts)


@protocol.point.register(CuttingPlane)
def cutting_plane_point(method: CuttingPlane, state: CutState, problem: AnyProblem) -> Point:
    return protocol.dual_point(problem, state.w, _cuts.cuts_ell(state.cuts))


@protocol.traits.register(CuttingPlane)
def cutting_plane_traits(method: CuttingPlane) -> Traits:
    return protocol.BATCH
