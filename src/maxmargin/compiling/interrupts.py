"""Ctrl-C, delivered only where a run can stop."""

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# What waits for the ends of blocks of the main thread, from the outermost block to the innermost.
_HELD: list[list[tuple[int, FrameType | None]]] = []


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back a Ctrl-C until the end of the block; deliver a second one at once.

    If the block raises an error, the interrupt is dropped: the error ends the run as well.
    """
    with _held_back(at_most=1) as deliver:
        yield
    deliver()


@contextmanager
def uninterruptible() -> Iterator[None]:
    """Hold back every Ctrl-C until the end of the block, even if the block raises an error.

    Nested blocks deliver to the next outer one, so the interrupt arrives after the outermost block.
    """
    deliver = _nothing
    try:
        with _held_back(at_most=math.inf) as deliver:
            yield
    finally:
        deliver()


def is_held_back() -> bool:
    """Whether a Ctrl-C waits for the end of a block in this thread."""
    return threading.current_thread() is threading.main_thread() and any(_HELD)


@contextmanager
def _held_back(at_most: float) -> Iterator[Callable[[], None]]:
    """Hold back this many interrupts; yield a function that delivers them, to be called after the block.

    Python interrupts the main thread only. In other threads, and where Ctrl-C does not call a Python
    function, nothing is held back.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield _nothing
        return
    held: list[tuple[int, FrameType | None]] = []
    _HELD.append(held)

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        if len(held) > at_most:
            handler(number, frame)

    def deliver() -> None:
        while held:
            handler(*held.pop(0))

    signal.signal(signal.SIGINT, hold)
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)
        _HELD.pop()


def _nothing() -> None:
    """There is no interrupt to deliver."""
