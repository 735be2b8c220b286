r"""Segmentations (semi-Markov chains): a sequence is cut into segments, each with a label.

.. math:: \langle w, \phi(x, y) \rangle = \sum_{(s, e, k) \in y} \Big(
          \sum_{t = s}^{e} \langle W_k, x_t \rangle + \langle F_k, x_s \rangle + \langle G_k, x_e \rangle
          + D_{k, e - s + 1} \Big) + b_{k_1} + \sum_{m > 1} A_{k_{m-1} k_m}

for segments of the tokens s, ..., e with label k: weights W of the features of all tokens, F and G of those
of the first and the last, a score of each length D, of each label after each A, and of the first label b.
Each label has a largest length. Rows of labels are contiguous and padded to ``width``; those of W, F and G
stand side by side, so that a token is scored for all three at once. The weights are such a triple for each
feature, then A, D (length by length) and b; the statistics of an output are the counts of A and D, then a
triple for each token: its label, once more if it is the first of a segment, and if it is the last.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.encoding import SequenceEncoder
from maxmargin.encoding.checked import checked_numbers, checked_offsets
from maxmargin.encoding.segments import EncodedSegments, encode_limits, encode_segments
from maxmargin.inference.segments import PARTS, Trellis, new_trellis
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.problems._labels import padded
from maxmargin.problems._products import image_work, tabulated
from maxmargin.rows import Rows, as_rows, n_rows

LOSSES = ("normalized_hamming", "hamming", "segments")


class SegmentWeights(NamedTuple):
    """Weights of segments by what they mean.

    ``transitions[j, k]`` scores label k after label j, ``lengths[k, d]`` label k of segments of d + 1 tokens.
    """

    inside: FloatArray
    first: FloatArray
    last: FloatArray
    start: FloatArray
    transitions: FloatArray
    lengths: FloatArray


class SegmentsWork(NamedTuple):
    """Work arrays.

    Attributes
    ----------
    trellis : Trellis
        Of the oracles.
    unmarked : array
        No start of a segment, for each token.
    fines : array
        By how much a true segment scores less, for each label.
    image : array
        Of `gram`, for sequences without a table.
    nonzero : array
        Positions or labels where a move is not zero.
    """

    trellis: Trellis
    unmarked: IntArray
    fines: FloatArray
    image: FloatArray
    nonzero: np.ndarray[Any, np.dtype[np.uint32]]


class Segments(NamedTuple):
    """A problem of segmenting sequences; made by `from_sequences`.

    Outputs are codes: twice the label of each token, and one more where a segment starts.

    Attributes
    ----------
    rows : Rows
        Features of all tokens of all sequences, one after another.
    offsets : array of shape (n + 1,)
        Sequence i has the tokens offsets[i], ..., offsets[i + 1] - 1.
    truth : array of shape (n_tokens,)
        The true codes.
    starts : array of shape (n_tokens,)
        Where in its sequence the true segment starts that ends with the token; -1 if none does.
    token_cost : array of shape (n,)
        What a wrong code of a token costs, in each sequence.
    segment_cost : array of shape (width,)
        What a segment of each label costs that is predicted but not true, or true but not predicted.
    limits : array of shape (n_lengths, width)
        In row d, zero if a segment of d + 1 tokens may have the label, else -inf.
    products, product_offsets : arrays
        As of a `Chain`.
    """

    rows: Rows
    offsets: IntArray
    truth: IntArray
    starts: IntArray
    token_cost: FloatArray
    segment_cost: FloatArray
    limits: FloatArray
    products: FloatArray
    product_offsets: IntArray
    n_labels: int
    n_lengths: int
    width: int
    longest: int

    @classmethod
    def from_sequences(
        cls, X: Any, y: Any, *, loss: str = "normalized_hamming", max_length: Any = None
    ) -> "Segments":
        """Build the problem from sequences of features and their segments.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or
            one iterable of strings per token.
        y : list of lists
            The segments ``(start, stop, label)`` of each sequence, of the tokens start, ..., stop - 1, or its
            tags ``"B-label"``, ``"I-label"`` and ``"O"``. Labels are strings or ints, numbered in sorted
            order; each token outside of segments is one of its own, with one label more.
        loss : {"normalized_hamming", "hamming", "segments"}
            Share of tokens with a wrong tag (default), a wrong label or a segment that starts where none does
            or the other way round; their number; or the number of segments that are predicted but not true
            or true but not predicted, not counting tokens outside.
        max_length : int or dict {label: int}, optional
            Largest number of tokens of a segment, or of one with each label; by default that of the longest
            in y with the label.
        """
        tokens = SequenceEncoder(owner="Segments").fit_transform(X)
        found = encode_segments(y, tokens.offsets, owner="Segments")
        limits = encode_limits(max_length, found, tokens.offsets, owner="Segments")
        return cls.from_encoded(tokens.rows, tokens.offsets, found, limits, loss=loss)

    @classmethod
    def from_encoded(
        cls,
        features: Any,
        offsets: IntArray,
        found: EncodedSegments,
        limits: IntArray,
        *,
        loss: str = "normalized_hamming",
    ) -> "Segments":
        """Build the problem from the tokens' features, true segments and largest lengths of labels."""
        if loss not in LOSSES:
            raise ValueError(f"Segments: loss must be one of {', '.join(map(repr, LOSSES))}, got {loss!r}.")
        problem = cls.for_prediction(features, offsets, limits)
        check_choice(limits, "Segments")
        codes, lengths = _checked_codes(found.codes, problem, limits), np.diff(problem.offsets)
        price = {"normalized_hamming": 1.0 / lengths, "hamming": np.ones(len(lengths))}
        if loss == "segments":
            problem.segment_cost[: len(found.classes)] = 1.0
        problem = problem._replace(
            truth=codes,
            starts=_true_starts(codes, problem.offsets),
            token_cost=price.get(loss, np.zeros(len(lengths))),
        )
        return tabulated(problem)

    @classmethod
    def for_prediction(cls, features: Any, offsets: IntArray, limits: IntArray) -> "Segments":
        """Build a problem that can be decoded but not trained on: it has no truth."""
        rows, limits = as_rows(features, "Segments"), _checked_limits(limits)
        offsets = checked_offsets(offsets, n_rows(rows), "Segments")
        width, n_lengths = padded(len(limits)), int(limits.max())
        problem = cls(
            rows=rows,
            offsets=offsets,
            truth=np.zeros(0, dtype=np.int64),
            starts=np.zeros(0, dtype=np.int64),
            token_cost=np.zeros(0),
            segment_cost=np.zeros(width),
            limits=np.zeros((0, width)),
            products=np.zeros(0),
            product_offsets=np.zeros(0, dtype=np.int64),
            n_labels=len(limits),
            n_lengths=n_lengths,
            width=width,
            longest=int(np.diff(offsets).max()),
        )
        return fitting(problem, "Segments")._replace(limits=_barriers(limits, n_lengths, width))

    def unpack(self, w: FloatArray) -> SegmentWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return unpack_segments(w, self.rows.n_columns, self.n_labels, self.n_lengths)


