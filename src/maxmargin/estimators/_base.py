"""What all estimators share: parameters, the choice of method, the run, and the warning."""

import math
import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from maxmargin._arguments import shown
from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.threads import threads
from maxmargin.decoding import decode_all
from maxmargin.display import ProgressLine
from maxmargin.estimators._examples import Examples, Seen, mean_weight, per_weight, weighted
from maxmargin.history import History
from maxmargin.methods import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    Divided,
    FrankWolfe,
    Pairwise,
    Perceptron,
    Subgradient,
)
from maxmargin.methods.sampling import SAMPLINGS
from maxmargin.problems import SlackRescaled
from maxmargin.problems._labels import cost_matrix
from maxmargin.problems._protocol import is_projected, sizes
from maxmargin.problems.slack import check_rescalable
from maxmargin.result import Progress, Result, Status
from maxmargin.resume import UnfitStart
from maxmargin.solve import solve
from maxmargin.wording import described

DUAL_METHODS: dict[str, Callable[[float], Any]] = {
    "auto": lambda lam: Accelerated(Pairwise(lam=lam)),
    "pairwise": lambda lam: Pairwise(lam=lam),
    "away": lambda lam: Away(lam=lam),
    "bcfw": lambda lam: BlockFrankWolfe(lam=lam),
    "bcfw-wavg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "weighted"),
    "bcfw-tavg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "suffix"),
    "bcfw-avg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "uniform"),
    "fw": lambda lam: FrankWolfe(lam=lam),
    "fw-wavg": lambda lam: Averaged(FrankWolfe(lam=lam), "weighted"),
}
# To compare with: methods of the weights alone.
PRIMAL_METHODS: dict[str, Callable[[float], Any]] = {
    "ssg": lambda lam: Subgradient(lam=lam),
    "ssg-wavg": lambda lam: Averaged(Subgradient(lam=lam), "weighted"),
    "ssg-avg": lambda lam: Averaged(Subgradient(lam=lam), "uniform"),
    "perceptron": lambda lam: Perceptron(lam=lam),
    "perceptron-avg": lambda lam: Averaged(Perceptron(lam=lam), "uniform"),
}
METHODS = DUAL_METHODS | PRIMAL_METHODS
# Parts of "auto" with threads. On two parts, two threads were measured to be 1.5 to 1.7 times as fast as one,
# and 1.1 to 1.3 times as fast as one thread without parts, which needs fewer passes: that stays the method
# for one thread. The number is fixed, so that the answer does not depend on the machine.
_PARTS = 2

RESCALINGS = ("margin", "slack")

_OURS = {__name__.partition(".")[0], "sklearn"}

ADVICE = {
    Status.MAX_PASSES: "raise max_iter or tol, or lower C",
    Status.TIME_LIMIT: "raise time_limit or tol, or lower C",
    Status.INTERRUPTED: "the best weights so far are kept",
}


