"""When checkpoints are written, what happens if they cannot be, and which are refused."""

import errno
import itertools
import os
import signal
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

from maxmargin import Accelerated, BlockFrankWolfe, Checkpoint, Pairwise, Status, solve
from maxmargin.files import container
from maxmargin.files.checkpoint import Identity, Keeper
from maxmargin.files.sealed import CHECKPOINT, MODEL, FileError
from maxmargin.methods.protocol import BATCH
from maxmargin.problems import Chain
from maxmargin.runtime import limits
from maxmargin.structures.problem import fingerprint, is_same, sizes
from support.catalogue import chain_case, multiclass_case
from support.checkpoints import SETTINGS, assert_same_run, every_file, run
from support.own_functions import custom
from support.own_problems import own_problems

LAM = 0.1
METHOD = BlockFrankWolfe(LAM)
PROBLEM = multiclass_case(1, n=4).problem


class Progress(NamedTuple):
    """A state that tells the number of passes."""

    passes: int


class SlowDisk:
    """A clock, and a disk on which a write takes some seconds of it."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds
        self.written: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def write(self, *_: Any) -> None:
        self.written.append(self.now)
        self.now += self.seconds


def note(keeper: Keeper, state: Progress) -> None:
    """Do what the driver does after each piece of a pass."""
    if keeper.is_due(state):
        keeper.save(state)


@pytest.mark.parametrize("every", [0.0, 1.0, 60.0, 1000.0])
@pytest.mark.parametrize("seconds", [0.0, 0.5, 3.0])
def test_writing_takes_two_percent_and_little_is_lost(every: float, seconds: float, tmp_path: Path) -> None:
    disk, step = SlowDisk(seconds), 0.25
    with mock.patch.object(limits, "time", disk), mock.patch.object(container, "write", disk.write):
        keeper = Keeper(Checkpoint(tmp_path / "run", every), Identity("", "", "", {}), Progress(0))
        while disk.now < 5000.0:
            disk.now += step
            note(keeper, Progress(0))
    assert len(disk.written) >= 3
    assert seconds * (len(disk.written) - 1) <= disk.now / 49.0
    # What is lost at most: all from the moment of one state to the end of the write of the next.
    lost = np.diff(disk.written) + seconds
    longest = max(every, 50.0 * seconds)
    assert longest - step <= lost.min() <= lost.max() <= longest + 2.0 * step


def test_a_file_is_written_every_so_many_passes(tmp_path: Path) -> None:
    disk = SlowDisk(0.0)
    with mock.patch.object(container, "write", disk.write), mock.patch.object(limits, "time", disk):
        keeper = Keeper(Checkpoint(tmp_path / "run", "3 passes"), Identity("", "", "", {}), Progress(2))
        for disk.now in range(2, 12):
            note(keeper, Progress(int(disk.now)))
            note(keeper, Progress(int(disk.now)))
    assert disk.written == [5, 8, 11]


@pytest.mark.parametrize("every", [-1, np.nan, np.inf, "5", "passes", "0 passes", "5 Passes", None, [5]])
def test_wrong_intervals_are_refused(every: Any) -> None:
    expected = "Checkpoint: every must be a number of seconds >= 0, or passes such as '5 passes', got "
    with pytest.raises(ValueError, match=expected):
        Checkpoint("run", every)


@pytest.mark.parametrize("path", [None, 3, b"run", ""])
def test_wrong_paths_are_refused(path: Any) -> None:
    with pytest.raises(ValueError, match="Checkpoint: path must be the path of a file, got "):
        Checkpoint(path)


def full_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_run_survives_a_full_disk(tmp_path: Path) -> None:
    file, expected = tmp_path / "run", run(PROBLEM, METHOD)
    run(PROBLEM, METHOD, max_passes=1, checkpoint=file)
    before = file.read_bytes()
    with (
        mock.patch.object(container, "write_atomically", full_disk),
        every_moment(),
        pytest.warns(RuntimeWarning, match="run could not be written .* training continues") as said,
    ):
        found = run(PROBLEM, METHOD, start=file, checkpoint=file)
    assert len(said) == 1
    assert_same_run(found, expected)
    assert file.read_bytes() == before
    assert_same_run(run(PROBLEM, METHOD, start=file), expected)


def every_moment() -> Any:
    """Store the state whenever it can be stored."""
    return mock.patch.object(Keeper, "is_due", return_value=True)


def test_an_interrupt_waits_for_the_file(tmp_path: Path) -> None:
    write, file, writes = container.write_atomically, tmp_path / "run", itertools.count()

    def interrupted_write(*arguments: Any) -> None:
        if next(writes) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        write(*arguments)

    with mock.patch.object(container, "write_atomically", interrupted_write), every_moment():
        stopped = run(PROBLEM, METHOD, checkpoint=file)
    assert stopped.status is Status.INTERRUPTED
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert_same_run(run(PROBLEM, METHOD, start=file), run(PROBLEM, METHOD))


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    for name in (".run.0a1b.part", ".run[1].x.part", ".other.x.part"):
        (tmp_path / name).write_bytes(b"half")
    run(PROBLEM, METHOD, checkpoint=tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.x.part", ".run[1].x.part", "run"]


def refused(**options: Any) -> str:
    """Return the message of a run that is refused before it begins."""
    with pytest.raises((ValueError, TypeError)) as caught:
        solve(**{"problem": PROBLEM, "method": METHOD} | SETTINGS | options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    file, other = tmp_path / "run", tmp_path / "other"
    run(PROBLEM, METHOD, checkpoint=file)
    os.link(file, other)
    expected = f"solve: checkpoint must be a new file, or that of start, got {str(file)!r}."
    assert refused(checkpoint=file) == expected
    assert refused(checkpoint=file, start=run(PROBLEM, METHOD)) == expected
    assert refused(checkpoint=tmp_path / "no" / "run").startswith(
        "solve: checkpoint must be a file in a folder that can be written to, got "
    )
    assert refused(checkpoint=3) == "solve: checkpoint must be a Checkpoint, a path or None, got 3."
    run(PROBLEM, METHOD, start=str(other), checkpoint=file)


def test_files_of_other_runs_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    run(PROBLEM, METHOD, checkpoint=file)
    X, y = PROBLEM.map.rows.values.copy(), PROBLEM.oracle.labels
    X[0, 0] = np.nextafter(X[0, 0], 1.0)
    other = PROBLEM._replace(map=PROBLEM.map._replace(rows=PROBLEM.map.rows._replace(values=X)))
    assert "got one of other data; remove it or give another path" in refused(problem=other, start=file)
    swapped = PROBLEM._replace(oracle=PROBLEM.oracle._replace(labels=y[::-1].copy()))
    assert "got one of other data" in refused(problem=swapped, start=file)
    for method in (Pairwise(LAM), BlockFrankWolfe(2.0 * LAM)):
        assert "got one of another method, or with other parameters" in refused(method=method, start=file)
    assert "got one with check_every=2, not 5" in refused(check_every=5, start=file)
    with mock.patch("maxmargin.solving.resume.installed_version", return_value="0.0.1"):
        assert "got one of maxmargin '0." in refused(start=file)


def test_files_that_are_no_checkpoints_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    run(PROBLEM, METHOD, checkpoint=file)
    whole = file.read_bytes()
    header, arrays, _ = container.read(file, CHECKPOINT)
    for wrong in (header | {"state": header["state"][:-1]}, header | {"state": 3}):
        container.write(file, CHECKPOINT, arrays, wrong)
        assert "the file is damaged; remove it" in refused(start=file)
    container.write(file, CHECKPOINT, {name: arrays[name] for name in list(arrays)[1:]}, header)
    assert "the file is damaged; remove it" in refused(start=file)
    container.write(file, MODEL, arrays, header)
    assert "expected a checkpoint file of maxmargin, got one of kind 'model'" in refused(start=file)
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(FileError):
            solve(PROBLEM, METHOD, start=file)
    assert "the file of a checkpoint, got " in refused(start=tmp_path / "none")


def test_files_do_not_hold_the_zeros_of_weights(tmp_path: Path) -> None:
    """Names that one token has get weights for its label and a few wrong ones; all others are zero."""
    n, n_labels = 200, 30
    X = [[[f"{t}:{i}", "all"] for t in range(3)] for i in range(n)]
    y = [[(i + t) % n_labels for t in range(3)] for i in range(n)]
    problem = Chain.from_sequences(X, y)
    run(problem, Accelerated(Pairwise(LAM)), max_passes=1, checkpoint=tmp_path / "run")
    n_weights = sizes(problem).weights
    header, arrays, _ = container.read(tmp_path / "run", CHECKPOINT)
    vectors = [name for name, shape in header["shapes"].items() if shape == [n_weights]]
    assert len(vectors) >= 5
    held = sum(arrays[name + end].nbytes for name in vectors for end in (".bits", ".entries"))
    assert held <= 10 * n_weights < 8 * n_weights * len(vectors)
    assert not any(array.size == n_weights for array in arrays.values())


class ObjectMethod:
    """A method written as a Python class, without a fingerprint."""

    lam = LAM

    def traits(self) -> Any:
        return BATCH

    def start(self, problem: Any) -> Any:
        return {"w": {1, 2}}


class NamedObjectMethod(ObjectMethod):
    """One that has a fingerprint, and a state that cannot be stored."""

    def fingerprint(self) -> str:
        return "named"


def test_objects_of_users_have_no_checkpoints(tmp_path: Path) -> None:
    file = tmp_path / "run"
    problem = custom(chain_case(1, (1, 2), 2))
    assert refused(problem=problem, checkpoint=file) == (
        "Checkpoint: the problem must be made of arrays and numbers, or define fingerprint(), got a "
        "CustomOracle; leave the checkpoint out."
    )
    assert "the problem must be" in refused(problem=own_problems()["interpreted"], checkpoint=file)
    assert "Checkpoint: the method must be made of" in refused(method=ObjectMethod(), checkpoint=file)
    assert refused(method=NamedObjectMethod(), checkpoint=file) == (
        "Checkpoint: the method must have a state of named tuples, arrays and numbers, got a set in it; "
        "leave the checkpoint out."
    )
    assert not file.exists()


def test_fingerprints_tell_problems_apart() -> None:
    problems = [
        PROBLEM,
        multiclass_case(2, n=4).problem,
        multiclass_case(1, n=5).problem,
        multiclass_case(1, n=4, rows="sparse").problem,
        chain_case(1).problem,
        chain_case(1, loss="hamming").problem,
        chain_case(1, order=2).problem,
        own_problems()["compiled"],
    ]
    found = [fingerprint(problem) for problem in problems]
    assert len(set(found)) == len(problems)
    assert fingerprint(multiclass_case(1, n=4).problem) == found[0]
    assert is_same(multiclass_case(1, n=4).problem, PROBLEM)
    assert fingerprint((1, (2, 3))) != fingerprint((1, 2, 3))
    assert fingerprint((1,)) != fingerprint((1.0,)) != fingerprint((True,))
    assert fingerprint((0.0,)) != fingerprint((-0.0,))


def test_the_same_run_writes_the_same_file(tmp_path: Path) -> None:
    """Files depend on the run alone, and so do the digests in them, whatever the process."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with every_file(tmp_path / name):
            run(multiclass_case(1, n=4).problem, METHOD, checkpoint=tmp_path / name / "run")
    one, two = (container.read(tmp_path / name / "run", CHECKPOINT) for name in ("one", "two"))
    assert one.header == two.header
