"""Methods on the dual variables themselves, one number per output: Algorithms 1 and 3, and active sets."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from support import naive
from support.naive import Array, Enumerated


def frank_wolfe(data: Enumerated, lam: float, n_steps: int, line_search: bool) -> Iterator[list[Array]]:
    """Yield the dual variables after each step of all blocks at once."""
    alpha, n = naive.truth_alpha(data), len(data.losses)
    for k in range(n_steps):
        w = naive.weights_of(data, alpha, lam)
        corner = [_corner(data, i, w) for i in range(n)]
        delta = [s - a for s, a in zip(corner, alpha, strict=True)]
        gap = sum(naive.margins(data, i, w) @ delta[i] for i in range(n)) / n
        curvature = lam * np.sum(naive.weights_of(data, delta, lam) ** 2)
        gamma = _step_size(gap, curvature) if line_search else 2.0 / (k + 2.0)
        alpha = [a + gamma * d for a, d in zip(alpha, delta, strict=True)]
        yield alpha


def block_frank_wolfe(data: Enumerated, lam: float, order: Array, line_search: bool) -> Iterator[list[Array]]:
    """Yield the dual variables after each step of one block."""
    alpha, n = naive.truth_alpha(data), len(data.losses)
    for k, i in enumerate(order):
        w = naive.weights_of(data, alpha, lam)
        delta = _corner(data, i, w) - alpha[i]
        gap = naive.margins(data, i, w) @ delta / n
        curvature = np.sum((data.psi[i].T @ delta) ** 2) / (lam * n**2)
        gamma = _step_size(gap, curvature) if line_search else 2.0 * n / (k + 2.0 * n)
        alpha = [a + gamma * delta if j == i else a for j, a in enumerate(alpha)]
        yield alpha


def divided_stretch(
    data: Enumerated, lam: float, alpha: list[Array], rounds: list[Array], parts: int, sigma: float
) -> tuple[list[Array], list[Array]]:
    """Return the dual variables before the last two rounds of a stretch, and after them.

    A part knows its own moves, which count sigma times, and those of the others up to the last round but one.
    """
    moved, n, own_lam = list(alpha), len(data.losses), lam / sigma
    latest = known = list(alpha)
    for order in rounds:
        known, latest = latest, list(moved)
        for p in range(parts):
            for i in order[order % parts == p]:
                seen = [(moved if j % parts == p else known)[j] for j in range(n)]
                own = [moved[j] - alpha[j] if j % parts == p else 0.0 * alpha[j] for j in range(n)]
                w = naive.weights_of(data, seen, lam) + (sigma - 1.0) * naive.weights_of(data, own, lam)
                delta = _corner(data, i, w) - moved[i]
                curvature = np.sum((data.psi[i].T @ delta) ** 2) / (own_lam * n**2)
                gamma = _step_size(naive.margins(data, i, w) @ delta / n, curvature)
                moved[i] = moved[i] + gamma * delta
    return known, moved


def interaction(data: Enumerated, before: list[Array], after: list[Array], parts: int) -> float:
    """Return rho, the squared length of the parts' moves together over that of each alone; nan for none."""
    delta = [b - a for a, b in zip(before, after, strict=True)]
    moves = [
        naive.weights_of(data, [d * (i % parts == p) for i, d in enumerate(delta)], 1.0) for p in range(parts)
    ]
    apart = sum(np.sum(move**2) for move in moves)
    return float(np.sum(np.sum(moves, axis=0) ** 2) / apart) if apart > 0 else np.nan


def _corner(data: Enumerated, i: int, w: Array) -> Array:
    return np.eye(len(data.losses[i]))[naive.best_output(data, i, w)]


def _step_size(gap: float, curvature: float) -> float:
    """Maximise gamma gap - gamma^2 / 2 curvature over [0, 1]."""
    if curvature <= 1e-15:
        return 1.0 if gap > 0 else 0.0
    return float(np.clip(gap / curvature, 0.0, 1.0))


class ActiveSets(NamedTuple):
    """Steps within active sets: the rule for directions, and when a visit ends.

    It always ends with a step that drops nothing.

    Attributes
    ----------
    away : bool
        Frank-Wolfe and away directions; otherwise pairwise ones.
    inner_steps : int
        Most steps of a visit.
    """

    away: bool
    inner_steps: int

    def visit(self, data: Enumerated, lam: float, alpha: list[Array], i: int) -> list[Array]:
        """Return block i after a visit, for every way to break ties among margins.

        There are ties: the best step along a pairwise direction makes the margins of the two equal.
        """
        margins = naive.margins(data, i, naive.weights_of(data, alpha, lam))
        answers = _tied(margins, np.arange(len(margins)))
        return [block for c in answers for block in self._visit_with(c, margins, data, lam, alpha, i)]

    def _visit_with(
        self, answer: int, margins: Array, data: Enumerated, lam: float, alpha: list[Array], i: int
    ) -> list[Array]:
        """The same, when the oracle answers this output."""
        active = np.union1d(np.flatnonzero(alpha[i]), answer)
        gram = data.psi[i] @ data.psi[i].T / (lam * len(alpha))
        going, ended = [alpha[i]], []
        for _ in range(self.inner_steps):
            blocks, going = going, []
            for block in blocks:
                there = margins - gram @ (block - alpha[i])
                for d in self._directions(there, active, block):
                    after = block if there @ d <= 1e-14 else _line_search(block, d, there @ d, d @ gram @ d)
                    dropped = ((after == 0.0) & (block > 0.0)).any()
                    (going if dropped else ended).append(after)
        return ended + going

    def _directions(self, margins: Array, active: Array, block: Array) -> list[Array]:
        corners, weighted = np.eye(len(block)), np.flatnonzero(block > 0.0)
        best, worst = _tied(margins, active), _tied(-margins, weighted)
        if not self.away:
            return [corners[b] - corners[a] for b in best for a in worst]
        towards, away = [corners[b] - block for b in best], [block - corners[a] for a in worst]
        slopes = margins @ towards[0], margins @ away[0]
        return [d for k in _tied(np.array(slopes), np.arange(2)) for d in (towards, away)[k]]


def _tied(values: Array, among: Array) -> Array:
    """Return those whose values are largest, up to rounding."""
    return among[values[among] >= values[among].max() - 1e-11]


def _line_search(block: Array, d: Array, slope: float, curvature: float) -> Array:
    """Maximise gamma slope - gamma^2 / 2 curvature over the steps that keep the variables at least zero."""
    losing = np.flatnonzero(d < 0.0)
    limits = block[losing] / -d[losing]
    if slope < limits.min() * curvature:
        return np.maximum(block + slope / curvature * d, 0.0)
    after = np.maximum(block + limits.min() * d, 0.0)
    after[losing[limits.argmin()]] = 0.0
    return after
