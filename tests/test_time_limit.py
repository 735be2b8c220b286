"""Time limits: what counts, what is left out, and what a run returns when time is up."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import Accelerated, BlockFrankWolfe, FrankWolfe, Pairwise, Status, limits, objective, solve
from maxmargin.methods.sampling import n_visits
from maxmargin.problems import Multiclass
from support.crammer_singer import least_objective

LAM, N = 0.05, 30
_rng = np.random.default_rng(0)
Y = np.arange(N) % 3
X = _rng.normal(size=(3, 3))[Y] + _rng.normal(size=(N, 3))
PROBLEM = Multiclass.from_arrays(X, Y)
# The module; `maxmargin.solve` is the function.
driver = importlib.import_module("maxmargin.solve")


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
    clock, advance, hinges = Clock(), driver.advance, objective.hinges

    def slow_advance(method, state, problem, visits):
        clock.now += n_visits(visits)
        return advance(method, state, problem, visits)

    def slow_hinges(problem, w, first, out, scratch):
        clock.now += len(out)
        clock.certificates += len(out)
        hinges(problem, w, first, out, scratch)

    monkeypatch.setattr(limits, "time", clock)
    monkeypatch.setattr(driver, "advance", slow_advance)
    monkeypatch.setattr(objective, "hinges", slow_hinges)
    return clock


METHODS = {
    "bcfw": BlockFrankWolfe(LAM),
    "pairwise": Pairwise(LAM),
    "accelerated": Accelerated(Pairwise(LAM)),
}


@pytest.mark.parametrize("check_every", [1, 2, 100])
@pytest.mark.parametrize("limit", [65.0, 100.0, 333.0, 1000.0])
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
def test_too_little_time_for_a_certificate(clock, optimum, method, limit):
    """The weights are those of the steps made, and the lower bound holds."""
    result = solve(PROBLEM, method, tol=0.0, time_limit=limit, random_state=0)
    assert result.status is Status.TIME_LIMIT
    assert clock.now <= 1.1 * limit + 1.0
    assert (result.primal, result.gap) == (math.inf, math.inf)
    assert result.dual <= optimum
    assert result.w.any()
    assert len(result.history) == 1


def test_a_start_without_time_for_its_certificate(clock, optimum):
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


def test_a_clock_that_stands_still(monkeypatch):
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
