"""Feature rows, dense or sparse, behind one interface.

A model stores its features as `DenseRows`, `SparseRows` or `IndicatorRows` and uses them through generic
functions. Nothing else in the package knows which of the three it has; `SharedRows` stand for several rows
of the same features. A weight matrix ``W`` has one row per
feature. The entries of a row, one per label, are contiguous, so inner loops run over labels and vectorise.
"""

from maxmargin.rows._access import (
    row_add,
    row_add_two,
    row_clear,
    row_dot,
    row_push,
    row_push_few,
    row_scores,
    row_wipe,
    row_wipe_two,
    rows_prefetch,
)
from maxmargin.rows._shared import SharedRows, shared_rows
from maxmargin.rows._storage import (
    DenseRows,
    IndicatorRows,
    Rows,
    SparseRows,
    as_indicators,
    as_rows,
    n_rows,
    squared_norms,
)

__all__ = [
    "DenseRows",
    "IndicatorRows",
    "Rows",
    "SharedRows",
    "SparseRows",
    "as_indicators",
    "as_rows",
    "n_rows",
    "row_add",
    "row_add_two",
    "row_clear",
    "row_dot",
    "row_push",
    "row_push_few",
    "row_scores",
    "row_wipe",
    "row_wipe_two",
    "rows_prefetch",
    "shared_rows",
    "squared_norms",
]
