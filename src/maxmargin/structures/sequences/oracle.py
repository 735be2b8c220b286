r"""The oracles of sequences, of first and second order: labellings, their losses, and the best of them.

The statistics of an output are its counts of transitions, as rows of the second label, and then a row of
labels for each position, which is the indicator of its label. Those of trigrams follow in chains of second
order: rows of the third label, one for each pair of the others, ordered by the middle label first, which is
the order in which `second_order_viterbi` reads them.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import generic, helper, subroutine
from maxmargin.compiling.generics import absent
from maxmargin.compiling.loops import add_scaled, copy, prefetch, table, weighted_sum
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import oracle, recursions
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.problem import indexed_by_example
from maxmargin.structures.questions import (
    ANSWERS,
    Answers,
    PartRows,
    decode_with_margins,
    find_k_best,
    find_means,
    part_rows,
)
from maxmargin.structures.recursions import BARRIER, LEAST, Counted, k_best_work
from maxmargin.structures.sequences.inference import (
    forward_backward,
    k_best_paths,
    k_best_second_order,
    pair_sums,
    path_margins,
    second_order_margins,
    second_order_means,
    second_order_viterbi,
    viterbi,
)
from maxmargin.structures.slack import check_counts, check_rescalable, slack_argmax, slack_workspace


@subroutine
def chain_statistics(n_labels, width, length):
    """Number of statistics of a chain: counts of transitions, then a row of labels for each position."""
    return (n_labels + length) * width


@subroutine
def trigram_statistics(n_labels, width):
    """Number of statistics of trigrams, which follow those of a chain."""
    return n_labels * n_labels * width


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
def allowed(transitions, unary, pairs, n_labels, work):
    """Return the scores of labels and of transitions, with barriers; ``unary`` may be in ``work`` already."""
    raise NotImplementedError


@allowed.register(AllTransitions)
def all_transitions_allowed(transitions, unary, pairs, n_labels, work):
    return unary, pairs


@allowed.register(SomeTransitions)
def some_transitions_allowed(transitions, unary, pairs, n_labels, work):
    length = unary.shape[0]
    for t in range(length):
        copy(unary[t], work.unary[t])
    add_scaled(1.0, transitions.start, work.unary[0])
    add_scaled(1.0, transitions.end, work.unary[length - 1])
    for j in range(n_labels):
        weighted_sum(1.0, pairs[j], 1.0, transitions.pairs[j], work.pairs[j])
    return work.unary[:length], work.pairs


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
    unary, pairs = allowed(chain.transitions, work.unary[:length], parts[:K], K, work)
    viterbi(unary, pairs, K, work.value, y)


@oracle.decode.register(ChainOracle)
def chain_decode(chain, i, theta, y, work):
    length = chain.tokens[i, 1] - chain.tokens[i, 0]
    parts, K = table(theta, chain.width), chain.n_labels
    unary, pairs = allowed(chain.transitions, parts[K : K + length], parts[:K], K, work)
    viterbi(unary, pairs, K, work.value, y)


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
    marginals = mean[K : K + length]
    unary, pairs = allowed(chain.transitions, work.unary[:length], parts[:K], K, work)
    log_partition = forward_backward(unary, pairs, K, work.value, work.joint, marginals, mean[:K])
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


def _margin_work(chain: ChainOracle) -> ChainMarginWork:
    turned = aligned_zeros(chain.n_labels, chain.width)
    return ChainMarginWork(oracle_workspace(chain), turned, aligned_zeros(2, chain.width))


ANSWERS[ChainOracle] = Answers(
    margins=_margin_work,
    means=lambda chain: np.zeros(0),
    k_best=lambda chain, k: k_best_work(chain.longest, chain.n_labels, k),
)


@subroutine
def _allowed_scores(chain, i, theta, work):
    """Return the scores of labels and of transitions, without costs."""
    parts, K = table(theta, chain.width), chain.n_labels
    return allowed(chain.transitions, parts[K : K + output_size(chain, i)], parts[:K], K, work)


@decode_with_margins.register(ChainOracle)
def chain_decode_with_margins(chain, i, theta, y, margins, work):
    unary, pairs = _allowed_scores(chain, i, theta, work.oracle)
    viterbi(unary, pairs, chain.n_labels, work.oracle.value, y)
    path_margins(unary, pairs, chain.n_labels, work.oracle.value, work.turned, work.rows, y, margins)
    lift_barriers(margins)


@helper
def lift_barriers(margins):
    """Make margins infinite where every other output has a forbidden transition."""
    for t in range(margins.shape[0]):
        margins[t] = np.inf if margins[t] > -LEAST else margins[t]


@part_rows.register(ChainOracle)
def chain_part_rows(chain, i):
    return PartRows(chain.n_labels * chain.width, chain.width, output_size(chain, i), chain.n_labels)


@find_means.register(ChainOracle)
def chain_find_means(chain, i, theta, work, own, mean):
    length, K, means = output_size(chain, i), chain.n_labels, table(mean, chain.width)
    unary, pairs = _allowed_scores(chain, i, theta, work)
    return forward_backward(unary, pairs, K, work.value, work.joint, means[K : K + length], means[:K])


@find_k_best.register(ChainOracle)
def chain_find_k_best(chain, i, theta, work, search, y, scores):
    unary, pairs = _allowed_scores(chain, i, theta, work)
    k_best_paths(unary, pairs, search, y, scores)


@check_rescalable.register(ChainOracle)
def chain_check_rescalable(chain: ChainOracle) -> None:
    check_counts(chain.cost)


@slack_workspace.register(ChainOracle)
def chain_slack_workspace(chain: ChainOracle, length: int) -> Counted:
    return recursions.counted_work(length, chain.width)


@slack_argmax.register(ChainOracle)
def chain_slack_argmax(chain, i, theta, y, work, own):
    truth, K = chain.labels[chain.tokens[i, 0] : chain.tokens[i, 1]], chain.n_labels
    length = truth.shape[0]
    unary, pairs = _allowed_scores(chain, i, theta, work)
    scores = own.scores[: length + 1]
    recursions.best_by_count(unary, pairs, truth, K, own.value)
    recursions.best_scores(own.value, length, K, scores)
    recursions.trace_back(own.value, pairs, truth, recursions.costliest_count(scores), length - 1, K, y)


class SecondOrderOracle(NamedTuple):
    """True labels, costs and allowed transitions, as in a chain.

    Attributes
    ----------
    inner : ChainOracle
        The oracle of the same sequences without trigrams.
    """

    inner: ChainOracle


class SecondOrderOracleWork(NamedTuple):
    """Work arrays: those of the chain, and the scores of the best paths to each pair of labels."""

    inner: ChainOracleWork
    value: FloatArray


@oracle.output_sizes.register(SecondOrderOracle)
def second_order_output_sizes(chain):
    size = oracle.output_sizes(chain.inner)
    return oracle.OutputSizes(size.output, size.parts + 2 * size.output)


@oracle.oracle_workspace.register(SecondOrderOracle)
def second_order_oracle_workspace(chain: SecondOrderOracle) -> SecondOrderOracleWork:
    K, width, longest = chain.inner.n_labels, chain.inner.width, chain.inner.longest
    return SecondOrderOracleWork(oracle_workspace(chain.inner), aligned_zeros(longest, K, width))


@subroutine
def trigram_span(chain, i):
    """Where the counts of trigrams begin and end in the statistics of sequence i."""
    K, width = chain.inner.n_labels, chain.inner.width
    first = chain_statistics(K, width, output_size(chain.inner, i))
    return first, first + trigram_statistics(K, width)


@subroutine
def _scores_with_trigrams(chain, i, theta, unary, work):
    """Return the scores of labels, which are ``unary``, of transitions and of trigrams."""
    K, width, (first, stop) = chain.inner.n_labels, chain.inner.width, trigram_span(chain, i)
    transitions, pairs = chain.inner.transitions, table(theta, width)[:K]
    unary, pairs = allowed(transitions, unary[: output_size(chain, i)], pairs, K, work.inner)
    return unary, pairs, theta[first:stop].reshape((K, K, width))


@oracle.argmax.register(SecondOrderOracle)
def second_order_argmax(chain, i, theta, y, work):
    add_costs(chain.inner, i, table(theta, chain.inner.width), 1.0, work.inner)
    unary, pairs, triples = _scores_with_trigrams(chain, i, theta, work.inner.unary, work)
    second_order_viterbi(unary, pairs, triples, chain.inner.n_labels, work.value, y)


@oracle.decode.register(SecondOrderOracle)
def second_order_decode(chain, i, theta, y, work):
    K, parts = chain.inner.n_labels, table(theta, chain.inner.width)
    unary, pairs, triples = _scores_with_trigrams(chain, i, theta, parts[K:], work)
    second_order_viterbi(unary, pairs, triples, K, work.value, y)


@oracle.psi.register(SecondOrderOracle)
def second_order_psi(chain, i, y, index, value):
    count = oracle.psi(chain.inner, i, y, index, value)
    first, K, width = trigram_span(chain, i)[0], chain.inner.n_labels, chain.inner.width
    labels = chain.inner.labels[chain.inner.tokens[i, 0] : chain.inner.tokens[i, 1]]
    for t in range(2, labels.shape[0]):
        truth = first + ((labels[t - 1] * K + labels[t - 2]) * width + labels[t])
        other = first + ((y[t - 1] * K + y[t - 2]) * width + y[t])
        if truth != other:
            index[count], value[count] = truth, 1.0
            index[count + 1], value[count + 1] = other, -1.0
            count += 2
    return count


# The chain's means do not include trigrams.
oracle.expectation.register(SecondOrderOracle)(absent)


class SecondOrderMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `second_order_margins`."""

    oracle: SecondOrderOracleWork
    turned: FloatArray
    behind: FloatArray
    rows: FloatArray


