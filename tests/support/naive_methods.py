"""The paper's Algorithms 1 and 3 on the dual variables themselves, one number per output."""

from collections.abc import Iterator

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


def _corner(data: Enumerated, i: int, w: Array) -> Array:
    return np.eye(len(data.losses[i]))[naive.best_output(data, i, w)]


def _step_size(gap: float, curvature: float) -> float:
    """Maximise gamma gap - gamma^2 / 2 curvature over [0, 1]."""
    if curvature <= 1e-15:
        return 1.0 if gap > 0 else 0.0
    return float(np.clip(gap / curvature, 0.0, 1.0))
