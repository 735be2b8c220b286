r"""Segmentations (semi-Markov chains): a sequence is cut into segments, each with a label.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(s, e, k) \in y} \Big(
          \sum_{t = s}^{e} \langle W_k, x_t \rangle + \langle F_k, x_s \rangle + \langle G_k, x_e \rangle
          + D_{k, e - s + 1} \Big) + b_{k_1} + \sum_{m > 1} A_{k_{m-1} k_m}

for segments of the tokens s, ..., e with label k. The weights are W for the features of all tokens of a
segment, F and G for those of its first and its last token, D for lengths, A for pairs of neighbouring labels
and b for the first label. Each label has a largest length.

Rows of W, F and G are adjacent, so that a token is scored for all three at once. The weights are such a
triple of rows for each feature, then A, D (length by length) and b. An output is given by codes: twice the
label of each token, and one more where a segment starts. See `segment_head` for the layout of its statistics.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.intrinsics import prefetch, table
from maxmargin.compiling.loops import add_product, add_scaled, clear, copy, scaled_copy, weighted_sum
from maxmargin.encoding.checked import checked_numbers, checked_offsets
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.runtime.arrays import Features, FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import shown
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.problem import Problem, fitting, indexed_by_example, padded, spans
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
from maxmargin.structures.rows import Rows, as_rows, n_rows, row_push_few, row_scores
from maxmargin.structures.segments.encode import EncodedSegments, encode_limits, encode_segments
from maxmargin.structures.segments.inference import (
    SEGMENT_ROWS,
    Marked,
    Trellis,
    new_trellis,
    segment_viterbi,
)

LOSSES = ("normalized_hamming", "hamming", "segments")


@helper
def write_differences(truth, y, width, lengths, head, index, value):
    """Write the entries of the statistics of ``truth`` minus those of ``y``, and return their number.

    The counts of lengths begin at index ``lengths``, the rows of tokens at index ``head``.
    """
    count = _write_tokens(truth, y, width, head, index, value, 0)
    count = _write_ends(truth, y, width, head, lengths, index, value, count)
    return _write_transitions(truth, y, width, index, value, count)


@helper
def _write_tokens(truth, y, width, head, index, value, count):
    """Write how labels and first tokens of segments differ, after ``count`` entries; return the new count."""
    for t in range(truth.shape[0]):
        a, b, row = truth[t], y[t], head + SEGMENT_ROWS * width * t
        if a != b:
            if a >> 1 != b >> 1:
                index[count], value[count] = row + (a >> 1), 1.0
                index[count + 1], value[count + 1] = row + (b >> 1), -1.0
                count += 2
            if a & 1:
                index[count], value[count] = row + width + (a >> 1), 1.0
                count += 1
            if b & 1:
                index[count], value[count] = row + width + (b >> 1), -1.0
                count += 1
    return count


@helper
def _write_ends(truth, y, width, head, lengths, index, value, count):
    """Write how last tokens of segments and lengths differ, after ``count`` entries; return the new count."""
    a_start, b_start = 0, 0
    for t in range(truth.shape[0]):
        a, b, row = truth[t] >> 1, y[t] >> 1, head + SEGMENT_ROWS * width * t + 2 * width
        a_start, b_start = (t if truth[t] & 1 else a_start), (t if y[t] & 1 else b_start)
        a_ends, b_ends = _is_last(truth, t, truth.shape[0]), _is_last(y, t, truth.shape[0])
        if a_ends and not (b_ends and a == b):
            index[count], value[count] = row + a, 1.0
            count += 1
        if b_ends and not (a_ends and a == b):
            index[count], value[count] = row + b, -1.0
            count += 1
        if a_ends and not (b_ends and a == b and a_start == b_start):
            index[count], value[count] = lengths + (t - a_start) * width + a, 1.0
            count += 1
        if b_ends and not (a_ends and a == b and a_start == b_start):
            index[count], value[count] = lengths + (t - b_start) * width + b, -1.0
            count += 1
    return count


@helper
def _write_transitions(truth, y, width, index, value, count):
    """Write how transitions differ, after ``count`` entries; return the new count."""
    for t in range(1, truth.shape[0]):
        a = (truth[t - 1] >> 1) * width + (truth[t] >> 1) if truth[t] & 1 else -1
        b = (y[t - 1] >> 1) * width + (y[t] >> 1) if y[t] & 1 else -1
        if a >= 0 and a != b:
            index[count], value[count] = a, 1.0
            count += 1
        if b >= 0 and a != b:
            index[count], value[count] = b, -1.0
            count += 1
    return count


@helper
def _is_last(codes, t, length):
    """Whether token t is the last of a segment."""
    return t + 1 == length or codes[t + 1] & 1 == 1


@helper
def wrong_tokens(truth, y):
    """Return the number of tokens whose codes differ."""
    count = 0
    for t in range(truth.shape[0]):
        count += truth[t] != y[t]
    return count


@helper
def segment_costs(truth, y, sizes, cost):
    """Return the cost of segments of y that are not true, and of true segments that y misses.

    ``sizes[t]`` is the number of tokens of the true segment that ends with token t, or 0.
    """
    start, total = 0, 0.0
    for t in range(truth.shape[0]):
        start = t if y[t] & 1 else start
        ends = _is_last(y, t, truth.shape[0])
        is_found = ends and sizes[t] == t + 1 - start and truth[t] >> 1 == y[t] >> 1
        if ends and not is_found:
            total += cost[y[t] >> 1]
        if sizes[t] > 0 and not is_found:
            total += cost[truth[t] >> 1]
    return total


@subroutine
def segment_head(n_labels, n_lengths, width):
    """Number of statistics of a segmentation before those of tokens: counts of transitions and of lengths.

    ``SEGMENT_ROWS`` rows of labels follow for each token: its label, its label again if it is the first of a
    segment, and again if it is the last.
    """
    return (n_labels + n_lengths) * width


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
def segments_map_workspace(phi: SegmentsMap) -> TokenMapWork:
    return token_map_work(phi.rows, phi.longest, SEGMENT_ROWS * phi.width, phi.table_room)


@feature_map.statistics_size.register(SegmentsMap)
def segments_statistics_size(phi, i):
    return _head(phi) + (phi.tokens[i, 1] - phi.tokens[i, 0]) * SEGMENT_ROWS * phi.width


@feature_map.foresee.register(SegmentsMap)
def segments_foresee(phi, i):
    prefetch_tokens(phi, i)


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
    multiply_products(head, phi, i, move, D, G, work)
    add_scaled(1.0, D[0][width : 2 * width], G[0][width : 2 * width])


@feature_map.norm2.register(SegmentsMap)
def segments_norm2(phi, i, move, image, work):
    length, width, head = phi.tokens[i, 1] - phi.tokens[i, 0], phi.width, _head(phi)
    D = table(move.delta[head:], SEGMENT_ROWS * width)[:length]
    G, sums = table(image[head:], SEGMENT_ROWS * width)[:length], image[: SEGMENT_ROWS * width]
    clear(sums)
    add_product(1.0, D[0][width : 2 * width], D[0][width : 2 * width], sums[:width])
    return products_norm2(phi, i, D, G, sums, work) + head_norm2(head, move)


@feature_map.push.register(SegmentsMap)
def segments_push(phi, i, move, scale, w, work):
    first, width, head = phi.tokens[i, 0], phi.width, _head(phi)
    n_features = phi.rows.n_columns * SEGMENT_ROWS * width
    W = table(w[:n_features], SEGMENT_ROWS * width)
    D = table(move.delta[head:], SEGMENT_ROWS * width)
    for t in range(phi.tokens[i, 1] - first):
        row_push_few(phi.rows, first + t, scale, D[t], W, work.nonzero)
    push_head(head, move, scale, w[n_features : n_features + head])
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


@indexed_by_example("tokens", "token_cost")
class SegmentsOracle(NamedTuple):
    """True segments, costs and length limits.

    Outputs are codes: twice the label of each token, and one more where a segment starts.

    Attributes
    ----------
    tokens : array of shape (n, 2)
        Sequence i has the tokens tokens[i, 0], ..., tokens[i, 1] - 1.
    truth : array of shape (n_tokens,)
        The true codes.
    sizes : array of shape (n_tokens,)
        Number of tokens of the true segment that ends with the token; 0 if none does.
    token_cost : array of shape (n,)
        Cost of a wrong code of a token, in each sequence.
    segment_cost : array of shape (width,)
        Cost, for each label, of a segment that is predicted but not true, or true but not predicted.
    limits : array of shape (n_lengths, width)
        In row d, zero if a segment of d + 1 tokens may have the label, else -inf.
    """

    tokens: IntArray
    truth: IntArray
    sizes: IntArray
    token_cost: FloatArray
    segment_cost: FloatArray
    limits: FloatArray
    n_labels: int
    n_lengths: int
    width: int
    longest: int


class SegmentsOracleWork(NamedTuple):
    """Work arrays.

    Attributes
    ----------
    trellis : Trellis
    unmarked : array
        0 for each token: no segment that ends there is marked.
    fines : array
        Deduction from the score of a true segment, for each label.
    """

    trellis: Trellis
    unmarked: IntArray
    fines: FloatArray


@oracle.output_sizes.register(SegmentsOracle)
def segments_output_sizes(segments):
    return oracle.OutputSizes(segments.longest, 10 * segments.longest)


@oracle.oracle_workspace.register(SegmentsOracle)
def segments_oracle_workspace(segments: SegmentsOracle) -> SegmentsOracleWork:
    return SegmentsOracleWork(
        new_trellis(segments.longest, segments.n_lengths, segments.width),
        np.zeros(segments.longest, dtype=np.int64),
        aligned_zeros(segments.width),
    )


@oracle.output_size.register(SegmentsOracle)
def segments_output_size(segments, i):
    return segments.tokens[i, 1] - segments.tokens[i, 0]


@oracle.foresee_truth.register(SegmentsOracle)
def segments_foresee_truth(segments, i):
    prefetch(segments.truth, segments.tokens[i, 0], segments.tokens[i, 1])


@oracle.argmax.register(SegmentsOracle)
def segments_argmax(segments, i, theta, y, work):
    first, stop = segments.tokens[i, 0], segments.tokens[i, 1]
    truth = segments.truth[first:stop]
    lay_out_segments(segments, i, theta, work)
    _charge_tokens(truth, segments.token_cost[i], work.trellis)
    for d in range(min(segments.n_lengths, stop - first)):
        add_scaled(1.0, segments.segment_cost, work.trellis.lengths[d])
    # Every segment is charged as if wrong. A true one is neither wrong nor missed: deduct twice the cost.
    scaled_copy(2.0, segments.segment_cost, work.fines)
    parts, pairs = scores_of_segments(segments, i, theta)
    marked = Marked(segments.sizes[first:stop], truth, work.fines)
    segment_viterbi(parts, pairs, segments.n_labels, marked, work.trellis, y)


@oracle.decode.register(SegmentsOracle)
def segments_decode(segments, i, theta, y, work):
    parts, pairs = scores_of_segments(segments, i, theta)
    marked = Marked(work.unmarked[: parts.shape[0]], segments.truth, work.fines)
    lay_out_segments(segments, i, theta, work)
    segment_viterbi(parts, pairs, segments.n_labels, marked, work.trellis, y)


@subroutine
def head_size(segments):
    """Number of statistics before those of tokens."""
    return segment_head(segments.n_labels, segments.n_lengths, segments.width)


@subroutine
def lay_out_segments(segments, i, theta, work):
    """Write the scores of tokens and of lengths to the trellis."""
    width, head, trellis = segments.width, head_size(segments), work.trellis
    parts = table(theta[head:], SEGMENT_ROWS * width)
    lengths = table(theta[segments.n_labels * width : head], width)
    length = segments.tokens[i, 1] - segments.tokens[i, 0]
    for t in range(length):
        copy(parts[t][:width], trellis.sums[t + 1])
        copy(parts[t][width : 2 * width], trellis.opened[t])
    for d in range(min(segments.n_lengths, length)):
        weighted_sum(1.0, lengths[d], 1.0, segments.limits[d], trellis.lengths[d])


@helper
def _charge_tokens(truth, cost, trellis):
    """Add the costs of wrong tokens, less a constant: the cost of all tokens."""
    for t in range(truth.shape[0]):
        k = truth[t] >> 1
        if truth[t] & 1:
            trellis.opened[t, k] -= cost
        else:
            trellis.sums[t + 1, k] -= cost
            trellis.opened[t, k] += cost


@subroutine
def scores_of_segments(segments, i, theta):
    """Return the scores of tokens, as rows, and of transitions."""
    width, length = segments.width, segments.tokens[i, 1] - segments.tokens[i, 0]
    tokens = table(theta[head_size(segments) :], SEGMENT_ROWS * width)[:length]
    return tokens, table(theta[: segments.n_labels * width], width)


@oracle.loss.register(SegmentsOracle)
def segments_loss(segments, i, y):
    first, stop = segments.tokens[i, 0], segments.tokens[i, 1]
    truth = segments.truth[first:stop]
    by_segment = segment_costs(truth, y, segments.sizes[first:stop], segments.segment_cost)
    return segments.token_cost[i] * wrong_tokens(truth, y) + by_segment


@oracle.psi.register(SegmentsOracle)
def segments_psi(segments, i, y, index, value):
    truth = segments.truth[segments.tokens[i, 0] : segments.tokens[i, 1]]
    width, lengths = segments.width, segments.n_labels * segments.width
    return write_differences(truth, y, width, lengths, head_size(segments), index, value)


SegmentsProblem = Problem[SegmentsMap, SegmentsOracle]


class Segments:
    """Builders of segmentation problems."""

    @staticmethod
    def from_sequences(
        X: object,
        y: object,
        *,
        loss: str = "normalized_hamming",
        max_length: object = None,
        owner: str = "Segments",
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
        owner : str
            The name that errors begin with.
        """
        tokens = SequenceEncoder(owner=owner).fit_transform(X)
        found = encode_segments(y, tokens.offsets, owner=owner)
        limits = encode_limits(max_length, found, tokens.offsets, owner=owner)
        return Segments.from_encoded(tokens.rows, tokens.offsets, found, limits, loss=loss, owner=owner)

    @staticmethod
    def from_encoded(
        features: Features,
        offsets: IntArray,
        found: EncodedSegments,
        limits: IntArray,
        *,
        loss: str = "normalized_hamming",
        owner: str = "Segments",
    ) -> SegmentsProblem:
        """Build a problem from the tokens' features, true segments and largest lengths of labels."""
        if loss not in LOSSES:
            raise ValueError(
                f"{owner}: loss must be one of {', '.join(map(repr, LOSSES))}, got {shown(loss)}."
            )
        phi = with_tables(_segments_map(features, offsets, limits, owner))
        check_choice(limits, owner)
        codes = _checked_codes(found.codes, phi, limits, owner)
        lengths, segment_cost = phi.tokens[:, 1] - phi.tokens[:, 0], np.zeros(phi.width)
        if loss == "segments":
            segment_cost[: len(found.classes)] = 1.0
        prices = {"normalized_hamming": 1.0 / lengths, "hamming": np.ones(len(lengths))}
        token_cost = prices.get(loss, np.zeros(len(lengths)))
        return _problem(phi, limits, codes, _true_sizes(codes), token_cost, segment_cost)

    @staticmethod
    def for_prediction(
        features: Features, offsets: IntArray, limits: IntArray, *, owner: str = "Segments"
    ) -> SegmentsProblem:
        """Build a problem that can be decoded but not trained on: it has no truth."""
        phi = _segments_map(features, offsets, limits, owner)
        nothing, free = np.zeros(0, dtype=np.int64), np.zeros(len(phi.tokens))
        return _problem(phi, limits, nothing, nothing, free, np.zeros(phi.width))


