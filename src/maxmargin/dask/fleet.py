"""Where the partitions of a run are, how they get there again when a worker is lost, and their rounds."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar, cast

import cloudpickle
import dask
import numpy as np
from distributed import Future

from maxmargin.dask import tasks
from maxmargin.dask.calls import (
    Calls,
    Description,
    Job,
    PartitionError,
    Report,
    Trouble,
    Turn,
    Update,
    difference,
    encoded,
    seconds_left,
)
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import OutOfTime
from maxmargin.structures.problem import Sizes

_MOST_LOSSES = 3  # losses of one partition in a row
_MOST_TROUBLES = 20  # troubles in a row
_LOADING = np.inf  # loading may take any time


class Part(NamedTuple):
    """What one thread of a worker moves in a round."""

    address: str
    k: int
    partitions: tuple[int, ...]


class Fleet:
    """The workers of a run and the partitions that they hold.

    Parameters
    ----------
    calls : Calls
    sources : list of tuples
        The arguments of ``make`` for each partition: delayed objects, futures or plain ones.
    make : callable
        Makes the problem of a partition.
    """

    def __init__(
        self, calls: Calls, sources: Sequence[tuple[object, ...]], make: Callable[..., object]
    ) -> None:
        self.calls, self.sources, self.make = calls, list(sources), make
        self._make_bytes = len(cloudpickle.dumps(make))
        self.run, self.epoch = uuid.uuid4().hex, 0
        self.method: object = None
        self.places: dict[int, str] = {}
        self.about: dict[int, Description] = {}
        self._tickets: dict[int, Future] = {}
        self._losses, self._troubles = Counter[int](), 0

    @property
    def sizes(self) -> Sizes:
        """The sizes of the whole problem."""
        all_sizes = [self.about[p].sizes for p in range(len(self.sources))]
        largest = Sizes(*map(max, zip(*all_sizes, strict=True)))
        return largest._replace(examples=sum(each.examples for each in all_sizes))

    def parts(self) -> list[Part]:
        """Return the parts: the partitions of each worker, shared among its threads."""
        threads, at = self.calls.workers(), dict[str, list[int]]()
        for p, address in sorted(self.places.items()):
            at.setdefault(address, []).append(p)
        gone = set(at) - set(threads)
        if gone or len(self.places) < len(self.sources):
            raise Trouble(gone)
        return shared(at, threads)

    def load(self) -> None:
        """Load all partitions that no worker holds, however often workers are lost meanwhile."""
        while missing := [p for p in range(len(self.sources)) if p not in self.places]:
            self._load_on(self._placed(missing), dict.fromkeys(missing))

    def _placed(self, missing: Sequence[int]) -> dict[int, str]:
        """Return a worker for each partition: one that has its data, else the one with the least to do."""
        threads = self.calls.some_workers()
        load = Counter(dict.fromkeys(threads, 0.0))
        for p, address in self.places.items():
            load[address] += self._size(p)
        chosen = {} if self.about else self._where_data_are(missing, set(threads))
        for p in missing:
            if p not in chosen:
                chosen[p] = min(threads, key=lambda address: (load[address] / threads[address], address))
            load[chosen[p]] += self._size(p)
        return chosen

    def _where_data_are(self, missing: Sequence[int], usable: set[str]) -> dict[int, str]:
        futures = {p: [part for part in self.sources[p] if isinstance(part, Future)] for p in missing}
        known = [future for some in futures.values() for future in some]
        at = self.calls.client.who_has(known) if known else {}
        places = {p: [a for future in some for a in at.get(future.key, ())] for p, some in futures.items()}
        return {p: next(a for a in some if a in usable) for p, some in places.items() if usable & set(some)}

    def _size(self, p: int) -> int:
        return int(self.about[p].sizes.examples) if p in self.about else 1

    def _load_on(self, chosen: dict[int, str], states: dict[int, object]) -> None:
        """Load partitions on these workers; those whose worker is lost meanwhile stay without a place."""
        try:
            make = self.calls.message(self.make, self._make_bytes, min(chosen.values()))
            futures = {p: self._loading(p, address, make, states[p]) for p, address in chosen.items()}
            # A state comes from the worker that holds the partition.
            needs = {p: (self.places[p],) for p in chosen if states[p] is not None and p in self.places}
            told = {answer: Job(chosen[p], (p,), p, needs.get(p, ())) for p, (_, answer) in futures.items()}
            found = self.calls.gathered(told, _LOADING)
            for p, about in zip(chosen, cast("list[Description]", found), strict=True):
                self._check(p, about)
                self.about[p], self._tickets[p] = about, futures[p][0]
            if self.method is not None:
                self._begin(chosen, anew=False)
            self.places.update(chosen)
        except Trouble as trouble:
            self._note(trouble, {**self.places, **chosen})

    def _loading(self, p: int, address: str, make: object, state: object) -> list[Future]:
        """Return the futures of a partition and of its description; the user's own tasks run anywhere."""
        with dask.annotate(workers=[address], allow_other_workers=False):
            held = dask.delayed(tasks.load, pure=False)(self.run, p, make, state, *self.sources[p])
            both = [held, dask.delayed(tasks.describe, pure=False)(held)]
        futures: list[Future] = self.calls.client.compute(both)
        return futures

    def _check(self, p: int, found: Description) -> None:
        """Raise if a partition is not what it was, or does not go with the others."""
        if found != self.about.get(p, found):
            raise PartitionError(
                f"maxmargin.dask: partition {p} must be the same when it is computed again, got other data; "
                "fix seeds, or store the partitions in files."
            )
        first = next(iter(self.about.values()), found)
        if (found.sizes.weights, found.kind) != (first.sizes.weights, first.kind):
            raise PartitionError(
                f"maxmargin.dask: partition {p} must have the {first.sizes.weights} weights of the others, "
                f"of a {first.kind}, got {found.sizes.weights}, of a {found.kind}; give all the same "
                "features and labels."
            )

    def start(self, method: object) -> None:
        """Put all dual variables at the truth."""
        self.method = method
        while True:
            try:
                self._begin(self.places, anew=True)
                return
            except Trouble as trouble:
                self.recover(trouble)

    def _begin(self, places: dict[int, str], anew: bool) -> None:
        jobs = [Job(address, (self.run, p, self.method, anew), p) for p, address in places.items()]
        self.calls.ask(tasks.begin, jobs, _LOADING)

    def recover(self, trouble: Trouble) -> None:
        """Load lost partitions on other workers, with dual variables at the truth; a new epoch begins."""
        self.epoch += 1
        self._note(trouble, dict(self.places))
        self.load()

    def _note(self, trouble: Trouble, places: dict[int, str]) -> None:
        """Count troubles and the partitions that were lost; raise if there are too many in a row."""
        self._troubles += 1
        there = set(self.calls.workers())
        lost = [p for p, address in places.items() if address in trouble.addresses or address not in there]
        self._losses.update(lost)
        for p in lost:
            self.places.pop(p, None)
            self._tickets.pop(p, None)
        often = [str(p) for p in sorted(lost) if self._losses[p] >= _MOST_LOSSES]
        if often:
            raise PartitionError(
                f"maxmargin.dask: partition {', '.join(often)} was lost with its worker {_MOST_LOSSES} times "
                "in a row; see the workers' logs: they may be short of memory, or timeout too short."
            )
        if self._troubles >= _MOST_TROUBLES:
            raise RuntimeError(
                f"maxmargin.dask: workers must answer, got {_MOST_TROUBLES} calls in a row without one; "
                "see the workers' logs."
            )

    def note_success(self) -> None:
        """Note that all partitions have done a round."""
        self._losses.clear()
        self._troubles = 0

    def balance(self) -> None:
        """Give partitions, with their dual variables, to workers that have joined and have none."""
        for p, address in moves(self.places, self.calls.workers()).items():
            state = self.calls.submit(tasks.state_of, Job(self.places[p], (self.run, p), p))
            self._load_on({p: address}, {p: state})

    def close(self) -> None:
        """Let go of all partitions, so that workers free them."""
        self._tickets.clear()
        self.places.clear()


def shared(at: dict[str, list[int]], threads: dict[str, int]) -> list[Part]:
    """Return the partitions of workers, shared among their threads."""
    return [
        Part(address, k, tuple(mine[k :: threads[address]]))
        for address, mine in sorted(at.items())
        for k in range(min(threads[address], len(mine)))
    ]


def moves(places: dict[int, str], threads: dict[str, int]) -> dict[int, str]:
    """Return which partitions to move to which idle workers, so that no worker has many more than others."""
    places, moved = dict(places), dict[int, str]()
    for address in sorted(set(threads) - set(places.values())):
        count = Counter(places.values())
        while True:
            busiest = max(count, key=lambda each: (count[each] / threads.get(each, 1), each))
            after = (count[address] + 1) / threads[address]
            if count[busiest] < 2 or after > (count[busiest] - 1) / threads.get(busiest, 1):
                break
            p = max(p for p, at in places.items() if at == busiest)
            places[p] = moved[p] = address
            count.update({busiest: -1, address: 1})
    return moved


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
