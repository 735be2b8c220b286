r"""Dependency trees: every word of a sentence has one head, another word or the root.

.. math:: \langle w, \phi(x, y) \rangle = \sum_j \langle w, x_{j y_j} \rangle

with features :math:`x_{jh}` of the arc to word j from head h. An output is the head of each word. Its
statistics are the indicators of all arcs, word by word. The row of a word has all heads: the root, which is
0, and the words, the first of which is 1. The entry for a word as its own head is not used.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.compiling.loops import table
from maxmargin.encoding.labels import checked_offsets
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.dependency.encode import Arcs, Indicators, checked_heads, encode_arcs, encode_heads
from maxmargin.structures.dependency.inference import (
    AnyTrees,
    DependencyWork,
    EisnerWork,
    Outside,
    ProjectiveTrees,
    Trees,
    arc_means,
    arc_sums,
    best_tree,
    eisner_margins,
    outside_work,
    tree_work,
)
from maxmargin.structures.oracle import decode, oracle_workspace, output_size
from maxmargin.structures.problem import Problem, builder, fitting, indexed_by_example, spans, written_as
from maxmargin.structures.questions import (
    ANSWERS,
    Answers,
    DecodingAgain,
    PartRows,
    decode_with_margins,
    decoding_again,
    find_means,
    forbid,
    margins_by,
    output_score,
    part_rows,
)
from maxmargin.structures.rows import (
    Rows,
    as_indicators,
    as_rows,
    n_rows,
    row_add,
    row_dot,
    row_shrink,
    row_wipe,
)

LOSSES = ("normalized_hamming", "hamming")


class DependencyWeights(NamedTuple):
    """Weights of dependency trees: one per feature of arcs."""

    arcs: FloatArray


@indexed_by_example("arcs")
@written_as("ArborescenceMap")
class DependencyMap(NamedTuple):
    """Features of arcs.

    Attributes
    ----------
    rows : Rows
        Features of all arcs of all sentences, one after another.
    arcs : array of shape (n, 2)
        Sentence i has the arcs arcs[i, 0], ..., arcs[i, 1] - 1.
    longest : int
        Number of words of the longest sentence.
    """

    rows: Rows
    arcs: IntArray
    longest: int


class DependencyMapWork(NamedTuple):
    """Work array: the feature vector of a move, zero between calls."""

    image: FloatArray


@feature_map.map_sizes.register(DependencyMap)
def dependency_map_sizes(phi):
    statistics = phi.longest * (phi.longest + 1)
    return feature_map.MapSizes(phi.arcs.shape[0], phi.rows.n_columns, statistics)


@feature_map.map_workspace.register(DependencyMap)
def dependency_map_workspace(phi: DependencyMap) -> DependencyMapWork:
    return DependencyMapWork(np.zeros(phi.rows.n_columns))


@feature_map.statistics_size.register(DependencyMap)
def dependency_statistics_size(phi, i):
    return phi.arcs[i, 1] - phi.arcs[i, 0]


@feature_map.score.register(DependencyMap)
def dependency_score(phi, i, w, theta):
    first = phi.arcs[i, 0]
    for a in range(phi.arcs[i, 1] - first):
        theta[a] = row_dot(phi.rows, first + a, w)


@feature_map.gram.register(DependencyMap)
def dependency_gram(phi, i, move, image, work):
    feature_map.push(phi, i, move, 1.0, work.image, work)
    feature_map.score(phi, i, work.image, image)
    _wipe(phi, i, move, work.image)


@feature_map.norm2.register(DependencyMap)
def dependency_norm2(phi, i, move, image, work):
    feature_map.push(phi, i, move, 1.0, work.image, work)
    return _wipe(phi, i, move, work.image)


@subroutine
def _wipe(phi, i, move, image):
    """Set the feature vector of a move back to zero; return its squared length."""
    first, total = phi.arcs[i, 0], 0.0
    for c in range(move.size[0]):
        total += row_wipe(phi.rows, first + move.support[c], image)
    return total


@feature_map.push.register(DependencyMap)
def dependency_push(phi, i, move, scale, w, work):
    first = phi.arcs[i, 0]
    for c in range(move.size[0]):
        a = move.support[c]
        row_add(phi.rows, first + a, scale * move.delta[a], w)


@feature_map.refresh.register(DependencyMap)
def dependency_refresh(phi, i, move, prox, v, w):
    for c in range(move.size[0]):
        row_shrink(phi.rows, phi.arcs[i, 0] + move.support[c], 1, 0, 1, prox, v, w)


@feature_map.unpack.register(DependencyMap)
def dependency_unpack(phi: DependencyMap, w: FloatArray) -> DependencyWeights:
    return DependencyWeights(w)


@indexed_by_example("words", "scale")
@written_as("ArborescenceOracle")
class DependencyOracle(NamedTuple):
    """True heads, costs, and the trees to choose from.

    Attributes
    ----------
    trees : AnyTrees or ProjectiveTrees
        The outputs to choose from.
    words : array of shape (n, 2)
        Sentence i has the words words[i, 0], ..., words[i, 1] - 1.
    heads : array of shape (n_words,)
        The true head of each word.
    scale : array of shape (n,)
        The cost of a wrong head in each sentence.
    longest : int
        Number of words of the longest sentence.
    """

    trees: Trees
    words: IntArray
    heads: IntArray
    scale: FloatArray
    longest: int


class DependencyOracleWork(NamedTuple):
    """Workspace: scores of arcs with their costs, and the arrays of the search."""

    scores: FloatArray
    search: DependencyWork | EisnerWork


@oracle.output_sizes.register(DependencyOracle)
def dependency_output_sizes(sentences):
    return oracle.OutputSizes(sentences.longest, 2 * sentences.longest)


@oracle.oracle_workspace.register(DependencyOracle)
def dependency_oracle_workspace(sentences: DependencyOracle) -> DependencyOracleWork:
    longest = sentences.longest
    return DependencyOracleWork(np.zeros(longest * (longest + 1)), tree_work(sentences.trees, longest))


@oracle.output_size.register(DependencyOracle)
def dependency_output_size(sentences, i):
    return sentences.words[i, 1] - sentences.words[i, 0]


@oracle.argmax.register(DependencyOracle)
def dependency_argmax(sentences, i, theta, y, work):
    first, n_words = sentences.words[i, 0], sentences.words[i, 1] - sentences.words[i, 0]
    scores = work.scores[: n_words * (n_words + 1)]
    for a in range(scores.shape[0]):
        scores[a] = theta[a] + sentences.scale[i]
    for j in range(n_words):
        truth = j * (n_words + 1) + sentences.heads[first + j]
        scores[truth] = theta[truth]
    best_tree(sentences.trees, table(scores, n_words + 1), work.search, y)


@oracle.decode.register(DependencyOracle)
def dependency_decode(sentences, i, theta, y, work):
    n_words = sentences.words[i, 1] - sentences.words[i, 0]
    scores = table(theta[: n_words * (n_words + 1)], n_words + 1)
    best_tree(sentences.trees, scores, work.search, y)


@oracle.loss.register(DependencyOracle)
def dependency_loss(sentences, i, y):
    first, wrong = sentences.words[i, 0], 0
    for j in range(sentences.words[i, 1] - first):
        wrong += sentences.heads[first + j] != y[j]
    return sentences.scale[i] * wrong


@oracle.psi.register(DependencyOracle)
def dependency_psi(sentences, i, y, index, value):
    first, n_words = sentences.words[i, 0], sentences.words[i, 1] - sentences.words[i, 0]
    count = 0
    for j in range(n_words):
        truth = sentences.heads[first + j]
        if truth != y[j]:
            index[count], value[count] = j * (n_words + 1) + truth, 1.0
            index[count + 1], value[count + 1] = j * (n_words + 1) + y[j], -1.0
            count += 2
    return count


class DependencyMarginWork(NamedTuple):
    """Workspace for projective trees: of the oracle, and of `eisner_margins`."""

    oracle: DependencyOracleWork
    outside: Outside


def _margin_work(sentences: DependencyOracle) -> DependencyMarginWork | DecodingAgain:
    if isinstance(sentences.trees, ProjectiveTrees):
        return DependencyMarginWork(oracle_workspace(sentences), outside_work(sentences.longest))
    return decoding_again(sentences)


ANSWERS[DependencyOracle] = Answers(
    margins=_margin_work, means=lambda sentences: arc_sums(sentences.trees, sentences.longest)
)


@decode_with_margins.register(DependencyOracle)
def dependency_decode_with_margins(sentences, i, theta, y, margins, work):
    margins_by(sentences.trees, sentences, i, theta, y, margins, work)


@margins_by.register(ProjectiveTrees)
def projective_margins_by(trees, sentences, i, theta, y, margins, work):
    decode(sentences, i, theta, y, work.oracle)
    n_words = margins.shape[0]
    scores = table(theta[: n_words * (n_words + 1)], n_words + 1)
    eisner_margins(scores, trees.single_root, work.oracle.search, work.outside, y, margins)


@output_score.register(DependencyOracle)
def dependency_output_score(sentences, i, theta, y):
    n_words, total = sentences.words[i, 1] - sentences.words[i, 0], 0.0
    for j in range(n_words):
        total += theta[j * (n_words + 1) + y[j]]
    return total


@forbid.register(DependencyOracle)
def dependency_forbid(sentences, i, theta, y, p):
    """Lower the score of an arc by more than two trees can differ."""
    n_words = sentences.words[i, 1] - sentences.words[i, 0]
    index = p * (n_words + 1) + y[p]
    before = theta[index]
    theta[index] -= 1.0 + n_words * _range_of_arcs(theta, n_words)
    return index, before


@helper
def _range_of_arcs(theta, n_words):
    """Return the difference of the largest and the smallest score of an arc."""
    low, high = np.inf, -np.inf
    for j in range(n_words):
        for h in range(n_words + 1):
            if h != j + 1:
                score = theta[j * (n_words + 1) + h]
                low, high = min(low, score), max(high, score)
    return high - low


@find_means.register(DependencyOracle)
def dependency_find_means(sentences, i, theta, work, own, mean):
    n_words = output_size(sentences, i)
    scores = table(theta[: n_words * (n_words + 1)], n_words + 1)
    return arc_means(sentences.trees, scores, own, table(mean, n_words + 1))


@part_rows.register(DependencyOracle)
def dependency_part_rows(sentences, i):
    n_words = output_size(sentences, i)
    return PartRows(0, n_words + 1, n_words, n_words + 1)


DependencyProblem = Problem[DependencyMap, DependencyOracle]


class Dependency:
    """Builders of dependency-tree problems."""

    @staticmethod
    @builder("Dependency")
    def from_arcs(
        X: object,
        y: object,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "normalized_hamming",
    ) -> DependencyProblem:
        """Build a problem from features of arcs and true heads.

        Parameters
        ----------
        X : list of arrays of shape (n_words, n_words + 1, n_features)
            ``X[i][j, h]`` has the features of the arc to word j of sentence i from head h: 0 is the root,
            1 the first word. Or sparse matrices with one row per arc, in this order.
        y : list of sequences of ints
            The head of each word.
        projective : bool
            Whether to choose only among trees without crossing arcs.
        single_root : bool
            Whether exactly one word must have the root as its head.
        loss : "normalized_hamming" or "hamming"
            Fraction of wrong heads, or their number.
        """
        arcs = encode_arcs(X)
        heads = encode_heads(y, arcs.offsets, projective=projective, single_root=single_root)
        return Dependency.from_encoded(arcs, heads, projective=projective, single_root=single_root, loss=loss)

    @staticmethod
    @builder("Dependency")
    def from_encoded(
        arcs: Arcs,
        heads: IntArray,
        *,
        projective: bool = False,
        single_root: bool = True,
        loss: str = "normalized_hamming",
    ) -> DependencyProblem:
        """Build a problem from arcs and heads."""
        if loss not in LOSSES:
            raise ValueError(f"loss must be {' or '.join(map(repr, LOSSES))}, got {shown(loss)}.")
        phi, offsets = _arcs_map(arcs)
        lengths = np.diff(offsets)
        scale = np.ones(len(lengths)) if loss == "hamming" else 1.0 / lengths
        trees = _kind_of_trees(projective, single_root)
        heads = checked_heads(heads, offsets)
        return Problem(phi, DependencyOracle(trees, spans(offsets), heads, scale, phi.longest))

    @staticmethod
    @builder("Dependency")
    def for_prediction(
        arcs: Arcs, *, projective: bool = False, single_root: bool = True
    ) -> DependencyProblem:
        """Build a problem that can be decoded but not trained on: it has no heads."""
        phi, offsets = _arcs_map(arcs)
        heads, scale = np.zeros(0, dtype=np.int64), np.zeros(len(offsets) - 1)
        trees = _kind_of_trees(projective, single_root)
        return Problem(phi, DependencyOracle(trees, spans(offsets), heads, scale, phi.longest))


def _kind_of_trees(projective: bool, single_root: bool) -> Trees:
    return ProjectiveTrees(bool(single_root)) if projective else AnyTrees(bool(single_root))


def _arcs_map(arcs: Arcs) -> tuple[DependencyMap, IntArray]:
    """Return the map of checked arcs, and the offsets of words; raise if weights do not fit into memory."""
    given = arcs.features  # indicators are kept: a sparse matrix would store a number for each of them
    rows = as_indicators(*given) if isinstance(given, Indicators) else as_rows(given)
    offsets = checked_offsets(arcs.offsets, None)
    lengths = np.diff(offsets)
    _check_arcs(n_rows(rows), lengths)
    phi = DependencyMap(rows, spans(np.append(0, np.cumsum(lengths * (lengths + 1)))), int(lengths.max()))
    return fitting(Problem(phi, phi)).map, offsets


def _check_arcs(n_arcs: int, lengths: IntArray) -> None:
    """Raise unless each word has an arc from each word of its sentence and from the root."""
    expected = sum(m * (m + 1) for m in lengths.tolist())
    if n_arcs != expected:
        raise ValueError(
            f"features must have {expected} rows, m (m + 1) for each sentence of m words, got {n_arcs}."
        )
