r"""The Gibbs distribution over all dependency trees: the matrix-tree theorem, without subtractions.

The sum over trees of the products of their arcs' weights is the determinant of a Laplacian matrix. Gaussian
elimination of a word v, with in-weight :math:`d_v = \sum_h a_{hv}`, replaces paths through it by arcs:

.. math:: a_{hj} \leftarrow a_{hj} + a_{hv} a_{vj} / d_v \quad (h \ne j), \qquad Z = \prod_v d_v .

No term is negative (Grassmann, Taksar and Heyman), so all sums can be taken in the log domain, and
cycles of strong arcs, which make the matrix nearly singular, lose no digits. Probabilities are the
derivatives of log Z with respect to the scores, from the same steps in reverse.

If the root may have only one child, its arcs count as infinitely small: :math:`d_v` omits them, except for
the word that is left at the end.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import helper
from maxmargin.loops import clear, copy


class TreeSums(NamedTuple):
    """Workspace for sentences of up to a given number of words.

    Attributes
    ----------
    scores : array of shape (n_words, n_words + 1)
        Logarithms of the weights of arcs, to word j from head h; those of paths are added to them.
    through : array of shape (n_words, n_words, n_words + 1)
        ``through[v, j, h]`` is the share of the arc from h to j that comes from paths through word v.
    chosen : array of shape (n_words, n_words + 1)
        ``chosen[v, h]`` is the probability of head h of word v, unless paths through v need another head.
    """

    scores: FloatArray
    through: FloatArray
    chosen: FloatArray


def tree_sums(n_words: int) -> TreeSums:
    """Return a workspace for up to ``n_words`` words."""
    cells = (n_words, n_words + 1)
    return TreeSums(np.zeros(cells), np.zeros((n_words, *cells)), np.zeros(cells))


@helper
def spanning_tree_means(scores, single_root, work, mean):
    r"""Compute the probability of each arc if that of a tree y is proportional to

    .. math:: \exp \sum_j \text{scores}_{j y_j} .

    The arguments are those of `projective_means`, with workspace of the class `TreeSums`.
    """
    n_words, log_partition = scores.shape[0], 0.0
    for j in range(n_words):
        copy(scores[j], work.scores[j, : n_words + 1])
    # Words are eliminated from the last to the first, so those that remain are 0, ..., v - 1.
    for v in range(n_words - 1, -1, -1):
        log_partition += _eliminate(v, single_root, work)
    for j in range(n_words):
        clear(mean[j])
    for v in range(n_words):
        _restore(v, work, mean)
    return log_partition


@helper
def _eliminate(v, single_root, work):
    """Replace the paths through word v by arcs; return the logarithm of its in-weight."""
    # Heads are the root, 0, and the words that remain, 1, ..., v.
    row, first = work.scores[v], 1 if single_root and v > 0 else 0
    largest, total = -np.inf, 0.0
    for h in range(first, v + 1):
        largest = max(largest, row[h])
    for h in range(first, v + 1):
        total += math.exp(row[h] - largest)
    log_sum = largest + math.log(total)
    clear(work.chosen[v])
    for h in range(first, v + 1):
        work.chosen[v, h] = math.exp(row[h] - log_sum)
    for j in range(v):
        step = work.scores[j, v + 1] - log_sum
        for h in range(v + 1):
            if h != j + 1:
                _add_path(work.scores[j], h, row[h] + step, work.through[v, j])
    return log_sum


@helper
def _add_path(scores, h, path, share):
    """Add a path to an arc, both given by logarithms, and store its share of their sum."""
    larger, smaller = max(scores[h], path), min(scores[h], path)
    ratio = math.exp(smaller - larger)
    share[h] = (ratio if path < scores[h] else 1.0) / (1.0 + ratio)
    scores[h] = larger + math.log1p(ratio)


@helper
def _restore(v, work, mean):
    """Undo the elimination of word v: divide the probabilities of arcs among arcs and paths through v."""
    used = 0.0
    for j in range(v):
        for h in range(v + 1):
            if h != j + 1:
                p = work.through[v, j, h] * mean[j, h]
                mean[j, h] -= p
                mean[j, v + 1] += p
                mean[v, h] += p
                used += p
    for h in range(v + 1):
        mean[v, h] = min(max(mean[v, h] + (1.0 - used) * work.chosen[v, h], 0.0), 1.0)
