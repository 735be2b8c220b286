r"""Fewer calls of an expensive oracle, by steps towards planes that it returned earlier.

**The cache.** A visit first searches the cache of the example, and calls its oracle only if no cached plane
is good enough. A plane is, if its block gap :math:`\hat g_i` is as large as the one that the oracle is likely
to find (Osokin et al. 2016),

.. math:: \hat g_i > 0, \qquad \hat g_i \ge \max \left( F g_i, \; \frac{\nu}{n} \sum_j g_j \right),
          \qquad F = 1, \quad \nu = 0.01,

where :math:`g_i` is the block gap at the last call of its oracle, infinite before the first call, and the
sum is taken at the end of the last pass. The authors use F = 0.25. Here, smaller gaps are left to replays:
this takes fewer visits and no more calls. A plane is dropped if it was not the best one in the last few
visits (Shah, Kolmogorov and Lampert 2015).

**Replays** follow each pass: approximate passes that use cached planes only (MP-BCFW; Shah, Kolmogorov and
Lampert 2015). Costs are measured in visits without an oracle call. Let the pass make c calls of an oracle of
cost r, and let :math:`\Delta D_k` be the increase of
the dual in replay k, or in the pass itself for k = 0. Replays continue while the last one gained more per
unit of cost than the pass and all replays together,

.. math:: \frac{\Delta D_k}{n} > \frac{\Delta D_0 + \dots + \Delta D_k}{n + r c + k n} , \qquad k n \le r c ,

and never cost more than the calls did. This reads no clock, so the same seed and the same r give the same
result. For small r, replays cannot pay off, and this is the inner method.
"""

import math
import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.methods import protocol
from maxmargin.methods.blocks import SIZE, START
from maxmargin.methods.planes import (
    Planes,
    copied_planes,
    dot_plane,
    drop_planes,
    empty_planes,
    has_plane_room,
    include_corner,
    plane_entries,
)
from maxmargin.methods.protocol import Carry, Traits, check_inner, start
from maxmargin.methods.rules import Visits, n_visits, some_visits
from maxmargin.methods.scratch import corner_at_scores, scratch_for
from maxmargin.methods.sweep import advance, hinges, scores, sweep_all, sweep_in_time
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import score
from maxmargin.structures.problem import AnyProblem, sizes

# The cache pays off if an oracle call costs at least this much, in visits without it.
_WORTHWHILE = 2.0


class _Cached(NamedTuple):
    inner: Any
    oracle_cost: float | None
    capacity: int
    life: int


class Cached(_Cached):
    """A block method that calls the oracle less often, for oracles that take most of the time.

    ``history.oracle_calls`` and ``history.passes`` count real oracle calls; the driver's ``max_passes`` and
    ``check_every`` count passes over the examples, in which the cache serves some visits.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise, Away or an average of one of them
        The method that moves the blocks.
    oracle_cost : float, optional
        Cost of an oracle call, in visits without it. Below 2 the cache is off, and this is the inner method.
        By default it is timed once, at the start, on a few examples, and rounded to a power of two. Set it if
        runs must agree bit for bit.
    capacity : int
        Largest number of planes kept per example.
    life : int
        A plane is dropped after this many passes in which it was not the best one of its example.
    """

    __slots__ = ()

    def __new__(
        cls, inner: object, oracle_cost: float | None = None, capacity: int = 50, life: int = 10
    ) -> "Cached":
        check_inner(cls.__name__, inner)
        if oracle_cost is not None and not (isinstance(oracle_cost, Real) and 0.0 <= oracle_cost < np.inf):
            raise ValueError(f"Cached: oracle_cost must be a number >= 0 or None, got {shown(oracle_cost)}.")
        for name, value, least in (("capacity", capacity, 0), ("life", life, 1)):
            if not (isinstance(value, Integral) and value >= least):
                raise ValueError(f"Cached: {name} must be an int >= {least}, got {shown(value)}.")
        return super().__new__(cls, inner, oracle_cost, int(capacity), int(life))


