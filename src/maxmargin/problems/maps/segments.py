r"""The feature map of segmentations: from labels of tokens, lengths and transitions to weights, and back.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(s, e, k) \in y} \Big(
          \sum_{t = s}^{e} \langle W_k, x_t \rangle + \langle F_k, x_s \rangle + \langle G_k, x_e \rangle
          + D_{k, e - s + 1} \Big) + b_{k_1} + \sum_{m > 1} A_{k_{m-1} k_m}

Rows of W, F and G are adjacent, so that a token is scored for all three at once. The weights are such a
triple of rows for each feature, then A, D (length by length) and b.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import subroutine
from maxmargin.compiling.views import table
from maxmargin.loops import add_product, add_scaled, clear, copy
from maxmargin.problems import feature_map
from maxmargin.problems.layouts import SEGMENT_ROWS, padded, segment_head
from maxmargin.problems.maps import _products
from maxmargin.problems.maps._tables import new_table_work
from maxmargin.problems.maps.chain import ChainMapWork
from maxmargin.problems.subsets import indexed_by_example
from maxmargin.rows import Rows, row_push_few, row_scores


class SegmentWeights(NamedTuple):
    """Weights of segments by meaning.

    ``transitions[j, k]`` scores label k after label j, ``lengths[k, d]`` label k for d + 1 tokens.
    """

    inside: FloatArray
    first: FloatArray
    last: FloatArray
    start: FloatArray
    transitions: FloatArray
    lengths: FloatArray


@indexed_by_example("tokens", "product_spans")
class SegmentsMap(NamedTuple):
    """Features of sequences.

    Attributes
    ----------
    rows : Rows
        Features of all tokens of all sequences, one after another.
    tokens : array of shape (n, 2)
        Sequence i has the tokens tokens[i, 0], ..., tokens[i, 1] - 1.
    products, product_spans, table_room : arrays
        The inner products of the tokens of each sequence; see `ChainMap`.
    """

    rows: Rows
    tokens: IntArray
    products: FloatArray
    product_spans: IntArray
    table_room: IntArray
    n_labels: int
    n_lengths: int
    width: int
    longest: int


@subroutine
def _head(phi):
    """Number of statistics before those of tokens."""
    return segment_head(phi.n_labels, phi.n_lengths, phi.width)


@feature_map.map_sizes.register(SegmentsMap)
def segments_map_sizes(phi):
    head, row = _head(phi), SEGMENT_ROWS * phi.width
    n_weights = phi.rows.n_columns * row + head + phi.width
    return feature_map.MapSizes(phi.tokens.shape[0], n_weights, head + phi.longest * row)


@feature_map.map_workspace.register(SegmentsMap)
def segments_map_workspace(phi: SegmentsMap) -> ChainMapWork:
    row = SEGMENT_ROWS * phi.width
    nonzero = np.zeros(max(phi.longest, row) + 1, dtype=np.uint32)
    stream = _products.stream_buffer(phi.rows, phi.longest, row)
    return ChainMapWork(stream, nonzero, new_table_work(phi.table_room))


@feature_map.statistics_size.register(SegmentsMap)
def segments_statistics_size(phi, i):
    return _head(phi) + (phi.tokens[i, 1] - phi.tokens[i, 0]) * SEGMENT_ROWS * phi.width


@feature_map.foresee.register(SegmentsMap)
def segments_foresee(phi, i):
    _products.prefetch_tokens(phi, i)


@feature_map.score.register(SegmentsMap)
def segments_score(phi, i, w, theta):
    first, width, head = phi.tokens[i, 0], phi.width, _head(phi)
    n_features = phi.rows.n_columns * SEGMENT_ROWS * width
    W = table(w[:n_features], SEGMENT_ROWS * width)
    parts = table(theta[head:], SEGMENT_ROWS * width)
    copy(w[n_features : n_features + head], theta[:head])
    for t in range(phi.tokens[i, 1] - first):
        row_scores(phi.rows, first + t, W, parts[t])
    add_scaled(1.0, w[n_features + head :], parts[0][width : 2 * width])


@feature_map.gram.register(SegmentsMap)
def segments_gram(phi, i, move, image, work):
    length, width, head = phi.tokens[i, 1] - phi.tokens[i, 0], phi.width, _head(phi)
    copy(move.delta[:head], image[:head])
    D = table(move.delta[head:], SEGMENT_ROWS * width)[:length]
    G = table(image[head:], SEGMENT_ROWS * width)[:length]
    if _products.has_table(phi, i):
        _products.multiply_products_behind(head, phi, i, move, D, G)
    else:
        _products.compute_products(head, phi, i, move, D, G, work)
    add_scaled(1.0, D[0][width : 2 * width], G[0][width : 2 * width])


@feature_map.norm2.register(SegmentsMap)
def segments_norm2(phi, i, move, image, work):
    length, width, head = phi.tokens[i, 1] - phi.tokens[i, 0], phi.width, _head(phi)
    D = table(move.delta[head:], SEGMENT_ROWS * width)[:length]
    G, sums = table(image[head:], SEGMENT_ROWS * width)[:length], image[: SEGMENT_ROWS * width]
    clear(sums)
    add_product(1.0, D[0][width : 2 * width], D[0][width : 2 * width], sums[:width])
    return _products.products_norm2(phi, i, D, G, sums, work) + _products.head_norm2(head, move)


@feature_map.push.register(SegmentsMap)
def segments_push(phi, i, move, scale, w, work):
    first, width, head = phi.tokens[i, 0], phi.width, _head(phi)
    n_features = phi.rows.n_columns * SEGMENT_ROWS * width
    W = table(w[:n_features], SEGMENT_ROWS * width)
    D = table(move.delta[head:], SEGMENT_ROWS * width)
    for t in range(phi.tokens[i, 1] - first):
        row_push_few(phi.rows, first + t, scale, D[t], W, work.nonzero)
    _products.push_head(head, move, scale, w[n_features : n_features + head])
    add_scaled(scale, D[0][width : 2 * width], w[n_features + head :])


@feature_map.row_layout.register(SegmentsMap)
def segments_row_layout(phi: SegmentsMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(phi.tokens, int(_head(phi)), SEGMENT_ROWS * phi.width)


@feature_map.unpack.register(SegmentsMap)
def segments_unpack(phi: SegmentsMap, w: FloatArray) -> SegmentWeights:
    return unpack_segments(w, phi.rows.n_columns, phi.n_labels, phi.n_lengths)


def unpack_segments(w: FloatArray, n_features: int, n_labels: int, n_lengths: int) -> SegmentWeights:
    """Return the weights of segments by meaning, as views of ``w``."""
    rows = w.reshape(-1, padded(n_labels))[:, :n_labels]
    features, rest = rows[: SEGMENT_ROWS * n_features], rows[SEGMENT_ROWS * n_features :]
    inside, first, last = (features[row::SEGMENT_ROWS].T for row in range(SEGMENT_ROWS))
    return SegmentWeights(inside, first, last, rest[-1], rest[:n_labels], rest[n_labels:-1].T)
