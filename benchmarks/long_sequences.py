"""Long sequences: seconds and memory to a gap, and from which length blocks of tokens pay.

    python benchmarks/long_sequences.py [--lengths 100 200 400 800 2000] [--tokens 200000] [--budget 30]

The data: labels that rarely change, and features that hardly tell them apart: 64 indicators of a symbol and
of its two neighbours. 100 sequences of 20,000 tokens, 4 labels, Hamming loss, C = 0.01. Every fit runs in a
new process, on one thread, with code that is compiled. Memory is the peak of the process: run twice, as the
first run compiles, which takes memory too. The same for segments: 100 sequences of 2,000 tokens, cut into
runs of one label, of up to 1,000 tokens; at C = 0.01 and at the default C.

With --lengths, ``Pairwise`` and ``Anchored`` are run in turn to a gap of 5 % on sequences of these lengths;
the sequences have --tokens tokens in all. With --budget, ``Pairwise`` runs for so many passes on the whole
sequences, with the default budget of its active sets and without one.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import json
import resource
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from _measure import Figure, Target, print_figures, run_python
from maxmargin.methods.pairwise import BUDGET

N_LABELS, N_SYMBOLS, SWITCHES = 4, 4, 0.006
C, GAP, FINE_GAP = 0.01, 0.05, 0.01
SEQUENCES, LENGTH = 100, 20_000
SEGMENTED, LONGEST, DEFAULT_C = 2_000, 1_000, 0.15


def long_sequences(n: int, length: int, seed: int = 0) -> tuple[list[csr_array], list[Any]]:
    """Return n sequences: symbols drawn by labels that stay the same for some 170 tokens."""
    rng = np.random.default_rng(seed)
    symbols, X, y = rng.dirichlet(np.full(N_SYMBOLS, 3.0), N_LABELS).cumsum(axis=1), [], []
    for _ in range(n):
        starts = rng.random(length) < SWITCHES
        starts[0] = True
        labels = rng.integers(N_LABELS, size=starts.sum())[np.cumsum(starts) - 1]
        drawn = (rng.random(length)[:, None] > symbols[labels]).sum(axis=1)
        around = np.concatenate([[0], drawn, [0]])
        columns = (around[:-2] * N_SYMBOLS + drawn) * N_SYMBOLS + around[2:]
        shape = (length, N_SYMBOLS**3)
        X.append(csr_array((np.ones(length), columns.astype(np.int32), np.arange(length + 1)), shape=shape))
        y.append(labels.astype(np.int8))
    return X, y


def long_segments(n: int, length: int, seed: int = 0) -> tuple[list[csr_array], list[Any]]:
    """Return the same sequences; segments are runs of one label, cut where they are too long."""
    X, y = long_sequences(n, length, seed)
    return X, [_runs(labels) for labels in y]


def _runs(labels: Any) -> list[tuple[int, int, int]]:
    cuts = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return [
        (start, min(start + LONGEST, stop), int(labels[first]))
        for first, stop in pairwise(cuts)
        for start in range(first, stop, LONGEST)
    ]


def megabytes() -> float:
    """Return the largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit(kind: str, n: int, length: int, tol: float, c: float) -> dict[str, float]:
    """Train, and return what it took."""
    from maxmargin import ChainSVC, SegmentSVC

    estimator, data = {"chain": (ChainSVC, long_sequences), "segments": (SegmentSVC, long_segments)}[kind]
    X, y = data(n, length)
    warm_X, warm_y = data(2, 2_000, seed=1)
    options: dict[str, Any] = {"C": c, "loss": "hamming", "random_state": 0, "check_every": 1}
    estimator(**options, tol=0.2).fit(warm_X, warm_y)  # compiles
    before, begin = megabytes(), time.perf_counter()
    model = estimator(**options, tol=tol, max_iter=200).fit(X, y)
    seconds, last = time.perf_counter() - begin, model.history_.rows[-1]
    return {
        "seconds": seconds,
        "before": before,
        "peak": megabytes(),
        "passes": model.n_iter_,
        "gap": last.gap / last.primal,
    }


