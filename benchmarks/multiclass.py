"""Seconds of exact block steps and of liblinear's Crammer-Singer solver to the same objective.

    python benchmarks/multiclass.py [--examples 10000 20000] [--Cs 0.001 0.01 0.1 1 10] [--rounds 3]

liblinear (scikit-learn's `LinearSVC`) stops at its default tolerance. Ours stops at the first certificate
whose objective is not above liblinear's; the time of all certificates counts. Both run on one thread, in
turn, after everything is compiled; seconds are those of the processor. liblinear takes minutes if C is large.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from _measure import Figure, Target, Times, print_figures, ratio
from _problems import if_there
from maxmargin import Accelerated, BlockExact, solve
from maxmargin.datasets import load_ocr
from maxmargin.problems import Multiclass
from maxmargin.runtime.arrays import FloatArray, aligned_zeros
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes

AHEAD = Target(1.0)
MOST_PASSES = 5000


class Letters(NamedTuple):
    """Single letters of the OCR words, drawn at random: 128 pixels, 26 classes."""

    X: FloatArray
    y: Any


def letters(data: str | None, n: int) -> Letters:
    X, y, _, _ = load_ocr(data_home=data)
    chosen = np.random.default_rng(0).permutation(sum(map(len, y)))[:n]
    return Letters(np.concatenate(X)[chosen].astype(np.float64), np.concatenate(y)[chosen])


def liblinear(examples: Letters, C: float, seed: int) -> tuple[float, FloatArray]:
    """Return the seconds that liblinear takes, and its weights, class by class."""
    model = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.process_time()
        model.fit(examples.X, examples.y)
        return time.process_time() - begin, model.coef_


def ours(problem: Any, lam: float, goal: float, seed: int, passes: int = MOST_PASSES) -> float:
    """Return the seconds until a certificate has an objective of at most ``goal``; infinite if none has."""
    begin = time.process_time()
    result = solve(
        problem,
        Accelerated(BlockExact(lam=lam)),
        tol=0.0,
        max_passes=passes,
        callbacks=[lambda progress: progress.last is None or progress.last.primal > goal],
        random_state=seed,
    )
    seconds = time.process_time() - begin
    return seconds if result.primal <= goal else float("inf")


def objective_of(problem: Any, coef: FloatArray, lam: float) -> float:
    """Return the objective at weights given class by class."""
    w = aligned_zeros(sizes(problem).weights)
    problem.unpack(w).unary[:] = coef
    return objective.primal(problem, w, lam)


def compare(examples: Letters, C: float, rounds: int) -> Figure:
    """Run both in turn; return the ratio of their seconds."""
    problem, n = Multiclass.from_arrays(examples.X, examples.y), len(examples.y)
    lam, theirs, own = 1.0 / (C * n), [], []
    ours(problem, lam, 0.0, 0, passes=1)  # everything is compiled from here on
    for seed in range(rounds):
        seconds, coef = liblinear(examples, C, seed)
        theirs.append(seconds)
        own.append(ours(problem, lam, objective_of(problem, coef, lam), seed))
    name = f"{n} letters, C = {C:g}: {np.median(own):.2f} s, liblinear {np.median(theirs):.2f} s; ratio"
    return ratio(name, [(Times(tuple(own)), Times(tuple(theirs)))], AHEAD)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, nargs="+", default=[10_000, 20_000])
    parser.add_argument("--Cs", type=float, nargs="+", default=[0.001, 0.01, 0.1, 1.0, 10.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", help="directory with OCR (default: $MAXMARGIN_DATA)")
    options = parser.parse_args()

    def run() -> None:
        for n in options.examples:
            examples = letters(options.data, n)
            for C in options.Cs:
                print_figures([compare(examples, C, options.rounds)])

    if_there(run)


if __name__ == "__main__":
    main()
