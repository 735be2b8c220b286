"""Oracles of slack rescaling where the loss is a number of wrong labels, but for a factor.

For each such number m the best score is found, so that the largest of all
:math:`m (1 + \\text{score} - \\text{score of the truth})` is.
"""

from typing import Any

import numpy as np

from maxmargin.inference.counted import (
    Counted,
    best_by_count,
    best_pairs_by_count,
    best_scores,
    best_scores_of_pairs,
    costliest_count,
    counted_work,
    trace_back,
    trace_back_pairs,
)
from maxmargin.inference.counted_segments import (
    CountedSegments,
    best_segments_by_count,
    counted_segments,
    trace_segments_back,
)
from maxmargin.inference.counted_tree import (
    CountedTree,
    best_on_tree_by_count,
    count_rows,
    counted_tree,
    trace_tree_back,
)
from maxmargin.inference.segments import PARTS
from maxmargin.problems._labelling import Tree
from maxmargin.problems._segment_oracles import lay_out_segments
from maxmargin.problems._transitions import lay_out
from maxmargin.problems.chain import Chain
from maxmargin.problems.graph import Graph
from maxmargin.problems.second_order import SecondOrderChain, first_trigram, n_trigrams
from maxmargin.problems.segments import Segments, head_size
from maxmargin.problems.slack import check_counts, check_rescalable, slack_argmax, slack_work


@check_rescalable.register(Chain)
def chain_check_rescalable(problem: Chain, owner: str) -> None:
    check_counts(problem.cost, owner)


@slack_work.register(Chain)
def chain_slack_work(problem: Chain) -> Counted:
    return counted_work(problem.longest, problem.width)


@slack_argmax.register(Chain)
def chain_slack_argmax(problem, i, theta, y, work):
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    parts, K, truth = theta.reshape((-1, problem.width)), problem.n_labels, problem.labels[first:]
    lay_out(problem.transitions, parts[K : K + length], parts[:K], K, work.inner)
    pairs, value, scores = work.inner.pairs, work.own.value, work.own.scores[: length + 1]
    best_by_count(work.inner.unary[:length], pairs, truth, K, value)
    best_scores(value, length, K, scores)
    trace_back(value, pairs, truth, costliest_count(scores), length - 1, K, y)


@check_rescalable.register(SecondOrderChain)
def second_order_chain_check_rescalable(problem: SecondOrderChain, owner: str) -> None:
    check_counts(problem.chain.cost, owner)


@slack_work.register(SecondOrderChain)
def second_order_chain_slack_work(problem: SecondOrderChain) -> Counted:
    return counted_work(problem.chain.longest, problem.chain.n_labels, problem.chain.width)


@slack_argmax.register(SecondOrderChain)
def second_order_chain_slack_argmax(problem, i, theta, y, work):
    chain, K, (first, _) = problem.chain, problem.chain.n_labels, first_trigram(problem, i)
    length, truth = chain.offsets[i + 1] - chain.offsets[i], chain.labels[chain.offsets[i] :]
    parts = theta.reshape((-1, chain.width))
    triples = theta[first : first + n_trigrams(problem)].reshape((K, K, chain.width))
    lay_out(chain.transitions, parts[K : K + length], parts[:K], K, work.inner.chain)
    pairs, value, scores = work.inner.chain.pairs, work.own.value, work.own.scores[: length + 1]
    best_pairs_by_count(work.inner.chain.unary[:length], pairs, triples, truth, K, value)
    best_scores_of_pairs(value, length, K, scores)
    trace_back_pairs(value, triples, truth, costliest_count(scores), length - 1, K, y)


@check_rescalable.register(Graph)
def graph_check_rescalable(problem: Graph, owner: str) -> None:
    if not isinstance(problem.inference, Tree):
        raise ValueError(
            f"{owner}: slack rescaling needs inference='tree', got "
            f"{type(problem.inference).__name__.lower()!r}; remove cycles, or rescale margins."
        )
    check_counts(problem.cost, owner)
    least, most = (f.reduceat(problem.importance, problem.offsets[:-1]) for f in (np.minimum, np.maximum))
    if (least != most).any():
        raise ValueError(
            f"{owner}: slack rescaling needs nodes that count alike, got node weights that differ in graph "
            f"{np.flatnonzero(least != most)[0]}; leave them out, or rescale margins."
        )


@slack_work.register(Graph)
def graph_slack_work(problem: Graph) -> CountedTree:
    size: Any = np.zeros(problem.most_nodes, dtype=np.int64)
    n_rows = 0
    for i in range(len(problem.offsets) - 1):
        nodes, arcs = slice(*problem.offsets[i : i + 2]), slice(*2 * problem.edge_offsets[i : i + 2])
        tree = problem.inference.order[nodes], problem.inference.parent[nodes], problem.heads[arcs]
        n_rows = max(n_rows, count_rows(*tree, size))
    return counted_tree(problem.most_nodes, n_rows, problem.width)


@slack_argmax.register(Graph)
def graph_slack_argmax(problem, i, theta, y, work):
    first, stop, width, K = problem.offsets[i], problem.offsets[i + 1], problem.width, problem.n_labels
    n_nodes, n_edges = stop - first, problem.edge_offsets[i + 1] - problem.edge_offsets[i]
    order, parent = problem.inference.order[first:stop], problem.inference.parent[first:stop]
    heads = problem.heads[2 * problem.edge_offsets[i] : 2 * problem.edge_offsets[i + 1]]
    unary = theta[: n_nodes * width].reshape((n_nodes, width))
    pairs = theta[n_nodes * width : (n_nodes + n_edges * K) * width].reshape((n_edges, K, width))
    best_on_tree_by_count(unary, pairs, order, parent, heads, problem.labels[first:stop], K, work.own)
    m = costliest_count(work.own.scores[: n_nodes + 1])
    trace_tree_back(pairs, order, parent, heads, m, K, work.own, y)


@check_rescalable.register(Segments)
def segments_check_rescalable(problem: Segments, owner: str) -> None:
    if problem.segment_cost.any():
        raise ValueError(
            f"{owner}: slack rescaling needs the loss 'normalized_hamming' or 'hamming', got 'segments'; "
            "count wrong tags, or rescale margins."
        )


@slack_work.register(Segments)
def segments_slack_work(problem: Segments) -> CountedSegments:
    return counted_segments(problem.longest, problem.n_labels)


@slack_argmax.register(Segments)
def segments_slack_argmax(problem, i, theta, y, work):
    first, stop, width, K = problem.offsets[i], problem.offsets[i + 1], problem.width, problem.n_labels
    length, truth, trellis = stop - first, problem.truth[first:stop], work.inner.trellis
    pairs = theta[: K * width].reshape((-1, width))
    parts = theta[head_size(problem) :].reshape((-1, PARTS * width))[:length]
    lay_out_segments(problem, i, theta, work.inner)
    best_segments_by_count(parts, pairs, K, truth, trellis, work.own)
    m = costliest_count(work.own.scores[: length + 1])
    trace_segments_back(length, pairs, K, truth, m, trellis, work.own, y)
