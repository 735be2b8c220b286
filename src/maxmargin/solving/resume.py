r"""The state of a run, which begins anew, from a file or from a result.

A file of the state resumes the run bit for bit. A result can be continued at another lam, or with more
examples.

If all dual variables except the truth's are scaled by c in [0, 1], they remain feasible. With
:math:`s = \lambda' n' / (\lambda n)` they belong to the weights :math:`(c / s) \, A \alpha`, so

.. math:: D'(c) = c \, \frac{n}{n'} \, \ell - \frac{\lambda'}{2} \frac{c^2}{s^2} \|A \alpha\|^2 , \qquad
          P'(w) = P(w) + \frac{\lambda' - \lambda}{2} \|w\|^2 .

c = s keeps the weights, if s is at most one; c = 1 keeps the dual variables; and the c of largest D' has a
closed form. As hinges are nonnegative, every lower bound D carries over as
:math:`\min(n / n', \lambda' / \lambda) \, D`, even if the state no longer attains it.
On the same problem the gap follows without oracle calls; if the weights are kept and n' = n, it changes by
:math:`(1 - s)(\ell - \lambda \|w\|^2)`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from typing import NamedTuple, cast

import numpy as np

from maxmargin.files.checkpoint import Checkpoint, Identity, Keeper, read_state
from maxmargin.files.container import installed_version
from maxmargin.files.sealed import Json
from maxmargin.methods import protocol
from maxmargin.methods.protocol import Carry, Point
from maxmargin.methods.rules import Sampler, Visits, n_visits
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import deadline_at
from maxmargin.runtime.wording import shown
from maxmargin.solving.objective import Certificate, hinge_losses
from maxmargin.solving.result import History, Measurement, Result, Stopped
from maxmargin.structures.feature_map import adopted, inner, penalty, rebuilt, unconstrained
from maxmargin.structures.oracle import output_size
from maxmargin.structures.problem import AnyProblem, Problem, checked_weights, fingerprint, is_same, sizes

# Tolerance for weights recomputed from the dual variables, relative to their length.
_SAME = 1e-6
# Tolerance for rounding in the hinges of the same example.
_SAME_HINGE = 1e-9
_PROBES = 2


class UnfitStart(ValueError):
    """A result from which the run cannot continue: of another kind of method, or of another problem."""


class WarmStart(NamedTuple):
    """How to continue from a result; a plain result means ``WarmStart(result)``.

    Parameters
    ----------
    result : Result
        A result of `solve` by the same kind of method, for the same problem or for its first examples.
    keep : {"best", "weights", "dual"}
        How to scale the dual variables if lam changes: "best" for the best dual objective; "weights" to keep
        the weights (without scaling if lam n grows); "dual" to leave the dual variables unchanged.
    """

    result: Result
    keep: str = "best"


class Beginning(NamedTuple):
    """An initial state.

    Attributes
    ----------
    state : object
        The state of the method.
    w : array
        Weights.
    primal : float or None
        Their objective, if it is known.
    dual : float
        A lower bound.
    calls : int
        Number of oracle calls used to compare the two problems.
    """

    state: object
    w: FloatArray
    primal: float | None = None
    dual: float = 0.0
    calls: int = 0


def as_warm_start(start: object) -> WarmStart:
    """Return ``start``, a result or a warm start, as a warm start."""
    warm = start if isinstance(start, WarmStart) else WarmStart(cast(Result, start))
    if not isinstance(getattr(warm.result, "stopped", None), Stopped):
        got = type(warm.result).__name__
        raise ValueError(
            f"solve: start must be a Result of solve, a WarmStart of one or the file of a checkpoint, got "
            f"{got if warm is not start else f'a WarmStart of {got}'}."
        )
    if warm.result.stopped.state is None:
        raise UnfitStart(
            "solve: start must come from a run that ended after a step, got one interrupted within a step; "
            "leave start out."
        )
    if warm.keep not in list(_SHARES):
        raise ValueError(
            f"solve: keep of a WarmStart must be one of {', '.join(map(repr, _SHARES))}, "
            f"got {shown(warm.keep)}."
        )
    return warm


def begin_from(warm: WarmStart, problem: AnyProblem, method: object) -> Beginning:
    """Return the state of ``warm`` carried over to the problem and the method."""
    before, result = warm.result.stopped, warm.result
    unchanged = is_same(before.problem, problem)
    _check_kind(method, before.method)
    calls = 0 if unchanged else _check_problem(result, problem)
    w = _adopted(problem, before.problem, result.w)
    carry = _carry(warm, problem, method)
    state, lam = protocol.carried(method, before.state, problem, carry), protocol.regularisation(method)
    dual = min(carry.n / sizes(problem).examples, lam / carry.lam) * result.dual
    if not unchanged:
        return Beginning(state, w, dual=dual, calls=calls)
    change, regulariser = lam - carry.lam, 0.5 * inner(problem.map, w, w) + penalty(problem.map, w)
    primal = result.primal + change * float(regulariser)
    return Beginning(state, w, primal, dual)


def _adopted(problem: AnyProblem, before: AnyProblem, w: FloatArray) -> FloatArray:
    """Convert the weights of a problem with only the first examples to weights of this problem."""
    found = adopted(problem.map, w, before.map)
    return checked_weights(problem, w if found is None else found)


def _of_images(problem: AnyProblem) -> AnyProblem:
    """Return the problem whose weights are images."""
    return Problem(unconstrained(problem.map), problem.oracle)


def _carry(warm: WarmStart, problem: AnyProblem, method: object) -> Carry:
    before = warm.result.stopped
    n, n_new = sizes(before.problem).examples, sizes(problem).examples
    lam, lam_new = protocol.regularisation(before.method), protocol.regularisation(method)
    s = lam_new * n_new / (lam * n)
    if not 0.0 < s < np.inf:
        raise protocol.scale_error(f"the ratio of lam to that of start, {lam_new:g} to {lam:g},")

    def adopt(v: FloatArray) -> FloatArray:
        return _adopted(_of_images(problem), _of_images(before.problem), v)

    whole = protocol.carried(method, before.state, problem, Carry(1.0, 1.0 / s, lam, n, adopt))
    # For an average, this is the point of its iterate, which is what is carried over.
    answer: Point = protocol.point(method, whole, problem)
    share = _SHARES[warm.keep](s, answer.ell, lam_new * answer.norm2)
    return Carry(share, share / s, lam, n, adopt)


def _best_share(s: float, slope: float, curvature: float) -> float:
    """Return the c in [0, 1] of largest ``slope * c - curvature / 2 * c**2``."""
    return 1.0 if slope >= curvature else max(slope / curvature, 0.0)


_SHARES: dict[str, Callable[[float, float, float], float]] = {
    "best": _best_share,
    "weights": lambda s, slope, curvature: min(s, 1.0),
    "dual": lambda s, slope, curvature: 1.0,
}


def _check_kind(method: object, before: object) -> None:
    if _kind(method) != _kind(before):
        raise UnfitStart(
            f"solve: start must come from the same kind of method, {_kind(method)}, got {_kind(before)}."
        )


def _kind(method: object) -> str:
    name = type(method).__name__
    inner = getattr(method, "inner", None)
    return name if inner is None else f"{name}({_kind(inner)})"


@deadline_at(math.inf)  # half a comparison proves nothing
def _check_problem(result: Result, problem: AnyProblem) -> int:
    """Raise unless the dual variables have the same weights and losses on both problems.

    Returns
    -------
    int
        The number of oracle calls.
    """
    before = result.stopped
    alike = _same_shape(before.problem, problem) and _same_weights(before, problem)
    if not (alike and _same_hinges(before.problem, problem, result.w)):
        raise UnfitStart(
            f"solve: start must come from this problem, or from a problem of its first examples, got a "
            f"result for {sizes(before.problem).examples} other examples; leave start out."
        )
    return _PROBES * (sizes(before.problem).examples + sizes(problem).examples)


def _same_shape(old: AnyProblem, new: AnyProblem) -> bool:
    """Whether outputs and weights of the old problem are valid for the new one."""
    a, b = sizes(old), sizes(new)
    alike = type(old.oracle) is type(new.oracle)
    alike = alike and a.examples <= b.examples and a.statistics <= b.statistics
    if not alike or adopted(new.map, np.zeros(a.weights), old.map) is None:
        return False
    return all(output_size(old.oracle, i) == output_size(new.oracle, i) for i in range(a.examples))


def _same_weights(before: Stopped, problem: AnyProblem) -> bool:
    """Whether the dual variables give the same weights on both problems.

    If a method does not keep them, its state cannot be carried over to another layout of weights.
    """
    expected = protocol.dual_weights(before.method, before.state, before.problem)
    found = protocol.dual_weights(before.method, before.state, problem)
    if expected is None or found is None:
        return bool(sizes(before.problem).weights == sizes(problem).weights)
    expected = _adopted(problem, before.problem, expected)
    change = _length(problem, found - expected)
    return change <= _SAME * (1.0 + _length(problem, expected))


def _length(problem: AnyProblem, w: FloatArray) -> float:
    return float(np.sqrt(inner(problem.map, w, w)))


def _same_hinges(old: AnyProblem, new: AnyProblem, w: FloatArray) -> bool:
    """Whether the examples have the same labels and losses, which the weights alone do not show.

    A hinge depends on the features, the truth and the loss of an output. Random signs of the weights give
    another output for each probe, and weights of this size give outputs of positive loss.
    """
    rng, old, new = np.random.default_rng(0), _of_images(old), _of_images(new)
    n, w = sizes(old).examples, w[: sizes(old).weights]
    for _ in range(_PROBES):
        probe = rebuilt(old.map, rng.choice([-1.0, 1.0], len(w)) * w)
        expected, found = hinge_losses(old, probe), hinge_losses(new, _adopted(new, old, probe))[:n]
        if np.abs(found - expected).max() > _SAME_HINGE * (1.0 + np.abs(expected).max()):
            return False
    return True


class Place(NamedTuple):
    """A point in time of a run.

    Attributes
    ----------
    visited, calls : int
        Number of visits and of oracle calls so far.
    seconds : float
        Time spent on steps so far.
    time : float
        The reading of the clock.
    is_whole : bool
        Whether no step was left half done.
    """

    visited: int
    calls: int
    seconds: float
    time: float
    is_whole: bool


@dataclass
class RunState:
    """The progress of a run.

    Attributes
    ----------
    state : object
        The state of the method.
    notes : tuple of arrays
        What the feature map recorded in the run.
    sampler, rng : Sampler, Generator
        What the visits of the next passes are drawn from.
    visits : Visits
        The visits of the current pass; empty between passes.
    done : int
        Number of them that have been made.
    best_w : array
        The best weights.
    best_primal, best_dual, best_ell : float
        Their objective, the best lower bound, and a lower bound on the objective of zero weights: the largest
        dual loss, or the objective itself if it was measured.
    first_calls : int
        Number of oracle calls that a warm start took.
    passes, visited : int
        Number of passes and of visits.
    certified : int
        Number of visits at the last certificate.
    other_was_best : bool
        Whether the best of several weight vectors was not the first, in the last certificate.
    seconds, certificate_seconds : float
        Time spent on steps, and on the last certificate.
    history : History
    """

    state: object
    notes: tuple[FloatArray, ...]
    sampler: Sampler
    rng: np.random.Generator
    visits: Visits
    best_w: FloatArray
    best_dual: float
    best_ell: float
    best_primal: float = math.inf
    first_calls: int = 0
    done: int = 0
    passes: int = 0
    visited: int = 0
    certified: int = 0
    other_was_best: bool = False
    seconds: float = 0.0
    certificate_seconds: float = 0.0
    history: History = field(default_factory=History)

    @property
    def left(self) -> int:
        """Number of visits of the pass that are left; none between passes."""
        return n_visits(self.visits) - self.done

    @property
    def rows(self) -> tuple[Measurement, ...]:
        """The certificates so far."""
        return self.history.rows

    def count(self, visits: int) -> None:
        """Count visits that have been made, and the pass if they were its last."""
        self.visited, self.done = self.visited + visits, self.done + visits
        if self.left == 0:
            self.visits, self.done, self.passes = self.sampler.none(), 0, self.passes + 1

    def note(self, found: Certificate, row: Measurement, visited: int) -> None:
        """Add a certificate, made after this many visits, to the history, and keep the best bounds."""
        is_first = not self.rows
        self.history = History((*self.rows, row))
        self.certified = visited
        self.best_dual = max(self.best_dual, row.dual)
        if is_first:
            self.best_primal, self.best_w = found.primal, found.w.copy()
        elif found.primal < self.best_primal:
            # No other code holds the copy, and overwriting it is faster than allocating another.
            self.best_primal, self.best_w[...] = found.primal, found.w

    def replace_best(self, w: FloatArray, primal: float) -> None:
        """Take other weights as the best, such as zero; the last row of the history is then theirs."""
        self.best_w, self.best_primal = w, primal
        row = self.rows[-1]._replace(primal=primal, dual=self.best_dual, gap=primal - self.best_dual)
        self.history = History((*self.rows, row))

    def correct_best(self, w: FloatArray, primal: float) -> None:
        """Replace the best weights and their objective, also in the history, by more accurate ones."""
        rows = (
            row._replace(primal=primal, gap=primal - row.dual) if row.primal == self.best_primal else row
            for row in self.rows
        )
        self.history, self.best_w, self.best_primal = History(tuple(rows)), w, primal


class Files(NamedTuple):
    """The files of a run: its checkpoint, the file to continue from, and what both must belong to."""

    kept: Checkpoint | None
    start: str | None
    identity: Identity

    def continued(self, fresh: RunState) -> RunState:
        """Return the state in the file to continue from, else ``fresh``, the state before the first pass."""
        if self.start is None:
            return fresh
        notes = fresh.notes
        at = read_state(self.start, self.identity, fresh)
        for live, stored in zip(notes, at.notes, strict=True):
            live[...] = stored
        at.notes = notes  # the map writes to these
        return at

    def keeper(self, at: RunState) -> Keeper | None:
        """Return the keeper, which stores the state of the run when it is due; None without a checkpoint."""
        return None if self.kept is None else Keeper(self.kept, self.identity, at)


def files_of(
    kept: Checkpoint | None,
    start: str | None,
    problem: AnyProblem,
    method: object,
    settings: dict[str, object],
) -> Files:
    """Return the files of a run; raise if another process could not recognise the problem or method."""
    seed = settings["random_state"]  # only numbers can be compared
    plain = settings | {"random_state": int(seed) if isinstance(seed, Integral) else None}
    compared = cast("dict[str, Json]", plain)
    identity = Identity(_version(), _digest("problem", problem), _digest("method", method), compared)
    return Files(kept, start, identity)


def _version() -> str:
    """Return the minor version, within which runs are bitwise equal; empty if it is not installed."""
    return ".".join(installed_version().split(".")[:2])


def _digest(name: str, subject: object) -> str:
    try:
        return fingerprint(subject)
    except TypeError as error:
        raise TypeError(f"Checkpoint: the {name} must be {error}; leave the checkpoint out.") from None
