r"""Compact convex sets, each with its oracle, :math:`\arg\min_{s \in D} \langle s, g \rangle` for any g.

A set of your own is ``Oracle(lmo, shape)``. `Product` puts sets side by side, and `Approximate` gives a set
an oracle that errs, as far as the paper's appendix allows.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import svds

from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import described, quoted, shown
from maxmargin.structures.problem import essence

# Below this many rows or columns, a dense decomposition is faster than Lanczos iterations.
_SMALL = 64


class Domain:
    """A compact convex set of arrays.

    Attributes
    ----------
    shape : tuple of int
        Shape of its points.
    nu, slack : float
        Quality of its oracle, see `Approximate`: 1 and 0 if it is exact.
    """

    nu, slack = 1.0, 0.0

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        sides = shape if isinstance(shape, tuple) else (shape,)
        if not (sides and all(isinstance(side, Integral) and side >= 1 for side in sides)):
            raise ValueError(
                f"{type(self).__name__}: shape must be an int >= 1 or a tuple of them, got {quoted(shape)}."
            )
        self.shape = tuple(map(int, sides))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return math.prod(self.shape)

    def lmo(self, gradient: FloatArray) -> FloatArray:
        """Return a point of the set whose inner product with ``gradient`` is least."""
        raise NotImplementedError

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        """Whether x is in the set, up to ``tol``; true if the set cannot tell."""
        return True

    def candidate(self, gradient: FloatArray, x: FloatArray, gamma: float) -> FloatArray:
        """Return where a step from x leads; errors are relative to the predefined step ``gamma``."""
        return self.lmo(gradient)


class _Ball(Domain):
    def __init__(self, shape: int | tuple[int, ...], radius: float = 1.0) -> None:
        super().__init__(shape)
        expected = f"{type(self).__name__}: radius must be a number > 0"
        self.radius = _number(radius, lambda r: 0.0 < r < math.inf, expected)

    def _vertex(self, j: int, value: float) -> FloatArray:
        """Return the point whose only nonzero coordinate is number j."""
        point = np.zeros(self.shape)
        point.flat[j] = value
        return point


class Simplex(_Ball):
    r"""The simplex :math:`x \ge 0, \sum_j x_j = r`."""

    def lmo(self, gradient: FloatArray) -> FloatArray:
        return self._vertex(int(gradient.argmin()), self.radius)

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        slack = tol * self.radius
        return bool(x.min() >= -slack and abs(x.sum() - self.radius) <= slack)


class L1Ball(_Ball):
    r"""The ball :math:`\sum_j |x_j| \le r`."""

    def lmo(self, gradient: FloatArray) -> FloatArray:
        j = int(np.abs(gradient).argmax())
        return self._vertex(j, math.copysign(self.radius, -gradient.flat[j]))

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        return bool(np.abs(x).sum() <= self.radius * (1.0 + tol))


class L2Ball(_Ball):
    r"""The ball :math:`\|x\|_2 \le r`, for matrices in the Frobenius norm."""

    def lmo(self, gradient: FloatArray) -> FloatArray:
        length = float(np.linalg.norm(gradient))
        return gradient * (-self.radius / length) if length > 0.0 else self._vertex(0, self.radius)

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        return bool(np.linalg.norm(x) <= self.radius * (1.0 + tol))


class NuclearNormBall(_Ball):
    r"""Matrices whose singular values sum to at most r; a vertex is :math:`r u v^\top`."""

    def __init__(self, shape: tuple[int, int], radius: float = 1.0) -> None:
        super().__init__(shape, radius)
        if len(self.shape) != 2:
            raise ValueError(f"NuclearNormBall: shape must be rows and columns, got {quoted(shape)}.")

    def lmo(self, gradient: FloatArray) -> FloatArray:
        if min(self.shape) < _SMALL or not gradient.any():
            u, _, vt = np.linalg.svd(gradient, full_matrices=False)
        else:  # from a fixed vector, so that runs repeat; drawn at random, so that it is orthogonal to none
            u, _, vt = svds(gradient, k=1, v0=np.random.default_rng(0).normal(size=min(self.shape)))
        return -self.radius * np.outer(u[:, 0], vt[0])

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        return bool(np.linalg.norm(x, "nuc") <= self.radius * (1.0 + tol))


class Box(Domain):
    r"""The box :math:`l_j \le x_j \le u_j`, of the shape of its bounds."""

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low, high = np.broadcast_arrays(_bounds(lower), _bounds(upper))
        super().__init__(low.shape)
        self.lower, self.upper = low.copy(), high.copy()
        if not (np.isfinite([low, high]).all() and (low <= high).all()):
            raise ValueError("Box: bounds must be finite with lower <= upper, got other numbers.")

    def lmo(self, gradient: FloatArray) -> FloatArray:
        return np.where(gradient >= 0.0, self.lower, self.upper)

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        slack = tol * (1.0 + self.upper - self.lower)
        return bool(((x >= self.lower - slack) & (x <= self.upper + slack)).all())


class Birkhoff(Domain):
    """Doubly stochastic matrices; the vertices are permutations, and the oracle solves an assignment."""

    def __init__(self, n: int) -> None:
        super().__init__((n, n))

    def lmo(self, gradient: FloatArray) -> FloatArray:
        vertex = np.zeros(self.shape)
        vertex[linear_sum_assignment(gradient)] = 1.0
        return vertex

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        sums = np.concatenate([x.sum(axis=0), x.sum(axis=1)])
        return bool(x.min() >= -tol and np.abs(sums - 1.0).max() <= tol * len(x))


class Oracle(Domain):
    """A set that is known by its oracle alone.

    Parameters
    ----------
    lmo : callable
        ``lmo(gradient)`` returns a point of the set whose inner product with ``gradient`` is least.
    shape : int or tuple of int
        Shape of points and gradients.
    contains : callable, optional
        ``contains(x)`` returns whether x is in the set; without it, the user's points are not checked.
    """

    def __init__(
        self,
        lmo: Callable[[FloatArray], ArrayLike],
        shape: int | tuple[int, ...],
        contains: Callable[[FloatArray], bool] | None = None,
    ) -> None:
        super().__init__(shape)
        self._lmo, self._contains = lmo, contains

    def lmo(self, gradient: FloatArray) -> FloatArray:
        return np.asarray(self._lmo(gradient), dtype=np.float64)

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        return self._contains is None or bool(self._contains(x))


class Approximate(Domain):
    r"""A set whose oracle errs: by a share of the gap, by an amount, or by both.

    The paper's appendix allows answers s, at a point x of the set and a gradient g, with

    .. math:: \langle x - s, g \rangle \ge \nu \max_{s'} \langle x - s', g \rangle - \varepsilon_k, \qquad
              \varepsilon_k = \tfrac12 \gamma_k \, \delta C_f, \quad \gamma_k = \frac{2n}{\nu k + 2n} .

    So the gap of the block is at most :math:`(\langle x - s, g \rangle + \varepsilon_k) / \nu`, which is what
    certificates add up.

    Parameters
    ----------
    inner : Domain
        The set. Its own oracle is used for the starting point only.
    find : callable
        ``find(gradient, x, error)`` returns s; ``error`` is the :math:`\varepsilon_k` that it may use up.
    nu : float
        Multiplicative quality, > 0 and at most 1. Predefined steps must be ``Predefined(nu)``.
    slack : float
        :math:`\delta C_f`: the additive quality times the curvature of the block.
    """

    def __init__(
        self,
        inner: Domain,
        find: Callable[[FloatArray, FloatArray, float], ArrayLike],
        nu: float = 1.0,
        slack: float = 0.0,
    ) -> None:
        super().__init__(inner.shape)
        self.inner, self.find = inner, find
        self.nu = _number(nu, lambda v: 0.0 < v <= 1.0, "Approximate: nu must be a number > 0 and at most 1")
        self.slack = _number(slack, lambda v: 0.0 <= v < math.inf, "Approximate: slack must be a number >= 0")

    def lmo(self, gradient: FloatArray) -> FloatArray:
        return self.inner.lmo(gradient)

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        return self.inner.contains(x, tol)

    def candidate(self, gradient: FloatArray, x: FloatArray, gamma: float) -> FloatArray:
        return np.asarray(self.find(gradient, x, 0.5 * gamma * self.slack), dtype=np.float64)


class Product(Domain):
    r"""The product :math:`D_1 \times \dots \times D_n`, whose points are flat: one block after another.

    Parameters
    ----------
    blocks : iterable of Domain
        The sets, of any kinds and sizes; one of them may be a product.
    """

    def __init__(self, blocks: Iterable[Domain]) -> None:
        self.blocks = tuple(blocks)
        strangers = [block for block in self.blocks if not isinstance(block, Domain)]
        if strangers or not self.blocks:
            got = described(strangers[0]) if strangers else "none"
            raise ValueError(f"Product: blocks must be one or more domains, got {got}; see Oracle.")
        ends = np.cumsum([0, *(block.size for block in self.blocks)]).tolist()
        super().__init__(ends[-1])
        self.where = tuple(slice(*pair) for pair in pairwise(ends))
        self.nu, self.slack = min(b.nu for b in self.blocks), sum(b.slack for b in self.blocks)

    def parts(self, x: FloatArray) -> list[FloatArray]:
        """Return the blocks of x in their own shapes, as views."""
        return [x[at].reshape(block.shape) for block, at in zip(self.blocks, self.where, strict=True)]

    def lmo(self, gradient: FloatArray) -> FloatArray:
        return _joined(block.lmo(g) for block, g in self._with_blocks(gradient))

    def contains(self, x: FloatArray, tol: float = 1e-9) -> bool:
        return all(block.contains(part, tol) for block, part in self._with_blocks(x))

    def candidate(self, gradient: FloatArray, x: FloatArray, gamma: float) -> FloatArray:
        pairs = zip(self._with_blocks(gradient), self.parts(x), strict=True)
        return _joined(block.candidate(g, part, gamma) for (block, g), part in pairs)

    def _with_blocks(self, x: FloatArray) -> Iterator[tuple[Domain, FloatArray]]:
        return zip(self.blocks, self.parts(x), strict=True)


@essence.register(Domain)
def domain_essence(domain: Domain) -> tuple[object, ...]:
    return tuple(vars(domain).values())


@essence.register(Product)
def product_essence(domain: Product) -> tuple[object, ...]:
    return domain.blocks


def _joined(parts: Iterable[FloatArray]) -> FloatArray:
    return np.concatenate([part.ravel() for part in parts])


def _bounds(values: ArrayLike) -> FloatArray:
    """Return bounds as an array of float64; raise if they are not numbers."""
    try:
        return np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"Box: bounds must be arrays of numbers, got {described(values)}.") from None


def _number(value: object, is_right: Callable[[float], bool], expected: str) -> float:
    if not (isinstance(value, Real) and is_right(float(value))):
        raise ValueError(f"{expected}, got {shown(value)}.")
    return float(value)
