"""Weights in another basis, around any feature map: methods must not notice.

With an invertible matrix B the same problem has the weights u = B w, if scores, pushes and the inner product
are those of w. Only maps know which basis it is.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin.structures import feature_map
from maxmargin.structures.feature_map import map_sizes
from maxmargin.structures.problem import Problem
from support.naive import Array


class Basis(Protocol):
    """A change of basis."""

    def forth(self, w: Array) -> Array:
        """Return u = B w."""

    def back(self, u: Array) -> Array:
        """Return w."""


class Scaling:
    """Powers of two as factors: no number is rounded, so that runs are the same to the last bit."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.factors = 2.0 ** rng.integers(-20, 21, size)

    def forth(self, w: Array) -> Array:
        return w * self.factors

    def back(self, u: Array) -> Array:
        return u / self.factors


class Rotation:
    """A dense matrix of condition number four."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
        stretch = np.geomspace(0.5, 2.0, size)
        self.matrix, self.inverse = left * stretch @ right, right.T / stretch @ left.T

    def forth(self, w: Array) -> Array:
        return self.matrix @ w

    def back(self, u: Array) -> Array:
        return self.inverse @ u


class RebasedMap(NamedTuple):
    """A map whose weights are kept in another basis.

    The basis is a Python object, so that runs are interpreted: nothing is compiled for each method.
    """

    inner: Any
    basis: Basis


@feature_map.score.register(RebasedMap)
def rebased_score(phi: RebasedMap, i: int, u: Array, theta: Array) -> None:
    feature_map.score(phi.inner, i, phi.basis.back(u), theta)


@feature_map.push.register(RebasedMap)
def rebased_push(phi: RebasedMap, i: int, move: Any, scale: float, u: Array, work: Any) -> None:
    w = phi.basis.back(u)
    feature_map.push(phi.inner, i, move, scale, w, work.inner)
    u[:] = phi.basis.forth(w)


@feature_map.inner.register(RebasedMap)
def rebased_inner(phi: RebasedMap, u: Array, v: Array) -> float:
    return float(feature_map.inner(phi.inner, phi.basis.back(u), phi.basis.back(v)))


@feature_map.score_buffer.register(RebasedMap)
def rebased_score_buffer(phi: RebasedMap, u: Array | None) -> Array:
    """The inner map may offer its weights as the buffer, but these are others."""
    return feature_map.score_buffer(phi.inner, None)


class InterpretedMap(NamedTuple):
    """A map as it is, with a field for which nothing is compiled."""

    inner: Any
    reason: object


def interpreted(problem: Problem[Any, Any]) -> Problem[Any, Any]:
    """Return the same problem, which runs interpreted."""
    return problem._replace(map=InterpretedMap(problem.map, object()))


def rebased(problem: Problem[Any, Any], kind: type[Scaling | Rotation]) -> Problem[Any, Any]:
    """Return the same problem with its weights in a random basis."""
    basis = kind(map_sizes(problem.map).weights, np.random.default_rng(0))
    return problem._replace(map=RebasedMap(problem.map, basis))
