"""The feature map of graphs: from labels of nodes and of edges to weights, and back to scores.

A vector of the size of the weights is made for moves that are measured, and wiped where it was written, so
that this costs as much as the features of what moves.
"""

import numpy as np

from maxmargin._compile import helper, subroutine
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._labelling import edge_size
from maxmargin.problems.graph import Graph
from maxmargin.rows import row_add, row_scores, row_wipe


@protocol.score.register(Graph)
def _(problem, i, w, theta):
    width, nodes = problem.width, problem.offsets[i + 1] - problem.offsets[i]
    edges, split = problem.edge_offsets[i + 1] - problem.edge_offsets[i], problem.rows.n_columns * width
    per_edge = edge_size(problem.inference, problem.n_labels, width)
    W, V = w[:split].reshape((-1, width)), w[split:].reshape((-1, per_edge))
    unary = theta[: nodes * width].reshape((nodes, width))
    pairs = theta[nodes * width : nodes * width + edges * per_edge].reshape((edges, per_edge))
    for v in range(nodes):
        row_scores(problem.rows, problem.offsets[i] + v, W, unary[v])
    for e in range(edges):
        row_scores(problem.edge_rows, problem.edge_offsets[i] + e, V, pairs[e])


@protocol.gram.register(Graph)
def _(problem, i, move, image, work):
    protocol.push(problem, i, move, 1.0, work.image, work)
    protocol.score(problem, i, work.image, image)
    _wipe(problem, i, move, work.image)


@protocol.norm2.register(Graph)
def _(problem, i, move, image, work):
    protocol.push(problem, i, move, 1.0, work.image, work)
    return _wipe(problem, i, move, work.image)


@protocol.push.register(Graph)
def _(problem, i, move, scale, w, work):
    width, split = problem.width, problem.rows.n_columns * problem.width
    per_edge = edge_size(problem.inference, problem.n_labels, width)
    W, V = w[:split].reshape((-1, width)), w[split:].reshape((-1, per_edge))
    nodes = np.uint32((problem.offsets[i + 1] - problem.offsets[i]) * width)
    for c in range(move.size[0]):
        p = move.support[c]
        amount = scale * move.delta[p]
        if p < nodes:
            v, k = _row_and_column(p, np.uint32(width))
            row_add(problem.rows, problem.offsets[i] + v, amount, W[:, k])
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(per_edge))
            row_add(problem.edge_rows, problem.edge_offsets[i] + e, amount, V[:, k])


@subroutine
def _wipe(problem, i, move, image):
    """Make the image of a move zero again; return the sum of the squares of what was there."""
    width, split, total = problem.width, problem.rows.n_columns * problem.width, 0.0
    if image.shape[0] <= move.size[0]:  # one walk over all is the shorter way
        for p in range(image.shape[0]):
            total += image[p] * image[p]
            image[p] = 0.0
        return total
    per_edge = edge_size(problem.inference, problem.n_labels, width)
    W, V = image[:split].reshape((-1, width)), image[split:].reshape((-1, per_edge))
    nodes = np.uint32((problem.offsets[i + 1] - problem.offsets[i]) * width)
    for c in range(move.size[0]):
        p = move.support[c]
        if p < nodes:
            v, k = _row_and_column(p, np.uint32(width))
            total += row_wipe(problem.rows, problem.offsets[i] + v, W[:, k])
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(per_edge))
            total += row_wipe(problem.edge_rows, problem.edge_offsets[i] + e, V[:, k])
    return total


@helper
def _row_and_column(p, width):
    """Where entry p of a matrix is; narrow numbers divide fast."""
    row = p // width
    return row, np.uint32(p - row * width)
