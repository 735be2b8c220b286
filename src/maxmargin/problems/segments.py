r"""Segmentations (semi-Markov chains): a sequence is cut into segments, each with a label.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(s, e, k) \in y} \Big(
          \sum_{t = s}^{e} \langle W_k, x_t \rangle + \langle F_k, x_s \rangle + \langle G_k, x_e \rangle
          + D_{k, e - s + 1} \Big) + b_{k_1} + \sum_{m > 1} A_{k_{m-1} k_m}

for segments of the tokens s, ..., e with label k. The weights are W for the features of all tokens of a
segment, F and G for those of its first and its last token, D for lengths, A for pairs of neighbouring labels
and b for the first label. Each label has a largest length.
"""

import numpy as np

from maxmargin.arrays import Features, FloatArray, IntArray, aligned_zeros
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.checked import checked_numbers, checked_offsets
from maxmargin.encoding.segments import EncodedSegments, encode_limits, encode_segments
from maxmargin.problems.layouts import padded
from maxmargin.problems.maps._products import no_products, tabulated
from maxmargin.problems.maps.segments import SegmentsMap
from maxmargin.problems.oracles.segments import SegmentsOracle
from maxmargin.problems.problem import Problem, fitting
from maxmargin.problems.subsets import spans
from maxmargin.rows import as_rows, n_rows
from maxmargin.wording import shown

SegmentsProblem = Problem[SegmentsMap, SegmentsOracle]
LOSSES = ("normalized_hamming", "hamming", "segments")


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
        phi, segments = Segments.for_prediction(features, offsets, limits, owner=owner)
        check_choice(limits, owner)
        codes = _checked_codes(found.codes, phi, limits, owner)
        lengths, segment_cost = phi.tokens[:, 1] - phi.tokens[:, 0], np.zeros(phi.width)
        if loss == "segments":
            segment_cost[: len(found.classes)] = 1.0
        prices = {"normalized_hamming": 1.0 / lengths, "hamming": np.ones(len(lengths))}
        segments = segments._replace(
            truth=codes,
            sizes=_true_sizes(codes),
            token_cost=prices.get(loss, np.zeros(len(lengths))),
            segment_cost=segment_cost,
        )
        values, places, room = tabulated(phi.rows, phi.tokens)
        return Problem(phi._replace(products=values, product_spans=places, table_room=room), segments)

    @staticmethod
    def for_prediction(
        features: Features, offsets: IntArray, limits: IntArray, *, owner: str = "Segments"
    ) -> SegmentsProblem:
        """Build a problem that can be decoded but not trained on: it has no truth."""
        rows, limits = as_rows(features, owner), _checked_limits(limits, owner)
        tokens = spans(checked_offsets(offsets, n_rows(rows), owner))
        width, n_lengths, n = padded(len(limits)), int(limits.max()), len(tokens)
        sizes = len(limits), n_lengths, width, int((tokens[:, 1] - tokens[:, 0]).max())
        nothing = np.zeros(0, dtype=np.int64)
        oracle = SegmentsOracle(
            tokens, nothing, nothing, np.zeros(n), np.zeros(width), np.zeros((0, width)), *sizes
        )
        phi = SegmentsMap(rows, tokens, *no_products(rows, tokens), *sizes)
        problem = fitting(Problem(phi, oracle), owner)
        # The barriers may be large: make them only once the problem is known to fit into memory.
        return Problem(problem.map, oracle._replace(limits=_barriers(limits, n_lengths, width)))


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


def _barriers(limits: IntArray, n_lengths: int, width: int) -> FloatArray:
    """Return zero where a label may have a length, else -inf."""
    barriers = aligned_zeros(n_lengths, width)
    barriers[:, : len(limits)] = np.where(np.arange(n_lengths)[:, None] < limits, 0.0, -np.inf)
    return barriers


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
