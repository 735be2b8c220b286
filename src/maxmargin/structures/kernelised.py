r"""The feature map of a kernel: any map over rows, plus a kernel of the rows (the paper's Algorithm B.1).

Let row t have the features x_t, in a space that only the kernel k knows. Weights are combinations of the
features of the training rows, :math:`\sum_t W_{tl} \, x_t` for label l. The map keeps their coefficients W
together with the scores of all training rows,

.. math:: G = K W, \qquad K_{st} = k(x_s, x_t),

as one vector: the weights of the inner map, then W row by row, then G label by label, so that columns of K
are added to contiguous memory. With these,

.. math::

    \text{score}_i      &\quad \theta \mathrel{+}= G \text{ at the rows of example i} \\
    \text{push}_i       &\quad W_{tl} \mathrel{+}= c \, \delta_{tl}, \quad
                               G_{\cdot l} \mathrel{+}= c \, \delta_{tl} K_{\cdot t} \\
    \text{gram}_i       &\quad K_{ii} \, \delta \\
    \text{inner}(u, v)  &\quad \langle W_u, G_v \rangle + \text{that of the inner map} .

Beyond this, methods only add and scale such vectors, which preserves G = K W. So every method and wrapper
but `Anchored`, and every model over rows, works with a kernel, without sums over support vectors. The
inner map has the parts of the model that have no kernel, such as transitions, and may have linear
features too, such as a constant.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, kernel
from maxmargin.compiling.loops import add_scaled, clear, copy
from maxmargin.runtime.arrays import Features, FloatArray, IntArray, UIntArray
from maxmargin.runtime.wording import described, errors_of, shown
from maxmargin.structures import feature_map
from maxmargin.structures.kernel_functions import (
    GROUP,
    Columns,
    KernelFunction,
    PrecomputedKernel,
    add_columns,
    check_finite,
    computed_products,
    cut_products,
    enough_columns,
    fewer_columns,
    given_columns,
    is_semidefinite,
)
from maxmargin.structures.problem import (
    Problem,
    checked_pair,
    essence,
    indexed_by_example,
    take_fields,
    take_half,
)
from maxmargin.structures.products import multiply_table, position_and_label, table_norm2
from maxmargin.structures.rows import as_rows, n_rows


@indexed_by_example("rows_of", "product_spans")
class KernelisedMap(NamedTuple):
    """A map with a kernel of its rows.

    Attributes
    ----------
    inner : map
        The parts of the model without kernel.
    columns : AllColumns or SomeColumns
        The kernel matrix.
    rows_of : array of shape (n, 2)
        Example i has the rows rows_of[i, 0], ..., rows_of[i, 1] - 1.
    products, product_spans : arrays
        The kernel matrix of the rows of each example; see `ChainMap`.
    curvature : array of shape (1,)
        The most negative squared length of a move, if the kernel is not known to be positive semidefinite.
    head, width : int
        Number of statistics before those of rows, and of each row.
    most : int
        Largest number of rows of an example.
    semidefinite : bool
        Whether the kernel is known to be positive semidefinite.
    """

    inner: object
    columns: Columns
    rows_of: IntArray
    products: FloatArray
    product_spans: IntArray
    curvature: FloatArray
    head: int
    width: int
    most: int
    semidefinite: bool


class KernelisedWork(NamedTuple):
    """Workspace.

    Attributes
    ----------
    inner : workspace of the inner map
    image : array of shape (most, width)
        The change of the scores by the kernel.
    sums : array of shape (width,)
        Squared lengths label by label.
    nonzero, chosen, labels, coefs : arrays
        Entries of a move: rows, labels and values.
    places : array of shape (GROUP,)
    """

    inner: object
    image: FloatArray
    sums: FloatArray
    nonzero: UIntArray
    chosen: IntArray
    labels: IntArray
    coefs: FloatArray
    places: IntArray


@feature_map.map_sizes.register(KernelisedMap)
def kernelised_map_sizes(phi):
    size = feature_map.map_sizes(phi.inner)
    both = 2 * phi.columns.values.shape[1] * phi.width
    return feature_map.MapSizes(phi.rows_of.shape[0], size.weights + both, size.statistics)


@feature_map.map_workspace.register(KernelisedMap)
def kernelised_map_workspace(phi: KernelisedMap) -> KernelisedWork:
    entries = phi.most * phi.width
    return KernelisedWork(
        feature_map.map_workspace(phi.inner),
        np.zeros((phi.most, phi.width)),
        np.zeros(phi.width),
        np.zeros(phi.most + 1, dtype=np.uint32),
        np.zeros(entries, dtype=np.int64),
        np.zeros(entries, dtype=np.int64),
        np.zeros(entries),
        np.zeros(GROUP, dtype=np.int64),
    )


@feature_map.score.register(KernelisedMap)
def kernelised_score(phi, i, w, theta):
    n, width, first = phi.columns.values.shape[1], phi.width, phi.rows_of[i, 0]
    count = phi.rows_of[i, 1] - first
    G = w[w.shape[0] - n * width :].reshape((width, n))
    feature_map.score(phi.inner, i, w[: w.shape[0] - 2 * n * width], theta)
    rows = theta[phi.head : phi.head + count * width].reshape((count, width))
    for k in range(width):
        for t in range(count):
            rows[t, k] += G[k, first + t]


@feature_map.gram.register(KernelisedMap)
def kernelised_gram(phi, i, move, image, work):
    end = phi.head + (phi.rows_of[i, 1] - phi.rows_of[i, 0]) * phi.width
    D = move.delta[phi.head : end].reshape((-1, phi.width))
    rows = image[phi.head : end].reshape((-1, phi.width))
    G = work.image[: D.shape[0]]
    feature_map.gram(phi.inner, i, move, image, work.inner)
    multiply_table(phi.head, phi.products, phi.product_spans[i, 0], move, D, G)
    for t in range(D.shape[0]):
        add_scaled(1.0, G[t], rows[t])


@feature_map.norm2.register(KernelisedMap)
def kernelised_norm2(phi, i, move, image, work):
    end = phi.head + (phi.rows_of[i, 1] - phi.rows_of[i, 0]) * phi.width
    D = move.delta[phi.head : end].reshape((-1, phi.width))
    clear(work.sums)
    total = feature_map.norm2(phi.inner, i, move, image, work.inner)
    total += table_norm2(phi, i, D, work.sums, work.nonzero)
    if not phi.semidefinite:
        phi.curvature[0] = min(phi.curvature[0], total)
    return total


@feature_map.column_norm2.register(KernelisedMap)
def kernelised_column_norm2(phi, i):
    """Return the sum of both parts: examples have one row if columns of the inner map are orthogonal."""
    total = feature_map.column_norm2(phi.inner, i) + phi.products[phi.product_spans[i, 0]]
    if not phi.semidefinite:
        phi.curvature[0] = min(phi.curvature[0], total)
    return total


@feature_map.push.register(KernelisedMap)
def kernelised_push(phi, i, move, scale, w, work):
    n, width, first = phi.columns.values.shape[1], phi.width, phi.rows_of[i, 0]
    d, end = w.shape[0] - 2 * n * width, phi.head + (phi.rows_of[i, 1] - first) * width
    W, G = w[d : d + n * width].reshape((n, width)), w[d + n * width :].reshape((width, n))
    feature_map.push(phi.inner, i, move, scale, w[:d], work.inner)
    count = 0
    for c in range(move.size[0]):
        p = move.support[c]
        if phi.head <= p < end and move.delta[p] != 0.0:
            t, k = position_and_label(p, phi.head, width)
            work.chosen[count], work.labels[count] = first + t, k
            work.coefs[count] = scale * move.delta[p]
            W[first + t, k] += work.coefs[count]
            count += 1
    add_columns(phi.columns, work.chosen, work.labels, work.coefs, count, work.places, G)


@feature_map.refresh.register(KernelisedMap)
def kernelised_refresh(phi, i, move, prox, v, w):
    """Weights of the inner map alone have penalties; coefficients and scores are copied."""
    n, width, first = phi.columns.values.shape[1], phi.width, phi.rows_of[i, 0]
    d, end = w.shape[0] - 2 * n * width, phi.head + (phi.rows_of[i, 1] - first) * width
    feature_map.refresh(phi.inner, i, move, prox, v[:d], w[:d])
    for c in range(move.size[0]):
        p = move.support[c]
        if phi.head <= p < end:
            t, k = position_and_label(p, phi.head, width)
            at, G = d + (first + np.int64(t)) * width + np.int64(k), d + n * (width + np.int64(k))
            w[at] = v[at]
            copy(v[G : G + n], w[G : G + n])


@helper
def _cross_product(W, G):
    """``(W * G.T).sum()``"""
    total = 0.0
    for k in range(G.shape[0]):
        for t in range(G.shape[1]):
            total += W[t, k] * G[k, t]
    return total


@feature_map.inner.register(KernelisedMap)
def kernelised_inner(phi: KernelisedMap, u: FloatArray, v: FloatArray) -> float:
    linear_u, W, _ = kernel_parts(phi, u)
    linear_v, _, G = kernel_parts(phi, v)
    return float(feature_map.inner(phi.inner, linear_u, linear_v) + _cross_product(W, G))


def kernel_parts(phi: KernelisedMap, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the inner map's weights, W and G, as views of ``w``."""
    n = phi.columns.values.shape[1]
    linear, W, G = np.split(w, [len(w) - 2 * n * phi.width, len(w) - n * phi.width])
    return linear, W.reshape(n, phi.width), G.reshape(phi.width, n)


