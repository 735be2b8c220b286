"""What a run tells: where it is, why it ended, and what it found."""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

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
    r"""The best weights found and what is known of them.

    Attributes
    ----------
    weights : array of shape (d,)
        The weights of lowest primal objective among those measured, unpadded: for a chain the feature
        weights label by label, start, end, then transitions row by row. If zero weights have a lower one,
        they are divided by a power of two until that is not so any more, or zero.
    primal : float
        Objective at ``weights``, never above that of zero weights by more than ``tol``. With an approximate
        oracle that bounds its own shortfall, as messages on graphs do, an upper bound on it; with one that
        does not, an under-estimate: the objective as far as the oracle's answers tell.
    dual : float
        Largest lower bound seen.
    gap : float
        ``primal - dual``: how far ``weights`` are from optimal, at most.
    certified : bool
        Whether the bound holds for certain: the certificates used an exact oracle, or an upper bound on
        what it falls short of the best (a relaxation). An approximate one without such a bound
        under-estimates ``primal`` and ``gap``; ``dual`` is a lower bound all the same.
    status : Status
        Why the run ended.
    history : History
        All certificates.
    w : array
        The same weights in the problem's own layout.
    stopped : Stopped
        Where the method stopped: what ``solve(..., start=result)`` goes on from.
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
    """What a callback is told after each pass: the last certificate and where the run is now.

    Attributes
    ----------
    passes, oracle_calls, seconds
        Where the run is; a pass is n visits of examples, with or without a call of the oracle.
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


Callback = Callable[[Progress], Any]
