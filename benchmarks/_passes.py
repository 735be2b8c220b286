"""The time of a pass of each method, and of a decoding-only pass: run in new processes by core.py.

python _passes.py PROBLEM.pickle ROUNDS WARMUP
"""

import json
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from _measure import Times, interleaved
from maxmargin import Averaged, BlockFrankWolfe, FrankWolfe, Subgradient
from maxmargin.methods.protocol import start
from maxmargin.methods.sweep import advance
from maxmargin.solving.decoding import decoding_work, predictions
from maxmargin.structures.problem import sizes
from maxmargin.structures.sequences.model import ChainProblem

DECODE, PLAIN, WEIGHTED = "decoding only", "BCFW", "BCFW, weighted average"
SSG = "SSG"


class Runner:
    """A method running on a problem; each call is a pass."""

    def __init__(self, problem: Any, method: Any) -> None:
        self.problem, self.method = problem, method
        self.state = start(method, problem)
        self.rng = np.random.default_rng(0)
        self.passes = 0

    def __call__(self) -> None:
        order = self.rng.permutation(sizes(self.problem).examples)
        self.state = advance(self.method, self.state, self.problem, order)
        self.passes += 1

    def run_to(self, passes: int) -> None:
        """Continue until that many passes are done."""
        while self.passes < passes:
            self()


def methods(problem: Any) -> dict[str, Any]:
    """Return the methods that are timed, at lam = 1/n."""
    lam = 1.0 / sizes(problem).examples
    block, batch, subgradient = BlockFrankWolfe(lam=lam), FrankWolfe(lam=lam), Subgradient(lam=lam)
    return {
        PLAIN: block,
        WEIGHTED: Averaged(block, "weighted"),
        "BCFW, suffix average": Averaged(block, "suffix"),
        "BCFW, uniform average": Averaged(block, "uniform"),
        "FW": batch,
        "FW, weighted average": Averaged(batch, "weighted"),
        SSG: subgradient,
        "SSG, weighted average": Averaged(subgradient, "weighted"),
    }


def decoding_pass(problem: ChainProblem, w: Any) -> Callable[[], None]:
    """Return a function that decodes all training examples at fixed weights."""
    out = np.empty(len(problem.oracle.labels), dtype=np.int64)
    return partial(predictions, problem, w, 0, sizes(problem).examples, out, *decoding_work(problem))


def time_passes(problem: ChainProblem, rounds: int, warmup: int) -> dict[str, Times]:
    """Time passes after compilation and the first, atypical passes."""
    runners = {name: Runner(problem, method) for name, method in methods(problem).items()}
    for runner in runners.values():
        runner.run_to(warmup)
    decode = decoding_pass(problem, runners[PLAIN].state.w.copy())
    decode()
    return interleaved({DECODE: decode, **runners}, rounds)


if __name__ == "__main__":
    times = time_passes(pickle.loads(Path(sys.argv[1]).read_bytes()), int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({name: measured.seconds for name, measured in times.items()}))
