"""What all estimators share: parameters, the choice of method, the run, and the warning."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.display import ProgressLine
from maxmargin.encoding.kinds import described
from maxmargin.history import History
from maxmargin.methods import (
    Accelerated,
    Averaged,
    Away,
    BlockFrankWolfe,
    FrankWolfe,
    Pairwise,
    Perceptron,
    Subgradient,
)
from maxmargin.methods.sampling import SAMPLINGS
from maxmargin.problems import SlackRescaled
from maxmargin.problems._labels import cost_matrix
from maxmargin.problems._protocol import sizes
from maxmargin.resume import UnfitStart
from maxmargin.rows import FloatArray
from maxmargin.solve import Result, Status, solve

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

RESCALINGS: dict[str, Callable[[Any], Any]] = {"margin": lambda problem: problem, "slack": SlackRescaled}

ADVICE = {
    Status.MAX_PASSES: "raise max_iter or tol, or lower C",
    Status.TIME_LIMIT: "raise time_limit or tol, or lower C",
    Status.INTERRUPTED: "the best weights so far are kept",
}
# Frames between the warning and the line that called fit: _warn, _solve, _fit, fit, scikit-learn's wrapper.
_FRAMES = 6


class StructuralSVC(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: everything that does not depend on the structure of outputs."""

    gap_: float
    history_: History
    n_iter_: int

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
        self.gap_, self.history_ = result.gap, result.history
        self.n_iter_ = math.ceil(result.history.rows[-1].passes)
        if result.status is not Status.CONVERGED:
            self._warn(result)
        return result

    def _run(self, problem: Any, start: Result | None) -> Result:
        lam = 1.0 / (self.C * sizes(problem).examples)
        with ProgressLine(type(self).__name__, enabled=bool(self.verbose)) as line:
            return solve(
                problem,
                METHODS[self.method](lam),
                tol=self.tol,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[line],
                random_state=self.random_state,
                start=start,
                n_jobs=self.n_jobs,
            )

    def _fit(self, problem: Any) -> FloatArray:
        """Train, from the last fit if ``warm_start``; return the weights in the problem's layout."""
        result = self._solve(problem, getattr(self, "_last", None) if self.warm_start else None)
        if self.warm_start:
            self._last: Result | None = result
        elif hasattr(self, "_last"):
            del self._last
        return result.w

    def _fit_more(self, problem: Any, seen: Any) -> Result:
        """Train on a problem that begins with the examples seen, from where the last call stopped."""
        return self._solve(problem, None if seen is None else seen.result)

    def _warn(self, result: Result) -> None:
        warnings.warn(
            f"{type(self).__name__}: {result.status.value}: gap {result.gap:.3g} > tol {self.tol:.3g} after "
            f"{self.n_iter_} passes (objective {result.primal:.4g}); {ADVICE[result.status]}.",
            ConvergenceWarning,
            stacklevel=_FRAMES,
        )


@contextmanager
def one_line(owner: str) -> Iterator[None]:
    """Give the errors of scikit-learn's validation an owner and a single line."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if "feature names" in message:  # a list, line by line, in a form that scikit-learn prescribes
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{owner}: {' '.join(message.split())}") from error


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
