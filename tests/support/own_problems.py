"""A user's own problems: a Python object, and a named tuple that is compiled.

Both are the multiclass model once more, with the same sums in the same order, and so must give the bits
of `Multiclass`.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.problems import MulticlassWeights, Sizes
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.feature_map import MapSizes
from maxmargin.structures.oracle import OutputSizes
from support.naive import Array

N, N_FEATURES, N_CLASSES, WIDTH = 7, 3, 3, 4


def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(60)
    return rng.normal(size=(N, N_FEATURES)), rng.integers(N_CLASSES, size=N)


class OwnObject:
    """A plain Python object with the protocol's functions as methods."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.y = X, y

    def sizes(self) -> Sizes:
        return Sizes(N, N_FEATURES * WIDTH, WIDTH, 1, 2)

    def workspace(self) -> None:
        return None

    def output_size(self, i: int) -> int:
        return 1

    def score(self, i: int, w: Array, theta: Array) -> None:
        theta[:] = 0.0
        for x, row in zip(self.X[i], w.reshape(-1, WIDTH), strict=True):
            theta += x * row

    def argmax(self, i: int, theta: Array, y: Array, work: None) -> None:
        y[0] = np.argmax(theta[:N_CLASSES] + (np.arange(N_CLASSES) != self.y[i]))

    def decode(self, i: int, theta: Array, y: Array, work: None) -> None:
        y[0] = np.argmax(theta[:N_CLASSES])

    def loss(self, i: int, y: Array) -> float:
        return float(y[0] != self.y[i])

    def psi(self, i: int, y: Array, index: Array, value: Array) -> int:
        index[:], value[:] = (self.y[i], y[0]), (1.0, -1.0)
        return 2 if y[0] != self.y[i] else 0

    def gram(self, i: int, move: Any, image: Array, work: None) -> None:
        image[:] = (self.X[i] ** 2).sum() * move.delta

    def push(self, i: int, move: Any, scale: float, w: Array, work: Any) -> None:
        for x, row in zip(self.X[i], w.reshape(-1, WIDTH), strict=True):
            row += scale * x * move.delta

    def unpack(self, w: Array) -> MulticlassWeights:
        return MulticlassWeights(w.reshape(-1, WIDTH)[:, :N_CLASSES].T)


class OwnTuple(NamedTuple):
    """A named tuple of arrays, whose functions are registered below."""

    X: Array
    y: Array
    squares: Array

    def unpack(self, w: Array) -> MulticlassWeights:
        return MulticlassWeights(w.reshape(-1, WIDTH)[:, :N_CLASSES].T)


@feature_map.map_sizes.register(OwnTuple)
def own_map_sizes(problem):
    return MapSizes(problem.X.shape[0], problem.X.shape[1] * WIDTH, WIDTH)


@oracle.output_sizes.register(OwnTuple)
def own_output_sizes(problem):
    return OutputSizes(1, 2)


@oracle.oracle_workspace.register(OwnTuple)
def own_workspace(problem):
    return np.empty(0)


@oracle.output_size.register(OwnTuple)
def own_output_size(problem, i):
    return 1


@feature_map.score.register(OwnTuple)
def own_score(problem, i, w, theta):
    for k in range(WIDTH):
        theta[k] = 0.0
        for f in range(problem.X.shape[1]):
            theta[k] += problem.X[i, f] * w[f * WIDTH + k]


@oracle.argmax.register(OwnTuple)
def own_argmax(problem, i, theta, y, work):
    best, value = 0, -np.inf
    for k in range(N_CLASSES):
        augmented = theta[k] + (1.0 if k != problem.y[i] else 0.0)
        if augmented > value:
            best, value = k, augmented
    y[0] = best


@oracle.decode.register(OwnTuple)
def own_decode(problem, i, theta, y, work):
    best = 0
    for k in range(1, N_CLASSES):
        best = k if theta[k] > theta[best] else best
    y[0] = best


@oracle.loss.register(OwnTuple)
def own_loss(problem, i, y):
    return 1.0 if y[0] != problem.y[i] else 0.0


@oracle.psi.register(OwnTuple)
def own_psi(problem, i, y, index, value):
    index[0], value[0] = problem.y[i], 1.0
    index[1], value[1] = y[0], -1.0
    return 2 if y[0] != problem.y[i] else 0


@feature_map.gram.register(OwnTuple)
def own_gram(problem, i, move, image, work):
    for k in range(WIDTH):
        image[k] = problem.squares[i] * move.delta[k]


@feature_map.push.register(OwnTuple)
def own_push(problem, i, move, scale, w, work):
    for f in range(problem.X.shape[1]):
        for k in range(WIDTH):
            w[f * WIDTH + k] += scale * problem.X[i, f] * move.delta[k]


def own_problems() -> dict[str, Any]:
    X, y = data()
    return {"interpreted": OwnObject(X, y), "compiled": OwnTuple(X, y, (X**2).sum(axis=1))}
