"""Products of sets written out: vertices, duals of structural SVMs, exact expectations, references."""

from collections.abc import Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
import quadprog

from maxmargin.methods.protocol import Carry, carried
from maxmargin.product import Approximate, Domain, LeastSquares, Product, ProductProblem, Simplex
from support.naive import Array, Enumerated

UNCHANGED = Carry(1.0, 1.0, 1.0, 1)


def svm_dual(data: Enumerated, lam: float) -> tuple[ProductProblem, Array]:
    """Return minus the dual of a structural SVM, over simplices, and the matrix A of w = A alpha."""
    n = len(data.losses)
    A = np.concatenate(data.psi).T / (lam * n)
    b = np.concatenate(data.losses) / n
    truths = [np.eye(len(losses))[y] for losses, y in zip(data.losses, data.truths, strict=True)]
    simplices = Product([Simplex(len(losses)) for losses in data.losses])
    return ProductProblem(LeastSquares(np.sqrt(lam) * A, c=b), simplices, np.concatenate(truths)), A


def vertices(kind: str, size: int) -> Array:
    """Return all vertices of a polytope of radius one, one per row."""
    if kind == "simplex":
        return np.eye(size)
    if kind == "l1":
        return np.concatenate([np.eye(size), -np.eye(size)])
    if kind == "box":
        return np.array(list(product([-1.0, 1.0], repeat=size)))
    side = int(np.sqrt(size))
    return np.array([np.eye(side)[list(order)].ravel() for order in permutations(range(side))])


def block_curvature(Q: Array, where: slice, corners: Array) -> float:
    """Return the curvature of x'Qx/2 on a block: the longest difference of two vertices in the norm of Q."""
    differences = (corners[:, None] - corners).reshape(-1, corners.shape[1])
    return float(np.einsum("kj,ji,ki->k", differences, Q[where, where], differences).max())


def worst_allowed(domain: Domain, corners: Array, nu: float, slack: float) -> Approximate:
    """Return the set with an oracle that gains as little as its quality allows."""

    def find(gradient: Array, x: Array, error: float) -> Array:
        gains = (x.ravel() - corners) @ gradient.ravel()
        enough = gains >= min(nu * gains.max() - error, gains.max())
        return corners[int(np.where(enough, gains, np.inf).argmin())].reshape(domain.shape)

    return Approximate(domain, find, nu, slack)


def all_runs(method: Any, problem: ProductProblem, n_steps: int) -> Iterator[list[Any]]:
    """Yield the states after k steps of all sequences of blocks, for k = 0, 1, ...: their mean is exact."""
    states, n = [method.start(problem)], method.n_moved(problem)
    yield states
    for _ in range(n_steps):
        states = [
            method.advance(carried(method, state, problem, UNCHANGED), problem, np.array([i]))
            for state in states
            for i in range(n)
        ]
        yield states


def quadratic_optimum(Q: Array, c: Array, G: Array, h: Array, E: Array, e: Array) -> float:
    """Return the least x'Qx/2 - c'x under Gx <= h and Ex = e, from quadprog.

    It wants a definite matrix, so a few proximal steps take the place of a ridge.
    """
    bounds = np.concatenate([E, -G]).T, np.concatenate([e, -h])
    ridge, x = 1e-3 * (1.0 + np.trace(Q) / len(Q)), np.zeros(len(Q))
    for _ in range(100):
        x = quadprog.solve_qp(Q + ridge * np.eye(len(Q)), c + ridge * x, *bounds, meq=len(E))[0]
    return float(0.5 * x @ Q @ x - c @ x)


def onto_simplex(v: Array, radius: float) -> Array:
    """Return the projection of a vector onto the simplex, by sorting."""
    u = np.sort(v)[::-1]
    excess = (np.cumsum(u) - radius) / np.arange(1, len(v) + 1)
    theta = excess[np.flatnonzero(u > excess)[-1]]
    return np.maximum(v - theta, 0.0)


def onto_nuclear_ball(X: Array, radius: float) -> Array:
    """Return the projection of a matrix onto the nuclear-norm ball."""
    u, s, vt = np.linalg.svd(X, full_matrices=False)
    return X if s.sum() <= radius else (u * onto_simplex(s, radius)) @ vt
