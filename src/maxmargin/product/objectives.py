r"""Smooth convex functions of a flat vector, and how they follow a point from step to step.

An objective is any object with ``value(x)`` and ``gradient(x, where)``, the part of the gradient in the slice
``where``. Quadratics keep a linear image of the point, so that the step of a block costs the matrix columns
of that block, and line search is in closed form. Others are searched by SciPy, in some ten gradients of the
block.
"""

import copy
import math
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.sparse import csc_array
from scipy.sparse.linalg import LinearOperator

from maxmargin import states
from maxmargin.arrays import FloatArray, is_sparse
from maxmargin.compiling import python_generic
from maxmargin.problems.contents import essence
from maxmargin.wording import described

# Line search stops at this distance from the best step.
_SEARCH = 1e-12
_ASYMMETRY = 1e-9
# The columns of this many blocks are kept: slicing those of a sparse matrix takes longer than a step.
_KEPT = 10_000

Matrix: TypeAlias = FloatArray | csc_array | LinearOperator


class Smooth(Protocol):
    """A convex function with a continuous gradient."""

    def value(self, x: FloatArray) -> float:
        """Return f(x)."""

    def gradient(self, x: FloatArray, where: slice) -> FloatArray:
        """Return the entries of the gradient at x in the slice ``where``."""


class _Parabola:
    """A quadratic function that is simple to compute from a linear image of x."""

    def __init__(self, matrix: Matrix, c: FloatArray) -> None:
        self.matrix, self.c = matrix, c
        self._taken: dict[tuple[int, int], tuple[Matrix, Matrix]] = {}

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.c)

    def columns(self, where: slice) -> tuple[Matrix, Matrix]:
        """Return the columns of a block, and their transpose; those of the first blocks are kept."""
        block = where.start, where.stop
        found = self._taken.get(block)
        if found is None:
            some = columns(self.matrix, where)
            found = some, some.T
            if len(self._taken) < _KEPT:
                self._taken[block] = found
        return found

    def value(self, x: FloatArray) -> float:
        """Return f(x)."""
        return self.value_of(x, self.matrix @ x)

    def gradient(self, x: FloatArray, where: slice) -> FloatArray:
        """Return the entries of the gradient at x in the slice ``where``."""
        return self.gradient_of(self.matrix @ x, where)

    def value_of(self, x: FloatArray, image: FloatArray) -> float:
        """Return f(x), given the image of x."""
        raise NotImplementedError

    def gradient_of(self, image: FloatArray, where: slice) -> FloatArray:
        """Return a block of the gradient, given the image of x."""
        raise NotImplementedError

    def curvature_of(self, d: FloatArray, image: FloatArray, where: slice) -> float:
        """Return the second derivative along d, a direction of one block, given its image."""
        raise NotImplementedError


class Quadratic(_Parabola):
    r"""The function :math:`\frac12 x^\top Q x - \langle c, x \rangle`.

    Parameters
    ----------
    Q : array, sparse matrix or linear operator of shape (m, m)
        Symmetric and positive semidefinite. A step of an operator costs a product with all of it.
    c : array of shape (m,), optional
        Zero by default.
    """

    def __init__(self, Q: Matrix, c: ArrayLike | None = None) -> None:
        matrix = _matrix("Quadratic: Q", Q)
        m, n = matrix.shape
        if m != n or not _is_symmetric(matrix):
            raise ValueError(f"Quadratic: Q must be symmetric, got {described(Q)}; use (Q + Q.T) / 2.")
        super().__init__(matrix, _vector("Quadratic: c", c, m))

    def value_of(self, x: FloatArray, image: FloatArray) -> float:
        return float(0.5 * (x @ image) - self.c @ x)

    def gradient_of(self, image: FloatArray, where: slice) -> FloatArray:
        return np.asarray(image[where] - self.c[where])

    def curvature_of(self, d: FloatArray, image: FloatArray, where: slice) -> float:
        return float(d @ image[where])


class LeastSquares(_Parabola):
    r"""The function :math:`\frac12 \|A x - b\|^2 - \langle c, x \rangle`.

    Parameters
    ----------
    A : array, sparse matrix or linear operator of shape (p, m)
        A step of an operator, which needs ``rmatvec``, costs products with all of it.
    b : array of shape (p,), optional
        Zero by default.
    c : array of shape (m,), optional
        Zero by default.
    """

    def __init__(self, A: Matrix, b: ArrayLike | None = None, c: ArrayLike | None = None) -> None:
        matrix = _matrix("LeastSquares: A", A)
        p, m = matrix.shape
        super().__init__(matrix, _vector("LeastSquares: c", c, m))
        self.b = _vector("LeastSquares: b", b, p)

    def value_of(self, x: FloatArray, image: FloatArray) -> float:
        rest = image - self.b
        return float(0.5 * (rest @ rest) - self.c @ x)

    def gradient_of(self, image: FloatArray, where: slice) -> FloatArray:
        _, transposed = self.columns(where)
        return np.asarray(transposed @ (image - self.b) - self.c[where])

    def curvature_of(self, d: FloatArray, image: FloatArray, where: slice) -> float:
        return float(image @ image)


class Followed:
    """An objective at a point that moves, known only through the protocol `Smooth`."""

    def __init__(self, objective: Smooth, x: FloatArray) -> None:
        self.objective, self.x = objective, x

    def value(self) -> float:
        """Return f at the point."""
        return float(self.objective.value(self.x))

    def gradient(self, where: slice) -> FloatArray:
        """Return a block of the gradient at the point."""
        return np.asarray(self.objective.gradient(self.x, where), dtype=np.float64)

    def line(self, where: slice, d: FloatArray) -> "Line":
        """Return the segment from the point along d, a direction of one block."""
        return Line(self, where, d)


