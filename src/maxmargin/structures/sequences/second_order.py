r"""Second-order chains: a chain that also has a weight for each trigram of labels.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t} + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}

Both halves wrap those of a chain, which do everything except B.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, ParamSpec

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.generics import absent
from maxmargin.compiling.intrinsics import table
from maxmargin.compiling.loops import add_scaled, clear, copy, scaled_copy
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.structures import counted, feature_map, oracle
from maxmargin.structures.counted import Counted
from maxmargin.structures.k_best import find_k_best, search_space
from maxmargin.structures.margins import decode_with_margins, margin_workspace, part_entry
from maxmargin.structures.means import find_means, means_space
from maxmargin.structures.oracle import oracle_workspace, output_size
from maxmargin.structures.problem import Problem, fitting, padded
from maxmargin.structures.recursions import (
    KBestWork,
    best_pair,
    best_predecessor,
    best_predecessors,
    continue_best,
    exponentials,
    k_best_work,
    lead,
    powers_of_near,
    softmax,
    start_one,
    step_back,
    transpose,
    write_best,
)
from maxmargin.structures.sequences.model import Chain, ChainMap, ChainProblem, chain_statistics, unpack_chain
from maxmargin.structures.sequences.oracle import (
    ChainOracle,
    ChainOracleWork,
    _lift_barriers,
    add_costs,
    chain_part_entry,
    lay_out,
)
from maxmargin.structures.slack import slack_argmax, slack_workspace


@subroutine
def trigram_statistics(n_labels, width):
    """Number of statistics of trigrams, which follow those of a chain.

    They are rows of the third label, one for each pair of the others, ordered by the middle label first,
    which is the order in which the oracle reads them.
    """
    return n_labels * n_labels * width


# The feature map of second-order chains: that of a chain, followed by the identity on counts of trigrams.
#
# .. math:: \langle w, \phi(x, y) \rangle = \langle w', \phi_{\text{chain}}(x, y) \rangle
#           + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}
#
# The weights of the chain are followed by those of B, in the order of the statistics.


class SecondOrderWeights(NamedTuple):
    """Weights by meaning; ``trigrams[i, j, k]`` scores label k after label j after label i."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray
    trigrams: FloatArray


class SecondOrderMap(NamedTuple):
    """Features of sequences, which are those of a chain: trigrams have none."""

    inner: ChainMap


@feature_map.map_sizes.register(SecondOrderMap)
def second_order_map_sizes(phi):
    chain = feature_map.map_sizes(phi.inner)
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    return feature_map.MapSizes(chain.examples, chain.weights + trigrams, chain.statistics + trigrams)


@feature_map.statistics_size.register(SecondOrderMap)
def second_order_statistics_size(phi, i):
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    return feature_map.statistics_size(phi.inner, i) + trigrams


@subroutine
def _first_weight(phi):
    """Index of the first weight of a trigram."""
    return (phi.inner.rows.n_columns + 2 + phi.inner.n_labels) * phi.inner.width


@feature_map.score.register(SecondOrderMap)
def second_order_score(phi, i, w, theta):
    first = feature_map.statistics_size(phi.inner, i)
    feature_map.score(phi.inner, i, w, theta)
    trigrams = trigram_statistics(phi.inner.n_labels, phi.inner.width)
    copy(w[_first_weight(phi) :], theta[first : first + trigrams])


@feature_map.gram.register(SecondOrderMap)
def second_order_gram(phi, i, move, image, work):
    first = feature_map.statistics_size(phi.inner, i)
    feature_map.gram(phi.inner, i, move, image, work.inner)
    clear(image[first : first + trigram_statistics(phi.inner.n_labels, phi.inner.width)])
    for c in range(move.size[0]):
        if move.support[c] >= first:
            image[move.support[c]] = move.delta[move.support[c]]


