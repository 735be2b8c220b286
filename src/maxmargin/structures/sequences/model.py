r"""Sequences: one label per position, and weights for neighbouring labels, two or three in a row.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t} + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}

with feature weights W of each label, start and end biases b, e and transitions A, as in the paper's code, and
with weights B of trigrams in chains of second order only. The weights are a matrix of padded rows of labels:
one row per feature, then b, e, the rows of A, and those of B. The statistics of an output are laid out by
`maxmargin.structures.sequences.oracle`.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.compiling import not_inlined, subroutine
from maxmargin.compiling.loops import add_product, add_scaled, clear, copy, count_nonzero, table
from maxmargin.encoding.labels import (
    checked_count,
    checked_numbers,
    checked_offsets,
    cost_matrix,
    encode_labels,
    pad_columns,
)
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.runtime.arrays import Features, FloatArray, IntArray
from maxmargin.structures import feature_map
from maxmargin.structures.problem import Problem, builder, fitting, indexed_by_example, padded, spans
from maxmargin.structures.products import (
    TokenMapWork,
    head_norm2,
    multiply_products,
    no_products,
    prefetch_tokens,
    products_norm2,
    push_head,
    token_map_work,
    with_tables,
)
from maxmargin.structures.rows import Rows, as_rows, n_rows, row_push_few, row_scores, row_shrink
from maxmargin.structures.seen_rows import SeenRows, all_weights, kept_weights, seen_rows
from maxmargin.structures.sequences.encode import check_allowed, checked_forbidden, encode_forbidden
from maxmargin.structures.sequences.oracle import (
    ChainOracle,
    SecondOrderOracle,
    as_transitions,
    chain_statistics,
    trigram_statistics,
)

LOSSES = ("normalized_hamming", "hamming")


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

    rows: Rows | SeenRows
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
    return token_map_work(phi.rows, phi.longest, phi.width, phi.table_room)


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
    multiply_products(K * phi.width, phi, i, move, D, G, work)
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
    return products_norm2(phi, i, D, G, sums, work) + head_norm2(K * phi.width, move)


@feature_map.push.register(ChainMap)
def chain_push(phi, i, move, scale, w, work):
    first, length = phi.tokens[i, 0], phi.tokens[i, 1] - phi.tokens[i, 0]
    W, F, K = table(w, phi.width), phi.rows.n_columns, phi.n_labels
    D = table(move.delta, phi.width)
    for t in range(length):
        row_push_few(phi.rows, first + t, scale, D[K + t], W, work.nonzero)
    add_scaled(scale, D[K], W[F])
    add_scaled(scale, D[K + length - 1], W[F + 1])
    push_head(K * phi.width, move, scale, w[(F + 2) * phi.width :])


@feature_map.refresh.register(ChainMap)
def chain_refresh(phi, i, move, prox, v, w):
    first, width, K = phi.tokens[i, 0], phi.width, phi.n_labels
    D = table(move.delta, width)
    for t in range(phi.tokens[i, 1] - first):
        if count_nonzero(D[K + t]) > 0:
            row_shrink(phi.rows, first + t, width, 0, width, prox, v, w)
    feature_map.shrink(prox, v, w, phi.rows.n_columns * width, v.shape[0])


@feature_map.row_layout.register(ChainMap)
def chain_row_layout(phi: ChainMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(phi.tokens, phi.n_labels * phi.width, phi.width)


@feature_map.unpack.register(ChainMap)
def chain_unpack(phi: ChainMap, w: FloatArray) -> ChainWeights:
    found = unpack_chain(w, phi.rows.n_columns, phi.n_labels)
    if isinstance(phi.rows, SeenRows):
        return found._replace(unary=kept_weights(phi.rows, w))
    return found


@feature_map.completed.register(ChainMap)
def chain_completed(phi: ChainMap, w: FloatArray) -> FloatArray:
    return all_weights(phi.rows, w) if isinstance(phi.rows, SeenRows) else w


def unpack_chain(w: FloatArray, n_features: int, n_labels: int) -> ChainWeights:
    """Return the weights of a chain by meaning, as views of ``w``."""
    W, f = w.reshape(-1, padded(n_labels))[:, :n_labels], n_features
    return ChainWeights(W[:f].T, W[f], W[f + 1], W[f + 2 :])


class SecondOrderWeights(NamedTuple):
    """Weights by meaning; ``trigrams[i, j, k]`` scores label k after label j after label i."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray
    trigrams: FloatArray


