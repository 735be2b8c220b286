r"""Fewer calls of an expensive oracle: steps towards planes that it returned before.

A pass over the examples first asks the cache of each, and calls its oracle only if no cached plane will do
(`maxmargin.methods._cache` has the criterion). After the pass come *replays*, approximate passes that look at
cached planes alone (MP-BCFW; Shah, Kolmogorov and Lampert 2015). With costs in units of a visit without its
oracle, c calls of an oracle of cost r, and :math:`\Delta D_k` for what the dual gained in replay k, or in
the pass itself, k = 0, replays go on while the last one gained more for its cost than all did together,

.. math:: \frac{\Delta D_k}{n} > \frac{\Delta D_0 + \dots + \Delta D_k}{n + r c + k n} , \qquad k n \le r c ,

and never cost more than the calls did. No clock is read for it, so that the same seed and the same r give the
same result. For small r replays cannot pay, and the method is the inner one.
"""

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import IntArray
from maxmargin.methods._cache import (
    Cache,
    age_planes,
    best_plane,
    copy_plane,
    is_hit,
    keep_corner,
    new_cache,
    renew_plane,
    set_floor,
)
from maxmargin.methods._cost import measured_cost
from maxmargin.methods._planes import copied_planes, empty_planes, has_plane_room
from maxmargin.methods._protocol import (
    DONE,
    Carry,
    Point,
    advance,
    carried,
    dual_loss,
    has_room,
    has_step,
    mean_margin,
    moves_blocks,
    oracle_calls,
    point,
    projects,
    seek,
    start,
    step,
    takes_corners,
)
from maxmargin.methods._scratch import corner_at_scores
from maxmargin.methods._sweep import sweep_all
from maxmargin.methods.sampling import Visits, n_visits, some_visits
from maxmargin.problems._protocol import score, sizes

# The oracle must cost this much, in visits without it, for a cache to pay.
_WORTHWHILE = 2.0


class _Cached(NamedTuple):
    inner: Any
    oracle_cost: float | None
    capacity: int
    life: int


class Cached(_Cached):
    """A block method that calls the oracle less often: for oracles that take most of the time.

    ``history.oracle_calls`` and ``history.passes`` count true calls; the driver's ``max_passes`` and
    ``check_every`` count passes over the examples, in which some visits are served by the cache.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise, Away or an average of one of them
        The method that moves the blocks.
    oracle_cost : float, optional
        What a call of the oracle costs, in visits of an example without it; below 2 the cache is off, and
        this is the inner method. By default it is timed once, at the start, on a few examples, and rounded
        to a power of two: give it if runs must agree in every bit.
    capacity : int
        Most planes kept for an example.
    life : int
        A plane is dropped when it was not the best one of its example in this many passes.
    """

    __slots__ = ()

    def __new__(
        cls, inner: Any, oracle_cost: float | None = None, capacity: int = 50, life: int = 10
    ) -> "Cached":
        if not (has_step(inner) and moves_blocks(inner) and takes_corners(inner)):
            raise ValueError(
                "Cached: inner must be BlockFrankWolfe, Pairwise, Away or an average of one of them, "
                f"got {type(inner).__name__}."
            )
        if oracle_cost is not None and not (isinstance(oracle_cost, Real) and 0.0 <= oracle_cost < np.inf):
            raise ValueError(f"Cached: oracle_cost must be a number >= 0 or None, got {oracle_cost!r}.")
        for name, value, least in (("capacity", capacity, 0), ("life", life, 1)):
            if not (isinstance(value, Integral) and value >= least):
                raise ValueError(f"Cached: {name} must be an int >= {least}, got {value!r}.")
        return super().__new__(cls, inner, oracle_cost, int(capacity), int(life))


class Lazy(NamedTuple):
    """What `Cached` does in a pass: the cache is asked first, and the oracle if it must be."""

    inner: Any
    capacity: int
    life: float


class Replay(NamedTuple):
    """What `Cached` does after a pass: the cache alone is asked."""

    inner: Any
    life: float


class WorkingState(NamedTuple):
    """The state of the inner method, and the cache."""

    inner: Any
    cache: Cache


class Schedule(NamedTuple):
    """Where a run is.

    Attributes
    ----------
    cost : float
        r, the cost of the oracle.
    visits : int
        Blocks visited in this pass.
    hits : int
        Hits before this pass.
    passes, replays : int
    """

    cost: float
    visits: int = 0
    hits: int = 0
    passes: int = 0
    replays: int = 0


class CachedState(NamedTuple):
    """What moves, and when."""

    working: WorkingState
    schedule: Schedule

    @property
    def inner(self) -> Any:
        """The state of the inner method."""
        return self.working.inner


@start.register(Cached)
def cached_start(method: Cached, problem: Any) -> CachedState:
    size, cost = sizes(problem), method.oracle_cost
    schedule = Schedule(measured_cost(problem, method.inner) if cost is None else float(cost))
    planes = empty_planes(size.examples if _is_on(schedule) else 0, size.parts)
    return _begun(method, problem, WorkingState(start(method.inner, problem), new_cache(planes)), schedule)


