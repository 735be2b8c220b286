r"""First-order chains: one label per position, and a weight for each pair of neighbours.

.. math:: \langle w, \phi(x, y) \rangle = \sum_t \langle W_{y_t}, x_t \rangle + b_{y_1} + e_{y_T}
          + \sum_{t > 1} A_{y_{t-1} y_t}

with feature weights per label W, start and end biases b, e and transitions A, as in the code of
the paper. Rows of labels are contiguous and padded to ``width``. The weights are a matrix of such
rows: one per feature, then b, e and the rows of A. The statistics of an output are rows too: first
the counts of transitions, then the indicator of the label at each position.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import subroutine
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.encoding.checked import checked_count, checked_forbidden, checked_numbers, checked_offsets
from maxmargin.encoding.forbidden import check_allowed, encode_forbidden
from maxmargin.loops import weighted_sum
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.problems._labels import check_several, cost_matrix, pad_columns, padded
from maxmargin.problems._products import image_work, tabulated
from maxmargin.problems._transitions import Transitions, as_transitions, best_path
from maxmargin.rows import Rows, as_rows, n_rows


class ChainWeights(NamedTuple):
    """Weights of a chain by what they mean; ``transitions[j, k]`` scores label k after label j."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray


class ChainWork(NamedTuple):
    """Work arrays.

    Attributes
    ----------
    unary, pairs, value, joint : arrays
        Of the oracles.
    image : array
        Of `gram`, for sequences without a table.
    nonzero : array
        Positions or labels where a move is not zero.
    """

    unary: FloatArray
    pairs: FloatArray
    value: FloatArray
    joint: FloatArray
    image: FloatArray
    nonzero: np.ndarray[Any, np.dtype[np.uint32]]


class Chain(NamedTuple):
    """A sequence-labelling problem; made by `from_sequences`.

    Attributes
    ----------
    rows : Rows
        Features of all tokens of all sequences, one after another.
    offsets : array of shape (n + 1,)
        Sequence i has the tokens offsets[i], ..., offsets[i + 1] - 1.
    labels : array of shape (n_tokens,)
    cost : array of shape (n_labels, width)
    scale : array of shape (n,)
        The loss of sequence i is scale[i] times the sum of its tokens' costs.
    products : array
        For each sequence the matrix of the inner products of its tokens' features: all that steps
        within its block need to know of them.
    product_offsets : array of shape (n + 1,)
    transitions : AllTransitions or SomeTransitions
        Which labels may follow which.
    """

    rows: Rows
    offsets: IntArray
    labels: IntArray
    cost: FloatArray
    scale: FloatArray
    products: FloatArray
    product_offsets: IntArray
    transitions: Transitions
    n_labels: int
    width: int
    longest: int

    @classmethod
    def from_sequences(
        cls,
        X: Any,
        y: Any,
        *,
        loss: Any = "normalized_hamming",
        forbidden: Any = None,
        owner: str = "Chain",
    ) -> "Chain":
        """Build the problem from sequences of features and of labels.

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
            What no output has; None stands for the start or the end. "bio" forbids ``I-x`` that does not
            continue ``B-x`` or ``I-x``.
        owner : str
            Whose data they are, in errors.
        """
        tokens = SequenceEncoder(owner=owner).fit_transform(X)
        labels, classes = encode_labels(y, tokens.offsets, owner=owner)
        matrix = encode_forbidden(forbidden, classes, owner=owner)
        if matrix is not None:
            check_allowed(labels, tokens.offsets, matrix, classes, owner=owner)
        return cls.from_encoded(
            tokens.rows, tokens.offsets, labels, len(classes), loss=loss, forbidden=matrix, owner=owner
        )

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
        owner: str = "Chain",
    ) -> "Chain":
        """Build the problem from the tokens' features and labels 0, ..., n_labels - 1.

        ``forbidden`` is a matrix of `encode_forbidden`, or None.
        """
        problem = cls.for_prediction(features, offsets, n_labels, forbidden, owner=owner)
        check_several(n_labels, owner)
        cost = cost_matrix(loss, ("normalized_hamming", "hamming"), n_labels, owner)
        lengths = np.diff(problem.offsets)
        unscaled = isinstance(loss, str) and loss == "hamming"
        problem = problem._replace(
            labels=checked_numbers(labels, n_rows(problem.rows), n_labels, owner),
            cost=pad_columns(cost, problem.width),
            scale=np.ones(len(lengths)) if unscaled else 1.0 / lengths,
        )
        return tabulated(problem)

    @classmethod
    def for_prediction(
        cls, features: Any, offsets: IntArray, n_labels: int, forbidden: Any = None, *, owner: str = "Chain"
    ) -> "Chain":
        """Build a problem that can be decoded but not trained on: it has no labels."""
        width, rows = padded(checked_count(n_labels, owner, "n_labels")), as_rows(features, owner)
        offsets = checked_offsets(offsets, n_rows(rows), owner)
        matrix = None if forbidden is None else checked_forbidden(forbidden, n_labels, owner)
        problem = cls(
            rows=rows,
            offsets=offsets,
            labels=np.zeros(0, dtype=np.int64),
            cost=np.zeros((0, width)),
            scale=np.zeros(0),
            products=np.zeros(0),
            product_offsets=np.zeros(0, dtype=np.int64),
            transitions=as_transitions(matrix, width),
            n_labels=int(n_labels),
            width=width,
            longest=int(np.diff(offsets).max()),
        )
        return fitting(problem, owner)

    def costed(self, factors: FloatArray) -> "Chain":
        """Return the problem in which wrong tokens cost ``factors[k]`` times as much if label k is true."""
        return self._replace(cost=self.cost * factors[:, None])

    def unpack(self, w: FloatArray) -> ChainWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return unpack_chain(w, self.rows.n_columns, self.n_labels)