@feature_map.unpack.register(KernelisedMap)
def kernelised_unpack(phi: KernelisedMap, w: FloatArray) -> tuple[FloatArray, ...]:
    """Return the weights of the inner map, followed by the coefficients, one row per label."""
    linear, W, _ = kernel_parts(phi, w)
    parts: tuple[FloatArray, ...] = feature_map.unpack(phi.inner, linear)
    return (*parts, W.T)


@feature_map.rebuilt.register(KernelisedMap)
def kernelised_rebuilt(phi: KernelisedMap, w: FloatArray) -> FloatArray:
    """Return a copy in which G is recomputed from W, without the rounding errors of the steps."""
    out = w.copy()
    _, W, G = kernel_parts(phi, out)
    G[:] = 0.0
    rebuild_scores(phi.columns, W, G, np.zeros((3, GROUP), dtype=np.int64), np.zeros(GROUP))
    return out


@kernel
def rebuild_scores(columns, W, G, numbers, coefs):
    """``G += K W``; ``numbers`` and ``coefs`` are workspace."""
    count = 0
    for t in range(W.shape[0]):
        for k in range(W.shape[1]):
            if W[t, k] != 0.0:
                numbers[0, count], numbers[1, count], coefs[count] = t, k, W[t, k]
                count += 1
            if count == coefs.shape[0]:
                add_columns(columns, numbers[0], numbers[1], coefs, count, numbers[2], G)
                count = 0
    add_columns(columns, numbers[0], numbers[1], coefs, count, numbers[2], G)


