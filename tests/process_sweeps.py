"""Sweeps of faults around a process: its kernel cache, directories that cannot be written, forks and threads.

``python tests/process_sweeps.py FOLDER --cases 100 --seed 0`` draws cases, each on a copy of the package with
a kernel cache of its own, and notes them in FOLDER/cases.jsonl, so that the same command goes on where it
stopped. Each case must end with the weights of a run without faults, and the run after it must, too. Kernels
are compiled. A process that takes longer than $MAXMARGIN_SWEEP_SECONDS, 300 by default, is wrong, and ended;
allow more where other work leaves it little of the processors.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parent))

from support.journals import swept
from support.package_copies import BUILT_IN, TRAIN, WARNED, cold, command_environment, copy_package

Program = str
_SECONDS = float(os.environ.get("MAXMARGIN_SWEEP_SECONDS", "300"))
_IN_PROCESSES = """
import multiprocessing as mp
from maxmargin.problems import Multiclass

def work(k):
    return train(Multiclass).weights.tolist()

if __name__ == "__main__":
    first = train(Multiclass)
    with mp.get_context("METHOD").Pool(2) as pool:
        found = pool.map(work, range(4))
    assert all(each == first.weights.tolist() for each in found), found
    report(first)
"""
_IN_THREADS = """
from concurrent.futures import ThreadPoolExecutor
from maxmargin.problems import Multiclass

with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(lambda k: train(Multiclass), range(4)))
assert all(each.weights.tolist() == found[0].weights.tolist() for each in found)
report(found[0])
"""


class Place(NamedTuple):
    """A copy of the package, the weights that its runs must find, and what draws the fault."""

    root: Path
    expected: list[float]
    rng: np.random.Generator

    @property
    def cache(self) -> Path:
        return next((self.root / "maxmargin" / "__pycache__").glob("kernels-*"))

    def check(self, process: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
        """Return what a program reported; raise unless it found the weights."""
        assert process.returncode == 0, process.stderr[-2000:]
        said: dict[str, Any] = json.loads(process.stdout)
        assert said["numbers"] == self.expected, said["numbers"]
        return said

    def start(self, program: Program, prefix: tuple[str, ...] = (), **extra: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*prefix, sys.executable, "-c", program],
            env=command_environment(self.root, **extra),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program: Program = BUILT_IN, prefix: tuple[str, ...] = (), **extra: str) -> dict[str, Any]:
        return self.check(finished(self.start(program, prefix, **extra)))


def finished(process: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
    try:
        out, err = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _some(place: Place) -> list[Path]:
    files = sorted(place.cache.iterdir())
    return [file for file in files if place.rng.random() < 0.4] or files[:1]


def truncated(place: Place) -> str:
    """Some files of the cache end too early, at any byte."""
    files = _some(place)
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[: int(place.rng.integers(len(content)))])
    place.run()
    return f"{len(files)} files"


def flipped(place: Place) -> str:
    """A bit of some files is another one."""
    files = _some(place)
    for file in files:
        content = bytearray(file.read_bytes())
        at = int(place.rng.integers(8 * len(content)))
        content[at // 8] ^= 1 << at % 8
        file.write_bytes(bytes(content))
    place.run()
    return f"{len(files)} files"


def of_another_version(place: Place) -> str:
    """Another version of Numba, or of our sources, finds the cache of this one, and compiles anew."""
    if place.rng.random() < 0.5:
        program = "import numba\nnumba.__version__ = '0.1'\n" + BUILT_IN
        said = place.run(program)
    else:
        file = place.root / "maxmargin" / "compiling" / "loops.py"
        before = file.read_text()
        file.write_text(before + "\n# edited\n")
        said = place.run()
        file.write_text(before)
    assert said["hits"] == 0, said["hits"]
    return "compiled anew"


def removed_in_use(place: Place) -> str:
    """The directory of compiled code is removed at a random moment of a run, cold or warm."""
    if place.rng.random() < 0.5:
        for file in place.cache.iterdir():
            file.unlink()
    process, folder = place.start(BUILT_IN), place.cache
    over, turns = threading.Event(), 0
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: (outcome.append(finished(process)), over.set()))
    thread.start()
    while not over.wait(float(place.rng.uniform(0.0, 1.5))):
        shutil.rmtree(folder, ignore_errors=True)
        turns += 1
    thread.join()
    place.check(outcome[0])
    return f"removed {turns} times"


def two_cold(place: Place) -> str:
    """Two processes compile at once, and one of them may be killed."""
    cold(place.root)
    first = place.start(BUILT_IN)
    time.sleep(float(place.rng.uniform(0.0, 2.0)))
    second = place.start(BUILT_IN)
    is_killed = place.rng.random() < 0.5
    if is_killed:
        time.sleep(float(place.rng.uniform(0.0, 12.0)))
        first.kill()
        finished(first)
    else:
        place.check(finished(first))
    place.check(finished(second))
    return "one killed" if is_killed else "both answered"


def short_of_disk(place: Place) -> str:
    """No file of the cache can grow beyond some bytes."""
    cold(place.root)
    most = int(place.rng.integers(0, 60_000))
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
    place.run(limit + WARNED + BUILT_IN)
    return f"files of {most} bytes"


def _read_only(folders: list[Path]) -> tuple[str, ...]:
    """Return the beginning of a command that cannot write to some folders: for root by mounts of its own."""
    if os.geteuid() != 0:
        for folder in folders:
            folder.chmod(0o555)
        return ()
    mounts = [
        f"mount --bind '{folder}' '{folder}' && mount -o remount,ro,bind '{folder}'" for folder in folders
    ]
    return "unshare", "-m", "sh", "-c", " && ".join(mounts) + ' && exec "$@"', "sh"


def read_only(place: Place) -> str:
    """The package, the home or both cannot be written; the package's cache is cold or warm."""
    home, package = place.root / "home", place.root / "maxmargin"
    home.mkdir()
    is_cold = place.rng.random() < 0.5
    if is_cold:
        cold(place.root)
        (package / "__pycache__").mkdir()
    names = [("package",), ("home",), ("package", "home")][int(place.rng.integers(3))]
    folders = [{"package": package, "home": home}[name] for name in names]
    extra = {"HOME": str(home), "XDG_CACHE_HOME": ""}
    said = place.run(WARNED + BUILT_IN, _read_only(folders), **extra)
    nowhere = is_cold and len(names) == 2
    assert len(said["warnings"]) == nowhere, said["warnings"]
    for folder in folders:
        folder.chmod(0o755)
    return f"{' and '.join(names)}, {'cold' if is_cold else 'warm'}"


