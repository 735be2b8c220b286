"""The feature map of dependency trees: from arcs to weights of their features, and back to scores.

The statistics of an output are the indicators of all arcs, word by word. The row of a word has all heads: the
root, which is 0, and the words, the first of which is 1. The entry for a word as its own head is not used.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import subroutine
from maxmargin.problems import feature_map
from maxmargin.problems.subsets import indexed_by_example
from maxmargin.rows import Rows, row_add, row_dot, row_wipe


class ArborescenceWeights(NamedTuple):
    """Weights of dependency trees: one per feature of arcs."""

    arcs: FloatArray


@indexed_by_example("arcs")
class ArborescenceMap(NamedTuple):
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


class ArborescenceMapWork(NamedTuple):
    """Work array: the feature vector of a move, zero between calls."""

    image: FloatArray


@feature_map.map_sizes.register(ArborescenceMap)
def arborescence_map_sizes(phi):
    statistics = phi.longest * (phi.longest + 1)
    return feature_map.MapSizes(phi.arcs.shape[0], phi.rows.n_columns, statistics)


@feature_map.map_workspace.register(ArborescenceMap)
def arborescence_map_workspace(phi: ArborescenceMap) -> ArborescenceMapWork:
    return ArborescenceMapWork(np.zeros(phi.rows.n_columns))


@feature_map.statistics_size.register(ArborescenceMap)
def arborescence_statistics_size(phi, i):
    return phi.arcs[i, 1] - phi.arcs[i, 0]


@feature_map.score.register(ArborescenceMap)
def arborescence_score(phi, i, w, theta):
    first = phi.arcs[i, 0]
    for a in range(phi.arcs[i, 1] - first):
        theta[a] = row_dot(phi.rows, first + a, w)


@feature_map.gram.register(ArborescenceMap)
def arborescence_gram(phi, i, move, image, work):
    feature_map.push(phi, i, move, 1.0, work.image, work)
    feature_map.score(phi, i, work.image, image)
    _wipe(phi, i, move, work.image)


@feature_map.norm2.register(ArborescenceMap)
def arborescence_norm2(phi, i, move, image, work):
    feature_map.push(phi, i, move, 1.0, work.image, work)
    return _wipe(phi, i, move, work.image)


@subroutine
def _wipe(phi, i, move, image):
    """Set the feature vector of a move back to zero; return its squared length."""
    first, total = phi.arcs[i, 0], 0.0
    for c in range(move.size[0]):
        total += row_wipe(phi.rows, first + move.support[c], image)
    return total


@feature_map.push.register(ArborescenceMap)
def arborescence_push(phi, i, move, scale, w, work):
    first = phi.arcs[i, 0]
    for c in range(move.size[0]):
        a = move.support[c]
        row_add(phi.rows, first + a, scale * move.delta[a], w)


@feature_map.unpack.register(ArborescenceMap)
def arborescence_unpack(phi: ArborescenceMap, w: FloatArray) -> ArborescenceWeights:
    return ArborescenceWeights(w)