class SecondOrderMap(NamedTuple):
    """Features of sequences, which are those of a chain: trigrams have none."""

    inner: ChainMap


@feature_map.map_sizes.register(SecondOrderMap)
def second_order_map_sizes(phi):
    chain = feature_map.map_sizes(phi.inner)
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    return feature_map.MapSizes(chain.examples, chain.weights + trigrams, chain.statistics + trigrams)


@feature_map.statistics_size.register(SecondOrderMap)
def second_order_statistics_size(phi, i):
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    return feature_map.statistics_size(phi.inner, i) + trigrams


@subroutine
def _first_weight(phi):
    """Index of the first weight of a trigram."""
    return (phi.inner.rows.n_columns + 2 + phi.inner.n_labels) * phi.inner.width


@feature_map.score.register(SecondOrderMap)
def second_order_score(phi, i, w, theta):
    first = feature_map.statistics_size(phi.inner, i)
    feature_map.score(phi.inner, i, w, theta)
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    copy(w[_first_weight(phi) :], theta[first : first + trigrams])


@feature_map.gram.register(SecondOrderMap)
def second_order_gram(phi, i, move, image, work):
    first = feature_map.statistics_size(phi.inner, i)
    feature_map.gram(phi.inner, i, move, image, work.inner)
    clear(image[first : first + trigram_statistics(phi.inner.n_labels, phi.inner.width)])
    for c in range(move.size[0]):
        if move.support[c] >= first:
            image[move.support[c]] = move.delta[move.support[c]]


@feature_map.norm2.register(SecondOrderMap)
def second_order_norm2(phi, i, move, image, work):
    first = feature_map.statistics_size(phi.inner, i)
    total = feature_map.norm2(phi.inner, i, move, image, work.inner)
    for c in range(move.size[0]):
        if move.support[c] >= first:
            entry = move.delta[move.support[c]]
            total += entry * entry  # the interpreter would round a power differently
    return total


@feature_map.push.register(SecondOrderMap)
def second_order_push(phi, i, move, scale, w, work):
    first, weights = feature_map.statistics_size(phi.inner, i), _first_weight(phi)
    feature_map.push(phi.inner, i, move, scale, w[:weights], work.inner)
    for c in range(move.size[0]):
        p = move.support[c]
        if p >= first:
            w[weights + (p - first)] += scale * move.delta[p]


@feature_map.refresh.register(SecondOrderMap)
def second_order_refresh(phi, i, move, prox, v, w):
    first, weights = feature_map.statistics_size(phi.inner, i), _first_weight(phi)
    feature_map.refresh(phi.inner, i, move, prox, v[:weights], w[:weights])
    for c in range(move.size[0]):
        if move.support[c] >= first:
            at = weights + np.int64(move.support[c]) - first
            feature_map.shrink(prox, v, w, at, at + 1)


@feature_map.row_layout.register(SecondOrderMap)
def second_order_row_layout(phi: SecondOrderMap) -> feature_map.RowLayout:
    return feature_map.row_layout(phi.inner)


@feature_map.unpack.register(SecondOrderMap)
def second_order_unpack(phi: SecondOrderMap, w: FloatArray) -> SecondOrderWeights:
    found = unpack_second_order(w, phi.inner.rows.n_columns, phi.inner.n_labels)
    return found._replace(unary=feature_map.unpack(phi.inner, w[: _first_weight(phi)]).unary)


def unpack_second_order(w: FloatArray, n_features: int, n_labels: int) -> SecondOrderWeights:
    """Return the weights of a second-order chain by meaning, as views of ``w``."""
    K, width = n_labels, padded(n_labels)
    end = (n_features + 2 + K) * width
    by_middle = w[end:].reshape(K, K, width)[:, :, :K]
    return SecondOrderWeights(*unpack_chain(w[:end], n_features, K), by_middle.transpose(1, 0, 2))


ChainProblem = Problem[ChainMap, ChainOracle]


