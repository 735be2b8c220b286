r"""Oracles of slack rescaling for sequences, where the loss is a multiple of the number of wrong labels.

They find the best score for each number m of wrong labels, and then maximise
:math:`m (1 + \text{score} - \text{score of the truth})` over m.
"""

from maxmargin.compiling.views import table
from maxmargin.inference import counted
from maxmargin.inference.counted import Counted
from maxmargin.inference.counted_segments import (
    CountedSegments,
    best_segments_by_count,
    counted_segments,
    trace_segments_back,
)
from maxmargin.problems.layouts import SEGMENT_ROWS
from maxmargin.problems.oracles._transitions import lay_out
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.second_order import SecondOrderOracle, trigram_span
from maxmargin.problems.oracles.segments import SegmentsOracle, head_size, lay_out_segments
from maxmargin.problems.oracles.slack import check_counts, check_rescalable, slack_argmax, slack_workspace


@check_rescalable.register(ChainOracle)
def chain_check_rescalable(chain: ChainOracle, owner: str) -> None:
    check_counts(chain.cost, owner)


@slack_workspace.register(ChainOracle)
def chain_slack_workspace(chain: ChainOracle, length: int) -> Counted:
    return counted.counted_work(length, chain.width)


@slack_argmax.register(ChainOracle)
def chain_slack_argmax(chain, i, theta, y, work, own):
    truth = chain.labels[chain.tokens[i, 0] : chain.tokens[i, 1]]
    parts, K, length = table(theta, chain.width), chain.n_labels, truth.shape[0]
    lay_out(chain.transitions, parts[K : K + length], parts[:K], K, work)
    scores = own.scores[: length + 1]
    counted.best_by_count(work.unary[:length], work.pairs, truth, K, own.value)
    counted.best_scores(own.value, length, K, scores)
    counted.trace_back(own.value, work.pairs, truth, counted.costliest_count(scores), length - 1, K, y)


@slack_workspace.register(SecondOrderOracle)
def second_order_slack_workspace(chain: SecondOrderOracle, length: int) -> Counted:
    return counted.counted_work(length, chain.inner.n_labels, chain.inner.width)


@slack_argmax.register(SecondOrderOracle)
def second_order_slack_argmax(chain, i, theta, y, work, own):
    K, width, (first, stop) = chain.inner.n_labels, chain.inner.width, trigram_span(chain, i)
    truth = chain.inner.labels[chain.inner.tokens[i, 0] : chain.inner.tokens[i, 1]]
    parts, length, triples = (
        table(theta, width),
        truth.shape[0],
        theta[first:stop].reshape((K, K, width)),
    )
    lay_out(chain.inner.transitions, parts[K : K + length], parts[:K], K, work.inner)
    scores = own.scores[: length + 1]
    counted.best_pairs_by_count(work.inner.unary[:length], work.inner.pairs, triples, truth, K, own.value)
    counted.best_scores_of_pairs(own.value, length, K, scores)
    counted.trace_back_pairs(own.value, triples, truth, counted.costliest_count(scores), length - 1, K, y)


@check_rescalable.register(SegmentsOracle)
def segments_check_rescalable(segments: SegmentsOracle, owner: str) -> None:
    if segments.segment_cost.any():
        raise ValueError(
            f"{owner}: slack rescaling needs the loss 'normalized_hamming' or 'hamming', got 'segments'; "
            "use one of these, or rescale margins."
        )


@slack_workspace.register(SegmentsOracle)
def segments_slack_workspace(segments: SegmentsOracle, length: int) -> CountedSegments:
    return counted_segments(length, segments.n_labels)


@slack_argmax.register(SegmentsOracle)
def segments_slack_argmax(segments, i, theta, y, work, own):
    truth = segments.truth[segments.tokens[i, 0] : segments.tokens[i, 1]]
    length, width, K = truth.shape[0], segments.width, segments.n_labels
    pairs = table(theta[: K * width], width)
    parts = table(theta[head_size(segments) :], SEGMENT_ROWS * width)[:length]
    lay_out_segments(segments, i, theta, work)
    best_segments_by_count(parts, pairs, K, truth, work.trellis, own)
    m = counted.costliest_count(own.scores[: length + 1])
    trace_segments_back(length, pairs, K, truth, m, work.trellis, own, y)
