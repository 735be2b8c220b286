r"""Kernel functions of feature rows, and compiled code that evaluates them for blocks of rows.

=====================  ==========================================================
`LinearKernel`         :math:`\langle x, x' \rangle`
`PolynomialKernel`     :math:`(\gamma \langle x, x' \rangle + c)^d`
`GaussianKernel`       :math:`\exp(-\gamma \|x - x'\|^2)`
`SigmoidKernel`        :math:`\tanh(\gamma \langle x, x' \rangle + c)`, not positive semidefinite in general
=====================  ==========================================================

All are functions of inner products and of squared lengths. An inner product is a sum over features in their
order, however many rows a block has. So a value has the same bits in every block, and the matrix of all
values is symmetric to the last bit.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, helper, kernel
from maxmargin.runtime.arrays import FloatArray
from maxmargin.structures.rows import Rows, n_rows, row_add, row_clear, row_dot, row_scores


class LinearKernel(NamedTuple):
    """The inner product."""


class PolynomialKernel(NamedTuple):
    """A power of an affine function of the inner product."""

    degree: int
    gamma: float
    coef0: float


class GaussianKernel(NamedTuple):
    """The radial basis function."""

    gamma: float


class SigmoidKernel(NamedTuple):
    """The hyperbolic tangent of an affine function of the inner product."""

    gamma: float
    coef0: float


class PrecomputedKernel(NamedTuple):
    """A kernel whose matrix is given.

    Parameters
    ----------
    semidefinite : bool
        Whether the matrix is known to be positive semidefinite. If not, results are not certified.
    """

    semidefinite: bool = False


KernelFunction = LinearKernel | PolynomialKernel | GaussianKernel | SigmoidKernel


def is_semidefinite(function: KernelFunction | PrecomputedKernel) -> bool:
    """Whether a kernel is known to be positive semidefinite for all data."""
    if isinstance(function, PolynomialKernel):
        return function.gamma >= 0.0 and function.coef0 >= 0.0
    if isinstance(function, GaussianKernel):
        return function.gamma >= 0.0
    if isinstance(function, PrecomputedKernel):
        return function.semidefinite
    return not isinstance(function, SigmoidKernel)


@generic
def kernel_value(function, dot, a, b):
    """Return the value for rows with the inner product ``dot`` and the squared lengths a and b."""
    raise NotImplementedError


@kernel_value.register(LinearKernel)
def linear_kernel_value(function, dot, a, b):
    return dot


@kernel_value.register(PolynomialKernel)
def polynomial_kernel_value(function, dot, a, b):
    base, value = function.gamma * dot + function.coef0, 1.0
    for _ in range(function.degree):  # the interpreter would round a power differently
        value *= base
    return value


@kernel_value.register(GaussianKernel)
def gaussian_kernel_value(function, dot, a, b):
    return math.exp(-function.gamma * max(a + b - 2.0 * dot, 0.0))


@kernel_value.register(SigmoidKernel)
def sigmoid_kernel_value(function, dot, a, b):
    return math.tanh(function.gamma * dot + function.coef0)


def row_lengths(rows: Rows) -> FloatArray:
    """Return the squared length of each row, as the sum that `kernel_value` gets for a row and itself."""
    out = np.empty(n_rows(rows))
    _measure_rows(rows, np.zeros(rows.n_columns), out)
    return out


@kernel
def _measure_rows(rows, buffer, out):
    """Write the squared length of each row; ``buffer`` has one zero per feature."""
    for t in range(out.shape[0]):
        row_add(rows, t, 1.0, buffer)
        out[t] = row_dot(rows, t, buffer)
        row_add(rows, t, -1.0, buffer)  # x - x is exactly zero


@kernel
def fill_matrix(rows, function, lengths, first, buffer, dots, tile, out):
    """Write the values for the rows first, first + 1, ... and all rows from them on, in both triangles.

    ``buffer`` and ``dots`` have one column for each row of the block. Values are computed tile by tile, so
    that each write goes to contiguous memory.
    """
    n, block, stop = out.shape[0], dots.shape[0], min(first + dots.shape[0], out.shape[0])
    for c in range(stop - first):
        row_add(rows, first + c, 1.0, buffer[:, c])
    for begin in range(first, n, block):
        end = min(begin + block, n)
        for s in range(begin, end):
            row_scores(rows, s, buffer, dots)
            for c in range(stop - first):
                tile[s - begin, c] = kernel_value(function, dots[c], lengths[s], lengths[first + c])
        _write_tile(tile, begin, end, first, stop, out)
    for c in range(stop - first):
        row_clear(rows, first + c, buffer)


@helper
def _write_tile(tile, begin, end, first, stop, out):
    """Write the values of the rows begin, ..., end - 1 and first, ..., stop - 1, in both triangles."""
    for s in range(begin, end):
        for t in range(first, stop):
            out[s, t] = tile[s - begin, t - first]
    for t in range(first, stop):
        for s in range(begin, end):
            out[t, s] = tile[s - begin, t - first]


@kernel
def fill_blocks(rows, function, lengths, spans, begins, buffer, dots, out):
    """Write the matrix of the values of the rows of each example, one after another, row by row."""
    block = dots.shape[0]
    for i in range(spans.shape[0]):
        first, stop = spans[i, 0], spans[i, 1]
        for t in range(first, stop, block):
            count = min(block, stop - t)
            for c in range(count):
                row_add(rows, t + c, 1.0, buffer[:, c])
            for s in range(first, stop):
                row_scores(rows, s, buffer, dots)
                at = begins[i] + (s - first) * (stop - first) + (t - first)
                for c in range(count):
                    out[at + c] = kernel_value(function, dots[c], lengths[s], lengths[t + c])
            for c in range(count):
                row_clear(rows, t + c, buffer)
