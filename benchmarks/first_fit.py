"""Seconds from import to the first fit, with an empty cache of compiled code.

    python benchmarks/first_fit.py [ESTIMATOR ...] [--against CHECKOUT] [--kernels DIRECTORY]
                                   [--repetitions N] [--instructions]

Every fit runs in a new process on one thread, with a cache directory of its own, and with the bytecode of all
modules, as pip leaves it. CPU seconds are printed beside the wall clock, as they depend less on what else the
machine does. ``weighted`` is a second fit in the
same process, with weights of examples, and ``slack`` a third one, with rescaled slacks (of classes, with a
matrix of costs): what these compile anew. Slacks are not rescaled in GraphSVC, whose graphs here have cycles.
With --against, another checkout is measured in turn, and with --kernels this one with the kernels that
``maxmargin compile --baseline DIRECTORY`` made; ratios of CPU seconds are printed. ``compiled`` counts what
the first fit had to compile. All figures are the least of the repetitions.

With --instructions, Valgrind counts the processor instructions of imports and of imports with a fit, which
depend neither on the speed of the machine nor on what else it does. It takes some minutes a fit.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from _measure import run_python

HERE = Path(__file__).parents[1]
# Seconds from import: what a first fit may take.
MUST = {"ChainSVC": 16.0, "GraphSVC": 21.0, "MulticlassSVC": 8.0}
FIELDS = ("wall", "cpu", "kernels_cpu", "compiled", "weighted_cpu", "megabytes", "slack_cpu")

PROGRAM = """
import json, os, resource, sys, time
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
wall, cpu = time.perf_counter(), used()
import warnings
import numpy as np
import maxmargin
assert maxmargin.__file__.startswith(sys.argv[1]), maxmargin.__file__
warnings.simplefilter("ignore")
imported = used()
rng, name = np.random.default_rng(0), sys.argv[2]
if name == "MulticlassSVC":
    X, y = rng.normal(size=(60, 5)), rng.integers(3, size=60)
else:
    X, y = [rng.normal(size=(6, 10)) for _ in range(50)], [list(rng.integers(3, size=6)) for _ in range(50)]
    if name == "GraphSVC":
        X = [(x, [(k, (k + 1) % 6) for k in range(6)]) for x in X]
estimator = getattr(maxmargin, name)(max_iter=5)
if sys.argv[3] == "import":
    sys.exit()
estimator.fit(X, y)
if sys.argv[3] == "first":
    sys.exit()
