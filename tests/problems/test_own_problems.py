"""A user's own problems: a Python object, and a named tuple that is compiled.

Both are the multiclass model once more, with the same sums in the same order, and so must give the bits
of `Multiclass`.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

from maxmargin import Accelerated, Averaged, BlockFrankWolfe, FrankWolfe, Pairwise, Result, solve
from maxmargin.methods._sweep import sweep
from maxmargin.problems import Multiclass, MulticlassWeights, Sizes
from maxmargin.problems import _protocol as protocol
from support.bitwise_runs import bits
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


@protocol.sizes.register(OwnTuple)
def _(problem):
    return Sizes(problem.X.shape[0], problem.X.shape[1] * WIDTH, WIDTH, 1, 2)


@protocol.workspace.register(OwnTuple)
def _(problem):
    return np.empty(0)


@protocol.output_size.register(OwnTuple)
def _(problem, i):
    return 1


@protocol.score.register(OwnTuple)
def _(problem, i, w, theta):
    for k in range(WIDTH):
        theta[k] = 0.0
        for f in range(problem.X.shape[1]):
            theta[k] += problem.X[i, f] * w[f * WIDTH + k]


@protocol.argmax.register(OwnTuple)
def _(problem, i, theta, y, work):
    best, value = 0, -np.inf
    for k in range(N_CLASSES):
        augmented = theta[k] + (1.0 if k != problem.y[i] else 0.0)
        if augmented > value:
            best, value = k, augmented
    y[0] = best


@protocol.decode.register(OwnTuple)
def _(problem, i, theta, y, work):
    best = 0
    for k in range(1, N_CLASSES):
        best = k if theta[k] > theta[best] else best
    y[0] = best


@protocol.loss.register(OwnTuple)
def _(problem, i, y):
    return 1.0 if y[0] != problem.y[i] else 0.0


@protocol.psi.register(OwnTuple)
def _(problem, i, y, index, value):
    index[0], value[0] = problem.y[i], 1.0
    index[1], value[1] = y[0], -1.0
    return 2 if y[0] != problem.y[i] else 0


@protocol.gram.register(OwnTuple)
def _(problem, i, move, image, work):
    for k in range(WIDTH):
        image[k] = problem.squares[i] * move.delta[k]


@protocol.push.register(OwnTuple)
def _(problem, i, move, scale, w, work):
    for f in range(problem.X.shape[1]):
        for k in range(WIDTH):
            w[f * WIDTH + k] += scale * problem.X[i, f] * move.delta[k]


def own_problems() -> dict[str, Any]:
    X, y = data()
    return {"interpreted": OwnObject(X, y), "compiled": OwnTuple(X, y, (X**2).sum(axis=1))}


def ran(problem: Any, method: Any) -> Result:
    return solve(problem, method, tol=0.0, max_passes=20, check_every=4, random_state=3)


@pytest.mark.parametrize(
    "method",
    [
        BlockFrankWolfe(0.1),
        FrankWolfe(0.1),
        Averaged(BlockFrankWolfe(0.1)),
        Pairwise(0.1),
        Accelerated(Pairwise(0.1)),
        Accelerated(BlockFrankWolfe(0.1)),
    ],
)
@pytest.mark.parametrize("mode", ["interpreted", "compiled"])
def test_own_problems_give_the_bits_of_multiclass(mode: str, method: Any) -> None:
    problem = own_problems()[mode]
    assert sweep.mode(problem, method) == mode
    expected, found = ran(Multiclass.from_encoded(*data(), N_CLASSES), method), ran(problem, method)
    assert bits(found.weights) == bits(expected.weights)
    for column in ("primal", "dual", "gap"):
        assert bits(found.history[column]) == bits(expected.history[column])
    assert found.primal - found.dual < 0.5 * found.history.gap[0]


class Cancelling(OwnObject):
    """Its psi of the truth is zero as a sum only, and every index occurs twice."""

    def sizes(self) -> Sizes:
        return super().sizes()._replace(parts=4)

    def psi(self, i: int, y: Array, index: Array, value: Array) -> int:
        index[:], value[:] = (self.y[i], y[0], self.y[i], y[0]), (0.25, -0.25, 0.75, -0.75)
        return 4


@pytest.mark.parametrize("method", [Pairwise(0.1), Accelerated(Pairwise(0.1)), BlockFrankWolfe(0.1)])
def test_entries_that_repeat_or_cancel(method: Any) -> None:
    """The run is another one, as the truth may stand twice in an active set, but not a worse one."""
    plain, cancelling = ran(OwnObject(*data()), method), ran(Cancelling(*data()), method)
    assert cancelling.dual <= plain.primal
    assert cancelling.primal >= plain.dual
    assert cancelling.gap <= max(1e-6, 3.0 * plain.gap)


def test_no_own_class_is_written_to_the_cache() -> None:
    from maxmargin.methods._sweep import sweep

    cached, compiled = list(sweep.cached.signatures), list(sweep.compiled.signatures)
    problem = own_problems()["compiled"]
    ran(problem._replace(X=np.asfortranarray(problem.X)), BlockFrankWolfe(0.1))  # a type not met before
    assert sweep.cached.signatures == cached
    assert len(sweep.compiled.signatures) == len(compiled) + 1
    assert type(sweep.compiled._cache).__name__ == "NullCache"
