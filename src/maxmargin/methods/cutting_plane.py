r"""The 1-slack cutting-plane method (Joachims, Finley and Yu 2009, Algorithm 3, margin rescaling).

A pass calls the oracle of every example at w, adds the plane that its answers make under the risk, and
moves w to where the lower envelope of all planes plus :math:`\frac{\lambda}{2} \|w\|^2` is least.
The formulas are those of `methods._cuts`.
"""

from typing import Any, NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.methods._cuts import (
    Cuts,
    cut_weights,
    cuts_ell,
    lowest,
    plane_at,
    qp_solver,
    scaled_cuts,
    with_plane,
    without_idle,
    zero_cut,
)
from maxmargin.methods._protocol import (
    Carry,
    Point,
    advance,
    carried,
    dual_point,
    moves_blocks,
    point,
    start,
)
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import sizes

# A plane that has not touched the envelope for this many passes is dropped, as in the authors' SVM-struct.
_LIFE = 50


class CuttingPlane(NamedTuple):
    """The 1-slack cutting-plane method: a pass over all examples per plane, and a small quadratic program.

    A run holds the planes of the last 50 passes and those in use, often about a hundred. A plane has as many
    numbers as the examples have features that tell labels apart: up to the number of weights, so that a
    million weights take a gigabyte, or about a tenth of it if features are sparse. Needs piqp
    (``pip install maxmargin[qp]``).

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class CutState(NamedTuple):
    """The planes with their dual variables, and the weights that belong to these."""

    w: FloatArray
    cuts: Cuts


@start.register(CuttingPlane)
def cutting_plane_start(method: CuttingPlane, problem: Any) -> CutState:
    qp_solver("CuttingPlane")  # a missing one is reported before the first pass
    return CutState(aligned_zeros(sizes(problem).weights), zero_cut())


@advance.register(CuttingPlane)
def cutting_plane_advance(
    method: CuttingPlane, state: CutState, problem: Any, visits: Visits | IntArray
) -> CutState:
    cuts = with_plane(state.cuts, plane_at(problem, state.w))
    cuts = without_idle(lowest(cuts, method.lam, "CuttingPlane"), _LIFE)
    return CutState(cut_weights(cuts, method.lam, len(state.w)), cuts)


@carried.register(CuttingPlane)
def cutting_plane_carried(method: CuttingPlane, state: CutState, problem: Any, carry: Carry) -> CutState:
    """Planes hold for every lam, and no share of the old variables is better than the program solved anew.

    New examples, at their truths, add nothing to the sums of which the planes are means.
    """
    cuts = scaled_cuts(state.cuts, carry.n / sizes(problem).examples)
    cuts = lowest(cuts, method.lam, "CuttingPlane")
    return CutState(cut_weights(cuts, method.lam, len(state.w)), cuts)


@point.register(CuttingPlane)
def cutting_plane_point(method: CuttingPlane, state: CutState, problem: Any) -> Point:
    return dual_point(state.w, cuts_ell(state.cuts))


@moves_blocks.register(CuttingPlane)
def cutting_plane_moves_blocks(method: CuttingPlane) -> bool:
    return False
