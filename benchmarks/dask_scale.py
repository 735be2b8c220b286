"""What a cluster of two workers gains: passes against threads, and seconds against one thread.

    python benchmarks/dask_scale.py [--only made] [--sequences 300000] [--check-every 2] [--data DIRECTORY]

The workers are processes of one thread each on this machine. Starting them, loading the partitions and
compiling are left out of all seconds. A round is shown as the cost model of docs/guides/scaling.md has it:
seconds of the oracle, and all else.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster
from scipy.sparse import csr_array

from _measure import Figure, Target, print_figures
from _problems import conll_rows, if_there
from maxmargin import Accelerated, Divided, Pairwise, Result, solve
from maxmargin.dask.fleet import Round
from maxmargin.dask.method import Distributed, on_workers
from maxmargin.dask.solving import a_fleet
from maxmargin.methods import divided
from maxmargin.problems import Chain, Multiclass
from maxmargin.structures.problem import sizes

WORKERS, MADE_PARTITIONS = 2, 6
LABELS, FEATURES, PER_TOKEN = 6, 20_000, 8
C = 0.15  # the default of ChainSVC
PARTS = 1, 2, 4, 8, 16, 32, 64
LENGTHS = 10_000, 100_000, 500_000, 2_000_000


@contextmanager
def a_cluster() -> Iterator[Client]:
    """Start the workers, on this machine alone."""
    options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": ":0", "memory_limit": 0}
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def conll_part(data: str | None, p: int, parts: int) -> Any:
    """Return every parts-th sentence of CoNLL-2000, from sentence p on, as a problem."""
    rows, offsets, labels, n_labels = conll_rows(data)
    chosen = np.arange(p, len(offsets) - 1, parts)
    tokens = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen])
    lengths = np.diff(offsets)[chosen]
    return Chain.from_encoded(rows[tokens], np.r_[0, np.cumsum(lengths)], labels[tokens], n_labels)


def made_rows(p: int, n: int, features: int = FEATURES) -> tuple[csr_array, Any, Any]:
    """Return sequences of 8 to 20 tokens: labels follow each other, and each likes some of the features."""
    rng = np.random.default_rng(p)
    lengths = rng.integers(8, 21, size=n)
    offsets = np.r_[0, np.cumsum(lengths)]
    labels = np.cumsum(rng.choice([0, 1, 2], p=[0.2, 0.6, 0.2], size=offsets[-1])) % LABELS
    # Small numbers are frequent, as of words; half of the features say something of the label.
    columns = (features * rng.random((len(labels), PER_TOKEN)) ** 3).astype(np.int64)
    telling = rng.random(columns.shape) < 0.25
    columns = np.where(telling, columns - columns % LABELS + labels[:, None], columns) % features
    start = np.arange(len(labels) + 1) * PER_TOKEN
    rows = csr_array((np.ones(columns.size), columns.ravel(), start), shape=(len(labels), features))
    rows.sum_duplicates()
    rows.data[:] = 1.0
    return rows, offsets, labels


def made_part(n: int, p: int) -> Any:
    """Return a partition of the made sequences."""
    rows, offsets, labels = made_rows(p, n // MADE_PARTITIONS)
    return Chain.from_encoded(rows, offsets, labels, LABELS)


def made_whole(n: int, features: int = FEATURES) -> Any:
    """Return all made sequences."""
    from scipy.sparse import vstack

    parts = [made_rows(p, n // MADE_PARTITIONS, features) for p in range(MADE_PARTITIONS)]
    lengths = np.concatenate([np.diff(offsets) for _, offsets, _ in parts])
    rows = csr_array(vstack([rows for rows, _, _ in parts]))
    return Chain.from_encoded(
        rows, np.r_[0, np.cumsum(lengths)], np.concatenate([y for *_, y in parts]), LABELS
    )


def on_cluster(
    client: Client, make: Any, parts: int, method: Any, **limits: Any
) -> tuple[Result, float, list[Round]]:
    """Return the result, the seconds without loading, and the rounds."""
    sources = [(dask.delayed(make)(p),) for p in range(parts)]
    with a_fleet(sources, _same, client) as problem:
        solve(problem, on_workers(method), max_passes=1, random_state=1)  # compiles
        problem.rounds.log.clear()
        begin = time.perf_counter()
        found = solve(problem, on_workers(method), random_state=0, **limits)
        return found, time.perf_counter() - begin, list(problem.rounds.log)


def _same(problem: Any) -> Any:
    return problem


def here(problem: Any, method: Any, n_jobs: int, **limits: Any) -> tuple[Result, float]:
    """Return the result on this machine, and the seconds without compiling."""
    solve(problem, method, max_passes=1, random_state=1, n_jobs=n_jobs)
    begin = time.perf_counter()
    found = solve(problem, method, random_state=0, n_jobs=n_jobs, **limits)
    return found, time.perf_counter() - begin


def rounds_figures(name: str, rounds: list[Round]) -> list[Figure]:
    """Return what a round took: the median."""
    half = {field: float(np.median([getattr(each, field) for each in rounds])) for field in Round._fields}
    other = float(np.median([each.seconds - each.oracle_seconds for each in rounds]))
    return [
        Figure(f"{name}: rounds", len(rounds)),
        Figure(f"{name}: a round", 1e3 * half["seconds"], "ms"),
        Figure(f"{name}: of which besides the oracle", 1e3 * other, "ms"),
        Figure(f"{name}: weights to a worker", half["bytes_out"] / 1e6, "MB"),
        Figure(f"{name}: sum of the moves", half["bytes_in"] / 1e6, "MB"),
    ]


def dense_part(n_weights: int, p: int) -> Any:
    """Return a few examples all of whose features change, so that all weights do."""
    rng = np.random.default_rng(p)
    return Multiclass.from_arrays(rng.normal(size=(16, n_weights // 4)), np.arange(16) % 4)


def messages(client: Client) -> None:
    """Fit the seconds of a round besides the oracle, by the bytes of the weights: latency and bandwidth."""
    megabytes, seconds = [], []
    for n_weights in LENGTHS:
        method = Accelerated(Distributed(Pairwise(0.1), rounds=1))
        limits = {"tol": 0.0, "max_passes": 20}
        _, _, rounds = on_cluster(client, partial(dense_part, n_weights), WORKERS, method, **limits)
        megabytes.append(8e-6 * n_weights)
        seconds.append(float(np.median([each.seconds - each.oracle_seconds for each in rounds])))
    slope, latency = np.polyfit(megabytes, seconds, 1, w=1.0 / np.array(seconds))
    each = [
        Figure(f"a round of {size:.2f} MB of weights, besides the oracle", 1e3 * took, "ms")
        for size, took in zip(megabytes, seconds, strict=True)
    ]
    fitted = [Figure("latency", 1e3 * latency, "ms"), Figure("bandwidth", 1.0 / slope, "MB/s")]
    print_figures([*each, *fitted])


def conll(client: Client, data: str | None) -> None:
    whole = conll_part(data, 0, 1)
    lam, limits = 1.0 / sizes(whole).examples, {"tol": 0.0065, "max_passes": 300, "check_every": 1}
    threads, _ = here(whole, Accelerated(Divided(Pairwise(lam), WORKERS)), WORKERS, **limits)
    make = partial(conll_part, data, parts=WORKERS)
    found, seconds, rounds = on_cluster(client, make, WORKERS, Accelerated(Pairwise(lam)), **limits)
    passes = [result.history.rows[-1].passes for result in (found, threads)]
    name = "CoNLL, 1/n, to 0.0065"
    print_figures(
        [
            Figure(f"{name}: passes, two parts", passes[1]),
            Figure(f"{name}: passes, two workers", passes[0]),
            Figure(f"{name}: workers / parts", passes[0] / passes[1], "x", Target(1.5)),
            Figure(f"{name}: seconds", seconds, "s"),
            *rounds_figures(name, rounds),
        ]
    )


def made(client: Client, n: int, check_every: int) -> None:
    lam = 1.0 / (C * n)
    limits = {"tol": 0.0, "rtol": 0.05, "max_passes": 300, "check_every": check_every}
    method = Accelerated(Pairwise(lam))
    make = partial(made_part, n)
    found, seconds, rounds = on_cluster(client, make, MADE_PARTITIONS, method, **limits)
    one, one_seconds = here(made_whole(n), method, 1, **limits)
    name = f"{n} made sequences to 5 %, looked at every {check_every} passes"
    print_figures(
        [
            Figure(f"{name}: passes, one thread", one.history.rows[-1].passes),
            Figure(f"{name}: passes, two workers", found.history.rows[-1].passes),
            Figure(f"{name}: seconds, one thread", one_seconds, "s"),
            Figure(
                f"{name}: a pass of one thread",
                one.history.rows[-1].seconds / one.history.rows[-1].passes,
                "s",
            ),
            Figure(f"{name}: seconds, two workers", seconds, "s"),
            Figure(f"{name}: two workers / one thread", seconds / one_seconds, "x", Target(0.85)),
            Figure(f"{name}: last gap, one thread", one.gap / one.primal),
            Figure(f"{name}: last gap, two workers", found.gap / found.primal),
            *rounds_figures(name, rounds),
        ]
    )


@contextmanager
def meeting(rounds: int) -> Iterator[None]:
    """Let the parts of `Divided` add up their weights so many times in a pass, and meet at no other time."""
    before = divided.affordable_walks, divided._rounds_in_a_stretch
    divided.affordable_walks = lambda problem, most: rounds
    divided._rounds_in_a_stretch = lambda problem, visits, n_parts: 1
    try:
        yield
    finally:
        divided.affordable_walks, divided._rounds_in_a_stretch = before


def parts(n: int) -> None:
    """Simulate clusters in this process: the passes of many parts, which meet more or less often."""
    whole, lam = made_whole(n, FEATURES * n // 300_000), 1.0 / (C * n)
    limits: dict[str, Any] = {"tol": 0.0, "rtol": 0.05, "max_passes": 100, "check_every": 1}
    for rounds in (8, 32, 128):
        figures = []
        for n_parts in PARTS if rounds == 32 else PARTS[1:]:
            with meeting(rounds):
                method = Accelerated(Divided(Pairwise(lam), n_parts))
                found = solve(whole, method, random_state=0, **limits)
            name = f"{n} made sequences to 5 %: passes of {n_parts} parts, {rounds} rounds in a pass"
            figures.append(Figure(name, found.history.rows[-1].passes))
        print_figures(figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", default="", help="only problems whose names begin so: conll, made, messages, parts"
    )
    parser.add_argument("--sequences", type=int, default=300_000)
    parser.add_argument("--check-every", type=int, default=2, help="passes between two certificates of made")
    parser.add_argument("--data", help="directory with CoNLL-2000 (default: $MAXMARGIN_DATA)")
    parser.add_argument("--simulated", type=int, default=30_000, help="sequences of parts")
    options = parser.parse_args()
    if "parts".startswith(options.only):
        parts(options.simulated)
    if options.only and "parts".startswith(options.only):
        return
    with a_cluster() as client:
        if "conll".startswith(options.only):
            if_there(lambda: conll(client, options.data))
        if "made".startswith(options.only):
            made(client, options.sequences, options.check_every)
        if "messages".startswith(options.only):
            messages(client)


if __name__ == "__main__":
    main()
