"""The paper's Table 1, measured: oracle calls to a suboptimality of eps, against 1/eps, n and 1/lam."""

import math
import statistics
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from benchopt.benchmark import Benchmark
from tqdm import tqdm

import _store
from _document import table
from benchmark_utils.trajectory import Watch, Watched, checkpoints
from maxmargin import Accelerated, Pairwise, Progress, solve
from maxmargin.problems import Chain
from maxmargin.runtime.arrays import FloatArray
from maxmargin.structures.problem import sizes
from maxmargin.structures.sequences.model import ChainProblem

BASE_N, BASE_LAM, BASE_EPS = 200, 0.01, 0.005
SIZES = 100, 200, 400, 800, 1600
LAMS = 0.1, 0.03, 0.01, 0.003
EPSILONS = 0.02, 0.01, 0.005, 0.002, 0.001
# Data are drawn anew for each seed.
SEEDS, MAX_PASSES, SECONDS, FIRST = 3, 5000, 10.0, 0.01
TOL = 1e-6
LENGTH, LABELS, FEATURES, NOISE = 5, 4, 10, 1.0

# Exponents of 1/eps, n and 1/lam in the number of oracle calls, as Table 1 states them.
STATED: dict[str, tuple[float, float, float]] = {
    "extragradient": (1, 1, 1),
    "online-EG": (1, 1, 1),
    "excessive gap": (0.5, 1, 0.5),
    "BMRM": (1, 1, 1),
    "cutting plane": (1, 1, 1),
    "SSG": (1, 0, 1),
    "SSG-wavg": (1, 0, 1),
    "FW": (1, 1, 1),
    "BCFW": (1, 0, 1),
    "BCFW-wavg": (1, 0, 1),
    "accelerated": (math.nan,) * 3,
}


class Setting(NamedTuple):
    """A synthetic chain and a lam."""

    n: int
    lam: float


class Run(NamedTuple):
    """Oracle calls and the lowest suboptimality so far, checkpoint by checkpoint."""

    calls: FloatArray
    suboptimality: FloatArray

    def calls_to(self, eps: float) -> float:
        """Return the calls after which the suboptimality is at most eps; infinite if it never is."""
        reached = np.flatnonzero(self.suboptimality <= eps)
        return float(self.calls[reached[0]]) if len(reached) else math.inf


class Drawn(NamedTuple):
    """A problem drawn for a setting, and its least objective."""

    problem: ChainProblem
    optimum: float
    seed: int


def synthetic_chain(n: int, seed: int) -> ChainProblem:
    """Return n noisy chains: labels follow one another, features are noise around the label's own."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(LABELS, FEATURES)) / np.sqrt(FEATURES)
    steps = rng.integers(2, size=(n, LENGTH))  # the next label is the same or the next one
    y = (rng.integers(LABELS, size=(n, 1)) + steps.cumsum(axis=1)) % LABELS
    X = centres[y] + NOISE * rng.normal(size=(n, LENGTH, FEATURES)) / np.sqrt(FEATURES)
    return Chain.from_sequences(list(X), list(y))


def settings() -> list[Setting]:
    """Return all settings: n varies at the base lam, lam at the base n."""
    return sorted({*(Setting(n, BASE_LAM) for n in SIZES), *(Setting(BASE_N, lam) for lam in LAMS)})


def draw(setting: Setting) -> list[Drawn]:
    """Draw the problems of a setting, and solve each."""
    drawn = []
    for seed in range(SEEDS):
        problem, method = synthetic_chain(setting.n, seed), Accelerated(Pairwise(lam=setting.lam))
        result = solve(problem, method, tol=TOL, max_passes=MAX_PASSES, random_state=0)
        drawn.append(Drawn(problem, result.primal, seed))
    return drawn


def measure(solver: Any, lam: float, drawn: Drawn) -> Run:
    """Run the method until it has reached the smallest eps."""
    watch = Watch(checkpoints(sizes(drawn.problem).examples, FIRST, MAX_PASSES), lambda w: math.nan)

    def goes_on(progress: Progress) -> bool:
        is_far = not watch.rows or watch.rows[-1].primal - drawn.optimum > min(EPSILONS)
        return is_far and progress.seconds < SECONDS

    solve(
        drawn.problem,
        Watched(solver.method(lam), watch),
        tol=0.0,
        max_passes=MAX_PASSES,
        check_every=MAX_PASSES,
        sampling=solver.sampling,
        callbacks=[goes_on],
        random_state=drawn.seed,
    )
    calls = np.array([row.oracle_calls for row in watch.rows], dtype=np.float64)
    return Run(calls, np.minimum.accumulate([row.primal for row in watch.rows]) - drawn.optimum)


def slope(x: list[float], calls: list[float]) -> float:
    """Return the slope of a straight line through the logarithms; NaN if fewer than three are finite."""
    known = [(a, b) for a, b in zip(x, calls, strict=True) if math.isfinite(b)]
    if len(known) < 3:
        return math.nan
    logs = np.log(np.array(known))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def slopes(runs: dict[Setting, list[Run]]) -> tuple[float, float, float]:
    """Return the slopes of the calls in 1/eps, n and 1/lam."""

    def calls(setting: Setting, eps: float) -> float:
        return statistics.median(run.calls_to(eps) for run in runs[setting])

    base = Setting(BASE_N, BASE_LAM)
    return (
        slope([1 / eps for eps in EPSILONS], [calls(base, eps) for eps in EPSILONS]),
        slope([float(n) for n in SIZES], [calls(Setting(n, BASE_LAM), BASE_EPS) for n in SIZES]),
        slope([1 / lam for lam in LAMS], [calls(Setting(BASE_N, lam), BASE_EPS) for lam in LAMS]),
    )


def rows() -> Iterator[list[str]]:
    """Measure all methods that are there; yield a row of the table for each."""
    solvers = {solver.name: solver for solver in Benchmark(_store.HERE).get_solvers()}
    there = [name for name in STATED if solvers[name].is_installed(quiet=True)]
    drawn = {setting: draw(setting) for setting in settings()}
    for name in tqdm(there, unit="method"):
        solver = solvers[name].get_instance()
        runs = {s: [measure(solver, s.lam, one) for one in problems] for s, problems in drawn.items()}
        base = statistics.median(run.calls_to(BASE_EPS) for run in runs[Setting(BASE_N, BASE_LAM)])
        cells = zip(slopes(runs), STATED[name], strict=True)
        yield [name, f"{base:.0f}", *(f"{_shown(found)} ({_shown(said)})" for found, said in cells)]


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2g}"


def table1() -> str:
    """Return Table 1, measured, in Markdown."""
    header = ["method", f"calls to {BASE_EPS} at n = {BASE_N}, λ = {BASE_LAM}"]
    header += [f"slope in {of} (stated)" for of in ("1/ε", "n", "1/λ")]
    return table(header, list(rows()))
