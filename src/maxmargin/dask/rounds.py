"""What a run asks of its workers: rounds, hinges, and the sums of their dual variables."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.dask import tasks
from maxmargin.dask.calls import Job, Trouble, seconds_left
from maxmargin.dask.changes import difference, encoded
from maxmargin.dask.fleet import Fleet, Part
from maxmargin.dask.messages import Report, Turn, Update
from maxmargin.limits import OutOfTime

Answer = TypeVar("Answer")
# Whether a task has ended, or that and what it has found so far.
Done = TypeVar("Done", bool, tuple[bool, float])
_BEAT = 3.0  # seconds that a task takes
_LAST = 16  # rounds from which the cost of one is estimated


class Round(NamedTuple):
    """What a round took.

    Attributes
    ----------
    visits : int
        Number of examples visited.
    parts : int
        Number of parts that moved in parallel.
    seconds : float
        From the weights in the client to those of the next round.
    oracle_seconds : float
        The longest time that a part took for its visits.
    bytes_out, bytes_in : int
        Length of the message with the weights, of which each worker gets a copy, and of the sum of all moves.
    bytes_between : int
        Length of the messages with the moves of all parts, of which workers made the sum.
    """

    visits: int
    parts: int
    seconds: float
    oracle_seconds: float
    bytes_out: int
    bytes_in: int
    bytes_between: int


class Rounds:
    """Rounds of a fleet, and what they took.

    Parameters
    ----------
    fleet : Fleet

    Attributes
    ----------
    log, earlier : list of Round
        All rounds, and the last few before this pass.
    """

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.log, self.earlier = fleet, list[Round](), list[Round]()
        self._calls, self._version, self._measures = fleet.calls, 0, 0
        self._sent, self._informed, self._epoch = np.zeros(0), set[str](), 0
        self._begin, self._bytes_out = 0.0, 0

    def one(self, turn: Turn, w: FloatArray, parts: Sequence[Part]) -> Report:
        """Let all parts move from the weights w; return the sum of what they have done."""
        self._begin = time.perf_counter()
        updates, self._bytes_out = self._updates(w, parts)
        found = self._moved(turn, updates, parts)
        self.fleet.note_success()
        return found

    def note(self, turn: Turn, parts: Sequence[Part], found: Report) -> None:
        """Note what a round took, when its sum has become part of the weights."""
        took, visits = time.perf_counter() - self._begin, turn.stop - turn.first
        sent = self._bytes_out, found.change.n_bytes, found.n_bytes
        self.log.append(Round(visits, len(parts), took, found.seconds, *sent))

    def _moved(self, turn: Turn, updates: dict[str, object], parts: Sequence[Part]) -> Report:
        """Let all parts move: in one task each, or in as many as a long round takes."""
        fleet, number = self.fleet, self._version

        def move(part: Part, seconds: float) -> Job:
            update = updates[part.address]
            given = fleet.run, part.k, fleet.epoch, part.partitions, number, turn, update, seconds
            return Job(part.address, given)

        beat = _beat(seconds_left())
        found = self._calls.summed(tasks.move_and_collect, [move(part, beat) for part in parts])
        if found is not None:
            return found
        self._all_the_way(tasks.move, move, parts)
        wanted = fleet.epoch, number, turn.method
        jobs = [_collecting(fleet.run, part, *wanted) for part in parts]
        return _there(self._calls.summed(tasks.collect, jobs))

    def _updates(self, w: FloatArray, parts: Sequence[Part]) -> tuple[dict[str, object], int]:
        """Return the message with the weights for each worker, and the length of the longest.

        After trouble it is not known which messages arrived, so all workers get all weights.
        """
        self._version += 1
        addresses, version = sorted({part.address for part in parts}), self._version
        informed = self._informed & set(addresses) if self._epoch == self.fleet.epoch else set()
        made: dict[bool, Update] = {}
        if informed:
            made[True] = Update(version, version - 1, difference(w, self._sent))
        if set(addresses) - informed:
            made[False] = Update(version, None, encoded(w))
        longest = max(update.change.n_bytes for update in made.values())
        sent = {known: self._calls.message(update, longest, addresses[0]) for known, update in made.items()}
        self._sent, self._informed, self._epoch = w.copy(), set(addresses), self.fleet.epoch
        return {address: sent[address in informed] for address in addresses}, longest

    def _all_the_way(
        self,
        task: Callable[..., Done],
        job: Callable[[Part, float], Job],
        parts: Sequence[Part],
        must_end: bool = False,
    ) -> list[Done]:
        """Call a task for each part again until it is done, or time is up; return the last answers."""
        answers: dict[int, Done] = {}
        open_parts = list(range(len(parts)))
        while open_parts:
            left = seconds_left()
            if left <= 0.0 and must_end:
                raise OutOfTime
            if left <= 0.0 and answers:
                break
            jobs = [job(parts[k], _beat(left)) for k in open_parts]
            answers.update(zip(open_parts, self._calls.ask(task, jobs), strict=True))
            open_parts = [k for k in open_parts if not _is_done(answers[k])]
        return [answers[k] for k in range(len(parts))]

    def hinges(self, w: FloatArray) -> float:
        """Return the sum of the hinges of all examples at w."""
        fleet, parts = self.fleet, self.fleet.parts()
        self._measures += 1
        number, change = self._measures, encoded(w)
        message = self._calls.message(change, change.n_bytes, parts[0].address)

        def measure(part: Part, seconds: float) -> Job:
            return Job(part.address, (fleet.run, part.k, part.partitions, number, message, seconds))

        answers = self._all_the_way(tasks.hinges, measure, parts, must_end=True)
        return float(sum(found for _, found in answers))

    def image(self, method: object) -> Report:
        """Return the sum of Phi_i z_i over all examples, and that of their dual losses."""
        fleet = self.fleet
        jobs = [Job(at, (fleet.run, fleet.epoch, p, method), p) for p, at in sorted(fleet.places.items())]
        return _there(self._calls.summed(tasks.image, jobs, np.inf))

    def kappa(self, method: object, n: int) -> float:
        """Return the median of the kappas that the partitions suggest."""
        fleet = self.fleet
        jobs = [Job(at, (fleet.run, p, method, n), p) for p, at in sorted(fleet.places.items())]
        return float(np.median(self._calls.ask(tasks.kappa, jobs, np.inf)))

    def layout(self) -> IntArray:
        """Return where the weights are that users see, in their order."""
        fleet = self.fleet
        found: IntArray = self._calls.ask(tasks.layout, [Job(fleet.places[0], (fleet.run, 0), 0)], np.inf)[0]
        return found

    def end_pass(self) -> None:
        """Let workers that have joined take part; note what rounds have cost."""
        self.earlier = self.log[-_LAST:]
        self.fleet.balance()

    def surely(self, question: Callable[[], Answer]) -> Answer:
        """Return the answer to a question, asked again after troubles."""
        while True:
            try:
                return question()
            except Trouble as trouble:
                self.fleet.recover(trouble)


def _collecting(run: str, part: Part, epoch: int, number: int, method: object) -> Job:
    return Job(part.address, (run, part.k, epoch, part.partitions, number, method))


def _beat(left: float) -> float:
    """Return the seconds of a task, if these are left for all."""
    return max(min(_BEAT, left), 0.01)


def _there(report: Report | None) -> Report:
    assert report is not None  # only moves can be unfinished
    return report


def _is_done(answer: bool | tuple[bool, float]) -> bool:
    return answer if isinstance(answer, bool) else answer[0]
