"""Compiled loops over vectors."""

import numpy as np

from maxmargin.compiling.generics import helper


@helper
def add_scaled(scale, x, out):
    """``out += scale * x``"""
    for k in range(out.shape[0]):
        out[k] += scale * x[k]


@helper
def scale_by(c, out):
    """``out *= c``"""
    for k in range(out.shape[0]):
        out[k] *= c


@helper
def add_four(a, x, b, y, c, u, d, v, out):
    """``out += a * x + b * y + c * u + d * v``, added one after another; ``out`` is read and written once."""
    for k in range(out.shape[0]):
        out[k] = (((out[k] + a * x[k]) + b * y[k]) + c * u[k]) + d * v[k]


@helper
def add_product(scale, x, y, out):
    """``out += scale * x * y``"""
    for k in range(out.shape[0]):
        out[k] += scale * x[k] * y[k]


@helper
def weighted_sum(a, x, b, y, out):
    """``out[:] = a * x + b * y``"""
    for k in range(out.shape[0]):
        out[k] = a * x[k] + b * y[k]


@helper
def scaled_copy(scale, x, out):
    """``out[:] = scale * x``"""
    for k in range(out.shape[0]):
        out[k] = scale * x[k]


@helper
def copy(x, out):
    """``out[:] = x``"""
    for k in range(out.shape[0]):
        out[k] = x[k]


@helper
def fill(out, value):
    """``out[:] = value``"""
    for k in range(out.shape[0]):
        out[k] = value


@helper
def clear(out):
    """``out[:] = 0``"""
    for k in range(out.shape[0]):
        out[k] = 0.0


@helper
def count_nonzero(x):
    """``np.count_nonzero(x)``"""
    count = 0
    for k in range(x.shape[0]):
        count += x[k] != 0.0
    return count


@helper
def list_nonzero(x, out):
    """``out[:count] = np.flatnonzero(x)``; return the count. ``out`` needs one spare entry."""
    count = 0
    for k in range(x.shape[0]):
        out[count] = k
        count += x[k] != 0.0
    return count


@helper
def largest(x, count):
    """``x[:count].max()``, or -inf if all are NaN. Each of four maxima waits only for its own last one."""
    a = b = c = d = -np.inf
    whole = count - count % 4
    for k in range(0, whole, 4):
        a = x[k] if x[k] > a else a
        b = x[k + 1] if x[k + 1] > b else b
        c = x[k + 2] if x[k + 2] > c else c
        d = x[k + 3] if x[k + 3] > d else d
    for k in range(whole, count):
        a = x[k] if x[k] > a else a
    return max(max(a, b), max(c, d))


@helper
def dot_at(where, size, a, b):
    """``a[where[:size]] @ b[where[:size]]``"""
    total = 0.0
    for c in range(size):
        total += a[where[c]] * b[where[c]]
    return total


@helper
def euclidean(u, v):
    """``u @ v``, with an order of additions that does not depend on the processor or on memory alignment."""
    a = b = c = d = 0.0
    whole = u.shape[0] - u.shape[0] % 4
    for j in range(0, whole, 4):
        a += u[j] * v[j]
        b += u[j + 1] * v[j + 1]
        c += u[j + 2] * v[j + 2]
        d += u[j + 3] * v[j + 3]
    for j in range(whole, u.shape[0]):
        a += u[j] * v[j]
    return (a + b) + (c + d)
