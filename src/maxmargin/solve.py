"""The driver of all methods: passes, certificates, stopping, time limit and interrupts; no arithmetic."""

import math
import time
from collections.abc import Iterable

import numpy as np

from maxmargin import _arguments, kinds, objective
from maxmargin.compiling.interrupts import uninterrupted
from maxmargin.compiling.threads import threads
from maxmargin.history import History, Measurement
from maxmargin.methods.protocol import grain, oracle_calls, traits
from maxmargin.methods.sampling import Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance
from maxmargin.problems.problem import AnyProblem
from maxmargin.result import Callback, Progress, Result, Status
from maxmargin.resume import Beginning, Stopped, as_warm_start

# A pass is split into pieces of about this length, so that interrupts and limits take effect.
_PIECE_SECONDS = 0.1
_FIRST_PIECE = 1


def solve(
    problem: object,
    method: object,
    *,
    tol: float = 1e-3,
    max_passes: int = 1000,
    time_limit: float | None = None,
    check_every: int = 5,
    sampling: str = "permutation",
    callbacks: Iterable[Callback] = (),
    random_state: object = None,
    start: object = None,
    n_jobs: int | None = None,
) -> Result:
    r"""Minimise the structural SVM objective, and certify how far the answer is from the minimum.

    .. math:: \min_w \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y
              \left( L_i(y) - \langle w, \phi(x_i, y_i) - \phi(x_i, y) \rangle \right)

    Parameters
    ----------
    problem : problem
        From `maxmargin.problems`, or an object with the same functions. Or a ProductProblem of
        `maxmargin.product`: any smooth convex function, with blocks in the place of examples.
    method : method
        Such as ``BlockFrankWolfe(lam=0.01)`` or ``Averaged(BlockFrankWolfe(lam=0.01), "weighted")``.
    tol : float
        Stop when the duality gap is at most this.
    max_passes : int
        Stop after this many passes over the data, not counting those of a cache.
    time_limit : float, optional
        Stop after this many seconds of optimisation, not counting the time of certificates.
    check_every : int
        Number of passes between certificates. A certificate costs about one pass.
    sampling : {"permutation", "uniform", "gap"}
        Visit the examples in a new random order each pass, draw them with replacement, or draw them in
        proportion to their block gaps, which need dual variables.
    callbacks : iterable of callables
        Each is called after every pass with a `Progress`; the run stops when one returns False.
    random_state : int, Generator, RandomState or None
        Seed; the same seed gives the same result.
    start : Result or WarmStart, optional
        Continue from the result of another run, by the same kind of method at any lam. The problem must be
        the same, or the same with examples appended. On the same problem, the first certificate costs no
        oracle call.
    n_jobs : int, optional
        Threads for the certificates and for the parts of `Divided`: one by default, -1 for one per
        processor. The result does not depend on it.

    Returns
    -------
    Result
        An interrupt (Ctrl-C) ends the run after the current piece of a pass, and the best point so far is
        returned with its certificate. A second one ends the run at once; the bound is then the last one
        known.

    Raises
    ------
    BrokenOracle
        If an example's block gap is negative or undefined.
    ScaleError
        If numbers leave the range of float64, because features or lam are too large or too small.
    """
    checked, method = kinds.checked(problem, method)
    _arguments.check_limits(tol, max_passes, time_limit, check_every)
    _arguments.check_n_jobs(n_jobs)
    _arguments.check_sampling(sampling, method)
    draw, rng = _arguments.drawer(sampling, kinds.n_blocks(checked)), _arguments.generator(random_state)
    beginning = kinds.begin(checked, method, None if start is None else as_warm_start(start))
    called = _arguments.checked_callbacks(callbacks)
    run = _Run(checked, method, beginning, tol, max_passes, time_limit, called)
    with threads(n_jobs):
        status = run.begin() if start is not None else None
        try:
            while status is None:
                finished = run.one_pass(draw(rng))
                if finished and run.passes % check_every == 0:
                    run.certify()
                status = run.status(finished)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            run.certify_the_rest()
        run.compare_with_zero(status)
        run.rebuild()
    return run.result(status)


