"""What all estimators share: parameters, the choice of method, the run, and the warning."""

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from maxmargin.display import ProgressLine
from maxmargin.history import History
from maxmargin.methods import Averaged, BlockFrankWolfe, FrankWolfe
from maxmargin.methods.sampling import SAMPLINGS
from maxmargin.problems._protocol import sizes
from maxmargin.rows import FloatArray
from maxmargin.solve import Status, solve

METHODS: dict[str, Callable[[float], Any]] = {
    "bcfw": lambda lam: BlockFrankWolfe(lam=lam),
    "bcfw-wavg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "weighted"),
    "bcfw-tavg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "suffix"),
    "bcfw-avg": lambda lam: Averaged(BlockFrankWolfe(lam=lam), "uniform"),
    "fw": lambda lam: FrankWolfe(lam=lam),
    "fw-wavg": lambda lam: Averaged(FrankWolfe(lam=lam), "weighted"),
}


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
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def _solve(self, problem: Any) -> FloatArray:
        """Train on ``problem``; keep the certificate and return the weights in the problem's layout."""
        lam = 1.0 / (self.C * sizes(problem).examples)
        name = type(self).__name__
        with ProgressLine(name, enabled=bool(self.verbose)) as line:
            result = solve(
                problem,
                METHODS[self.method](lam),
                tol=self.tol,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[line],
                random_state=self.random_state,
            )
        self.gap_, self.history_ = result.gap, result.history
        self.n_iter_ = int(-(-result.history.rows[-1].passes // 1))
        if result.status is not Status.CONVERGED:
            warnings.warn(
                f"{name}: {result.status.value}: gap {result.gap:.3g} > tol {self.tol:.3g} after "
                f"{self.n_iter_} passes (objective {result.primal:.4g}); raise max_iter or tol, or lower C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return result.w