@feature_map.norm2.register(SecondOrderMap)
def second_order_norm2(phi, i, move, image, work):
    first = feature_map.statistics_size(phi.inner, i)
    total = feature_map.norm2(phi.inner, i, move, image, work.inner)
    for c in range(move.size[0]):
        if move.support[c] >= first:
            entry = move.delta[move.support[c]]
            total += entry * entry  # the interpreter would round a power differently
    return total


@feature_map.push.register(SecondOrderMap)
def second_order_push(phi, i, move, scale, w, work):
    first, weights = feature_map.statistics_size(phi.inner, i), _first_weight(phi)
    feature_map.push(phi.inner, i, move, scale, w[:weights], work.inner)
    for c in range(move.size[0]):
        p = move.support[c]
        if p >= first:
            w[weights + (p - first)] += scale * move.delta[p]


@feature_map.row_layout.register(SecondOrderMap)
def second_order_row_layout(phi: SecondOrderMap) -> feature_map.RowLayout:
    return feature_map.row_layout(phi.inner)


@feature_map.unpack.register(SecondOrderMap)
def second_order_unpack(phi: SecondOrderMap, w: FloatArray) -> SecondOrderWeights:
    return unpack_second_order(w, phi.inner.rows.n_columns, phi.inner.n_labels)


def unpack_second_order(w: FloatArray, n_features: int, n_labels: int) -> SecondOrderWeights:
    """Return the weights of a second-order chain by meaning, as views of ``w``."""
    K, width = n_labels, padded(n_labels)
    end = (n_features + 2 + K) * width
    by_middle = w[end:].reshape(K, K, width)[:, :, :K]
    return SecondOrderWeights(*unpack_chain(w[:end], n_features, K), by_middle.transpose(1, 0, 2))


@helper
def second_order_margins(unary, pairwise, triples, n_labels, value, turned, behind, rows, y, margins):
    """Write the margins of the labels that `second_order_viterbi` found.

    Parameters
    ----------
    unary, pairwise, triples, n_labels, value, y
        As for `second_order_viterbi`, after it.
    turned : array of shape (n_labels, n_labels, width)
        Workspace: ``triples`` with the outer labels exchanged.
    behind : array of shape (2, n_labels, width)
        Workspace: ``behind[t % 2, k, j]`` is the best score after position t, of label k, after label j.
    rows : array of shape (2, width)
        Workspace.
    margins : array of shape (length,)
        Receives the margins.
    """
    last = unary.shape[0] - 1
    if last == 0:
        margins[0] = lead(value[0, 0], n_labels, y[0])
        return
    for j in range(n_labels):
        transpose(triples[j], n_labels, turned[j])
        clear(behind[last % 2, j])
    for t in range(last, 0, -1):
        after, before = behind[t % 2], behind[(t - 1) % 2]
        _best_of_pairs(value[t], after, n_labels, rows[0], rows[1])
        margins[t] = lead(rows[1], n_labels, y[t])
        for j in range(n_labels):
            for k in range(n_labels):
                rows[1, k] = pairwise[j, k] + unary[t, k] + after[k, j]
            best_predecessors(rows[1], turned[j], n_labels, before[j])
    margins[0] = lead(rows[0], n_labels, y[0])


@helper
def _best_of_pairs(value, after, n_labels, first, second):
    """Write the max-marginals of two neighbours, from those of their pairs of labels."""
    for k in range(n_labels):
        first[k] = second[k] = -np.inf
    for j in range(n_labels):
        for k in range(n_labels):
            total = value[j, k] + after[k, j]
            first[j] = total if total > first[j] else first[j]
            second[k] = total if total > second[k] else second[k]


