"""Memory that runs out for real: the address space of a process is limited, a little more at each turn.

``python tests/memory_limits.py`` runs each stage below under limits from nothing to what it needs, in steps
of half a megabyte. Allocations above one megabyte are mapped one by one, so that each of them fails at some
limit. A stage must answer, or raise MemoryError or one line that says it; then, without the limit, the same
stage in the same process must give the bits of a run that never failed. Kernels are compiled before that, as
the compiler ends its process when it runs out of memory.
"""

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

STEP = 1 << 19
_MAPPED = str(1 << 20)  # bytes from which an allocation is mapped, and given back when it is freed
_WIDE = 1 << 17  # features; a vector of them takes a megabyte


def _rows(n: int) -> Any:
    return np.random.default_rng(0).normal(size=(n, _WIDE))


def _bits(*arrays: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def encode(folder: Path) -> str:
    from maxmargin.problems import Chain
    from maxmargin.structures.problem import fingerprint

    problem = Chain.from_sequences([_rows(2), _rows(1)], [[0, 1], [1]])
    return repr(fingerprint(problem))


def fit(folder: Path) -> str:
    from maxmargin import MulticlassSVC

    model = MulticlassSVC(random_state=0, verbose=0, max_iter=2).fit(_rows(3), [0, 1, 2])
    return _bits(model.coef_, model.gap_)


def fit_chain(folder: Path) -> str:
    from maxmargin import ChainSVC

    model = ChainSVC(random_state=0, verbose=0, max_iter=2).fit([_rows(2), _rows(1)], [[0, 1], [1]])
    return _bits(model.coef_, model.gap_)


def predict(folder: Path) -> str:
    from maxmargin import MulticlassSVC

    model = MulticlassSVC(random_state=0, verbose=0, max_iter=1).fit(_rows(3), [0, 1, 2])
    return _bits(model.predict(_rows(3)), model.predict_margins(_rows(3)))


def save(folder: Path) -> str:
    from maxmargin import MulticlassSVC, load

    file = folder / "model"
    MulticlassSVC(random_state=0, verbose=0, max_iter=1).fit(_rows(2), [0, 1]).save(file)
    return _bits(load(file).coef_)


def checkpoint(folder: Path) -> str:
    from maxmargin import Checkpoint, Pairwise, solve
    from maxmargin.problems import Multiclass

    file, problem = folder / "run", Multiclass.from_arrays(_rows(3), [0, 1, 2])
    options: Any = {"tol": 0.0, "check_every": 1, "random_state": 0}
    start = file if file.exists() else None
    result = solve(
        problem, Pairwise(0.1), max_passes=2, checkpoint=Checkpoint(file, every=0), start=start, **options
    )
    file.unlink(missing_ok=True)
    return _bits(result.weights, result.primal, result.dual)


STAGES: dict[str, Callable[[Path], str]] = {
    stage.__name__: stage for stage in (encode, fit, fit_chain, predict, save, checkpoint)
}


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


@contextmanager
def limited(more: int) -> Iterator[None]:
    """Let the process take so many bytes more than it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def one_turn(stage: str, folder: Path, more: int, expected: str) -> str:
    """Run a stage under a limit, and again without; return what came of the first."""
    try:
        with limited(more):
            found = STAGES[stage](folder)
        came = "an answer"
        assert found == expected, "another answer under the limit"
    except MemoryError:
        came = "MemoryError"
    except ValueError as error:
        if "memory" not in str(error) or "\n" in str(error):
            raise
        came = "one line"
    again = STAGES[stage](folder)
    assert again == expected, f"another answer after {came} at {more} bytes"
    return came


def sweep(stage: str, step: int = STEP) -> Counter[str]:
    """Raise the limit until a stage answers twice in a row; count what came."""
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected, more, answers = STAGES[stage](folder), 0, 0
        while answers < 2:
            came = one_turn(stage, folder, more, expected)
            count[came] += 1
            answers = answers + 1 if came == "an answer" else 0
            more += step
    return count


def _work(stage: str, step: int) -> int:
    """Sweep one stage, in a process that maps what it allocates."""
    warnings.simplefilter("ignore")
    try:
        count = sweep(stage, step)
    except Exception:
        traceback.print_exc(limit=-8)
        return 1
    print(f"{stage}: {sum(count.values())} limits, {dict(count)}", flush=True)
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stages", nargs="*", help=f"of {', '.join(STAGES)}; by default all")
    parser.add_argument("--step", type=int, default=STEP, help="bytes by which the limit is raised")
    given = parser.parse_args(arguments)
    if os.environ.get("MALLOC_MMAP_THRESHOLD_") == _MAPPED:
        return _work(given.stages[0], given.step)
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": _MAPPED, "OPENBLAS_NUM_THREADS": "1"}
    wrong = 0
    for stage in given.stages or STAGES:
        command = [sys.executable, __file__, stage, "--step", str(given.step)]
        wrong += subprocess.run(command, env=environment, check=False).returncode != 0
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