@feature_map.adopted.register(KernelisedMap)
def kernelised_adopted(phi: KernelisedMap, w: FloatArray, before: object) -> FloatArray | None:
    """Return the weights with coefficients of zero for new rows, and with the scores that ``phi`` gives."""
    if not isinstance(before, KernelisedMap) or (phi.head, phi.width) != (before.head, before.width):
        return None
    linear, W, _ = kernel_parts(before, w)
    inner = feature_map.adopted(phi.inner, linear, before.inner)
    missing = phi.columns.values.shape[1] - len(W)
    if inner is None or missing < 0:
        return None
    if phi.columns is before.columns:
        return w
    W = np.concatenate([W, np.zeros((missing, phi.width))])
    return kernelised_rebuilt(phi, np.concatenate([inner, W.ravel(), np.zeros(W.size)]))


@feature_map.kernel_metric.register(KernelisedMap)
def kernelised_kernel_metric(phi: KernelisedMap) -> feature_map.KernelMetric:
    return feature_map.KernelMetric(phi.semidefinite, phi.products, phi.curvature)


@take_half.register(KernelisedMap)
def kernelised_take_half(phi: KernelisedMap, indices: IntArray) -> KernelisedMap:
    """Return some examples, with separate columns, as two threads must not write to the same ones."""
    taken: KernelisedMap = take_fields(phi, indices)
    return taken._replace(columns=fewer_columns(phi.columns, len(indices) / len(phi.rows_of)))


