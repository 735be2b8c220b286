"""Ctrl-C, delivered only where a run can stop; and blocks of code without garbage collection."""

import gc
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

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
