"""What kernels for the baseline processor cost: passes with them against kernels for this processor.

    python benchmarks/baseline.py DIRECTORY [NAME ...] [--repetitions 5]

``maxmargin compile --baseline DIRECTORY`` makes the former; the latter are compiled into the user's cache if
they are not there. Each fit runs in a new process on one thread, after one of two passes, and the two kinds
take turns. The ratio is the median over turns of processor seconds, and both must find the same bits.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _measure import run_python

N_WORDS, N_LABELS = 12, 5
Data = tuple[Any, Any]


def _rows(n: int, n_features: int) -> tuple[Any, Any]:
    """Return features, and labels that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    scores = X @ rng.normal(size=(n_features, N_LABELS)) + 2.0 * rng.normal(size=(n, N_LABELS))
    return X, scores.argmax(axis=1)


def _sequences(n_features: int) -> Data:
    X, y = _rows(2000 * N_WORDS, n_features)
    return list(X.reshape(-1, N_WORDS, n_features)), [list(row) for row in y.reshape(-1, N_WORDS)]


def _indicators() -> Data:
    X, y = _sequences(30)
    return [[[f"f{k}" for k in np.flatnonzero(row > 1.0)] for row in x] for x in X], y


def _cycles() -> Data:
    X, y = _sequences(30)
    edges = [(k, (k + 1) % N_WORDS) for k in range(N_WORDS)]
    return [(x, edges) for x in X[:500]], y[:500]


def _chunks() -> Data:
    X, y = _sequences(30)
    tags = ["O", "B-a", "B-b", "I-a", "I-b"]
    legal = [[tag if tag[0] != "I" else "B" + tag[1:] for tag in (tags[k] for k in row)] for row in y]
    return X[:500], legal[:500]


def _sets() -> Data:
    X, y = _rows(3000, 50)
    return X, np.column_stack([y == k for k in range(4)] + [X[:, 0] > 0.0]).astype(int)


def _heads() -> Data:
    rng = np.random.default_rng(0)
    words = [[(f"w{k}", f"t{k % 7}") for k in rng.integers(200, size=N_WORDS)] for _ in range(300)]
    heads = [[0, *[int(rng.integers(1, k + 1)) for k in range(1, N_WORDS)]] for _ in words]
    return words, heads


def _links() -> Data:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 8, 20)) for _ in range(300)]
    return X, [[(k, int(x[k, :, 0].argmax())) for k in range(1)] for x in X]


class Subject(NamedTuple):
    """An estimator, its data, and how many passes it takes."""

    estimator: str
    data: Callable[[], Data]
    passes: int


SUBJECTS = {
    "chains of dense rows": Subject("ChainSVC", lambda: _sequences(100), 100),
    "chains of indicators": Subject("ChainSVC", _indicators, 100),
    "classes": Subject("MulticlassSVC", lambda: _rows(20_000, 50), 300),
    "cycles": Subject("GraphSVC", _cycles, 100),
    "segments": Subject("SegmentSVC", _chunks, 60),
    "sets of labels": Subject("MultilabelSVC", _sets, 60),
    "heads": Subject("DependencySVC", _heads, 60),
    "links": Subject("MatchingSVC", _links, 800),
}

PROGRAM = """
import hashlib, json, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import maxmargin
from baseline import SUBJECTS
subject = SUBJECTS[sys.argv[2]]
X, y = subject.data()
def fitted(passes):
    model = getattr(maxmargin, subject.estimator)(
        max_iter=passes, tol=0.0, check_every=passes, verbose=0, random_state=0
    )
    return model.fit(X, y)
fitted(2)
before = time.process_time()
model = fitted(subject.passes)
seconds = time.process_time() - before
bits = model.coef_.tobytes() + model.history_.primal.tobytes() + model.history_.dual.tobytes()
print(json.dumps({"seconds": seconds, "bits": hashlib.sha256(bits).hexdigest()}))
"""


def ran(name: str, **environment: str) -> tuple[float, str]:
    """Return the seconds of a fit in a new process, and a hash of what it found."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    said = json.loads(run_python("-c", PROGRAM, str(Path(__file__).parent), name, **environment, **threads))
    return said["seconds"], said["bits"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("names", nargs="*", default=list(SUBJECTS), metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    kernels = str(arguments.directory.resolve())
    for name in arguments.names:
        ran(name, MAXMARGIN_KERNELS="")  # compiles
        ratios, bits = [], set()
        for _ in range(arguments.repetitions):
            own, found = ran(name, MAXMARGIN_KERNELS="")
            with tempfile.TemporaryDirectory() as empty:
                least, found_too = ran(name, MAXMARGIN_KERNELS=kernels, NUMBA_CACHE_DIR=empty)
            ratios.append(least / own)
            bits |= {found, found_too}
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        same = "same bits" if len(bits) == 1 else "OTHER BITS"
        print(f"{name:22} {statistics.median(ratios):.2f} ({spread})  {own:.2f} s  {same}", flush=True)


if __name__ == "__main__":
    main()