class Line:
    """A segment, on which SciPy finds the best step as a root of the slope."""

    def __init__(self, at: Followed, where: slice, d: FloatArray) -> None:
        self.at, self.where, self.d, self.origin = at, where, d, at.x[where].copy()

    def curvature(self, gap: float) -> float:
        r"""Return c, where the best step is :math:`\min(g / c, 1)`, given the gap g along the segment."""
        gamma = 1.0
        if gap > 0.0 and self._slope(1.0) > 0.0:
            gamma = float(brentq(lambda t: self._slope(t) if t > 0.0 else -gap, 0.0, 1.0, xtol=_SEARCH))
        self.move(0.0)
        return gap / gamma if gamma > 0.0 else math.inf

    def _slope(self, gamma: float) -> float:
        self.move(gamma)
        return float(self.at.gradient(self.where) @ self.d)

    def move(self, gamma: float) -> None:
        """Put the point where the step gamma leads."""
        self.at.x[self.where] = self.origin + gamma * self.d


class FollowedParabola(Followed):
    """A quadratic at a point that moves, together with the image of the point."""

    def __init__(self, objective: _Parabola, x: FloatArray) -> None:
        super().__init__(objective, x)
        self.parabola, self.image = objective, np.asarray(objective.matrix @ x)

    def value(self) -> float:
        return self.parabola.value_of(self.x, self.image)

    def gradient(self, where: slice) -> FloatArray:
        return self.parabola.gradient_of(self.image, where)

    def line(self, where: slice, d: FloatArray) -> Line:
        return ParabolaLine(self, where, d)


class ParabolaLine(Line):
    """A segment on which the best step has a closed form."""

    def __init__(self, at: FollowedParabola, where: slice, d: FloatArray) -> None:
        self.followed, self.where, self.d = at, where, d
        block, _ = at.parabola.columns(where)
        self.image = block @ d

    def curvature(self, gap: float) -> float:
        return self.followed.parabola.curvature_of(self.d, self.image, self.where)

    def move(self, gamma: float) -> None:
        self.followed.x[self.where] += gamma * self.d
        self.followed.image += gamma * self.image


@python_generic
def follow(objective: Smooth, x: FloatArray) -> Followed:
    """Return the objective at x, which moves in place."""
    return Followed(objective, x)


@follow.register(_Parabola)
def follow_parabola(objective: _Parabola, x: FloatArray) -> FollowedParabola:
    return FollowedParabola(objective, x)


@states.parts.register(Followed)
def followed_parts(at: Followed) -> list[FloatArray]:
    return [at.x]


@states.with_parts.register(Followed)
def followed_with_parts(at: Followed, new: Sequence[FloatArray]) -> Followed:
    return Followed(at.objective, new[0])


@states.parts.register(FollowedParabola)
def followed_parabola_parts(at: FollowedParabola) -> list[FloatArray]:
    return [at.x, at.image]


@states.with_parts.register(FollowedParabola)
def followed_parabola_with_parts(at: FollowedParabola, new: Sequence[FloatArray]) -> FollowedParabola:
    """Return the objective at another point. The image is kept too, as steps have rounded it."""
    moved = copy.copy(at)
    moved.x, moved.image = new
    return moved


@essence.register(_Parabola)
def parabola_essence(objective: _Parabola) -> tuple[object, ...]:
    return tuple(value for name, value in vars(objective).items() if name != "_taken")


@essence.register(csc_array)
def csc_essence(matrix: csc_array) -> tuple[object, ...]:
    return matrix.data, matrix.indices, matrix.indptr, matrix.shape


@python_generic
def columns(matrix: Matrix, where: slice) -> Matrix:
    """Return some columns of a matrix, as a matrix."""
    return matrix[:, where]


@columns.register(LinearOperator)
def operator_columns(matrix: LinearOperator, where: slice) -> LinearOperator:
    p, m = matrix.shape

    def padded(d: FloatArray) -> FloatArray:
        x = np.zeros(m)
        x[where] = np.ravel(d)
        return np.asarray(matrix @ x)

    some = (p, where.stop - where.start)
    return LinearOperator(some, padded, rmatvec=lambda r: matrix.rmatvec(r)[where], dtype=np.float64)


def _matrix(name: str, given: Matrix) -> Matrix:
    """Return a matrix whose columns can be taken: dense in column order, CSC, or a linear operator."""
    if isinstance(given, LinearOperator):
        return given
    matrix = csc_array(given, dtype=np.float64) if is_sparse(given) else np.asfortranarray(given, np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix.data if is_sparse(given) else matrix).all():
        raise ValueError(f"{name} must be a matrix of finite numbers, got {described(given)}.")
    return matrix


def _vector(name: str, given: ArrayLike | None, size: int) -> FloatArray:
    vector = np.zeros(size) if given is None else np.array(given, dtype=np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise ValueError(f"{name} must be {size} finite numbers, got {described(given)}.")
    return vector


def _is_symmetric(matrix: Matrix) -> bool:
    """Whether a matrix is symmetric up to rounding; operators are not looked into."""
    if isinstance(matrix, LinearOperator):
        return True
    return bool(abs(matrix - matrix.T).max() <= _ASYMMETRY * abs(matrix).max())
