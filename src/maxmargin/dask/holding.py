"""What a worker holds of a run: partitions, and what they share.

A partition is a `Held`, the result of the task that loaded it, so Dask frees it when the client lets go of it
or is gone. Tasks find it by its number. A `Bench` is what the partitions of a run share on a worker: the
common weights and the parts. A part is what one thread moves: some partitions, one after another.
"""

import threading
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.dask.changes import write
from maxmargin.dask.messages import Lost, Update
from maxmargin.problems.problem import AnyProblem, sizes


class Bench:
    """What the partitions of a run share on a worker."""

    def __init__(self) -> None:
        self.lock, self.epoch, self.version, self.w = threading.Lock(), 0, -1, np.zeros(0)
        self.parts: dict[int, MovingPart] = {}
        self.measures: dict[int, Measure] = {}

    def check(self, epoch: int) -> None:
        """Raise unless this is the current epoch, or a new one, which then begins."""
        if epoch < self.epoch:
            raise Lost(f"epoch {epoch} is over")
        self.epoch = epoch

    def adopt(self, update: Update) -> None:
        """Bring the common weights up to date."""
        with self.lock:
            if update.version == self.version:
                return
            if update.base is None:
                self.w = aligned_zeros(update.change.size)
            elif update.base != self.version:
                raise Lost(f"version {update.base} of the weights")
            write(update.change, self.w)
            self.version = update.version

    def part(self, k: int) -> "MovingPart":
        with self.lock:
            return self.parts.setdefault(k, MovingPart())


class MovingPart:
    """The weights of a part, and how far it is in a round."""

    def __init__(self) -> None:
        self.lock, self.w, self.number = threading.Lock(), np.zeros(0), -1
        self.at, self.done, self.seconds = 0, 0, 0.0

    def begin(self, number: int, w: FloatArray) -> None:
        """Begin a round, unless it is under way."""
        if self.number == number:
            return
        if len(self.w) != len(w):
            self.w = aligned_zeros(len(w))
        self.w[:] = w
        self.number, self.at, self.done, self.seconds = number, 0, 0, 0.0


class Measure:
    """A sum of hinges under way."""

    def __init__(self, number: int, w: FloatArray) -> None:
        self.number, self.w, self.at, self.done, self.total = number, w, 0, 0, 0.0


class Held:
    """A partition on this worker; it cannot be sent to another."""

    def __init__(self, number: int, problem: AnyProblem, bench: Bench, state: Any = None) -> None:
        self.number, self.problem, self.bench, self.state = number, problem, bench, state
        self.size, self.lock = int(sizes(problem).examples), threading.Lock()

    def __reduce__(self) -> str:
        raise TypeError(f"partition {self.number} stays on its worker")


_Key = tuple[str, str]
_BENCHES: "WeakValueDictionary[_Key, Bench]" = WeakValueDictionary()
_HELD: "WeakValueDictionary[tuple[_Key, int], Held]" = WeakValueDictionary()
_LOCK = threading.Lock()


def here(run: str) -> _Key:
    """Return the key of a run on this worker: several workers may share a process."""
    from distributed import get_worker

    return run, get_worker().address


def bench_of(key: _Key) -> Bench:
    """Return what the partitions of a run share on this worker; raise `Lost` if it holds none."""
    found = _BENCHES.get(key)
    if found is None:
        raise Lost(f"run {key[0]}")
    return found


def held_of(key: _Key, p: int) -> Held:
    """Return a partition that this worker holds; raise `Lost` if it does not."""
    found = _HELD.get((key, p))
    if found is None:
        raise Lost(f"partition {p}")
    return found


def join(key: _Key, p: int, problem: AnyProblem, state: object) -> Held:
    """Return a partition that tasks find from now on."""
    with _LOCK:
        bench = _BENCHES.get(key) or Bench()
        _BENCHES[key] = bench
        _HELD[key, p] = held = Held(p, problem, bench, state)
    return held
