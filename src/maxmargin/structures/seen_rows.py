r"""Rows whose features have weights for the labels that they were seen with, and for no others.

Most features of large vocabularies occur with one or two labels of forty. A weight that is not kept is zero,
so with K the pairs of a feature and a label that have one,

.. math:: \theta_{tl} = \sum_{f : (f, l) \in K} x_{tf} \, w_{fl}, \qquad
          (\Phi^\top \Phi \delta)_{tl} = \sum_s \delta_{sl} \sum_{f : (f, l) \in K} x_{tf} \, x_{sf} .

This is another model, with an optimum and certificates of its own. As each label has inner products of its
own, there are no tables of them: :math:`\Phi \delta` is computed first, for sequences of any length.

A feature that occurs with many labels, as few do, has weights for all: tokens are made of such features
mostly, and a whole row of weights is added as fast as some of its entries. So a table of weights, of the
width that a map of tokens has, begins with the rows of these *common* features. The weights of the pairs of
the others follow, one after another.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.loops import add_product, add_scaled, clear, count_nonzero, list_nonzero
from maxmargin.encoding.kinds import pieces, row_pieces
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray, aligned_zeros
from maxmargin.structures import products
from maxmargin.structures.feature_map import shrink
from maxmargin.structures.rows import (
    IndicatorRows,
    Rows,
    SparseRows,
    row_entry,
    row_push_few,
    row_scores,
    row_shrink,
    row_span,
    rows_prefetch,
)

# A feature is common if it occurs with more than this share of the labels.
_COMMON = 1 / 4


class SeenRows(NamedTuple):
    """Sparse rows, and where the weights of their features are.

    Attributes
    ----------
    stored : SparseRows or IndicatorRows
    spans : array of shape (n_features, 2)
        Of a common feature: its row of the table, and the width of the table. Of another: its first pair,
        and how many it has.
    labels : array
        The label of each pair.
    common : int
        Number of common features.
    width : int
        That of the table. Pair e is the entry ``common * width + e``, counted row by row.
    n_columns : int
        Number of rows of the table.
    """

    stored: SparseRows | IndicatorRows
    spans: UIntArray
    labels: UIntArray
    common: int
    width: int
    n_columns: int

    @property
    def start(self) -> IntArray:
        """Where the entries of each row begin and end."""
        return self.stored.start


def seen_rows(rows: Rows | SeenRows, labels: IntArray, n_labels: int, width: int) -> Rows | SeenRows:
    """Return rows with weights for the pairs of a feature and the label of a row that occur.

    Dense rows have all pairs, and are returned as they are.
    """
    if not isinstance(rows, SparseRows | IndicatorRows):
        return rows
    seen = np.zeros((rows.n_columns, n_labels), dtype=np.bool_)
    for first, stop in row_pieces(rows.start):
        label = np.repeat(labels[first:stop], np.diff(rows.start[first : stop + 1]))
        seen[rows.columns[rows.start[first] : rows.start[stop]], label] = True
    counts = np.count_nonzero(seen, axis=1)
    is_common = counts > _COMMON * n_labels
    seen[is_common] = False
    counts[is_common] = 0
    spans = np.column_stack([np.cumsum(counts) - counts, counts]).astype(np.uint32)
    common = int(np.count_nonzero(is_common))
    spans[is_common] = np.column_stack([np.arange(common), np.full(common, width)])
    found = [np.nonzero(seen[piece])[1].astype(np.uint32) for piece in pieces(*seen.shape)]
    n_columns = common - (-int(counts.sum()) // width)
    return SeenRows(rows, spans, np.concatenate(found), common, width, n_columns)


def kept_weights(rows: SeenRows, w: FloatArray) -> FloatArray:
    """Return the weights of features, those of common ones with padding, in a vector of all, as a view."""
    return w[: rows.common * rows.width + len(rows.labels)]


def all_weights(rows: SeenRows, w: FloatArray) -> FloatArray:
    """Return a vector of weights with a row of the table for each feature; what is not kept is zero."""
    n_features, width, end = len(rows.spans), rows.width, rows.n_columns * rows.width
    every = aligned_zeros(n_features * width + len(w) - end)
    table = every[: n_features * width].reshape(-1, width)
    is_common = _is_common(rows)
    counts = np.where(is_common, 0, rows.spans[:, 1])
    table[is_common] = w[: rows.common * width].reshape(-1, width)
    table[np.repeat(np.arange(n_features), counts), rows.labels] = kept_weights(rows, w)[
        rows.common * width :
    ]
    every[n_features * width :] = w[end:]
    return every


def _is_common(rows: SeenRows) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = rows.spans[:, 1] == rows.width
    return found


@row_scores.register(SeenRows)
def seen_rows_row_scores(rows, t, W, out):
    clear(out)
    s, first, stop, _ = row_span(rows.stored, t)
    for p in range(first, stop):
        f, x = row_entry(rows.stored, s, p)
        begin, count = rows.spans[f, 0], rows.spans[f, 1]
        if count == rows.width:
            add_scaled(x, W[begin], out)
        else:
            for e in range(begin, begin + count):
                r, c = _place(rows, e)
                out[rows.labels[e]] += x * W[r, c]


@row_push_few.register(SeenRows)
def seen_rows_row_push_few(rows, t, scale, delta, W, nonzero):
    n_nonzero = list_nonzero(delta, nonzero)
    if n_nonzero > 0:
        s, first, stop, _ = row_span(rows.stored, t)
        for p in range(first, stop):
            f, x = row_entry(rows.stored, s, p)
            begin, count = rows.spans[f, 0], rows.spans[f, 1]
            if count == rows.width:
                for k in range(n_nonzero):
                    W[begin, nonzero[k]] += scale * x * delta[nonzero[k]]
            else:
                for e in range(begin, begin + count):
                    r, c = _place(rows, e)
                    W[r, c] += scale * x * delta[rows.labels[e]]


@row_shrink.register(SeenRows)
def seen_rows_row_shrink(rows, t, width, first, stop, prox, v, w):
    """All weights of the features of row t: maps of tokens ask for no others."""
    s, begin, end, _ = row_span(rows.stored, t)
    for p in range(begin, end):
        f = row_entry(rows.stored, s, p)[0]
        at, count = np.int64(rows.spans[f, 0]), np.int64(rows.spans[f, 1])
        at = at * width if count == width else at + rows.common * width
        shrink(prox, v, w, at, at + count)


@subroutine
def _wipe(rows, t, W, sums):
    """Set the weights of the features of row t to zero, and add their squares to ``sums``, label by label."""
    s, first, stop, _ = row_span(rows.stored, t)
    for p in range(first, stop):
        f = row_entry(rows.stored, s, p)[0]
        begin, count = rows.spans[f, 0], rows.spans[f, 1]
        if count == rows.width:
            add_product(1.0, W[begin], W[begin], sums)
            clear(W[begin])
        else:
            for e in range(begin, begin + count):
                r, c = _place(rows, e)
                sums[rows.labels[e]] += W[r, c] * W[r, c]
                W[r, c] = 0.0


@helper
def _place(rows, e):
    """Return the row and the column of pair e; 32-bit numbers divide fast."""
    entry, width = np.uint32(rows.common * rows.width + e), np.uint32(rows.width)
    r = entry // width
    return r, np.uint32(entry - r * width)


@rows_prefetch.register(SeenRows)
def seen_rows_rows_prefetch(rows, first, stop):
    rows_prefetch(rows.stored, first, stop)


@products.stream_products.register(SeenRows)
def seen_rows_stream_products(rows, first, D, G, work):
    _push_all(rows, first, D, work)
    for t in range(D.shape[0]):
        row_scores(rows, first + t, work.stream, G[t])
    sums = work.stream[rows.n_columns]  # nobody asks for them
    _wipe_all(rows, first, D, sums, work)
    clear(sums)


@products.stream_norm2.register(SeenRows)
def seen_rows_stream_norm2(rows, first, D, G, sums, work):
    _push_all(rows, first, D, work)
    _wipe_all(rows, first, D, sums, work)


@subroutine
def _push_all(rows, first, D, work):
    """Write ``X^T D`` to the stream."""
    for t in range(D.shape[0]):
        row_push_few(rows, first + t, 1.0, D[t], work.stream, work.nonzero)


@subroutine
def _wipe_all(rows, first, D, sums, work):
    """Set the stream to zero, and add the squares of its entries to ``sums``."""
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            _wipe(rows, first + t, work.stream, sums)


@products.tabulated.register(SeenRows)
def seen_rows_tabulated(rows: SeenRows, tokens: IntArray) -> products.Products:
    return products.no_products(rows.stored, tokens)._replace(room=np.zeros(2, dtype=np.int64))


@products.fill_table.register(SeenRows)
def seen_rows_fill_table(rows, first, stop, work):
    """Do nothing; it is never called, as no table has room."""


@products.token_map_work.register(SeenRows)
def seen_rows_token_map_work(
    rows: SeenRows, longest: int, width: int, room: IntArray
) -> products.TokenMapWork:
    nonzero = np.zeros(max(longest, width) + 1, dtype=np.uint32)
    stream = aligned_zeros(rows.n_columns + 1, width)
    return products.TokenMapWork(stream, nonzero[:0], nonzero, products.new_table_work(room))
