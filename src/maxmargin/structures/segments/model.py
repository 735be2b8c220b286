r"""Segmentations (semi-Markov chains): a sequence is cut into segments, each with a label.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(s, e, k) \in y} \Big(
          \sum_{t = s}^{e} \langle W_k, x_t \rangle + \langle F_k, x_s \rangle + \langle G_k, x_e \rangle
          + D_{k, e - s + 1} \Big) + b_{k_1} + \sum_{m > 1} A_{k_{m-1} k_m}

for segments of the tokens s, ..., e with label k. The weights are W for the features of all tokens of a
segment, F and G for those of its first and its last token, D for lengths, A for pairs of neighbouring labels
and b for the first label. Each label has a largest length.

Rows of W, F and G are adjacent, so that a token is scored for all three at once. The weights are such a
triple of rows for each feature, then A, D (length by length) and b. An output is given by codes: twice the
label of each token, and one more where a segment starts. See `head_size` for the layout of its statistics.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling.loops import add_product, add_scaled, clear, copy, count_nonzero, table
from maxmargin.encoding.labels import checked_numbers, checked_offsets
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.runtime.arrays import Features, FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import shown
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
from maxmargin.structures.segments.encode import EncodedSegments, encode_limits, encode_segments
from maxmargin.structures.segments.inference import SEGMENT_ROWS
from maxmargin.structures.segments.oracle import SegmentsOracle, head_size

LOSSES = ("normalized_hamming", "hamming", "segments")


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


@feature_map.map_sizes.register(SegmentsMap)
def segments_map_sizes(phi):
    head, row = head_size(phi), SEGMENT_ROWS * phi.width
    n_weights = phi.rows.n_columns * row + head + phi.width
    return feature_map.MapSizes(phi.tokens.shape[0], n_weights, head + phi.longest * row)


@feature_map.map_workspace.register(SegmentsMap)
def segments_map_workspace(phi: SegmentsMap) -> TokenMapWork:
    return token_map_work(phi.rows, phi.longest, SEGMENT_ROWS * phi.width, phi.table_room)


@feature_map.statistics_size.register(SegmentsMap)
def segments_statistics_size(phi, i):
    return head_size(phi) + (phi.tokens[i, 1] - phi.tokens[i, 0]) * SEGMENT_ROWS * phi.width


@feature_map.foresee.register(SegmentsMap)
def segments_foresee(phi, i):
    prefetch_tokens(phi, i)


@feature_map.score.register(SegmentsMap)
def segments_score(phi, i, w, theta):
    first, width, head = phi.tokens[i, 0], phi.width, head_size(phi)
    n_features = phi.rows.n_columns * SEGMENT_ROWS * width
    W = table(w[:n_features], SEGMENT_ROWS * width)
    parts = table(theta[head:], SEGMENT_ROWS * width)
    copy(w[n_features : n_features + head], theta[:head])
    for t in range(phi.tokens[i, 1] - first):
        row_scores(phi.rows, first + t, W, parts[t])
    add_scaled(1.0, w[n_features + head :], parts[0][width : 2 * width])


@feature_map.gram.register(SegmentsMap)
def segments_gram(phi, i, move, image, work):
    length, width, head = phi.tokens[i, 1] - phi.tokens[i, 0], phi.width, head_size(phi)
    copy(move.delta[:head], image[:head])
    D = table(move.delta[head:], SEGMENT_ROWS * width)[:length]
    G = table(image[head:], SEGMENT_ROWS * width)[:length]
    multiply_products(head, phi, i, move, D, G, work)
    add_scaled(1.0, D[0][width : 2 * width], G[0][width : 2 * width])


@feature_map.norm2.register(SegmentsMap)
def segments_norm2(phi, i, move, image, work):
    length, width, head = phi.tokens[i, 1] - phi.tokens[i, 0], phi.width, head_size(phi)
    D = table(move.delta[head:], SEGMENT_ROWS * width)[:length]
    G, sums = table(image[head:], SEGMENT_ROWS * width)[:length], image[: SEGMENT_ROWS * width]
    clear(sums)
    add_product(1.0, D[0][width : 2 * width], D[0][width : 2 * width], sums[:width])
    return products_norm2(phi, i, D, G, sums, work) + head_norm2(head, move)


@feature_map.push.register(SegmentsMap)
def segments_push(phi, i, move, scale, w, work):
    first, width, head = phi.tokens[i, 0], phi.width, head_size(phi)
    n_features = phi.rows.n_columns * SEGMENT_ROWS * width
    W = table(w[:n_features], SEGMENT_ROWS * width)
    D = table(move.delta[head:], SEGMENT_ROWS * width)
    for t in range(phi.tokens[i, 1] - first):
        row_push_few(phi.rows, first + t, scale, D[t], W, work.nonzero)
    push_head(head, move, scale, w[n_features : n_features + head])
    add_scaled(scale, D[0][width : 2 * width], w[n_features + head :])


@feature_map.refresh.register(SegmentsMap)
def segments_refresh(phi, i, move, prox, v, w):
    first, width = phi.tokens[i, 0], SEGMENT_ROWS * phi.width
    D = table(move.delta[head_size(phi) :], width)
    for t in range(phi.tokens[i, 1] - first):
        if count_nonzero(D[t]) > 0:
            row_shrink(phi.rows, first + t, width, 0, width, prox, v, w)
    feature_map.shrink(prox, v, w, phi.rows.n_columns * width, v.shape[0])


@feature_map.row_layout.register(SegmentsMap)
def segments_row_layout(phi: SegmentsMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(phi.tokens, int(head_size(phi)), SEGMENT_ROWS * phi.width)


@feature_map.unpack.register(SegmentsMap)
def segments_unpack(phi: SegmentsMap, w: FloatArray) -> SegmentWeights:
    return unpack_segments(w, phi.rows.n_columns, phi.n_labels, phi.n_lengths)


def unpack_segments(w: FloatArray, n_features: int, n_labels: int, n_lengths: int) -> SegmentWeights:
    """Return the weights of segments by meaning, as views of ``w``."""
    rows = w.reshape(-1, padded(n_labels))[:, :n_labels]
    features, rest = rows[: SEGMENT_ROWS * n_features], rows[SEGMENT_ROWS * n_features :]
    inside, first, last = (features[row::SEGMENT_ROWS].T for row in range(SEGMENT_ROWS))
    return SegmentWeights(inside, first, last, rest[-1], rest[:n_labels], rest[n_labels:-1].T)


SegmentsProblem = Problem[SegmentsMap, SegmentsOracle]


class Segments:
    """Builders of segmentation problems."""

    @staticmethod
    @builder("Segments")
    def from_sequences(
        X: object, y: object, *, loss: str = "normalized_hamming", max_length: object = None
    ) -> SegmentsProblem:
        """Build a problem from sequences of features and their segments.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or
            one iterable of strings per token.
        y : list of lists
            The segments ``(start, stop, label)`` of each sequence, of the tokens start, ..., stop - 1, or its
            tags ``"B-label"``, ``"I-label"`` and ``"O"``. Labels are strings or ints, numbered in sorted
            order. A token outside of segments becomes a segment of one token, with an additional label.
        loss : {"normalized_hamming", "hamming", "segments"}
            Fraction of tokens with a wrong tag (default): a wrong label, or a wrong or missing start of a
            segment; number of such tokens; or number of segments that are predicted but not true, or true
            but not predicted, not counting tokens outside.
        max_length : int or dict {label: int}, optional
            Largest number of tokens of a segment, for all labels or for each; by default that of the longest
            segment of the label in y.
        """
        tokens = SequenceEncoder().fit_transform(X)
        found = encode_segments(y, tokens.offsets)
        limits = encode_limits(max_length, found, tokens.offsets)
        return Segments.from_encoded(tokens.rows, tokens.offsets, found, limits, loss=loss)

    @staticmethod
    @builder("Segments")
    def from_encoded(
        features: Features,
        offsets: IntArray,
        found: EncodedSegments,
        limits: IntArray,
        *,
        loss: str = "normalized_hamming",
    ) -> SegmentsProblem:
        """Build a problem from the tokens' features, true segments and largest lengths of labels."""
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {shown(loss)}.")
        phi = with_tables(_segments_map(features, offsets, limits))
        check_choice(limits)
        codes = _checked_codes(found.codes, phi, limits)
        lengths, segment_cost = phi.tokens[:, 1] - phi.tokens[:, 0], np.zeros(phi.width)
        if loss == "segments":
            segment_cost[: len(found.classes)] = 1.0
        prices = {"normalized_hamming": 1.0 / lengths, "hamming": np.ones(len(lengths))}
        token_cost = prices.get(loss, np.zeros(len(lengths)))
        return _problem(phi, limits, codes, _true_sizes(codes), token_cost, segment_cost)

    @staticmethod
    @builder("Segments")
    def for_prediction(features: Features, offsets: IntArray, limits: IntArray) -> SegmentsProblem:
        """Build a problem that can be decoded but not trained on: it has no truth."""
        phi = _segments_map(features, offsets, limits)
        nothing, free = np.zeros(0, dtype=np.int64), np.zeros(len(phi.tokens))
        return _problem(phi, limits, nothing, nothing, free, np.zeros(phi.width))