def _second_order_margin_work(chain: SecondOrderOracle) -> SecondOrderMarginWork:
    K, width = chain.inner.n_labels, chain.inner.width
    turned, behind = aligned_zeros(K, K, width), aligned_zeros(2, K, width)
    return SecondOrderMarginWork(oracle_workspace(chain), turned, behind, aligned_zeros(2, width))


ANSWERS[SecondOrderOracle] = Answers(
    margins=_second_order_margin_work,
    means=lambda chain: pair_sums(chain.inner.n_labels, chain.inner.width),
    k_best=lambda chain, k: k_best_work(chain.inner.longest, chain.inner.n_labels**2, k),
)


@decode_with_margins.register(SecondOrderOracle)
def second_order_decode_with_margins(chain, i, theta, y, margins, work):
    K, value, parts = chain.inner.n_labels, work.oracle.value, table(theta, chain.inner.width)
    unary, pairs, triples = _scores_with_trigrams(chain, i, theta, parts[K:], work.oracle)
    second_order_viterbi(unary, pairs, triples, K, value, y)
    second_order_margins(unary, pairs, triples, K, value, work.turned, work.behind, work.rows, y, margins)
    lift_barriers(margins)


@find_k_best.register(SecondOrderOracle)
def second_order_find_k_best(chain, i, theta, work, search, y, scores):
    K, parts = chain.inner.n_labels, table(theta, chain.inner.width)
    unary, pairs, triples = _scores_with_trigrams(chain, i, theta, parts[K:], work)
    k_best_second_order(unary, pairs, triples, K, search, y, scores)


