"""Exchange of parts within kernels: what they add, whoever comes first, and that nobody waits for ever."""

import threading
from collections.abc import Generator
from typing import NamedTuple

import numba
import numpy as np
import pytest

from maxmargin.compiling.loops import has_reached, publish
from maxmargin.methods.between_visits import (
    NO_ACCELERATION,
    Exchange,
    before_visit,
    new_exchanges,
    new_log,
    record,
)
from maxmargin.runtime.threads import run_in_turns, threads
from maxmargin.structures.feature_map import Move, add_entry, new_move, reset
from support.naive import Array

SIZE, ROUNDS, SIGMA, SCALE = 5, 7, 1.6, 0.3
GAMMA = 0.5


class Identity:
    """A feature map whose weights are the statistics, from the example's number on."""

    def push(self, i: int, move: Move, scale: float, w: Array, work: object) -> None:
        w += scale * np.roll(move.delta, i)


class Work(NamedTuple):
    move: Move
    map: None


def moves_of(parts: int) -> Array:
    """Random moves of all parts in all rounds, with some zeros."""
    rng = np.random.default_rng(parts)
    return rng.normal(size=(parts, ROUNDS, SIZE)) * (rng.random((parts, ROUNDS, SIZE)) < 0.7)


def changes_of(moves: Array) -> Array:
    """By how much they move the common weights: in round r, part p moves example r of its own."""
    parts = len(moves)
    return np.array(
        [
            [SCALE * GAMMA * np.roll(move, r * parts + p) for r, move in enumerate(own)]
            for p, own in enumerate(moves)
        ]
    )


def exchanges_of(parts: int) -> list[Exchange]:
    after, before = [np.arange(1, ROUNDS)] * parts, [np.full(SIZE, np.nan) for _ in range(parts)]
    return new_exchanges(Identity(), after, before, SCALE, new_log(parts, 1, SIZE), is_crowded=True)


def part_task(exchanges: Exchange, moves: Array) -> Generator[None, None, Array]:
    """Visits that move the weights, and all exchanges."""
    w, work = np.arange(SIZE, dtype=float), Work(new_move(SIZE), None)
    for t, direction in enumerate(moves):
        while not before_visit(exchanges, t, w, work):
            yield
        for k in np.flatnonzero(direction):
            add_entry(work.move, k, direction[k])
        work.move.gamma[0] = GAMMA
        w += SIGMA * SCALE * GAMMA * np.roll(direction, t * exchanges.parts + exchanges.part)
        record(exchanges, t, work.move)
        reset(work.move)
    while not before_visit(exchanges, len(moves), w, work):
        yield
    return w


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_sums_are_those_of_naive_loops(parts: int, n_jobs: int) -> None:
    """A part has all its own moves, sigma times, and those of the others but for the last two rounds."""
    moves, exchanges = moves_of(parts), exchanges_of(parts)
    with threads(n_jobs):
        found = run_in_turns([part_task(*each) for each in zip(exchanges, moves, strict=True)])
    change = changes_of(moves)
    for p, w in enumerate(found):
        others = change[np.arange(parts) != p, :-2].sum(axis=(0, 1))
        before = np.arange(SIZE) + SIGMA * change[p, :-2].sum(axis=0) + others
        assert exchanges[p].before == pytest.approx(before, abs=1e-12)
        assert w == pytest.approx(before + SIGMA * change[p, -2:].sum(axis=0), abs=1e-12)


@pytest.mark.parametrize("first", range(3))
def test_who_comes_first_does_not_change_a_bit(first: int) -> None:
    moves, found = moves_of(3), []
    for order in ([0, 1, 2], np.roll([2, 1, 0], first)):
        exchanges = exchanges_of(3)
        weights = run_in_turns([part_task(exchanges[p], moves[p]) for p in order])
        found.append(np.array([weights[list(order).index(p)] for p in range(3)]))
    assert (found[0] == found[1]).all()


def test_a_part_waits_for_one_that_is_a_round_behind() -> None:
    """Part 0 comes to its second exchange before part 1 has made a visit."""
    exchanges, work = exchanges_of(2)[0], Work(new_move(SIZE), None)
    assert before_visit(exchanges, 1, np.zeros(SIZE), work)
    assert not before_visit(exchanges, 2, np.zeros(SIZE), work)
    publish(exchanges.finished[1], 1)
    assert before_visit(exchanges, 2, np.zeros(SIZE), work)


def test_without_meetings_nothing_happens() -> None:
    move = new_move(SIZE)
    assert before_visit(NO_ACCELERATION, 3, np.zeros(1), Work(move, None))
    record(NO_ACCELERATION, 0, move)


@pytest.mark.compiled
@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compiled_code_looks_at_memory_each_time() -> None:
    compiled = numba.njit(lambda array, value, patience: has_reached(array, value, patience))
    compiled(np.zeros(1, dtype=np.int64), 1, 3)
    (code,) = compiled.inspect_llvm().values()
    assert "load atomic" in code
    assert "acquire" in code
    assert [compiled(np.array([2]), value, 3) for value in (1, 2, 3)] == [True, True, False]
    stored, array = numba.njit(lambda array: publish(array, 7)), np.zeros(1, dtype=np.int64)
    stored(array)
    assert array[0] == 7
    assert "store atomic" in next(iter(stored.inspect_llvm().values()))


def forever() -> Generator[None, None, None]:
    while True:
        yield


def failing(error: type[BaseException], turns: int) -> Generator[None, None, None]:
    for _ in range(turns):
        yield
    raise error("this task")


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("place", range(3))
def test_an_error_ends_the_tasks_that_wait(place: int, n_jobs: int) -> None:
    tasks = [forever() for _ in range(2)]
    tasks.insert(place, failing(ZeroDivisionError, 5))
    with pytest.raises(ZeroDivisionError, match=r"^this task$"), threads(n_jobs):
        run_in_turns(tasks)


def interrupted() -> Generator[None, None, None]:
    """Python raises interrupts in the main thread alone."""
    while threading.current_thread() is not threading.main_thread():
        yield
    yield
    raise KeyboardInterrupt


def test_an_interrupt_ends_the_tasks_that_wait() -> None:
    with pytest.raises(KeyboardInterrupt), threads(2):
        run_in_turns([interrupted(), interrupted()])


def test_answers_are_in_order() -> None:
    def answer(k: int) -> Generator[None, None, int]:
        for _ in range(5 - k):
            yield
        return k

    for n_jobs in (1, 2, 5):
        with threads(n_jobs):
            assert run_in_turns([answer(k) for k in range(5)]) == list(range(5))
