"""Block Frank-Wolfe with a cache, on the dual variables themselves and with dictionaries for planes."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from support import naive
from support.naive import Array, Enumerated

# F and nu of the criterion.
SHARE, FLOOR = 1.0, 0.01


class Pass(NamedTuple):
    """What is there after a pass and its replays.

    Attributes
    ----------
    alpha : list of arrays
    planes : list of dicts
        Of each example: the cached outputs, in the order of their arrival, and the life left to each.
    calls, replays : int
        How often an oracle was called, and how many replays were made, since the start.
    """

    alpha: list[Array]
    planes: list[dict[int, int]]
    calls: int
    replays: int


class CachedRun:
    """The run itself."""

    def __init__(self, data: Enumerated, lam: float, cost: float, capacity: int, life: int) -> None:
        self.data, self.lam, self.n = data, lam, len(data.losses)
        self.cost, self.capacity, self.life = cost, capacity, life
        self.alpha = naive.truth_alpha(data)
        self.planes: list[dict[int, int]] = [{} for _ in range(self.n)]
        self.gap, self.total_gap = np.full(self.n, np.inf), 0.0
        self.calls = self.replays = 0

    def passes(self, orders: list[Array]) -> Iterator[Pass]:
        """Make passes in the given orders; yield what is there after each."""
        for k, order in enumerate(orders):
            calls_before, dual_before = self.calls, self.dual()
            for i in order:
                self.visit(i)
            self.total_gap = self.gap[np.isfinite(self.gap)].sum()
            self.replay(k, self.cost * (self.calls - calls_before), dual_before)
            yield Pass(self.alpha, [dict(known) for known in self.planes], self.calls, self.replays)

    def visit(self, i: int) -> None:
        """Step towards the best cached output if it will do, else towards the oracle's answer."""
        gaps, known = self.block_gaps(i), self.planes[i]
        cached = max(known, key=lambda y: gaps[y]) if known else None
        for y in known:
            known[y] = self.life if y == cached else known[y] - 1
        y = cached
        wanted = max(SHARE * self.gap[i], FLOOR * self.total_gap / self.n)
        if cached is None or gaps[cached] <= 0 or gaps[cached] < wanted:
            self.calls += 1
            y = naive.best_output(self.data, i, naive.weights_of(self.data, self.alpha, self.lam))
            self.gap[i] = gaps[y]
        for dead in [dead for dead in known if known[dead] == 0]:
            del known[dead]
        if y != cached:
            known[y] = self.life
            if len(known) > self.capacity:
                del known[min(known, key=lambda y: known[y])]
        self.step(i, y, gaps[y])

    def replay(self, k: int, oracle_cost: float, dual_before: float) -> None:
        """Make approximate passes while the last one gained more for its cost than all did together."""
        rng, cost, spent = np.random.default_rng(k), self.n + oracle_cost, 0
        while spent + self.n <= oracle_cost:
            before = self.dual()
            for i in rng.permutation(self.n):
                gaps, known = self.block_gaps(i), self.planes[i]
                y = max(known, key=lambda y: gaps[y]) if known else None
                if y is not None and gaps[y] > 0:
                    known[y] = self.life
                    self.step(i, y, gaps[y])
            self.replays += 1
            spent += self.n
            now = self.dual()
            if (now - before) / self.n <= (now - dual_before) / (cost + spent):
                return

    def step(self, i: int, y: int, gap: float) -> None:
        """Move block i towards output y by the best step."""
        delta = np.eye(len(self.alpha[i]))[y] - self.alpha[i]
        curvature = np.sum((self.data.psi[i].T @ delta) ** 2) / (self.lam * self.n)
        gamma = min(1.0, max(gap, 0.0) / curvature) if curvature > 1e-15 else float(gap > 0)
        self.alpha = [a + gamma * delta if j == i else a for j, a in enumerate(self.alpha)]

    def block_gaps(self, i: int) -> Array:
        """Return n times the gap of block i for each of its outputs."""
        margins = naive.margins(self.data, i, naive.weights_of(self.data, self.alpha, self.lam))
        return margins - self.alpha[i] @ margins

    def dual(self) -> float:
        return naive.dual(self.data, self.alpha, self.lam)
