"""Time limits: what counts, what is left out, and what a run returns when time is up."""

import math
import threading
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin import (
    BMRM,
    Accelerated,
    Averaged,
    BlockExact,
    BlockFrankWolfe,
    Cached,
    CuttingPlane,
    Divided,
    ExcessiveGap,
    Extragradient,
    FrankWolfe,
    NSlackCuttingPlane,
    Pairwise,
    Status,
    solve,
)
from maxmargin.methods import protocol
from maxmargin.methods.rules import n_visits
from maxmargin.problems import Multiclass
from maxmargin.runtime import limits
from maxmargin.runtime.limits import Pace, now, shared_pace, stopped_clock
from maxmargin.solving import objective, run
from maxmargin.structures import oracle
from support.crammer_singer import least_objective

LAM, N = 0.05, 30
_rng = np.random.default_rng(0)
Y = np.arange(N) % 3
X = _rng.normal(size=(3, 3))[Y] + _rng.normal(size=(N, 3))
PROBLEM = Multiclass.from_arrays(X, Y)


@pytest.fixture(scope="module")
def optimum():
    """The least objective, by liblinear."""
    return least_objective(X, Y, LAM)


class Clock:
    """Time that passes only in oracle calls: a second each, in steps and in certificates."""

    def __init__(self):
        self.now, self.certificates = 0.0, 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock, advance, hinges = Clock(), run.advance, objective.hinges

    def slow_advance(method, state, problem, visits):
        clock.now += n_visits(visits)
        return advance(method, state, problem, visits)

    def slow_hinges(problem, w, first, out, scratch):
        clock.now += len(out)
        clock.certificates += len(out)
        hinges(problem, w, first, out, scratch)

    monkeypatch.setattr(limits, "time", clock)
    monkeypatch.setattr(run, "advance", slow_advance)
    monkeypatch.setattr(objective, "hinges", slow_hinges)
    return clock


METHODS = {
    "bcfw": BlockFrankWolfe(LAM),
    "pairwise": Pairwise(LAM),
    "accelerated": Accelerated(Pairwise(LAM)),
}


