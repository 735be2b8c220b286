"""The one driver: passes, certificates, stopping, time limit, interrupts. All that is not arithmetic."""

import math
import time
from collections.abc import Callable, Iterable
from enum import Enum
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin import objective
from maxmargin.history import History, Measurement
from maxmargin.methods._protocol import (
    Point,
    advance,
    moves_blocks,
    point,
    regularisation,
    start,
)
from maxmargin.methods.sampling import SAMPLINGS
from maxmargin.problems._protocol import REQUIRED, sizes, unpack
from maxmargin.rows import FloatArray, IntArray

# A piece of a pass is made to last about this long, so that interrupts and time limits are heard.
_PIECE_SECONDS = 0.1
_FIRST_PIECE = 64


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
        weights label by label, start, end, then transitions row by row.
    primal : float
        Objective at ``weights``.
    dual : float
        Largest lower bound seen.
    gap : float
        ``primal - dual``: how far ``weights`` are from optimal, at most.
    certified : bool
        Whether the bound holds for certain: the certificate used an exact oracle.
    status : Status
        Why the run ended.
    history : History
        All certificates.
    w : array
        The same weights in the problem's own layout.
    """

    weights: FloatArray
    primal: float
    dual: float
    gap: float
    certified: bool
    status: Status
    history: History
    w: FloatArray


class Progress(NamedTuple):
    """What a callback is told after each pass: the last certificate and where the run is now.

    Attributes
    ----------
    passes, oracle_calls, seconds
        Where the run is.
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


def solve(
    problem: Any,
    method: Any,
    *,
    tol: float = 1e-3,
    max_passes: int = 1000,
    time_limit: float | None = None,
    check_every: int = 5,
    sampling: str = "permutation",
    callbacks: Iterable[Callback] = (),
    random_state: Any = None,
) -> Result:
    r"""Minimise the structural SVM objective and certify how far from the minimum the answer is.

    .. math:: \min_w \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y
              \left( L_i(y) - \langle w, \phi(x_i, y_i) - \phi(x_i, y) \rangle \right)

    Parameters
    ----------
    problem : problem
        From `maxmargin.problems`, or an object with the same functions.
    method : method
        Such as ``BlockFrankWolfe(lam=0.01)`` or ``Averaged(BlockFrankWolfe(lam=0.01), "weighted")``.
    tol : float
        Stop when the duality gap is at most this.
    max_passes : int
        Stop after this many passes over the data.
    time_limit : float, optional
        Stop after this many seconds of optimisation; the certificates' time is not counted.
    check_every : int
        Passes between certificates. A certificate costs about one pass.
    sampling : {"permutation", "uniform"}
        Visit the examples in a new random order each pass, or draw them with replacement.
    callbacks : iterable of callables
        Each is called after every pass with a `Progress`; the run stops when one returns False.
    random_state : int, Generator, RandomState or None
        Seed; the same seed gives the same result.

    Returns
    -------
    Result
        An interrupt (Ctrl-C) ends the run and returns the best point so far with its certificate.

    Raises
    ------
    BrokenOracle
        If an example's block gap is negative or undefined.
    """
    _validate(problem, method, tol, max_passes, time_limit, check_every, sampling)
    run = _Run(problem, method, tol, max_passes, time_limit, tuple(callbacks))
    draw, rng = SAMPLINGS[sampling], generator(random_state)
    status = None
    try:
        while status is None:
            finished = run.one_pass(draw(rng, run.n))
            if not finished or run.passes % check_every == 0 or run.passes >= max_passes:
                run.certify()
            status = run.status(finished)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        run.certify_at_least_once()
    return run.result(status)


