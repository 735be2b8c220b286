"""Kill workers of a Dask cluster (-9) at random moments of runs; each must end certified at the optimum.

    python tests/kill_workers.py FOLDER [--runs 30] [--seed 0]

Runs are listed in FOLDER/workers.jsonl, and a script that was stopped goes on behind the last one. The
nanny of a killed worker starts another, which joins the run. The problem is small and its kernels are
interpreted, so that a run takes seconds. A run without kills says how long one takes; kills come at random
moments of that time, so that they strike loading, rounds and certificates. A run that does not end within
`MOST_SECONDS` is a deadlock: the script ends with the stacks of all threads.
"""

import os

if __name__ == "__main__":
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before Numba is imported, here and in workers

import argparse
import faulthandler
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from distributed import Client, LocalCluster

from maxmargin import Accelerated, BlockFrankWolfe, Pairwise, Result, Status, solve
from maxmargin.dask import rounds_of
from maxmargin.dask import solve as solve_on_cluster
from maxmargin.problems import Chain

WORKERS, LEAST_WORKERS = 3, 2  # of the cluster, and when a run begins
PARTITIONS, SEQUENCES, LABELS, FEATURES = 5, 8, 3, 4
LAM = 0.05
METHODS = {"accelerated": (Accelerated(Pairwise(LAM)), 1e-3), "plain": (BlockFrankWolfe(LAM), 3e-2)}
TIMEOUT, MOST_SECONDS = 200.0, 450  # processes start slowly on a busy machine


class Expected(NamedTuple):
    """A lower bound on the objective, too low by 1e-9 at most, and the seconds of runs without kills."""

    optimum: float
    seconds: dict[str, float]


def sequences(p: int) -> tuple[list[Any], list[Any]]:
    """Return the sequences of a partition: noisy features of labels, which follow each other."""
    rng = np.random.default_rng(p)
    centres = np.random.default_rng(99).normal(size=(LABELS, FEATURES))
    labels = [np.cumsum(rng.integers(0, 2, size=rng.integers(2, 5))) % LABELS for _ in range(SEQUENCES)]
    return [centres[y] + rng.normal(size=(len(y), FEATURES)) for y in labels], labels


def partition(p: int) -> Any:
    """Return the problem of a partition."""
    return Chain.from_sequences(*sequences(p))


def whole() -> Any:
    """Return the problem of all partitions."""
    parts = [sequences(p) for p in range(PARTITIONS)]
    return Chain.from_sequences([x for X, _ in parts for x in X], [labels for _, y in parts for labels in y])


@contextmanager
def a_cluster() -> Iterator[LocalCluster]:
    """Start processes whose kernels are interpreted, each with a nanny."""
    # Not pre-spawn-environ, which Dask sets in this process, too. By default, a worker that is not there
    # 15 s after it was lost, or is lost again then, does not come back at all.
    settings = {
        "distributed.nanny.environ.NUMBA_DISABLE_JIT": "1",
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": ":0", "memory_limit": 0}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, **options) as cluster,
    ):
        yield cluster


def run(method: Any, tol: float, seed: int) -> Result:
    """Solve the problem on the cluster."""
    partitions = [dask.delayed(partition)(p) for p in range(PARTITIONS)]
    return solve_on_cluster(
        partitions, method, tol=tol, max_passes=5000, check_every=3, random_state=seed, timeout=TIMEOUT
    )


def expected() -> Expected:
    """Return what runs without kills find; the first one warms the workers up."""
    seconds: dict[str, float] = {}
    for name, (method, tol) in [*METHODS.items(), *METHODS.items()]:
        begin = time.monotonic()
        run(method, tol, 0)
        seconds[name] = time.monotonic() - begin
    optimum = solve(whole(), METHODS["accelerated"][0], tol=1e-9, max_passes=5000, random_state=0).dual
    return Expected(optimum, seconds)


def kill_some(
    cluster: LocalCluster, rng: np.random.Generator, usual: float, over: threading.Event, killed: list[float]
) -> None:
    """Kill one or two workers, each at a random moment of the usual length of a run."""
    begin = time.monotonic()
    for moment in np.sort(rng.uniform(0.0, usual, size=rng.integers(1, 3))):
        if over.wait(max(0.0, begin + moment - time.monotonic())):
            return
        # Dask does not start a worker again that is killed before it has joined.
        joined = set(cluster.scheduler.workers)
        nannies = [cluster.workers[name] for name in sorted(cluster.workers)]
        there = [nanny.pid for nanny in nannies if nanny.worker_address in joined and nanny.pid]
        if there:
            os.kill(int(rng.choice(there)), signal.SIGKILL)
            killed.append(time.monotonic() - begin)


def one_run(cluster: LocalCluster, client: Client, seed: int, right: Expected) -> dict[str, Any]:
    """Make a run whose workers are killed; return what was found."""
    rng, over, killed = np.random.default_rng(seed), threading.Event(), list[float]()
    name = sorted(METHODS)[seed % len(METHODS)]
    client.wait_for_workers(LEAST_WORKERS, timeout=MOST_SECONDS)
    given = cluster, rng, right.seconds[name], over, killed
    killer, begin = threading.Thread(target=kill_some, args=given), time.monotonic()
    faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
    killer.start()
    try:
        found = run(*METHODS[name], seed)
    finally:
        over.set()
        killer.join()
        faulthandler.cancel_dump_traceback_later()
    return {
        "seed": seed,
        "method": name,
        "killed": killed,
        "seconds": time.monotonic() - begin,
        "passes": found.history.rows[-1].passes,
        "rounds": len(rounds_of(found)),
        "epochs": found.stopped.problem.rounds.fleet.epoch,
        **checked(found, right.optimum, METHODS[name][1]),
    }


def checked(found: Result, least: float, tol: float) -> dict[str, Any]:
    """Return the errors of a result against the optimum, and whether it is right."""
    above, below = found.primal - least, least - found.dual
    # The optimum is between `least` and least + 1e-9.
    is_true = all(row.dual <= least + 2e-9 and row.primal >= least - 1e-9 for row in found.history.rows)
    is_right = found.status is Status.CONVERGED and found.certified and is_true and above <= tol + 1e-9
    return {"above": above, "below": below, "right": bool(is_right)}


def _n_struck(known: list[dict[str, Any]]) -> int:
    """Return the number of runs in which a worker was killed; some end before."""
    return sum(bool(run["killed"]) for run in known)


def kill_workers(folder: Path, runs: int, seed: int) -> bool:
    """Make runs until there are enough; return whether all are right."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "workers.jsonl"
    known = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    if _n_struck(known) < runs:
        with a_cluster() as cluster, Client(cluster) as client:
            right = expected()
            while _n_struck(known) < runs:
                known.append(one_run(cluster, client, seed + len(known), right))
                print(json.dumps(known[-1]), flush=True)
                with journal.open("a") as stream:
                    stream.write(json.dumps(known[-1]) + "\n")
    n_right, kills = sum(run["right"] for run in known), sum(len(run["killed"]) for run in known)
    longest = max(run["seconds"] for run in known)
    of_all = f"{n_right} of {len(known)} runs right, {kills} workers killed in {_n_struck(known)} of them"
    print(f"{of_all}; the longest run took {longest:.1f} s")
    return n_right == len(known)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    return 0 if kill_workers(given.folder, given.runs, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
