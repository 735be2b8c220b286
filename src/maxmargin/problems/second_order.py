r"""Second-order chains: a chain with a weight for each three labels in a row as well.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t} + \sum_{t > 2} B_{y_{t-2} y_{t-1} y_t}

All but B is a `Chain`, whose functions do their part here. Its weights are followed by those of
B, and the statistics of an output by the counts of its trigrams. These are rows of the third label, one
for each pair of the others: first all that have the first label in the middle, as the oracle walks them.
"""

from typing import Any, NamedTuple

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.inference.second_order import second_order_viterbi
from maxmargin.loops import clear, copy
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.problems._labels import padded
from maxmargin.problems._transitions import lay_out
from maxmargin.problems.chain import Chain, ChainWork, add_costs, unpack_chain


class SecondOrderWeights(NamedTuple):
    """Weights by what they mean; ``trigrams[i, j, k]`` scores label k after label j after label i."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray
    trigrams: FloatArray


class SecondOrderWork(NamedTuple):
    """Work arrays: of the chain, and the scores of the best paths to each pair of labels."""

    chain: ChainWork
    value: FloatArray


class SecondOrderChain(NamedTuple):
    """A sequence-labelling problem; made by `from_sequences`, or of a `Chain` that is to get trigrams.

    Attributes
    ----------
    chain : Chain
        The same problem without trigrams.
    """

    chain: Chain

    @classmethod
    def from_sequences(
        cls, X: Any, y: Any, *, loss: Any = "normalized_hamming", forbidden: Any = None
    ) -> "SecondOrderChain":
        """Build the problem from sequences of features and of labels, as `Chain.from_sequences` does.

        Parameters
        ----------
        X : list of sequences
            Each a 2-D array or sparse matrix with one row per token, or a list with one dict or
            one iterable of strings per token.
        y : list of sequences of labels
            Strings or ints; labels are numbered in sorted order.
        loss : "normalized_hamming", "hamming" or array of shape (n_labels, n_labels)
            Share of wrong labels (default), number of wrong labels, or ``loss[a, b]`` for the
            cost of label b where the truth is a, averaged over the sequence.
        forbidden : list of pairs (before, after) of labels, or "bio", optional
            What no output has; None stands for the start or the end.
        """
        chain = Chain.from_sequences(X, y, loss=loss, forbidden=forbidden, owner=cls.__name__)
        return fitting(cls(chain), cls.__name__)

    @classmethod
    def from_encoded(
        cls,
        features: Any,
        offsets: IntArray,
        labels: IntArray,
        n_labels: int,
        *,
        loss: Any = "normalized_hamming",
        forbidden: Any = None,
    ) -> "SecondOrderChain":
        """Build the problem from features and labels, as `Chain.from_encoded` does."""
        arguments = {"loss": loss, "forbidden": forbidden, "owner": cls.__name__}
        chain = Chain.from_encoded(features, offsets, labels, n_labels, **arguments)
        return fitting(cls(chain), cls.__name__)

    @classmethod
    def for_prediction(
        cls, features: Any, offsets: IntArray, n_labels: int, forbidden: Any = None
    ) -> "SecondOrderChain":
        """Build a problem that can be decoded but not trained on: it has no labels."""
        chain = Chain.for_prediction(features, offsets, n_labels, forbidden, owner=cls.__name__)
        return fitting(cls(chain), cls.__name__)

    @property
    def offsets(self) -> IntArray:
        """Where the tokens of each sequence begin."""
        return self.chain.offsets

    def costed(self, factors: FloatArray) -> "SecondOrderChain":
        """Return the problem in which wrong tokens cost ``factors[k]`` times as much if label k is true."""
        return SecondOrderChain(self.chain.costed(factors))

    def unpack(self, w: FloatArray) -> SecondOrderWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return unpack_second_order(w, self.chain.rows.n_columns, self.chain.n_labels)


def unpack_second_order(w: FloatArray, n_features: int, n_labels: int) -> SecondOrderWeights:
    """Return the weights of a second-order chain by what they mean, as views of ``w``."""
    K, width = n_labels, padded(n_labels)
    end = (n_features + 2 + K) * width
    by_middle = w[end:].reshape(K, K, width)[:, :, :K]
    return SecondOrderWeights(*unpack_chain(w[:end], n_features, K), by_middle.transpose(1, 0, 2))


@subroutine
def first_trigram(problem, i):
    """Index of the first count of a trigram in the statistics of sequence i, and of its weight."""
    weights = (problem.chain.rows.n_columns + 2 + problem.chain.n_labels) * problem.chain.width
    return protocol.statistics_size(problem.chain, i), weights


@subroutine
def n_trigrams(problem):
    """Number of counts of trigrams, with what pads them."""
    return problem.chain.n_labels * problem.chain.n_labels * problem.chain.width


@protocol.sizes.register(SecondOrderChain)
def second_order_chain_sizes(problem):
    chain, trigrams = protocol.sizes(problem.chain), n_trigrams(problem)
    return protocol.Sizes(
        chain.examples,
        chain.weights + trigrams,
        chain.statistics + trigrams,
        chain.output,
        chain.parts + 2 * chain.output,
    )


@protocol.workspace.register(SecondOrderChain)
def second_order_chain_workspace(problem):
    K, width, longest = problem.chain.n_labels, problem.chain.width, problem.chain.longest
    return SecondOrderWork(protocol.workspace(problem.chain), aligned_zeros(longest, K, width))


@protocol.output_size.register(SecondOrderChain)
def second_order_chain_output_size(problem, i):
    return protocol.output_size(problem.chain, i)


@protocol.foresee.register(SecondOrderChain)
def second_order_chain_foresee(problem, i):
    protocol.foresee(problem.chain, i)


@protocol.statistics_size.register(SecondOrderChain)
def second_order_chain_statistics_size(problem, i):
    return protocol.statistics_size(problem.chain, i) + n_trigrams(problem)


@protocol.score.register(SecondOrderChain)
def second_order_chain_score(problem, i, w, theta):
    first, weights = first_trigram(problem, i)
    protocol.score(problem.chain, i, w, theta)
    copy(w[weights:], theta[first : first + n_trigrams(problem)])


@protocol.argmax.register(SecondOrderChain)
def second_order_chain_argmax(problem, i, theta, y, work):
    add_costs(problem.chain, i, theta.reshape((-1, problem.chain.width)), 1.0, work.chain)
    _best_path(problem, i, work.chain.unary, theta, y, work)


@protocol.decode.register(SecondOrderChain)
def second_order_chain_decode(problem, i, theta, y, work):
    parts = theta.reshape((-1, problem.chain.width))
    _best_path(problem, i, parts[problem.chain.n_labels :], theta, y, work)


@subroutine
def _best_path(problem, i, unary, theta, y, work):
    """Write the best labelling at these scores of labels at positions to ``y``."""
    chain, length = problem.chain, protocol.output_size(problem.chain, i)
    parts, K, (first, _) = theta.reshape((-1, chain.width)), chain.n_labels, first_trigram(problem, i)
    lay_out(chain.transitions, unary[:length], parts[:K], K, work.chain)
    triples = theta[first : first + n_trigrams(problem)].reshape((K, K, chain.width))
    second_order_viterbi(work.chain.unary[:length], work.chain.pairs, triples, K, work.value, y)


@protocol.loss.register(SecondOrderChain)
def second_order_chain_loss(problem, i, y):
    return protocol.loss(problem.chain, i, y)


@protocol.psi.register(SecondOrderChain)
def second_order_chain_psi(problem, i, y, index, value):
    count = protocol.psi(problem.chain, i, y, index, value)
    first, _ = first_trigram(problem, i)
    K, width = problem.chain.n_labels, problem.chain.width
    labels = problem.chain.labels[problem.chain.offsets[i] : problem.chain.offsets[i + 1]]
    for t in range(2, labels.shape[0]):
        truth = first + ((labels[t - 1] * K + labels[t - 2]) * width + labels[t])
        other = first + ((y[t - 1] * K + y[t - 2]) * width + y[t])
        if truth != other:
            index[count], value[count] = truth, 1.0
            index[count + 1], value[count + 1] = other, -1.0
            count += 2
    return count


@protocol.gram.register(SecondOrderChain)
def second_order_chain_gram(problem, i, move, image, work):
    first, _ = first_trigram(problem, i)
    protocol.gram(problem.chain, i, move, image, work.chain)
    clear(image[first : first + n_trigrams(problem)])
    for c in range(move.size[0]):
        if move.support[c] >= first:
            image[move.support[c]] = move.delta[move.support[c]]


@protocol.norm2.register(SecondOrderChain)
def second_order_chain_norm2(problem, i, move, image, work):
    first, _ = first_trigram(problem, i)
    total = protocol.norm2(problem.chain, i, move, image, work.chain)
    for c in range(move.size[0]):
        if move.support[c] >= first:
            entry = move.delta[move.support[c]]
            total += entry * entry  # a power is rounded otherwise where it is interpreted
    return total


@protocol.push.register(SecondOrderChain)
def second_order_chain_push(problem, i, move, scale, w, work):
    first, weights = first_trigram(problem, i)
    protocol.push(problem.chain, i, move, scale, w[:weights], work.chain)
    for c in range(move.size[0]):
        p = move.support[c]
        if p >= first:
            w[weights + (p - first)] += scale * move.delta[p]
