r"""Mean statistics of outputs under a Gibbs distribution, and which of them are marginals of parts.

A *part* of an output is what takes one of several *states*: a token or a node its label, a word its head. The
statistics of every model here have an entry for each state of each part, which is one if the part has this
state. So its mean is a probability.

The expectation oracle of `maxmargin.problems.oracle` is for training: it needs the truth, and adds losses to
scores. The means here need neither.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import generic, is_wrapper
from maxmargin.compiling.views import table
from maxmargin.inference.dependency_trees import arc_means, arc_sums
from maxmargin.inference.second_order_means import PairSums, pair_sums, second_order_means
from maxmargin.inference.segment_means import segment_means
from maxmargin.inference.softmax import softmax
from maxmargin.inference.tree_means import tree_means
from maxmargin.problems.layouts import SEGMENT_ROWS
from maxmargin.problems.oracle import output_size
from maxmargin.problems.oracles._labelling import Tree
from maxmargin.problems.oracles._transitions import lay_out, path_means
from maxmargin.problems.oracles.arborescence import ArborescenceOracle
from maxmargin.problems.oracles.chain import ChainOracle
from maxmargin.problems.oracles.graph import GraphOracle
from maxmargin.problems.oracles.multiclass import MulticlassOracle
from maxmargin.problems.oracles.second_order import SecondOrderOracle, trigram_span
from maxmargin.problems.oracles.segments import SegmentsOracle, head_size, lay_out_segments


class PartRows(NamedTuple):
    """Where the statistics of the parts of an example are: row r begins at ``first + r * step``."""

    first: int
    step: int
    n_rows: int
    n_columns: int


@generic
def means_space(oracle):
    """Return a workspace for the means, in addition to that of the oracle."""
    raise NotImplementedError


@generic
def find_means(oracle, i, theta, work, own, mean):
    r"""Write the mean of the statistics of example i to ``mean``, and return the log-partition.

    .. math:: p(y) \propto e^{\langle \theta, s_i(y) \rangle}, \qquad \sum_y p(y) \, s_i(y)

    ``work`` is the workspace of the oracle, ``own`` that of `means_space`. ``mean`` has one entry for each
    statistic of the example, and all are written.
    """
    raise NotImplementedError


def has_means(oracle: object) -> bool:
    """Whether `find_means` is defined: not for matchings, users' oracles and graphs with cycles."""
    while is_wrapper(type(oracle)):
        oracle = oracle.inner  # type: ignore[attr-defined]
    if isinstance(oracle, GraphOracle):
        return isinstance(oracle.inference, Tree)
    return find_means.dispatch(type(oracle)) is not find_means.dispatch(object)


@generic
def part_rows(oracle, i):
    """Return the `PartRows` of example i."""
    raise NotImplementedError


@means_space.register(MulticlassOracle)
def multiclass_means_space(classes: MulticlassOracle) -> FloatArray:
    return np.zeros(0)


@find_means.register(MulticlassOracle)
def multiclass_find_means(classes, i, theta, work, own, mean):
    return softmax(theta, classes.n_labels, mean)


@part_rows.register(MulticlassOracle)
def multiclass_part_rows(classes, i):
    return PartRows(0, classes.n_labels, 1, classes.n_labels)


@means_space.register(ChainOracle)
def chain_means_space(chain: ChainOracle) -> FloatArray:
    return np.zeros(0)


@find_means.register(ChainOracle)
def chain_find_means(chain, i, theta, work, own, mean):
    length, K = output_size(chain, i), chain.n_labels
    parts, means = table(theta, chain.width), table(mean, chain.width)
    unary, marginals = parts[K : K + length], means[K : K + length]
    return path_means(chain.transitions, unary, parts[:K], K, work, marginals, means[:K])


@part_rows.register(ChainOracle)
def chain_part_rows(chain, i):
    return PartRows(chain.n_labels * chain.width, chain.width, output_size(chain, i), chain.n_labels)