@helper
def k_best_second_order(unary, pairwise, triples, n_labels, work, y, scores):
    """Find the k labellings of largest score, if scores depend on three labels in a row.

    A state is a label k after a label j, and has number ``k * n_labels + j``. The states that lead to it,
    label j after any other, are contiguous. At the first position j is 0.

    Parameters
    ----------
    unary, pairwise, triples : arrays
        As for `second_order_viterbi`.
    n_labels : int
    work : KBestWork
        For n_labels ** 2 states.
    y, scores : arrays
        As for `k_best_paths`.
    """
    length = unary.shape[0]
    for k in range(n_labels):
        for j in range(n_labels):
            state = k * n_labels + j
            start_one(unary[0, k] if j == 0 else -np.inf, work.value[0, state])
            if length > 1:
                start_one(unary[0, j] + pairwise[j, k] + unary[1, k], work.value[1, state])
                work.before[1, state, 0], work.rank[1, state, 0] = j * n_labels, 0
    for t in range(2, length):
        for k in range(n_labels):
            for j in range(n_labels):
                gain = pairwise[j, k] + unary[t, k]
                continue_best(t, k * n_labels + j, gain, j * n_labels, triples[j, :, k], work)
    write_best(length - 1, work, y, scores)
    for r in range(scores.shape[0]):
        if scores[r] > -np.inf:
            for t in range(length):
                y[r, t] //= n_labels


# The best path through a trellis whose scores depend on three consecutive labels.


@helper
def second_order_viterbi(unary, pairwise, triples, n_labels, value, y):
    r"""Find the labelling of largest score.

    .. math:: \max_y \; \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t)
              + \sum_{t \ge 2} q(y_{t-2}, y_{t-1}, y_t)

    A state is a pair of neighbouring labels. For a given label j in the middle, the step from pairs (i, j) to
    pairs (j, k) is a step of `viterbi`, so a position takes n_labels ** 3 additions. Padding and ties are as
    in `viterbi`.

    Parameters
    ----------
    unary : array of shape (length, width)
    pairwise : array of shape (n_labels, width)
        ``pairwise[j, k]`` is the score of label k after label j.
    triples : array of shape (n_labels, n_labels, width)
        ``triples[j, i, k]`` is the score of label k after label j after label i.
    n_labels : int
    value : array of shape (at least length, n_labels, width)
        Workspace: ``value[t, j, k]`` becomes the score of the best path that ends in label j at position
        t - 1 and label k at position t. At the first position j is 0.
    y : int array of length at least ``length``
        Receives the labelling.
    """
    last = unary.shape[0] - 1
    for k in range(unary.shape[1]):
        value[0, 0, k] = unary[0, k]
    for t in range(1, last + 1):
        for j in range(n_labels):
            ends = value[t, j]
            if t == 1:
                for k in range(ends.shape[0]):
                    ends[k] = value[0, 0, j]
            else:
                best_predecessors(value[t - 1, :, j], triples[j], n_labels, ends)
            for k in range(ends.shape[0]):
                ends[k] += pairwise[j, k] + unary[t, k]
    _trace_back(value[: last + 1], triples, n_labels, y)


@helper
def _trace_back(value, triples, n_labels, y):
    """Write the labelling, from its last pair to the first."""
    last = value.shape[0] - 1
    before, best = best_pair(value[last], n_labels if last > 0 else 1, n_labels)
    y[last] = best
    if last > 0:
        y[last - 1] = before
    for t in range(last, 1, -1):
        y[t - 2] = best_predecessor(value[t - 1, :, y[t - 1]], triples[y[t - 1], :, y[t]], n_labels)


# The oracles of second-order chains: Viterbi over pairs of labels.


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
    return SecondOrderOracleWork(oracle.oracle_workspace(chain.inner), aligned_zeros(longest, K, width))


@subroutine
def trigram_span(chain, i):
    """Where the counts of trigrams begin and end in the statistics of sequence i."""
    K, width, length = chain.inner.n_labels, chain.inner.width, oracle.output_size(chain.inner, i)
    first = chain_statistics(K, width, length)
    return first, first + trigram_statistics(K, width)


