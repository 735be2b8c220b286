"""Speed and memory of the core, compared with targets, all in one run on one thread.

    python benchmarks/core.py [--quick] [--data DIRECTORY]

OCR and CoNLL-2000 are read from --data or $MAXMARGIN_DATA. A pass is compared with a decoding-only pass
(score and Viterbi at fixed weights, over all training examples): the floor of any method with a max oracle.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import json
import platform
import statistics
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from _crfsuite import tagging_figures
from _measure import (
    Figure,
    Target,
    Times,
    interleaved,
    memory_of_solving,
    pickled,
    print_figures,
    ratio,
    run_python,
)
from _passes import DECODE, PLAIN, SSG, WEIGHTED, Runner, methods
from _problems import conll_problem, if_there, ocr_problem
from maxmargin.compiling.kernel_cache import fingerprint
from maxmargin.datasets import load_conll2000
from maxmargin.methods.blocks import Blocks, state_bytes
from maxmargin.structures.problem import sizes
from maxmargin.structures.sequences.model import ChainProblem

PASSES = str(Path(__file__).with_name("_passes.py"))
PASS = Target(must=2.2, aim=1.5)
SSG_PASS = Target(must=1.6)
AVERAGING = Target(must=1.4, aim=1.15)
STATE_KB = Target(must=8.0, aim=2.0)
GROWTH_MB = Target(must=400.0, aim=200.0)
WARM = Target(must=2.0, aim=1.3)
COLD_SECONDS = Target(must=15.0)

IMPORTS = "import sklearn, numba"
FIT = """
from maxmargin import ChainSVC
from maxmargin.datasets import load_digit_words
X, y, _, _ = load_digit_words()
ChainSVC(C=0.01, random_state=0).fit(X, y)
"""


class Effort(NamedTuple):
    """Numbers of repetitions."""

    processes: int = 9
    ocr: int = 15
    conll: int = 7
    warmup: int = 5
    state_passes: int = 50
    memory_passes: int = 20
    warm_starts: int = 5
    cold_starts: int = 2
    tagging: int = 5


QUICK = Effort(
    processes=2,
    ocr=7,
    conll=3,
    warmup=2,
    state_passes=5,
    memory_passes=5,
    warm_starts=2,
    cold_starts=0,
    tagging=2,
)


def time_passes(name: str, problem: ChainProblem, path: str, rounds: int, effort: Effort) -> None:
    """Print the time of a pass of each method, measured in several processes."""
    runs = [
        {task: Times(tuple(seconds)) for task, seconds in json.loads(output).items()}
        for output in (
            run_python(PASSES, path, str(rounds), str(effort.warmup)) for _ in range(effort.processes)
        )
    ]
    n, n_tokens = sizes(problem).examples, len(problem.oracle.labels)
    print(f"{name}: passes over {n} examples, {n_tokens} tokens; lam = 1/n;", end=" ")
    print(f"{effort.processes} processes of {rounds} rounds")
    print_times(runs)
    print_figures(
        [
            ratio(f"{name}: BCFW pass / decoding pass", pairs_of(runs, PLAIN, DECODE), PASS),
            ratio(f"{name}: weighted / plain BCFW pass", pairs_of(runs, WEIGHTED, PLAIN), AVERAGING),
            ratio(f"{name}: SSG pass / decoding pass", pairs_of(runs, SSG, DECODE), SSG_PASS),
        ]
    )


def pairs_of(runs: list[dict[str, Times]], task: str, other: str) -> list[tuple[Times, Times]]:
    """Return the times of two tasks, process by process."""
    return [(run[task], run[other]) for run in runs]


def print_times(runs: list[dict[str, Times]]) -> None:
    """Print medians over processes, the minimum of all, and ratios, method by method."""
    median = statistics.median
    print(f"{'':24}{'median ms':>10}{'min ms':>9}{'/ decoding':>12}{'/ BCFW':>9}")
    for task in runs[0]:
        typical = median(1e3 * run[task].median for run in runs)
        least = min(1e3 * run[task].least for run in runs)
        to_decoding = median(run[task].ratio_to(run[DECODE]) for run in runs)
        to_plain = median(run[task].ratio_to(run[PLAIN]) for run in runs)
        print(f"{task:24}{typical:10.2f}{least:9.2f}{to_decoding:12.2f}{to_plain:9.2f}")


def blocks_of(state: Any) -> Iterator[Blocks]:
    """Yield all pools of a state."""
    if isinstance(state, Blocks):
        yield state
    elif isinstance(state, tuple):
        for field in state:
            yield from blocks_of(field)


def bytes_per_example(runner: Runner) -> float:
    """Return the size of the method's state in output space: its pools, and a dual loss per example."""
    pools = sum(map(state_bytes, blocks_of(runner.state)))
    n = sizes(runner.problem).examples
    return pools / n + np.dtype(np.float64).itemsize


