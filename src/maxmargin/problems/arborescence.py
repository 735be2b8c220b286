r"""Dependency trees: every word of a sentence has one head, another word or the root.

.. math:: \langle w, \phi(x, y) \rangle = \sum_j \langle w, x_{j y_j} \rangle

with features :math:`x_{jh}` of the arc to word j from head h. The statistics of an output are the indicators
of all arcs, word by word, in rows of all heads: the root, which is 0, and the words, the first of which
is 1. What stands where a word would be its own head is never used. An output is the head of each word.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import subroutine
from maxmargin.encoding.arcs import Arcs, Indicators, encode_arcs, encode_heads
from maxmargin.encoding.checked import checked_heads, checked_offsets
from maxmargin.inference.trees import AnyTrees, ProjectiveTrees, Trees, best_tree, tree_work
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._checked import fitting
from maxmargin.rows import Rows, as_indicators, as_rows, n_rows, row_add, row_dot, row_wipe

LOSSES = ("normalized_hamming", "hamming")


class ArborescenceWeights(NamedTuple):
    """Weights of dependency trees: of the arcs' features."""

    arcs: FloatArray


class ArborescenceWorkspace(NamedTuple):
    """Work arrays: the oracle's scores, its search, and the feature vector of a move, zero between calls."""

    scores: FloatArray
    search: Any
    image: FloatArray


class Arborescence(NamedTuple):
    """A problem of dependency trees; made by `from_arcs`.

    Attributes
    ----------
    rows : Rows
        Features of all arcs of all sentences, one after another.
    trees : AnyTrees or ProjectiveTrees
        The outputs to choose from.
    offsets : array of shape (n + 1,)
        Where the words of each sentence begin.
    arc_offsets : array of shape (n + 1,)
        Where its arcs begin.
    heads : array of shape (n_words,)
        The true head of each word.
    scale : array of shape (n,)
        What a wrong head costs.
    """

    rows: Rows
    trees: Trees
    offsets: IntArray
    arc_offsets: IntArray
    heads: IntArray
    scale: FloatArray
    longest: int

    @classmethod
    def from_arcs(
        cls,
        X: Any,
        y: Any,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "normalized_hamming",
    ) -> "Arborescence":
        """Build the problem from features of arcs and true heads.

        Parameters
        ----------
        X : list of arrays of shape (n_words, n_words + 1, n_features)
            ``X[i][j, h]`` has the features of the arc to word j of sentence i from head h: 0 is the root,
            1 the first word. Or sparse matrices whose rows are the same arcs in this order.
        y : list of sequences of ints
            The head of each word.
        projective : bool
            Choose among trees without crossing arcs.
        single_root : bool
            Choose among trees in which one word has the root for its head.
        loss : "normalized_hamming" or "hamming"
            Share of wrong heads, or their number.
        """
        arcs = encode_arcs(X, owner="Arborescence")
        heads = encode_heads(
            y, arcs.offsets, owner="Arborescence", projective=projective, single_root=single_root
        )
        return cls.from_encoded(arcs, heads, projective=projective, single_root=single_root, loss=loss)

    @classmethod
    def from_encoded(
        cls,
        arcs: Arcs,
        heads: IntArray,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "normalized_hamming",
    ) -> "Arborescence":
        """Build the problem from arcs and heads."""
        if loss not in LOSSES:
            raise ValueError(f"Arborescence: loss must be {' or '.join(map(repr, LOSSES))}, got {loss!r}.")
        problem = cls.for_prediction(arcs, projective=projective, single_root=single_root)
        lengths = np.diff(problem.offsets)
        scale = np.ones(len(lengths)) if loss == "hamming" else 1.0 / lengths
        return problem._replace(heads=checked_heads(heads, problem.offsets, "Arborescence"), scale=scale)

    @classmethod
    def for_prediction(
        cls, arcs: Arcs, *, projective: bool = False, single_root: bool = True
    ) -> "Arborescence":
        """Build a problem that can be decoded but not trained on: it has no heads."""
        rows = _as_rows(arcs.features)
        offsets = checked_offsets(arcs.offsets, None, "Arborescence")
        lengths = np.diff(offsets)
        _check_arcs(n_rows(rows), lengths)
        problem = cls(
            rows=rows,
            trees=ProjectiveTrees(bool(single_root)) if projective else AnyTrees(bool(single_root)),
            offsets=offsets,
            arc_offsets=np.append(0, np.cumsum(lengths * (lengths + 1))),
            heads=np.zeros(0, dtype=np.int64),
            scale=np.zeros(0),
            longest=int(lengths.max()),
        )
        return fitting(problem, "Arborescence")

    def unpack(self, w: FloatArray) -> ArborescenceWeights:
        """Return the weights by what they mean, as views of ``w``."""
        return ArborescenceWeights(w)