@pytest.mark.parametrize("check_every", [1, 2, 100])
@pytest.mark.parametrize("limit", [65.0, 100.0, 333.0, pytest.param(1000.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_certificates_count_and_the_last_one_is_made(clock, optimum, method, limit, check_every):
    result = solve(
        PROBLEM, method, tol=0.0, time_limit=limit, check_every=check_every, max_passes=10**6, random_state=0
    )
    assert result.status is Status.TIME_LIMIT
    assert clock.now <= 1.1 * limit + 1.0
    assert clock.now >= 0.8 * limit
    assert result.dual <= optimum <= result.primal < math.inf


@pytest.mark.parametrize("limit", [1.5, 10.0, 40.0])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_too_little_time_for_a_certificate_leaves_bounds_that_hold(clock, optimum, method, limit):
    """The weights are those of the steps made, and the lower bound holds."""
    result = solve(PROBLEM, method, tol=0.0, time_limit=limit, random_state=0)
    assert result.status is Status.TIME_LIMIT
    assert clock.now <= 1.1 * limit + 1.0
    assert (result.primal, result.gap) == (math.inf, math.inf)
    assert result.dual <= optimum
    assert result.w.any()
    assert len(result.history) == 1


def test_a_start_may_have_no_time_for_its_certificate(clock, optimum):
    before = solve(PROBLEM, METHODS["bcfw"], tol=0.0, max_passes=3, random_state=0)
    other = Multiclass.from_arrays(np.vstack([X, X[:1]]), np.append(Y, Y[:1]))
    clock.now = 0.0
    result = solve(other, METHODS["bcfw"], tol=0.0, time_limit=5.0, start=before, random_state=0)
    assert result.status is Status.TIME_LIMIT
    assert result.primal == math.inf
    assert result.w.any()


def test_batch_methods_stop_between_passes(clock):
    result = solve(PROBLEM, FrankWolfe(LAM), tol=0.0, time_limit=100.0, check_every=10, random_state=0)
    assert result.status is Status.TIME_LIMIT
    assert result.history.passes.tolist() == [2.0]  # a third one would leave no time to certify it


def test_converged_at_the_time_limit_is_converged(clock):
    result = solve(PROBLEM, FrankWolfe(LAM), tol=10.0, time_limit=70.0, check_every=10)
    assert result.status is Status.CONVERGED


def test_a_clock_may_stand_still(monkeypatch):
    # As a coarse one does during a short piece.
    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: 5.0))
    result = solve(PROBLEM, METHODS["bcfw"], tol=0.0, max_passes=3, time_limit=1.0, random_state=0)
    assert result.status is Status.MAX_PASSES
    assert result.history.seconds.tolist() == [0.0]


def test_the_history_has_the_seconds_of_steps_alone(clock):
    result = solve(PROBLEM, FrankWolfe(LAM), tol=0.0, max_passes=3, check_every=1, random_state=0)
    assert clock.certificates >= 3 * N
    assert result.history.seconds.tolist() == [N, 2.0 * N, 3.0 * N]


def test_no_limit_looks_at_all_examples(clock, optimum):
    result = solve(PROBLEM, METHODS["bcfw"], tol=0.1, random_state=0)
    assert result.dual <= optimum <= result.primal


# A clock that ticks in the oracle itself, wherever it is called from.
TICKS = Clock()


class Slow(NamedTuple):
    """An oracle whose calls take a second each."""

    inner: Any


@oracle.argmax.register(Slow)
def slow_argmax(slow, i, theta, y, work):
    TICKS.now += 1.0
    oracle.argmax(slow.inner, i, theta, y, work.inner)


@oracle.expectation.register(Slow)
def slow_expectation(slow, i, theta, share, z, work):
    TICKS.now += 1.0
    return oracle.expectation(slow.inner, i, theta, share, z, work.inner)


@oracle.block_optimum.register(Slow)
def slow_block_optimum(slow, i, theta, curvature, z, work):
    TICKS.now += 1.0
    return oracle.block_optimum(slow.inner, i, theta, curvature, z, work.inner)


@pytest.fixture
def ticks(monkeypatch):
    TICKS.now = 0.0
    monkeypatch.setattr(limits, "time", TICKS)
    return TICKS


SLOW = PROBLEM._replace(oracle=Slow(PROBLEM.oracle))
EVERYWHERE = METHODS | {
    "accelerated exact": Accelerated(BlockExact(LAM)),
    "averaged batch": Averaged(FrankWolfe(LAM), "weighted"),
    "bmrm": BMRM(LAM),
    "cached": Cached(Pairwise(LAM), oracle_cost=8.0),
    "cutting plane": CuttingPlane(LAM),
    "exact": BlockExact(LAM),
    "frank-wolfe": FrankWolfe(LAM),
    "n-slack": NSlackCuttingPlane(LAM),
}


@pytest.mark.parametrize("limit", [3.0, 20.0, 50.0, 77.0, 200.0, 333.0])
@pytest.mark.parametrize("method", EVERYWHERE.values(), ids=EVERYWHERE)
def test_all_that_a_run_does_counts(ticks, optimum, method, limit):
    """The choice of kappa, passes of batch methods and certificates, to within a tenth or one oracle call."""
    result = solve(SLOW, method, tol=0.0, time_limit=limit, max_passes=10**6, random_state=0)
    assert result.status is Status.TIME_LIMIT
    assert ticks.now <= 1.1 * limit + 1.0
    assert result.dual <= optimum <= result.primal


@pytest.mark.parametrize("method", [ExcessiveGap(LAM), Extragradient(LAM)], ids=lambda m: type(m).__name__)
def test_passes_at_the_start_of_methods_count(ticks, optimum, method):
    """Nothing can be returned before the start is complete; from there on, the limit holds."""
    protocol.start(method, SLOW)
    least = ticks.now
    for limit in (10.0, least + 1.5 * N, least + 3.3 * N):
        ticks.now = 0.0
        result = solve(SLOW, method, tol=0.0, time_limit=limit, max_passes=10**6, random_state=0)
        assert ticks.now <= max(1.1 * limit + 1.0, least)
        assert result.status is Status.TIME_LIMIT
        assert result.dual <= optimum <= result.primal


def test_rounds_of_parts_are_completed(ticks):
    method, limit = Divided(Pairwise(LAM), parts=2), 100.0
    solve(SLOW, method, tol=0.0, time_limit=limit, max_passes=10**6, random_state=0)
    assert ticks.now <= 1.1 * limit + N / 8 + 1.0


def test_a_pass_given_up_leaves_a_state_to_continue_from(ticks, optimum):
    cut = solve(SLOW, FrankWolfe(LAM), tol=0.0, time_limit=2.5 * N, check_every=1, random_state=0)
    ticks.now = 0.0
    whole = solve(SLOW, FrankWolfe(LAM), tol=0.0, max_passes=1, check_every=1, random_state=0)
    np.testing.assert_array_equal(cut.w, whole.w)
    later = solve(SLOW, FrankWolfe(LAM), tol=0.0, max_passes=1, start=cut, random_state=0)
    assert cut.dual <= later.dual <= optimum


def test_oracle_calls_are_counted_if_a_pass_is_cut_short(ticks):
    result = solve(SLOW, NSlackCuttingPlane(LAM), tol=0.0, time_limit=17.0, random_state=0)
    assert result.history.oracle_calls.tolist() == [17]


def test_compiling_does_not_count(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(limits, "time", clock)
    begin = now()
    clock.now += 1.0
    with stopped_clock():
        clock.now += 10.0
        with stopped_clock():  # a kernel within a kernel, or in another thread
            clock.now += 100.0
        assert now() - begin == 1.0
    clock.now += 2.0
    assert now() - begin == 3.0


def test_the_clock_may_be_stopped_by_several_threads(monkeypatch):
    clock, entered, leave = Clock(), threading.Barrier(3), threading.Barrier(3)
    monkeypatch.setattr(limits, "time", clock)
    begin = now()

    def compile_something():
        with stopped_clock():
            entered.wait()
            leave.wait()

    workers = [threading.Thread(target=compile_something) for _ in range(2)]
    for worker in workers:
        worker.start()
    entered.wait()
    clock.now += 5.0
    assert now() == begin
    leave.wait()
    for worker in workers:
        worker.join()
    clock.now += 1.0
    assert now() - begin == 1.0


def test_the_next_piece_is_at_most_eight_times_as_long_as_the_last() -> None:
    """Also where more examples than a piece were visited at once, as in the choice of the first kappa."""
    with shared_pace():
        for examples, length in ((1, 8), (8, 64), (5, 512), (1000, 8000)):
            Pace("visits").note(examples, 1e-9)
            assert Pace("visits").length == length
        Pace("visits").note(1000, 1.0)
        assert Pace("visits").length == 100  # those of a tenth of a second
