"""The cost of an oracle call relative to the rest of a visit, timed on a few examples."""

import math
import time
from collections.abc import Callable

import numpy as np

from maxmargin.methods.protocol import start
from maxmargin.methods.scratch import bare_scratch
from maxmargin.methods.sweep import hinges, scores, sweep_all
from maxmargin.problems.bare import bared
from maxmargin.problems.problem import AnyProblem, sizes

# Examples are added until their oracles take this long: the clock is too coarse for shorter times.
_ENOUGH_SECONDS = 2e-3
_REPEATS = 3
_PATIENCE_SECONDS = 0.05


def measured_cost(problem: AnyProblem, method: object) -> float:
    """Return the oracle's cost in visits without it, rounded to a power of two; 0 if it is negligible.

    A visit scores an example, calls its oracle and takes a step. Only a temporary state changes.
    """
    size, bare = sizes(problem), bared(problem)
    plain, scratch = bare.problem, bare_scratch(bare)
    w, out, state = np.zeros(size.weights), np.empty(size.examples), start(method, problem)

    def visit(count: int) -> None:
        nonlocal state
        state = sweep_all(problem, method, state, np.arange(count))

    def ask(count: int) -> None:
        hinges(plain, w, 0, out[:count], scratch)

    visit(1)  # compile or load the kernels, and enlarge the pools
    scores(plain, w, 1, scratch)
    ask(1)
    count = _enough(ask, size.examples)
    visited, asked, scored = _shortest(count, visit, ask, lambda count: scores(plain, w, count, scratch))
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
