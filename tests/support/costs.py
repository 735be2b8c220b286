"""Measure what each test costs: processor time, time in the compiler, and memory of the process."""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from numba.core import event

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


class CompilerTime(event.Listener):
    """Sums up the seconds in which Numba's compiler runs."""

    def __init__(self) -> None:
        self.seconds, self._depth, self._start = 0.0, 0, 0.0

    def on_start(self, _: object) -> None:
        """Start the clock at the outermost event."""
        if self._depth == 0:
            self._start = time.perf_counter()
        self._depth += 1

    def on_end(self, _: object) -> None:
        """Stop the clock at the outermost event."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._start


class Costs:
    """A plugin of pytest that appends one line of JSON per test to a file."""

    def __init__(self, file: Path) -> None:
        self.file, self.compiler = file, CompilerTime()
        event.register("numba:compiler_lock", self.compiler)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure a test with its fixtures."""
        wall, processor, compiler = time.perf_counter(), _processor_seconds(), self.compiler.seconds
        try:
            return (yield)
        finally:
            cost = {
                "test": item.nodeid,
                "process": os.getpid(),
                "wall": time.perf_counter() - wall,
                "processor": _processor_seconds() - processor,
                "compiler": self.compiler.seconds - compiler,
                "megabytes": _peak_megabytes(),
            }
            with self.file.open("a") as stream:
                stream.write(json.dumps(cost) + "\n")


def _processor_seconds() -> float:
    """Return the processor time of this process and of the processes that it waited for."""
    return sum(os.times()[:4])


def _peak_megabytes() -> float:
    """Return the largest memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if resource else 0.0