def _segments_map(features: Features, offsets: IntArray, limits: IntArray, owner: str) -> SegmentsMap:
    """Return the map of checked features; raise if its weights do not fit into memory."""
    rows, limits = as_rows(features, owner), _checked_limits(limits, owner)
    tokens = spans(checked_offsets(offsets, n_rows(rows), owner))
    sizes = len(limits), int(limits.max()), padded(len(limits)), int((tokens[:, 1] - tokens[:, 0]).max())
    phi = SegmentsMap(rows, tokens, *no_products(rows, tokens), *sizes)
    return fitting(Problem(phi, phi), owner).map


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


def check_choice(limits: IntArray, owner: str) -> None:
    """Raise unless there is something to learn; one label is enough if segments may differ."""
    if len(limits) == 1 and limits[0] == 1:
        raise ValueError(
            f"{owner}: y has one label and segments of one token only, so there is nothing to learn; "
            "add longer segments, other labels, or tokens outside of segments."
        )


def _checked_limits(limits: IntArray, owner: str) -> IntArray:
    """Return the largest length of each label; raise unless at least one label may have a segment."""
    array = checked_numbers(limits, len(limits), 2**32, owner, name="limits")
    if not len(array) or not array.any():
        raise ValueError(
            f"{owner}: limits must be lengths of the segments of each label, at least one > 0, got {limits}."
        )
    return array


