"""A run of the driver: passes, certificates, stopping, time limit and interrupts; no arithmetic."""

import math
from collections.abc import Callable
from typing import NamedTuple

from maxmargin.files.checkpoint import Keeper
from maxmargin.methods.protocol import grain, oracle_calls, traits
from maxmargin.methods.rules import some_visits
from maxmargin.methods.sweep import advance
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import Limits, OutOfTime, Pace, deadline_at, now, uninterrupted
from maxmargin.runtime.threads import n_threads
from maxmargin.solving import objective
from maxmargin.solving.kinds import Kind
from maxmargin.solving.result import Callback, Measurement, Progress, Result, Status, Stopped
from maxmargin.solving.resume import Beginning, Place, RunState
from maxmargin.structures.problem import AnyProblem, unproved

_NEARLY = 1.1  # a gap within this factor of its target is considered almost small enough


class _Due(NamedTuple):
    """A pending certificate, and the progress of the run when it began."""

    certificate: objective.ConcurrentCertificate
    place: Place


class Run:
    """One run of the driver: its state, its limits and the clock."""

    def __init__(
        self,
        kind: Kind,
        at: RunState,
        limits: Limits,
        callbacks: tuple[Callback, ...],
        check_every: int,
        keeper: Keeper | None,
        begin_time: float,
    ) -> None:
        self.kind, self.problem, self.method, self.callbacks = kind, kind.problem, kind.method, callbacks
        self.at, self.limits, self.check_every, self.keeper = at, limits, check_every, keeper
        own = traits(kind.method)
        self.n, self.whole, self.can_cut = kind.n_blocks, True, own.moves_blocks
        self.begin_time, self.pace = begin_time, Pace("visits")
        free = n_threads() - own.threads
        self.free_threads = free if free > 0 and kind.certifies_during_passes else 0
        self.due: _Due | None = None

    def begin(self, beginning: Beginning) -> Status | None:
        """Certify a warm-started state; return a status if its gap is small enough."""
        try:
            found = self.kind.first_certificate(beginning)
        except OutOfTime:
            found = objective.unmeasured(self.method, self.at.state, self.problem)
        self._note(found, self._place())
        return self.converged()

    def resume(self) -> Status | None:
        """Compute the certificate that was due when the run stopped, if any; return why to stop at once."""
        if not self.at.left:
            self.certify_if_due()
        return self.reason_to_stop()

    def one_pass(self) -> bool:
        """Make the visits of a pass, or the rest of one, piece by piece; return False if time is up."""
        at, together = self.at, grain(self.method, self.problem)
        if not at.left:
            with uninterrupted():
                at.visits, at.done = at.sampler.draw(at.rng), 0
        while at.left:
            if self.is_late():
                return False
            length = min(self.pace.length * together, at.left) if self.can_cut else at.left
            try:
                self.pace.note(length / together, self._advance(length))
            except OutOfTime:
                self.whole = True  # a method that abandons a pass has not moved
                return False
            self._keep()
        return True

    def _advance(self, length: int) -> float:
        """Make the next visits of the pass; return the seconds they took."""
        at, begin = self.at, now()
        with uninterrupted(), deadline_at(self.deadline()):
            visits, self.whole = some_visits(at.visits, at.done, at.done + length), False
            at.state = advance(self.method, at.state, self.problem, visits)
            self.whole = True
            elapsed = now() - begin
            at.seconds += elapsed
            at.count(length)
        return elapsed

    def _keep(self) -> None:
        """Store the state if it is due, with all certificates that began before it; Ctrl-C is deferred."""
        if self.keeper is not None and self.keeper.is_due(self.at):
            self.collect()
            with uninterrupted():
                self.keeper.save(self.at)

    def certify_if_due(self) -> None:
        """Certify the answer every few passes: in parallel with the next pass, if threads are free."""
        self.collect()
        is_new = self.at.certified != self.at.visited
        if self.at.passes % self.check_every == 0 and is_new and not self.converged():
            if self.free_threads and not self._is_near_end():
                with uninterrupted():
                    certificate = objective.ConcurrentCertificate(
                        *self._certificate_arguments(), self.free_threads
                    )
                    self.due = _Due(certificate, self._place())
            else:
                self.certify()
                self.stop_at_zero()
            self._keep()

    def _is_near_end(self) -> bool:
        """Whether the gap, if it keeps falling by the same factor, is almost small enough now.

        A pass in parallel with the certificate would then be wasted.
        """
        if len(self.at.rows) < 2:
            return False
        before, last = (row.gap for row in self.at.rows[-2:])
        expected = last * min(last / before, 1.0) if before > 0.0 else last
        return expected <= _NEARLY * self.limits.target(self.at.best_primal)

    def certify(self) -> None:
        """Measure primal, dual and gap of the method's answer."""
        place = self._place()
        self._note_found(lambda: objective.certificate(*self._certificate_arguments()), place)
        self.at.certificate_seconds = now() - place.time

    def collect(self) -> None:
        """Finish the pending certificate, if any, and record it."""
        if self.due is not None:
            due, self.due = self.due, None
            self._note_found(due.certificate.finish, due.place)
            self.at.certificate_seconds = due.certificate.seconds
            self.stop_at_zero()

    def close(self) -> None:
        """Abandon the pending certificate."""
        if self.due is not None:
            self.due.certificate.abandon()

    def _certificate_arguments(self) -> tuple[object, object, AnyProblem, bool]:
        """Return method, state, problem, and whether to compare all weights of the answer.

        An answer may have several weight vectors, and each costs a pass of the oracle. All but the first are
        measured only in certificates 1, 2, 4, 8, ..., and as long as one of them is the best.
        """
        at, count = self.at, len(self.at.rows) + 1
        compare = at.other_was_best or count & (count - 1) == 0
        if compare and self.limits.time_limit < math.inf:
            compare = self.seconds_left() >= 3.0 * self.expected_seconds()
        return self.method, at.state, self.problem, compare

    def _place(self) -> Place:
        return Place(self.at.visited, self.oracle_calls(), self.at.seconds, now(), self.whole)

    def _note_found(self, find: Callable[[], objective.Certificate], place: Place) -> None:
        """Compute a certificate and record it; if time is up, at least a lower bound."""
        at = self.at
        try:
            found = find()
        except OutOfTime:
            if at.rows:
                return
            found = objective.unmeasured(self.method, at.state, self.problem)
        with uninterrupted():
            at.other_was_best = found.is_other
            self._note(found, place)

    def is_late(self) -> bool:
        """Whether only the time for the last certificate is left, after a pass that cannot be split."""
        if self.limits.time_limit == math.inf:  # short passes would spend their time reading the clock
            return False
        a_pass = 0.0 if self.can_cut else self.at.seconds / max(self.at.passes, 1)
        return self.seconds_left() <= self.reserve() + a_pass

    def deadline(self) -> float:
        """Return when steps must end, so that there is time for the last certificate."""
        limit = self.limits.time_limit
        return limit if limit == math.inf else self.begin_time + limit - self.reserve()

    def reserve(self) -> float:
        """Return the time to reserve for final certificates; none if one would take half of the limit."""
        expected = self.expected_seconds()
        under_way = 0.0 if self.due is None else max(0.0, expected - (now() - self.due.place.time))
        return expected + under_way if expected <= 0.5 * self.limits.time_limit else 0.0

    def seconds_left(self) -> float:
        return self.limits.time_limit - (now() - self.begin_time)

    def expected_seconds(self) -> float:
        """Return about how long a certificate takes: as long as the last one, or as a pass."""
        at = self.at
        if at.rows or at.visited == 0:
            return at.certificate_seconds
        return at.seconds / at.visited * self.n

    def _note(self, found: objective.Certificate, place: Place) -> None:
        """Add a certificate to the history, and keep the best bounds.

        After an interrupted step, weights and dual loss may not match. They then give no lower bound, and the
        best one so far is kept.
        """
        at, dual, primal = self.at, self.at.best_dual, found.primal
        if place.is_whole:
            dual, at.best_ell = found.dual, max(at.best_ell, found.ell)
        row = Measurement(place.calls / self.n, place.calls, place.seconds, primal, dual, primal - dual)
        at.note(found, row, place.visited)
        self.kind.check_bounds(self.at.best_primal, self.at.best_dual)

    def stop_at_zero(self) -> None:
        """End the run at zero weights if they are good enough, as on data without signal.

        Their objective is measured only if its lower bound, `best_ell`, is small enough.
        """
        at = self.at
        if self.converged() or not self.limits.are_met(at.best_ell, at.best_dual):
            return
        try:
            w, primal = self.kind.no_worse(at.best_w, at.best_primal)
        except OutOfTime:
            return
        at.best_ell = max(at.best_ell, primal)
        if self.limits.are_met(primal, at.best_dual):
            self._replace_best(w, primal)

    def compare_with_zero(self, status: Status) -> None:
        """Make sure that the result is no worse than zero weights, up to ``tol``.

        Their objective is the mean of the largest losses, so it is at least every dual loss: a run that came
        close to its optimum need not measure it.
        """
        at = self.at
        is_known = at.best_primal < math.inf
        if at.best_primal <= at.best_ell or (is_known and status is Status.CONVERGED):
            return
        try:
            found = self.kind.no_worse(at.best_w, at.best_primal)
        except OutOfTime:
            return
        except KeyboardInterrupt:
            if not is_known:
                raise
        else:
            self._replace_best(*found)

    def _replace_best(self, w: FloatArray, primal: float) -> None:
        """Take other weights as the best, if they are, with a row of their own in the history."""
        if primal < self.at.best_primal:
            self.at.replace_best(w, primal)
            self.kind.check_bounds(self.at.best_primal, self.at.best_dual)

    def rebuild(self) -> None:
        """Measure the best weights again if rounding errors have built up in their redundant entries."""
        at = self.at
        try:
            w, primal = self.kind.rebuilt(at.best_w, at.best_primal)
        except (KeyboardInterrupt, OutOfTime):
            return  # the weights have a certificate already
        if w is not at.best_w:
            at.correct_best(w, primal)
            self.kind.check_bounds(at.best_primal, at.best_dual)

    def finish(self) -> None:
        """Store the state, then certify the steps since the last certificate; an interrupt skips this.

        This order gives a run that continues from the file the history of one that never stopped. A run that
        converged already has a certificate that is good enough.
        """
        at = self.at
        try:
            self.collect()
            if self.whole and self.keeper is not None:
                with uninterrupted():
                    self.keeper.save(at)
            if not at.rows or (at.certified != at.visited and not self.converged()):
                self.certify()
        except KeyboardInterrupt:
            if not at.rows:
                raise

    def status(self, finished: bool) -> Status | None:
        """Call the callbacks after a finished pass; return why to stop now, or None to continue."""
        at, answers = self.at, list[object]()
        if finished and self.callbacks:
            last = at.rows[-1] if at.rows else None
            progress = Progress(at.visited / self.n, self.oracle_calls(), at.seconds, last, self.limits)
            answers = [callback(progress) for callback in self.callbacks]
        return self.reason_to_stop(any(answer is False for answer in answers))

    def reason_to_stop(self, is_asked_to: bool = False) -> Status | None:
        """Return why to stop now, or None."""
        if self.converged():
            return Status.CONVERGED
        if self.has_missed() and self._is_level():
            return Status.MISSED
        if self.is_late():
            return Status.TIME_LIMIT
        if is_asked_to:
            return Status.STOPPED
        return Status.MAX_PASSES if self.at.passes >= self.limits.max_passes else None

    def converged(self) -> Status | None:
        """Return the status of a run whose gap is small enough, else None."""
        is_small = self.limits.are_met(self.at.best_primal, self.at.best_dual)
        return Status.CONVERGED if is_small and not self.has_missed() else None

    def has_missed(self) -> bool:
        """Whether the gap is negative: an approximate oracle without a bound missed maxima.

        The gap then says nothing of the distance from the optimum.
        """
        return objective.exceeds(self.at.best_dual, self.at.best_primal)

    def _is_level(self) -> bool:
        """Whether the last certificate raised the lower bound by no more than the gap that was asked for."""
        *before, last = (row.dual for row in self.at.rows)
        return bool(before) and last - max(before) <= self.limits.target(self.at.best_primal)

    def oracle_calls(self) -> int:
        """Return the number of oracle calls of the method and of its warm start."""
        return self.at.first_calls + oracle_calls(self.method, self.at.state, self.at.visited)

    def result(self, status: Status) -> Result:
        at, w = self.at, self.at.best_w
        weights, gap = self.kind.as_weights(w), at.best_primal - at.best_dual
        stopped = Stopped(self.problem, self.method, at.state if self.whole else None)
        certified = unproved(self.problem) is None
        if self.has_missed() and status not in (Status.INTERRUPTED, Status.STOPPED):
            status = Status.MISSED
        return Result(weights, at.best_primal, at.best_dual, gap, certified, status, at.history, w, stopped)
