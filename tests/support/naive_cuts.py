"""Cutting planes written out: the planes are dense rows, and the program is solved by another solver.

The program over k planes is that of a structural SVM with one example, whose outputs are the planes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from support import naive
from support.naive import Array, Enumerated, Optimum


def program(slopes: list[Array], losses: list[float], lam: float) -> Optimum:
    """Return the least point of the lower envelope plus lam/2 ||w||^2, and the weights of the planes."""
    outputs = [[(j,) for j in range(len(losses))]]
    return naive.optimum(Enumerated(outputs, [0], [np.array(losses)], [np.array(slopes)]), lam)


def plane(data: Enumerated, w: Array) -> tuple[Array, float]:
    """Return slope and loss of the plane that touches the risk at w."""
    best = [naive.best_output(data, i, w) for i in range(len(data.losses))]
    slope = np.mean([psi[y] for psi, y in zip(data.psi, best, strict=True)], axis=0)
    return slope, float(np.mean([losses[y] for losses, y in zip(data.losses, best, strict=True)]))


def bundle(data: Enumerated, lam: float, mu: float) -> Iterator[tuple[Optimum, Array]]:
    """Yield the solution of the program after each pass, and the best weights so far.

    With mu = 1 the oracle is called at the solution, as the 1-slack method does.
    """
    w = best = np.zeros(data.psi[0].shape[1])
    slopes, losses, lowest = [w], [0.0], np.inf
    while True:
        u = best + mu * (w - best)
        slope, loss = plane(data, u)
        slopes, losses = [*slopes, slope], [*losses, loss]
        if naive.primal(data, u, lam) < lowest:
            best, lowest = u, naive.primal(data, u, lam)
        solution = program(slopes, losses, lam)
        w = solution.w
        yield solution, best


def dense_slopes(cuts: Any, length: int) -> Array:
    """Return the slopes that the package keeps as rows."""
    rows = np.zeros((len(cuts.slopes), length))
    for row, slope in zip(rows, cuts.slopes, strict=True):
        row[slope.where] = slope.value
    return rows
