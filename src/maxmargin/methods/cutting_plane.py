r"""The 1-slack cutting-plane method (Joachims, Finley and Yu 2009, Algorithm 3, margin rescaling).

The mean hinge :math:`R(w) = \frac1n \sum_i \max_y H_i(y; w)` is convex. A pass of the oracle at any w
gives a plane that touches it at w and is nowhere above it,

.. math:: R(u) \ge b_j - \langle a_j, u \rangle, \qquad
          a_j = \frac1n \sum_i \psi_i(y_i^*), \quad b_j = \frac1n \sum_i L_i(y_i^*) .

The first plane, of all truths, is zero, as no hinge is negative. Minimising the maximum of k planes plus
:math:`\frac{\lambda}{2} \|w\|^2` has the dual program

.. math:: \max_{\alpha \ge 0, \; \sum_j \alpha_j = 1} \; b^\top \alpha - \frac{1}{2 \lambda}
          \alpha^\top G \alpha, \qquad G_{jl} = \langle a_j, a_l \rangle, \qquad
          w = \frac{1}{\lambda} \sum_j \alpha_j a_j .

A convex combination of means over examples is a feasible dual point of the structural SVM itself, with
:math:`\ell = b^\top \alpha`. So the value at each feasible :math:`\alpha` is a lower bound.

A pass calls the oracle of every example at w, adds the resulting plane, and moves w to the minimum.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper
from maxmargin.methods import protocol
from maxmargin.methods.protocol import Carry, Point, Traits, scale_error
from maxmargin.methods.rules import LineSearch, Visits, step_size
from maxmargin.methods.sweep import advance, corners_of_all
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures.feature_map import inner, map_sizes
from maxmargin.structures.problem import AnyProblem, sizes

# Accuracy of the program, scaled so that the largest loss is one: its duality gap, and its residuals.
_ACCURACY = 1e-11
_MAX_STEPS = 200
# A plane touches the envelope if it is below it by at most this fraction of the largest loss. This is far
# more than the solver's accuracy, so the weight of a plane that does not touch is negligible.
_TOUCHING = 1e-6


class Cut(NamedTuple):
    """A plane under the risk: its slope a, a weight vector, and its height b, the mean loss."""

    slope: FloatArray
    loss: float


class Slope(NamedTuple):
    """The stored slope of a plane: its nonzeros, about a tenth of all entries if features are sparse."""

    where: NDArray[np.uint32]
    value: FloatArray


class Cuts(NamedTuple):
    """Planes and their dual variables.

    Attributes
    ----------
    slopes : tuple of Slope
        One per plane. Slopes never change, so adding or dropping a plane copies no other.
    loss : array of shape (k,)
    gram : array of shape (k, k)
        Inner products of the slopes.
    alpha : array of shape (k,)
        Dual variables: nonnegative, with sum one.
    idle : array of shape (k,)
        Number of passes since the plane last touched the envelope at the minimum.
    """

    slopes: tuple[Slope, ...]
    loss: FloatArray
    gram: FloatArray
    alpha: FloatArray
    idle: IntArray


def zero_cut() -> Cuts:
    """Return the plane of the truths, with dual variable one."""
    zero = _nonzeros(np.zeros(0))
    return Cuts((zero,), np.zeros(1), np.zeros((1, 1)), np.ones(1), np.zeros(1, dtype=np.int64))


def cut_at(problem: AnyProblem, w: FloatArray) -> Cut:
    """Return the plane that touches the risk at w; costs one oracle call per example."""
    n, slope = map_sizes(problem.map).examples, np.zeros_like(w)
    return Cut(slope, corners_of_all(problem, w, 1.0 / n, slope) / n)


def risk_at(problem: AnyProblem, cut: Cut, w: FloatArray) -> float:
    """Return the value of the cut at w, which is the risk if the cut touches it there."""
    return cut.loss - float(inner(problem.map, cut.slope, w))


def with_cut(problem: AnyProblem, cuts: Cuts, cut: Cut) -> Cuts:
    """Return the cuts with another one, whose dual variable is zero; costs k inner products."""
    slopes, buffer = (*cuts.slopes, _nonzeros(cut.slope)), np.zeros_like(cut.slope)
    products = [_product(problem.map, slope, cut.slope, buffer) for slope in slopes]
    gram = np.pad(cuts.gram, (0, 1))
    gram[-1], gram[:, -1] = products, products
    idle = np.append(cuts.idle, 0)
    return Cuts(slopes, np.append(cuts.loss, cut.loss), gram, np.append(cuts.alpha, 0.0), idle)


def scaled_cuts(cuts: Cuts, factor: float) -> Cuts:
    """Return the cuts with all planes scaled by ``factor``; slopes that do not change are shared."""
    slopes = cuts.slopes
    if factor != 1.0:
        slopes = tuple(Slope(slope.where, factor * slope.value) for slope in slopes)
    return Cuts(slopes, factor * cuts.loss, factor**2 * cuts.gram, cuts.alpha.copy(), cuts.idle.copy())


def lowest(cuts: Cuts, lam: float, method: str) -> Cuts:
    """Return the cuts with the dual variables that solve the program, and with updated idle counts.

    A line search leads from the previous dual variables to the solver's answer. It usually goes all the way,
    and the dual never decreases, whatever the answer is.
    """
    alpha, matrix = cuts.alpha, cuts.gram / lam
    change = _solution(matrix, cuts.loss, method) - alpha
    slope = float((cuts.loss - matrix @ alpha) @ change)
    gamma = step_size(LineSearch(), slope, float(change @ matrix @ change), 0, 1)
    alpha = alpha + gamma * change
    height = cuts.loss - matrix @ alpha
    touches = height >= height.max() - _TOUCHING * cuts.loss.max()
    return cuts._replace(alpha=alpha, idle=np.where(touches, 0, cuts.idle + 1))


def without_idle(cuts: Cuts, life: int) -> Cuts:
    """Return the cuts without the planes that have been idle for ``life`` passes."""
    kept = cuts.idle < life
    if kept.all():
        return cuts
    slopes = tuple(slope for slope, stays in zip(cuts.slopes, kept, strict=True) if stays)
    alpha = cuts.alpha[kept] / cuts.alpha[kept].sum()
    return Cuts(slopes, cuts.loss[kept], cuts.gram[np.ix_(kept, kept)], alpha, cuts.idle[kept])


def cut_weights(cuts: Cuts, lam: float, n_weights: int) -> FloatArray:
    """Return w, the sum of all slopes times their dual variables, divided by lam."""
    w = aligned_zeros(n_weights)
    for alpha, slope in zip(cuts.alpha, cuts.slopes, strict=True):
        if alpha > 0.0:
            _add(slope, alpha / lam, w)
    return w


def _nonzeros(slope: FloatArray) -> Slope:
    where = np.flatnonzero(slope)
    return Slope(where.astype(np.uint32), slope[where])


def _product(phi: object, slope: Slope, other: FloatArray, buffer: FloatArray) -> float:
    """Return the inner product of two slopes; the buffer is zero before and after."""
    buffer[slope.where] = slope.value
    product = inner(phi, buffer, other)
    buffer[slope.where] = 0.0
    return float(product)


@helper
def _add(slope, scale, w):
    """``w += scale * slope``"""
    for e in range(slope.where.shape[0]):
        w[slope.where[e]] += scale * slope.value[e]


def cuts_ell(cuts: Cuts) -> float:
    """Return ell, the dual loss."""
    return float(cuts.loss @ cuts.alpha)


def qp_solver(method: str) -> Any:
    """Return the module that solves quadratic programs, or raise if it is not installed.

    PIQP (BSD) is a proximal interior-point method for dense matrices: planes may be linearly dependent, as
    copies and the zero plane are. On programs of 10 to 400 planes it was 7 to 24 times faster than Clarabel.
    DAQP is faster below a hundred planes, but silently missed the optimum of some programs.
    """
    try:
        import piqp
    except ImportError as error:
        raise ImportError(
            f"{method} needs piqp, which is not installed; run: pip install maxmargin[qp]"
        ) from error
    return piqp


def _solution(matrix: FloatArray, loss: FloatArray, method: str) -> FloatArray:
    """Return the point of the simplex where ``loss @ x - x @ matrix @ x / 2`` is largest."""
    solver, k, unit = qp_solver(method).DenseSolver(), len(loss), float(loss.max()) or 1.0
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = _ACCURACY
    settings.eps_duality_gap_rel, settings.max_iter = _ACCURACY, _MAX_STEPS
    solver.setup(matrix / unit, -loss / unit, A=np.ones((1, k)), b=np.ones(1), x_l=np.zeros(k))
    status = solver.solve()
    x = np.maximum(solver.result.x, 0.0)  # exactly feasible, whatever the solver's residuals
    if not 0.0 < x.sum() < np.inf:
        raise scale_error(f"the program of {k} planes of {method}, which piqp ended with {status.name},")
    return x / x.sum()


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
    qp_solver("CuttingPlane")  # report a missing solver before the first pass
    return CutState(aligned_zeros(sizes(problem).weights), zero_cut())


@advance.register(CuttingPlane)
def cutting_plane_advance(
    method: CuttingPlane, state: CutState, problem: AnyProblem, visits: Visits | IntArray
) -> CutState:
    cuts = with_cut(problem, state.cuts, cut_at(problem, state.w))
    cuts = without_idle(lowest(cuts, method.lam, "CuttingPlane"), _LIFE)
    return CutState(cut_weights(cuts, method.lam, len(state.w)), cuts)


@protocol.carried.register(CuttingPlane)
def cutting_plane_carried(
    method: CuttingPlane, state: CutState, problem: AnyProblem, carry: Carry
) -> CutState:
    """Keep the planes, which do not depend on lam, and solve the program again: no scaling is better.

    New examples start at their truths, and add nothing to the sums whose means are the planes.
    """
    cuts = scaled_cuts(state.cuts, carry.n / sizes(problem).examples)
    cuts = lowest(cuts, method.lam, "CuttingPlane")
    return CutState(cut_weights(cuts, method.lam, len(state.w)), cuts)


@protocol.point.register(CuttingPlane)
def cutting_plane_point(method: CuttingPlane, state: CutState, problem: AnyProblem) -> Point:
    return protocol.dual_point(problem, state.w, cuts_ell(state.cuts))


@protocol.traits.register(CuttingPlane)
def cutting_plane_traits(method: CuttingPlane) -> Traits:
    return protocol.BATCH
