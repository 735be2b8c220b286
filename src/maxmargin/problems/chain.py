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

from maxmargin._compile import helper, kernel, subroutine
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.inference.viterbi import viterbi
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._labels import check_several, cost_matrix, pad_columns, padded
from maxmargin.rows import (
    FloatArray,
    IntArray,
    Rows,
    add_scaled,
    aligned_zeros,
    as_rows,
    clear,
    copy,
    count_nonzero,
    plain,
    row_add,
    row_clear,
    row_dot,
    row_push,
    row_scores,
    weighted_sum,
)

# Longest sequence whose inner products are tabulated, at 8 length bytes a token.
_TABULATED = 128
# Up to this many nonzeros of a move per position, they are pushed one by one.
_FEW = 10


class ChainWeights(NamedTuple):
    """Weights of a chain by what they mean; ``transitions[j, k]`` scores label k after label j."""

    unary: FloatArray
    start: FloatArray
    end: FloatArray
    transitions: FloatArray


class ChainWork(NamedTuple):
    """Work arrays: of the oracle (``unary``, ``value``), and of `gram` for sequences without a table."""

    unary: FloatArray
    value: FloatArray
    image: FloatArray


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
    """

    rows: Rows
    offsets: IntArray
    labels: IntArray
    cost: FloatArray
    scale: FloatArray
    products: FloatArray
    product_offsets: IntArray
    n_labels: int
    width: int
    longest: int

    @classmethod
    def from_sequences(cls, X: Any, y: Any, *, loss: Any = "normalized_hamming") -> "Chain":
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
        """
        tokens = SequenceEncoder(owner="Chain").fit_transform(X)
        labels, classes = encode_labels(y, tokens.offsets, owner="Chain")
        return cls.from_encoded(tokens.rows, tokens.offsets, labels, len(classes), loss=loss)

    @classmethod
    def from_encoded(
        cls,
        features: Any,
        offsets: IntArray,
        labels: IntArray,
        n_labels: int,
        *,
        loss: Any = "normalized_hamming",
    ) -> "Chain":
        """Build the problem from the tokens' valid features and labels 0, ..., n_labels - 1."""
        check_several(n_labels, "Chain")
        problem = cls.for_prediction(features, offsets, n_labels)
        cost = cost_matrix(loss, ("normalized_hamming", "hamming"), n_labels, "Chain")
        lengths = np.diff(offsets)
        tabulated = np.where(lengths <= _TABULATED, lengths, 0)
        unscaled = isinstance(loss, str) and loss == "hamming"
        problem = problem._replace(
            labels=plain(labels, np.int64),
            cost=pad_columns(cost, problem.width),
            scale=np.ones(len(lengths)) if unscaled else 1.0 / lengths,
            product_offsets=np.concatenate([[0], np.cumsum(tabulated**2)]),
        )
        products = np.zeros(problem.product_offsets[-1])
        _fill_products(problem, np.zeros(problem.rows.n_columns), products)
        return problem._replace(products=products)

    @classmethod
    def for_prediction(cls, features: Any, offsets: IntArray, n_labels: int) -> "Chain":
        """Build a problem that can be decoded but not trained on: it has no labels."""
        width = padded(n_labels)
        return cls(
            rows=as_rows(features),
            offsets=plain(offsets, np.int64),
            labels=np.zeros(0, dtype=np.int64),
            cost=np.zeros((0, width)),
            scale=np.zeros(0),
            products=np.zeros(0),
            product_offsets=np.zeros(0, dtype=np.int64),
            n_labels=int(n_labels),
            width=width,
            longest=int(np.diff(offsets).max()),
        )

    def unpack(self, w: FloatArray) -> ChainWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return unpack_chain(w, self.rows.n_columns, self.n_labels)


def unpack_chain(w: FloatArray, n_features: int, n_labels: int) -> ChainWeights:
    """Return the weights of a chain by what they mean, as views of ``w``."""
    W, f = w.reshape(-1, padded(n_labels))[:, :n_labels], n_features
    return ChainWeights(W[:f].T, W[f], W[f + 1], W[f + 2 :])


@kernel
def _fill_products(problem, buffer, products):
    """``products[i] = X_i @ X_i.T``, row by row; ``buffer`` is one zero per feature."""
    rows = problem.rows
    for i in range(problem.offsets.shape[0] - 1):
        p, first, last = problem.product_offsets[i], problem.offsets[i], problem.offsets[i + 1]
        if p == problem.product_offsets[i + 1]:
            continue
        for s in range(first, last):
            row_add(rows, s, 1.0, buffer)
            for t in range(first, last):
                products[p] = row_dot(rows, t, buffer)
                p += 1
            row_add(rows, s, -1.0, buffer)  # x - x is exactly zero


@protocol.sizes.register(Chain)
def _(problem):
    width, K, longest = problem.width, problem.n_labels, problem.longest
    n_weights = (problem.rows.n_columns + 2 + K) * width
    return protocol.Sizes(
        problem.offsets.shape[0] - 1, n_weights, (K + longest) * width, longest, 4 * longest
    )


@protocol.workspace.register(Chain)
def _(problem):
    width, longest = problem.width, problem.longest
    features = problem.rows.n_columns if longest > _TABULATED else 0
    return ChainWork(
        aligned_zeros(longest, width),
        aligned_zeros(longest, width),
        aligned_zeros(features, width),
    )


