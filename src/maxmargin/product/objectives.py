r"""Smooth convex functions of a flat vector, and how they follow a point from step to step.

An objective is any object with ``value(x)`` and ``gradient(x, where)``, the part of the gradient in the slice
``where``. Quadratics keep a linear image of the point, so that the step of a block costs the matrix columns
of that block, and line search is in closed form. Others are searched by SciPy, in some ten gradients of the
block.

Matrices are dense in column order, CSC, or linear operators. Certificates need to know which of them are
semidefinite.
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

from maxmargin.files import checkpoint
from maxmargin.methods.protocol import ROUNDING
from maxmargin.runtime.arrays import FloatArray, is_frozen, is_sparse
from maxmargin.runtime.wording import described
from maxmargin.structures.feature_map import NegativeCurvature
from maxmargin.structures.problem import essence

_ASYMMETRY = 1e-9
# Matrices of more rows are not factorised: it would take longer than many a run.
_MOST_ROWS = 2_000
# Eigenvalues of a matrix with a unit diagonal that are above minus this count as zero.
_SEMIDEFINITE = 1e-12

Matrix: TypeAlias = FloatArray | csc_array | LinearOperator


def checked_matrix(name: str, given: Matrix) -> Matrix:
    """Return a matrix whose columns can be taken, and which callers cannot change."""
    if isinstance(given, LinearOperator):
        return given
    if is_sparse(given):
        matrix = csc_array(given, dtype=np.float64, copy=True)
    elif is_frozen(given):
        matrix = np.asfortranarray(given, np.float64)
    else:
        matrix = np.array(given, np.float64, order="F")
    if matrix.ndim != 2 or not np.isfinite(matrix.data if is_sparse(given) else matrix).all():
        raise ValueError(f"{name} must be a matrix of finite numbers, got {described(given)}.")
    return matrix


def checked_vector(name: str, given: ArrayLike | None, size: int) -> FloatArray:
    """Return a vector, of zeros by default; raise unless it has this size."""
    vector = np.zeros(size) if given is None else np.array(given, dtype=np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise ValueError(f"{name} must be {size} finite numbers, got {described(given)}.")
    return vector


def columns(matrix: Matrix, where: slice) -> Matrix:
    """Return some columns of a matrix, as a matrix."""
    if not isinstance(matrix, LinearOperator):
        return matrix[:, where]
    p, m = matrix.shape

    def padded(d: FloatArray) -> FloatArray:
        x = np.zeros(m)
        x[where] = np.ravel(d)
        return np.asarray(matrix @ x)

    some = (p, where.stop - where.start)
    return LinearOperator(some, padded, rmatvec=lambda r: matrix.rmatvec(r)[where], dtype=np.float64)


def symmetric(matrix: Matrix, given: Matrix) -> Matrix:
    """Return the symmetric part of a matrix that is symmetric up to rounding; operators are not checked."""
    m, n = matrix.shape
    if m == n and isinstance(matrix, LinearOperator):
        return matrix
    asymmetry = abs(matrix - matrix.T).max() if m == n else np.inf
    if asymmetry > _ASYMMETRY * abs(matrix).max():
        raise ValueError(f"Quadratic: Q must be symmetric, got {described(given)}; use (Q + Q.T) / 2.")
    if not asymmetry:
        return matrix
    return checked_matrix("Quadratic: Q", matrix / 2.0 + matrix.T / 2.0)


def typical_entry(matrix: Matrix) -> float:
    """Return the largest absolute entry of a matrix, or of the product of an operator and random signs."""
    if isinstance(matrix, LinearOperator):
        matrix = matrix @ np.random.default_rng(0).choice([-1.0, 1.0], size=matrix.shape[1])
    return float(abs(matrix).max())


def least_diagonal(matrix: Matrix) -> float:
    """Return the least entry on the diagonal of a matrix; of an operator, zero."""
    return 0.0 if isinstance(matrix, LinearOperator) else float(matrix.diagonal().min())


def is_semidefinite(matrix: Matrix) -> bool:
    """Whether a symmetric matrix is proved to be positive semidefinite; operators and large ones are not.

    A matrix is semidefinite if it is so when scaled to a unit diagonal, by which its scale, or that of some
    coordinates, makes no difference. Rows whose diagonal entry is zero must be zero.
    """
    if isinstance(matrix, LinearOperator) or matrix.shape[0] > _MOST_ROWS:
        return False
    Q: FloatArray = matrix.toarray() if isinstance(matrix, csc_array) else matrix
    diagonal = Q.diagonal()
    some = diagonal > 0.0
    if diagonal.min() < 0.0 or Q[~some].any():
        return False
    lengths = np.sqrt(diagonal[some])
    with np.errstate(over="ignore"):  # infinite entries are too large, like others
        scaled = Q[np.ix_(some, some)] / lengths[:, None] / lengths
    if not np.abs(scaled).max(initial=0.0) <= 1.0 + _SEMIDEFINITE:
        return False
    try:
        np.linalg.cholesky(scaled + _SEMIDEFINITE * np.eye(len(scaled)))
    except np.linalg.LinAlgError:
        return False
    return True


@essence.register(csc_array)
def csc_essence(matrix: csc_array) -> tuple[object, ...]:
    return matrix.data, matrix.indices, matrix.indptr, matrix.shape


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


def follow(objective: Smooth, x: FloatArray) -> Followed:
    """Return the objective at x, which moves in place."""
    return FollowedParabola(objective, x) if isinstance(objective, _Parabola) else Followed(objective, x)


@checkpoint.parts.register(Followed)
def followed_parts(at: Followed) -> list[FloatArray]:
    return [at.x]


@checkpoint.with_parts.register(Followed)
def followed_with_parts(at: Followed, new: Sequence[FloatArray]) -> Followed:
    return Followed(at.objective, new[0])


@checkpoint.parts.register(FollowedParabola)
def followed_parabola_parts(at: FollowedParabola) -> list[FloatArray]:
    return [at.x, at.image]


@checkpoint.with_parts.register(FollowedParabola)
def followed_parabola_with_parts(at: FollowedParabola, new: Sequence[FloatArray]) -> FollowedParabola:
    """Return the objective at another point. The image is kept too, as steps have rounded it."""
    moved = copy.copy(at)
    moved.x, moved.image = new
    return moved


@essence.register(_Parabola)
def parabola_essence(objective: _Parabola) -> tuple[object, ...]:
    return tuple(value for name, value in vars(objective).items() if name[0] != "_")