@means_space.register(SecondOrderOracle)
def second_order_means_space(chain: SecondOrderOracle) -> PairSums:
    return pair_sums(chain.inner.n_labels, chain.inner.width)


@find_means.register(SecondOrderOracle)
def second_order_find_means(chain, i, theta, work, own, mean):
    length, K, width = output_size(chain, i), chain.inner.n_labels, chain.inner.width
    parts, means = table(theta, width), table(mean, width)
    first, stop = trigram_span(chain, i)
    lay_out(chain.inner.transitions, parts[K : K + length], parts[:K], K, work.inner)
    return second_order_means(
        work.inner.unary[:length],
        work.inner.pairs,
        theta[first:stop].reshape((K, K, width)),
        K,
        work.value,
        own,
        means[K : K + length],
        means[:K],
        mean[first:stop].reshape((K, K, width)),
    )


@means_space.register(SegmentsOracle)
def segments_means_space(segments: SegmentsOracle) -> FloatArray:
    return aligned_zeros(2 * segments.n_labels + 2, segments.width)


@find_means.register(SegmentsOracle)
def segments_find_means(segments, i, theta, work, own, mean):
    K, width, head = segments.n_labels, segments.width, head_size(segments)
    lay_out_segments(segments, i, theta, work)
    length, size = output_size(segments, i), SEGMENT_ROWS * width
    return segment_means(
        table(theta[head : head + length * size], size),
        table(theta[: K * width], width),
        K,
        work.trellis,
        own,
        table(mean[head:], size),
        table(mean[: K * width], width),
        table(mean[K * width : head], width),
    )


@part_rows.register(SegmentsOracle)
def segments_part_rows(segments, i):
    size = SEGMENT_ROWS * segments.width
    return PartRows(head_size(segments), size, output_size(segments, i), segments.n_labels)


class TreeMeansWork(NamedTuple):
    """Workspace: exponentials of the step from a node to its parent, and the table of their edge."""

    joint: FloatArray
    oriented: FloatArray


@means_space.register(GraphOracle)
def graph_means_space(graph: GraphOracle) -> TreeMeansWork:
    K, width = graph.n_labels, graph.width
    return TreeMeansWork(aligned_zeros(2 * K + 2, width), aligned_zeros(K, width))


@find_means.register(GraphOracle)
def graph_find_means(graph, i, theta, work, own, mean):
    """Compute the means of a graph without cycles, for the inference `Tree`."""
    first, stop, K, width = graph.nodes[i, 0], graph.nodes[i, 1], graph.n_labels, graph.width
    edges, begin = graph.edges[i, 1] - graph.edges[i, 0], (stop - first) * width
    end = begin + edges * K * width
    return tree_means(
        table(theta[:begin], width),
        theta[begin:end].reshape((edges, K, width)),
        graph.inference.order[first:stop],
        graph.inference.parent[first:stop],
        graph.heads[2 * graph.edges[i, 0] : 2 * graph.edges[i, 1]],
        K,
        work.inference.value,
        own.joint,
        own.oriented,
        table(mean[:begin], width),
        mean[begin:end].reshape((edges, K, width)),
    )


@part_rows.register(GraphOracle)
def graph_part_rows(graph, i):
    return PartRows(0, graph.width, graph.nodes[i, 1] - graph.nodes[i, 0], graph.n_labels)


@means_space.register(ArborescenceOracle)
def arborescence_means_space(sentences: ArborescenceOracle) -> object:
    return arc_sums(sentences.trees, sentences.longest)


@find_means.register(ArborescenceOracle)
def arborescence_find_means(sentences, i, theta, work, own, mean):
    n_words = output_size(sentences, i)
    scores = table(theta[: n_words * (n_words + 1)], n_words + 1)
    return arc_means(sentences.trees, scores, own, table(mean, n_words + 1))


@part_rows.register(ArborescenceOracle)
def arborescence_part_rows(sentences, i):
    n_words = output_size(sentences, i)
    return PartRows(0, n_words + 1, n_words, n_words + 1)