class _Run:
    """One run of the driver: the method's state, the clock, and the best bounds seen."""

    def __init__(
        self,
        problem: AnyProblem,
        method: object,
        beginning: Beginning,
        tol: float,
        max_passes: int,
        time_limit: float | None,
        callbacks: tuple[Callback, ...],
    ) -> None:
        self.problem, self.method, self.callbacks = problem, method, callbacks
        self.tol, self.max_passes = tol, max_passes
        self.time_limit = math.inf if time_limit is None else time_limit
        self.n = kinds.n_blocks(problem)
        self.state, self.beginning = beginning.state, beginning
        self._compile()
        self.piece = _FIRST_PIECE
        self.passes, self.visits, self.certified_visits, self.seconds = 0, 0, 0, 0.0
        self.rows: list[Measurement] = []
        self.whole, self.other_was_best = True, False
        self.best_w, self.best_primal = beginning.w, math.inf
        self.best_dual = self.best_ell = beginning.dual  # zero without a warm start

    def _compile(self) -> None:
        """Compile or load the kernels by a pass without visits, which is not timed."""
        if traits(self.method).moves_blocks:
            advance(self.method, self.state, self.problem, np.zeros(0, dtype=np.int64))

    def begin(self) -> Status | None:
        """Certify the initial state; return a status if its gap is small enough."""
        self._note(kinds.first_certificate(self.problem, self.method, self.beginning))
        return Status.CONVERGED if self.best_primal - self.best_dual <= self.tol else None

    def one_pass(self, visits: Visits) -> bool:
        """Make the visits of a pass, piece by piece; return False if the time limit is reached."""
        cut, together = traits(self.method).moves_blocks, grain(self.method, self.problem)
        done, total = 0, n_visits(visits)
        while done < total:
            if self.seconds >= self.time_limit:
                return False
            length = min(self.piece * together, total - done) if cut else total
            elapsed = self._advance(some_visits(visits, done, done + length))
            done += length
            # At most double the length: the time of a short piece says little about a long one.
            lasting = int(length / together * _PIECE_SECONDS / max(elapsed, 1e-9))
            self.piece = max(1, min(2 * self.piece, lasting))
        self.passes += 1
        return True

    def _advance(self, visits: Visits) -> float:
        """Make the visits; return the seconds they took."""
        begin = time.perf_counter()
        with uninterrupted():
            self.whole = False
            self.state = advance(self.method, self.state, self.problem, visits)
            self.whole = True
            elapsed = time.perf_counter() - begin
            self.seconds += elapsed
            self.visits += n_visits(visits)
        return elapsed

    def certify(self) -> None:
        """Measure primal, dual and gap of the method's answer.

        An answer may have several weight vectors, and each costs a pass of the oracle. All but the first are
        measured only in certificates 1, 2, 4, 8, ..., and as long as one of them is the best.
        """
        count = len(self.rows) + 1
        compare = self.other_was_best or count & (count - 1) == 0
        found = objective.certificate(self.method, self.state, self.problem, compare)
        self.other_was_best = found.is_other
        self._note(found)

    def _note(self, found: objective.Certificate) -> None:
        """Add a certificate to the history, and keep the best bounds.

        After a step that was left half done, weights and dual loss may not belong together. They give no
        lower bound then, and the best one so far is kept.
        """
        calls, dual, primal = self.oracle_calls(), self.best_dual, found.primal
        if self.whole:
            dual, self.best_ell = found.dual, max(self.best_ell, found.ell)
        self.rows.append(Measurement(calls / self.n, calls, self.seconds, primal, dual, primal - dual))
        self.certified_visits = self.visits
        self.best_dual = max(self.best_dual, dual)
        if primal < self.best_primal:
            self.best_primal, self.best_w = primal, found.w.copy()
        kinds.check_bounds(self.problem, self.best_primal, self.best_dual)

    def compare_with_zero(self, status: Status) -> None:
        """Make sure that the result is no worse than zero weights, up to ``tol``.

        Their objective is the mean of the largest losses, so it is at least every dual loss: a run that came
        close to its optimum need not measure it.
        """
        is_known = self.best_primal < math.inf
        if self.best_primal <= self.best_ell or (is_known and status is Status.CONVERGED):
            return
        try:
            found = kinds.no_worse(self.problem, self.method, self.best_w, self.best_primal)
        except KeyboardInterrupt:
            if not is_known:
                raise
        else:
            self.best_w, self.best_primal = found

    def rebuild(self) -> None:
        """Measure the best weights again if redundant entries of them have gathered rounding."""
        try:
            found = kinds.rebuilt(self.problem, self.method, self.best_w, self.best_primal)
            self.best_w, self.best_primal = found
        except KeyboardInterrupt:
            pass  # the weights as they are have a certificate

    def certify_the_rest(self) -> None:
        """Certify the steps since the last certificate; an interrupt skips this."""
        if self.rows and self.certified_visits == self.visits:
            return
        try:
            self.certify()
        except KeyboardInterrupt:
            if not self.rows:
                raise

    def status(self, finished: bool) -> Status | None:
        """Call the callbacks after a finished pass; return why to stop now, or None to continue."""
        answers = [callback(self.progress()) for callback in self.callbacks] if finished else []
        status = None
        if self.seconds >= self.time_limit:
            status = Status.TIME_LIMIT
        elif any(answer is False for answer in answers):
            status = Status.STOPPED
        elif self.passes >= self.max_passes:
            status = Status.MAX_PASSES
        if status is not None:
            self.certify_the_rest()
        return Status.CONVERGED if self.best_primal - self.best_dual <= self.tol else status

    def progress(self) -> Progress:
        last, calls = self.rows[-1] if self.rows else None, self.oracle_calls()
        return Progress(self.visits / self.n, calls, self.seconds, last, self.max_passes, self.tol)

    def oracle_calls(self) -> int:
        """Return the number of oracle calls of the method."""
        return oracle_calls(self.method, self.state, self.visits)

    def result(self, status: Status) -> Result:
        w = self.best_w
        weights = kinds.as_weights(self.problem, w)
        gap, history = self.best_primal - self.best_dual, History(tuple(self.rows))
        stopped = Stopped(self.problem, self.method, self.state if self.whole else None)
        certified = kinds.is_certified(self.problem)
        return Result(weights, self.best_primal, self.best_dual, gap, certified, status, history, w, stopped)