@protocol.output_size.register(Chain)
def _(problem, i):
    return problem.offsets[i + 1] - problem.offsets[i]


@protocol.score.register(Chain)
def _(problem, i, w, theta):
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    W, F, K = w.reshape((-1, problem.width)), problem.rows.n_columns, problem.n_labels
    parts = theta.reshape((-1, problem.width))
    copy(w[(F + 2) * problem.width :], theta[: K * problem.width])
    for t in range(length):
        row_scores(problem.rows, first + t, W, parts[K + t])
    add_scaled(1.0, W[F], parts[K])
    add_scaled(1.0, W[F + 1], parts[K + length - 1])


@protocol.argmax.register(Chain)
def _(problem, i, theta, y, work):
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    parts, K = theta.reshape((-1, problem.width)), problem.n_labels
    for t in range(length):
        cost = problem.cost[problem.labels[first + t]]
        weighted_sum(1.0, parts[K + t], problem.scale[i], cost, work.unary[t])
    viterbi(work.unary[:length], parts[:K], K, work.value, y)


@protocol.decode.register(Chain)
def _(problem, i, theta, y, work):
    length = problem.offsets[i + 1] - problem.offsets[i]
    parts, K = theta.reshape((-1, problem.width)), problem.n_labels
    viterbi(parts[K : K + length], parts[:K], K, work.value, y)


@protocol.loss.register(Chain)
def _(problem, i, y):
    first = problem.offsets[i]
    total = 0.0
    for t in range(problem.offsets[i + 1] - first):
        total += problem.cost[problem.labels[first + t], y[t]]
    return problem.scale[i] * total


@protocol.psi.register(Chain)
def _(problem, i, y, index, value):
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


@protocol.gram.register(Chain)
def _(problem, i, move, image, work):
    length, K = problem.offsets[i + 1] - problem.offsets[i], problem.n_labels
    delta, parts = move.delta.reshape((-1, problem.width)), image.reshape((-1, problem.width))
    copy(move.delta[: K * problem.width], image[: K * problem.width])
    D, G = delta[K : K + length], parts[K : K + length]
    if problem.product_offsets[i] == problem.product_offsets[i + 1]:
        _stream_products(problem, i, D, G, work)
    elif move.size[0] <= _FEW * length:
        _multiply_entries(problem, i, move, G)
    else:
        _multiply_rows(problem, i, D, G)
    add_scaled(1.0, D[0], G[0])
    add_scaled(1.0, D[length - 1], G[length - 1])


@subroutine
def _multiply_entries(problem, i, move, G):
    """``G = X_i X_i^T D``, one nonzero of D after another."""
    length, transitions = G.shape[0], problem.n_labels * problem.width
    for t in range(length):
        clear(G[t])
    for c in range(move.size[0]):
        p = move.support[c]
        if p >= transitions:
            t, k = _position_and_label(p, transitions, problem.width)
            first = problem.product_offsets[i] + t * length
            column = problem.products[first : first + length]
            for s in range(length):
                G[s, k] += column[s] * move.delta[p]


@subroutine
def _multiply_rows(problem, i, D, G):
    """The same, one row of labels after another."""
    length = G.shape[0]
    for t in range(length):
        clear(G[t])
    for s in range(length):
        if count_nonzero(D[s]) > 0:
            for t in range(length):
                add_scaled(problem.products[problem.product_offsets[i] + s * length + t], D[s], G[t])


@subroutine
def _stream_products(problem, i, D, G, work):
    """The same for a sequence too long for a table: ``image = X_i^T D``, then ``G = X_i image``."""
    rows, first = problem.rows, problem.offsets[i]
    for t in range(D.shape[0]):
        if count_nonzero(D[t]) > 0:
            row_push(rows, first + t, 1.0, D[t], work.image)
    for t in range(D.shape[0]):
        row_scores(rows, first + t, work.image, G[t])
    for t in range(D.shape[0]):
        row_clear(rows, first + t, work.image)


@protocol.push.register(Chain)
def _(problem, i, move, scale, w):
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    W, F, K = w.reshape((-1, problem.width)), problem.rows.n_columns, problem.n_labels
    D = move.delta.reshape((-1, problem.width))
    if move.size[0] <= _FEW * length:
        _push_entries(problem, first, move, scale, W)
    else:
        for t in range(length):
            if count_nonzero(D[K + t]) > 0:
                row_push(problem.rows, first + t, scale, D[K + t], W)
    add_scaled(scale, D[K], W[F])
    add_scaled(scale, D[K + length - 1], W[F + 1])
    add_scaled(scale, move.delta[: K * problem.width], w[(F + 2) * problem.width :])


@subroutine
def _push_entries(problem, first, move, scale, W):
    """Push the labels at positions one by one: faster than whole rows of labels while most are zero."""
    transitions = problem.n_labels * problem.width
    for c in range(move.size[0]):
        p = move.support[c]
        if p >= transitions:
            t, k = _position_and_label(p, transitions, problem.width)
            row_add(problem.rows, first + t, scale * move.delta[p], W[:, k])


@helper
def _position_and_label(p, transitions, width):
    """The position and the label that index p of the statistics stands for; narrow numbers divide fast."""
    part = np.uint32(p - np.uint32(transitions))
    t = part // np.uint32(width)
    return t, np.uint32(part - t * np.uint32(width))
