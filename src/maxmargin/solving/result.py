"""The result of a run, its status, and the progress report for callbacks."""

from collections.abc import Callable
from enum import Enum
from html import escape
from typing import NamedTuple

import numpy as np

from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import Limits
from maxmargin.runtime.wording import counted
from maxmargin.solving.history import History, Measurement, convergence_svg
from maxmargin.solving.resume import Stopped
from maxmargin.structures.problem import unproved


class Status(Enum):
    """Why a run ended."""

    CONVERGED = "the gap is small enough"
    MAX_PASSES = "the limit of passes was reached before the gap was small enough"
    TIME_LIMIT = "the time limit was reached before the gap was small enough"
    MISSED = "the gap is negative, as the approximate oracle missed maxima"
    STOPPED = "a callback asked to stop"
    INTERRUPTED = "the run was interrupted"


class Result(NamedTuple):
    r"""The best weights found, and bounds on their objective.

    Attributes
    ----------
    weights : array of shape (d,)
        The weights of lowest primal objective among those measured, without padding: for a chain the feature
        weights label by label, start, end, then transitions row by row. If zero weights have a lower
        objective, the weights are divided by a power of two until they are better, or are zero; the last row
        of the history is then theirs.
    primal : float
        Objective at ``weights``, a value of ``history.primal``, never above that of zero weights by more than
        ``tol``. It is an upper bound if the oracle is approximate but bounds its shortfall, as messages on
        graphs do, and an under-estimate if the oracle is approximate without a bound.
    dual : float
        Largest lower bound seen.
    gap : float
        ``primal - dual``, an upper bound on the suboptimality of ``weights``.
    certified : bool
        Whether ``gap`` is a guaranteed bound: the oracle is exact, or bounds its shortfall (by a relaxation),
        and the objective is known to be convex. An approximate oracle without such a bound under-estimates
        ``primal`` and ``gap``; ``dual`` is a lower bound for every convex objective. If ``gap`` is negative,
        the status is MISSED: the oracle's answers are below the maxima by at least ``-gap`` in the mean.
    status : Status
        Why the run ended.
    history : History
        All certificates.
    w : array
        The weights in the problem's own layout.
    stopped : Stopped
        Where the method stopped; ``solve(..., start=result)`` continues from here.
    """

    weights: FloatArray
    primal: float
    dual: float
    gap: float
    certified: bool
    status: Status
    history: History
    w: FloatArray
    stopped: Stopped

    def __repr__(self) -> str:
        return "\n".join(["Result", *(f"  {name:<11}  {text}" for name, text in self._summary())])

    def _repr_html_(self) -> str:
        """Return the table and, if matplotlib is installed, the convergence curve, for notebooks."""
        rows = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self._summary())
        return f"<div><table>{rows}</table>{convergence_svg(self.history)}</div>"

    def _summary(self) -> list[tuple[str, str]]:
        """Return the names and values of the summary, as text."""
        last = self.history.rows[-1]
        share = f", {self.gap / abs(self.primal):.2%} of the objective" if self.primal else ""
        bound = "guaranteed" if self.certified else f"not guaranteed: {unproved(self.stopped.problem)}"
        if self.status is Status.MISSED:
            bound = f"no bound: the oracle's answers are too small by at least {-self.gap:.3g}"
        certificates = counted(len(self.history), "certificate")
        return [
            ("status", f"{self.status.name.lower()}: {self.status.value}"),
            ("objective", f"{self.primal:.6g}"),
            ("lower bound", f"{self.dual:.6g}"),
            ("gap", f"{self.gap:.3g}{share} ({bound})"),
            ("passes", f"{last.passes:.4g}, {last.seconds:.3g} s and {certificates}"),
            ("weights", f"{len(self.weights)}, of which {np.count_nonzero(self.weights)} are not zero"),
        ]


class Progress(NamedTuple):
    """The argument of callbacks after each pass: the last certificate, and the progress since.

    Attributes
    ----------
    passes, oracle_calls, seconds
        Progress of the run; a pass is n visits of examples, with or without oracle calls.
    last : Measurement or None
        The last certificate.
    limits : Limits
        When the run ends.
    """

    passes: float
    oracle_calls: int
    seconds: float
    last: Measurement | None
    limits: Limits


Callback = Callable[[Progress], object]
