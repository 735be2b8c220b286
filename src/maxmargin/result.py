"""The result of a run, its status, and the progress report for callbacks."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from maxmargin.arrays import FloatArray
from maxmargin.history import History, Measurement
from maxmargin.resume import Stopped


class Status(Enum):
    """Why a run ended."""

    CONVERGED = "the gap is at most tol"
    MAX_PASSES = "the limit of passes was reached before the gap fell to tol"
    TIME_LIMIT = "the time limit was reached before the gap fell to tol"
    STOPPED = "a callback asked to stop"
    INTERRUPTED = "the run was interrupted"


class Result(NamedTuple):
    r"""The best weights found, and bounds on how good they are.

    Attributes
    ----------
    weights : array of shape (d,)
        The weights of lowest primal objective among those measured, without padding: for a chain the feature
        weights label by label, start, end, then transitions row by row. If zero weights have a lower
        objective, the weights are divided by a power of two until they are better, or are zero.
    primal : float
        Objective at ``weights``, never above that of zero weights by more than ``tol``. It is an upper bound
        if the oracle is approximate but bounds its shortfall, as messages on graphs do, and an
        under-estimate if the oracle is approximate without a bound.
    dual : float
        Largest lower bound seen.
    gap : float
        ``primal - dual``, an upper bound on the suboptimality of ``weights``.
    certified : bool
        Whether ``gap`` is a guaranteed bound: the oracle is exact, or bounds its shortfall (by a relaxation).
        An approximate oracle without such a bound under-estimates ``primal`` and ``gap``; ``dual`` is a
        lower bound in any case.
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


class Progress(NamedTuple):
    """The argument of callbacks after each pass: the last certificate, and the progress since.

    Attributes
    ----------
    passes, oracle_calls, seconds
        Progress of the run; a pass is n visits of examples, with or without oracle calls.
    last : Measurement or None
        The last certificate.
    max_passes : int
    tol : float
    """

    passes: float
    oracle_calls: int
    seconds: float
    last: Measurement | None
    max_passes: int
    tol: float


Callback = Callable[[Progress], object]
