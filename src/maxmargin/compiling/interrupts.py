"""Ctrl-C, heard only where a run can be left."""

import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back a Ctrl-C until the end of the block; a second one is heard at once.

    An error of the block is raised instead of the interrupt: it ends the run as well.
    """
    with _held_back(at_most=1) as deliver:
        yield
    deliver()


@contextmanager
def uninterruptible() -> Iterator[None]:
    """Hold back every Ctrl-C until the end of the block, whatever happens in it.

    A block within another delivers to the outer one, so that the interrupt is heard after the outermost.
    """
    with _held_back(at_most=math.inf) as deliver:
        try:
            yield
        finally:
            deliver()


@contextmanager
def _held_back(at_most: float) -> Iterator[Callable[[], None]]:
    """Hold back this many interrupts; yield a function that puts the handler back and hands them to it.

    Outside the main thread, which alone is ever interrupted, and where Ctrl-C does not call a
    Python function, the block just runs.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    held: list[tuple[int, FrameType | None]] = []

    def hear(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        if len(held) > at_most:
            handler(number, frame)

    def deliver() -> None:
        signal.signal(signal.SIGINT, handler)
        while held:
            handler(*held.pop(0))

    signal.signal(signal.SIGINT, hear)
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)
