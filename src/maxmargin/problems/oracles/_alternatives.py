"""The best output that differs from the prediction in a given part: the one that defines the margin.

Only Python calls these functions, for single examples. The margin is known: if a score changes by more than
the margin, another output becomes the best.
"""

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import python_generic
from maxmargin.compiling.views import table
from maxmargin.inference.segments import Marked, segment_viterbi
from maxmargin.problems.layouts import SEGMENT_ROWS
from maxmargin.problems.oracle import decode, output_size
from maxmargin.problems.oracles.arborescence import ArborescenceOracle
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.graph import GraphOracle
from maxmargin.problems.oracles.matching import MatchingOracle
from maxmargin.problems.oracles.multiclass import MulticlassOracle
from maxmargin.problems.oracles.second_order import SecondOrderOracle
from maxmargin.problems.oracles.segments import (
    SegmentsOracle,
    SegmentsOracleWork,
    head_size,
    lay_out_segments,
)


def _enough(theta: FloatArray, margin: float) -> float:
    """Return a change above the margin, of the magnitude of the scores, so that adding it loses no digits."""
    return 2.0 * margin + (float(np.abs(theta).max(initial=0.0)) or 1.0)


@python_generic
def part_entry(oracle: object, i: int, y: IntArray, p: int) -> tuple[int, float]:
    """Return the index of a score, and a sign that tells which outputs include this score.

    The sign is 1.0 if these are exactly the outputs that agree with y in part p, and -1.0 if they are exactly
    those that differ.
    """
    raise NotImplementedError


@python_generic
def decode_differing(
    oracle: object, i: int, theta: FloatArray, y: IntArray, p: int, margin: float, work: object
) -> IntArray:
    """Return the best output that differs from the prediction y in part p, whose margin is finite."""
    index, sign = part_entry(oracle, i, y, p)
    before, other = theta[index], y.copy()
    theta[index] -= sign * _enough(theta, margin)
    decode(oracle, i, theta, other, work)
    theta[index] = before
    return other


@part_entry.register(ChainOracle)
def chain_part_entry(chain: ChainOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    return (chain.n_labels + p) * chain.width + int(y[p]), 1.0


@part_entry.register(SecondOrderOracle)
def second_order_part_entry(chain: SecondOrderOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    return chain_part_entry(chain.inner, i, y, p)


@part_entry.register(MulticlassOracle)
def multiclass_part_entry(classes: MulticlassOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    return int(y[0]), 1.0


@part_entry.register(GraphOracle)
def graph_part_entry(graph: GraphOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    return p * graph.width + int(y[p]), 1.0


@part_entry.register(ArborescenceOracle)
def arborescence_part_entry(sentences: ArborescenceOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    n_words = int(output_size(sentences, i))
    return p * (n_words + 1) + int(y[p]), 1.0


@part_entry.register(MatchingOracle)
def matching_part_entry(pairs: MatchingOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    source, target = divmod(p, int(pairs.targets[i]))
    places = y[source * pairs.fertility : (source + 1) * pairs.fertility]
    return pairs.fertility - 1 + p, 1.0 if target in places else -1.0


@decode_differing.register(SegmentsOracle)
def segments_decode_differing(
    segments: SegmentsOracle,
    i: int,
    theta: FloatArray,
    y: IntArray,
    p: int,
    margin: float,
    work: SegmentsOracleWork,
) -> IntArray:
    """Penalise only the segment of token p."""
    starts, other = np.flatnonzero(y & 1), y.copy()
    n = int(np.searchsorted(starts, p, side="right"))
    last = (int(starts[n]) if n < len(starts) else len(y)) - 1
    marked = np.zeros(len(y), dtype=np.int64)
    marked[last] = last + 1 - starts[n - 1]
    fines = np.full(segments.width, _enough(theta, margin))
    pairs = table(theta[: segments.n_labels * segments.width], segments.width)
    parts = table(theta[head_size(segments) :], SEGMENT_ROWS * segments.width)
    lay_out_segments(segments, i, theta, work)
    segment_viterbi(parts[: len(y)], pairs, segments.n_labels, Marked(marked, y, fines), work.trellis, other)
    return other
