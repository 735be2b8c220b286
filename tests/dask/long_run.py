"""A run on worker processes that does not converge, for tests that stop it: python long_run.py TIME_LIMIT

It says when there is a certificate. At the end it says how the run stopped, and whether workers went on.
"""

import os

if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before Numba is imported, here and in workers

import json
import sys
import time
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from maxmargin import Pairwise, Progress
from maxmargin import dask as on_dask
from maxmargin.problems import Sizes

WORKERS, EXAMPLES, PAUSE = 2, 60, 0.01


class SlowSigns:
    """Two classes, whose oracle takes its time and counts its calls; features have no signal."""

    calls = 0  # of this process

    def __init__(self, p: int) -> None:
        self.X = np.random.default_rng(p).normal(size=(EXAMPLES, 3))
        self.labels = np.arange(EXAMPLES) % 2

    def sizes(self) -> Sizes:
        return Sizes(examples=EXAMPLES, weights=6, statistics=2, output=1, parts=2)

    def score(self, i: int, w: Any, theta: Any) -> None:
        theta[:] = w.reshape(2, 3) @ self.X[i]

    def argmax(self, i: int, theta: Any, y: Any, work: Any) -> None:
        SlowSigns.calls += 1
        time.sleep(PAUSE)
        y[0] = np.argmax(theta + (np.arange(2) != self.labels[i]))

    def decode(self, i: int, theta: Any, y: Any, work: Any) -> None:
        y[0] = np.argmax(theta)

    def loss(self, i: int, y: Any) -> float:
        return float(y[0] != self.labels[i])

    def psi(self, i: int, y: Any, index: Any, value: Any) -> int:
        index[:], value[:] = (self.labels[i], y[0]), (1.0, -1.0)
        return 2

    def gram(self, i: int, move: Any, image: Any, work: Any) -> None:
        image[:] = (self.X[i] @ self.X[i]) * move.delta

    def push(self, i: int, move: Any, scale: float, w: Any, work: Any) -> None:
        w += scale * np.outer(move.delta, self.X[i]).ravel()

    def unpack(self, w: Any) -> tuple[Any]:
        return (w.reshape(2, 3),)


def calls() -> int:
    """Task: return how often the oracle was asked on this worker."""
    import long_run

    return long_run.SlowSigns.calls


def say_when_measured(progress: Progress) -> None:
    """Say that there is a certificate, and the next pass begins."""
    if progress.passes == 1:
        print("begun", flush=True)


def main() -> None:
    time_limit = float(sys.argv[1])
    options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": ":0", "memory_limit": 0}
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        partitions = [dask.delayed(SlowSigns)(p) for p in range(2 * WORKERS)]
        method = on_dask.Distributed(Pairwise(1e-9), rounds=1)
        limits: dict[str, Any] = {"tol": 0.0, "max_passes": 10**6, "time_limit": time_limit, "check_every": 1}
        found = on_dask.solve(partitions, method, callbacks=[say_when_measured], **limits)
        time.sleep(4.0)  # a task takes three seconds at most
        first = client.run(calls, on_error="ignore")
        time.sleep(1.0)
        second = client.run(calls, on_error="ignore")
        answer = {"status": found.status.name, "primal": found.primal, "dual": found.dual}
        print(
            json.dumps({**answer, "idle": all(first.get(each, n) == n for each, n in second.items())}),
            flush=True,
        )


if __name__ == "__main__":
    import long_run  # workers import it by this name, and not as __main__

    long_run.main()
