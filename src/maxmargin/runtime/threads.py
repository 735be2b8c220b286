"""Threads for kernels, which release Python's global interpreter lock."""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Generic, TypeVar

import joblib

Part = TypeVar("Part")
Answer = TypeVar("Answer")

_POOL: ContextVar[tuple[ThreadPoolExecutor, int] | None] = ContextVar("threads", default=None)

# Kernels keep their processors busy, so more threads than processors gain nothing, and thousands of threads
# cannot be started. Small numbers are not changed.
_MOST = 32
_SLICE = 1 << 15


def as_number(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: None is one, -1 is one per processor.

    The number is at most 32, or the number of processors if that is larger.
    """
    number = int(joblib.effective_n_jobs(n_jobs))
    # Counting processors reads files, which takes as long as some hundred visits.
    return number if number <= _MOST else min(number, max(int(joblib.cpu_count()), _MOST))


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Let `run_all` and `Shared` use threads in this block; ``n_jobs`` is as in scikit-learn.

    A thread starts only when there is work for it, so there are never more threads than parts of work.
    """
    number = as_number(n_jobs)
    if number == 1:
        yield
        return
    with ThreadPoolExecutor(number - 1, thread_name_prefix="maxmargin") as pool:
        token = _POOL.set((pool, number))
        try:
            yield
        finally:
            _POOL.reset(token)


def n_threads() -> int:
    """Return how many threads `run_all` uses here."""
    pool = _POOL.get()
    return 1 if pool is None else pool[1]


@contextmanager
def alone() -> Iterator[None]:
    """Let the calling thread do all work in this block itself, while others do work of their own."""
    token = _POOL.set(None)
    try:
        yield
    finally:
        _POOL.reset(token)


def _do_nothing() -> None:
    pass


class Shared(Generic[Part, Answer]):
    """Parts of some work, which threads take one after another.

    Threads of the pool begin when `start` is called, and the calling thread joins them in `finish`. Until
    then it can do something else. After an interrupt, ``give_up`` is called before other threads are waited
    for.
    """

    def __init__(
        self,
        function: Callable[[Part], Answer],
        parts: Sequence[Part],
        give_up: Callable[[], None] = _do_nothing,
    ) -> None:
        self._function, self._number, self._waiting = function, len(parts), deque(enumerate(parts))
        self._give_up = give_up
        self._answers, self._errors = dict[int, Answer](), dict[int, Exception]()
        self._others = list[Future[None]]()

    def start(self, workers: int) -> None:
        """Let this many threads of the pool begin; they see the context variables of the calling one."""
        pool = _POOL.get()
        if pool is None:
            return
        with self._abandoned_after_errors():
            for _ in range(min(workers, self._number)):
                self._others.append(pool[0].submit(copy_context().run, _without_pool, self._work_off))

    def finish(self) -> list[Answer]:
        """Finish the remaining parts; return the answers for all, in order, or raise the first error."""
        with self._abandoned_after_errors():
            self._work_off()
        self.abandon()
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._answers[k] for k in range(self._number)]

    @contextmanager
    def _abandoned_after_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._give_up()
            self.abandon()
            raise

    def abandon(self) -> None:
        """Abandon the parts that no thread has taken; wait for the others."""
        self._waiting.clear()
        wait([other for other in self._others if not other.cancel()])

    def _work_off(self) -> None:
        """Take one part after another until none is left or one has failed; store answers and errors."""
        while self._waiting:
            try:
                k, part = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                self._answers[k] = self._function(part)
            except Exception as error:
                self._errors[k] = error
                self._waiting.clear()  # parts before this one have been taken, so the first error is known


def run_all(
    function: Callable[[Part], Answer],
    parts: Sequence[Part],
    give_up: Callable[[], None] = _do_nothing,
) -> list[Answer]:
    """Return the answers of ``function`` for all parts, in their order; raise the first error.

    The calling thread works too: where parts take a millisecond, waking one thread fewer makes a difference.
    ``give_up`` is that of `Shared`.
    """
    if n_threads() == 1 or len(parts) < 2:
        return [function(part) for part in parts]
    shared = Shared(function, parts, give_up)
    shared.start(min(n_threads(), len(parts)) - 1)
    return shared.finish()


def _without_pool(work: Callable[[], None]) -> None:
    """Do the work in one of the pool's threads, which must not wait for the others."""
    _POOL.set(None)
    work()


def run_in_slices(function: Callable[[slice], Answer], length: int) -> list[Answer]:
    """Return the answers of ``function`` for the slices of vectors of this length, which threads share.

    The slices do not depend on the number of threads, and slices of a few vectors fit into a processor's
    private cache.
    """
    return run_all(function, [slice(first, first + _SLICE) for first in range(0, length, _SLICE)])


def to_its_end(task: Generator[None, None, Answer]) -> Answer:
    """Run a task that waits for no other, and return its answer."""
    while True:
        try:
            next(task)
        except StopIteration as end:
            answer: Answer = end.value
            return answer


def run_in_turns(tasks: Sequence[Generator[None, None, Answer]], is_alone: bool = False) -> list[Answer]:
    """Run tasks that wait for each other; return their answers, in their order, or raise an error.

    A task yields when it waits for another one. A thread runs its tasks in turn; ``is_alone`` leaves all of
    them to the calling thread.
    """
    number = 1 if is_alone else min(n_threads(), len(tasks))
    over, answers = threading.Event(), dict[int, Answer]()

    def run_some(first: int) -> None:
        some = dict(list(enumerate(tasks))[first::number])
        try:
            while some and not over.is_set():
                for k in list(some):
                    try:
                        next(some[k])
                        time.sleep(0)  # yields this processor to another thread
                    except StopIteration as end:
                        answers[k] = end.value
                        del some[k]
        except BaseException:
            over.set()  # no other task waits for this thread's tasks
            raise

    run_all(run_some, range(number), over.set)
    return [answers[k] for k in range(len(tasks))]
