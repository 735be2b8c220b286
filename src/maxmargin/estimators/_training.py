"""The training of estimators: from their parameters to a run of `solve`, its certificate and its warnings."""

import math
import os
import warnings
from collections.abc import Iterable
from typing import ClassVar, Generic

from sklearn.exceptions import ConvergenceWarning

from maxmargin._arguments import checked_method
from maxmargin.compiling.threads import as_number
from maxmargin.display import shown_progress
from maxmargin.driver import solve
from maxmargin.estimators._examples import Data, Examples, per_weight
from maxmargin.estimators._fields import COUNT, FLAG, HISTORY, NUMBER, Fields
from maxmargin.estimators._parameters import METHODS
from maxmargin.estimators._problems import Problem
from maxmargin.estimators._saving import SavesModel
from maxmargin.estimators._scales import scale_advice
from maxmargin.estimators._state import INTERRUPTED
from maxmargin.history import History
from maxmargin.methods import Accelerated, Divided, Pairwise
from maxmargin.methods.anchored import suited_to
from maxmargin.methods.protocol import with_lam
from maxmargin.persistence.checkpoint import Checkpoint, CheckpointLike, as_checkpoint
from maxmargin.problems import Weighted
from maxmargin.result import Callback, Progress, Result, Status
from maxmargin.resume import UnfitStart
from maxmargin.wording import counted, frames_to_user

# The objective to which tol refers is at least this, in units of the loss: on separable data it tends to zero
# as C grows, long after predictions stop changing.
FLOOR = 0.01

ADVICE = {
    Status.MAX_PASSES: "raise max_iter or tol, or lower C",
    Status.TIME_LIMIT: "raise time_limit or tol, or lower C",
}


class TrainedEstimator(SavesModel, Generic[Data]):
    """Base of estimators that `solve` trains."""

    C: float | str
    method: object
    tol: float
    max_iter: int
    time_limit: float | None
    check_every: int
    sampling: str
    warm_start: bool
    n_jobs: int | None = None
    verbose: int
    callbacks: Iterable[Callback] | None = None
    checkpoint: CheckpointLike | None = None
    random_state: object

    C_: float
    gap_: float
    certified_: bool
    history_: History
    n_iter_: int

    _fitted: ClassVar[Fields] = {
        "C_": NUMBER,
        "gap_": NUMBER,
        "certified_": FLAG,
        "history_": HISTORY,
        "n_iter_": COUNT,
    }

    @property
    def _owner(self) -> str:
        """The name to use in errors."""
        return type(self).__name__

    @property
    def _passes(self) -> str:
        """The number of passes, in words."""
        return counted(self.n_iter_, "pass")

    def _solve(self, problem: Problem, examples: Examples[Data], start: Result | None) -> Result:
        """Train on the problem and keep the certificate."""
        mean = examples.mean_weight
        if examples.weights is not None:
            problem = Weighted(problem, examples.weights)
        self.C_, kept = self._chosen_C(examples), as_checkpoint(self.checkpoint)
        lam = 1.0 / (self.C_ * examples.number)
        try:
            result = self._run(problem, lam, mean, _file_of(kept) or start, kept)
        except UnfitStart:  # other data, or another method
            result = self._run(problem, lam, mean, None, kept)
        self.gap_, self.certified_ = float(result.gap / mean), result.certified
        self.history_ = History(tuple(per_weight(row, mean) for row in result.history.rows))
        self.n_iter_ = math.ceil(result.history.rows[-1].passes)
        if result.status is Status.INTERRUPTED:
            text = f"after {self._passes}; the estimator is fitted, with a gap of {self.gap_:.3g}"
            setattr(self, INTERRUPTED, f"{self._owner}: interrupted {text}.")
        elif result.status in ADVICE:
            self._warn(result.status, scale_advice(examples.data[0]))
        return result

    def _chosen_C(self, examples: Examples[Data]) -> float:
        """Hook: return C as a number, which may depend on the examples."""
        return float(self.C)

    def _run(
        self,
        problem: Problem,
        lam: float,
        mean: float,
        start: Result | str | None,
        checkpoint: Checkpoint | None = None,
    ) -> Result:
        with shown_progress(self._owner, int(self.verbose)) as line:
            return solve(
                problem,
                self._method(lam, problem),
                tol=FLOOR * self.tol * mean,
                rtol=self.tol,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[_in_units_of(callback, mean) for callback in (line, *(self.callbacks or ()))],
                random_state=self.random_state,
                start=start,
                n_jobs=self.n_jobs,
                checkpoint=checkpoint,
            )

    def _method(self, lam: float, problem: Problem) -> object:
        """Return the method; the default one depends on the problem and on the number of threads."""
        if not isinstance(self.method, str):
            return with_lam(checked_method(self.method), lam)
        if self.method != "auto" or self.sampling == "gap":  # only plain methods record gaps to sample by
            return METHODS[self.method](lam)
        default = METHODS["auto"](lam)
        # A certificate takes about as long as a pass. The remaining threads compute them during the next
        # pass.
        n_parts = -(-as_number(self.n_jobs) * self.check_every // (self.check_every + 1))
        # Dividing the examples is not sound with sign constraints on the weights.
        if n_parts > 1 and getattr(self, "nonnegative", None) is None:
            default = Accelerated(Divided(Pairwise(lam=lam), n_parts))
        return suited_to(problem, default)

    def _warn(self, status: Status, scales: str) -> None:
        known, objective = "there is no certificate", self.history_.primal.min()
        if objective < math.inf:
            known = (
                f"the gap is {self.gap_:.3g}, above tol={self.tol:.3g} times the objective {objective:.4g}"
            )
        warnings.warn(
            f"{self._owner}: {status.value}: after {self._passes} {known}; {ADVICE[status]}{scales}.",
            ConvergenceWarning,
            stacklevel=frames_to_user(),
        )


def _file_of(checkpoint: Checkpoint | None) -> str | None:
    """Return the file of a checkpoint, if there is one."""
    return checkpoint.path if checkpoint is not None and os.path.exists(checkpoint.path) else None


def _in_units_of(callback: Callback, mean: float) -> Callback:
    """Return the callback for a run, with measurements in units of the estimator's objective."""
    if mean == 1.0:
        return callback

    def called(progress: Progress) -> object:
        last = progress.last
        limits = progress.limits._replace(tol=progress.limits.tol / mean)
        scaled = None if last is None else per_weight(last, mean)
        return callback(progress._replace(last=scaled, limits=limits))

    return called
