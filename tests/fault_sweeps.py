"""Sweeps of faults: interrupts, termination, memory and disk that run out, at every stage.

``python tests/fault_sweeps.py FOLDER --cases 200 --seed 0`` lets faults happen at random moments, and notes
each case in FOLDER/cases.jsonl, so that the same command goes on where it stopped. After each fault, the same
stage in the same process and folder must give the bits of a run without faults. With ``--allocations``, each
allocation of every stage fails once.
"""

import argparse
import contextlib
import hashlib
import io
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from support.journals import swept

Stage = Callable[[Path], bytes]
_LEAST_BYTES = 1 << 9  # of the allocations that fail; data are small here


def _words(n: int) -> tuple[list[list[list[str]]], list[list[str]]]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 6, size=n)
    X = [[[f"w{rng.integers(900)}", f"s{rng.integers(40)}"] for _ in range(m)] for m in lengths]
    return X, [[str(rng.integers(3)) for _ in x] for x in X]


def _rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    return rng.normal(size=(12, 30)), np.arange(12) % 4


def _digest(*values: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=8)
    for value in values:
        digest.update(
            np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        )
    return digest.digest()


@cache
def _fitted() -> Any:
    from maxmargin import MulticlassSVC

    return MulticlassSVC(random_state=0, verbose=0, max_iter=3).fit(*_rows())


def encode(folder: Path) -> bytes:
    from maxmargin.problems import Chain
    from maxmargin.structures.problem import fingerprint

    return _digest(fingerprint(Chain.from_sequences(*_words(20))))


def fit(folder: Path) -> bytes:
    from maxmargin import ChainSVC

    X, y = _words(4)
    model = ChainSVC(random_state=0, verbose=0, max_iter=3).fit(X, y)
    return _digest(model.coef_, model.gap_)


def certificates(folder: Path) -> bytes:
    from maxmargin import Accelerated, Pairwise, solve
    from maxmargin.problems import Multiclass

    problem = Multiclass.from_arrays(*_rows())
    result = solve(problem, Accelerated(Pairwise(0.1)), tol=0.0, max_passes=4, check_every=1, random_state=0)
    return _digest(result.weights, result.primal, result.dual, result.status)


def predict(folder: Path) -> bytes:
    X, _ = _rows()
    return _digest(_fitted().predict(np.tile(X, (3, 1))), _fitted().predict_margins(X))


def save(folder: Path) -> bytes:
    from maxmargin import load

    file = folder / "model"
    if file.exists():
        load(file).predict(_rows()[0][:1])  # whatever happened, a file that is there is whole
    for _ in range(3):
        _fitted().save(file)
    return _digest(load(file).coef_)


def checkpoint(folder: Path) -> bytes:
    from maxmargin import Checkpoint, Pairwise, solve
    from maxmargin.problems import Multiclass

    file, problem = folder / "run", Multiclass.from_arrays(*_rows())
    options: dict[str, Any] = {"tol": 0.0, "max_passes": 6, "check_every": 2, "random_state": 0}
    result = solve(
        problem,
        Pairwise(0.1),
        checkpoint=Checkpoint(file, every=0),
        start=file if file.exists() else None,
        **options,
    )
    if result.status.name == "MAX_PASSES":
        file.unlink(missing_ok=True)
    return _digest(result.weights, result.primal, result.dual, result.status)


