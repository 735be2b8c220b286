"""Methods on the weights themselves, as dense vectors: stochastic subgradient descent and the perceptron."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from support import naive
from support.naive import Array, Enumerated


class Visit(NamedTuple):
    """The weights after a visit, and which output it found."""

    w: Array
    answer: int


def subgradient(data: Enumerated, lam: float, order: Array) -> Iterator[Visit]:
    """Make steps w - beta_k d along subgradients d = lam w - psi_i(y*), with beta_k = 1 / (lam (k + 1))."""
    w = np.zeros(data.psi[0].shape[1])
    for k, i in enumerate(order):
        answer = naive.best_output(data, i, w)
        w = w - (lam * w - data.psi[i][answer]) / (lam * (k + 1))
        yield Visit(w, answer)


def perceptron(data: Enumerated, order: Array) -> Iterator[Visit]:
    """Add phi(x_i, y_i) - phi(x_i, y) for the first output y of highest score."""
    w = np.zeros(data.psi[0].shape[1])
    for i in order:
        short_of_best = data.psi[i] @ w - np.min(data.psi[i] @ w)
        answer = int(np.argmax(short_of_best < 1e-11))
        w = w + data.psi[i][answer]
        yield Visit(w, answer)


def weights_of_iterates(scheme: str, k: int) -> Array:
    """Return what iterates 1, ..., k weigh in the average after k steps; they sum to one."""
    t = np.arange(1, k + 1)
    if scheme == "weighted":
        return 2.0 * t / (k * (k + 1))
    since = 1 if scheme == "uniform" else 2 ** int(np.log2(k))
    return (t >= since) / (k - since + 1)
