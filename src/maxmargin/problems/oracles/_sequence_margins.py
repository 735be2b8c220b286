"""Margins of labels and segments of sequences, by forward and backward passes."""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import helper
from maxmargin.compiling.views import table
from maxmargin.inference.margins import path_margins, second_order_margins
from maxmargin.inference.second_order import second_order_viterbi
from maxmargin.inference.segment_margins import SegmentMarginWork, segment_margin_work, segment_margins
from maxmargin.inference.segments import Marked, segment_viterbi
from maxmargin.inference.viterbi import viterbi
from maxmargin.problems.layouts import SEGMENT_ROWS
from maxmargin.problems.margins import decode_with_margins, margin_workspace
from maxmargin.problems.oracle import oracle_workspace, output_size
from maxmargin.problems.oracles._transitions import LEAST, lay_out
from maxmargin.problems.oracles.chain import ChainOracle, ChainOracleWork
from maxmargin.problems.oracles.second_order import SecondOrderOracle, SecondOrderOracleWork, trigram_span
from maxmargin.problems.oracles.segments import (
    SegmentsOracle,
    SegmentsOracleWork,
    head_size,
    lay_out_segments,
)


class ChainMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `path_margins`."""

    oracle: ChainOracleWork
    turned: FloatArray
    rows: FloatArray


class SecondOrderMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `second_order_margins`."""

    oracle: SecondOrderOracleWork
    turned: FloatArray
    behind: FloatArray
    rows: FloatArray


class SegmentsMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `segment_margins`."""

    oracle: SegmentsOracleWork
    search: SegmentMarginWork


@margin_workspace.register(ChainOracle)
def chain_margin_workspace(chain: ChainOracle) -> ChainMarginWork:
    turned = aligned_zeros(chain.n_labels, chain.width)
    return ChainMarginWork(oracle_workspace(chain), turned, aligned_zeros(2, chain.width))


@decode_with_margins.register(ChainOracle)
def chain_decode_with_margins(chain, i, theta, y, margins, work):
    length, K, found = output_size(chain, i), chain.n_labels, work.oracle
    parts = table(theta, chain.width)
    lay_out(chain.transitions, parts[K : K + length], parts[:K], K, found)
    unary = found.unary[:length]
    viterbi(unary, found.pairs, K, found.value, y)
    path_margins(unary, found.pairs, K, found.value, work.turned, work.rows, y, margins)
    _lift_barriers(margins)


@helper
def _lift_barriers(margins):
    """Make margins infinite where every other output has a forbidden transition."""
    for t in range(margins.shape[0]):
        margins[t] = np.inf if margins[t] > -LEAST else margins[t]


@margin_workspace.register(SecondOrderOracle)
def second_order_margin_workspace(chain: SecondOrderOracle) -> SecondOrderMarginWork:
    K, width = chain.inner.n_labels, chain.inner.width
    turned, behind = aligned_zeros(K, K, width), aligned_zeros(2, K, width)
    return SecondOrderMarginWork(oracle_workspace(chain), turned, behind, aligned_zeros(2, width))


@decode_with_margins.register(SecondOrderOracle)
def second_order_decode_with_margins(chain, i, theta, y, margins, work):
    length, K, width = output_size(chain, i), chain.inner.n_labels, chain.inner.width
    parts, (first, stop) = table(theta, width), trigram_span(chain, i)
    triples, found = theta[first:stop].reshape((K, K, width)), work.oracle
    lay_out(chain.inner.transitions, parts[K : K + length], parts[:K], K, found.inner)
    unary, pairs = found.inner.unary[:length], found.inner.pairs
    second_order_viterbi(unary, pairs, triples, K, found.value, y)
    second_order_margins(
        unary, pairs, triples, K, found.value, work.turned, work.behind, work.rows, y, margins
    )
    _lift_barriers(margins)


@margin_workspace.register(SegmentsOracle)
def segments_margin_workspace(segments: SegmentsOracle) -> SegmentsMarginWork:
    search = segment_margin_work(segments.longest, segments.n_labels, segments.width)
    return SegmentsMarginWork(oracle_workspace(segments), search)


@decode_with_margins.register(SegmentsOracle)
def segments_decode_with_margins(segments, i, theta, y, margins, work):
    """Write, for each token, the margin of its segment."""
    length, K, found = output_size(segments, i), segments.n_labels, work.oracle
    pairs = table(theta[: K * segments.width], segments.width)
    parts = table(theta[head_size(segments) :], SEGMENT_ROWS * segments.width)[:length]
    lay_out_segments(segments, i, theta, found)
    none = Marked(found.unmarked[:length], segments.truth, found.fines)
    score = segment_viterbi(parts, pairs, K, none, found.trellis, y)
    segment_margins(parts, pairs, K, score, found.trellis, work.search, y, margins)