def _segments_map(features: Features, offsets: IntArray, limits: IntArray) -> SegmentsMap:
    """Return the map of checked features; raise if its weights do not fit into memory."""
    rows, limits = as_rows(features), _checked_limits(limits)
    tokens = spans(checked_offsets(offsets, n_rows(rows)))
    sizes = len(limits), int(limits.max()), padded(len(limits)), int((tokens[:, 1] - tokens[:, 0]).max())
    phi = SegmentsMap(rows, tokens, *no_products(rows, tokens), *sizes)
    return fitting(Problem(phi, phi)).map


def _problem(
    phi: SegmentsMap,
    limits: IntArray,
    truth: IntArray,
    sizes: IntArray,
    token_cost: FloatArray,
    segment_cost: FloatArray,
) -> SegmentsProblem:
    """Return the problem of the sequences of a map."""
    barriers = aligned_zeros(phi.n_lengths, phi.width)
    barriers[:, : phi.n_labels] = np.where(np.arange(phi.n_lengths)[:, None] < limits, 0.0, -np.inf)
    own = phi.n_labels, phi.n_lengths, phi.width, phi.longest
    return Problem(phi, SegmentsOracle(phi.tokens, truth, sizes, token_cost, segment_cost, barriers, *own))


def check_choice(limits: IntArray) -> None:
    """Raise unless there is something to learn; one label is enough if segments may differ."""
    if len(limits) == 1 and limits[0] == 1:
        raise ValueError(
            "y has one label and segments of one token only, so there is nothing to learn; "
            "add longer segments, other labels, or tokens outside of segments."
        )


