"""The tasks of workers: pure functions of the partitions that they hold and of messages.

Tasks name the *epoch*, the number of times that the client had to put the run together again. A task of an
earlier epoch, which was on its way when its client gave it up, changes nothing.

A partition is a `Held`, the result of the task that loaded it, so Dask frees it when the client lets go of it
or is gone. Tasks find it by its number. A `Bench` is what the partitions of a run share on a worker: the
common weights and the parts. A part is what one thread moves: some partitions, one after another.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from maxmargin.dask.calls import (
    Change,
    Description,
    Lost,
    PartitionError,
    Report,
    Turn,
    Update,
    dense,
    encoded,
    naming,
    write,
)
from maxmargin.files import checkpoint
from maxmargin.methods import protocol
from maxmargin.methods.accelerated import kappa_by_steps
from maxmargin.methods.protocol import NamedMethod
from maxmargin.methods.sweep import sweep_all
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.limits import OutOfTime, Pace, deadline_at, now
from maxmargin.runtime.wording import shown
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.feature_map import inner, is_euclidean, is_metric, is_projected, unpack
from maxmargin.structures.oracle import is_bounded
from maxmargin.structures.problem import AnyProblem, as_problem, fingerprint, missing_functions, sizes


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


def load(run: str, p: int, make: Callable[..., object], state: object, *data: object) -> Held:
    """Task: hold a partition on this worker; ``make(*data)`` is its problem."""
    with naming(p):
        problem = _checked(p, make(*data))
        mine = None if state is None else checkpoint.restored(state, checkpoint.flatten(state))
        return join(here(run), p, problem, mine)


def _checked(p: int, made: object) -> AnyProblem:
    """Return a partition's problem; raise unless it is one, whose weights have the dot product."""
    problem = as_problem(made)
    missing = ", ".join(missing_functions(problem))
    if missing:
        raise PartitionError(
            f"maxmargin.dask: partition {p} must be a problem of maxmargin.problems or define {missing}, got "
            f"{shown(made)}."
        )
    if sizes(problem).examples < 1:
        raise PartitionError(f"maxmargin.dask: partition {p} must have an example, got none; drop it.")
    if is_projected(problem.map) or not is_metric(problem.map) or not is_euclidean(problem.map):
        raise PartitionError(
            f"maxmargin.dask: partition {p} must have weights without kernels and constraints on signs, got "
            f"{type(problem.map).__name__}; train on one machine."
        )
    return problem


def describe(held: Held) -> Description:
    """Task: describe a partition."""
    problem = held.problem
    try:
        digest = fingerprint(problem)
    except TypeError:  # a user's objects
        digest = ""
    kind = f"{type(problem.map).__name__} with {type(problem.oracle).__name__}"
    return Description(sizes(problem), kind, is_bounded(problem.oracle), digest)


def begin(run: str, p: int, method: NamedMethod, anew: bool = True) -> None:
    """Task: put the dual variables at the truth, if ``anew`` or if there are none; compile the kernels."""
    held = held_of(here(run), p)
    with naming(p), held.lock:
        if anew or held.state is None:
            held.state = protocol.start(method, held.problem)
        held.state = sweep_all(held.problem, method, held.state, np.zeros(0, dtype=np.int64))
        hinge_losses(held.problem, held.state.w, 0, 1)


def layout(run: str, p: int) -> IntArray:
    """Task: return where the weights are that users see, in their order."""
    problem = held_of(here(run), p).problem
    numbers = np.arange(sizes(problem).weights, dtype=np.float64)
    return np.concatenate([np.ravel(part) for part in unpack(problem.map, numbers)]).astype(np.int64)


def kappa(run: str, p: int, method: NamedMethod, n: int) -> float:
    """Task: return the kappa for n examples that this partition suggests."""
    with naming(p):
        return kappa_by_steps(held_of(here(run), p).problem, method, n)


def state_of(run: str, p: int) -> object:
    """Task: return the state of a partition, for another worker."""
    return held_of(here(run), p).state