class StructuralSVC(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: everything that does not depend on the structure of outputs."""

    gap_: float
    history_: History
    n_iter_: int
    _seen: Seen | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions(set(METHODS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "check_every": [Interval(Integral, 1, None, closed="left")],
        "sampling": [StrOptions(set(SAMPLINGS))],
        "warm_start": ["boolean"],
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def _solve(self, problem: Any, start: Result | None = None) -> Result:
        """Train on ``problem`` and keep the certificate."""
        try:
            result = self._run(problem, start)
        except UnfitStart:  # other data, or another method
            result = self._run(problem, None)
        mean = mean_weight(problem)
        self.gap_ = result.gap / mean
        self.history_ = History(tuple(per_weight(row, mean) for row in result.history.rows))
        self.n_iter_ = math.ceil(result.history.rows[-1].passes)
        if result.status is not Status.CONVERGED:
            self._warn(result.status)
        return result

    def _run(self, problem: Any, start: Result | None) -> Result:
        lam, mean = 1.0 / (self.C * sizes(problem).examples), mean_weight(problem)
        with ProgressLine(type(self).__name__, enabled=bool(self.verbose)) as line:
            return solve(
                problem,
                self._method(lam, problem),
                tol=self.tol * mean,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[lambda progress: line(_scaled(progress, mean))],
                random_state=self.random_state,
                start=start,
                n_jobs=self.n_jobs,
            )

    def _method(self, lam: float, problem: Any) -> Any:
        """The method by its name; the default one divides the examples if there are threads to use."""
        threaded = self.n_jobs not in (None, 1) and self.sampling != "gap"  # parts take no note of gaps
        if self.method == "auto" and threaded and not is_projected(problem):
            return Accelerated(Divided(Pairwise(lam=lam), _PARTS))
        return METHODS[self.method](lam)

    def _fit(self, problem: Any, weights: FloatArray | None = None) -> FloatArray:
        """Train, from the last fit if ``warm_start``; return the weights in the problem's layout."""
        start = getattr(self, "_last", None) if self.warm_start else None
        result = self._solve(weighted(problem, weights), start)
        if self.warm_start:
            self._last: Result | None = result
        elif hasattr(self, "_last"):
            del self._last
        self._seen = None
        return result.w

    def _fit_more(self, problem: Any, examples: Examples) -> FloatArray:
        """Train on the examples of all calls of `partial_fit`, from where the last one stopped; keep them."""
        seen = self._before(more=True)
        result = self._solve(weighted(problem, examples.weights), None if seen is None else seen.result)
        self._seen = Seen(examples, result, self._model_parameters())
        return result.w

    def _before(self, more: bool) -> Seen | None:
        """What earlier calls have trained on, if this is one more call of `partial_fit`."""
        seen: Seen | None = getattr(self, "_seen", None) if more else None
        if seen is not None:
            self._check_same_model(seen.parameters)
        return seen

    def _model_parameters(self) -> dict[str, Any]:
        """The parameters that say what is learnt: those that estimators do not share."""
        shared = StructuralSVC._parameter_constraints
        return {name: value for name, value in self.get_params(deep=False).items() if name not in shared}

    def _check_same_model(self, before: dict[str, Any]) -> None:
        """Raise if parameters say that something else is to be learnt than in the calls before."""
        for name, value in self._model_parameters().items():
            if not _is_same(value, before[name]):
                raise ValueError(
                    f"{type(self).__name__}: {name} must be {shown(before[name])}, as in the first call of "
                    f"partial_fit, got {shown(value)}; call fit to learn anew."
                )

    def _decoded(self, problem: Any, w: FloatArray) -> IntArray:
        """The outputs of best score of all examples, one after another, found by `n_jobs` threads."""
        constraints, given = {"n_jobs": self._parameter_constraints["n_jobs"]}, {"n_jobs": self.n_jobs}
        validate_parameter_constraints(constraints, given, caller_name=type(self).__name__)
        with threads(self.n_jobs):
            return decode_all(problem, w)

    def _warn(self, status: Status) -> None:
        warnings.warn(
            f"{type(self).__name__}: {status.value}: gap {self.gap_:.3g} > tol {self.tol:.3g} after "
            f"{self.n_iter_} passes (objective {self.history_.primal.min():.4g}); {ADVICE[status]}.",
            ConvergenceWarning,
            stacklevel=_frames_to_user(),
        )


def _is_same(value: Any, before: Any) -> bool:
    """Whether a parameter is what it was: the same object, or an equal one."""
    try:
        return value is before or bool(np.all(value == before))
    except (TypeError, ValueError):  # not comparable, or arrays of other shapes
        return False


def _scaled(progress: Progress, mean: float) -> Progress:
    """Return what is shown of the run, in the units of the estimator's objective."""
    last = progress.last
    return progress._replace(last=None if last is None else per_weight(last, mean), tol=progress.tol / mean)


def _frames_to_user() -> int:
    """Return how many frames the line that called fit is above the caller, for a warning to point at it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in _OURS:
        level, frame = level + 1, frame.f_back
    return level


def _package_of(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def check_loss(loss: Any, n_labels: int, owner: str) -> None:
    """Raise unless ``loss`` is a name, which was checked with the parameters, or a cost matrix."""
    if isinstance(loss, str):
        return
    try:
        cost = np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{owner}: loss must be a name or a matrix of numbers of shape ({n_labels}, {n_labels}), "
            f"got {described(loss)}."
        ) from None
    cost_matrix(cost, (), n_labels, owner)


def rescaled(problem: Any, rescaling: str, owner: str) -> Any:
    """Return the problem with margins or slacks rescaled; raise where there is no oracle for the latter."""
    if rescaling == "margin":
        return problem
    check_rescalable(problem, owner)
    return SlackRescaled(problem)
