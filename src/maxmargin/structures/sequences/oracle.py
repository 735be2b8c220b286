"""Oracle of chains: which transitions are allowed, the best labelling, and what else is asked of it."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import generic, helper, subroutine
from maxmargin.compiling.intrinsics import prefetch, table
from maxmargin.compiling.loops import add_scaled, copy, weighted_sum
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import counted, oracle
from maxmargin.structures.counted import Counted
from maxmargin.structures.k_best import find_k_best, search_space
from maxmargin.structures.margins import decode_with_margins, margin_workspace, part_entry
from maxmargin.structures.means import PartRows, find_means, means_space, part_rows
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.problem import indexed_by_example
from maxmargin.structures.recursions import BARRIER, LEAST, KBestWork, k_best_work
from maxmargin.structures.sequences.inference import forward_backward, k_best_paths, path_margins, viterbi
from maxmargin.structures.slack import check_counts, check_rescalable, slack_argmax, slack_workspace


class AllTransitions(NamedTuple):
    """Every label may follow every other."""


class SomeTransitions(NamedTuple):
    """Some transitions are forbidden.

    Attributes
    ----------
    pairs : array of shape (n_labels, width)
        Zero where label k may follow label j, else the barrier.
    start, end : arrays of shape (width,)
        Zero where a label may be the first or the last of a sequence, else the barrier.
    """

    pairs: FloatArray
    start: FloatArray
    end: FloatArray


Transitions = AllTransitions | SomeTransitions


def as_transitions(forbidden: Any, width: int) -> Transitions:
    """Return the transitions allowed by a matrix that marks forbidden pairs of labels.

    Its last row is for the start of a sequence, its last column for the end.
    """
    if forbidden is None:
        return AllTransitions()
    K = len(forbidden) - 1
    barrier = np.zeros((K + 2, width))
    barrier[: K + 1, :K] = np.where(forbidden[:, :K], BARRIER, 0.0)
    barrier[K + 1, :K] = np.where(forbidden[:K, K], BARRIER, 0.0)
    return SomeTransitions(barrier[:K].copy(), barrier[K].copy(), barrier[K + 1].copy())


@generic
def best_path(transitions, unary, pairs, n_labels, work, y):
    """Write the best labelling to ``y``; see `viterbi`."""
    raise NotImplementedError


@best_path.register(AllTransitions)
def all_transitions_best_path(transitions, unary, pairs, n_labels, work, y):
    viterbi(unary, pairs, n_labels, work.value, y)


@best_path.register(SomeTransitions)
def some_transitions_best_path(transitions, unary, pairs, n_labels, work, y):
    lay_out(transitions, unary, pairs, n_labels, work)
    viterbi(work.unary[: unary.shape[0]], work.pairs, n_labels, work.value, y)


@generic
def path_means(transitions, unary, pairs, n_labels, work, marginals, counts):
    """Write the means over all labellings, and return the log-partition; see `forward_backward`."""
    raise NotImplementedError


@path_means.register(AllTransitions)
def all_transitions_path_means(transitions, unary, pairs, n_labels, work, marginals, counts):
    return forward_backward(unary, pairs, n_labels, work.value, work.joint, marginals, counts)


@path_means.register(SomeTransitions)
def some_transitions_path_means(transitions, unary, pairs, n_labels, work, marginals, counts):
    lay_out(transitions, unary, pairs, n_labels, work)
    inner = work.unary[: unary.shape[0]]
    return forward_backward(inner, work.pairs, n_labels, work.value, work.joint, marginals, counts)


@generic
def lay_out(transitions, unary, pairs, n_labels, work):
    """Write the scores to ``work``, with barriers; ``unary`` may be there already."""
    raise NotImplementedError


@lay_out.register(AllTransitions)
def all_transitions_lay_out(transitions, unary, pairs, n_labels, work):
    _copy_rows(unary, work.unary)
    _copy_rows(pairs, work.pairs)


@lay_out.register(SomeTransitions)
def some_transitions_lay_out(transitions, unary, pairs, n_labels, work):
    _copy_rows(unary, work.unary)
    add_scaled(1.0, transitions.start, work.unary[0])
    add_scaled(1.0, transitions.end, work.unary[unary.shape[0] - 1])
    for j in range(n_labels):
        weighted_sum(1.0, pairs[j], 1.0, transitions.pairs[j], work.pairs[j])


@helper
def _copy_rows(rows, out):
    for t in range(rows.shape[0]):
        copy(rows[t], out[t])


# The oracles of chains: Viterbi and forward-backward on scores of labels at positions and of transitions.


@indexed_by_example("tokens", "scale")
class ChainOracle(NamedTuple):
    """True labels, costs, and which labels may follow which.

    Attributes
    ----------
    tokens : array of shape (n, 2)
        Sequence i has the tokens tokens[i, 0], ..., tokens[i, 1] - 1.
    labels : array of shape (n_tokens,)
    cost : array of shape (n_labels, width)
        ``cost[a, b]`` is the cost of label b at a token whose true label is a.
    scale : array of shape (n,)
        The loss of sequence i is scale[i] times the sum of its tokens' costs.
    transitions : AllTransitions or SomeTransitions
        Which labels may follow which.
    """

    tokens: IntArray
    labels: IntArray
    cost: FloatArray
    scale: FloatArray
    transitions: Transitions
    n_labels: int
    width: int
    longest: int


class ChainOracleWork(NamedTuple):
    """Work arrays: scores of labels and of transitions, best or total values, and joint marginals."""

    unary: FloatArray
    pairs: FloatArray
    value: FloatArray
    joint: FloatArray


@oracle.output_sizes.register(ChainOracle)
def chain_output_sizes(chain):
    return oracle.OutputSizes(chain.longest, 4 * chain.longest)


@oracle.oracle_workspace.register(ChainOracle)
def chain_oracle_workspace(chain: ChainOracle) -> ChainOracleWork:
    width, longest = chain.width, chain.longest
    return ChainOracleWork(
        aligned_zeros(longest, width),
        aligned_zeros(chain.n_labels, width),
        aligned_zeros(longest, width),
        aligned_zeros(2 * chain.n_labels + 2, width),
    )


@oracle.output_size.register(ChainOracle)
def chain_output_size(chain, i):
    return chain.tokens[i, 1] - chain.tokens[i, 0]


@oracle.foresee_truth.register(ChainOracle)
def chain_foresee_truth(chain, i):
    prefetch(chain.labels, chain.tokens[i, 0], chain.tokens[i, 1])


@subroutine
def add_costs(chain, i, parts, share, work):
    """Write the scores of labels at positions, plus ``share`` times their costs, to ``work.unary``."""
    first, K = chain.tokens[i, 0], chain.n_labels
    for t in range(chain.tokens[i, 1] - first):
        cost = chain.cost[chain.labels[first + t]]
        weighted_sum(1.0, parts[K + t], share * chain.scale[i], cost, work.unary[t])


@oracle.argmax.register(ChainOracle)
def chain_argmax(chain, i, theta, y, work):
    length = chain.tokens[i, 1] - chain.tokens[i, 0]
    parts, K = table(theta, chain.width), chain.n_labels
    add_costs(chain, i, parts, 1.0, work)
    best_path(chain.transitions, work.unary[:length], parts[:K], K, work, y)


@oracle.decode.register(ChainOracle)
def chain_decode(chain, i, theta, y, work):
    length = chain.tokens[i, 1] - chain.tokens[i, 0]
    parts, K = table(theta, chain.width), chain.n_labels
    best_path(chain.transitions, parts[K : K + length], parts[:K], K, work, y)


@oracle.loss.register(ChainOracle)
def chain_loss(chain, i, y):
    first = chain.tokens[i, 0]
    total = 0.0
    for t in range(chain.tokens[i, 1] - first):
        total += chain.cost[chain.labels[first + t], y[t]]
    return chain.scale[i] * total


@oracle.psi.register(ChainOracle)
def chain_psi(chain, i, y, index, value):
    first, width, K = chain.tokens[i, 0], chain.width, chain.n_labels
    count = 0
    same_before = True
    for t in range(chain.tokens[i, 1] - first):
        truth = chain.labels[first + t]
        same = truth == y[t]
        if not same:
            index[count], value[count] = (K + t) * width + truth, 1.0
            index[count + 1], value[count + 1] = (K + t) * width + y[t], -1.0
            count += 2
        if t > 0 and not (same and same_before):
            index[count], value[count] = chain.labels[first + t - 1] * width + truth, 1.0
            index[count + 1], value[count + 1] = y[t - 1] * width + y[t], -1.0
            count += 2
        same_before = same
    return count


@oracle.expectation.register(ChainOracle)
def chain_expectation(chain, i, theta, share, z, work):
    length, K = chain.tokens[i, 1] - chain.tokens[i, 0], chain.n_labels
    labels = chain.labels[chain.tokens[i, 0] : chain.tokens[i, 1]]
    parts, mean = table(theta, chain.width), table(z, chain.width)
    add_costs(chain, i, parts, share, work)
    unary, marginals = work.unary[:length], mean[K : K + length]
    log_partition = path_means(chain.transitions, unary, parts[:K], K, work, marginals, mean[:K])
    loss = 0.0
    for t in range(length):
        for k in range(K):
            loss += chain.cost[labels[t], k] * marginals[t, k]
    return log_partition - _subtract_from_truth(labels, parts, mean, K), chain.scale[i] * loss


@subroutine
def _subtract_from_truth(labels, parts, mean, n_labels):
    """``mean = s(truth) - mean``; return the score of the truth."""
    length, total = labels.shape[0], 0.0
    for row in range(n_labels + length):
        for k in range(mean.shape[1]):
            mean[row, k] = -mean[row, k]
    for t in range(length):
        mean[n_labels + t, labels[t]] += 1.0
        total += parts[n_labels + t, labels[t]]
        if t > 0:
            mean[labels[t - 1], labels[t]] += 1.0
            total += parts[labels[t - 1], labels[t]]
    return total


class ChainMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `path_margins`."""

    oracle: ChainOracleWork
    turned: FloatArray
    rows: FloatArray


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


@part_entry.register(ChainOracle)
def chain_part_entry(chain: ChainOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    return (chain.n_labels + p) * chain.width + int(y[p]), 1.0


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


@search_space.register(ChainOracle)
def chain_search_space(chain: ChainOracle, k: int) -> KBestWork:
    return k_best_work(chain.longest, chain.n_labels, k)


@find_k_best.register(ChainOracle)
def chain_find_k_best(chain, i, theta, work, search, y, scores):
    length, K = output_size(chain, i), chain.n_labels
    parts = table(theta, chain.width)
    lay_out(chain.transitions, parts[K : K + length], parts[:K], K, work)
    k_best_paths(work.unary[:length], work.pairs, search, y, scores)


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
