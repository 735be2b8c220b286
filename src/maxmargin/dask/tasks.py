"""The tasks of workers: pure functions of the partitions that they hold and of messages.

Tasks name the *epoch*, the number of times that the client had to put the run together again. A task of an
earlier epoch, which was on its way when its client gave it up, changes nothing.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

from maxmargin import states
from maxmargin.arrays import IntArray
from maxmargin.dask.changes import Change, dense, encoded
from maxmargin.dask.holding import Held, Measure, MovingPart, bench_of, held_of, here, join
from maxmargin.dask.messages import Description, Lost, PartitionError, Report, Turn, Update, naming
from maxmargin.limits import OutOfTime, Pace, now, until
from maxmargin.methods import protocol
from maxmargin.methods._first_kappa import kappa_by_steps
from maxmargin.methods.protocol import NamedMethod
from maxmargin.methods.sweep import sweep_all
from maxmargin.objective import hinge_losses
from maxmargin.problems.contents import fingerprint
from maxmargin.problems.feature_map import inner, is_euclidean, is_metric, is_projected, unpack
from maxmargin.problems.oracle import is_bounded
from maxmargin.problems.problem import AnyProblem, as_problem, missing_functions, sizes
from maxmargin.wording import shown


def load(run: str, p: int, make: Callable[..., object], state: object, *data: object) -> Held:
    """Task: hold a partition on this worker; ``make(*data)`` is its problem."""
    with naming(p):
        problem = _checked(p, make(*data))
        mine = None if state is None else states.restored(state, states.flatten(state))
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
    with part.lock, until(now() + seconds):
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
    with until(now() + seconds):
        while measure.at < len(partitions):
            if not _measure(measure, held_of(key, partitions[measure.at])):
                return False, measure.total
            measure.at, measure.done = measure.at + 1, 0
    return True, measure.total


def _measure(measure: Measure, held: Held) -> bool:
    """Add the hinges of a partition; return False if time is up."""
    try:
        for first, stop in Pace().pieces(measure.done, held.size):
            with naming(held.number), until(np.inf):
                found = float(hinge_losses(held.problem, measure.w, first, stop).sum())
            measure.total, measure.done = measure.total + found, stop
    except OutOfTime:
        return False
    return True
