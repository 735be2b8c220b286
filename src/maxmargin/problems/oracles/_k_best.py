"""The k best outputs for sequences, and their margins to the best."""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic, kernel
from maxmargin.compiling.views import table
from maxmargin.encoding.segments import Segment
from maxmargin.inference.k_best import KBestWork, k_best_paths, k_best_second_order, k_best_work
from maxmargin.inference.k_best_segments import KBestTrellis, k_best_segmentations, k_best_trellis
from maxmargin.problems.feature_map import score
from maxmargin.problems.layouts import SEGMENT_ROWS
from maxmargin.problems.oracle import oracle_workspace, output_size
from maxmargin.problems.oracles._transitions import LEAST, lay_out
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.second_order import SecondOrderOracle, trigram_span
from maxmargin.problems.oracles.segments import SegmentsOracle, head_size, lay_out_segments
from maxmargin.problems.problem import Problem, checked_weights, sizes
from maxmargin.wording import shown

SequenceOracle = ChainOracle | SecondOrderOracle | SegmentsOracle


class KBest(NamedTuple):
    """The best labellings of a sequence, best first.

    Attributes
    ----------
    labels : array of shape (at most k, length)
    margins : array of shape (at most k,)
        Score of the best minus the score of each.
    """

    labels: IntArray
    margins: FloatArray


class KBestSegments(NamedTuple):
    """The best segmentations of a sequence, best first.

    Attributes
    ----------
    segments : list of lists of tuples
        The segments ``(start, stop, label)`` of each of them.
    margins : array of shape (at most k,)
        Score of the best minus the score of each.
    """

    segments: list[list[Segment]]
    margins: FloatArray


def check_k(k: object, owner: str) -> int:
    """Return k; raise unless it is an int >= 1."""
    if not (isinstance(k, Integral) and int(k) >= 1):
        raise ValueError(f"{owner}: k must be an int >= 1, got {shown(k)}.")
    return int(k)


@generic
def search_space(oracle, k):
    """Return a workspace for the k best outputs of a sequence."""
    raise NotImplementedError


@generic
def find_k_best(oracle, i, theta, work, search, y, scores):
    """Write the k best outputs of sequence i to ``y``, and their scores to ``scores``, which has length k.

    ``work`` is the workspace of the oracle, ``search`` that of `search_space`.
    """
    raise NotImplementedError


@search_space.register(ChainOracle)
def chain_search_space(chain: ChainOracle, k: int) -> KBestWork:
    return k_best_work(chain.longest, chain.n_labels, k)


@find_k_best.register(ChainOracle)
def chain_find_k_best(chain, i, theta, work, search, y, scores):
    length, K = output_size(chain, i), chain.n_labels
    parts = table(theta, chain.width)
    lay_out(chain.transitions, parts[K : K + length], parts[:K], K, work)
    k_best_paths(work.unary[:length], work.pairs, search, y, scores)


@search_space.register(SecondOrderOracle)
def second_order_search_space(chain: SecondOrderOracle, k: int) -> KBestWork:
    return k_best_work(chain.inner.longest, chain.inner.n_labels**2, k)


@find_k_best.register(SecondOrderOracle)
def second_order_find_k_best(chain, i, theta, work, search, y, scores):
    length, K, width = output_size(chain, i), chain.inner.n_labels, chain.inner.width
    parts, (first, stop) = table(theta, width), trigram_span(chain, i)
    triples = theta[first:stop].reshape((K, K, width))
    lay_out(chain.inner.transitions, parts[K : K + length], parts[:K], K, work.inner)
    k_best_second_order(work.inner.unary[:length], work.inner.pairs, triples, K, search, y, scores)


@search_space.register(SegmentsOracle)
def segments_search_space(segments: SegmentsOracle, k: int) -> KBestTrellis:
    return k_best_trellis(segments.longest, segments.n_labels, segments.n_lengths, k)


@find_k_best.register(SegmentsOracle)
def segments_find_k_best(segments, i, theta, work, search, y, scores):
    width, K = segments.width, segments.n_labels
    pairs = table(theta[: K * width], width)
    parts = table(theta[head_size(segments) :], SEGMENT_ROWS * width)
    lay_out_segments(segments, i, theta, work)
    k_best_segmentations(parts[: output_size(segments, i)], pairs, K, work.trellis, search, y, scores)


@kernel
def _find(problem, i, w, theta, work, search, y, scores):
    """Score sequence i and write its best outputs."""
    score(problem.map, i, w, theta)
    find_k_best(problem.oracle, i, theta, work, search, y, scores)


def _most_outputs(oracle: SequenceOracle) -> int:
    """Return an upper bound on the number of outputs of a sequence.

    Each token has one of the labels, and may start a segment.
    """
    labelled = oracle.inner if isinstance(oracle, SecondOrderOracle) else oracle
    return (2 * int(labelled.n_labels)) ** int(labelled.longest)


def k_best_outputs(problem: Problem[object, SequenceOracle], w: FloatArray, k: int) -> list[KBest]:
    """Return the k best outputs for each sequence, or all outputs if there are fewer."""
    oracle, size, found = problem.oracle, sizes(problem), []
    k, w = min(k, _most_outputs(oracle)), checked_weights(problem, w)
    theta, work, search = np.zeros(size.statistics), oracle_workspace(oracle), search_space(oracle, k)
    y, scores = np.zeros((k, size.output), dtype=np.int64), np.zeros(k)
    for i in range(size.examples):
        _find(problem, i, w, theta, work, search, y, scores)
        count, length = int((scores > LEAST).sum()), output_size(oracle, i)
        found.append(KBest(y[:count, :length].copy(), scores[0] - scores[:count]))
    return found