def unpack_segments(w: FloatArray, n_features: int, n_labels: int, n_lengths: int) -> SegmentWeights:
    """Return the weights of segments by what they mean, as views of ``w``."""
    rows = w.reshape(-1, padded(n_labels))[:, :n_labels]
    features, rest = rows[: PARTS * n_features], rows[PARTS * n_features :]
    inside, first, last = (features[part::PARTS].T for part in range(PARTS))
    return SegmentWeights(inside, first, last, rest[-1], rest[:n_labels], rest[n_labels:-1].T)


def check_choice(limits: IntArray, owner: str) -> None:
    """Raise unless there is something to choose between; one label is enough where segments may differ."""
    if len(limits) == 1 and limits[0] == 1:
        raise ValueError(
            f"{owner}: y has one label and segments of one token only, so that there is nothing to learn; "
            "add longer segments, other labels, or tokens outside of segments."
        )


def _checked_limits(limits: Any) -> IntArray:
    """Return the largest length of each label, if one may be a segment."""
    array = checked_numbers(limits, len(limits), 2**32, "Segments", name="limits")
    if not len(array) or not array.any():
        raise ValueError(
            f"Segments: limits must be lengths of the segments of each label, at least one > 0, got {limits}."
        )
    return array


def _barriers(limits: IntArray, n_lengths: int, width: int) -> FloatArray:
    """Return zero where a label may have a length, else -inf."""
    barriers = aligned_zeros(n_lengths, width)
    barriers[:, : len(limits)] = np.where(np.arange(n_lengths)[:, None] < limits, 0.0, -np.inf)
    return barriers