def _checked_limits(limits: IntArray) -> IntArray:
    """Return the largest length of each label; raise unless at least one label may have a segment."""
    array = checked_numbers(limits, len(limits), 2**32, name="limits")
    if not len(array) or not array.any():
        raise ValueError(
            f"limits must be lengths of the segments of each label, at least one > 0, got {limits}."
        )
    return array


def _checked_codes(codes: IntArray, phi: SegmentsMap, limits: IntArray) -> IntArray:
    """Return the codes of all tokens; raise unless they are segments within the limits of their labels."""
    codes = checked_numbers(codes, n_rows(phi.rows), 2 * phi.n_labels, name="codes of segments")
    begins = phi.tokens[:, 0]
    follows = codes & 1 == 0
    follows[1:] &= codes[:-1] >> 1 != codes[1:] >> 1
    follows[begins] = codes[begins] & 1 == 0
    if follows.any():
        raise ValueError(
            f"codes must be odd where a segment starts, got {codes[follows.argmax()]} at token "
            f"{follows.argmax()}, which does not continue a segment of its label."
        )
    starts = np.flatnonzero(codes & 1)
    lengths, most = np.diff(np.append(starts, len(codes))), np.asarray(limits)[codes[starts] >> 1]
    if (lengths > most).any():
        at = int((lengths > most).argmax())
        raise ValueError(
            f"the segment at token {starts[at]} must have at most {most[at]} tokens, the limit of "
            f"its label, got {lengths[at]}."
        )
    return codes


def _true_sizes(codes: IntArray) -> IntArray:
    """Return, for the last token of each segment, its number of tokens; 0 for other tokens."""
    first = np.flatnonzero(codes & 1)
    stops, sizes = np.append(first[1:], len(codes)), np.zeros(len(codes), dtype=np.int64)
    sizes[stops - 1] = stops - first
    return sizes
