r"""Cuts of the risk, and the quadratic program over them: what the batch methods share.

The mean hinge :math:`R(w) = \frac1n \sum_i \max_y H_i(y; w)` is convex, and a pass of the oracle at any w
gives a plane that touches it there and is nowhere above it,

.. math:: R(u) \ge b_j - \langle a_j, u \rangle, \qquad
          a_j = \frac1n \sum_i \psi_i(y_i^*), \quad b_j = \frac1n \sum_i L_i(y_i^*) .

The first plane, of all truths, is zero: no hinge is negative. The lower envelope of k planes plus
:math:`\frac{\lambda}{2} \|w\|^2` is least where the dual of that program is largest,

.. math:: \max_{\alpha \ge 0, \; \sum_j \alpha_j = 1} \; b^\top \alpha - \frac{1}{2 \lambda}
          \alpha^\top G \alpha, \qquad G_{jl} = \langle a_j, a_l \rangle, \qquad
          w = \frac{1}{\lambda} \sum_j \alpha_j a_j .

A convex combination of means over examples is a dual point of the structural SVM itself, with
:math:`\ell = b^\top \alpha`, so that each of these values is a lower bound.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.methods._protocol import scale_error
from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import batch_corner, fault
from maxmargin.methods.steps import LineSearch, step_size
from maxmargin.problems._protocol import sizes

# Of the program, whose largest loss is made one: gap between its primal and its dual, and residuals.
_ACCURACY = 1e-11
_MAX_STEPS = 200
# A plane touches the envelope if it is below it by no more than this share of the largest loss: far more than
# the solver's accuracy, so that one which does not touch has a weight of no account.
_TOUCHING = 1e-6


class Plane(NamedTuple):
    """A plane under the risk: its slope a, as long as the weights, and its height b, the mean loss."""

    slope: FloatArray
    loss: float


class Slope(NamedTuple):
    """The slope of a plane that is kept: its nonzeros, about a tenth of it where features are sparse."""

    where: np.ndarray[Any, np.dtype[np.uint32]]
    value: FloatArray


class Cuts(NamedTuple):
    """Planes, and their weights.

    Attributes
    ----------
    slopes : tuple of Slope
        One for each plane, none of which changes: a plane is added or dropped without copying any other.
    loss : array of shape (k,)
    gram : array of shape (k, k)
        Inner products of the slopes.
    alpha : array of shape (k,)
        Dual variables: at least zero, and one in sum.
    idle : array of shape (k,)
        For how many passes the plane has not touched the envelope at its least point.
    """

    slopes: tuple[Slope, ...]
    loss: FloatArray
    gram: FloatArray
    alpha: FloatArray
    idle: IntArray


def zero_cut() -> Cuts:
    """Return the plane of the truths, with all weight on it."""
    zero = _nonzeros(np.zeros(0))
    return Cuts((zero,), np.zeros(1), np.zeros((1, 1)), np.ones(1), np.zeros(1, dtype=np.int64))


def plane_at(problem: Any, w: FloatArray) -> Plane:
    """Return the plane that touches the risk at w, by one oracle call per example."""
    n, slope = sizes(problem).examples, np.zeros_like(w)
    total, broken = batch_corner(problem, w, 1.0 / n, slope, new_scratch(problem))
    if broken >= 0:
        raise fault(problem, broken, w)
    return Plane(slope, total / n)


def risk_at(plane: Plane, w: FloatArray) -> float:
    """Return the height of the plane over w: the risk itself, where the plane touches it."""
    return plane.loss - float(plane.slope @ w)


def with_plane(cuts: Cuts, plane: Plane) -> Cuts:
    """Return the cuts with one more, without weight; costs k inner products."""
    slopes = (*cuts.slopes, _nonzeros(plane.slope))
    products = [_dot(slope, plane.slope) for slope in slopes]
    gram = np.pad(cuts.gram, (0, 1))
    gram[-1], gram[:, -1] = products, products
    idle = np.append(cuts.idle, 0)
    return Cuts(slopes, np.append(cuts.loss, plane.loss), gram, np.append(cuts.alpha, 0.0), idle)


def scaled_cuts(cuts: Cuts, factor: float) -> Cuts:
    """Return the cuts with all planes times ``factor``; slopes are shared where they stay as they are."""
    slopes = cuts.slopes
    if factor != 1.0:
        slopes = tuple(Slope(slope.where, factor * slope.value) for slope in slopes)
    return Cuts(slopes, factor * cuts.loss, factor**2 * cuts.gram, cuts.alpha.copy(), cuts.idle.copy())


def lowest(cuts: Cuts, lam: float, owner: str) -> Cuts:
    """Return the cuts with the weights that solve the program, and with their idle passes counted.

    The step from the weights of before is the best one towards the solver's answer: that is all the way,
    but whatever the answer is, the dual does not decrease.
    """
    alpha, matrix = cuts.alpha, cuts.gram / lam
    change = _solution(matrix, cuts.loss, owner) - alpha
    slope = float((cuts.loss - matrix @ alpha) @ change)
    gamma = step_size(LineSearch(), slope, float(change @ matrix @ change), 0, 1)
    alpha = alpha + gamma * change
    height = cuts.loss - matrix @ alpha
    touches = height >= height.max() - _TOUCHING * cuts.loss.max()
    return cuts._replace(alpha=alpha, idle=np.where(touches, 0, cuts.idle + 1))


def without_idle(cuts: Cuts, life: int) -> Cuts:
    """Return the cuts without those that have been idle for ``life`` passes."""
    kept = cuts.idle < life
    if kept.all():
        return cuts
    slopes = tuple(slope for slope, stays in zip(cuts.slopes, kept, strict=True) if stays)
    alpha = cuts.alpha[kept] / cuts.alpha[kept].sum()
    return Cuts(slopes, cuts.loss[kept], cuts.gram[np.ix_(kept, kept)], alpha, cuts.idle[kept])


def cut_weights(cuts: Cuts, lam: float, n_weights: int) -> FloatArray:
    """Return w, the sum of all slopes by their weights, over lam."""
    w = aligned_zeros(n_weights)
    for alpha, slope in zip(cuts.alpha, cuts.slopes, strict=True):
        if alpha > 0.0:
            _add(slope, alpha / lam, w)
    return w


def _nonzeros(slope: FloatArray) -> Slope:
    where = np.flatnonzero(slope)
    return Slope(where.astype(np.uint32), slope[where])


@helper
def _dot(slope, a):
    """``slope @ a``"""
    total = 0.0
    for e in range(slope.where.shape[0]):
        total += slope.value[e] * a[slope.where[e]]
    return total


@helper
def _add(slope, scale, w):
    """``w += scale * slope``"""
    for e in range(slope.where.shape[0]):
        w[slope.where[e]] += scale * slope.value[e]


def cuts_ell(cuts: Cuts) -> float:
    """Return ell of the weights."""
    return float(cuts.loss @ cuts.alpha)


def qp_solver(owner: str) -> Any:
    """Return the module that solves quadratic programs, if it is installed.

    PIQP (BSD): a proximal interior-point method for dense matrices, so that planes may be dependent, as
    copies and the zero plane are. On programs of 10 to 400 planes it was 7 to 24 times faster than Clarabel;
    DAQP, faster below a hundred planes, answered short of the optimum on some, without saying so.
    """
    try:
        import piqp
    except ImportError as error:
        raise ImportError(
            f"{owner} needs piqp, which is not installed; run: pip install maxmargin[qp]"
        ) from error
    return piqp


def _solution(matrix: FloatArray, loss: FloatArray, owner: str) -> FloatArray:
    """Return the point of the simplex where ``loss @ x - x @ matrix @ x / 2`` is largest."""
    solver, k, unit = qp_solver(owner).DenseSolver(), len(loss), float(loss.max()) or 1.0
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = _ACCURACY
    settings.eps_duality_gap_rel, settings.max_iter = _ACCURACY, _MAX_STEPS
    solver.setup(matrix / unit, -loss / unit, A=np.ones((1, k)), b=np.ones(1), x_l=np.zeros(k))
    status = solver.solve()
    x = np.maximum(solver.result.x, 0.0)  # exactly in the simplex, whatever the solver's residuals
    if not 0.0 < x.sum() < np.inf:
        raise scale_error(f"the program of {k} planes of {owner}, which piqp ended with {status.name},")
    return x / x.sum()