def _checked_codes(codes: Any, problem: Segments, limits: IntArray) -> IntArray:
    """Return the codes of all tokens, if they are segments of lengths that their labels may have."""
    codes = checked_numbers(
        codes, n_rows(problem.rows), 2 * problem.n_labels, "Segments", name="codes of segments"
    )
    follows = codes & 1 == 0
    follows[1:] &= codes[:-1] >> 1 != codes[1:] >> 1
    follows[problem.offsets[:-1]] = codes[problem.offsets[:-1]] & 1 == 0
    if follows.any():
        raise ValueError(
            f"Segments: codes of segments must be odd where one starts, got {codes[follows.argmax()]} at "
            f"token {follows.argmax()}, which continues none of its label."
        )
    starts = np.flatnonzero(codes & 1)
    lengths, most = np.diff(np.append(starts, len(codes))), np.asarray(limits)[codes[starts] >> 1]
    if (lengths > most).any():
        at = int((lengths > most).argmax())
        raise ValueError(
            f"Segments: the segment at token {starts[at]} must have at most {most[at]} tokens, the limit of "
            f"its label, got {lengths[at]}."
        )
    return codes


def _true_starts(codes: IntArray, offsets: IntArray) -> IntArray:
    """For the last token of each segment, where in its sequence the segment starts; for others -1."""
    begins = np.flatnonzero(codes & 1)
    starts = np.full(len(codes), -1, dtype=np.int64)
    owners = np.searchsorted(offsets, begins, side="right") - 1
    starts[np.append(begins[1:], len(codes)) - 1] = begins - offsets[owners]
    return starts


@subroutine
def head_size(problem):
    """The number of statistics that belong to no token: transitions and lengths."""
    return (problem.n_labels + problem.n_lengths) * problem.width


@protocol.sizes.register(Segments)
def segments_sizes(problem):
    head, row, longest = head_size(problem), PARTS * problem.width, problem.longest
    n_weights = problem.rows.n_columns * row + head + problem.width
    return protocol.Sizes(
        problem.offsets.shape[0] - 1, n_weights, head + longest * row, longest, 10 * longest
    )


@protocol.workspace.register(Segments)
def segments_workspace(problem):
    longest, row = problem.longest, PARTS * problem.width
    return SegmentsWork(
        new_trellis(longest, problem.n_lengths, problem.width),
        np.full(longest, -1, dtype=np.int64),
        aligned_zeros(problem.width),
        image_work(problem, row),
        np.zeros(max(longest, row) + 1, dtype=np.uint32),
    )


@protocol.output_size.register(Segments)
def segments_output_size(problem, i):
    return problem.offsets[i + 1] - problem.offsets[i]


@protocol.statistics_size.register(Segments)
def segments_statistics_size(problem, i):
    return head_size(problem) + (problem.offsets[i + 1] - problem.offsets[i]) * PARTS * problem.width