def in_processes(place: Place) -> str:
    """Workers are forked from a process that has run kernels, or spawned; the cache is cold or warm."""
    if place.rng.random() < 0.5:
        cold(place.root)
    way = str(place.rng.choice(["fork", "spawn", "forkserver"]))
    file = place.root / "program.py"
    file.write_text(TRAIN + _IN_PROCESSES.replace("METHOD", way))
    run = f"import runpy\nrunpy.run_path({str(file)!r}, run_name='__main__')\n"
    process = place.start(run) if way == "fork" else _script(place, file)
    place.check(finished(process))
    return way


def _script(place: Place, file: Path) -> "subprocess.Popen[str]":
    """Run a file, which spawned processes import."""
    return subprocess.Popen(
        [sys.executable, str(file)],
        env=command_environment(place.root),
        cwd=place.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_threads(place: Place) -> str:
    """Four threads train at once, and compile what is missing."""
    is_cold = place.rng.random() < 0.5
    if is_cold:
        cold(place.root)
    place.run(TRAIN + _IN_THREADS)
    return "cold" if is_cold else "warm"


FAULTS: dict[str, Callable[[Place], str]] = {
    fault.__name__: fault
    for fault in (
        truncated,
        flipped,
        of_another_version,
        removed_in_use,
        two_cold,
        short_of_disk,
        read_only,
        in_processes,
        in_threads,
    )
}


@contextmanager
def warm_copy(folder: Path, source: Path) -> Iterator[Path]:
    """Copy the package with its compiled code, and remove it afterwards."""
    root = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(source / "maxmargin", root / "maxmargin")
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def prepared(folder: Path) -> tuple[Path, list[float]]:
    """Return a copy of the package that has trained once, and the weights that it found."""
    source, weights = folder / "warm", folder / "weights.json"
    if not weights.exists():
        shutil.rmtree(source, ignore_errors=True)
        copy_package(source)
        process = finished(Place(source, [], np.random.default_rng(0)).start(BUILT_IN))
        assert process.returncode == 0, process.stderr
        weights.write_text(json.dumps(json.loads(process.stdout)["numbers"]))
    return source, json.loads(weights.read_text())


def one_case(number: int, folder: Path, fault: str | None = None) -> dict[str, Any]:
    """Let a fault happen, then run once more; the faults take turns."""
    fault, rng = fault or [*FAULTS][number % len(FAULTS)], np.random.default_rng(number)
    found: dict[str, Any] = {"number": number, "fault": fault}
    source, expected = prepared(folder)
    with warm_copy(folder, source) as root:
        place = Place(root, expected, rng)
        try:
            found["came"] = FAULTS[fault](place)
            place.run()  # keeps what it compiles, if the fault has left no cache
            assert place.run()["hits"] == 1, "nothing was kept"
        except Exception as error:
            found["wrong"] = "".join(traceback.format_exception(error, limit=-4))[-3000:]
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parsed = parser.parse_args(arguments)
    known = swept(parsed.folder.resolve(), parsed.cases, parsed.seed, one_case, parsed.minutes)
    wrong = [case for case in known if "wrong" in case]
    for case in wrong:
        print(case["number"], case["fault"], case["wrong"], sep="\n")
    print(f"{len(known)} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