@oracle.argmax.register(SecondOrderOracle)
def second_order_argmax(chain, i, theta, y, work):
    add_costs(chain.inner, i, table(theta, chain.inner.width), 1.0, work.inner)
    _best_path(chain, i, work.inner.unary, theta, y, work)


@oracle.decode.register(SecondOrderOracle)
def second_order_decode(chain, i, theta, y, work):
    parts = table(theta, chain.inner.width)
    _best_path(chain, i, parts[chain.inner.n_labels :], theta, y, work)


@subroutine
def _best_path(chain, i, unary, theta, y, work):
    """Write the best labelling for these scores of labels at positions to ``y``."""
    length, K, width = oracle.output_size(chain.inner, i), chain.inner.n_labels, chain.inner.width
    parts, (first, stop) = table(theta, width), trigram_span(chain, i)
    triples = theta[first:stop].reshape((K, K, width))
    lay_out(chain.inner.transitions, unary[:length], parts[:K], K, work.inner)
    second_order_viterbi(work.inner.unary[:length], work.inner.pairs, triples, K, work.value, y)


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


SecondOrderProblem = Problem[SecondOrderMap, SecondOrderOracle]
Arguments = ParamSpec("Arguments")
_NAME = "SecondOrderChain"


def _with_trigrams(build: Callable[Arguments, ChainProblem]) -> Callable[Arguments, SecondOrderProblem]:
    """Return a builder of chains that also have trigram weights, if these fit into memory."""

    @functools.wraps(build)
    def build_second_order(*args: Arguments.args, **kwargs: Arguments.kwargs) -> SecondOrderProblem:
        owner = str(kwargs.setdefault("owner", _NAME))
        chain = build(*args, **kwargs)
        return fitting(Problem(SecondOrderMap(chain.map), SecondOrderOracle(chain.oracle)), owner)

    return build_second_order


class SecondOrderChain:
    """Builders of sequence-labelling problems with trigram weights: those of `Chain`, with its arguments."""

    from_sequences = staticmethod(_with_trigrams(Chain.from_sequences))
    from_encoded = staticmethod(_with_trigrams(Chain.from_encoded))
    for_prediction = staticmethod(_with_trigrams(Chain.for_prediction))


class SecondOrderMarginWork(NamedTuple):
    """Workspace: of the oracle, and of `second_order_margins`."""

    oracle: SecondOrderOracleWork
    turned: FloatArray
    behind: FloatArray
    rows: FloatArray


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


@part_entry.register(SecondOrderOracle)
def second_order_part_entry(chain: SecondOrderOracle, i: int, y: IntArray, p: int) -> tuple[int, float]:
    return chain_part_entry(chain.inner, i, y, p)


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


# The Gibbs distribution over the labellings of a sequence whose scores depend on three labels in a row.
#
# A state is a pair of neighbouring labels. For a given label in the middle, the step from pairs (i, j) to
# pairs (j, k) is a step of `forward_backward`.


class PairSums(NamedTuple):
    """Workspace.

    Attributes
    ----------
    joint : array of shape (n_labels + 2, width)
        Exponentials of one step, as in `forward_backward`.
    powers, tops : arrays of shapes (n_labels, n_labels, width) and (n_labels,)
        Exponentials of the scores of trigrams, by their label in the middle; see `powers_of_near`.
    pairs : array of shape (2, n_labels, width)
        The probabilities of the pairs of labels at two positions.
    """

    joint: FloatArray
    powers: FloatArray
    tops: FloatArray
    pairs: FloatArray


def pair_sums(n_labels: int, width: int) -> PairSums:
    """Return a workspace for sequences of any length."""
    powers, pairs = aligned_zeros(n_labels, n_labels, width), aligned_zeros(2, n_labels, width)
    return PairSums(aligned_zeros(n_labels + 2, width), powers, np.zeros(n_labels), pairs)


