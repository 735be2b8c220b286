r"""The objective, its dual and the gap between them: each formula once.

.. math::

    P(w)      &= \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y H_i(y; w),
                 \qquad H_i(y; w) = L_i(y) - \langle w, \psi_i(y) \rangle \\
    D(\alpha) &= \ell - \frac{\lambda}{2} \|w\|^2,
                 \qquad w = A \alpha, \quad \ell = b^\top \alpha \\
    g         &= P(w) - D(\alpha) \ge P(w) - P(w^*) \ge 0 .

At :math:`w = A \alpha` the gap equals the linearisation gap of Frank-Wolfe, the sum of the block gaps
:math:`g_i = \frac1n (\max_y H_i(y; w) - \ell_i + \langle w, A_i \alpha_i \rangle)` (the paper's
appendix on its gap).

With an approximate oracle every D is a lower bound still, as dual variables are feasible whatever outputs
they belong to. The maxima in P are not found, however, so that P and the gap would come out too small: by
the mean of what the oracle's answers fall short of the maxima. Where the oracle has an upper bound on that,
its `shortfall` :math:`r_i`, as from a relaxation, it is added,

.. math:: \bar P(w) = \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \left( H_i(y_i^*; w) + r_i \right) \ge P(w) ,

and the bounds hold as they do for an exact one, for which :math:`r_i = 0`: the minimum of P is between D and
:math:`\bar P(w)`, and so is P(w). Where relaxations are loose the gap stays above the mean of the
:math:`r_i`, and a run does not claim to have converged. Without a bound no certificate follows, and a run
may stop too early.
"""

import math
from typing import Any

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling.threads import run_all
from maxmargin.methods._protocol import ROUNDING, BrokenOracle, Point
from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import broken_example, fault, hinges
from maxmargin.problems._checked import checked_weights
from maxmargin.problems._protocol import is_bounded, is_exact, sizes

_CHUNK = 256
_TINY = float(np.finfo(np.float64).tiny)
# Weights worse than zero are tried again times this power of two, once or more.
_SHRINKING, _SHRINKINGS = 8, 8


def primal(problem: Any, w: FloatArray, lam: float) -> float:
    """Return P(w), or the upper bound on it of an approximate oracle, by one oracle call per example."""
    return _quadratic(lam, w) + float(hinge_losses(problem, w).mean())


def _quadratic(lam: float, w: FloatArray) -> float:
    r"""Return :math:`\frac{\lambda}{2} \|w\|^2`, also where the squared length alone is not in range."""
    norm2 = float(w @ w)
    if _TINY < norm2 < np.inf:
        return 0.5 * lam * norm2
    largest = float(np.abs(w).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    unit, length = w / largest, math.sqrt(lam) * largest
    return 0.5 * length * length * float(unit @ unit)


def no_worse_than_zero(problem: Any, w: FloatArray, objective: float, lam: float) -> tuple[FloatArray, float]:
    r"""Return w, or other weights if zero has a lower objective than w, which has this one; and theirs.

    Others are the first of :math:`2^{-8} w, 2^{-16} w, \dots` with a lower objective than zero, as they
    predict what w does; zero, if a few of them have none.
    """
    zero = np.zeros_like(w)
    if _is_at_most_that_of(problem, zero, objective):
        return w, objective
    least = primal(problem, zero, lam)
    for k in range(1, _SHRINKINGS + 1 if w.any() else 1):
        less = np.ldexp(w, -_SHRINKING * k)
        found = primal(problem, less, lam)
        if found < least:
            return less, found
    return zero, least


def _is_at_most_that_of(problem: Any, zero: FloatArray, objective: float) -> bool:
    """Whether zero weights have this objective or more.

    No hinge is negative, so that examples are asked only until theirs add up to it: the better the weights,
    the fewer.
    """
    n, total, first, length = sizes(problem).examples, 0.0, 0, 1
    scratch = new_scratch(problem, zero)
    while first < n and total < n * objective:
        out = np.empty(min(length, n - first))
        hinges(problem, zero, first, out, scratch)
        total += float(np.maximum(out, 0.0).sum())
        first, length = first + length, 2 * length
    return total >= n * objective


def dual(point: Point, lam: float) -> float:
    """Return D of a dual point."""
    return point.ell - 0.5 * lam * point.norm2


def hinge_losses(problem: Any, w: FloatArray) -> FloatArray:
    """Return the structured hinge loss of every example, `shortfall` included; raise if an oracle is broken.

    The pass is cut into pieces, for threads to share, and so that an interrupt is heard in the middle.
    """
    out, w = np.empty(sizes(problem).examples), checked_weights(problem, w)

    def measure(first: int) -> None:
        hinges(problem, w, first, out[first : first + _CHUNK], new_scratch(problem, w))

    pieces = range(0, len(out), _CHUNK)
    if hinges.mode(problem) == "interpreted":  # a user's object may not stand threads
        for first in pieces:
            measure(first)
    else:
        run_all(measure, pieces)
    broken = broken_example(problem, w, out)
    if broken >= 0:
        raise fault(problem, broken, w)
    # An approximate oracle may overlook the truth, whose margin is zero.
    return out if is_exact(problem) else np.maximum(out, 0.0)


def check_bounds(problem: Any, primal: float, dual: float) -> None:
    """Raise if the dual is above the objective, as only an oracle that does not find the best can make it."""
    if is_bounded(problem) and dual - primal > ROUNDING * (1.0 + abs(primal) + abs(dual)):
        raise BrokenOracle(
            f"solve: the dual must be at most the objective, got {dual:.9g} above {primal:.9g}: some argmax "
            f"returned an output that is not the best; check argmax and loss, by check_problem."
        )
