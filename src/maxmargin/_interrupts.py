"""Ctrl-C, heard only where a run can be left."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back a Ctrl-C until the end of the block; a second one is heard at once.

    Outside the main thread, which alone is ever interrupted, and where Ctrl-C does not call a
    Python function, the block just runs.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hear(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        if len(held) > 1:
            handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:
        handler(*held[0])
