"""Passes, oracle calls and seconds that each method takes to reach a certified gap.

    python benchmarks/convergence.py [--seeds 5] [--max-passes 600] [--only OCR] [--data DIRECTORY]

Medians over seeds. A pass is n oracle calls; certificates are made after each pass and are counted neither as
calls nor as seconds. ">" says that the limit of passes came first.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from _measure import Figure, Target, print_figures
from _problems import conll_problem, if_there, letters_problem, ocr_problem
from maxmargin import Accelerated, Averaged, Away, BlockFrankWolfe, History, Pairwise, c_path, solve
from maxmargin.datasets import load_conll2000
from maxmargin.structures.problem import sizes

GAPS = 0.1, 0.05, 0.01, 0.0065, 0.001
AUTO, PLAIN = "accelerated pairwise", "BCFW"
PATH_CS = np.logspace(-1.5, 1.5, 10)

METHODS: dict[str, tuple[Callable[[float], Any], str]] = {
    PLAIN: (lambda lam: BlockFrankWolfe(lam=lam), "permutation"),
    "BCFW, weighted average": (lambda lam: Averaged(BlockFrankWolfe(lam=lam)), "permutation"),
    "BCFW, by gap": (lambda lam: BlockFrankWolfe(lam=lam), "gap"),
    "pairwise": (lambda lam: Pairwise(lam=lam), "permutation"),
    "pairwise, by gap": (lambda lam: Pairwise(lam=lam), "gap"),
    "away": (lambda lam: Away(lam=lam), "permutation"),
    "accelerated BCFW": (lambda lam: Accelerated(BlockFrankWolfe(lam=lam)), "permutation"),
    AUTO: (lambda lam: Accelerated(Pairwise(lam=lam)), "permutation"),
    "accelerated, by gap": (lambda lam: Accelerated(Pairwise(lam=lam)), "gap"),
}


class Run(NamedTuple):
    """Passes and seconds to each gap, infinite if it was not reached; seconds per pass and in total."""

    passes: dict[float, float]
    seconds: dict[float, float]
    per_pass: float
    total: float

    def seconds_at_least(self, gap: float) -> float:
        """Return the seconds to the gap, or those of the whole run if it was not reached."""
        return min(self.seconds[gap], self.total)


class Setting(NamedTuple):
    """A problem at one lam, the gap at which to stop, and the targets: (gap, must, aim)."""

    name: str
    problem: Any
    lam: float
    last_gap: float
    targets: tuple[tuple[float, float, float], ...] = ()


def run_of(history: History) -> Run:
    """Return when the best bounds seen first came within each gap."""
    gap = np.minimum.accumulate(history.primal) - np.maximum.accumulate(history.dual)
    passes, seconds = {}, {}
    for bound in GAPS:
        reached = np.flatnonzero(gap <= bound)
        passes[bound] = float(history.passes[reached[0]]) if len(reached) else math.inf
        seconds[bound] = float(history.seconds[reached[0]]) if len(reached) else math.inf
    total = float(history.seconds[-1])
    return Run(passes, seconds, total / float(history.passes[-1]), total)


def measure(
    setting: Setting, seeds: int, max_passes: int, methods: Sequence[str] = tuple(METHODS)
) -> dict[str, list[Run]]:
    """Run the methods seed by seed, so that load on the machine slows all of them."""
    runs: dict[str, list[Run]] = {name: [] for name in methods}
    jobs = [(seed, name) for seed in range(seeds) for name in methods]
    for seed, name in tqdm(jobs, desc=setting.name, unit="run", leave=False):
        make, sampling = METHODS[name]
        result = solve(
            setting.problem,
            make(setting.lam),
            tol=setting.last_gap,
            max_passes=max_passes,
            check_every=1,
            sampling=sampling,
            random_state=seed,
        )
        runs[name].append(run_of(result.history))
    return runs


def print_table(setting: Setting, runs: dict[str, list[Run]], max_passes: int) -> None:
    """Print passes and seconds to each gap, and milliseconds per pass."""
    gaps = _gaps(setting)
    n = sizes(setting.problem).examples
    print(f"{setting.name}: n = {n}, lam = {setting.lam:.3g}; passes (seconds) to each gap")
    print(f"{'':24}" + "".join(f"{gap:>16g}" for gap in gaps) + f"{'ms a pass':>12}")
    for name, found in runs.items():
        cells = [_cell(found, gap, max_passes) for gap in gaps]
        per_pass = 1e3 * statistics.median(run.per_pass for run in found)
        print(f"{name:24}" + "".join(f"{cell:>16}" for cell in cells) + f"{per_pass:12.1f}")
    print(flush=True)


def _cell(runs: list[Run], gap: float, max_passes: int) -> str:
    passes = statistics.median(run.passes[gap] for run in runs)
    seconds = statistics.median(run.seconds[gap] for run in runs)
    return f"> {max_passes}" if math.isinf(passes) else f"{passes:.0f} ({seconds:.2f})"


def figures_of(setting: Setting, runs: dict[str, list[Run]]) -> Iterator[Figure]:
    """Yield the figures to reach."""
    for gap, must, aim in setting.targets:
        passes = statistics.median(run.passes[gap] for run in runs[AUTO])
        yield Figure(f"{setting.name}: {AUTO}, passes to {gap:g}", passes, "", Target(must, aim))
    ratios = [a.per_pass / b.per_pass for a, b in zip(runs[AUTO], runs[PLAIN], strict=True)]
    name = f"{setting.name}: its pass / BCFW's"
    yield Figure(name, statistics.median(ratios), "x", Target(1.2))
    name = f"{setting.name}: its seconds / BCFW's, at the gap where that is most"
    yield Figure(name, max(_slowness(runs, gap) for gap in _gaps(setting)), "x", Target(1.2))
    if setting.name == "OCR, 1/n":
        pairs = zip(runs[AUTO], runs[PLAIN], strict=True)
        faster = [b.seconds_at_least(0.05) / a.seconds[0.05] for a, b in pairs]
        name = f"{setting.name}: BCFW's seconds to 0.05, or to the limit of passes / its"
        yield Figure(name, statistics.median(faster), "x", Target(12.0, floor=True))


def _gaps(setting: Setting) -> list[float]:
    return [gap for gap in GAPS if gap >= setting.last_gap]


def _slowness(runs: dict[str, list[Run]], gap: float) -> float:
    """Return the ratio of seconds to a gap, or to the limit of passes where BCFW did not reach it."""
    pairs = zip(runs[AUTO], runs[PLAIN], strict=True)
    return statistics.median(a.seconds[gap] / b.seconds_at_least(gap) for a, b in pairs)


def path_figure(problem: Any) -> Figure:
    """Return the oracle calls of a path of ten C over three decades, against its hardest problem alone."""
    n, options = sizes(problem).examples, {"tol": 0.01, "check_every": 1, "random_state": 0}
    path = c_path(problem, PATH_CS, **options)
    total = sum(result.history.rows[-1].oracle_calls for result in path.results)
    alone = [
        solve(problem, Accelerated(Pairwise(lam=1.0 / (C * n))), **options).history.rows[-1].oracle_calls
        for C in PATH_CS
    ]
    return Figure("OCR: oracle calls of ten C / of the hardest alone", total / max(alone), "x", Target(3.0))


def ocr_settings(data: str | None) -> list[Setting]:
    problem = ocr_problem(data)
    n = sizes(problem).examples
    return [
        Setting("OCR, 0.01", problem, 0.01, 0.001, ((0.001, 28, 15),)),
        Setting("OCR, 0.001", problem, 0.001, 0.001, ((0.01, 28, 15),)),
        Setting("OCR, 1/n", problem, 1.0 / n, 0.01, ((0.1, 20, 12), (0.01, 75, 40))),
    ]


def conll_settings(data: str | None) -> list[Setting]:
    X, y, _, _ = load_conll2000(data_home=data)
    problem = conll_problem(X, y)
    return [Setting("CoNLL, 1/n", problem, 1.0 / sizes(problem).examples, 0.0065, ((0.0065, 20, 12),))]


def letters_settings(data: str | None) -> list[Setting]:
    problem = letters_problem(data)
    return [Setting("letters, 1/n", problem, 1.0 / sizes(problem).examples, 0.001)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-passes", type=int, default=600)
    parser.add_argument("--only", default="", help="only problems whose names begin so: OCR, CoNLL, letters")
    parser.add_argument("--two", action="store_true", help=f"only the methods {PLAIN!r} and {AUTO!r}")
    parser.add_argument("--data", help="directory with OCR and CoNLL-2000 (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    methods = (PLAIN, AUTO) if options.two else tuple(METHODS)

    def run(make: Callable[[str | None], list[Setting]]) -> None:
        for setting in make(options.data):
            runs = measure(setting, options.seeds, options.max_passes, methods)
            print_table(setting, runs, options.max_passes)
            print_figures(list(figures_of(setting, runs)))

    rooms = {"OCR": ocr_settings, "CoNLL": conll_settings, "letters": letters_settings}
    for name, make in rooms.items():
        if name.startswith(options.only):
            if_there(lambda make=make: run(make))
    if "OCR".startswith(options.only):
        if_there(lambda: print_figures([path_figure(ocr_problem(options.data))]))


if __name__ == "__main__":
    main()
