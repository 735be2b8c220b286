"""The oracles of second-order chains: Viterbi over pairs of labels."""

from typing import NamedTuple

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.compiling.views import table
from maxmargin.inference.second_order import second_order_viterbi
from maxmargin.problems import oracle
from maxmargin.problems.halves import absent
from maxmargin.problems.layouts import chain_statistics, trigram_statistics
from maxmargin.problems.oracles._transitions import lay_out
from maxmargin.problems.oracles.chain import ChainOracle, ChainOracleWork, add_costs


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
