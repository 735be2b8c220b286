"""Clocks, memory, processes and tables: what all benchmarks share."""

import json
import os
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.structures.problem import sizes

_SAMPLING_SECONDS = 0.005
# A median this far above the minimum says more about the machine than about the program.
_NOISY = 1.2


class Times(NamedTuple):
    """Seconds of one task, one measurement per repetition."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def noise(self) -> float:
        """The ratio of the median to the minimum."""
        return self.median / self.least

    def ratio_to(self, other: "Times") -> float:
        """Return the median over rounds of the ratio within a round: load on the machine slows both."""
        return statistics.median(a / b for a, b in zip(self.seconds, other.seconds, strict=True))


class Target(NamedTuple):
    """What a figure must reach, and what it aims at: upper limits, or lower limits if ``floor``."""

    must: float
    aim: float | None = None
    floor: bool = False

    def verdict(self, value: float) -> str:
        def reached(bound: float) -> bool:
            return value >= bound if self.floor else value <= bound

        if self.aim is not None and reached(self.aim):
            return "aim reached"
        return "reached" if reached(self.must) else "MISSED"


class Figure(NamedTuple):
    """A line of the table."""

    name: str
    value: float
    unit: str = ""
    target: Target | None = None
    note: str = ""


def ratio(name: str, pairs: list[tuple[Times, Times]], target: Target) -> Figure:
    """Return the ratio of two tasks: the median over processes, with its range and a warning about noise.

    The placement of its arrays in memory makes a process faster or slower throughout its life. No number of
    repetitions within it shows that.
    """
    ratios = [times.ratio_to(other) for times, other in pairs]
    noise = statistics.median(max(times.noise, other.noise) for times, other in pairs)
    note = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} processes" if len(ratios) > 1 else ""
    if noise > _NOISY:
        note += f"{'; ' if note else ''}NOISY, a median is {noise:.2f} x its minimum: run again"
    return Figure(name, statistics.median(ratios), "x", target, note)


def interleaved(tasks: Mapping[str, Callable[[], Any]], repetitions: int) -> dict[str, Times]:
    """Time all tasks once, in random order, then all again, ...

    Lasting noise then affects all tasks alike, and no task always follows the same other one.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    shuffle = random.Random(0)
    for _ in range(repetitions):
        for name in shuffle.sample(list(tasks), len(tasks)):
            begin = time.perf_counter()
            tasks[name]()
            seconds[name].append(time.perf_counter() - begin)
    return {name: Times(tuple(values)) for name, values in seconds.items()}


def run_python(*arguments: str, **environment: str) -> str:
    """Run a new interpreter and return what it prints."""
    run = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return run.stdout


def print_figures(figures: list[Figure]) -> None:
    """Print the figures beside their targets."""
    width = max(len(figure.name) for figure in figures)
    print(f"{'':{width}}  {'measured':>12}  {'must':>8}  {'aim':>8}  verdict")
    for name, value, unit, target, note in figures:
        must, aim, verdict = "", "", ""
        digits = 2 if value >= 1.0 else 3
        if target is not None:
            sign = ">=" if target.floor else "<="
            must = f"{sign} {target.must:g}"
            aim = "" if target.aim is None else f"{sign} {target.aim:g}"
            verdict = target.verdict(value) + (f" ({note})" if note else "")
        line = f"{name:{width}}  {value:9.{digits}f} {unit:2}  {must:>8}  {aim:>8}  {verdict}"
        print(line.rstrip())
    print(flush=True)


def resident_bytes() -> int:
    """Return the resident memory of this process, in bytes."""
    try:
        import psutil
    except ImportError:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return int(psutil.Process().memory_info().rss)


def private_bytes() -> int:
    """Return the resident memory of this process without pages of files, where that is known, in bytes."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:")]
    return found[0] if found else resident_bytes()


class PeakMemory:
    """A context in which ``peak`` tracks the largest resident memory; kernels release the GIL."""

    def __init__(self, measure: Callable[[], int] = resident_bytes) -> None:
        self._measure = measure

    def __enter__(self) -> "PeakMemory":
        self.peak = self._measure()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLING_SECONDS):
            self.peak = max(self.peak, self._measure())

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self.peak = max(self.peak, self._measure())


@contextmanager
def pickled(problem: Any) -> Iterator[str]:
    """Yield the path of a file from which new processes can read the problem."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.pickle"
        path.write_bytes(pickle.dumps(problem, protocol=5))
        yield str(path)


def memory_of_solving(path: str, passes: int) -> dict[str, float]:
    """Return bytes before and at the peak of ``solve`` in a new process that did nothing else before."""
    return dict(json.loads(run_python(__file__, path, str(passes))))


def _solve_and_report(path: str, passes: int) -> None:
    from maxmargin import Averaged, BlockFrankWolfe, solve

    with open(path, "rb") as stream:
        problem = pickle.load(stream)
    before = resident_bytes()
    method = Averaged(BlockFrankWolfe(lam=1.0 / sizes(problem).examples), "weighted")
    with PeakMemory() as memory:
        solve(problem, method, tol=0.0, max_passes=passes, random_state=0)
    print(json.dumps({"before": before, "peak": memory.peak}))


if __name__ == "__main__":
    _solve_and_report(sys.argv[1], int(sys.argv[2]))