_SHARE = 1.0  # F
_FLOOR = 0.01  # nu


class Cache(NamedTuple):
    """Cached planes.

    Attributes
    ----------
    planes : Planes
        ``alpha`` is a plane's remaining life: the number of visits in which it may fail to be the best.
    gap : array of shape (n,)
        n times the block gap at the last call of the oracle.
    floor : array of shape (1,)
        n times the smallest gap of a hit.
    hits : array of shape (1,)
        Number of visits without an oracle call.
    gain : array of shape (1,)
        n times the increase of the dual in this pass.
    """

    planes: Planes
    gap: FloatArray
    floor: FloatArray
    hits: IntArray
    gain: FloatArray


def new_cache(planes: Planes) -> Cache:
    """Return a cache that starts with these planes."""
    gap, hits = np.full(len(planes.extent), np.inf), np.zeros(1, dtype=np.int64)
    return Cache(planes, gap, np.zeros(1), hits, np.zeros(1))


def set_floor(cache: Cache) -> None:
    """Make the current gaps the reference for hits."""
    known = cache.gap[np.isfinite(cache.gap)]
    cache.floor[0] = _FLOOR * known.sum() / max(len(cache.gap), 1)


@helper
def is_hit(cache, i, gap):
    """Whether a cached plane with this gap, times n, may replace an oracle call."""
    return gap > 0.0 and gap >= max(_SHARE * cache.gap[i], cache.floor[0])


@helper
def best_plane(planes, i, theta):
    """Return the plane of largest margin, and its margin; -1 and -inf if there is none."""
    start, best, largest = planes.extent[i, START], -1, -np.inf
    for c in range(planes.extent[i, SIZE]):
        margin = planes.loss[start + c] - dot_plane(planes, i, c, theta)
        if margin > largest:
            best, largest = c, margin
    return best, largest


@helper
def copy_plane(planes, i, c, corner):
    """Make plane c the corner; return its loss."""
    first, stop = plane_entries(planes, i, c)
    for e in range(stop - first):
        corner.where[e] = planes.where[first + e]
        corner.value[e] = planes.value[first + e]
    corner.size[0] = stop - first
    return planes.loss[planes.extent[i, START] + c]


@helper
def renew_plane(planes, i, c, life):
    """Reset the life of plane c to its full length."""
    planes.alpha[planes.extent[i, START] + c] = life


@helper
def age_planes(planes, i, best, life):
    """Shorten the life of every plane but the best by one visit; drop the planes whose life is over."""
    start = planes.extent[i, START]
    for c in range(planes.extent[i, SIZE]):
        planes.alpha[start + c] = life if c == best else planes.alpha[start + c] - 1.0
    drop_planes(planes, i)


@helper
def keep_corner(planes, i, loss, hinge, corner, life, capacity):
    """Add the oracle's answer to the cache; if it is full, drop the plane with the shortest life."""
    renew_plane(planes, i, include_corner(planes, i, loss, hinge, corner), life)
    if planes.extent[i, SIZE] > capacity:
        _drop_shortest_lived(planes, i)


@helper
def _drop_shortest_lived(planes, i):
    start = planes.extent[i, START]
    shortest = 0
    for c in range(1, planes.extent[i, SIZE]):
        if planes.alpha[start + c] < planes.alpha[start + shortest]:
            shortest = c
    planes.alpha[start + shortest] = 0.0
    drop_planes(planes, i)


class Lazy(NamedTuple):
    """The method of a pass of `Cached`: search the cache first, and call the oracle if necessary."""

    inner: Any
    capacity: int
    life: float


class Replay(NamedTuple):
    """The method of a replay of `Cached`: search the cache only."""

    inner: Any
    life: float


class CachedWorking(NamedTuple):
    """The state of the inner method, and the cache."""

    inner: Any
    cache: Cache


class Schedule(NamedTuple):
    """The progress of a run.

    Attributes
    ----------
    cost : float
        r, the cost of the oracle.
    visits : int
        Blocks visited in this pass.
    hits : int
        Number of hits before this pass.
    passes, replays : int
    """

    cost: float
    visits: int = 0
    hits: int = 0
    passes: int = 0
    replays: int = 0