def solve_in_turn(length: int, tokens: int) -> dict[str, float]:
    """Return the seconds and passes of both methods to the gap on sequences of this length."""
    from maxmargin import Accelerated, Anchored, BlockFrankWolfe, Pairwise, solve
    from maxmargin.problems import Chain

    problem = Chain.from_sequences(*long_sequences(tokens // length, length), loss="hamming")
    lam, found = 1.0 / (C * (tokens // length)), {}
    methods = {"pairwise": Pairwise(lam), "anchored": Anchored(BlockFrankWolfe(lam), min(300, length // 2))}
    for timed in (False, True):
        for name, method in methods.items():
            limits = {"max_passes": 200, "time_limit": 300.0} if timed else {"max_passes": 3}
            begin = time.process_time()
            result = solve(
                problem, Accelerated(method), tol=0.0, rtol=GAP, check_every=1, random_state=0, **limits
            )
            found[name] = time.process_time() - begin
            found[f"{name} passes"] = len(result.history.rows)
            found[f"{name} gap"] = result.gap / result.primal
    return found


def pairwise_peak(passes: int, budget: int) -> dict[str, float]:
    """Return the peak of active sets of whole sequences, and the gap that they come to."""
    from maxmargin import Accelerated, Pairwise, solve
    from maxmargin.problems import Chain

    problem = Chain.from_sequences(*long_sequences(SEQUENCES, LENGTH), loss="hamming")
    method = Accelerated(Pairwise(1.0 / (C * SEQUENCES), budget=budget))
    before = megabytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a budget was reached
        result = solve(problem, method, tol=0.0, max_passes=passes, check_every=passes, random_state=0)
    return {"before": before, "peak": megabytes(), "gap": result.gap / result.primal}


def print_budget(passes: int) -> None:
    """Print what the budget of active sets saves, and what it costs."""
    figures = []
    for name, budget in (("default budget", BUDGET), ("no budget", 1 << 60)):
        found = in_new_process("--peak", passes, budget)
        figures += [
            Figure(f"pairwise, {passes} passes, {name}: growth", found["peak"] - found["before"], "MB"),
            Figure(f"pairwise, {passes} passes, {name}: gap / objective", found["gap"]),
        ]
    print_figures(figures)


def in_new_process(*arguments: object) -> dict[str, float]:
    return dict(json.loads(run_python(__file__, *map(str, arguments))))


def print_long() -> None:
    """Print seconds and memory of 20,000 tokens a sequence, and seconds of long segments."""
    figures = []
    for tol, must, most in ((GAP, Target(20.0), Target(500.0)), (FINE_GAP, None, None)):
        found = in_new_process("--child", "chain", SEQUENCES, LENGTH, tol, C)
        name, note = f"{LENGTH} tokens to {tol:.0%}", f"{found['before']:.0f} before"
        figures += [
            Figure(f"{name}: gap / objective", found["gap"], target=Target(tol)),
            Figure(f"{name}: passes", found["passes"]),
            Figure(f"{name}: seconds", found["seconds"], "s", must),
            Figure(f"{name}: peak of the process", found["peak"], "MB", most, note),
        ]
    for c in (C, DEFAULT_C):
        found = in_new_process("--child", "segments", SEQUENCES, SEGMENTED, GAP, c)
        name = f"segments of up to {LONGEST} of {SEGMENTED} tokens, C = {c}, to {GAP:.0%}"
        figures += [
            Figure(f"{name}: gap / objective", found["gap"], target=Target(GAP)),
            Figure(f"{name}: passes", found["passes"]),
            Figure(f"{name}: seconds", found["seconds"], "s", Target(60.0)),
        ]
    print_figures(figures)


def print_lengths(lengths: list[int], tokens: int) -> None:
    """Print what both methods take, by length."""
    print(f"{'length':>8}  {'pairwise: s, passes, gap':>28}  {'anchored: s, passes, gap':>28}")
    for length in lengths:
        found = in_new_process("--turn", length, tokens)
        cells = [
            f"{found[name]:9.2f} {found[f'{name} passes']:8.0f} {found[f'{name} gap']:9.3f}"
            for name in ("pairwise", "anchored")
        ]
        print(f"{length:8}  " + "  ".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", help="compare both methods at these lengths")
    parser.add_argument("--tokens", type=int, default=200_000, help="number of tokens in all, for --lengths")
    parser.add_argument("--budget", type=int, help="passes of Pairwise with and without a budget")
    parser.add_argument("--peak", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--turn", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, n, length, tol, c = options.child
        print(json.dumps(fit(kind, int(n), int(length), float(tol), float(c))))
    elif options.turn:
        print(json.dumps(solve_in_turn(*options.turn)))
    elif options.peak:
        print(json.dumps(pairwise_peak(*options.peak)))
    elif options.budget:
        print_budget(options.budget)
    elif options.lengths:
        print_lengths(options.lengths, options.tokens)
    else:
        print_long()


if __name__ == "__main__":
    main()
