"""Kernels: error, seconds and passes, compared with targets, on one thread.

    python benchmarks/kernels.py [small] [pass] [letters] [passes] [large] [--data DIRECTORY]

The OCR letters are read from --data or $MAXMARGIN_DATA. Without names, all parts run but the last.

small
    Trained on the 626 words of fold 0, tested on all others: letters wrong, for the kernel, C and gamma that
    cross-validation on the 626 words chooses, and the seconds to a certified gap of 1 % of the objective.
pass
    A pass less its own additions of kernel columns, which are recorded and replayed, over a decoding pass.
letters
    20,000 letters without their words, 26 classes: the seconds to the first certificate from which on all are
    within 0.2 points of the test accuracy of scikit-learn's SVC, over the seconds of SVC. Both include the
    kernel matrix.
passes
    Passes of accelerated pairwise steps to a gap over those of block-coordinate Frank-Wolfe.
large
    Trained on 6,251 words, 47,535 letters, with 4 GB for columns: minutes to a certified gap of 2 % of the
    objective, and the test error. Takes up to an hour.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import copy
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC

from _measure import Figure, Target, print_figures
from maxmargin import Accelerated, BlockFrankWolfe, ChainSVC, Pairwise, solve
from maxmargin.compiling import kernel
from maxmargin.compiling.interpreting import interpreted
from maxmargin.datasets import load_ocr
from maxmargin.methods.protocol import start
from maxmargin.methods.sweep import advance
from maxmargin.problems import Chain, GaussianKernel, Kernelised, Multiclass
from maxmargin.solving.decoding import decode_all, decoding_work, predictions
from maxmargin.solving.result import Progress
from maxmargin.structures import kernelised
from maxmargin.structures.kernel_functions import GROUP, add_columns
from maxmargin.structures.problem import sizes

ERROR, SECONDS = Target(must=13.8, aim=13.0), Target(must=10.0, aim=3.0)
PASS, TO_SVC = Target(must=2.0, aim=1.5), Target(must=0.8, aim=0.5)
PASSES = Target(must=0.3, aim=0.15)
MINUTES, LARGE_ERROR = Target(must=60.0), Target(must=100.0, aim=6.0)
RBF = {"kernel": ["rbf"], "gamma": [0.03, 0.05, 0.08], "C": [0.1, 0.3, 1.0, 3.0]}
CUBIC = {"kernel": ["poly"], "degree": [3], "coef0": [1.0], "gamma": [0.015, 0.03], "C": [0.01, 0.03, 0.1]}
GAMMA = 0.05
QUIET = {"verbose": 0, "random_state": 0}


class Words(NamedTuple):
    """Words as lists of float32 arrays of pixels, and their letters."""

    X: list[Any]
    y: list[Any]


def ocr(data: str | None, *, small: bool) -> tuple[Words, Words]:
    """Return training and test words: one fold to train on if small, else to test on."""
    X, y, X_fold, y_fold = load_ocr(fold=0, data_home=data)
    most, fold = (
        Words([np.asarray(x, dtype=np.float32) for x in words], labels)
        for words, labels in ((X, y), (X_fold, y_fold))
    )
    return (fold, most) if small else (most, fold)


def tokens(words: Words) -> tuple[Any, Any, Any]:
    """Return the pixels of all letters, where words begin, and the letters as numbers."""
    offsets = np.cumsum([0, *map(len, words.X)])
    _, labels = np.unique(np.concatenate(words.y), return_inverse=True)
    return np.concatenate(words.X), offsets, labels


def chain(words: Words, function: Any, cache_size: float = 1000.0) -> Any:
    """Return the problem of the words with a kernel."""
    features, offsets, labels = tokens(words)
    linear = Chain.from_encoded(np.zeros((len(features), 0)), offsets, labels, int(labels.max()) + 1)
    return Kernelised(linear, features, function, cache_size=cache_size, dtype=np.float32)


def small(data: str | None) -> list[Figure]:
    """Return error and seconds of the model chosen by cross-validation."""
    train, test = ocr(data, small=True)
    search = GridSearchCV(
        ChainSVC(loss="normalized_hamming", max_iter=60, tol=1e-3, **QUIET),
        [RBF, CUBIC],
        cv=KFold(5, shuffle=True, random_state=0),
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(train.X, train.y)
    chosen = search.best_params_
    print(f"cross-validation: {100 * (1 - search.best_score_):.2f} % wrong")
    model = ChainSVC(**chosen, loss="normalized_hamming", tol=1e-3, max_iter=200, **QUIET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train.X, train.y)
    name = f"{chosen['kernel']}, gamma {chosen['gamma']}, C {chosen['C']}"
    return [
        Figure(f"626 words, {name}: letters wrong", 100 * (1 - model.score(test.X, test.y)), "%", ERROR),
        Figure("the same to a gap of 1 % of the objective", _seconds_to(model, train, 0.01), "s", SECONDS),
    ]


def _seconds_to(model: Any, train: Words, share: float) -> float:
    """Return the seconds until the gap is this share of the objective, the kernel matrix included."""
    method = Accelerated(Pairwise(1.0 / (model.C * len(train.X))))
    begin = time.perf_counter()
    problem = chain(train, model._function)
    stop = {"callbacks": [lambda progress: _is_above(progress, share)]}
    solve(problem, method, tol=0.0, max_passes=1000, check_every=3, random_state=0, **stop)
    return time.perf_counter() - begin


def _is_above(progress: Progress, share: float) -> bool:
    """Whether the gap is above this share of the objective, so that the run goes on."""
    return progress.last is None or progress.last.gap > share * progress.last.primal


class Log(NamedTuple):
    """The additions of a pass: rows, labels and coefficients, and where each step begins."""

    chosen: Any
    labels: Any
    coefs: Any
    begins: Any


@kernel
def replay(columns, chosen, labels, coefs, begins, places, G):
    """Make the additions again."""
    for s in range(begins.shape[0] - 1):
        a, b = begins[s], begins[s + 1]
        add_columns(columns, chosen[a:b], labels[a:b], coefs[a:b], b - a, places, G)


def recorded(method: Any, state: Any, problem: Any, order: Any) -> Log:
    """Return the additions of a pass, which the interpreter makes with the same bits."""
    steps: list[tuple[Any, Any, Any]] = []

    def note(columns: Any, chosen: Any, labels: Any, coefs: Any, count: int, places: Any, G: Any) -> None:
        steps.append((chosen[:count].copy(), labels[:count].copy(), coefs[:count].copy()))
        for c in range(count):
            G[labels[c]] += coefs[c] * columns.values[chosen[c]]

    before, kernelised.add_columns = kernelised.add_columns, note
    try:
        with interpreted():
            advance(method, state, problem, order)
    finally:
        kernelised.add_columns = before
    begins = np.cumsum([0, *(len(step[0]) for step in steps)])
    return Log(*(np.concatenate(part) for part in zip(*steps, strict=True)), begins)


def overhead(data: str | None) -> list[Figure]:
    """Return the time of a pass without its additions over that of decoding, for three methods."""
    problem, figures = chain(ocr(data, small=True)[0], GaussianKernel(GAMMA)), []
    n, rng = sizes(problem).examples, np.random.default_rng(0)
    lam = 1.0 / (3.0 * n)
    w, out = (
        rng.normal(size=sizes(problem).weights),
        np.empty(problem.map.columns.values.shape[1], dtype=np.int64),
    )
    for method in (BlockFrankWolfe(lam), Pairwise(lam), Accelerated(Pairwise(lam))):
        state = start(method, problem)
        for _ in range(5):
            state = advance(method, state, problem, rng.permutation(n))
        order = rng.permutation(n)
        log = recorded(method, copy.deepcopy(state), problem, order)
        G, places = np.zeros((problem.map.width, len(out))), np.zeros(GROUP, dtype=np.int64)
        tasks = {
            "pass": lambda: advance(method, copied, problem, order),  # noqa: B023
            "additions": lambda: replay(problem.map.columns, *log, places, G),  # noqa: B023
            "decoding": lambda: predictions(problem, w, 0, n, out, *decoding_work(problem)),
        }
        ratios = []
        for _ in range(15):
            copied = copy.deepcopy(state)
            seconds = {name: _timed(task) for name, task in tasks.items()}
            ratios.append((seconds["pass"] - seconds["additions"]) / seconds["decoding"])
        name = f"{type(method).__name__}: (pass - additions) / decoding"
        figures.append(Figure(name, statistics.median(ratios[1:]), "x", PASS))
    return figures


def _timed(task: Callable[[], Any]) -> float:
    begin = time.thread_time()
    task()
    return time.thread_time() - begin


def letters(data: str | None) -> list[Figure]:
    """Return our seconds over those of SVC for the same accuracy on 20,000 letters.

    Among C = 1, 3, 10 and 30, 10 is the best of SVC on the test letters.
    """
    X, _, y = tokens(ocr(data, small=False)[0])
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:20_000], order[20_000:30_000]
    svc = SVC(C=10.0, gamma=GAMMA, cache_size=2000.0)
    theirs = _wall_seconds(lambda: svc.fit(X[train], y[train]))
    accuracy = svc.score(X[test], y[test])
    _letter_problem(X[train[:200]], y[train[:200]])  # compiles
    found: list[Any] = []
    spent = _wall_seconds(lambda: found.append(_letter_problem(X[train], y[train])))
    problem, values = found[0], rbf_kernel(X[test], X[train], gamma=GAMMA)
    seconds, shares = [], []
    method = Accelerated(Pairwise(1.0 / (3.0 * len(train))))
    solve(problem, method, tol=0.0, max_passes=1)  # compiles
    for passes in range(2, 26, 2):
        options = {"tol": 0.0, "max_passes": passes, "check_every": 2, "random_state": 0}
        seconds.append(spent + _wall_seconds(lambda: found.append(solve(problem, method, **options))))  # noqa: B023
        intercepts, coefficients = problem.unpack(found[-1].w)
        scores = values @ coefficients.T[:, : len(intercepts)] + intercepts[:, 0]
        shares.append(float((scores.argmax(axis=1) == y[test]).mean()))
    good = [share >= accuracy - 0.002 for share in shares]
    first = next((k for k in range(len(good)) if all(good[k:])), None)
    print(f"SVC: {theirs:.1f} s, {100 * accuracy:.2f} %; our matrix: {spent:.1f} s")
    print(
        "ours:", ", ".join(f"{s:.1f} s {100 * share:.2f} %" for s, share in zip(seconds, shares, strict=True))
    )
    ratio = np.inf if first is None else seconds[first] / theirs
    return [Figure("20,000 letters: seconds to the accuracy of SVC / those of SVC", ratio, "x", TO_SVC)]


def _letter_problem(X: Any, y: Any) -> Any:
    linear = Multiclass.from_encoded(np.ones((len(X), 1)), y, 26)
    return Kernelised(linear, X, GaussianKernel(GAMMA), cache_size=2000.0, dtype=np.float32)


def _wall_seconds(task: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    task()
    return time.perf_counter() - begin


def passes(data: str | None) -> list[Figure]:
    """Return the passes of accelerated pairwise steps over those of block-coordinate Frank-Wolfe."""
    problem = chain(ocr(data, small=True)[0], GaussianKernel(GAMMA))
    lam = 1.0 / sizes(problem).examples
    first = solve(problem, BlockFrankWolfe(lam), tol=0.0, max_passes=200, check_every=1, random_state=0)
    gap = float(min(row.gap for row in first.history.rows))
    counts = [
        next(
            row.passes
            for row in solve(
                problem, method, tol=gap, max_passes=200, check_every=1, random_state=0
            ).history.rows
            if row.gap <= gap
        )
        for method in (Accelerated(Pairwise(lam)), BlockFrankWolfe(lam))
    ]
    return [Figure(f"passes to a gap of {gap:.3g}, accelerated / BCFW", counts[0] / counts[1], "x", PASSES)]


def large(data: str | None) -> list[Figure]:
    """Return the minutes to a gap of 2 % on all words, and the test error."""
    train, test = ocr(data, small=False)
    begin = time.perf_counter()
    problem = chain(train, GaussianKernel(GAMMA), cache_size=4000.0)

    def goes_on(progress: Progress) -> bool:
        last = progress.last
        if last is None:
            return True
        minutes, share = (time.perf_counter() - begin) / 60, last.gap / last.primal
        print(f"{minutes:5.1f} minutes, pass {progress.passes:3.0f}: gap {100 * share:.1f} %", flush=True)
        return share > 0.02

    method = Accelerated(Pairwise(1.0 / sizes(problem).examples))
    options = {"tol": 0.0, "time_limit": 3600.0, "check_every": 3, "callbacks": [goes_on]}
    result = solve(problem, method, **options, random_state=0)
    minutes = (time.perf_counter() - begin) / 60
    name = f"6,251 words: minutes to a gap of {100 * result.gap / result.primal:.1f} %"
    error = 100 * _share_wrong(problem, result.w, train, test)
    return [Figure(name, minutes, "m", MINUTES), Figure("letters wrong", error, "%", LARGE_ERROR)]


def _share_wrong(problem: Any, w: Any, train: Words, test: Words) -> float:
    """Return the share of wrong letters of the test words."""
    (features, _, _), (tested, offsets, labels) = tokens(train), tokens(test)
    linear, coefficients, _ = kernelised.kernel_parts(problem.map, w)
    n_labels = problem.oracle.n_labels
    scores = rbf_kernel(tested, features, gamma=GAMMA) @ coefficients[:, :n_labels]
    decoder = Chain.for_prediction(scores, offsets, n_labels)
    weights = np.concatenate([np.eye(n_labels, problem.map.width).ravel(), linear])
    return float((decode_all(decoder, weights) != labels).mean())


PARTS = {"small": small, "pass": overhead, "letters": letters, "passes": passes, "large": large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which parts")
    parser.add_argument("--data", default=None, help="directory with the data")
    arguments = parser.parse_args()
    print(f"load of the machine {os.getloadavg()[0]:.1f}\n")
    for name in arguments.parts or list(PARTS)[:-1]:
        print_figures(PARTS[name](arguments.data))


if __name__ == "__main__":
    main()
