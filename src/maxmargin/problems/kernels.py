"""Problems with a kernel of their rows: of examples, tokens or nodes."""

from numbers import Real

import numpy as np

from maxmargin.arrays import Features, IntArray
from maxmargin.problems import feature_map
from maxmargin.problems.maps._columns import Columns, enough_columns, given_columns
from maxmargin.problems.maps._kernel_products import check_finite, computed_products, cut_products
from maxmargin.problems.maps.kernelised import KernelisedMap
from maxmargin.problems.problem import Problem, checked_pair
from maxmargin.rows import as_rows, n_rows
from maxmargin.rows.kernel_functions import KernelFunction, PrecomputedKernel, is_semidefinite
from maxmargin.wording import described, shown


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
    phi, oracle = checked_pair(problem, "Kernelised")
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
    owner: str = "Kernelised",
) -> KernelisedMap:
    """Return a map with a kernel of the rows of this layout; see `Kernelised`."""
    spans = layout.spans
    if isinstance(function, PrecomputedKernel):
        columns: Columns = given_columns(features, dtype, owner)
        _check_rows(len(columns.values), spans, owner)
        products = cut_products(columns.values, spans)
    else:
        rows = as_rows(features, owner)
        _check_rows(n_rows(rows), spans, owner)
        columns = enough_columns(rows, function, dtype, 1e6 * cache_size)
        products = computed_products(rows, function, spans, dtype)
    check_finite(products[0], owner)
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


def _check_rows(n: int, spans: IntArray, owner: str) -> None:
    needed = int(spans.max())
    if n != needed:
        raise ValueError(
            f"{owner}: features must have one row for each of the {needed} rows of the problem, got {n}."
        )
