"""Reports of what is being compiled, for users who wait.

A *watcher* is called when the compilation, or loading, of a function begins and when it ends. `watched` adds
one for a block of code, and `CompilingLine` is one that writes to a terminal.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import NamedTuple, Protocol, Self


class Compilation(NamedTuple):
    """A function that is being compiled, or loaded from disk.

    Attributes
    ----------
    name : str
        The kernel, such as "sweep".
    classes : tuple of str
        What it is compiled for: the classes of a problem's map and oracle, and of a method.
    ended : bool
        Whether its compilation has ended.
    """

    name: str
    classes: tuple[str, ...]
    ended: bool = False

    def __str__(self) -> str:
        return f"{self.name} for {', '.join(self.classes)}" if self.classes else self.name


Watcher = Callable[[Compilation], None]
_WATCHERS: list[Watcher] = []


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` what is compiled in this block, in all threads."""
    _WATCHERS.append(watcher)
    try:
        yield
    finally:
        _WATCHERS.remove(watcher)


@contextmanager
def announced(function: Callable[..., object], signature: object) -> Iterator[None]:
    """Tell all watchers that a function is compiled in this block."""
    if not _WATCHERS:
        yield
        return
    begun = Compilation(function.__name__, _classes(signature))
    _tell(begun)
    try:
        yield
    finally:
        _tell(begun._replace(ended=True))


def _tell(compilation: Compilation) -> None:
    for watcher in tuple(_WATCHERS):
        watcher(compilation)


def _classes(signature: object) -> tuple[str, ...]:
    """Return the names of the classes that a kernel is compiled for: those of its first two arguments."""
    found = []
    for argument in getattr(signature, "args", signature)[:2]:  # type: ignore[index]
        fields = getattr(argument, "types", ()) if _name(argument) == "Problem" else (argument,)
        found += [_name(field) for field in fields]
    return tuple(dict.fromkeys(name for name in found if name))


def _name(type_: object) -> str:
    return str(getattr(getattr(type_, "instance_class", None), "__name__", ""))


class Screen(Protocol):
    """What lines are written to."""

    def isatty(self) -> bool: ...

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class CompilingLine:
    """A line on a terminal that says what is being compiled, once this takes a while; a context manager.

    Parameters
    ----------
    delay : float
        Seconds of compilation before the line appears.
    stream : file, optional
        Where to write; standard error by default. If it is not a terminal, nothing is written.
    """

    def __init__(self, delay: float = 2.0, stream: Screen | None = None) -> None:
        self.delay, self.stream = delay, stream
        self.current: Compilation | None = None
        self.kernels, self.begin, self.width = 0, 0.0, 0

    def __enter__(self) -> Self:
        self._out: Screen = self.stream or sys.stderr
        self._ended = threading.Event()
        self._watching = watched(self._note)
        self._watching.__enter__()
        self._thread: threading.Thread | None = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.__exit__(kind, error, trace)
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _note(self, compilation: Compilation) -> None:
        """Count the kernel; begin to write when the first one begins."""
        self.current = None if compilation.ended else compilation
        self.kernels += not compilation.ended
        if self._thread is None and self._out.isatty():
            self.begin = time.monotonic()
            self._thread = threading.Thread(target=self._write_lines, daemon=True)
            self._thread.start()

    def _write_lines(self) -> None:
        """Write the line from time to time until the block ends, and clear it whenever nothing compiles."""
        ended = self._ended.wait(self.delay)
        while not ended:
            current = self.current
            self._write("" if current is None else self._text(current))
            ended = self._ended.wait(0.5)
        self._write("")

    def _text(self, current: Compilation) -> str:
        seconds = time.monotonic() - self.begin
        return f"compiling {current} (kernel {self.kernels}, {seconds:.0f} s; kept for later runs)"

    def _write(self, text: str) -> None:
        if text or self.width:
            with suppress(OSError, ValueError):  # the terminal is gone
                self._out.write("\r" + text.ljust(self.width) + ("" if text else "\r"))
                self._out.flush()
            self.width = len(text)