first = used()
said = {"wall": time.perf_counter() - wall, "cpu": first - cpu, "kernels_cpu": first - imported}
said["compiled"] = sum(len(files) for _, _, files in os.walk(os.environ["NUMBA_CACHE_DIR"]))
estimator.fit(X, y, sample_weight=np.arange(1.0, len(y) + 1.0))
weighted = used()
said["weighted_cpu"] = weighted - first
if name == "MulticlassSVC":
    estimator.set_params(loss=[[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
if name != "GraphSVC":
    estimator.set_params(rescaling="slack").fit(X, y)
    said["slack_cpu"] = used() - weighted
said["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(said))
"""


class FirstFit(NamedTuple):
    """The figures of a first fit, in seconds and megabytes."""

    wall: float
    cpu: float
    kernels_cpu: float
    compiled: int
    weighted_cpu: float
    megabytes: float
    slack_cpu: float = float("nan")


class Subject(NamedTuple):
    """What is measured: a checkout, and a directory of kernels compiled beforehand, if any."""

    label: str
    checkout: Path
    kernels: Path | None = None


def environment(subject: Subject, cache: str) -> dict[str, str]:
    """Return the environment of a fit on one thread, with a cache directory of its own."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    kernels = "" if subject.kernels is None else str(subject.kernels)
    source = str(subject.checkout / "src")
    bytecode = {"PYTHONDONTWRITEBYTECODE": ""}
    return threads | bytecode | {"PYTHONPATH": source, "NUMBA_CACHE_DIR": cache, "MAXMARGIN_KERNELS": kernels}


def said(subject: Subject, estimator: str, until: str) -> str:
    """Return what a new process prints that fits with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        source = str(subject.checkout / "src")
        return run_python("-c", PROGRAM, source, estimator, until, **environment(subject, cache))


def measured(subject: Subject, estimator: str) -> FirstFit:
    """Run a first fit in a new process, with an empty cache."""
    return FirstFit(**json.loads(said(subject, estimator, "all")))


def instructions(subject: Subject, estimator: str, until: str) -> float:
    """Return the billions of instructions of imports, or of imports and a first fit."""
    counter = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    program = [sys.executable, "-c", PROGRAM, str(subject.checkout / "src"), estimator, until]
    with tempfile.TemporaryDirectory() as cache:
        # Valgrind does not know the newest instructions.
        settings = environment(subject, cache) | {"NUMBA_CPU_NAME": "generic", "PYTHONHASHSEED": "0"}
        run = subprocess.run(
            counter + program, env=os.environ | settings, capture_output=True, text=True, check=True
        )
    (count,) = re.findall(r"I +refs: +([\d,]+)", run.stderr)
    return float(count.replace(",", "")) / 1e9


def print_instructions(subjects: list[Subject], estimators: list[str]) -> None:
    """Print the instructions of imports, of first fits without them, and ratios of the latter."""
    for estimator in estimators:
        fits = {}
        for subject in subjects:
            imports, both = (instructions(subject, estimator, until) for until in ("import", "first"))
            fits[subject] = both - imports
            ratio = fits[subjects[0]] / fits[subject]
            counts = f"imports {imports:6.2f}  fit {fits[subject]:6.2f} billion instructions"
            print(f"{estimator:14} {subject.label:10} {counts}  ratio {ratio:.2f}", flush=True)


def least(fits: list[FirstFit]) -> FirstFit:
    """Return the least of each figure."""
    return FirstFit(*map(min, zip(*fits, strict=True)))


def print_seconds(subjects: list[Subject], estimators: list[str], repetitions: int) -> None:
    """Print the figures of all subjects, which take turns."""
    print(f"{'':14} {'':10}" + "".join(f"{field:>14}" for field in FIELDS) + "   must  ratio of CPU")
    for subject in subjects:
        said(subject, estimators[0], "first")  # leaves the bytecode, and the modules in memory
    for estimator in estimators:
        fits: dict[Subject, list[FirstFit]] = {subject: [] for subject in subjects}
        for _ in range(repetitions):
            for subject in subjects:  # in turn, so that load on the machine slows all
                fits[subject].append(measured(subject, estimator))
        best = {subject: least(some) for subject, some in fits.items()}
        for subject, found in best.items():
            figures = "".join(f"{value:14.1f}" for value in found)
            ratio, must = best[subjects[0]].cpu / found.cpu, MUST.get(estimator, float("nan"))
            print(f"{estimator:14} {subject.label:10}{figures} {must:6.0f}  {ratio:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("estimators", nargs="*", default=list(MUST), metavar="ESTIMATOR")
    parser.add_argument("--against", type=Path, help="another checkout of the repository")
    parser.add_argument("--kernels", type=Path, help="kernels compiled beforehand")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--instructions", action="store_true", help="count instructions, by Valgrind")
    arguments = parser.parse_args()
    subjects = [Subject("this", HERE)]
    if arguments.against:
        subjects.append(Subject("other", arguments.against.resolve()))
    if arguments.kernels:
        subjects.append(Subject("beforehand", HERE, arguments.kernels.resolve()))
    if arguments.instructions:
        print_instructions(subjects, arguments.estimators)
    else:
        print_seconds(subjects, arguments.estimators, arguments.repetitions)


if __name__ == "__main__":
    main()
