r"""The feature map of multiclass classification: :math:`\Phi_i` multiplies the indicator of a class by x_i.

The weights are a matrix with one row per feature and one column per class, padded to ``width`` columns. The
statistics of an output are the indicator of its class.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.problems import feature_map
from maxmargin.problems.subsets import indexed_by_example
from maxmargin.rows import Rows, row_push, row_scores, rows_prefetch


class MulticlassWeights(NamedTuple):
    """Weights of a multiclass model: ``unary[k]`` are the feature weights of class k."""

    unary: FloatArray


@indexed_by_example("row", "squared_norms")
class MulticlassMap(NamedTuple):
    """Features of examples.

    Attributes
    ----------
    rows : Rows
        Features.
    row : array of shape (n,)
        The row of each example.
    squared_norms : array of shape (n,)
        Squared length of each example's features.
    """

    rows: Rows
    row: IntArray
    squared_norms: FloatArray
    n_labels: int
    width: int


@feature_map.map_sizes.register(MulticlassMap)
def multiclass_map_sizes(phi):
    return feature_map.MapSizes(phi.row.shape[0], phi.rows.n_columns * phi.width, phi.width)


@feature_map.statistics_size.register(MulticlassMap)
def multiclass_statistics_size(phi, i):
    return phi.width


@feature_map.foresee.register(MulticlassMap)
def multiclass_foresee(phi, i):
    rows_prefetch(phi.rows, phi.row[i], phi.row[i] + 1)


@feature_map.score.register(MulticlassMap)
def multiclass_score(phi, i, w, theta):
    row_scores(phi.rows, phi.row[i], w.reshape((-1, phi.width)), theta)


@feature_map.gram.register(MulticlassMap)
def multiclass_gram(phi, i, move, image, work):
    for k in range(phi.width):
        image[k] = phi.squared_norms[i] * move.delta[k]


@feature_map.column_norm2.register(MulticlassMap)
def multiclass_column_norm2(phi, i):
    return phi.squared_norms[i]


@feature_map.push.register(MulticlassMap)
def multiclass_push(phi, i, move, scale, w, work):
    row_push(phi.rows, phi.row[i], scale, move.delta, w.reshape((-1, phi.width)))


@feature_map.row_layout.register(MulticlassMap)
def multiclass_row_layout(phi: MulticlassMap) -> feature_map.RowLayout:
    return feature_map.RowLayout(np.column_stack([phi.row, phi.row + 1]), 0, phi.width)


@feature_map.unpack.register(MulticlassMap)
def multiclass_unpack(phi: MulticlassMap, w: FloatArray) -> MulticlassWeights:
    return MulticlassWeights(w.reshape(-1, phi.width)[:, : phi.n_labels].T)
