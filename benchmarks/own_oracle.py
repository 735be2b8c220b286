"""Problems of three Python functions: the time per step of the library and that of the functions.

    python benchmarks/own_oracle.py [--rounds 9]

The time of whole passes, and that of the same calls of the user's functions alone: the difference is the
library's. Features are pairs of indices and values, of 20 nonzeros, or dense; processor time of one thread.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from _measure import Figure, Target, print_figures
from maxmargin import Accelerated, BlockFrankWolfe, Pairwise
from maxmargin.methods.protocol import start
from maxmargin.methods.sweep import advance
from maxmargin.problems import Custom

STEP = Target(must=30.0, aim=10.0)
N, N_FEATURES, N_CLASSES = 500, 20, 5
METHODS = {"BlockFrankWolfe": BlockFrankWolfe(0.01), "Accelerated(Pairwise)": Accelerated(Pairwise(0.01))}


def sparse(x: Any, y: int) -> Any:
    return np.arange(y * N_FEATURES, (y + 1) * N_FEATURES), x


def dense(x: Any, y: int) -> Any:
    phi = np.zeros(N_CLASSES * N_FEATURES)
    phi[y * N_FEATURES : (y + 1) * N_FEATURES] = x
    return phi


def loss(y_true: int, y: int) -> float:
    return float(y != y_true)


def argmax(x: Any, w: Any, y_true: int | None = None) -> int:
    scores = w.reshape(N_CLASSES, N_FEATURES) @ x
    if y_true is not None:
        scores += 1.0
        scores[y_true] -= 1.0
    return int(scores.argmax())


def seconds(run: Callable[[], Any]) -> float:
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def step_figure(name: str, features: Callable[[Any, int], Any], rounds: int) -> Figure:
    """Return the microseconds of the library per step."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, N_FEATURES)), rng.integers(N_CLASSES, size=N).tolist()
    problem = Custom(features, loss, argmax, X, y, n_features=N_CLASSES * N_FEATURES)
    state, w, best = start(METHODS[name], problem), rng.normal(size=N_CLASSES * N_FEATURES), np.inf

    def users() -> None:
        for x, truth in zip(X, y, strict=True):
            answer = argmax(x, w, truth)
            features(x, answer)
            loss(truth, answer)

    for _ in range(rounds + 1):  # the first compiles
        visits, before = rng.permutation(N), state

        def a_pass() -> None:
            nonlocal state
            state = advance(METHODS[name], before, problem, visits)  # noqa: B023

        best = min(best, seconds(a_pass) - seconds(users))
    return Figure(f"{name}, {features.__name__} features: library per step", 1e6 * best / N, "us", STEP)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"load of the machine {os.getloadavg()[0]:.1f}\n")
    print_figures([step_figure(name, features, rounds) for name in METHODS for features in (sparse, dense)])


if __name__ == "__main__":
    main()
