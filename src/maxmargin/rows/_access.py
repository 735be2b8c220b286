"""The generic functions that read and write feature rows, for each storage format.

Values may be of type float32. Each is converted to float64 as it is read, so that rows of either type with
the same values give the same bits.
"""

import numpy as np

from maxmargin.compiling import generic, subroutine
from maxmargin.compiling.prefetch import prefetch
from maxmargin.loops import add_four, add_scaled, clear, list_nonzero
from maxmargin.rows._storage import DenseRows, IndicatorRows, SparseRows

# Up to this fraction of nonzeros, or two of them, pushing two at a time is faster than pushing whole rows.
_FEW = 1 / 5


@generic
def row_scores(rows, t, W, out):
    """``out[:] = x_t @ W``"""
    raise NotImplementedError


@generic
def row_push(rows, t, scale, delta, W):
    """``W += scale * np.outer(x_t, delta)``"""
    raise NotImplementedError


@generic
def row_add_two(rows, t, a, b, W, j, k):
    """``W[:, j] += a * x_t; W[:, k] += b * x_t``, for j != k"""
    raise NotImplementedError


@subroutine
def row_push_few(rows, t, scale, delta, W, nonzero):
    """``W += scale * np.outer(x_t, delta)``, fast if delta is sparse; ``nonzero`` is workspace."""
    count = list_nonzero(delta, nonzero)
    if count > 2 and count > _FEW * delta.shape[0]:
        row_push(rows, t, scale, delta, W)
        return
    for c in range(0, count - 1, 2):
        j, k = nonzero[c], nonzero[c + 1]
        row_add_two(rows, t, scale * delta[j], scale * delta[k], W, j, k)
    if count & 1:
        k = nonzero[count - 1]
        row_add(rows, t, scale * delta[k], W[:, k])


@generic
def rows_prefetch(rows, first, stop):
    """Prefetch the rows first, ..., stop - 1 into the cache."""
    raise NotImplementedError


@generic
def row_clear(rows, t, W):
    """``W[x_t != 0] = 0``"""
    raise NotImplementedError


@generic
def row_add(rows, t, scale, out):
    """``out += scale * x_t``"""
    raise NotImplementedError


@generic
def row_dot(rows, t, v):
    """``x_t @ v``"""
    raise NotImplementedError


@generic
def row_wipe(rows, t, v):
    """``v[x_t != 0] = 0``; return the sum of the squares of the old values"""
    raise NotImplementedError


@generic
def row_wipe_two(rows, t, W, j, k):
    """``W[x_t != 0, j] = W[x_t != 0, k] = 0``, for j != k; return the sum of the squares of the old values"""
    raise NotImplementedError


@row_scores.register(DenseRows)
def dense_rows_row_scores(rows, t, W, out):
    clear(out)
    x, fours = rows.values[t], rows.n_columns // 4
    for four in range(fours):
        f = 4 * four
        a, b, c, d = np.float64(x[f]), np.float64(x[f + 1]), np.float64(x[f + 2]), np.float64(x[f + 3])
        add_four(a, W[f], b, W[f + 1], c, W[f + 2], d, W[f + 3], out)
    for f in range(4 * fours, rows.n_columns):
        add_scaled(np.float64(x[f]), W[f], out)


@row_scores.register(SparseRows)
def sparse_rows_row_scores(rows, t, W, out):
    clear(out)
    for p in range(rows.start[t], rows.start[t + 1]):
        add_scaled(np.float64(rows.values[p]), W[rows.columns[p]], out)


@row_scores.register(IndicatorRows)
def indicator_rows_row_scores(rows, t, W, out):
    clear(out)
    for p in range(rows.start[t], rows.start[t + 1]):
        add_scaled(1.0, W[rows.columns[p]], out)


@row_push.register(DenseRows)
def dense_rows_row_push(rows, t, scale, delta, W):
    for f in range(rows.n_columns):
        x = np.float64(rows.values[t, f])
        if x != 0.0:
            add_scaled(scale * x, delta, W[f])


@row_push.register(SparseRows)
def sparse_rows_row_push(rows, t, scale, delta, W):
    for p in range(rows.start[t], rows.start[t + 1]):
        add_scaled(scale * np.float64(rows.values[p]), delta, W[rows.columns[p]])


@row_push.register(IndicatorRows)
def indicator_rows_row_push(rows, t, scale, delta, W):
    for p in range(rows.start[t], rows.start[t + 1]):
        add_scaled(scale, delta, W[rows.columns[p]])


