r"""The objective, its dual and the duality gap.

.. math::

    P(w)      &= \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y H_i(y; w),
                 \qquad H_i(y; w) = L_i(y) - \langle w, \psi_i(y) \rangle \\
    D(\alpha) &= \ell - \frac{\lambda}{2} \|w\|^2,
                 \qquad w = A \alpha, \quad \ell = b^\top \alpha \\
    g         &= P(w) - D(\alpha) \ge P(w) - P(w^*) \ge 0 .

At :math:`w = A \alpha` the gap equals the linearisation gap of Frank-Wolfe, the sum of the block gaps
:math:`g_i = \frac1n (\max_y H_i(y; w) - \ell_i + \langle w, A_i \alpha_i \rangle)` (the paper's
appendix on its gap).

If weights have signs or an L1 penalty (`maxmargin.structures.wrappers`), :math:`\lambda R(w)` takes the place
of the squared length in P, and w is a proximal map of :math:`A \alpha`; D and the gap are the same.

With an approximate oracle, every D is still a lower bound, as dual variables are feasible whatever outputs
they belong to. But P and the gap are under-estimated, by the mean shortfall of the oracle's answers from the
maxima. If the oracle has an upper bound :math:`r_i` on its `shortfall`, for instance from a relaxation, the
bound is added,

.. math:: \bar P(w) = \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \left( H_i(y_i^*; w) + r_i \right) \ge P(w) ,

and the bounds hold as for an exact oracle, for which :math:`r_i = 0`: the minimum of P is between D and
:math:`\bar P(w)`, and so is P(w). If relaxations are loose, the gap stays above the mean of the
:math:`r_i`, and a run does not claim convergence. Without a bound there is no certificate, and a run may stop
too early.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import can_compile, python_generic
from maxmargin.methods import protocol
from maxmargin.methods.protocol import BrokenOracle, NamedMethod, Point, State, point
from maxmargin.methods.scratch import scratch_for
from maxmargin.methods.sweep import broken_example, fault, hinges
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import Pace, now
from maxmargin.runtime.threads import Shared, n_threads, run_all
from maxmargin.structures.feature_map import (
    NegativeCurvature,
    check_metric,
    inner,
    is_euclidean,
    map_sizes,
    penalty,
)
from maxmargin.structures.oracle import is_bounded, is_exact
from maxmargin.structures.problem import AnyProblem, checked_weights

# Number of examples in a piece of a certificate: at least this, more if they have few statistics, and enough
# that each thread has only this number of pieces, as each piece needs workspace.
_CHUNK, _CHUNK_STATISTICS, _PIECES = 256, 1 << 16, 8
_TINY = float(np.finfo(np.float64).tiny)
# Weights that are worse than zero are scaled by this power of two, repeatedly, until they are better.
_SHRINKING, _SHRINKINGS = 8, 8


class Certificate(NamedTuple):
    """The bounds on a method's answer.

    Attributes
    ----------
    w : array
        The weights of lowest objective among those measured.
    primal : float
        Their objective, or an upper bound on it.
    dual : float
        A lower bound on the optimum.
    ell : float
        A lower bound on the objective of zero weights: the dual loss; infinite if there are no such weights.
    is_other : bool
        Whether the weights are one of the answer's other weights, not its first.
    """

    w: FloatArray
    primal: float
    dual: float
    ell: float
    is_other: bool


@python_generic
def certificate(method: NamedMethod, state: State, problem: AnyProblem, compare: bool) -> Certificate:
    """Return the certificate of a method's current answer; costs one pass of the oracle.

    The driver gets certificates only from here: a method for problems other than structural SVMs registers
    its own, and `maxmargin.solving.kinds` has what the driver asks of such problems. With ``compare``, the
    other weights of the answer are measured too, each in another pass, and the best are returned.
    """
    answer, lam = _checked_answer(method, state, problem, compare), protocol.regularisation(method)
    return _best_of(answer, [primal(problem, w, lam) for w in (answer.w, *answer.others)], lam)


class ConcurrentCertificate:
    """A certificate of the answer so far, computed by other threads while the method continues.

    Parameters are those of `certificate`, and the number of threads. The weights are copied.
    """

    def __init__(
        self, method: object, state: object, problem: AnyProblem, compare: bool, workers: int
    ) -> None:
        answer = _checked_answer(method, state, problem, compare)
        self._answer = answer._replace(w=answer.w.copy(), others=tuple(w.copy() for w in answer.others))
        self._problem, self._lam, self._begin = problem, protocol.regularisation(method), now()
        self._losses = [_Hinges(problem, w) for w in (self._answer.w, *self._answer.others)]
        pieces = [(losses, first) for losses in self._losses for first in losses.pieces]
        self._shared = Shared(lambda piece: piece[0].measure(piece[1]), pieces)
        self._shared.start(workers)

    def finish(self) -> Certificate:
        """Finish the remaining work and return the certificate."""
        self._shared.finish()
        candidates, lam = (self._answer.w, *self._answer.others), self._lam
        primals = [
            _regulariser(self._problem, lam, w) + float(losses.checked().mean())
            for w, losses in zip(candidates, self._losses, strict=True)
        ]
        return _best_of(self._answer, primals, lam)

    @property
    def seconds(self) -> float:
        """How long it took, once it is finished."""
        return max(losses.end for losses in self._losses) - self._begin

    def abandon(self) -> None:
        """Abandon the certificate."""
        self._shared.abandon()


def _checked_answer(method: object, state: object, problem: AnyProblem, compare: bool) -> Point:
    """Return the answer of a method, with other weights if they are to be compared."""
    check_metric(problem.map)
    answer: Point = point(method, state, problem)
    return answer if compare else answer._replace(others=())


def _best_of(answer: Point, primals: list[float], lam: float) -> Certificate:
    """Return the certificate of an answer whose weights have these objectives."""
    lowest, k = min(zip(primals, range(len(primals)), strict=True))
    return Certificate((answer.w, *answer.others)[k], lowest, dual(answer, lam), answer.ell, k > 0)


def unmeasured(method: object, state: object, problem: AnyProblem) -> Certificate:
    """Return a certificate of a method's current answer without a call of the oracle: only a lower bound."""
    answer: Point = point(method, state, problem)
    lower = dual(answer, protocol.regularisation(method))
    return Certificate(answer.w, np.inf, lower, answer.ell, False)