class CachedState(NamedTuple):
    """The blocks with their cache, and the progress of the run."""

    working: CachedWorking
    schedule: Schedule

    @property
    def inner(self) -> Any:
        """The state of the inner method."""
        return self.working.inner


@protocol.start.register(Cached)
def cached_start(method: Cached, problem: AnyProblem) -> CachedState:
    size, cost = sizes(problem), method.oracle_cost
    schedule = Schedule(measured_cost(problem, method.inner) if cost is None else float(cost))
    planes = empty_planes(size.examples if _is_on(schedule) else 0, size.parts)
    return CachedState(CachedWorking(protocol.start(method.inner, problem), new_cache(planes)), schedule)


@protocol.carried.register(Cached)
def cached_carried(method: Cached, state: CachedState, problem: AnyProblem, carry: Carry) -> CachedState:
    """Keep the planes, which do not depend on lam; forget the gaps that the oracle found."""
    size, cost, (inner, cache) = sizes(problem), method.oracle_cost, state.working
    schedule = Schedule(state.schedule.cost if cost is None else float(cost))
    planes = copied_planes(cache.planes, size.examples, size.parts)
    working = CachedWorking(protocol.carried(method.inner, inner, problem, carry), new_cache(planes))
    return CachedState(working, schedule)


def _is_on(schedule: Schedule) -> bool:
    return schedule.cost >= _WORTHWHILE


def _replay(method: Cached) -> Replay:
    return Replay(method.inner, float(method.life))


@protocol.has_room.register(Lazy)
def lazy_has_room(method, state, i, sizes):
    fits = has_plane_room(state.cache.planes, i, sizes.parts)
    return fits and protocol.has_room(method.inner, state.inner, i, sizes)


@protocol.seek.register(Lazy)
def lazy_seek(method, state, problem, i, w, scratch):
    cache, planes, work = state.cache, state.cache.planes, scratch.block
    score(problem.map, i, w, work.theta)
    mean = protocol.mean_margin(method.inner, state.inner, i, work.theta)
    best, margin = best_plane(planes, i, work.theta)
    if is_hit(cache, i, margin - mean):
        cache.hits[0] += 1
        loss_y = copy_plane(planes, i, best, work.corner)
        age_planes(planes, i, best, method.life)
        return loss_y, margin
    loss_y, hinge = corner_at_scores(problem, i, scratch)
    age_planes(planes, i, best, method.life)
    keep_corner(planes, i, loss_y, hinge, work.corner, method.life, method.capacity)
    cache.gap[i] = max(hinge - mean, 0.0)
    return loss_y, hinge


@protocol.seek.register(Replay)
def replay_seek(method, state, problem, i, w, scratch):
    planes, work = state.cache.planes, scratch.block
    score(problem.map, i, w, work.theta)
    best, margin = best_plane(planes, i, work.theta)
    if not margin > protocol.mean_margin(method.inner, state.inner, i, work.theta):
        return 0.0, -np.inf
    renew_plane(planes, i, best, method.life)
    return copy_plane(planes, i, best, work.corner), margin


@protocol.step.register(Lazy)
@protocol.step.register(Replay)
def lazy_step(method, state, phi, i, loss_y, hinge, work):
    if hinge == -np.inf:  # the replay found nothing better than the block's mean
        return protocol.DONE
    report = protocol.step(method.inner, state.inner, phi, i, loss_y, hinge, work)
    state.cache.gain[0] += work.move.gain[0]
    return report


