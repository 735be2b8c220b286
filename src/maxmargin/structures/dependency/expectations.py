r"""Sums over dependency trees: projective ones by inside and outside, others by the Matrix-Tree theorem.

The Matrix-Tree theorem is used without subtractions. The sum over trees of the products of their arcs'
weights is the determinant of a Laplacian matrix. Gaussian elimination of a word v, with in-weight
:math:`d_v = \sum_h a_{hv}`, replaces paths through it by arcs:

.. math:: a_{hj} \leftarrow a_{hj} + a_{hv} a_{vj} / d_v \quad (h \ne j), \qquad Z = \prod_v d_v .

No term is negative (Grassmann, Taksar and Heyman), so all sums can be taken in the log domain, and cycles of
strong arcs, which make the matrix nearly singular, lose no digits. Probabilities are the derivatives of log Z
with respect to the scores, from the same steps in reverse.

If the root may have only one child, its arcs count as infinitely small: :math:`d_v` omits them, except for
the word that is left at the end.
"""

import math
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import clear, copy
from maxmargin.runtime.arrays import FloatArray
from maxmargin.structures.recursions import softmax


class Spans(NamedTuple):
    """A number for each span of nodes i, ..., j and each role that it has in Eisner's algorithm.

    Attributes
    ----------
    right, left : arrays of shape (n_words + 1, n_words + 1)
        ``right[i, j]`` and ``left[j, i]``: the span is a tree with the root i, or j.
    right_arc, left_arc : arrays of shape (n_words + 1, n_words + 1)
        ``right_arc[i, j]`` and ``left_arc[j, i]``: it has the arc from i to j, or from j to i, and j, or i,
        has no children on its far side.
    """

    right: FloatArray
    left: FloatArray
    right_arc: FloatArray
    left_arc: FloatArray


class ProjectiveSums(NamedTuple):
    """Workspace: logarithms of sums over the trees of spans, their probabilities, and scores of the root."""

    sums: Spans
    masses: Spans
    roots: FloatArray


def projective_sums(n_words: int) -> ProjectiveSums:
    """Return a workspace for up to ``n_words`` words."""
    square = (n_words + 1, n_words + 1)
    sums, masses = (Spans(*(np.zeros(square) for _ in range(4))) for _ in range(2))
    return ProjectiveSums(sums, masses, np.zeros(n_words))


@helper
def projective_means(scores, single_root, work, mean):
    r"""Compute the probability of each arc if that of a projective tree y is proportional to

    .. math:: \exp \sum_j \text{scores}_{j y_j} .

    Every projective tree is made of spans in one way only (Eisner), so sums over spans are sums over trees.

    Parameters
    ----------
    scores : array of shape (n_words, n_words + 1)
        ``scores[j, h]`` is the score of the arc to word j from head h, 0 for the root.
    single_root : bool
        Whether exactly one word has the root as its head.
    work : ProjectiveSums
    mean : array of shape (n_words, n_words + 1)
        Receives the probability of each arc.

    Returns
    -------
    log_partition : float
        Logarithm of the sum of the exponentials of all trees.
    """
    n_words, first = scores.shape[0], 1 if single_root else 0
    for i in range(n_words + 1):
        clear(work.masses.right[i])
        clear(work.masses.left[i])
        clear(work.masses.right_arc[i])
        clear(work.masses.left_arc[i])
        work.sums.right[i, i] = work.sums.left[i, i] = 0.0
    for j in range(n_words):
        clear(mean[j])
    for width in range(1, n_words + 1 - first):
        for i in range(first, n_words + 1 - width):
            _sum_span(scores, i, i + width, work.sums)
    log_partition = _begin(scores, single_root, work, mean)
    for width in range(n_words - first, 0, -1):
        for i in range(first, n_words + 1 - width):
            _split_span(scores, i, i + width, work.sums, work.masses, mean)
    return log_partition


@helper
def _sum_span(scores, i, j, sums):
    """Fill the sums of the span from i to j."""
    inner = _log_sum(sums.right[i, i:j], sums.left[j, i + 1 : j + 1])
    sums.right_arc[i, j] = inner + scores[j - 1, i]
    sums.left_arc[j, i] = inner + scores[i - 1, j] if i > 0 else -np.inf
    sums.right[i, j] = _log_sum(sums.right_arc[i, i + 1 : j + 1], sums.right[i + 1 : j + 1, j])
    sums.left[j, i] = _log_sum(sums.left_arc[j, i:j], sums.left[i:j, i])


@helper
def _log_sum(a, b):
    """Return ``log(sum(exp(a + b)))``; minus infinity if no term is finite."""
    largest, total = -np.inf, 0.0
    for k in range(a.shape[0]):
        largest = max(largest, a[k] + b[k])
    if largest == -np.inf:
        return largest
    for k in range(a.shape[0]):
        total += math.exp(a[k] + b[k] - largest)
    return largest + math.log(total)


@helper
def _begin(scores, single_root, work, mean):
    """Set the probabilities of the spans that make up the whole tree, and return the log-partition."""
    n_words, sums, masses, roots = scores.shape[0], work.sums, work.masses, work.roots
    if not single_root:
        masses.right[0, n_words] = 1.0
        return sums.right[0, n_words]
    for r in range(1, n_words + 1):
        roots[r - 1] = sums.left[r, 1] + sums.right[r, n_words] + scores[r - 1, 0]
    log_partition = softmax(roots, n_words, roots)
    for r in range(1, n_words + 1):
        masses.left[r, 1] = masses.right[r, n_words] = mean[r - 1, 0] = roots[r - 1]
    return log_partition


@helper
def _split_span(scores, i, j, sums, masses, mean):
    """Distribute the probabilities of a span over the ways to join it from two shorter ones."""
    _distribute(
        masses.right[i, j],
        sums.right_arc[i, i + 1 : j + 1],
        sums.right[i + 1 : j + 1, j],
        masses.right_arc[i, i + 1 : j + 1],
        masses.right[i + 1 : j + 1, j],
    )
    _distribute(
        masses.left[j, i],
        sums.left_arc[j, i:j],
        sums.left[i:j, i],
        masses.left_arc[j, i:j],
        masses.left[i:j, i],
    )
    mean[j - 1, i] += masses.right_arc[i, j]
    if i > 0:
        mean[i - 1, j] += masses.left_arc[j, i]
    _distribute(
        masses.right_arc[i, j] + masses.left_arc[j, i],
        sums.right[i, i:j],
        sums.left[j, i + 1 : j + 1],
        masses.right[i, i:j],
        masses.left[j, i + 1 : j + 1],
    )


@helper
def _distribute(mass, a, b, mass_a, mass_b):
    """Add to both parts of each split k its share of the mass, which is proportional to exp(a + b)."""
    if mass == 0.0:
        return
    total = _log_sum(a, b)
    for k in range(a.shape[0]):
        p = mass * math.exp(a[k] + b[k] - total)
        mass_a[k] += p
        mass_b[k] += p


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