def unpack_chain(w: FloatArray, n_features: int, n_labels: int) -> ChainWeights:
    """Return the weights of a chain by what they mean, as views of ``w``."""
    W, f = w.reshape(-1, padded(n_labels))[:, :n_labels], n_features
    return ChainWeights(W[:f].T, W[f], W[f + 1], W[f + 2 :])


@protocol.sizes.register(Chain)
def chain_sizes(problem):
    width, K, longest = problem.width, problem.n_labels, problem.longest
    n_weights = (problem.rows.n_columns + 2 + K) * width
    return protocol.Sizes(
        problem.offsets.shape[0] - 1, n_weights, (K + longest) * width, longest, 4 * longest
    )


@protocol.workspace.register(Chain)
def chain_workspace(problem):
    width, longest = problem.width, problem.longest
    return ChainWork(
        aligned_zeros(longest, width),
        aligned_zeros(problem.n_labels, width),
        aligned_zeros(longest, width),
        aligned_zeros(2 * problem.n_labels + 2, width),
        image_work(problem, width),
        np.zeros(max(longest, width) + 1, dtype=np.uint32),
    )


@protocol.output_size.register(Chain)
def chain_output_size(problem, i):
    return problem.offsets[i + 1] - problem.offsets[i]


@protocol.statistics_size.register(Chain)
def chain_statistics_size(problem, i):
    return (problem.n_labels + problem.offsets[i + 1] - problem.offsets[i]) * problem.width


@subroutine
def add_costs(problem, i, parts, share, work):
    """Write the scores of labels at positions, and ``share`` times what they cost, to ``work.unary``."""
    first, K = problem.offsets[i], problem.n_labels
    for t in range(problem.offsets[i + 1] - first):
        cost = problem.cost[problem.labels[first + t]]
        weighted_sum(1.0, parts[K + t], share * problem.scale[i], cost, work.unary[t])


@protocol.argmax.register(Chain)
def chain_argmax(problem, i, theta, y, work):
    length = problem.offsets[i + 1] - problem.offsets[i]
    parts, K = theta.reshape((-1, problem.width)), problem.n_labels
    add_costs(problem, i, parts, 1.0, work)
    best_path(problem.transitions, work.unary[:length], parts[:K], K, work, y)


@protocol.decode.register(Chain)
def chain_decode(problem, i, theta, y, work):
    length = problem.offsets[i + 1] - problem.offsets[i]
    parts, K = theta.reshape((-1, problem.width)), problem.n_labels
    best_path(problem.transitions, parts[K : K + length], parts[:K], K, work, y)


@protocol.loss.register(Chain)
def chain_loss(problem, i, y):
    first = problem.offsets[i]
    total = 0.0
    for t in range(problem.offsets[i + 1] - first):
        total += problem.cost[problem.labels[first + t], y[t]]
    return problem.scale[i] * total


@protocol.psi.register(Chain)
def chain_psi(problem, i, y, index, value):
    first, width, K = problem.offsets[i], problem.width, problem.n_labels
    count = 0
    same_before = True
    for t in range(problem.offsets[i + 1] - first):
        truth = problem.labels[first + t]
        same = truth == y[t]
        if not same:
            index[count], value[count] = (K + t) * width + truth, 1.0
            index[count + 1], value[count + 1] = (K + t) * width + y[t], -1.0
            count += 2
        if t > 0 and not (same and same_before):
            index[count], value[count] = problem.labels[first + t - 1] * width + truth, 1.0
            index[count + 1], value[count + 1] = y[t - 1] * width + y[t], -1.0
            count += 2
        same_before = same
    return count