@row_add_two.register(DenseRows)
def dense_rows_row_add_two(rows, t, a, b, W, j, k):
    for f in range(rows.n_columns):
        x = np.float64(rows.values[t, f])
        W[f, j] += a * x
        W[f, k] += b * x


@row_add_two.register(SparseRows)
def sparse_rows_row_add_two(rows, t, a, b, W, j, k):
    for p in range(rows.start[t], rows.start[t + 1]):
        f, x = rows.columns[p], np.float64(rows.values[p])
        W[f, j] += a * x
        W[f, k] += b * x


@row_add_two.register(IndicatorRows)
def indicator_rows_row_add_two(rows, t, a, b, W, j, k):
    for p in range(rows.start[t], rows.start[t + 1]):
        f = rows.columns[p]
        W[f, j] += a
        W[f, k] += b


@rows_prefetch.register(DenseRows)
def dense_rows_rows_prefetch(rows, first, stop):
    prefetch(rows.values, first * rows.n_columns, stop * rows.n_columns)


@rows_prefetch.register(SparseRows)
def sparse_rows_rows_prefetch(rows, first, stop):
    prefetch(rows.columns, rows.start[first], rows.start[stop])
    prefetch(rows.values, rows.start[first], rows.start[stop])


@rows_prefetch.register(IndicatorRows)
def indicator_rows_rows_prefetch(rows, first, stop):
    prefetch(rows.columns, rows.start[first], rows.start[stop])


@row_clear.register(DenseRows)
def dense_rows_row_clear(rows, t, W):
    for f in range(rows.n_columns):
        clear(W[f])


@row_clear.register(SparseRows)
@row_clear.register(IndicatorRows)
def sparse_rows_row_clear(rows, t, W):
    for p in range(rows.start[t], rows.start[t + 1]):
        clear(W[rows.columns[p]])


@row_add.register(DenseRows)
def dense_rows_row_add(rows, t, scale, out):
    for f in range(rows.n_columns):
        out[f] += scale * np.float64(rows.values[t, f])


@row_add.register(SparseRows)
def sparse_rows_row_add(rows, t, scale, out):
    for p in range(rows.start[t], rows.start[t + 1]):
        out[rows.columns[p]] += scale * np.float64(rows.values[p])


@row_add.register(IndicatorRows)
def indicator_rows_row_add(rows, t, scale, out):
    for p in range(rows.start[t], rows.start[t + 1]):
        out[rows.columns[p]] += scale


@row_dot.register(DenseRows)
def dense_rows_row_dot(rows, t, v):
    total = 0.0
    for f in range(rows.n_columns):
        total += np.float64(rows.values[t, f]) * v[f]
    return total


@row_dot.register(SparseRows)
def sparse_rows_row_dot(rows, t, v):
    total = 0.0
    for p in range(rows.start[t], rows.start[t + 1]):
        total += np.float64(rows.values[p]) * v[rows.columns[p]]
    return total


@row_dot.register(IndicatorRows)
def indicator_rows_row_dot(rows, t, v):
    total = 0.0
    for p in range(rows.start[t], rows.start[t + 1]):
        total += v[rows.columns[p]]
    return total


@row_wipe.register(DenseRows)
def dense_rows_row_wipe(rows, t, v):
    total = 0.0
    for f in range(rows.n_columns):
        total += v[f] * v[f]
        v[f] = 0.0
    return total


@row_wipe.register(SparseRows)
@row_wipe.register(IndicatorRows)
def sparse_rows_row_wipe(rows, t, v):
    total = 0.0
    for p in range(rows.start[t], rows.start[t + 1]):
        total += v[rows.columns[p]] * v[rows.columns[p]]
        v[rows.columns[p]] = 0.0
    return total


@row_wipe_two.register(DenseRows)
def dense_rows_row_wipe_two(rows, t, W, j, k):
    total = 0.0
    for f in range(rows.n_columns):
        total += W[f, j] * W[f, j] + W[f, k] * W[f, k]
        W[f, j] = W[f, k] = 0.0
    return total


@row_wipe_two.register(SparseRows)
@row_wipe_two.register(IndicatorRows)
def sparse_rows_row_wipe_two(rows, t, W, j, k):
    total = 0.0
    for p in range(rows.start[t], rows.start[t + 1]):
        x = W[rows.columns[p]]
        total += x[j] * x[j] + x[k] * x[k]
        x[j] = x[k] = 0.0
    return total