def primal(problem: AnyProblem, w: FloatArray, lam: float) -> float:
    """Return P(w), or an approximate oracle's upper bound on it; costs one oracle call per example."""
    return _regulariser(problem, lam, w) + mean_hinge(problem, w)


@python_generic
def mean_hinge(problem: AnyProblem, w: FloatArray) -> float:
    """Return the mean of `hinge_losses`."""
    return float(hinge_losses(problem, w).mean())


def _regulariser(problem: AnyProblem, lam: float, w: FloatArray) -> float:
    r"""Return :math:`\lambda R(w)`."""
    return _quadratic(problem, lam, w) + lam * penalty(problem.map, w)


def _quadratic(problem: AnyProblem, lam: float, w: FloatArray) -> float:
    r"""Return :math:`\frac{\lambda}{2} \|w\|^2`, even if the square of w is out of range."""
    with np.errstate(all="ignore"):
        norm2 = float(inner(problem.map, w, w))
    if _TINY < norm2 < np.inf:
        return 0.5 * lam * norm2
    # A kernel's inner product is at most the mean of the squared lengths of coefficients and scores.
    if norm2 < 0.0 and norm2 < -protocol.ROUNDING * (1.0 + float(w @ w)):
        raise _negative_length(norm2)
    largest = float(np.abs(w).max(initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return 0.5 * lam * largest
    _, exponent = np.frexp(largest)  # scaling by a power of two rounds nothing
    unit, length = np.ldexp(w, -exponent), np.sqrt(lam) * np.ldexp(1.0, exponent)
    return float(0.5 * length * length * inner(problem.map, unit, unit))


def no_worse_than_zero(
    problem: AnyProblem, w: FloatArray, objective: float, lam: float
) -> tuple[FloatArray, float]:
    r"""Return w and its objective, or better weights if zero weights have a lower one.

    The better weights are the first of :math:`2^{-8} w, 2^{-16} w, \dots` with a lower objective than zero,
    as they predict the same as w; or zero, if the first few are no better.
    """
    zero = np.zeros(len(w))  # unlike zeros_like, it takes no memory
    if reaches(problem, zero, objective):
        return w, objective
    least = primal(problem, zero, lam)
    for k in range(1, _SHRINKINGS + 1 if w.any() else 1):
        less = np.ldexp(w, -_SHRINKING * k)
        found = primal(problem, less, lam)
        if found < least:
            return less, found
    return zero, least


@python_generic
def reaches(problem: AnyProblem, zero: FloatArray, objective: float) -> bool:
    """Whether the objective of zero weights is at least this.

    No hinge is negative, so it is enough to add up hinges until they reach it: the better the weights, the
    fewer examples this takes.
    """
    n, total = int(map_sizes(problem.map).examples), 0.0
    with scratch_for(problem, zero) as (inner, scratch):
        for first, stop in Pace().pieces(0, n):
            out = np.empty(stop - first)
            hinges(inner, zero, first, out, scratch)
            total += float(np.maximum(out, 0.0).sum())
            if total >= n * objective:
                break
    return total >= n * objective


def dual(point: Point, lam: float) -> float:
    """Return D of a dual point; raise if it is above the dual loss, which no squared length allows."""
    found = float(point.ell - 0.5 * lam * point.norm2)
    if exceeds(found, point.ell):
        raise _negative_length(point.norm2)
    return found


def exceeds(lower: float, upper: float) -> bool:
    """Whether a lower bound is above an upper bound by more than rounding."""
    return lower - upper > protocol.ROUNDING * (1.0 + abs(lower) + abs(upper))


def hinge_losses(problem: AnyProblem, w: FloatArray, start: int = 0, end: int | None = None) -> FloatArray:
    """Return the structured hinge loss of every example, plus its `shortfall`; raise if an oracle is broken.

    Or of the examples ``start``, ..., ``end - 1`` alone.

    The pass is split into pieces, which threads share, and between which it can be interrupted.
    `OutOfTime` is raised at the deadline.
    """
    losses = _Hinges(problem, w, start, end)
    if can_compile(problem):
        run_all(losses.measure, losses.pieces)
    else:  # users' objects may not be thread-safe
        for first in losses.pieces:
            losses.measure(first)
    return losses.checked()


class _Hinges:
    """The hinge losses of some examples at given weights, measured in pieces until the time ``end``."""

    def __init__(self, problem: AnyProblem, w: FloatArray, start: int = 0, end: int | None = None) -> None:
        size, self._pace = map_sizes(problem.map), Pace("hinges")
        stop = int(size.examples) if end is None else end
        self._problem, self._w, self._start, self._stop = problem, checked_weights(problem, w), start, stop
        self._out, self.end = np.empty(stop - start), now()
        share = (stop - start) // (_PIECES * n_threads())
        self._chunk = max(_CHUNK, _CHUNK_STATISTICS // max(size.statistics, 1), share)
        self.pieces = range(start, stop, self._chunk)

    def measure(self, first: int) -> None:
        """Measure the piece that begins with this example."""
        start = self._start
        with scratch_for(self._problem, self._w) as (inner, scratch):
            for begin, stop in self._pace.pieces(first, min(first + self._chunk, self._stop)):
                hinges(inner, self._w, begin, self._out[begin - start : stop - start], scratch)
        self.end = max(self.end, now())

    def checked(self) -> FloatArray:
        """Return all of them, once all pieces are measured; raise if an oracle is broken."""
        problem, out = self._problem, self._out
        broken = broken_example(problem, self._w, out, self._start)
        if broken >= 0:
            raise fault(problem, broken, self._w)
        # An approximate oracle may overlook the truth, for which H is zero.
        return out if is_exact(problem.oracle) else np.maximum(out, 0.0)


def check_bounds(problem: AnyProblem, primal: float, dual: float) -> None:
    """Raise if the dual is above the objective: the oracle missed a maximum, or the kernel is at fault."""
    if not is_bounded(problem.oracle) or not exceeds(dual, primal):
        return
    found = f"solve: the dual must be at most the objective, got {dual:.9g} above {primal:.9g}"
    if not is_euclidean(problem.map):
        raise _indefinite(found)
    raise BrokenOracle(
        f"{found}: some argmax returned an output that is not the best; check argmax and loss with "
        "check_problem."
    )


def _negative_length(norm2: float) -> NegativeCurvature:
    return _indefinite(f"solve: the squared length of weights must not be negative, got {norm2:.3g}")


def _indefinite(found: str) -> NegativeCurvature:
    advice = "choose another kernel or other parameters"
    return NegativeCurvature(f"{found}: the kernel is not positive semidefinite on these data; {advice}.")
