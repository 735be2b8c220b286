"""What features cost in memory, and what float32 costs in time: growth while an estimator is trained.

    python benchmarks/memory.py [--quick]

The first figure is that of `ChainSVC()` as it comes, which stops at a gap of a tenth of the objective. It has
the active sets of the solver in it, which depend on the outputs and not on the features. All others are of
three passes, for the cost of features alone.

The features are embeddings as language models make them, 768 numbers for each of 20 tokens of 3,000
sequences, or a table with as many rows; sparse ones have 192 numbers a row. Each case runs in a process of
its own, which has imported the library and has trained on a few sequences, so that its kernels are compiled,
before it makes the array. Growth is the largest resident memory during `fit` less that before it, as a
multiple of the array. Pages of mapped files are not counted: the system takes them back when it needs them.

- in place: the sequences are consecutive parts of one array (3-D arrays, slices, maps of files).
- gathered: each sequence is an array of its own, so that the rows are copied once.

The seconds of a pass are those of `solve`, alternately for float32 and for the same values in float64, and
the objectives and weights of both are compared. They should be the same bits.
"""

import argparse
import gc
import json
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from _measure import (
    Figure,
    PeakMemory,
    Target,
    Times,
    interleaved,
    print_figures,
    private_bytes,
    ratio,
    run_python,
)
from maxmargin import Accelerated, ChainSVC, MulticlassSVC, Pairwise, solve
from maxmargin.problems import Chain

N, LENGTH, WIDTH, LABELS, PER_ROW = 3000, 20, 768, 8, 192
PASSES, ROUNDS, PROCESSES = 3, 5, 3
WHOLE = "3-D array, to its tol"
# The state of the solver is a third of the array in some cases, and is in all figures.
GROWTH = {"in place": Target(must=1.3, aim=0.7), "gathered": Target(must=1.5)}
# A table is copied to append the column of the intercept. Indices that a user could change are copied.
CASES = {
    WHOLE: "in place",
    "3-D array": "in place",
    "slices": "in place",
    "map of a file": "in place",
    "list of arrays": "gathered",
    "sparse matrices": "gathered",
    "table": "gathered",
    "sparse table": "gathered",
    "predict, 3-D array": "in place",
}
SLOWER = Target(must=1.0)
SAME = Target(must=1e-6)
# How much noise there is in labels: two thirds of them follow from the features.
NOISE = 0.5


def labels(rows: Any) -> Any:
    """Return the labels of all tokens, given their features: those of a random linear model, with noise."""
    rng = np.random.default_rng(1)
    scores = rows @ rng.standard_normal((WIDTH, LABELS), np.float32)
    return (scores + NOISE * scores.std() * rng.standard_normal(scores.shape)).argmax(axis=1)


def dense(n: int, dtype: str) -> Any:
    """Return embeddings; they are made row by row, in the memory that they stay in."""
    rng, X = np.random.default_rng(0), np.empty((n, LENGTH, WIDTH), dtype)
    for x in X:
        x[:] = rng.standard_normal((LENGTH, WIDTH), np.float32)
    return X


def sparse(n: int, dtype: str) -> Any:
    """Return sparse features, one row per token."""
    rng, rows, apart = np.random.default_rng(0), n * LENGTH, WIDTH // PER_ROW
    columns = np.arange(PER_ROW) * apart + rng.integers(apart, size=(rows, PER_ROW))
    values = rng.standard_normal(columns.size, np.float32).astype(dtype)
    start = np.arange(rows + 1, dtype=np.int32) * PER_ROW
    return scipy.sparse.csr_array((values, columns.ravel().astype(np.int32), start), shape=(rows, WIDTH))


