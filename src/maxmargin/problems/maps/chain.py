r"""The feature map of chains: from labels at positions and transitions to weights, and back to scores.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t}

The weights are a matrix of padded rows of labels: one row per feature, then b, e and the rows of A.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, UIntArray
from maxmargin.compiling import apart
from maxmargin.compiling.views import table
from maxmargin.loops import add_product, add_scaled, clear, copy
from maxmargin.problems import feature_map
from maxmargin.problems.layouts import chain_statistics, padded
from maxmargin.problems.maps import _products
from maxmargin.problems.maps._tables import TableWork, new_table_work
from maxmargin.problems.subsets import indexed_by_example
from maxmargin.rows import Rows, row_push_few, row_scores


class ChainWeights(NamedTuple):
    """Weights of a chain by meaning; ``transitions[j, k]`` scores label k after label j."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray


@indexed_by_example("tokens", "product_spans")
class ChainMap(NamedTuple):
    """Features of sequences.

    Attributes
    ----------
    rows : Rows
        Features of all tokens of all sequences, one after another.
    tokens : array of shape (n, 2)
        Sequence i has the tokens tokens[i, 0], ..., tokens[i, 1] - 1.
    products : array
        For each sequence the matrix of inner products of its tokens' features. Steps within its block use
        these instead of the features.
    product_spans : array of shape (n, 2)
        Where the matrix of each sequence begins and ends.
    table_room : array of shape (2,)
        The most tokens and entries of a sequence whose inner products are computed at each step.
    """

    rows: Rows
    tokens: IntArray
    products: FloatArray
    product_spans: IntArray
    table_room: IntArray
    n_labels: int
    width: int
    longest: int


class ChainMapWork(NamedTuple):
    """Work arrays.

    Attributes
    ----------
    stream : array
        The feature vector of a move, for sequences without a table of inner products.
    nonzero : array
        Positions or labels where a move is not zero.
    table : TableWork
        The inner products of the tokens of one sequence, for those without a table.
    """

    stream: FloatArray
    nonzero: UIntArray
    table: TableWork


@feature_map.map_sizes.register(ChainMap)
def chain_map_sizes(phi):
    n_weights = (phi.rows.n_columns + 2 + phi.n_labels) * phi.width
    statistics = chain_statistics(phi.n_labels, phi.width, phi.longest)
    return feature_map.MapSizes(phi.tokens.shape[0], n_weights, statistics)


@feature_map.map_workspace.register(ChainMap)
def chain_map_workspace(phi: ChainMap) -> ChainMapWork:
    nonzero = np.zeros(max(phi.longest, phi.width) + 1, dtype=np.uint32)
    stream = _products.stream_buffer(phi.rows, phi.longest, phi.width)
    return ChainMapWork(stream, nonzero, new_table_work(phi.table_room))


@feature_map.statistics_size.register(ChainMap)
def chain_statistics_size(phi, i):
    return chain_statistics(phi.n_labels, phi.width, phi.tokens[i, 1] - phi.tokens[i, 0])


@feature_map.foresee.register(ChainMap)
def chain_foresee(phi, i):
    _products.prefetch_tokens(phi, i)


@feature_map.score.register(ChainMap)
def chain_score(phi, i, w, theta):
    first, length = phi.tokens[i, 0], phi.tokens[i, 1] - phi.tokens[i, 0]
    W, F, K = table(w, phi.width), phi.rows.n_columns, phi.n_labels
    parts = table(theta, phi.width)
    copy(w[(F + 2) * phi.width :], theta[: K * phi.width])
    for t in range(length):
        row_scores(phi.rows, first + t, W, parts[K + t])
    add_scaled(1.0, W[F], parts[K])
    add_scaled(1.0, W[F + 1], parts[K + length - 1])


@feature_map.gram.register(ChainMap)
@apart
def chain_gram(phi, i, move, image, work):
    length, K = phi.tokens[i, 1] - phi.tokens[i, 0], phi.n_labels
    delta, parts = table(move.delta, phi.width), table(image, phi.width)
    copy(move.delta[: K * phi.width], image[: K * phi.width])
    D, G = delta[K : K + length], parts[K : K + length]
    if _products.has_table(phi, i):
        _products.multiply_products(phi, i, move, D, G)
    else:
        _products.compute_products(K * phi.width, phi, i, move, D, G, work)
    add_scaled(1.0, D[0], G[0])
    add_scaled(1.0, D[length - 1], G[length - 1])


@feature_map.norm2.register(ChainMap)
def chain_norm2(phi, i, move, image, work):
    length, K = phi.tokens[i, 1] - phi.tokens[i, 0], phi.n_labels
    delta, parts = table(move.delta, phi.width), table(image, phi.width)
    D, G, sums = delta[K : K + length], parts[K : K + length], parts[0]
    clear(sums)
    add_product(1.0, D[0], D[0], sums)
    add_product(1.0, D[length - 1], D[length - 1], sums)
    return _products.products_norm2(phi, i, D, G, sums, work) + _products.transitions_norm2(phi, move)


@feature_map.push.register(ChainMap)
def chain_push(phi, i, move, scale, w, work):
    first, length = phi.tokens[i, 0], phi.tokens[i, 1] - phi.tokens[i, 0]
    W, F, K = table(w, phi.width), phi.rows.n_columns, phi.n_labels
    D = table(move.delta, phi.width)
    for t in range(length):
        row_push_few(phi.rows, first + t, scale, D[K + t], W, work.nonzero)
    add_scaled(scale, D[K], W[F])
    add_scaled(scale, D[K + length - 1], W[F + 1])
    _products.push_transitions(phi, move, scale, w[(F + 2) * phi.width :])


@feature_map.row_layout.register(ChainMap)
def chain_row_layout(phi: ChainMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(phi.tokens, phi.n_labels * phi.width, phi.width)


@feature_map.unpack.register(ChainMap)
def chain_unpack(phi: ChainMap, w: FloatArray) -> ChainWeights:
    return unpack_chain(w, phi.rows.n_columns, phi.n_labels)


def unpack_chain(w: FloatArray, n_features: int, n_labels: int) -> ChainWeights:
    """Return the weights of a chain by meaning, as views of ``w``."""
    W, f = w.reshape(-1, padded(n_labels))[:, :n_labels], n_features
    return ChainWeights(W[:f].T, W[f], W[f + 1], W[f + 2 :])