class _Run:
    """One run of the driver: the method's state, the clock, and the best bounds seen."""

    def __init__(
        self,
        problem: Any,
        method: Any,
        tol: float,
        max_passes: int,
        time_limit: float | None,
        callbacks: tuple[Callback, ...],
    ) -> None:
        self.problem, self.method, self.callbacks = problem, method, callbacks
        self.tol, self.max_passes = tol, max_passes
        self.time_limit = math.inf if time_limit is None else time_limit
        self.n, self.lam = sizes(problem).examples, regularisation(method)
        self.state = start(method, problem)
        self._compile()
        self.piece = _FIRST_PIECE
        self.passes, self.visits, self.seconds = 0, 0, 0.0
        self.rows: list[Measurement] = []
        self.best_w: FloatArray | None = None
        self.best_primal, self.best_dual = math.inf, -math.inf

    def _compile(self) -> None:
        """Have the kernels compiled or loaded, by a step of no block: not a part of the run's seconds."""
        if moves_blocks(self.method):
            advance(self.method, self.state, self.problem, np.zeros(0, dtype=np.int64))

    def one_pass(self, order: IntArray) -> bool:
        """Visit the examples in ``order``, piece by piece; return False if the time ran out."""
        whole = not moves_blocks(self.method)
        done = 0
        while done < len(order):
            if self.seconds >= self.time_limit:
                return False
            piece = order if whole else order[done : done + self.piece]
            begin = time.perf_counter()
            self.state = advance(self.method, self.state, self.problem, piece)
            elapsed = time.perf_counter() - begin
            self.seconds += elapsed
            done += len(piece)
            self.visits += len(piece)
            # Doubling at most: the first piece may have waited for the compiler.
            self.piece = max(1, min(2 * self.piece, int(len(piece) * _PIECE_SECONDS / elapsed)))
        self.passes += 1
        return True

    def certify(self) -> None:
        """Measure primal, dual and gap of the method's answer, by one pass of the oracle."""
        answer: Point = point(self.method, self.state, self.problem)
        primal = objective.primal(self.problem, answer.w, self.lam)
        dual = objective.dual(answer, self.lam)
        self.rows.append(
            Measurement(self.visits / self.n, self.visits, self.seconds, primal, dual, primal - dual)
        )
        self.best_dual = max(self.best_dual, dual)
        if primal < self.best_primal:
            self.best_primal, self.best_w = primal, answer.w.copy()

    def certify_at_least_once(self) -> None:
        """Certify what was done since the last certificate, unless interrupted in doing so."""
        if self.rows and self.rows[-1].oracle_calls == self.visits:
            return
        try:
            self.certify()
        except KeyboardInterrupt:
            if not self.rows:
                raise

    def status(self, finished: bool) -> Status | None:
        """Return why to stop now, or None to go on."""
        if self.best_primal - self.best_dual <= self.tol:
            return Status.CONVERGED
        if not finished or self.seconds >= self.time_limit:
            self.certify_at_least_once()
            return Status.TIME_LIMIT
        if any(callback(self.progress()) is False for callback in self.callbacks):
            self.certify_at_least_once()
            return Status.STOPPED
        return Status.MAX_PASSES if self.passes >= self.max_passes else None

    def progress(self) -> Progress:
        last = self.rows[-1] if self.rows else None
        return Progress(self.visits / self.n, self.visits, self.seconds, last, self.max_passes, self.tol)

    def result(self, status: Status) -> Result:
        w = self.best_w
        assert w is not None
        gap = self.best_primal - self.best_dual
        weights = np.concatenate([np.ravel(part) for part in unpack(self.problem, w)])
        return Result(
            weights, self.best_primal, self.best_dual, gap, True, status, History(tuple(self.rows)), w
        )


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    return np.random.default_rng(random_state)


def _validate(
    problem: Any,
    method: Any,
    tol: float,
    max_passes: int,
    time_limit: float | None,
    check_every: int,
    sampling: str,
) -> None:
    """Raise a one-line error for any argument that makes no sense."""
    if start.dispatch(type(method)) is start.dispatch(object):
        start(method, problem)  # raises, and says what a method is
    lam = regularisation(method)
    _expect(_positive(lam), "the method's lam", "a number > 0", lam)
    _expect(isinstance(tol, Real) and float(tol) >= 0, "tol", "a number >= 0", tol)
    for name, value in (("max_passes", max_passes), ("check_every", check_every)):
        _expect(isinstance(value, Integral) and value >= 1, name, "an int >= 1", value)
    _expect(time_limit is None or _positive(time_limit), "time_limit", "a number > 0 or None", time_limit)
    _expect(sampling in SAMPLINGS, "sampling", f"one of {', '.join(map(repr, SAMPLINGS))}", sampling)
    missing = [f.__name__ for f in REQUIRED if not _provides(problem, f)]
    _expect(not missing, "problem", "made by maxmargin.problems or to define " + ", ".join(missing), problem)


def _expect(holds: bool, name: str, expected: str, value: Any) -> None:
    if not holds:
        shown = type(value).__name__ if isinstance(value, tuple) else repr(value)
        raise ValueError(f"solve: {name} must be {expected}, got {shown}.")


def _positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf


def _provides(problem: Any, function: Any) -> bool:
    """Whether the generic function is registered for the problem's class, or is a method of it."""
    registered = function.dispatch(type(problem)) is not function.dispatch(object)
    return registered or callable(getattr(problem, function.__name__, None))