def _as_rows(features: Any) -> Rows:
    """Indicators as they are: as a sparse matrix, they would need a number for each."""
    if isinstance(features, Indicators):
        return as_indicators(*features, "Arborescence")
    return as_rows(features, "Arborescence")


def _check_arcs(n_arcs: int, lengths: IntArray) -> None:
    """Raise unless there is an arc to each word of a sentence from each other and from the root."""
    expected = sum(m * (m + 1) for m in lengths.tolist())
    if n_arcs != expected:
        raise ValueError(
            f"Arborescence: features must have {expected} rows, m (m + 1) for each sentence of m words, got "
            f"{n_arcs}."
        )


@protocol.sizes.register(Arborescence)
def arborescence_sizes(problem):
    longest = problem.longest
    return protocol.Sizes(
        problem.offsets.shape[0] - 1, problem.rows.n_columns, longest * (longest + 1), longest, 2 * longest
    )


@protocol.workspace.register(Arborescence)
def arborescence_workspace(problem):
    longest = problem.longest
    return ArborescenceWorkspace(
        np.zeros(longest * (longest + 1)),
        tree_work(problem.trees, longest),
        np.zeros(problem.rows.n_columns),
    )


@protocol.output_size.register(Arborescence)
def arborescence_output_size(problem, i):
    return problem.offsets[i + 1] - problem.offsets[i]


@protocol.statistics_size.register(Arborescence)
def arborescence_statistics_size(problem, i):
    return problem.arc_offsets[i + 1] - problem.arc_offsets[i]


@protocol.score.register(Arborescence)
def arborescence_score(problem, i, w, theta):
    first = problem.arc_offsets[i]
    for a in range(problem.arc_offsets[i + 1] - first):
        theta[a] = row_dot(problem.rows, first + a, w)


@protocol.argmax.register(Arborescence)
def arborescence_argmax(problem, i, theta, y, work):
    first, n_words = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    scores = work.scores[: n_words * (n_words + 1)]
    for a in range(scores.shape[0]):
        scores[a] = theta[a] + problem.scale[i]
    for j in range(n_words):
        truth = j * (n_words + 1) + problem.heads[first + j]
        scores[truth] = theta[truth]
    best_tree(problem.trees, scores.reshape((n_words, n_words + 1)), work.search, y)


@protocol.decode.register(Arborescence)
def arborescence_decode(problem, i, theta, y, work):
    n_words = problem.offsets[i + 1] - problem.offsets[i]
    scores = theta[: n_words * (n_words + 1)].reshape((n_words, n_words + 1))
    best_tree(problem.trees, scores, work.search, y)


@protocol.loss.register(Arborescence)
def arborescence_loss(problem, i, y):
    first, wrong = problem.offsets[i], 0
    for j in range(problem.offsets[i + 1] - first):
        wrong += problem.heads[first + j] != y[j]
    return problem.scale[i] * wrong


@protocol.psi.register(Arborescence)
def arborescence_psi(problem, i, y, index, value):
    first, n_words = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    count = 0
    for j in range(n_words):
        truth = problem.heads[first + j]
        if truth != y[j]:
            index[count], value[count] = j * (n_words + 1) + truth, 1.0
            index[count + 1], value[count + 1] = j * (n_words + 1) + y[j], -1.0
            count += 2
    return count


@protocol.gram.register(Arborescence)
def arborescence_gram(problem, i, move, image, work):
    protocol.push(problem, i, move, 1.0, work.image, work)
    protocol.score(problem, i, work.image, image)
    _wipe_image(problem, i, move, work)


@protocol.norm2.register(Arborescence)
def arborescence_norm2(problem, i, move, image, work):
    protocol.push(problem, i, move, 1.0, work.image, work)
    return _wipe_image(problem, i, move, work)


@subroutine
def _wipe_image(problem, i, move, work):
    """Make zero again what a push of the move has changed; return the sum of its squares."""
    first, total = problem.arc_offsets[i], 0.0
    for c in range(move.size[0]):
        total += row_wipe(problem.rows, first + move.support[c], work.image)
    return total


@protocol.push.register(Arborescence)
def arborescence_push(problem, i, move, scale, w, work):
    first = problem.arc_offsets[i]
    for c in range(move.size[0]):
        a = move.support[c]
        row_add(problem.rows, first + a, scale * move.delta[a], w)