def measure_state(problem: ChainProblem, passes: int) -> None:
    """Print the size of the dual state after some passes."""
    figures = []
    for name in (PLAIN, WEIGHTED):
        runner = Runner(problem, methods(problem)[name])
        runner.run_to(passes)
        label = f"CoNLL-2000: state per example, {name}, after {passes} passes"
        figures.append(Figure(label, bytes_per_example(runner) / 1e3, "kB", STATE_KB))
    products = problem.products.nbytes / sizes(problem).examples / 1e3
    figures.append(Figure("CoNLL-2000: the problem's own products per example", products, "kB"))
    print_figures(figures)


def measure_memory(path: str, passes: int) -> None:
    """Print the growth of the memory of a process while it solves the problem."""
    memory = memory_of_solving(path, passes)
    growth = (memory["peak"] - memory["before"]) / 1e6
    label = f"CoNLL-2000: growth of memory in {passes} passes, weighted average"
    print_figures(
        [
            Figure("CoNLL-2000: memory before solving", memory["before"] / 1e6, "MB"),
            Figure(label, growth, "MB", GROWTH_MB),
        ]
    )


def measure_start(effort: Effort) -> None:
    """Print the time of a new process from import to a fitted model, with and without compiled kernels."""
    imports, fit = partial(run_python, "-c", IMPORTS), partial(run_python, "-c", FIT)
    cold = [seconds for _ in range(effort.cold_starts) for seconds in cold_start()]
    fit()  # the cache is warm from here on
    times = interleaved({"imports": imports, "fit": fit}, effort.warm_starts)
    figures = [
        Figure("start: python -c 'import sklearn, numba'", times["imports"].median, "s"),
        Figure("start: import to fitted model, warm cache", times["fit"].median, "s"),
        ratio("start: their ratio", [(times["fit"], times["imports"])], WARM),
    ]
    if cold:
        more = statistics.median(cold) - times["fit"].median
        figures.append(Figure("start: cold cache, more than warm", more, "s", COLD_SECONDS))
    print_figures(figures)


def cold_start() -> tuple[float, ...]:
    """Return the seconds of one start with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        fit = partial(run_python, "-c", FIT, NUMBA_CACHE_DIR=cache)
        return interleaved({"fit": fit}, 1)["fit"].seconds


def measure_ocr(data: str | None, effort: Effort, sources: str) -> None:
    """Take all measurements that need the OCR words."""
    problem = ocr_problem(data)
    with pickled(problem) as path:
        time_passes("OCR", problem, path, effort.ocr, effort)
    check_sources(sources)


def measure_conll(data: str | None, effort: Effort, sources: str) -> None:
    """Take all measurements that need CoNLL-2000."""
    X, y, X_test, _ = load_conll2000(data_home=data)
    problem = conll_problem(X, y)
    with pickled(problem) as path:
        time_passes("CoNLL-2000", problem, path, effort.conll, effort)
        measure_state(problem, effort.state_passes)
        measure_memory(path, effort.memory_passes)
    check_sources(sources)
    try:
        print_figures(tagging_figures(X, y, X_test, effort.tagging))
    except ImportError:
        print("Skipped the comparison with python-crfsuite: pip install maxmargin[bench]\n")


def check_sources(before: str) -> None:
    """Stop if the package was edited in the meantime: new processes then ran a different program."""
    fingerprint.cache_clear()
    if fingerprint() != before:
        raise SystemExit(
            "core.py: the package's sources changed during the run; its figures are meaningless."
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions and no cold start, about a minute"
    )
    parser.add_argument("--data", help="directory with OCR and CoNLL-2000 (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    effort, sources = QUICK if options.quick else Effort(), fingerprint()
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, one thread;"
    )
    print(f"load of the machine {os.getloadavg()[0]:.1f} at the start\n")
    if_there(lambda: measure_ocr(options.data, effort, sources))
    if_there(lambda: measure_conll(options.data, effort, sources))
    measure_start(effort)
    check_sources(sources)
    print(f"load of the machine {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
