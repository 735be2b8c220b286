"""Runs of the package's methods, one step at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, LineSearch, Predefined, Result
from maxmargin.methods.protocol import point, start
from maxmargin.methods.sweep import advance
from maxmargin.solving import objective
from maxmargin.structures.problem import as_problem, sizes
from support import naive
from support.catalogue import Case, flat
from support.naive import Array, Optimum

RULES = {"line_search": LineSearch(), "predefined": Predefined()}
SCHEMES = ("weighted", "uniform", "suffix")


def random_order(problem: Any, n_steps: int, seed: int) -> Array:
    """Return examples drawn with replacement."""
    return np.random.default_rng(seed).integers(sizes(as_problem(problem)).examples, size=n_steps)


def block_states(problem: Any, method: BlockFrankWolfe | Averaged, order: Iterable[int]) -> Iterator[Any]:
    """Yield the state after each step of a block; it changes in place."""
    problem = as_problem(problem)
    state = start(method, problem)
    for i in order:
        state = advance(method, state, problem, np.array([i]))
        yield state


def batch_states(problem: Any, method: FrankWolfe | Averaged, n_steps: int) -> Iterator[Any]:
    """Yield the state after each step of all blocks; it changes in place."""
    problem = as_problem(problem)
    state = start(method, problem)
    for _ in range(n_steps):
        state = advance(method, state, problem, np.zeros(0, dtype=np.int64))
        yield state


def dual_of(problem: Any, method: Any, state: Any) -> float:
    """Return the package's dual objective at a state."""
    return objective.dual(point(method, state, problem), method.lam)


def gap_of(problem: Any, method: Any, state: Any) -> float:
    """Return the package's duality gap at a state."""
    answer = point(method, state, problem)
    return objective.primal(problem, answer.w, method.lam) - objective.dual(answer, method.lam)


def assert_brackets(case: Case, result: Result, best: Optimum, lam: float) -> None:
    """Both ends of every certificate are on their sides of the optimum, and the result's are the best.

    The result may be better than all that was measured on the way, as it is never worse than zero weights.
    """
    assert (result.history.dual <= best.primal + 1e-7).all()
    assert (result.history.primal >= best.dual - 1e-7).all()
    assert result.dual == max(0.0, result.history.dual.max())
    assert result.primal <= result.history.primal.min()
    assert result.primal == pytest.approx(
        naive.primal(case.data, flat(case.problem, result.w), lam), abs=1e-9
    )
