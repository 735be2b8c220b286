r"""Smooth convex functions of a flat vector, and how they follow a point from step to step.

An objective is any object with ``value(x)`` and ``gradient(x, where)``, the part of the gradient in the slice
``where``. Quadratics keep a linear image of the point, so that the step of a block costs the matrix columns
of that block, and line search is in closed form. Others are searched by SciPy, in some ten gradients of the
block.
"""

import copy
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from maxmargin import states
from maxmargin.arrays import FloatArray
from maxmargin.compiling import python_generic
from maxmargin.methods.protocol import ROUNDING
from maxmargin.problems.contents import essence
from maxmargin.problems.feature_map import NegativeCurvature
from maxmargin.product.matrices import (
    Matrix,
    checked_matrix,
    checked_vector,
    columns,
    is_semidefinite,
    least_diagonal,
    symmetric,
    typical_entry,
)

# Line search stops at this distance from the best step.
_SEARCH = 1e-12
# Tolerance for slopes of users' functions, relative to their terms: gradients may be in single precision.
_SLOPE_ROUNDING = 1e-6
# The columns of this many blocks are kept: slicing those of a sparse matrix takes longer than a step.
_KEPT = 10_000


class Smooth(Protocol):
    """A convex function with a continuous gradient.

    An objective of your own that has the attribute ``convex = True`` is taken to be convex. Without it,
    results are not certified: lower bounds follow from convexity, which values and gradients do not prove.
    """

    def value(self, x: FloatArray) -> float:
        """Return f(x)."""

    def gradient(self, x: FloatArray, where: slice) -> FloatArray:
        """Return the entries of the gradient at x in the slice ``where``."""


class _Parabola:
    """A convex quadratic function that is simple to compute from a linear image of x."""

    convex = True

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
    semidefinite : bool
        Whether Q is known to be positive semidefinite. If not, it is factorised to find out, unless it is an
        operator or has more than 2,000 rows. Without knowledge or proof, results are not certified. A
        negative diagonal entry, or a negative curvature along a step, is an error in any case.

    Attributes
    ----------
    convex : bool
        Whether Q is known or proved to be positive semidefinite. The proof is a Cholesky factor of
        :math:`S + 10^{-12} I`, where S is Q scaled to a unit diagonal: the lower bounds of results hold up to
        :math:`10^{-12} \cdot \frac12 \sum_j Q_{jj} d_j^2` for the widths d of the set.
    """

    def __init__(self, Q: Matrix, c: ArrayLike | None = None, semidefinite: bool = False) -> None:
        matrix = symmetric(checked_matrix("Quadratic: Q", Q), Q)
        super().__init__(matrix, checked_vector("Quadratic: c", c, matrix.shape[0]))
        self._rounding, least = ROUNDING * typical_entry(matrix), least_diagonal(matrix)
        if least < -self._rounding:
            raise NegativeCurvature(
                f"Quadratic: Q must be positive semidefinite, got {least:.3g} on its diagonal; minimise a "
                f"convex function."
            )
        self.convex = bool(semidefinite) or is_semidefinite(matrix)

    def value_of(self, x: FloatArray, image: FloatArray) -> float:
        return float(0.5 * (x @ image) - self.c @ x)

    def gradient_of(self, image: FloatArray, where: slice) -> FloatArray:
        return np.asarray(image[where] - self.c[where])

    def curvature_of(self, d: FloatArray, image: FloatArray, where: slice) -> float:
        found, length = float(d @ image[where]), float(np.abs(d).sum())
        if found < -self._rounding * length * length:
            raise NegativeCurvature(
                f"solve: the curvature along a step must not be negative, got {found:.3g}: Q is not positive "
                f"semidefinite; minimise a convex function."
            )
        return found


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
        matrix = checked_matrix("LeastSquares: A", A)
        p, m = matrix.shape
        super().__init__(matrix, checked_vector("LeastSquares: c", c, m))
        self.b = checked_vector("LeastSquares: b", b, p)

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
        if gap > 0.0 and self._slope(1.0, gap) > 0.0:
            gamma = float(brentq(lambda t: self._slope(t, gap) if t > 0.0 else -gap, 0.0, 1.0, xtol=_SEARCH))
        self.move(0.0)
        return gap / gamma if gamma > 0.0 else math.inf

    def _slope(self, gamma: float, gap: float) -> float:
        """Return the slope after a step; raise if it is less than that before the step, minus the gap."""
        self.move(gamma)
        gradient = self.at.gradient(self.where)
        slope = float(gradient @ self.d)
        if slope < -gap - _SLOPE_ROUNDING * (gap + float(np.abs(gradient) @ np.abs(self.d))):
            raise NegativeCurvature(
                f"solve: the slope along a step must not fall, got {slope:.3g} after {-gap:.3g}: the "
                f"objective is not convex, or its gradient is wrong; minimise a convex function."
            )
        return slope

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
        self._curvature = at.parabola.curvature_of(d, self.image, where)  # predefined steps are checked too

    def curvature(self, gap: float) -> float:
        return self._curvature

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
    return tuple(value for name, value in vars(objective).items() if name[0] != "_")