@helper
def second_order_means(unary, pairwise, triples, n_labels, value, work, marginals, counts, trigrams):
    r"""Compute the marginals of the distribution over labellings with the probabilities

    .. math:: p(y) \propto \exp \Big( \sum_t u_t(y_t) + \sum_{t \ge 1} p(y_{t-1}, y_t)
              + \sum_{t \ge 2} q(y_{t-2}, y_{t-1}, y_t) \Big) .

    Columns may be padded beyond ``n_labels``. The padding of marginals and counts becomes zero.

    Parameters
    ----------
    unary, pairwise, triples : arrays
        As for `second_order_viterbi`.
    n_labels : int
    value : array of shape (at least length, n_labels, width)
        Workspace: the logarithm of the sum over all paths that end in label j at position t - 1 and label k
        at position t. At the first position j is 0.
    work : PairSums
    marginals : array of shape (length, width)
        Receives the probability of each label at each position.
    counts : array of shape (n_labels, width)
        Receives the expected number of times that label k follows label j.
    trigrams : array of shape (n_labels, n_labels, width)
        Receives the expected number of each trigram, in the order of ``triples``.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of the exponentials of all labellings.
    """
    last, pairs = unary.shape[0] - 1, work.pairs
    for j in range(n_labels):
        clear(counts[j])
        for i in range(n_labels):
            clear(trigrams[j, i])
        work.tops[j] = powers_of_near(triples[j], n_labels, work.powers[j])
    if last == 0:
        return softmax(unary[0], n_labels, marginals[0])
    _sum_forward(unary, pairwise, triples, n_labels, value, work)
    log_partition = _softmax_of_pairs(value[last], n_labels, work.joint, pairs[last & 1])
    for t in range(last, 0, -1):
        _add_up(pairs[t & 1], n_labels, marginals[t], counts)
        if t > 1:
            after, before = pairs[t & 1], pairs[(t - 1) & 1]
            _step_pairs_back(value[t - 1], triples, n_labels, work, after, before, trigrams)
    clear(marginals[0])
    for j in range(n_labels):
        for k in range(n_labels):
            marginals[0, j] += pairs[1, j, k]
    return log_partition


@helper
def _sum_forward(unary, pairwise, triples, n_labels, value, work):
    """Fill ``value`` from the second position on."""
    joint = work.joint
    for t in range(1, unary.shape[0]):
        for j in range(n_labels):
            row = value[t, j]
            for k in range(n_labels):
                row[k] = pairwise[j, k] + unary[t, k]
            if t == 1:
                for k in range(n_labels):
                    row[k] += unary[0, j]
            else:
                before = value[t - 1, :, j]
                exponentials(before, triples[j], work.powers[j], work.tops[j], n_labels, joint)
                for k in range(n_labels):
                    row[k] += joint[n_labels, k] + math.log(joint[n_labels + 1, k])


@helper
def _softmax_of_pairs(value, n_labels, joint, pairs):
    """Write the probabilities of the last two labels, and return the log-partition."""
    sums, p = joint[0], joint[1]
    for j in range(n_labels):
        sums[j] = softmax(value[j], n_labels, pairs[j])
    log_partition = softmax(sums, n_labels, p)
    for j in range(n_labels):
        scaled_copy(p[j], pairs[j], pairs[j])
    return log_partition


@helper
def _add_up(pairs, n_labels, marginals, counts):
    """Write the marginals of a position, and add the probabilities of its pairs to the counts."""
    clear(marginals)
    for j in range(n_labels):
        add_scaled(1.0, pairs[j], marginals)
        add_scaled(1.0, pairs[j], counts[j])


@helper
def _step_pairs_back(value, triples, n_labels, work, after, before, trigrams):
    """Compute the probabilities of the pairs of a position from those of the next."""
    for i in range(n_labels):
        clear(before[i])
    for j in range(n_labels):
        exponentials(value[:, j], triples[j], work.powers[j], work.tops[j], n_labels, work.joint)
        step_back(work.joint, n_labels, after[j], before[:, j], trigrams[j])


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