class Chain:
    """Builders of sequence-labelling problems."""

    @staticmethod
    @builder("Chain")
    def from_sequences(
        X: object, y: object, *, loss: object = "normalized_hamming", forbidden: object = None
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
        """
        tokens = SequenceEncoder().fit_transform(X)
        labels, classes = encode_labels(y, tokens.offsets)
        matrix = encode_forbidden(forbidden, classes)
        if matrix is not None:
            check_allowed(labels, tokens.offsets, matrix, classes)
        return Chain.from_encoded(
            tokens.rows, tokens.offsets, labels, len(classes), loss=loss, forbidden=matrix
        )

    @staticmethod
    @builder("Chain")
    def from_encoded(
        features: Features,
        offsets: IntArray,
        labels: IntArray,
        n_labels: int,
        *,
        loss: object = "normalized_hamming",
        forbidden: ArrayLike | None = None,
        class_costs: FloatArray | None = None,
        all_possible_states: bool = True,
    ) -> ChainProblem:
        """Build a problem from the tokens' features and labels 0, ..., n_labels - 1.

        ``forbidden`` is a matrix from `encode_forbidden`, or None. If label k is true, a wrong token costs
        ``class_costs[k]`` times as much. Without all possible states, sparse features have weights for the
        labels that they occur with, and no others.
        """
        phi = _chain_map(features, offsets, n_labels)
        phi = fitting(Problem(phi, phi)).map
        cost = cost_matrix(loss, LOSSES, n_labels)
        cost = cost if class_costs is None else cost * class_costs[:, None]
        labels = checked_numbers(labels, int(phi.tokens[-1, 1]), n_labels)
        phi = with_tables(phi if all_possible_states else _with_seen(phi, labels))
        unscaled, lengths = isinstance(loss, str) and loss == "hamming", phi.tokens[:, 1] - phi.tokens[:, 0]
        scale = np.ones(len(lengths)) if unscaled else 1.0 / lengths
        return Problem(phi, _chain_oracle(phi, forbidden, labels, pad_columns(cost, phi.width), scale))

    @staticmethod
    @builder("Chain")
    def for_prediction(
        features: Features, offsets: IntArray, n_labels: int, forbidden: ArrayLike | None = None
    ) -> ChainProblem:
        """Build a problem that can be decoded but not trained on: it has no labels."""
        phi = _chain_map(features, offsets, n_labels)
        labels, cost = np.zeros(0, dtype=np.int64), np.zeros((0, phi.width))
        return Problem(phi, _chain_oracle(phi, forbidden, labels, cost, np.zeros(len(phi.tokens))))


def _chain_map(features: Features, offsets: IntArray, n_labels: int) -> ChainMap:
    """Return the map of checked features, without tables."""
    width, rows = padded(checked_count(n_labels, "n_labels")), as_rows(features)
    tokens = spans(checked_offsets(offsets, n_rows(rows)))
    longest = int((tokens[:, 1] - tokens[:, 0]).max())
    return ChainMap(rows, tokens, *no_products(rows, tokens), int(n_labels), width, longest)


def _with_seen(phi: ChainMap, labels: IntArray) -> ChainMap:
    """Return the map with weights only for pairs of a feature and a label that occur."""
    return phi._replace(rows=seen_rows(phi.rows, labels, phi.n_labels, phi.width))


def _chain_oracle(
    phi: ChainMap, forbidden: ArrayLike | None, labels: IntArray, cost: FloatArray, scale: FloatArray
) -> ChainOracle:
    """Return the oracle of the sequences of a map."""
    matrix = None if forbidden is None else checked_forbidden(forbidden, phi.n_labels)
    transitions = as_transitions(matrix, phi.width)
    return ChainOracle(phi.tokens, labels, cost, scale, transitions, phi.n_labels, phi.width, phi.longest)


SecondOrderProblem = Problem[SecondOrderMap, SecondOrderOracle]
Arguments = ParamSpec("Arguments")


def _with_trigrams(build: Callable[Arguments, ChainProblem]) -> Callable[Arguments, SecondOrderProblem]:
    """Return a builder of chains that also have trigram weights, if these fit into memory."""

    @builder("SecondOrderChain")
    @functools.wraps(build)
    def build_second_order(*args: Arguments.args, **kwargs: Arguments.kwargs) -> SecondOrderProblem:
        chain = build(*args, **kwargs)
        return fitting(Problem(SecondOrderMap(chain.map), SecondOrderOracle(chain.oracle)))

    return build_second_order


class SecondOrderChain:
    """Builders of sequence-labelling problems with trigram weights: those of `Chain`, with its arguments."""

    from_sequences = staticmethod(_with_trigrams(Chain.from_sequences))
    from_encoded = staticmethod(_with_trigrams(Chain.from_encoded))
    for_prediction = staticmethod(_with_trigrams(Chain.for_prediction))