def own_visits(turn: Turn, p: int, size: int) -> IntArray:
    """Return the visits of a partition in a round: its share of those of the pass."""
    rng = np.random.default_rng([turn.seed, p])
    drawn = rng.permutation(size) if turn.sampling == "permutation" else rng.integers(size, size=size)
    return drawn[turn.first * size // turn.n : turn.stop * size // turn.n]


def move(
    run: str,
    k: int,
    epoch: int,
    partitions: Sequence[int],
    number: int,
    turn: Turn,
    update: Update,
    seconds: float,
) -> bool:
    """Task: let part k make its visits of a round, or go on with them; return whether it is done."""
    key = here(run)
    bench = bench_of(key)
    bench.check(epoch)
    bench.adopt(update)
    part = bench.part(k)
    with part.lock, deadline_at(now() + seconds):
        part.begin(number, bench.w)
        while part.at < len(partitions):
            held = held_of(key, partitions[part.at])
            with held.lock:
                bench.check(epoch)
                if not _visit(part, held, turn):
                    return False
            part.at, part.done = part.at + 1, 0
    return True


def _visit(part: MovingPart, held: Held, turn: Turn) -> bool:
    """Make the visits of a partition, from the part's weights on; return False if time is up."""
    order, started = own_visits(turn, held.number, held.size), time.perf_counter()
    lam = protocol.regularisation(turn.method) * turn.n / (turn.sigma * held.size)
    method, state = protocol.with_lam(turn.method, lam), held.state._replace(w=part.w)
    try:
        for first, stop in Pace().pieces(part.done, len(order)):
            with naming(held.number):
                state = sweep_all(held.problem, method, state, order[first:stop])
            held.state, part.done = state, stop
        return True
    except OutOfTime:
        return False
    finally:
        part.seconds += time.perf_counter() - started


def collect(
    run: str, k: int, epoch: int, partitions: Sequence[int], number: int, method: NamedMethod
) -> Report:
    """Task: report what part k has done in a round."""
    key = here(run)
    bench = bench_of(key)
    bench.check(epoch)
    part = bench.part(k)
    with part.lock:
        if part.number != number:
            raise Lost(f"round {number}")
        d, phi = part.w - bench.w, held_of(key, partitions[0]).problem.map
        ell = sum(_ell(method, held_of(key, p)) for p in partitions)
        change = encoded(d)
        return Report(change, inner(phi, d, d), ell, part.seconds, change.n_bytes)


def move_and_collect(
    run: str,
    k: int,
    epoch: int,
    partitions: Sequence[int],
    number: int,
    turn: Turn,
    update: Update,
    seconds: float,
) -> Report | None:
    """Task: let part k make its visits of a round, and report what it has done; None if it is not done."""
    done = move(run, k, epoch, partitions, number, turn, update, seconds)
    return collect(run, k, epoch, partitions, number, turn.method) if done else None


def image(run: str, epoch: int, p: int, method: NamedMethod) -> Report:
    """Task: report the sum of Phi_i z_i of a partition, and its dual losses."""
    key = here(run)
    bench_of(key).check(epoch)
    held = held_of(key, p)
    with naming(p), held.lock:
        change = encoded(protocol.dual_weights(method, held.state, held.problem))
        return Report(change, 0.0, _ell(method, held), 0.0, change.n_bytes)


def _ell(method: NamedMethod, held: Held) -> float:
    return held.size * float(protocol.dual_loss(method, held.state))


def hinges(
    run: str, k: int, partitions: Sequence[int], number: int, w: Change, seconds: float
) -> tuple[bool, float]:
    """Task: sum the hinges of some partitions, or go on with it; return whether it is done, and the sum."""
    key = here(run)
    bench = bench_of(key)
    with bench.lock:
        measure = bench.measures.get(k)
        if measure is None or measure.number != number:
            measure = bench.measures[k] = Measure(number, dense(w))
    with deadline_at(now() + seconds):
        while measure.at < len(partitions):
            if not _measure(measure, held_of(key, partitions[measure.at])):
                return False, measure.total
            measure.at, measure.done = measure.at + 1, 0
    return True, measure.total


def _measure(measure: Measure, held: Held) -> bool:
    """Add the hinges of a partition; return False if time is up."""
    try:
        for first, stop in Pace().pieces(measure.done, held.size):
            with naming(held.number), deadline_at(np.inf):
                found = float(hinge_losses(held.problem, measure.w, first, stop).sum())
            measure.total, measure.done = measure.total + found, stop
    except OutOfTime:
        return False
    return True
