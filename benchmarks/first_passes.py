"""Passes and seconds of accelerated steps to a suboptimality, relative to those of BCFW-wavg, from the start.

    python benchmarks/first_passes.py [--seeds 5] [--passes 5] [--only matching] [--lam 0.001]

The four problems of docs/experiments.md. Both methods are measured at the same checkpoints, off the clock,
and take turns. Curves are medians over seeds of the lowest objective so far. For each checkpoint of
BCFW-wavg, the ratio is where the accelerated curve comes as low, over where the checkpoint is. The largest
ratio of each part of the run is printed, for suboptimalities below 10 % of the optimum. Seconds are processor
time, with the choice of the first kappa. They are those of a second run, which makes each pass in one call,
as `solve` does: on small problems, stops at checkpoints would take longer than the visits between them.
Within a pass, seconds are in proportion to visits. BCFW-wavg draws examples with replacement, as in the
paper.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import Accelerated, Averaged, BlockFrankWolfe, Pairwise, solve
from maxmargin.methods.protocol import point, start
from maxmargin.methods.rules import SAMPLINGS, some_visits
from maxmargin.methods.scratch import kept_scratch
from maxmargin.methods.sweep import advance
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes

sys.path.append(str(Path(__file__).parent / "paper"))
from benchmark_utils.data import LOADERS

PROBLEMS = "matching", "digits", "OCR", "CoNLL"
LAMS = "0.01", "0.001", "1/n"
BELOW = 0.1  # share of the optimum
FIRST, PER_DECADE = 0.02, 16
PARTS = (0.0, 0.1), (0.1, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, np.inf)


class Curve(NamedTuple):
    """The seconds and the objective of a run, or of the median run, at each checkpoint."""

    seconds: FloatArray
    primal: FloatArray


def checkpoints(n: int, passes: float) -> IntArray:
    """Return numbers of visits, evenly spaced on a log scale."""
    count = 1 + round(PER_DECADE * np.log10(passes / FIRST))
    return np.unique(np.rint(np.geomspace(FIRST * n, passes * n, count)).astype(np.int64))


def run(problem: Any, method: Any, lam: float, sampling: str, seed: int, stops: IntArray) -> Curve:
    """Return a run; of the weights in a method's answer, those of the lowest objective count."""
    n, rng, primal = sizes(problem).examples, np.random.default_rng(seed), []
    state = start(method, problem)
    visits, used, sampler = np.zeros(0, dtype=np.int64), n, SAMPLINGS[sampling](n)
    for left in np.diff(stops, prepend=0):
        while left > 0:
            if used == n:
                visits, used = sampler.draw(rng), 0
            length = min(int(left), n - used)
            state = advance(method, state, problem, some_visits(visits, used, used + length))
            used, left = used + length, left - length
        answer = point(method, state, problem)
        primal.append(min(objective.primal(problem, w, lam) for w in (answer.w, *answer.others)))
    seconds = timed(problem, method, sampling, seed, -(-int(stops[-1]) // n))
    return Curve(np.interp(stops / n, np.arange(len(seconds)), seconds), np.minimum.accumulate(primal))


def timed(problem: Any, method: Any, sampling: str, seed: int, passes: int) -> list[float]:
    """Return the processor seconds of the start, and until the end of each pass."""
    n, rng = sizes(problem).examples, np.random.default_rng(seed)
    sampler, begin = SAMPLINGS[sampling](n), time.process_time()
    state = start(method, problem)
    seconds = [time.process_time() - begin]
    for _ in range(passes):
        visits, begin = sampler.draw(rng), time.process_time()
        state = advance(method, state, problem, visits)
        seconds.append(seconds[-1] + time.process_time() - begin)
    return seconds


def median(runs: list[Curve]) -> Curve:
    return Curve(*(np.median(columns, axis=0) for columns in zip(*runs, strict=True)))


def reached(level: float, curve: Curve, places: FloatArray) -> float:
    """Return at which of the places the curve comes down to the level, by interpolation; or infinity."""
    below = np.flatnonzero(curve.primal <= level)
    if len(below) == 0:
        return np.inf
    k = below[0]
    if k == 0:
        return float(places[0])
    share = (curve.primal[k - 1] - level) / (curve.primal[k - 1] - curve.primal[k])
    return float(places[k - 1] + share * (places[k] - places[k - 1]))


def compare(name: str, problem: Any, lam: float, lam_name: str, seeds: int, most: float) -> None:
    """Print the largest ratios of each part of the run."""
    n = sizes(problem).examples
    stops = checkpoints(n, most)
    methods = (
        (Accelerated(Pairwise(lam=lam)), "permutation"),
        (Averaged(BlockFrankWolfe(lam=lam)), "uniform"),
    )
    optimum = solve(problem, methods[0][0], tol=1e-6, max_passes=100, check_every=20, random_state=0).dual
    for method, sampling in methods:  # compile
        run(problem, method, lam, sampling, 0, np.array([n]))
    with kept_scratch():  # as the driver does
        runs = [
            [run(problem, *method, seed, stops) for method in _with(methods, lam)] for seed in range(seeds)
        ]
    ours, theirs = (median([pair[k] for pair in runs]) for k in range(2))
    rows = []
    for k in range(len(stops)):
        level = theirs.primal[k]
        if level <= (1.0 + BELOW) * optimum and (k == 0 or level < theirs.primal[k - 1]):
            passes = reached(level, ours, stops / n) / (stops[k] / n)
            seconds = reached(level, ours, ours.seconds) / theirs.seconds[k]
            rows.append((stops[k] / n, level / optimum - 1.0, passes, seconds))
    print(f"{name}, lam = {lam_name}: the optimum is at least {optimum:.6g}")
    for low, high in PARTS:
        part = [row for row in rows if low <= row[0] < high]
        if part:
            worst, slowest = max(part, key=lambda row: row[2]), max(part, key=lambda row: row[3])
            print(
                f"    {f'from pass {low:g}':16} passes {worst[2]:5.2f} (at {worst[0]:.2f}, {worst[1]:6.2%})"
                f"    seconds {slowest[3]:5.2f} (at {slowest[0]:.2f}, {slowest[1]:6.2%})",
                flush=True,
            )
    if not rows:
        print(f"    BCFW-wavg does not come below {BELOW:.0%}", flush=True)


def _with(methods: Any, lam: float) -> list[tuple[Any, float, str]]:
    return [(method, lam, sampling) for method, sampling in methods]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--passes", type=float, default=5.0, help="the last checkpoint")
    parser.add_argument("--only", default="", help="only problems whose names begin so")
    parser.add_argument("--lam", choices=LAMS, help="only this lam")
    options = parser.parse_args()
    for name in PROBLEMS:
        if not name.startswith(options.only):
            continue
        data = LOADERS[name]()
        if data.problem is None:
            print(f"Skipped. {data.missing}\n")
            continue
        for lam_name in LAMS if options.lam is None else (options.lam,):
            lam = 1.0 / sizes(data.problem).examples if lam_name == "1/n" else float(lam_name)
            compare(name, data.problem, lam, lam_name, options.seeds, options.passes)


if __name__ == "__main__":
    main()
