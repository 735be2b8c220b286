"""Calls of workers by the client, and what they say to each other: turns, changes of weights, reports.

No call waits forever: `Trouble` is raised instead, or `OutOfTime` if the time limit of the run comes first.
"""

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import NamedTuple, TypeVar, cast

import numpy as np
from distributed import Client, Future, KilledWorker, Scheduler, wait
from numpy.typing import NDArray

from maxmargin.methods.protocol import NamedMethod
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.limits import OutOfTime, deadline_of_share, is_held_back, now
from maxmargin.structures.problem import Sizes

_DENSE_BYTES, _SPARSE_BYTES = 8, 12
_MOST = 2**32  # entries that uint32 can number


class Change(NamedTuple):
    """A vector of ``size`` entries: ``values`` at ``where``, else zero; at all places if it is None.

    A message has the numbers of the entries and their values, 12 bytes each, or all values, 8 bytes each,
    whichever is shorter.
    """

    size: int
    where: NDArray[np.uint32] | None
    values: FloatArray

    @property
    def n_bytes(self) -> int:
        """The length of the message."""
        return self.values.nbytes + (0 if self.where is None else self.where.nbytes)


def encoded(vector: FloatArray) -> Change:
    """Return a vector as the shorter message; it is copied."""
    return _chosen(vector, np.flatnonzero(vector))


def difference(new: FloatArray, old: FloatArray) -> Change:
    """Return the entries of ``new`` that differ from ``old``, as they are: to be written, not added."""
    return _chosen(new, np.flatnonzero(new != old))


def _chosen(vector: FloatArray, where: NDArray[np.intp]) -> Change:
    if len(where) * _SPARSE_BYTES < len(vector) * _DENSE_BYTES and len(vector) <= _MOST:
        return Change(len(vector), where.astype(np.uint32), vector[where])
    return Change(len(vector), None, vector.copy())


def write(change: Change, vector: FloatArray) -> None:
    """Give the entries of a `difference` to a vector."""
    vector[slice(None) if change.where is None else change.where] = change.values


def add(change: Change, scale: float, vector: FloatArray) -> None:
    """``vector += scale * change``"""
    vector[slice(None) if change.where is None else change.where] += scale * change.values


def dense(change: Change) -> FloatArray:
    """Return a change as a vector."""
    vector = np.zeros(change.size)
    write(change, vector)
    return vector


def total(first: Change, second: Change) -> Change:
    """Return the sum of two changes."""
    if first.where is None or second.where is None:
        vector = dense(first)
        add(second, 1.0, vector)
        return Change(first.size, None, vector)
    where = np.union1d(first.where, second.where)
    values = np.zeros(len(where))
    for part in (first, second):
        values[np.searchsorted(where, part.where)] += part.values  # type: ignore[arg-type]
    if len(where) * _SPARSE_BYTES < first.size * _DENSE_BYTES:
        return Change(first.size, where, values)
    return Change(first.size, None, dense(Change(first.size, where, values)))


class Lost(Exception):
    """What a task needs is not on this worker, or its epoch is over."""


class PartitionError(ValueError):
    """A partition that cannot be loaded or trained on; the message has its number."""


class Turn(NamedTuple):
    """What parts do in a round.

    Attributes
    ----------
    method : method
        The block method, with the lam of the whole problem.
    sigma : float
        How often a part's steps count.
    n : int
        Number of examples of all partitions.
    seed, sampling : int, str
        What the visits of this pass are drawn from.
    first, stop : int
        Which of the n visits of the pass.
    """

    method: NamedMethod
    sigma: float
    n: int
    seed: int
    sampling: str
    first: int
    stop: int


class Update(NamedTuple):
    """The common weights: entries that changed since version ``base``, or all nonzero ones if it is None."""

    version: int
    base: int | None
    change: Change


class Report(NamedTuple):
    """What parts have done: the sum of their moves, that of the moves' squares, and the sum of dual losses.

    ``seconds`` are the longest of a part, ``n_bytes`` those of all messages that this one was made from.
    """

    change: Change
    square: float
    ell: float
    seconds: float
    n_bytes: int


class Description(NamedTuple):
    """What the client needs to know of a partition."""

    sizes: Sizes
    kind: str
    is_bounded: bool
    digest: str


@contextmanager
def naming(p: int) -> Iterator[None]:
    """Let errors within the block name the partition."""
    try:
        yield
    except (Lost, OutOfTime, PartitionError):
        raise
    except Exception as error:
        raise failed(p, error) from error


def failed(p: int | None, error: BaseException) -> PartitionError:
    """Return the error for a partition, or for a task that is about several."""
    what, cause = "a task" if p is None else f"partition {p}", " ".join(str(error).split())
    return PartitionError(f"maxmargin.dask: {what} failed: {type(error).__name__}: {cause}")


