"""Running the groups of runs that are not there yet, by benchopt, with an estimate and a progress bar."""

import contextlib
import io
import os
import tempfile
import time
import warnings
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from benchopt import run_benchmark
from benchopt.benchmark import Benchmark
from tqdm import tqdm

import _store
from _plan import Group
from benchmark_utils.data import LOADERS, Data
from benchmark_utils.trajectory import checkpoints
from maxmargin.solving import objective
from maxmargin.structures.problem import sizes

OBJECTIVE = "structural SVM"
# Starting benchopt on a group, and loading kernels.
_OVERHEAD = 3.0


class Task(NamedTuple):
    """What a process is told: a group, and how to run it."""

    group: Group
    profile: str
    seeds: int
    anew: bool


def run(profile: str, wanted: list[Group], jobs: int, anew: bool) -> int:
    """Run what is missing of the groups; return how many failed."""
    solvers = {solver.name: solver for solver in Benchmark(_store.HERE).get_solvers()}
    groups = _possible(wanted, solvers)
    todo = [group for group in groups if anew or not _store.path_of(group, profile).exists()]
    costs = dict(zip(todo, _estimates(todo, solvers), strict=True))
    ready, minutes = len(groups) - len(todo), sum(costs.values()) / jobs / 60
    print(f"{ready} of {len(groups)} groups of runs are there; the rest takes about", end=" ")
    print(f"{minutes:.0f} min in {jobs} processes. If stopped, it goes on from there.", flush=True)
    # The longest first, so that no process is left alone with one at the end.
    order = sorted(todo, key=lambda group: -costs[group])
    tasks = [Task(g, profile, 1 if solvers[g.solver].deterministic else g.limits.seeds, anew) for g in order]
    with Pool(jobs) as pool, tqdm(total=round(sum(costs.values())), unit="s", unit_scale=True) as bar:
        try:
            finished = pool.imap_unordered(_run_task, tasks)
            return sum(_told(group, trouble, costs[group], bar) for group, trouble in finished)
        except KeyboardInterrupt:
            raise SystemExit("Stopped; what is finished is kept.") from None


def _told(group: Group, trouble: str, cost: float, bar: Any) -> bool:
    """Tell that a group is finished; return whether it failed."""
    bar.set_description(f"{group.dataset}, {group.lam}, {group.solver}")
    bar.update(min(cost, bar.total - bar.n))
    if trouble:
        bar.write(f"FAILED: {group.solver} on {group.dataset} at {group.lam}\n{trouble}")
    return bool(trouble)


def _possible(wanted: list[Group], solvers: dict[str, Any]) -> list[Group]:
    """Return the groups whose data and methods are there; say once of each other one why not."""
    absent = {name: LOADERS[name]().missing for name in dict.fromkeys(group.dataset for group in wanted)}
    for group in wanted:
        if not solvers[group.solver].is_installed(quiet=True):
            absent[group.solver] = _why_not(solvers[group.solver])
    for name, reason in absent.items():
        if reason:
            print(f"Skipped {name}: {reason}")
    return [group for group in wanted if not absent[group.dataset] and not absent.get(group.solver)]


def _why_not(solver: Any) -> str:
    return str(getattr(solver, "_exc", "it is not installed")).splitlines()[-1]


def _estimates(groups: list[Group], solvers: dict[str, Any]) -> list[float]:
    """Return about how many seconds each group will take, from the time of a decoding pass measured now."""
    decoding = {name: _decoding_seconds(LOADERS[name]()) for name in {group.dataset for group in groups}}

    def seconds(group: Group) -> float:
        solver, limits = solvers[group.solver], group.limits
        stops = len(checkpoints(10**6, limits.first, limits.passes))
        one = (limits.passes * solver.cost + 1.5 * stops) * decoding[group.dataset]
        return _OVERHEAD + (1 if solver.deterministic else limits.seeds) * min(one, limits.seconds)

    return [seconds(group) for group in groups]


def _decoding_seconds(data: Data) -> float:
    """Return how long an oracle pass takes at fixed weights, the shorter of two."""
    w, seconds = np.zeros(sizes(data.problem).weights), []
    for _ in range(3):
        begin = time.perf_counter()
        objective.primal(data.problem, w, 1.0)
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])


def _run_task(task: Task) -> tuple[Group, str]:
    """Run all seeds and keep the results; return also what benchopt printed if some are missing."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = Path(folder) / "runs.parquet"
        # benchopt raises where no run was left over; it has printed why.
        with contextlib.redirect_stdout(printed), contextlib.suppress(RuntimeError):
            _benchopt(task, target)
        if not target.exists() or pd.read_parquet(target)["idx_rep"].nunique() < task.seeds:
            return task.group, printed.getvalue()
        _store.keep(target, task.group, task.profile)
    return task.group, ""


def _scratch() -> Path:
    """Return a folder on the same disk as the results, so that they can be moved at once."""
    _store.OUTPUTS.mkdir(exist_ok=True)
    return _store.OUTPUTS


def _benchopt(task: Task, target: Path) -> None:
    group, limits = task.group, task.group.limits
    parameters = {"lam": group.lam, "first": limits.first, "passes": limits.passes, "seconds": limits.seconds}
    run_benchmark(
        str(_store.HERE),
        solver_names=[] if task.anew else [group.solver],
        forced_solvers=[group.solver] if task.anew else [],
        dataset_names=[group.dataset],
        objective_filters=[{OBJECTIVE: parameters}],
        n_repetitions=task.seeds,
        n_jobs=1,
        plot_result=False,
        display=False,
        show_progress=False,
        output_file=str(target),
    )


def processors() -> int:
    """Return how many processors there are to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
