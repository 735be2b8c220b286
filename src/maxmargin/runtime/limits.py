"""When a run ends: how small the gap must be, how many passes, how much time; and Ctrl-C.

There are blocks of code without garbage collection, too.
"""

import gc
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import NamedTuple, Self


class Limits(NamedTuple):
    r"""The limits of a run.

    Attributes
    ----------
    tol, rtol : float
        The run has converged when the gap is at most tol, or at most rtol times the objective:
        :math:`P - D \le \max(\text{tol}, \text{rtol} \, |P|)`.
    max_passes : int
    time_limit : float
        In seconds; infinite if there is none.
    """

    tol: float = 0.0
    rtol: float = 0.0
    max_passes: int = 1
    time_limit: float = math.inf

    def are_met(self, primal: float, dual: float) -> bool:
        """Whether the gap between these bounds is small enough."""
        return primal - dual <= self.target(primal)

    def target(self, primal: float) -> float:
        """The largest gap with which a run has converged at this objective."""
        return max(self.tol, self.rtol * abs(primal)) if math.isfinite(primal) else self.tol


class OutOfTime(Exception):
    """The time limit was reached within a loop over examples."""


class _Clock:
    """A clock in seconds that does not count the time for which it is stopped; any thread may stop it."""

    def __init__(self) -> None:
        self._lock, self._stops, self._stopped_at, self._left_out = threading.Lock(), 0, 0.0, 0.0

    def read(self) -> float:
        """Return the time by which runs are measured, in seconds; it stands still in `stopped_clock`."""
        return (self._stopped_at if self._stops else time.perf_counter()) - self._left_out

    def stop(self) -> None:
        with self._lock:
            if self._stops == 0:
                self._stopped_at = time.perf_counter()
            self._stops += 1

    def go_on(self) -> None:
        with self._lock:
            self._stops -= 1
            if self._stops == 0:
                self._left_out += time.perf_counter() - self._stopped_at


_CLOCK = _Clock()
_DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
# Within a run, the length of the next piece, by the name of the loop over examples.
_LENGTHS: ContextVar[dict[str, int] | None] = ContextVar("lengths", default=None)
PIECE_SECONDS = 0.1
_MOMENT = 1e-3
# A piece is at most this many times as long as the last one, as the timing of a short piece is unreliable.
_GROWTH = 8


now = _CLOCK.read


@contextmanager
def stopped_clock() -> Iterator[None]:
    """Stop the clock of all runs in this block, in which a kernel is compiled or loaded."""
    _CLOCK.stop()
    try:
        yield
    finally:
        _CLOCK.go_on()


@contextmanager
def deadline_at(deadline: float) -> Iterator[None]:
    """Let loops over examples in this block end after the deadline, most by raising `OutOfTime`."""
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextmanager
def shared_pace() -> Iterator[None]:
    """Let loops of the same name in this block, a run, continue with the `Pace` of the last one."""
    token = _LENGTHS.set({})
    try:
        yield
    finally:
        _LENGTHS.reset(token)


def is_limited() -> bool:
    """Whether there is a deadline."""
    return _DEADLINE.get() < math.inf


def deadline_of_share(share: float) -> float:
    """Return the deadline for a part of a run that may take this fraction of the remaining time."""
    begin, deadline = now(), _DEADLINE.get()
    return begin + share * (deadline - begin)


class Shares:
    """A time limit that several runs share, one after another.

    Each may take its share of the remaining time, so later runs can use what an earlier one leaves over.

    Parameters
    ----------
    time_limit : float or None
        In seconds, from now on; None if there is no limit.
    number : int
        The number of shares.
    """

    def __init__(self, time_limit: float | None, number: int) -> None:
        self._left, self._least = number, min(_MOMENT, math.inf if time_limit is None else time_limit)
        self.deadline = math.inf if time_limit is None else now() + time_limit

    def next(self, count: int = 1) -> float | None:
        """Return the time limit of the next run, of ``count`` shares.

        It is a very short time if time is up, and None if there is no limit.
        """
        seconds, self._left = (self.deadline - now()) * count / self._left, self._left - count
        return max(seconds, self._least) if seconds < math.inf else None


