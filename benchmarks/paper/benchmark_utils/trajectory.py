"""What a run looks like on its way, measured at chosen numbers of visits and off the clock.

`solve` certifies after whole passes and keeps the best weights alone. The paper's figures begin at a tenth of
a pass and show the test error too, so that a method is wrapped in `Watched`, which stops at checkpoints.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.methods.protocol import Point, oracle_calls, point, regularisation, start, traits
from maxmargin.methods.rules import Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes

PER_DECADE = 12


class Row(NamedTuple):
    """One checkpoint.

    Attributes
    ----------
    passes : float
        Oracle calls / n: the paper's effective passes.
    oracle_calls : int
        Calls by the method; those that measure it are not counted.
    seconds : float
        Processor time of the method alone, compiled before: what else the machine does hardly changes it.
    primal, dual, gap : float
        At this point, not the best so far.
    test_error : float
    """

    passes: float
    oracle_calls: int
    seconds: float
    primal: float
    dual: float
    gap: float
    test_error: float


def checkpoints(n: int, first: float, passes: int) -> IntArray:
    """Return numbers of visits, evenly spaced on a log scale, from a share of a pass to the last pass."""
    count = 1 + round(PER_DECADE * np.log10(passes / first))
    grid = np.geomspace(first * n, passes * n, count)
    return np.unique(np.maximum(np.rint(grid).astype(np.int64), 1))


class Watch:
    """The clock of a run, its next checkpoint, and what was measured."""

    def __init__(self, stops: IntArray, test_error: Callable[[FloatArray], float]) -> None:
        self.stops, self.test_error = stops.tolist(), test_error
        self.visits, self.seconds = 0, 0.0
        self.rows: list[Row] = []

    def to_next(self) -> int:
        """Return the number of visits to the next checkpoint; many after the last."""
        return self.stops[0] - self.visits if self.stops else 1 << 62

    def count(self, visits: int, seconds: float) -> bool:
        """Take note of visits made; return whether a checkpoint was reached."""
        self.visits += visits
        self.seconds += seconds
        due = self.to_next() <= 0
        while self.to_next() <= 0:
            del self.stops[0]
        return due

    def measure(self, method: Any, state: Any, problem: Any) -> None:
        """Measure the method's answer where it is now."""
        answer: Point = point(method, state, problem)
        lam, n = regularisation(method), sizes(problem).examples
        primal, w = lowest(problem, answer, lam)
        dual, calls = objective.dual(answer, lam), oracle_calls(method, state, self.visits)
        error = self.test_error(w)
        self.rows.append(Row(calls / n, calls, self.seconds, primal, dual, primal - dual, error))


def lowest(problem: Any, answer: Point, lam: float) -> tuple[float, FloatArray]:
    """Return the lowest objective among the answer's weights, and its weights."""
    measured = [(objective.primal(problem, w, lam), k, w) for k, w in enumerate((answer.w, *answer.others))]
    primal, _, w = min(measured, key=lambda entry: entry[:2])
    return primal, w


class Watched(NamedTuple):
    """A method that is measured at checkpoints."""

    inner: Any
    watch: Watch


class WatchedState(NamedTuple):
    """The state of the method within."""

    inner: Any


@start.register(Watched)
def watched_start(method: Watched, problem: Any) -> WatchedState:
    return WatchedState(start(method.inner, problem))


@advance.register(Watched)
def watched_advance(
    method: Watched, state: WatchedState, problem: Any, visits: Visits | IntArray
) -> WatchedState:
    inner, watch, done, total = state.inner, method.watch, 0, n_visits(visits)
    if total == 0:  # the driver has the kernels compiled
        return WatchedState(advance(method.inner, inner, problem, visits))
    while done < total:
        length = min(watch.to_next(), total - done) if traits(method.inner).moves_blocks else total
        begin = time.process_time()
        inner = advance(method.inner, inner, problem, some_visits(visits, done, done + length))
        if watch.count(length, time.process_time() - begin):
            watch.measure(method.inner, inner, problem)
        done += length
    return WatchedState(inner)