def combined(first: Report | None, *others: Report | None) -> Report | None:
    """Task: add up reports; None if one is missing."""
    for other in others:
        if first is None or other is None:
            return None
        change = total(first.change, other.change)
        first = Report(
            change,
            first.square + other.square,
            first.ell + other.ell,
            max(first.seconds, other.seconds),
            first.n_bytes + other.n_bytes,
        )
    return first


def listed(*answers: object) -> list[object]:
    """Task: return answers together, so that they travel as one."""
    return list(answers)


_POLL = 0.5  # seconds between two checks of which workers are there
# Seconds after a time limit in which answers may come: tasks end in time, and the limit need not be exact.
_GRACE = 2.0
_FAN_IN = 2
_FEW = 4  # up to this many answers come one by one: a task that joins them takes longer
_SHORT = 1 << 16  # bytes up to which a message is sent along with a task

Answer = TypeVar("Answer")


class Trouble(Exception):
    """Some calls were not answered; ``addresses`` are the workers that have lost what they held."""

    def __init__(self, addresses: set[str]) -> None:
        super().__init__(", ".join(sorted(addresses)))
        self.addresses = addresses


class Job(NamedTuple):
    """A call of a task on a worker.

    Attributes
    ----------
    address : str
    arguments : tuple
    p : int or None
        The partition that it concerns, if it concerns one.
    needs : tuple of str
        Other workers that it gets data from.
    """

    address: str
    arguments: tuple[object, ...]
    p: int | None = None
    needs: tuple[str, ...] = ()

    @property
    def is_sum(self) -> bool:
        """Whether it only waits for the answers of others."""
        return all(isinstance(given, Future) for given in self.arguments)


