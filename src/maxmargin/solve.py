"""The driver of all methods: passes, certificates, stopping, time limit and interrupts; no arithmetic."""

import math
from collections.abc import Iterable

from maxmargin import _arguments, kinds, objective
from maxmargin.compiling.interrupts import uninterrupted
from maxmargin.compiling.threads import threads
from maxmargin.history import History, Measurement
from maxmargin.limits import Limits, OutOfTime, Pace, now, until
from maxmargin.methods.protocol import grain, oracle_calls, traits
from maxmargin.methods.sampling import Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance
from maxmargin.problems.problem import AnyProblem
from maxmargin.result import Callback, Progress, Result, Status
from maxmargin.resume import Beginning, Stopped, as_warm_start

# Certificates that have been started may exceed the time limit by this factor.
_GRACE = 1.1


def solve(
    problem: object,
    method: object,
    *,
    tol: float = 1e-3,
    rtol: float = 0.0,
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
    tol, rtol : float
        Stop when the duality gap is at most ``tol``, or at most ``rtol`` times the objective. The objective
        is an upper bound on the mean loss of the training examples; ``tol`` is in its units. A gap of 0.001
        says that no weights have an objective that is lower by more than 0.001. ``rtol`` does not depend on
        these units. On separable data the objective may be close to zero, so keep ``tol`` above zero.
    max_passes : int
        Stop after this many passes over the data, not counting those of a cache.
    time_limit : float, optional
        Stop after this many seconds: the start and certificates count, compilation does not. The last
        certificate is made in time if the limit allows for one; if not, the gap is infinite. A method that
        visits all examples before it moves gives up a pass that it cannot complete in time.
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
        the same, or the same with examples appended. On equal data, the first certificate costs no oracle
        call. Otherwise outputs are compared at random weights, by some passes, which the history counts.
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
    limits = _arguments.checked_limits(tol, rtol, max_passes, time_limit)
    _arguments.check_count("check_every", check_every)
    _arguments.check_n_jobs(n_jobs)
    _arguments.check_sampling(sampling, method)
    draw, rng = _arguments.drawer(sampling, kinds.n_blocks(checked)), _arguments.generator(random_state)
    warm, called = None if start is None else as_warm_start(start), _arguments.checked_callbacks(callbacks)
    begin_time = now()
    with threads(n_jobs), until(begin_time + _GRACE * limits.time_limit):
        beginning = kinds.begin(checked, method, warm)
        run = _Run(checked, method, beginning, limits, called, begin_time)
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
        limits: Limits,
        callbacks: tuple[Callback, ...],
        begin_time: float,
    ) -> None:
        self.problem, self.method, self.callbacks = problem, method, callbacks
        self.limits = limits
        self.n = kinds.n_blocks(problem)
        self.state, self.beginning = beginning.state, beginning
        self.begin_time, self.pace, self.certificate_seconds = begin_time, Pace(), 0.0
        self.passes, self.visits, self.certified_visits, self.seconds = 0, 0, 0, 0.0
        self.rows: list[Measurement] = []
        self.whole, self.other_was_best = True, False
        self.best_w, self.best_primal = beginning.w, math.inf
        self.best_dual = self.best_ell = beginning.dual  # zero without a warm start

    def begin(self) -> Status | None:
        """Certify the initial state; return a status if its gap is small enough."""
        try:
            found = kinds.first_certificate(self.problem, self.method, self.beginning)
        except OutOfTime:
            found = objective.unmeasured(self.method, self.state, self.problem)
        self._note(found)
        return Status.CONVERGED if self.limits.are_met(self.best_primal, self.best_dual) else None

    def one_pass(self, visits: Visits) -> bool:
        """Make the visits of a pass, piece by piece; return False if the time limit is reached."""
        cut, together = traits(self.method).moves_blocks, grain(self.method, self.problem)
        done, total = 0, n_visits(visits)
        while done < total:
            if self.is_late():
                return False
            length = min(self.pace.length * together, total - done) if cut else total
            try:
                elapsed = self._advance(some_visits(visits, done, done + length))
            except OutOfTime:
                self.whole = True  # a method that gives up a pass has not moved
                return False
            done += length
            self.pace.note(length / together, elapsed)
        self.passes += 1
        return True

    def _advance(self, visits: Visits) -> float:
        """Make the visits; return the seconds they took."""
        begin = now()
        with uninterrupted(), until(self.begin_time + self.limits.time_limit - self.reserve()):
            self.whole = False
            self.state = advance(self.method, self.state, self.problem, visits)
            self.whole = True
            elapsed = now() - begin
            self.seconds += elapsed
            self.visits += n_visits(visits)
        return elapsed

    def certify(self) -> None:
        """Measure primal, dual and gap of the method's answer.

        An answer may have several weight vectors, and each costs a pass of the oracle. All but the first are
        measured only in certificates 1, 2, 4, 8, ..., and as long as one of them is the best.
        """
        count, begin = len(self.rows) + 1, now()
        compare = self.other_was_best or count & (count - 1) == 0
        compare = compare and self.seconds_left() >= 3.0 * self.expected_seconds()
        try:
            found = objective.certificate(self.method, self.state, self.problem, compare)
        except OutOfTime:
            if self.rows:
                return
            found = objective.unmeasured(self.method, self.state, self.problem)
        self.other_was_best = found.is_other
        self._note(found)
        self.certificate_seconds = now() - begin

    def is_late(self) -> bool:
        """Whether only the time for the last certificate is left, after a pass that cannot be cut."""
        a_pass = 0.0 if traits(self.method).moves_blocks else self.seconds / max(self.passes, 1)
        return self.seconds_left() <= self.reserve() + a_pass

    def reserve(self) -> float:
        """Return the time to leave for the last certificate; none if it would take half of the limit."""
        expected = self.expected_seconds()
        return expected if expected <= 0.5 * self.limits.time_limit else 0.0

    def seconds_left(self) -> float:
        return self.limits.time_limit - (now() - self.begin_time)

    def expected_seconds(self) -> float:
        """Return about how long a certificate takes: as long as the last one, or as a pass."""
        if self.rows or self.visits == 0:
            return self.certificate_seconds
        return self.seconds / self.visits * self.n

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
        if primal < self.best_primal or len(self.rows) == 1:
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
        except OutOfTime:
            return
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
        except (KeyboardInterrupt, OutOfTime):
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
        if self.is_late():
            status = Status.TIME_LIMIT
        elif any(answer is False for answer in answers):
            status = Status.STOPPED
        elif self.passes >= self.limits.max_passes:
            status = Status.MAX_PASSES
        if status is not None:
            self.certify_the_rest()
        return Status.CONVERGED if self.limits.are_met(self.best_primal, self.best_dual) else status

    def progress(self) -> Progress:
        last, calls = self.rows[-1] if self.rows else None, self.oracle_calls()
        return Progress(self.visits / self.n, calls, self.seconds, last, self.limits)

    def oracle_calls(self) -> int:
        """Return the number of oracle calls of the method and of its warm start."""
        return self.beginning.calls + oracle_calls(self.method, self.state, self.visits)

    def result(self, status: Status) -> Result:
        w = self.best_w
        weights = kinds.as_weights(self.problem, w)
        gap, history = self.best_primal - self.best_dual, History(tuple(self.rows))
        stopped = Stopped(self.problem, self.method, self.state if self.whole else None)
        certified = kinds.is_certified(self.problem)
        return Result(weights, self.best_primal, self.best_dual, gap, certified, status, history, w, stopped)
