"""The kernel matrix of the rows of each example: the blocks on the diagonal of the whole matrix."""

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.problems.maps._columns import GROUP
from maxmargin.rows import Rows
from maxmargin.rows.kernel_functions import KernelFunction, fill_blocks, row_lengths


def check_finite(products: FloatArray, owner: str) -> None:
    if not np.isfinite(products).all():
        raise ValueError(
            f"{owner}: the kernel must have finite values, got NaN or infinity for some rows; remove or "
            "scale features that are not finite or too large."
        )


def _product_spans(spans: IntArray) -> IntArray:
    """Return where the table of each example begins and ends."""
    entries = (spans[:, 1] - spans[:, 0]) ** 2
    ends = np.cumsum(entries)
    return np.column_stack([ends - entries, ends])


def cut_products(matrix: NDArray[np.floating], spans: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the blocks of the matrix for each example, one after another."""
    blocks = [np.ravel(matrix[first:stop, first:stop]) for first, stop in spans.tolist()]
    return np.concatenate(blocks).astype(np.float64), _product_spans(spans)


def computed_products(
    rows: Rows, function: KernelFunction, spans: IntArray, dtype: type[np.floating]
) -> tuple[FloatArray, IntArray]:
    """Return the kernel matrix of the rows of each example, rounded as the columns are."""
    places = _product_spans(spans)
    out, buffer = np.empty(places[-1, 1], dtype=dtype), np.zeros((rows.n_columns, GROUP))
    fill_blocks(rows, function, row_lengths(rows), spans, places[:, 0].copy(), buffer, np.zeros(GROUP), out)
    return out.astype(np.float64), places
