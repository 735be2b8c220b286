"""Kill workers of a Dask cluster (-9) at random moments of runs; each must end certified at the optimum.

    python tests/kill_workers.py FOLDER [--runs 30] [--seed 0]

Runs are listed in FOLDER/workers.jsonl, and a script that was stopped goes on behind the last one. The
nanny of a killed worker starts another, which joins the run. The optimum is that of one machine, to 1e-7.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from maxmargin import Accelerated, BlockFrankWolfe, Pairwise, Result, Status, solve
from maxmargin.dask import rounds_of
from maxmargin.dask import solve as solve_on_cluster
from maxmargin.problems import Chain

PARTITIONS, SEQUENCES, LABELS, FEATURES = 7, 600, 5, 40
LAM = 1.0 / (PARTITIONS * SEQUENCES)
METHODS = {"accelerated": (Accelerated(Pairwise(LAM)), 1e-4), "plain": (BlockFrankWolfe(10 * LAM), 1e-2)}
_PROCESSES: dict[str, Any] = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": ":0"}


def sequences(p: int) -> tuple[list[Any], list[Any]]:
    """Return the sequences of a partition: noisy features of labels, which follow each other."""
    rng = np.random.default_rng(p)
    centres = np.random.default_rng(99).normal(size=(LABELS, FEATURES))
    labels = [np.cumsum(rng.integers(0, 3, size=rng.integers(2, 9))) % LABELS for _ in range(SEQUENCES)]
    X = [centres[y] + rng.normal(scale=3.0, size=(len(y), FEATURES)) for y in labels]
    return X, labels


def partition(p: int) -> Any:
    """Return the problem of a partition."""
    X, y = sequences(p)
    return Chain.from_sequences(X, y)


def whole() -> Any:
    """Return the problem of all partitions."""
    parts = [sequences(p) for p in range(PARTITIONS)]
    return Chain.from_sequences([x for X, _ in parts for x in X], [labels for _, y in parts for labels in y])


def optimum(name: str) -> float:
    """Return a lower bound on the objective that is too low by 1e-7 at most."""
    method, _ = METHODS[name]
    lam = method.lam if name == "plain" else LAM
    return solve(whole(), Accelerated(Pairwise(lam)), tol=1e-7, max_passes=5000, random_state=0).dual


def kill_some(client: Client, rng: np.random.Generator, over: threading.Event, killed: list[float]) -> None:
    """Kill workers at random moments, one after another, until the run is over."""
    begin = time.monotonic()
    for pause in rng.uniform(0.0, 3.0, size=rng.integers(1, 4)):
        if over.wait(pause):
            return
        try:
            found = client.run(os.getpid, on_error="ignore")
            os.kill(int(rng.choice(sorted(found.values()))), signal.SIGKILL)
            killed.append(time.monotonic() - begin)
        except (OSError, ValueError):
            pass  # none is there at the moment


def one_run(client: Client, seed: int, optima: dict[str, float]) -> dict[str, Any]:
    """Make a run whose workers are killed; return what was found."""
    rng, over, killed = np.random.default_rng(seed), threading.Event(), list[float]()
    name = sorted(METHODS)[seed % len(METHODS)]
    method, tol = METHODS[name]
    client.wait_for_workers(_PROCESSES["n_workers"])
    killer = threading.Thread(target=kill_some, args=(client, rng, over, killed))
    killer.start()
    begin = time.monotonic()
    try:
        partitions = [dask.delayed(partition)(p) for p in range(PARTITIONS)]
        found = solve_on_cluster(
            partitions, method, tol=tol, max_passes=3000, check_every=2, random_state=seed, timeout=30.0
        )
    finally:
        over.set()
        killer.join()
    return {
        "seed": seed,
        "method": name,
        "killed": killed,
        "seconds": time.monotonic() - begin,
        "passes": found.history.rows[-1].passes,
        "rounds": len(rounds_of(found)),
        **checked(found, optima[name], tol),
    }


def checked(found: Result, least: float, tol: float) -> dict[str, Any]:
    """Return the errors of a result against the optimum, and whether it is right."""
    above, below = found.primal - least, least - found.dual
    # The optimum is between `least` and least + 1e-7.
    is_true = all(row.dual <= least + 2e-7 and row.primal >= least - 1e-9 for row in found.history.rows)
    is_right = found.status is Status.CONVERGED and found.certified and is_true and above <= tol + 1e-7
    return {"above": above, "below": below, "right": bool(is_right)}


def kill_workers(folder: Path, runs: int, seed: int) -> bool:
    """Make runs until there are enough; return whether all are right."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "workers.jsonl"
    known = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    optima = {name: optimum(name) for name in METHODS} if len(known) < runs else {}
    with LocalCluster(**_PROCESSES, processes=True) as cluster, Client(cluster) as client:
        while len(known) < runs:
            known.append(one_run(client, seed + len(known), optima))
            print(json.dumps(known[-1]), flush=True)
            with journal.open("a") as stream:
                stream.write(json.dumps(known[-1]) + "\n")
    right, kills = sum(run["right"] for run in known), sum(len(run["killed"]) for run in known)
    longest = max(run["seconds"] for run in known)
    print(f"{right} of {len(known)} runs right, {kills} workers killed; the longest run took {longest:.1f} s")
    return right == len(known)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    return 0 if kill_workers(given.folder, given.runs, given.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
