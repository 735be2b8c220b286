"""Runs that are cut off at any moment, and what must be the same when they continue from their files."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from maxmargin import Checkpoint, Result, solve
from maxmargin.files.checkpoint import Keeper
from maxmargin.runtime import limits
from support.bitwise_runs import assert_same_bits, bits

SETTINGS: dict[str, Any] = {"tol": 0.0, "max_passes": 3, "check_every": 2, "random_state": 7}


class Clock:
    """A clock on which any piece of a pass takes a tenth of a second, so that passes are cut."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def perf_counter(self) -> float:
        self.seconds += 0.05
        return self.seconds


@contextmanager
def short_pieces() -> Iterator[None]:
    """Let pieces of passes be one visit each, so that a run can be cut off after any of them."""
    with mock.patch.object(limits, "time", Clock()):
        yield


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_at(moment: int) -> Iterator[None]:
    """Raise `Killed` at this reading of the clock; pieces are short."""
    clock = Clock()

    def read() -> float:
        if clock.seconds >= 0.05 * moment:
            raise Killed
        return Clock.perf_counter(clock)

    clock.perf_counter = read  # type: ignore[method-assign]
    with mock.patch.object(limits, "time", clock):
        yield


@contextmanager
def every_file(folder: Path) -> Iterator[list[Path]]:
    """Store the state whenever it can be stored, and keep a copy of each file."""
    files: list[Path] = []
    save = Keeper.save

    def save_and_copy(keeper: Any, state: Any) -> None:
        save(keeper, state)
        files.append(Path(shutil.copy(keeper.checkpoint.path, folder / f"{len(files)}")))

    with mock.patch.multiple(Keeper, save=save_and_copy, is_due=lambda keeper, state: True):
        yield files


def run(problem: Any, method: Any, **options: Any) -> Result:
    """Return the result of a few passes, some certificates among them."""
    with short_pieces():
        return solve(problem, method, **SETTINGS | options)


def files_of(problem: Any, method: Any, folder: Path, **options: Any) -> tuple[Result, list[Path]]:
    """Return the result of a run, and its file at each moment."""
    with every_file(folder) as files:
        result = run(problem, method, checkpoint=Checkpoint(folder / "run", every=0), **options)
    return result, files


def assert_same_run(found: Result, expected: Result) -> None:
    """All but the seconds of the history is the same to the last bit."""
    assert_same_bits(found, expected)
    assert bits(found.w) == bits(expected.w)
    for name in ("primal", "dual", "gap"):
        assert bits([getattr(found, name)]) == bits([getattr(expected, name)])
    assert (found.certified, found.status) == (expected.certified, expected.status)
    assert_same_state(found.stopped.state, expected.stopped.state)


def assert_same_state(found: Any, expected: Any) -> None:
    """Two states have the same classes, types and numbers, but for space that is not in use."""
    assert type(found) is type(expected)
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same_state(a, b)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape, found.flags.c_contiguous) == (expected.dtype, expected.shape, True)
