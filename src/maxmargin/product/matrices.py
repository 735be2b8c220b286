"""Matrices of objectives: dense in column order, CSC, or linear operators. Which of them are semidefinite."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array
from scipy.sparse.linalg import LinearOperator

from maxmargin.arrays import FloatArray, is_frozen, is_sparse
from maxmargin.compiling import python_generic
from maxmargin.problems.contents import essence
from maxmargin.wording import described

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