def _checked_codes(codes: IntArray, phi: SegmentsMap, limits: IntArray, owner: str) -> IntArray:
    """Return the codes of all tokens; raise unless they are segments within the limits of their labels."""
    codes = checked_numbers(codes, n_rows(phi.rows), 2 * phi.n_labels, owner, name="codes of segments")
    begins = phi.tokens[:, 0]
    follows = codes & 1 == 0
    follows[1:] &= codes[:-1] >> 1 != codes[1:] >> 1
    follows[begins] = codes[begins] & 1 == 0
    if follows.any():
        raise ValueError(
            f"{owner}: codes must be odd where a segment starts, got {codes[follows.argmax()]} at token "
            f"{follows.argmax()}, which does not continue a segment of its label."
        )
    starts = np.flatnonzero(codes & 1)
    lengths, most = np.diff(np.append(starts, len(codes))), np.asarray(limits)[codes[starts] >> 1]
    if (lengths > most).any():
        at = int((lengths > most).argmax())
        raise ValueError(
            f"{owner}: the segment at token {starts[at]} must have at most {most[at]} tokens, the limit of "
            f"its label, got {lengths[at]}."
        )
    return codes


def _true_sizes(codes: IntArray) -> IntArray:
    """Return, for the last token of each segment, its number of tokens; 0 for other tokens."""
    first = np.flatnonzero(codes & 1)
    stops, sizes = np.append(first[1:], len(codes)), np.zeros(len(codes), dtype=np.int64)
    sizes[stops - 1] = stops - first
    return sizes
