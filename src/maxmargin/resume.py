r"""Going on from a result: at another lam, or with more examples.

Dual variables times a share c in [0, 1], for all outputs but the truth, are feasible. With
:math:`s = \lambda' n' / (\lambda n)` they belong to the weights :math:`(c / s) \, A \alpha`, so that

.. math:: D'(c) = c \, \frac{n}{n'} \, \ell - \frac{\lambda'}{2} \frac{c^2}{s^2} \|A \alpha\|^2 , \qquad
          P'(w) = P(w) + \frac{\lambda' - \lambda}{2} \|w\|^2 .

c = s keeps the weights, where s is at most one; c = 1 keeps the dual variables; and the largest D' is
that of one c in closed form. As hinges are nowhere negative, every lower bound D carries over as
:math:`\min(n / n', \lambda' / \lambda) \, D`, also one that the state does not reach any more.
On the same problem the gap follows without an oracle call; with the weights kept and n' = n it changes by
:math:`(1 - s)(\ell - \lambda \|w\|^2)`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.methods._protocol import (
    Carry,
    Point,
    carried,
    dual_weights,
    point,
    regularisation,
    scale_error,
    start,
)
from maxmargin.objective import hinge_losses
from maxmargin.problems._checked import checked_weights
from maxmargin.problems._protocol import output_size, sizes, unpack

# How far weights made anew from the dual variables may be from those of before, relative to their length.
_SAME = 1e-6
# How far rounding may part the hinges of the same example.
_SAME_HINGE = 1e-9
_PROBES = 2


class UnfitStart(ValueError):
    """A result from which the run cannot go on: of another kind of method, or of another problem."""


class Stopped(NamedTuple):
    """Where a run stopped: the problem, the method and its state; None if a step was left half done."""

    problem: Any
    method: Any
    state: Any


class WarmStart(NamedTuple):
    """How to go on from a result; a result alone stands for ``WarmStart(result)``.

    Parameters
    ----------
    result : Result
        Of `solve`, by the same kind of method; on the same problem, or on one to which examples were
        appended.
    keep : {"best", "weights", "dual"}
        What stays of the dual variables if lam changes: the share of best dual objective; the share that
        keeps the weights (all, where lam n grows); all.
    """

    result: Any
    keep: str = "best"


class Beginning(NamedTuple):
    """A state to begin from; weights, and their objective where it is known; a lower bound."""

    state: Any
    w: FloatArray
    primal: float | None = None
    dual: float = 0.0


def as_warm_start(start: Any) -> WarmStart:
    """Return ``start``, a result or a warm start, as a warm start."""
    warm = start if isinstance(start, WarmStart) else WarmStart(start)
    if not isinstance(getattr(warm.result, "stopped", None), Stopped):
        got = type(warm.result).__name__
        raise ValueError(
            f"solve: start must be a Result of solve, or a WarmStart of one, got "
            f"{got if warm is not start else f'a WarmStart of {got}'}."
        )
    if warm.result.stopped.state is None:
        raise UnfitStart(
            "solve: start must come from a run that ended after a step, got one interrupted within a step; "
            "leave start out."
        )
    if warm.keep not in list(_SHARES):
        raise ValueError(
            f"solve: keep of a WarmStart must be one of {', '.join(map(repr, _SHARES))}, got {warm.keep!r}."
        )
    return warm


def begin_from(warm: WarmStart, problem: Any, method: Any) -> Beginning:
    """Return the state of ``warm`` carried over to the problem and the method."""
    before, result = warm.result.stopped, warm.result
    _check_kind(method, before.method)
    if before.problem is not problem:
        _check_problem(result, problem)
    checked_weights(problem, result.w)
    carry = _carry(warm, problem, method)
    state, lam = carried(method, before.state, problem, carry), regularisation(method)
    dual = min(carry.n / sizes(problem).examples, lam / carry.lam) * result.dual
    if before.problem is not problem:
        return Beginning(state, result.w, dual=dual)
    primal = result.primal + 0.5 * (lam - carry.lam) * float(result.w @ result.w)
    return Beginning(state, result.w, primal, dual)


def begin_anew(problem: Any, method: Any) -> Beginning:
    """Return the state at zero weights."""
    state = start(method, problem)
    return Beginning(state, np.zeros_like(point(method, state, problem).w))


def _carry(warm: WarmStart, problem: Any, method: Any) -> Carry:
    before = warm.result.stopped
    n, n_new = sizes(before.problem).examples, sizes(problem).examples
    lam, lam_new = regularisation(before.method), regularisation(method)
    s = lam_new * n_new / (lam * n)
    if not 0.0 < s < np.inf:
        raise scale_error(f"the ratio of lam to that of start, {lam_new:g} to {lam:g},")
    whole = carried(method, before.state, problem, Carry(1.0, 1.0 / s, lam, n))
    answer: Point = point(method, whole, problem)  # for an average, that of the iterate which is carried
    share = _SHARES[warm.keep](s, answer.ell, lam_new * answer.norm2)
    return Carry(share, share / s, lam, n)


def _best_share(s: float, slope: float, curvature: float) -> float:
    """Return the c in [0, 1] of largest ``slope * c - curvature / 2 * c**2``."""
    return 1.0 if slope >= curvature else max(slope / curvature, 0.0)


_SHARES: dict[str, Callable[[float, float, float], float]] = {
    "best": _best_share,
    "weights": lambda s, slope, curvature: min(s, 1.0),
    "dual": lambda s, slope, curvature: 1.0,
}


def _check_kind(method: Any, before: Any) -> None:
    if _kind(method) != _kind(before):
        raise UnfitStart(
            f"solve: start must come from the same kind of method, {_kind(method)}, got {_kind(before)}."
        )


def _kind(method: Any) -> str:
    name = type(method).__name__
    return f"{name}({_kind(method.inner)})" if hasattr(method, "inner") else name


def _check_problem(result: Any, problem: Any) -> None:
    """Raise unless weights and losses follow from dual variables as they did on the problem of before."""
    before = result.stopped
    alike = _same_shape(before.problem, problem) and _same_weights(before, problem)
    if not (alike and _same_hinges(before.problem, problem, result.w)):
        raise UnfitStart(
            f"solve: start must come from this problem, or from one with the first of its examples, got a "
            f"result for {sizes(before.problem).examples} other examples; leave start out."
        )


def _same_shape(old: Any, new: Any) -> bool:
    """Whether outputs and weights of the old problem are outputs and weights of the new one."""
    a, b = sizes(old), sizes(new)
    alike = type(old) is type(new) and a.weights == b.weights
    alike = alike and a.examples <= b.examples and a.statistics <= b.statistics
    if not alike or _shapes(old) != _shapes(new):
        return False
    return all(output_size(old, i) == output_size(new, i) for i in range(a.examples))


def _shapes(problem: Any) -> list[tuple[int, ...]]:
    parts = unpack(problem, np.zeros(sizes(problem).weights)) if hasattr(problem, "unpack") else []
    return [np.shape(part) for part in parts]


def _same_weights(before: Stopped, problem: Any) -> bool:
    """Whether the dual variables make the same weights on both problems; true if they are not kept."""
    expected = dual_weights(before.method, before.state, before.problem)
    found = dual_weights(before.method, before.state, problem)
    if expected is None or found is None:
        return True
    return bool(np.linalg.norm(found - expected) <= _SAME * (1.0 + np.linalg.norm(expected)))


def _same_hinges(old: Any, new: Any, w: FloatArray) -> bool:
    """Whether the examples have the same labels and losses, which dual weights do not tell.

    A hinge depends on the features, the truth and the loss of an output; random signs make that another
    output for each probe, and the weights' own size one of some loss.
    """
    rng, n = np.random.default_rng(0), sizes(old).examples
    for _ in range(_PROBES):
        probe = rng.choice([-1.0, 1.0], len(w)) * w
        expected, found = hinge_losses(old, probe), hinge_losses(new, probe)[:n]
        if np.abs(found - expected).max() > _SAME_HINGE * (1.0 + np.abs(expected).max()):
            return False
    return True