@essence.register(KernelisedMap)
def kernelised_essence(phi: KernelisedMap) -> tuple[object, ...]:
    """Return all but the most negative curvature, which a run writes."""
    return tuple(value for name, value in phi._asdict().items() if name != "curvature")


# Problems with a kernel of their rows: of examples, tokens or nodes.


@errors_of("Kernelised")
def Kernelised(
    problem: object,
    features: Features,
    kernel: KernelFunction | PrecomputedKernel,
    *,
    cache_size: float = 200.0,
    dtype: type[np.floating] = np.float64,
) -> Problem[KernelisedMap, object]:
    """Return the problem with a kernel of its rows: of examples, tokens or nodes.

    Parameters
    ----------
    problem : Problem
        A problem of `Multiclass`, `Chain`, `SecondOrderChain`, `Segments` or `Graph`. Its own features stay
        linear, in addition to the kernel; to have none, pass ``from_encoded`` an array of shape (n_rows, 0).
    features : array or sparse matrix of shape (n_rows, n_features)
        The arguments of the kernel; for a `PrecomputedKernel`, its matrix of shape (n_rows, n_rows).
    kernel : GaussianKernel, PolynomialKernel, LinearKernel, SigmoidKernel or PrecomputedKernel
    cache_size : float
        Megabytes for the kernel matrix. If the matrix is larger, some of its columns are kept, and the others
        are computed when they are needed; the answer is the same.
    dtype : float64 or float32
        Type of the entries of the kernel matrix.
    """
    phi, oracle = checked_pair(problem)
    layout = feature_map.row_layout(phi)
    _check_kernel(kernel, dtype, cache_size)
    return Problem(kernelised_map(phi, layout, features, kernel, cache_size, dtype), oracle)


def _check_kernel(kernel: object, dtype: object, cache_size: object) -> None:
    if not isinstance(kernel, KernelFunction | PrecomputedKernel):
        raise TypeError(
            "Kernelised: kernel must be a GaussianKernel, PolynomialKernel, LinearKernel, SigmoidKernel or "
            f"PrecomputedKernel, got {described(kernel)}."
        )
    if dtype not in (np.float64, np.float32):
        raise ValueError(f"Kernelised: dtype must be float64 or float32, got {shown(dtype)}.")
    if not (isinstance(cache_size, Real) and float(cache_size) >= 0.0):
        raise ValueError(f"Kernelised: cache_size must be a number >= 0, got {shown(cache_size)}.")


def kernelised_map(
    phi: object,
    layout: feature_map.RowLayout,
    features: Features,
    function: KernelFunction | PrecomputedKernel,
    cache_size: float,
    dtype: type[np.floating],
) -> KernelisedMap:
    """Return a map with a kernel of the rows of this layout; see `Kernelised`."""
    spans = layout.spans
    if isinstance(function, PrecomputedKernel):
        columns: Columns = given_columns(features, dtype)
        _check_rows(len(columns.values), spans)
        products = cut_products(columns.values, spans)
    else:
        rows = as_rows(features)
        _check_rows(n_rows(rows), spans)
        columns = enough_columns(rows, function, dtype, 1e6 * cache_size)
        products = computed_products(rows, function, spans, dtype)
    check_finite(products[0])
    most = int((spans[:, 1] - spans[:, 0]).max())
    return KernelisedMap(
        phi,
        columns,
        spans,
        *products,
        np.zeros(1),
        layout.head,
        layout.width,
        most,
        is_semidefinite(function),
    )


def _check_rows(n: int, spans: IntArray) -> None:
    needed = int(spans.max())
    if n != needed:
        raise ValueError(f"features must have one row for each of the {needed} rows of the problem, got {n}.")
