"""Runs on workers that are processes: one of them is killed, or stops without a word.

`tests/kill_workers.py` kills workers at random moments of many runs.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import kill_workers
from maxmargin import Accelerated, Pairwise, Progress, Status, solve
from maxmargin import dask as on_dask
from maxmargin.dask import calls
from maxmargin.problems import Multiclass

pytestmark = pytest.mark.long

LAM, PARTITIONS, TOL = 0.2, 4, 1e-6
METHOD = Accelerated(Pairwise(LAM))


def rows() -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(48) % 3
    return 0.7 * np.eye(3, 4)[y] + np.random.default_rng(3).normal(size=(48, 4)), y


def part(p: int) -> Any:
    X, y = rows()
    return Multiclass.from_arrays(X[p::PARTITIONS], y[p::PARTITIONS])


@pytest.fixture
def client() -> Iterator[Client]:
    """Two processes whose kernels are interpreted, and those that take their places."""
    # Not pre-spawn-environ, which Dask sets in this process, too.
    interpreted = {"distributed.nanny.environ.NUMBA_DISABLE_JIT": "1"}
    options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": ":0", "memory_limit": 0}
    with (
        dask.config.set(interpreted),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster) as found,
    ):
        yield found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_worker_that_is_lost(client: Client, number: int) -> None:
    victim = min(client.run(os.getpid).values())

    def strike(progress: Progress) -> None:
        if progress.passes == 3:
            os.kill(victim, number)

    partitions = [dask.delayed(part)(p) for p in range(PARTITIONS)]
    try:
        found = on_dask.solve(
            partitions, METHOD, tol=TOL, callbacks=[strike], check_every=1, random_state=0, timeout=15.0
        )
    finally:
        os.kill(victim, signal.SIGKILL) if number == signal.SIGSTOP else None
    optimum = solve(Multiclass.from_arrays(*rows()), METHOD, tol=1e-9, max_passes=5000).dual
    assert found.status is Status.CONVERGED
    assert found.primal == pytest.approx(optimum, abs=TOL)
    assert all(row.dual <= optimum + 1e-8 <= row.primal + 2e-8 for row in found.history.rows)
    assert found.stopped.problem.rounds.fleet.epoch > 0


@pytest.mark.parametrize("short", [0, 1 << 16], ids=["scattered", "sent along"])
def test_a_worker_that_is_stopped_does_not_delay_the_end_of_a_run(
    client: Client, monkeypatch: pytest.MonkeyPatch, short: int
) -> None:
    """Long messages go to the first worker, which is the one that is stopped."""
    there = client.run(os.getpid)
    victim = there[min(there)]

    def stop(progress: Progress) -> None:
        if progress.passes == 3:
            os.kill(victim, signal.SIGSTOP)

    monkeypatch.setattr(calls, "_SHORT", short)
    partitions = [dask.delayed(part)(p) for p in range(PARTITIONS)]
    limits: dict[str, Any] = {"tol": 0.0, "max_passes": 10**6, "time_limit": 4.0, "timeout": 600.0}
    try:
        found = on_dask.solve(partitions, METHOD, callbacks=[stop], check_every=1, random_state=0, **limits)
        left = set(client.nthreads())
    finally:
        os.kill(victim, signal.SIGKILL)
    optimum = solve(Multiclass.from_arrays(*rows()), METHOD, tol=1e-9, max_passes=5000).dual
    assert found.status is Status.TIME_LIMIT
    assert found.primal < np.inf
    assert all(row.dual <= optimum + 1e-8 <= row.primal + 2e-8 for row in found.history.rows)
    assert left == set(there)  # time was up before the worker was given up


def test_workers_killed_at_random_moments_leave_results_right(tmp_path: Path) -> None:
    assert kill_workers.main([str(tmp_path), "--runs", "1", "--seed", "3"]) == 0
    journal = (tmp_path / "workers.jsonl").read_text()
    assert journal.count('"right": true') >= 1
    assert kill_workers.main([str(tmp_path), "--runs", "1"]) == 0  # nothing is left to do
    assert (tmp_path / "workers.jsonl").read_text() == journal