def command(folder: Path) -> bytes:
    from maxmargin import cli

    (folder / "data").write_text("the DT B-NP\ndog NN I-NP\n\na DT B-NP\ncat NN I-NP\n\n")
    model, out = str(folder / "command"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.main(["train", str(folder / "data"), "-m", model, "-q", "--json", "--max-iter", "2"])
        code = code or cli.main(["tag", model, str(folder / "data"), "-q"])
    lines = err.getvalue().splitlines()
    assert code == 0 or (lines and lines[-1].startswith("maxmargin: ")), lines
    out.flush()
    tags = [
        line for line in out.buffer.getvalue().decode().splitlines() if line.startswith(("the", "a ", "dog"))
    ]  # type: ignore[attr-defined]
    return _digest(code, tags)


STAGES: dict[str, Stage] = {
    stage.__name__: stage for stage in (encode, fit, certificates, predict, save, checkpoint, command)
}


@contextlib.contextmanager
def interrupted(stage: str, folder: Path, seconds: float, rng: np.random.Generator) -> Iterator[None]:
    """Press Ctrl-C once at a random moment of the block, or just after it."""
    over = threading.Event()

    def press() -> None:
        if not over.wait(float(rng.uniform(0.0, seconds))):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        time.sleep(0)  # an interrupt that is on its way arrives here


@contextlib.contextmanager
def counted(fails_at: int) -> Iterator[list[int]]:
    """Count the allocations of NumPy that are not small, and let the one of this number fail."""
    count = [0]

    def counting(name: str) -> Any:
        real = getattr(np, name)

        def allocate(*args: Any, **options: Any) -> Any:
            array = real(*args, **options)
            if array.nbytes >= _LEAST_BYTES:
                count[0] += 1
                if count[0] == fails_at:
                    raise MemoryError(f"Unable to allocate {array.nbytes} bytes")
            return array

        return allocate

    with contextlib.ExitStack() as stack:
        for name in ("empty", "zeros", "ones", "full", "concatenate", "array"):
            stack.enter_context(mock.patch.object(np, name, counting(name)))
        yield count


@contextlib.contextmanager
def short_of_memory(stage: str, folder: Path, seconds: float, rng: np.random.Generator) -> Iterator[None]:
    """Let one of the allocations of a stage fail."""
    with counted(0) as count:
        STAGES[stage](folder)
    with counted(int(rng.integers(1, count[0] + 1))):
        yield


@contextlib.contextmanager
def short_of_disk(stage: str, folder: Path, seconds: float, rng: np.random.Generator) -> Iterator[None]:
    """Let no file grow beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(rng.integers(0, 40_000)), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAULTS: dict[str, Any] = {"interrupt": interrupted, "memory": short_of_memory, "disk": short_of_disk}
ALLOWED = (KeyboardInterrupt, MemoryError, OSError)


def reference(stage: str, folder: Path) -> tuple[bytes, float]:
    """Return the answer of a stage without faults, and its seconds."""
    STAGES[stage](folder)  # imports what it needs
    begin = time.monotonic()
    return STAGES[stage](folder), time.monotonic() - begin


def within_process(stage: str, fault: str, folder: Path, rng: np.random.Generator) -> str:
    """Let a fault happen in a stage, then repeat it; return what came of the first."""
    expected, seconds = reference(stage, folder)
    try:
        with FAULTS[fault](stage, folder, 1.1 * seconds, rng):
            STAGES[stage](folder)
        came = "an answer"
    except ALLOWED as error:
        came = type(error).__name__
    assert STAGES[stage](folder) == expected, f"another answer after {came}"
    return came


def at_each_allocation(stage: str, folder: Path) -> dict[str, Any]:
    """Let each allocation of a stage fail, one after another, and repeat the stage after each."""
    expected, _ = reference(stage, folder)
    with counted(0) as count:
        STAGES[stage](folder)
    found: dict[str, Any] = {"stage": stage, "fault": "memory", "allocations": count[0], "failed": 0}
    for number in range(1, count[0] + 1):
        try:
            with counted(number):
                STAGES[stage](folder)
        except MemoryError:
            found["failed"] += 1
        assert STAGES[stage](folder) == expected, f"another answer after allocation {number} failed"
    return found


def terminated(stage: str, folder: Path, rng: np.random.Generator) -> str:
    """End a process by SIGTERM in a stage, then repeat the stage with the files that it left."""
    expected, seconds = reference(stage, folder)
    process = multiprocessing.get_context("fork").Process(target=STAGES[stage], args=(folder,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        process.start()
    process.join(float(rng.uniform(0.0, 1.2 * seconds)))
    process.terminate()
    process.join()
    assert process.exitcode in (0, -signal.SIGTERM), process.exitcode
    assert STAGES[stage](folder) == expected, "another answer after SIGTERM"
    left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
    assert not left, left
    return "ended" if process.exitcode else "an answer"


def drawn(number: int) -> tuple[str, str, np.random.Generator]:
    """Return the stage and the fault of a case, and what draws its moment."""
    rng = np.random.default_rng(number)
    return str(rng.choice(list(STAGES))), str(rng.choice([*FAULTS, "terminate"])), rng


def one_case(number: int, folder: Path) -> dict[str, Any]:
    """Check the case of this number."""
    stage, fault, rng = drawn(number)
    home = folder / f"case{number}"
    home.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"number": number, "stage": stage, "fault": fault}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = (stage, home, rng) if fault == "terminate" else (stage, fault, home, rng)
            found["came"] = (terminated if fault == "terminate" else within_process)(*given)  # type: ignore[operator]
    except Exception as error:
        found["wrong"] = "".join(traceback.format_exception(error, limit=-5))
    for path in home.iterdir():
        path.unlink()
    home.rmdir()
    return found


def main(arguments: list[str] | None = None) -> int:
    from maxmargin.compiling.interpreting import interpreted

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--allocations", action="store_true", help="let each allocation fail, in every stage")
    parsed = parser.parse_args(arguments)
    if parsed.allocations:
        parsed.folder.mkdir(parents=True, exist_ok=True)
        with interpreted(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for stage in STAGES:
                print(at_each_allocation(stage, parsed.folder), flush=True)
        return 0
    with interpreted():
        known = swept(parsed.folder, parsed.cases, parsed.seed, one_case)
    wrong = [case for case in known if "wrong" in case]
    for case in wrong:
        print(case["number"], case["stage"], case["fault"], case["wrong"], sep="\n")
    faults = sum(case.get("came") != "an answer" for case in known)
    print(f"{len(known)} cases, {faults} of them with a fault on the way, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
