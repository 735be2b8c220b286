r"""First-order chains: one label per position, and a weight for each pair of neighbours.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t}

with feature weights W of each label, start and end biases b, e and transitions A, as in the paper's code.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.compiling import not_inlined, subroutine
from maxmargin.compiling.intrinsics import table
from maxmargin.compiling.loops import add_product, add_scaled, clear, copy
from maxmargin.encoding.checked import checked_count, checked_numbers, checked_offsets
from maxmargin.encoding.labels import cost_matrix, encode_labels, pad_columns
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.runtime.arrays import Features, FloatArray, IntArray
from maxmargin.structures import feature_map
from maxmargin.structures.problem import Problem, fitting, indexed_by_example, padded, spans
from maxmargin.structures.products import (
    TokenMapWork,
    compute_products,
    has_table,
    multiply_products,
    new_table_work,
    no_products,
    prefetch_tokens,
    products_norm2,
    push_transitions,
    stream_buffer,
    tabulated,
    transitions_norm2,
)
from maxmargin.structures.rows import Rows, as_rows, n_rows, row_push_few, row_scores
from maxmargin.structures.sequences.encode import check_allowed, checked_forbidden, encode_forbidden
from maxmargin.structures.sequences.oracle import ChainOracle, as_transitions


@subroutine
def chain_statistics(n_labels, width, length):
    """Number of statistics of a chain: counts of transitions, then a row of labels for each position."""
    return (n_labels + length) * width


# The feature map of chains: from labels at positions and transitions to weights, and back to scores.
#
# .. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
#           + \sum_{t > 1} A_{y_{t-1} y_t}
#
# The weights are a matrix of padded rows of labels: one row per feature, then b, e and the rows of A.


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


@feature_map.map_sizes.register(ChainMap)
def chain_map_sizes(phi):
    n_weights = (phi.rows.n_columns + 2 + phi.n_labels) * phi.width
    statistics = chain_statistics(phi.n_labels, phi.width, phi.longest)
    return feature_map.MapSizes(phi.tokens.shape[0], n_weights, statistics)


@feature_map.map_workspace.register(ChainMap)
def chain_map_workspace(phi: ChainMap) -> TokenMapWork:
    nonzero = np.zeros(max(phi.longest, phi.width) + 1, dtype=np.uint32)
    stream = stream_buffer(phi.rows, phi.longest, phi.width)
    return TokenMapWork(stream, nonzero, new_table_work(phi.table_room))


@feature_map.statistics_size.register(ChainMap)
def chain_statistics_size(phi, i):
    return chain_statistics(phi.n_labels, phi.width, phi.tokens[i, 1] - phi.tokens[i, 0])


@feature_map.foresee.register(ChainMap)
def chain_foresee(phi, i):
    prefetch_tokens(phi, i)


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
@not_inlined
def chain_gram(phi, i, move, image, work):
    length, K = phi.tokens[i, 1] - phi.tokens[i, 0], phi.n_labels
    delta, parts = table(move.delta, phi.width), table(image, phi.width)
    copy(move.delta[: K * phi.width], image[: K * phi.width])
    D, G = delta[K : K + length], parts[K : K + length]
    if has_table(phi, i):
        multiply_products(phi, i, move, D, G)
    else:
        compute_products(K * phi.width, phi, i, move, D, G, work)
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
    return products_norm2(phi, i, D, G, sums, work) + transitions_norm2(phi, move)


@feature_map.push.register(ChainMap)
def chain_push(phi, i, move, scale, w, work):
    first, length = phi.tokens[i, 0], phi.tokens[i, 1] - phi.tokens[i, 0]
    W, F, K = table(w, phi.width), phi.rows.n_columns, phi.n_labels
    D = table(move.delta, phi.width)
    for t in range(length):
        row_push_few(phi.rows, first + t, scale, D[K + t], W, work.nonzero)
    add_scaled(scale, D[K], W[F])
    add_scaled(scale, D[K + length - 1], W[F + 1])
    push_transitions(phi, move, scale, w[(F + 2) * phi.width :])


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


ChainProblem = Problem[ChainMap, ChainOracle]
LOSSES = ("normalized_hamming", "hamming")


class Chain:
    """Builders of sequence-labelling problems."""

    @staticmethod
    def from_sequences(
        X: object,
        y: object,
        *,
        loss: object = "normalized_hamming",
        forbidden: object = None,
        owner: str = "Chain",
    ) -> ChainProblem:
        """Build a problem from sequences of features and of labels.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or
            one iterable of strings per token.
        y : list of sequences of labels
            Strings or ints; labels are numbered in sorted order.
        loss : "normalized_hamming", "hamming" or array of shape (n_labels, n_labels)
            Fraction of wrong labels (default, as in the paper; `ChainSVC` has "hamming"), number of wrong
            labels, or ``loss[a, b]`` for the cost of label b where the truth is a. Costs are averaged over
            the sequence, unlike "hamming", which adds them up.
        forbidden : list of pairs (before, after) of labels, or "bio", optional
            Transitions that no output may have; None means the start or the end. "bio" forbids ``I-x`` that
            does not continue ``B-x`` or ``I-x``.
        owner : str
            The name that errors begin with.
        """
        tokens = SequenceEncoder(owner=owner).fit_transform(X)
        labels, classes = encode_labels(y, tokens.offsets, owner=owner)
        matrix = encode_forbidden(forbidden, classes, owner=owner)
        if matrix is not None:
            check_allowed(labels, tokens.offsets, matrix, classes, owner=owner)
        return Chain.from_encoded(
            tokens.rows, tokens.offsets, labels, len(classes), loss=loss, forbidden=matrix, owner=owner
        )

    @staticmethod
    def from_encoded(
        features: Features,
        offsets: IntArray,
        labels: IntArray,
        n_labels: int,
        *,
        loss: object = "normalized_hamming",
        forbidden: ArrayLike | None = None,
        class_costs: FloatArray | None = None,
        owner: str = "Chain",
    ) -> ChainProblem:
        """Build a problem from the tokens' features and labels 0, ..., n_labels - 1.

        ``forbidden`` is a matrix from `encode_forbidden`, or None. If label k is true, a wrong token costs
        ``class_costs[k]`` times as much.
        """
        problem = Chain.for_prediction(features, offsets, n_labels, forbidden, owner=owner)
        phi, chain = problem
        cost = cost_matrix(loss, LOSSES, n_labels, owner)
        cost = cost if class_costs is None else cost * class_costs[:, None]
        unscaled = isinstance(loss, str) and loss == "hamming"
        lengths = phi.tokens[:, 1] - phi.tokens[:, 0]
        chain = chain._replace(
            labels=checked_numbers(labels, n_rows(phi.rows), n_labels, owner),
            cost=pad_columns(cost, phi.width),
            scale=np.ones(len(lengths)) if unscaled else 1.0 / lengths,
        )
        values, places, room = tabulated(phi.rows, phi.tokens)
        return Problem(phi._replace(products=values, product_spans=places, table_room=room), chain)

    @staticmethod
    def for_prediction(
        features: Features,
        offsets: IntArray,
        n_labels: int,
        forbidden: ArrayLike | None = None,
        *,
        owner: str = "Chain",
    ) -> ChainProblem:
        """Build a problem that can be decoded but not trained on: it has no labels."""
        width, rows = padded(checked_count(n_labels, owner, "n_labels")), as_rows(features, owner)
        tokens = spans(checked_offsets(offsets, n_rows(rows), owner))
        matrix = None if forbidden is None else checked_forbidden(forbidden, n_labels, owner)
        sizes = int(n_labels), width, int((tokens[:, 1] - tokens[:, 0]).max())
        labels, cost, scale = np.zeros(0, dtype=np.int64), np.zeros((0, width)), np.zeros(len(tokens))
        problem = Problem(
            ChainMap(rows, tokens, *no_products(rows, tokens), *sizes),
            ChainOracle(tokens, labels, cost, scale, as_transitions(matrix, width), *sizes),
        )
        return fitting(problem, owner)