class Pace:
    """How many examples to visit between two readings of the clock: about a tenth of a second's worth.

    The deadline is that of the thread that makes the object; other threads may share it. A loop begins with a
    piece of one example, unless one of the same ``name`` is known (`shared_pace`).
    """

    def __init__(self, name: str = "") -> None:
        self._name, self._deadline, kept = name, _DEADLINE.get(), _LENGTHS.get()
        self._kept = {} if kept is None or not name else kept
        self.length = self._kept.get(name, 1)

    def check(self) -> None:
        """Raise `OutOfTime` if the deadline has passed."""
        if now() >= self._deadline:
            raise OutOfTime

    def pieces(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Split a range of examples; read the clock before each piece, and adapt to the time it takes."""
        while first < stop:
            self.check()
            begin, then = now(), min(first + self.length, stop)
            yield first, then
            self.note(then - first, now() - begin)
            first = then

    def note(self, examples: float, seconds: float) -> None:
        """Adapt the length of pieces to the time that some examples took."""
        lasting = int(examples * PIECE_SECONDS / max(seconds, 1e-9))
        most = _GROWTH * max(self.length, int(examples))
        self.length = self._kept[self._name] = max(1, min(most, lasting))


# The user's signal handler, while ours replaces it.
_HANDLERS: list[Callable[[int, FrameType | None], object]] = []
# The blocks of the main thread that defer interrupts, from the outermost to the innermost.
_BLOCKS: "list[_HeldBack]" = []


class listening:
    """Handle all interrupts in a block, so that nested blocks need no handler of their own.

    Installing a handler takes longer than a short piece of a pass. Python interrupts the main thread only. In
    other threads, and where Ctrl-C does not call a Python function, this does nothing.
    """

    def __enter__(self) -> Self:
        self._installed = False
        if not _HANDLERS and threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                _HANDLERS.append(handler)
                self._installed = True
                signal.signal(signal.SIGINT, _hear)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            if signal.getsignal(signal.SIGINT) is _hear:  # else the user has another one now
                signal.signal(signal.SIGINT, _HANDLERS[0])
            _HANDLERS.pop()


def uninterrupted() -> "_HeldBack":
    """Defer a Ctrl-C until the end of the block; deliver a second one at once.

    If the block raises an error, the interrupt is dropped: the error ends the run as well.
    """
    return _HeldBack(at_most=1, after_errors=False)


def uninterruptible() -> "_HeldBack":
    """Defer every Ctrl-C until the end of the block, even if the block raises an error.

    Nested blocks deliver to the next outer one, so the interrupt arrives after the outermost block.
    """
    return _HeldBack(at_most=math.inf, after_errors=True)


def is_held_back() -> bool:
    """Whether a Ctrl-C is deferred until the end of a block in this thread."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and any(block.held for block in _BLOCKS)


class _HeldBack:
    """A block that defers this many interrupts, and delivers them at its end."""

    def __init__(self, at_most: float, after_errors: bool) -> None:
        self.at_most, self.after_errors = at_most, after_errors
        self.held: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        self._listening = listening().__enter__()
        self._is_main = bool(_HANDLERS) and threading.current_thread() is threading.main_thread()
        if self._is_main:
            _BLOCKS.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._is_main:
                _BLOCKS.pop()
            while self.held and (kind is None or self.after_errors):
                _hear(*self.held.pop(0))
        finally:
            self._listening.__exit__()


def _hear(number: int, frame: FrameType | None) -> None:
    """Pass an interrupt to the blocks, innermost first, until one defers it, or else to the handler."""
    for block in reversed(_BLOCKS):
        block.held.append((number, frame))
        if len(block.held) <= block.at_most:
            return
    _HANDLERS[0](number, frame)


@contextmanager
def without_collection() -> Iterator[None]:
    """Turn off garbage collection in this block.

    Compiling, importing and reading allocate up to millions of objects that live until the end of the block,
    or longer. Traversing them again and again takes a tenth of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