@find_means.register(SecondOrderOracle)
def second_order_find_means(chain, i, theta, work, own, mean):
    length, K, width = output_size(chain, i), chain.inner.n_labels, chain.inner.width
    parts, means, (first, stop) = table(theta, width), table(mean, width), trigram_span(chain, i)
    unary, pairs, triples = _scores_with_trigrams(chain, i, theta, parts[K:], work)
    marginals, trigrams = means[K : K + length], mean[first:stop].reshape((K, K, width))
    return second_order_means(unary, pairs, triples, K, work.value, own, marginals, means[:K], trigrams)


@slack_workspace.register(SecondOrderOracle)
def second_order_slack_workspace(chain: SecondOrderOracle, length: int) -> Counted:
    return recursions.counted_work(length, chain.inner.n_labels, chain.inner.width)


@slack_argmax.register(SecondOrderOracle)
def second_order_slack_argmax(chain, i, theta, y, work, own):
    truth = chain.inner.labels[chain.inner.tokens[i, 0] : chain.inner.tokens[i, 1]]
    length, K, parts = truth.shape[0], chain.inner.n_labels, table(theta, chain.inner.width)
    unary, pairs, triples = _scores_with_trigrams(chain, i, theta, parts[K:], work)
    scores = own.scores[: length + 1]
    recursions.best_pairs_by_count(unary, pairs, triples, truth, K, own.value)
    recursions.best_scores_of_pairs(own.value, length, K, scores)
    m = recursions.costliest_count(scores)
    recursions.trace_back_pairs(own.value, triples, truth, m, length - 1, K, y)