@carried.register(Cached)
def cached_carried(method: Cached, state: CachedState, problem: Any, carry: Carry) -> CachedState:
    """Planes know nothing of lam, and are kept; what the oracle will find is unknown again."""
    size, cost, (inner, cache) = sizes(problem), method.oracle_cost, state.working
    schedule = Schedule(state.schedule.cost if cost is None else float(cost))
    planes = copied_planes(cache.planes, size.examples, size.parts)
    working = WorkingState(carried(method.inner, inner, problem, carry), new_cache(planes))
    return _begun(method, problem, working, schedule)


def _begun(method: Cached, problem: Any, working: WorkingState, schedule: Schedule) -> CachedState:
    """Return the state with which a run begins, its replays compiled before the run's clock starts."""
    if _is_on(schedule):
        sweep_all(problem, _replay(method), working, np.zeros(0, dtype=np.int64))
    return CachedState(working, schedule)


def _is_on(schedule: Schedule) -> bool:
    return schedule.cost >= _WORTHWHILE


def _replay(method: Cached) -> Replay:
    return Replay(method.inner, float(method.life))


@has_room.register(Lazy)
def lazy_has_room(method, state, problem, i):
    fits = has_plane_room(state.cache.planes, i, sizes(problem).parts)
    return fits and has_room(method.inner, state.inner, problem, i)


@has_room.register(Replay)
def replay_has_room(method, state, problem, i):
    return has_room(method.inner, state.inner, problem, i)


@seek.register(Lazy)
def lazy_seek(method, state, problem, i, w, scratch):
    cache, planes = state.cache, state.cache.planes
    score(problem, i, w, scratch.theta)
    mean = mean_margin(method.inner, state.inner, i, scratch.theta)
    best, margin = best_plane(planes, i, scratch.theta)
    if is_hit(cache, i, margin - mean):
        cache.hits[0] += 1
        loss_y = copy_plane(planes, i, best, scratch.corner)
        age_planes(planes, i, best, method.life)
        return loss_y, margin
    loss_y, hinge = corner_at_scores(problem, i, scratch)
    age_planes(planes, i, best, method.life)
    keep_corner(planes, i, loss_y, hinge, scratch.corner, method.life, method.capacity)
    cache.gap[i] = max(hinge - mean, 0.0)
    return loss_y, hinge


@seek.register(Replay)
def replay_seek(method, state, problem, i, w, scratch):
    planes = state.cache.planes
    score(problem, i, w, scratch.theta)
    best, margin = best_plane(planes, i, scratch.theta)
    if not margin > mean_margin(method.inner, state.inner, i, scratch.theta):
        return 0.0, -np.inf
    renew_plane(planes, i, best, method.life)
    return copy_plane(planes, i, best, scratch.corner), margin


@step.register(Lazy)
@step.register(Replay)
def lazy_step(method, state, problem, i, loss_y, hinge, scratch):
    if hinge == -np.inf:  # a replay found nothing better than the block's mean
        return DONE
    report = step(method.inner, state.inner, problem, i, loss_y, hinge, scratch)
    state.cache.gain[0] += scratch.move.gain[0]
    return report


@advance.register(Cached)
def cached_advance(
    method: Cached, state: CachedState, problem: Any, visits: Visits | IntArray
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


def _after_pass(method: Cached, state: CachedState, problem: Any) -> CachedState:
    """Replay as long as it pays; the order is drawn by the number of the pass."""
    (working, schedule), n = state, sizes(problem).examples
    hits, rng = int(working.cache.hits[0]), np.random.default_rng(schedule.passes)
    calls = schedule.cost * (n - hits + schedule.hits)
    set_floor(working.cache)
    replays, last, total = 0, np.inf, 0.0
    while last * (n + calls + replays * n) > max(total, 0.0) * n and (replays + 1) * n <= calls:
        before = float(working.cache.gain[0])
        working = sweep_all(problem, _replay(method), working, rng.permutation(n))
        total = float(working.cache.gain[0])
        replays, last = replays + 1, total - before
    working.cache.gain[0] = 0.0
    passes, replays = schedule.passes + 1, schedule.replays + replays
    return CachedState(working, Schedule(schedule.cost, 0, hits, passes, replays))


@dual_loss.register(Cached)
def cached_dual_loss(method: Cached, state: CachedState) -> float:
    return dual_loss(method.inner, state.working.inner)


@point.register(Cached)
def cached_point(method: Cached, state: CachedState, problem: Any) -> Point:
    return point(method.inner, state.working.inner, problem)


@projects.register(Cached)
def cached_projects(method: Cached) -> bool:
    return bool(projects(method.inner))


@oracle_calls.register(Cached)
def cached_oracle_calls(method: Cached, state: CachedState, visits: int) -> int:
    return visits - int(state.working.cache.hits[0])