@advance.register(Cached)
def cached_advance(
    method: Cached, state: CachedState, problem: AnyProblem, visits: Visits | IntArray
) -> CachedState:
    if not _is_on(state.schedule):
        inner = advance(method.inner, state.working.inner, problem, visits)
        return state._replace(working=state.working._replace(inner=inner))
    lazy, n = Lazy(method.inner, method.capacity, float(method.life)), sizes(problem).examples
    done, total = 0, n_visits(visits)
    while True:
        schedule = state.schedule
        ahead = min(n - schedule.visits, total - done)
        working = sweep_all(problem, lazy, state.working, some_visits(visits, done, done + ahead))
        state = CachedState(working, schedule._replace(visits=schedule.visits + ahead))
        done += ahead
        if state.schedule.visits == n:
            state = _after_pass(method, state, problem)
        if done == total:
            return state


def _after_pass(method: Cached, state: CachedState, problem: AnyProblem) -> CachedState:
    """Replay while it pays off and time remains; the number of the pass seeds the order."""
    (working, schedule), n = state, sizes(problem).examples
    hits, rng = int(working.cache.hits[0]), np.random.default_rng(schedule.passes)
    calls = schedule.cost * (n - hits + schedule.hits)
    set_floor(working.cache)
    replays, last, total, done = 0, np.inf, 0.0, n
    while last * (n + calls + replays * n) > max(total, 0.0) * n and (replays + 1) * n <= calls and done == n:
        before = float(working.cache.gain[0])
        working, done = sweep_in_time(problem, _replay(method), working, rng.permutation(n))
        total = float(working.cache.gain[0])
        replays, last = replays + 1, total - before
    working.cache.gain[0] = 0.0
    passes, replays = schedule.passes + 1, schedule.replays + replays
    return CachedState(working, Schedule(schedule.cost, 0, hits, passes, replays))


@protocol.traits.register(Cached)
def cached_traits(method: Cached) -> Traits:
    return protocol.traits(method.inner)._replace(has_step=False, wraps=True)


@protocol.oracle_calls.register(Cached)
def cached_oracle_calls(method: Cached, state: CachedState, visits: int) -> int:
    return visits - int(state.working.cache.hits[0])


# Examples are added until their oracles take this long: the clock is too coarse for shorter times.
_ENOUGH_SECONDS = 2e-3
_REPEATS = 3
_PATIENCE_SECONDS = 0.05


def measured_cost(problem: AnyProblem, method: object) -> float:
    """Return the oracle's cost in visits without it, rounded to a power of two; 0 if it is negligible.

    It is timed on a few examples. A visit scores an example, calls its oracle and takes a step. Only a
    temporary state changes.
    """
    size, state = sizes(problem), start(method, problem)
    w, out = np.zeros(size.weights), np.empty(size.examples)

    def visit(count: int) -> None:
        nonlocal state
        state = sweep_all(problem, method, state, np.arange(count))

    with scratch_for(problem) as (inner, scratch):

        def ask(count: int) -> None:
            hinges(inner, w, 0, out[:count], scratch)

        def find_scores(count: int) -> None:
            scores(inner, w, count, scratch)

        for run in (visit, find_scores, ask):  # compile or load the kernels, and enlarge the pools
            run(1)
        count = _enough(ask, size.examples)
        visited, asked, scored = _shortest(count, visit, ask, find_scores)
    oracle = asked - scored
    rest = max(visited - oracle, scored)
    return 2.0 ** round(math.log2(oracle / rest)) if oracle > 0.0 and rest > 0.0 else 0.0


def _enough(run: Callable[[int], None], n: int) -> int:
    """Return the first number of examples, 1, 2, 4, ..., on which the run takes long enough to be timed."""
    count = 1
    while count < n and _seconds(run, count) < _ENOUGH_SECONDS:
        count = min(2 * count, n)
    return count


def _shortest(count: int, *runs: Callable[[int], None]) -> list[float]:
    """Return the shortest time of each over a few rounds, or over a single round if it takes long."""
    best = [math.inf] * len(runs)
    for _ in range(_REPEATS):
        best = [min(known, _seconds(run, count)) for known, run in zip(best, runs, strict=True)]
        if sum(best) > _PATIENCE_SECONDS:
            break
    return best


def _seconds(run: Callable[[int], None], count: int) -> float:
    begin = time.perf_counter()
    run(count)
    return time.perf_counter() - begin