class Calls:
    """Calls of tasks, each on the worker that holds what it needs.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds after which a worker that does not answer is given up.
    """

    def __init__(self, client: Client, timeout: float) -> None:
        self.client, self.timeout = client, timeout
        self._given_up: set[str] = set()
        self._interrupted = False

    def workers(self) -> dict[str, int]:
        """Return the addresses of the workers that can be used, and their numbers of threads."""
        there = self.client.nthreads()
        return {address: max(1, n) for address, n in there.items() if address not in self._given_up}

    def some_workers(self) -> dict[str, int]:
        """Return the workers; wait for one if there is none, but not after Ctrl-C.

        In a terminal, Ctrl-C also ends the workers that were started there.
        """
        begin = time.monotonic()
        while not (found := self.workers()):
            check_time()
            self._interrupted |= is_held_back()
            if self._interrupted:
                raise KeyboardInterrupt
            if time.monotonic() - begin > self.timeout:
                raise RuntimeError(
                    f"maxmargin.dask: the cluster must have a worker, got none for {self.timeout:g} s; start "
                    "one."
                )
            time.sleep(_POLL)
        return found

    def submit(self, task: Callable[..., object], job: Job) -> Future:
        """Return the future of a call."""
        return self.client.submit(
            task, *job.arguments, workers=[job.address], allow_other_workers=False, pure=False
        )

    def message(self, message: object, n_bytes: int, address: str) -> object:
        """Return the message, or a future of a long one, so that workers get copies from each other."""
        if n_bytes < _SHORT:
            return message
        try:
            return self._finished(_scattering(self.client, message, address), {address})[0]
        except KeyError:  # the worker has gone meanwhile
            raise Trouble(set()) from None

    def ask(
        self, task: Callable[..., Answer], jobs: Sequence[Job], patience: float | None = None
    ) -> list[Answer]:
        """Return the answers to calls of a task."""
        answers = self.gathered({self.submit(task, job): job for job in jobs}, patience)
        return cast("list[Answer]", answers)

    def gathered(self, futures: dict[Future, Job], patience: float | None = None) -> list[object]:
        """Return the answers of tasks, sent as one message if they are many."""
        if len(futures) <= _FEW:
            return self._answers(list(futures), futures, patience)
        job = Job(next(iter(futures.values())).address, tuple(futures))
        root = self.submit(listed, job)
        return cast("list[object]", self._answers([root], {**futures, root: job}, patience)[0])

    def summed(
        self, task: Callable[..., Report | None], jobs: Sequence[Job], patience: float | None = None
    ) -> Report | None:
        """Return the sum of reports, added up in a tree if they are many; None if one is missing."""
        tree = {self.submit(task, job): job for job in jobs}
        level = list(tree.items())
        while len(level) > _FEW:
            level = [self._combined(level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
            tree.update(level)
        answers = self._answers([future for future, _ in level], tree, patience)
        return combined(*cast("list[Report | None]", answers))

    def _combined(self, some: Sequence[tuple[Future, Job]]) -> tuple[Future, Job]:
        job = Job(some[0][1].address, tuple(future for future, _ in some))
        return self.submit(combined, job), job

    def _answers(
        self, last: list[Future], futures: dict[Future, Job], patience: float | None
    ) -> list[object]:
        """Return the answers of the last of some tasks, when all of them have ended."""
        if not last:
            return []
        self.wait(futures, self.timeout if patience is None else patience)
        return self._finished(_gathering(self.client, last), {futures[future].address for future in last})

    def _finished(self, sending: Coroutine[None, None, list[object]], addresses: set[str]) -> list[object]:
        """Return what is sent from or to workers, unless one of them is lost before it has arrived.

        Dask would do a task again, and wait until there is a worker of this address.
        """
        begin, loop = time.monotonic(), self.client.loop.asyncio_loop  # type: ignore[attr-defined]
        answers = asyncio.run_coroutine_threadsafe(sending, loop)
        try:
            while not _is_done_soon(answers):
                check_time()
                self._check_there(addresses, time.monotonic() - begin > self.timeout)
            return answers.result()
        except (OSError, CancelledError, KilledWorker):
            raise Trouble(set()) from None
        finally:
            answers.cancel()

    def wait(self, futures: dict[Future, Job], patience: float) -> None:
        """Wait until all tasks have ended; raise `Trouble` if workers are lost, else the first error."""
        begin, pending = time.monotonic(), set(futures)
        try:
            while pending:
                check_time()
                ended = _ended(pending)
                pending -= ended
                if any(future.status != "finished" for future in ended):
                    _raise_error({future: job for future, job in futures.items() if future.done()})
                late = time.monotonic() - begin > patience
                if pending and (late or not ended):
                    self._check_there(_waited_for([futures[future] for future in pending]), late)
        except BaseException as error:
            self._interrupted |= isinstance(error, KeyboardInterrupt)
            self.client.cancel(list(pending), force=True)
            raise

    def _check_there(self, addresses: set[str], late: bool) -> None:
        """Raise if some of these workers are gone, or all of them if they are late."""
        gone = addresses - set(self.workers())
        if gone:
            raise Trouble(gone)
        if late:
            self._give_up(addresses)
            raise Trouble(addresses)

    def _give_up(self, addresses: set[str]) -> None:
        """Remove workers that hang: the scheduler would wait for what they hold, and give them tasks.

        If a worker that was removed recovers, it ends, and its nanny starts another one.
        """
        self._given_up |= addresses
        self.client.run_on_scheduler(_remove, addresses=sorted(addresses))


def seconds_left() -> float:
    """Return the seconds until the time limit of the run."""
    return deadline_of_share(1.0) - now()


def check_time() -> None:
    """Raise `OutOfTime` if no answer is of use any more."""
    if seconds_left() < -_GRACE:
        raise OutOfTime


async def _scattering(client: Client, message: object, address: str) -> list[object]:
    sent: list[object] = await client.scatter([message], workers=[address], hash=False, asynchronous=True)
    return sent


async def _gathering(client: Client, futures: list[Future]) -> list[object]:
    found: list[object] = await client.gather(futures, asynchronous=True)
    return found


def _is_done_soon(answers: "concurrent.futures.Future[list[object]]") -> bool:
    return bool(concurrent.futures.wait([answers], timeout=_POLL).done)


async def _remove(dask_scheduler: Scheduler, addresses: Sequence[str]) -> None:
    for address in addresses:
        await dask_scheduler.remove_worker(address, stimulus_id=f"maxmargin-{time.time()}")


def _waited_for(jobs: Sequence[Job]) -> set[str]:
    """Return the workers that calls wait for; a sum of answers is late only if no answer is."""
    asked = [job for job in jobs if not job.is_sum] or jobs
    return {address for job in asked for address in (job.address, *job.needs)}


def _ended(pending: set[Future]) -> set[Future]:
    try:
        return set(wait(list(pending), timeout=_POLL, return_when="FIRST_COMPLETED").done)
    except TimeoutError:
        return set()
    except CancelledError:  # the scheduler has forgotten a task
        raise Trouble(set()) from None


def _raise_error(ended: dict[Future, Job]) -> None:
    """Raise the error of a task that has failed: `Trouble` if Dask is to blame, not the data.

    A sum fails if an answer that it waits for fails, so it is never to blame.
    """
    lost = set[str]()
    for future, job in ended.items():
        error = future.exception() if future.status == "error" and not job.is_sum else None
        if isinstance(error, PartitionError | OutOfTime):
            raise error
        if isinstance(error, Lost):
            lost.add(job.address)
        elif error is not None and not type(error).__module__.startswith("distributed"):
            raise failed(job.p, error) from error
    raise Trouble(lost)
