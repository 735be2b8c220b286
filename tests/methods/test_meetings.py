"""Meetings of parts within kernels: the sums, whoever comes first, and that nobody waits for ever."""

import threading
from collections.abc import Generator

import numba
import numpy as np
import pytest

from maxmargin.compiling.exchange import has_reached, publish
from maxmargin.compiling.threads import run_in_turns, threads
from maxmargin.methods.meetings import NO_MEETINGS, Meetings, attend, last_common, new_meetings
from support.naive import Array

SIZE, ROUNDS, SIGMA = 5, 4, 1.6


def moves_of(parts: int) -> Array:
    """Random moves of all parts in all rounds."""
    return np.random.default_rng(parts).normal(size=(parts, ROUNDS, SIZE))


def part_task(meetings: Meetings, moves: Array) -> Generator[None, None, Array]:
    """Visits that move the weights, and all meetings."""
    w = meetings.common[0].copy()
    for t, move in enumerate(moves):
        while not attend(meetings, t, w):
            yield
        w += move
    while not attend(meetings, len(moves), w):
        yield
    return w


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_sums_against_naive_ones(parts: int, n_jobs: int) -> None:
    w, moves = np.arange(SIZE, dtype=float), moves_of(parts)
    meetings = new_meetings(w, SIGMA, [np.arange(1, ROUNDS)] * parts, is_crowded=True)
    with threads(n_jobs):
        found = run_in_turns([part_task(*each) for each in zip(meetings, moves, strict=True)])
    expected = w + moves[:, :-1].sum(axis=(0, 1)) / SIGMA
    assert last_common(meetings[0]) == pytest.approx(expected, abs=1e-12)
    assert np.array(found) == pytest.approx(expected + moves[:, -1], abs=1e-12)


@pytest.mark.parametrize("first", range(3))
def test_who_comes_first_does_not_change_a_bit(first: int) -> None:
    moves, common = moves_of(3), []
    for order in ([0, 1, 2], np.roll([2, 1, 0], first)):
        meetings = new_meetings(np.ones(SIZE), SIGMA, [np.arange(1, ROUNDS)] * 3, is_crowded=True)
        run_in_turns([part_task(meetings[p], moves[p]) for p in order])
        common.append(last_common(meetings[0]))
    assert (common[0] == common[1]).all()


def test_several_meetings_at_one_visit_and_none() -> None:
    """A part without visits in a round still meets the others."""
    meetings = new_meetings(np.zeros(1), 1.0, [np.array([0, 0, 2]), np.array([1, 2, 2])], is_crowded=True)
    moves = np.ones((2, 2, 1))
    found = run_in_turns([part_task(*each) for each in zip(meetings, moves, strict=True)], is_alone=True)
    assert [w.tolist() for w in found] == [[4.0], [4.0]]
    assert attend(NO_MEETINGS, 3, np.zeros(1))


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
