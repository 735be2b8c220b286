"""The oracles of chains: Viterbi and forward-backward on scores of labels at positions and of transitions."""

from typing import NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.compiling.prefetch import prefetch
from maxmargin.compiling.views import table
from maxmargin.loops import weighted_sum
from maxmargin.problems import oracle
from maxmargin.problems.oracles._transitions import Transitions, best_path, path_means
from maxmargin.problems.subsets import indexed_by_example


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
