"""Long runs: millions of steps without drift, many fits without growth, many threads, many partial fits.

``python tests/endurance.py drift growth threads partial`` takes some minutes, compiled, and prints what was
measured. Drift is the distance of the weights that a run carries from those rebuilt from its dual variables.
"""

import argparse
import gc
import sys
import threading
import warnings
from typing import Any

import numpy as np

LARGEST_DRIFT = 1e-9
LARGEST_GROWTH = 2048  # bytes per fit


def _data(n: int, n_features: int = 10, n_classes: int = 6) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return 0.8 * rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(n, n_features)), y


def drift(steps: int, n: int = 500) -> float:
    """Return the largest relative drift of three methods, after so many steps of each."""
    from maxmargin import Away, BlockFrankWolfe, Pairwise, solve
    from maxmargin.methods.protocol import dual_weights
    from maxmargin.problems import Multiclass

    problem, lam, found = Multiclass.from_arrays(*_data(n)), 1.0 / n, []
    for method in (BlockFrankWolfe(lam), Pairwise(lam), Away(lam)):
        passes = max(1, steps // n)
        result = solve(problem, method, tol=0.0, max_passes=passes, check_every=passes, random_state=0)
        state = result.stopped.state
        rebuilt = dual_weights(method, state, problem) / (lam * n)
        found.append(float(np.linalg.norm(state.w - rebuilt) / np.linalg.norm(rebuilt)))
        assert result.dual <= result.primal * (1.0 + 1e-12)
    return max(found)


def growth(fits: int) -> float:
    """Return the bytes by which the process grows per fit, after the first ones."""
    from maxmargin import MulticlassSVC

    X, y = _data(60)
    model = MulticlassSVC(random_state=0, verbose=0, max_iter=5, warm_start=True)

    def train(count: int) -> int:
        for k in range(count):
            model.set_params(C=1.0 + k % 7).fit(X, y).predict(X)
            MulticlassSVC(random_state=0, verbose=0, max_iter=5).fit(X, y)
        gc.collect()
        return _resident_bytes()

    before = train(max(fits // 10, 5))
    return (train(fits) - before) / fits


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def threads(count: int, max_iter: int = 20) -> bool:
    """Return whether fits in so many threads at once have the bits of a fit alone."""
    from maxmargin import MulticlassSVC

    X, y = _data(60)

    def train() -> Any:
        return MulticlassSVC(random_state=0, verbose=0, max_iter=max_iter).fit(X, y).coef_

    expected, found = train(), [None] * count

    def work(k: int) -> None:
        found[k] = train()

    started = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return all(np.array_equal(coef, expected) for coef in found)


def partial(calls: int) -> tuple[float, float]:
    """Return the gap after so many calls of `partial_fit`, and the bytes kept per call."""
    from maxmargin import MulticlassSVC

    X, y = _data(3 * calls + 3)
    model = MulticlassSVC(random_state=0, verbose=0, max_iter=50)
    for k in range(calls):
        model.partial_fit(X[3 * k : 3 * k + 3], y[3 * k : 3 * k + 3], classes=np.unique(y))
    assert np.isfinite(model.gap_)
    assert np.isfinite(model.coef_).all()
    return float(model.gap_ / model.history_.primal.min()), model.kept_bytes_ / calls


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", nargs="+", choices=["drift", "growth", "threads", "partial"])
    parser.add_argument("--steps", type=int, default=10**7)
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--calls", type=int, default=1440)
    given = parser.parse_args(arguments)
    is_right = True
    warnings.simplefilter("ignore")  # of fits that are cut short
    if "drift" in given.which:
        found = drift(given.steps)
        is_right &= found <= LARGEST_DRIFT
        print(f"drift after {given.steps} steps: {found:.2g}", flush=True)
    if "growth" in given.which:
        per_fit = growth(given.fits)
        is_right &= per_fit <= LARGEST_GROWTH
        print(f"growth per fit of {given.fits}: {per_fit:.0f} bytes", flush=True)
    if "threads" in given.which:
        same = threads(given.threads)
        is_right &= same
        print(f"{given.threads} threads have the bits of one: {same}", flush=True)
    if "partial" in given.which:
        gap, kept = partial(given.calls)
        print(
            f"{given.calls} partial fits: relative gap {gap:.2g}, {kept:.0f} bytes kept per call", flush=True
        )
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
