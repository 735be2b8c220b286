"""Results as curves: suboptimality and test error, over seeds."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.runtime.arrays import FloatArray

SUBOPTIMALITY, TEST_ERROR = "primal suboptimality", "test error"
# The paper plots batch methods by the lowest objective so far.
ENVELOPES = frozenset({"FW", "FW-fix", "cutting plane", "n-slack cutting plane", "BMRM"})


class Curve(NamedTuple):
    """A quantity over passes (or seconds): median, best and worst of the seeds, at common places."""

    x: FloatArray
    median: FloatArray
    best: FloatArray
    worst: FloatArray

    def at(self, x: float) -> float:
        """Return the median at x; the last one if the runs ended before."""
        return float(np.interp(np.log(x), np.log(self.x), self.median))

    def reaches(self, level: float) -> float:
        """Return where the median is at most ``level`` for the first time; infinite if nowhere."""
        below = np.flatnonzero(self.median <= level)
        if len(below) == 0:
            return np.inf
        k = below[0]
        if k == 0:
            return float(self.x[0])
        ends = [k, k - 1]  # from below the level to above it
        median, x = np.log(np.maximum(self.median[ends], 1e-300)), np.log(self.x[ends])
        return float(np.exp(np.interp(np.log(max(level, 1e-300)), median, x)))


class Results:
    """The frame of `_store.read`, asked for curves."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.bounds = frame.groupby(["dataset", "lam"])["dual"].max().to_dict()
        self.runs = dict(iter(frame.groupby(["dataset", "lam", "method"])))

    def settings(self) -> list[tuple[str, str]]:
        """Return all (dataset, lam)."""
        return sorted(self.bounds)

    def has(self, dataset: str, lam: str, *methods: str) -> bool:
        """Whether all these methods were run there."""
        return all((dataset, lam, method) in self.runs for method in methods)

    def bound(self, dataset: str, lam: str) -> float:
        """Return the largest dual objective seen in any run: no primal one is below it."""
        return self.bounds[dataset, lam]

    def seeds(
        self, dataset: str, lam: str, method: str, quantity: str, x: str = "passes"
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return x and quantity of every seed; NaN where a rival has no such quantity."""
        return [
            (run[x].to_numpy(), self._values(run, dataset, lam, method, quantity))
            for _, run in self.runs[dataset, lam, method].groupby("seed")
        ]

    def _values(self, run: Any, dataset: str, lam: str, method: str, quantity: str) -> FloatArray:
        if quantity == TEST_ERROR:
            return run["test_error"].to_numpy()
        primal = run["primal"].to_numpy()
        lowest = np.minimum.accumulate(primal) if method in ENVELOPES else primal
        return lowest - self.bound(dataset, lam)

    def curve(self, dataset: str, lam: str, method: str, quantity: str, x: str = "passes") -> Curve:
        """Return the curve over seeds, at the places of the first one that all of them reach."""
        seeds = self.seeds(dataset, lam, method, quantity, x)
        last = min(xs[-1] for xs, _ in seeds)
        grid = seeds[0][0][seeds[0][0] <= last]
        values = np.array([np.interp(np.log(grid), np.log(xs), ys) for xs, ys in seeds])
        return Curve(grid, np.median(values, axis=0), values.min(axis=0), values.max(axis=0))
