"""The oracles of dependency trees: the best tree, projective or not, for scores of arcs.

An output is the head of each word. See `maxmargin.problems.maps.arborescence` for the layout of statistics.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.views import table
from maxmargin.inference.arborescence import ArborescenceWork
from maxmargin.inference.dependency_trees import Trees, best_tree, tree_work
from maxmargin.inference.eisner import EisnerWork
from maxmargin.problems import oracle
from maxmargin.problems.subsets import indexed_by_example


@indexed_by_example("words", "scale")
class ArborescenceOracle(NamedTuple):
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


class ArborescenceOracleWork(NamedTuple):
    """Workspace: scores of arcs with their costs, and the arrays of the search."""

    scores: FloatArray
    search: ArborescenceWork | EisnerWork


@oracle.output_sizes.register(ArborescenceOracle)
def arborescence_output_sizes(sentences):
    return oracle.OutputSizes(sentences.longest, 2 * sentences.longest)


@oracle.oracle_workspace.register(ArborescenceOracle)
def arborescence_oracle_workspace(sentences: ArborescenceOracle) -> ArborescenceOracleWork:
    longest = sentences.longest
    return ArborescenceOracleWork(np.zeros(longest * (longest + 1)), tree_work(sentences.trees, longest))


@oracle.output_size.register(ArborescenceOracle)
def arborescence_output_size(sentences, i):
    return sentences.words[i, 1] - sentences.words[i, 0]


@oracle.argmax.register(ArborescenceOracle)
def arborescence_argmax(sentences, i, theta, y, work):
    first, n_words = sentences.words[i, 0], sentences.words[i, 1] - sentences.words[i, 0]
    scores = work.scores[: n_words * (n_words + 1)]
    for a in range(scores.shape[0]):
        scores[a] = theta[a] + sentences.scale[i]
    for j in range(n_words):
        truth = j * (n_words + 1) + sentences.heads[first + j]
        scores[truth] = theta[truth]
    best_tree(sentences.trees, table(scores, n_words + 1), work.search, y)


@oracle.decode.register(ArborescenceOracle)
def arborescence_decode(sentences, i, theta, y, work):
    n_words = sentences.words[i, 1] - sentences.words[i, 0]
    scores = table(theta[: n_words * (n_words + 1)], n_words + 1)
    best_tree(sentences.trees, scores, work.search, y)


@oracle.loss.register(ArborescenceOracle)
def arborescence_loss(sentences, i, y):
    first, wrong = sentences.words[i, 0], 0
    for j in range(sentences.words[i, 1] - first):
        wrong += sentences.heads[first + j] != y[j]
    return sentences.scale[i] * wrong


@oracle.psi.register(ArborescenceOracle)
def arborescence_psi(sentences, i, y, index, value):
    first, n_words = sentences.words[i, 0], sentences.words[i, 1] - sentences.words[i, 0]
    count = 0
    for j in range(n_words):
        truth = sentences.heads[first + j]
        if truth != y[j]:
            index[count], value[count] = j * (n_words + 1) + truth, 1.0
            index[count + 1], value[count + 1] = j * (n_words + 1) + y[j], -1.0
            count += 2
    return count