def examples(case: str, n: int, dtype: str, folder: str) -> tuple[Any, Any, int]:
    """Return features and labels of a case, and the bytes of the features."""
    X = sparse(n, dtype) if "sparse" in case else dense(n, dtype).reshape(-1, WIDTH)
    y = labels(X)
    arrays = (X.data, X.indices, X.indptr) if "sparse" in case else (X,)
    size = sum(array.nbytes for array in arrays)
    if "table" in case:
        return X, y, size
    spans = [slice(LENGTH * i, LENGTH * (i + 1)) for i in range(n)]
    y = y.reshape(n, LENGTH)
    if case in ("slices", "sparse matrices"):
        return [X[span] for span in spans], y, size
    if case == "list of arrays":
        return [X[span].copy() for span in spans], y, size
    X = X.reshape(n, LENGTH, WIDTH)
    if case == "map of a file":
        path = Path(folder) / "features.npy"
        np.save(path, X)
        return np.load(path, mmap_mode="r"), y, size
    return X, y, size


def estimator(case: str) -> Any:
    """Return an estimator that trains for a few passes, or to its own tolerance."""
    if case == WHOLE:
        return ChainSVC(verbose=0, random_state=0)
    made = MulticlassSVC if "table" in case else ChainSVC
    return made(max_iter=PASSES, tol=1e-6, verbose=0, random_state=0)


def measure_growth(case: str, n: int, dtype: str) -> None:
    """Print by how much memory grows during `fit`, or during `predict`, as a multiple of the features."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        X, y, _ = examples(case, 5, dtype, folder)
        few = estimator(case).fit(X, y)
        few.predict(X)
        X, y, size = examples(case, n, dtype, folder)
        gc.collect()
        with PeakMemory(private_bytes) as memory:
            before = memory.peak
            few.predict(X) if case.startswith("predict") else estimator(case).fit(X, y)
    print(json.dumps({"growth": (memory.peak - before) / size}))


def growth_figures(n: int) -> list[Figure]:
    """Return the growth of all cases, each measured in a process of its own."""
    figures = []
    for case, kind in CASES.items():
        for dtype in ("float32", "float64"):
            found = json.loads(run_python(__file__, "--growth", case, "--n", str(n), "--dtype", dtype))
            target = GROWTH[kind] if dtype == "float32" else None
            figures.append(Figure(f"{dtype}, {case} ({kind})", found["growth"], "x", target))
    return figures


def measure_passes(n: int) -> None:
    """Print the seconds of passes over float32 and over float64, and by how much their answers differ."""
    X = dense(n, "float32")
    y = labels(X.reshape(-1, WIDTH)).reshape(n, LENGTH).tolist()
    types = {"float32": X, "float64": X.astype(np.float64)}
    for array in types.values():
        array.flags.writeable = False
    problems = {name: Chain.from_sequences(array, y) for name, array in types.items()}

    def task(name: str) -> Any:
        method = Accelerated(Pairwise(lam=1.0 / n))
        return solve(problems[name], method, tol=0.0, max_passes=PASSES, random_state=0)

    results = {name: task(name) for name in problems}  # compiles
    times = interleaved({name: partial(task, name) for name in problems}, ROUNDS)
    found, expected = results["float32"], results["float64"]
    apart = np.abs(found.weights - expected.weights).max() / np.abs(expected.weights).max()
    apart = max(apart, abs(found.primal / expected.primal - 1.0))
    print(json.dumps({"seconds": {name: each.seconds for name, each in times.items()}, "apart": apart}))


def pass_figures(n: int) -> list[Figure]:
    """Return the figures of some processes, as an array's place in memory makes one faster than another."""
    runs = [json.loads(run_python(__file__, "--passes", "--n", str(n))) for _ in range(PROCESSES)]
    pairs = [tuple(Times(tuple(run["seconds"][name])) for name in ("float32", "float64")) for run in runs]
    return [
        ratio("seconds of a pass, float32 / float64", pairs, SLOWER),
        Figure("weights and objective, float32 and float64", max(run["apart"] for run in runs), "", SAME),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sequences")
    parser.add_argument("--growth", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--passes", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--dtype", default="float32", help=argparse.SUPPRESS)
    options = parser.parse_args()
    n = options.n or (N // 10 if options.quick else N)
    if options.growth:
        measure_growth(options.growth, n, options.dtype)
    elif options.passes:
        measure_passes(n)
    else:
        for figures in (pass_figures, growth_figures):
            print_figures(figures(n))


if __name__ == "__main__":
    main()
