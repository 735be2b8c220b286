"""The defaults of the estimators on a panel of tasks, compared with the best of a grid and with rivals.

    python benchmarks/defaults.py [--part grid] [--only chunking] [--share 0.1] [--store FILE]

Parts:

grid      the default, and the C that is best on a held-out fifth of the training examples, trained on all of
          them; both on the test set
choice    every C on the held-out examples: what defaults are chosen by
losses    every loss, each at the C that is best on the held-out examples
rivals    chains, and crfsuite as it comes on the same features, timed in turn; a paired bootstrap over the
          test set
tol       more training: the default, and a gap of a thirtieth of its tol, five seeds each; allowed are 0.1
          points, one example, or two standard errors of the difference
returned  what a run returns: the weights of lowest objective that were measured, the mean, or the last

One thread. Seconds are processor time, with compiled kernels. Scores are in points, 100 for the best. Runs
are kept in the file of --store, and a call goes on where the last one stopped.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _panel import PANEL, Task
from _problems import if_there
from _rivals import ALGORITHMS
from _runs import Run, Runs
from _scores import bootstrap

SHARES = (0.1, 1.0)
# In points: how far a default may be below the best of its grid, for chains and for the others.
TAGGING, OTHERS = 0.3, 1.0
# The seconds of a default, at most, as a share of those of each rival.
SECONDS = {"lbfgs": 1 / 5, "averaged-perceptron": 1.0}
# How much more training may change a score, in points, and what more training is.
CHANGE, MORE = 0.1, 30.0
SEEDS = range(5)


class Line(NamedTuple):
    """A line of a table, and whether it misses what is asked."""

    cells: tuple[str, ...]
    missed: bool = False


class Part(NamedTuple):
    """A part of the benchmark: the heads of its columns, and the lines of one task at one share."""

    heads: tuple[str, ...]
    lines: Callable[[Runs, str, float], Iterable[Line]]


def grid_lines(runs: Runs, name: str, share: float) -> Iterable[Line]:
    """Compare the default with the C that held-out examples choose."""
    task = runs.panel[name]
    default = runs.of_model(name, share, "test", {})
    chosen = max(task.C, key=partial(held_out_score, runs, name, share))
    best = runs.of_model(name, share, "test", {"C": chosen})
    behind = 100.0 * (best.score - default.score)
    cells = points(default), points(best), f"{chosen:g}", f"{-behind:+.2f}"
    yield Line((*cells, f"{default.seconds:.1f}", f"{default.passes:.0f}"), behind > allowed(task))


def held_out_score(runs: Runs, name: str, share: float, C: float, **settings: Any) -> float:
    """Return the score on held-out training examples."""
    return runs.of_model(name, share, "held-out", {"C": C, **settings}).score


def allowed(task: Task) -> float:
    """Return by how many points a default may be below the best of its grid."""
    return TAGGING if task.is_tagging else OTHERS


def choice_lines(runs: Runs, name: str, share: float) -> Iterable[Line]:
    """Show how far each C is below the best on held-out examples: what defaults are chosen by."""
    task = runs.panel[name]
    scores = [100.0 * held_out_score(runs, name, share, C) for C in task.C]
    cells = [f"{C:g}: {score - max(scores):.2f}" for C, score in zip(task.C, scores, strict=True)]
    default = 100.0 * runs.of_model(name, share, "held-out", {}).score
    behind = max(scores) - default
    yield Line((f"{max(scores):.2f}", f"{-behind:.2f}", ", ".join(cells)), behind > allowed(task))


def loss_lines(runs: Runs, name: str, share: float) -> Iterable[Line]:
    """Compare the losses, each at the C that held-out examples choose."""
    task = runs.panel[name]
    for loss in task.losses:
        chosen = max(task.C, key=partial(held_out_score, runs, name, share, loss=loss))
        held_out = held_out_score(runs, name, share, chosen, loss=loss)
        best = runs.of_model(name, share, "test", {"C": chosen, "loss": loss})
        yield Line((loss, f"{chosen:g}", f"{100.0 * held_out:.2f}", points(best)))


def rival_lines(runs: Runs, name: str, share: float) -> Iterable[Line]:
    """Compare the default of a chain with crfsuite."""
    task = runs.panel[name]
    if not task.is_tagging:
        return
    ours, *others = runs.in_turn(name, share, ALGORITHMS)
    for (algorithm, title), theirs in zip(ALGORITHMS.items(), others, strict=True):
        ahead = bootstrap(task.score, ours.counts, theirs.counts)
        ratio = ours.seconds / theirs.seconds
        interval = f"{100 * ahead.value:+.2f} ({100 * ahead.low:+.2f} to {100 * ahead.high:+.2f})"
        seconds = f"{ours.seconds:.2f}", f"{theirs.seconds:.2f}", f"{ratio:.2f}"
        cells = title, points(ours), points(theirs), interval, *seconds
        yield Line(cells, ahead.high < 0.0 or ratio > SECONDS[algorithm])


def tol_lines(runs: Runs, name: str, share: float) -> Iterable[Line]:
    """Compare the default with more training: on held-out examples, which choose, and on the test set."""
    tol = runs.panel[name].estimator().tol
    for on in ("held-out", "test"):
        found = [
            [runs.of_model(name, share, on, {"random_state": seed, "tol": each}) for seed in SEEDS]
            for each in (tol, tol / MORE)
        ]
        usual, more = (100.0 * np.array([run.score for run in row]) for row in found)
        change, error = more.mean() - usual.mean(), np.hypot(usual.std(ddof=1), more.std(ddof=1))
        limit = max(CHANGE, 100.0 / len(found[0][0].counts), 2.0 * error / np.sqrt(len(SEEDS)))
        cells = f"{tol:g}", on, f"{usual.mean():.2f}", f"{more.mean():.2f}", f"{change:+.2f}", f"{limit:.2f}"
        seconds = (f"{np.mean([run.seconds for run in row]):.2f}" for row in found)
        yield Line((*cells, *seconds), on == "test" and abs(change) > limit)


def returned_lines(runs: Runs, name: str, share: float) -> Iterable[Line]:
    """Compare the weights that a run could return."""
    found = [runs.of_model(name, share, "test", {}, kind) for kind in ("best", "mean", "last")]
    yield Line(tuple(points(run) for run in found))


PARTS = {
    "grid": Part(("default", "chosen", "C", "difference", "seconds", "passes"), grid_lines),
    "choice": Part(("best", "default", "C: difference from the best"), choice_lines),
    "losses": Part(("loss", "C", "held out", "test"), loss_lines),
    "rivals": Part(
        ("rival", "default", "rival's", "difference (95 %)", "seconds", "rival's", "ratio"), rival_lines
    ),
    "tol": Part(("tol", "on", "score", "more", "change", "allowed", "seconds", "more"), tol_lines),
    "returned": Part(("lowest objective", "mean", "last"), returned_lines),
}


def points(run: Run) -> str:
    """Return a score in points."""
    return f"{100.0 * run.score:.2f}"


def measure(part: Part, runs: Runs, name: str, share: float) -> None:
    """Print the lines of one task."""
    for line in part.lines(runs, name, share):
        cells = name, runs.panel[name].score.name, f"{share:g}", *line.cells
        print(f"| {' | '.join(cells)} | {'MISSED' if line.missed else ''} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", choices=PARTS, default="grid")
    parser.add_argument("--only", default="", help=f"only some tasks, by commas: {', '.join(PANEL)}")
    parser.add_argument("--share", type=float, help="only this share of the training examples")
    parser.add_argument("--store", type=Path, help="file that keeps the runs")
    parser.add_argument("--data", help="directory with the data (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()
    part, runs = PARTS[options.part], Runs(PANEL, options.data, options.store)
    heads = "task", "score", "share", *part.heads, ""
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for share in SHARES if options.share is None else (options.share,):
        for name in options.only.split(",") if options.only else PANEL:
            if_there(partial(measure, part, runs, name, share))


if __name__ == "__main__":
    main()
