"""The feature map of graphs: from labels of nodes and of edges to weights, and back to scores.

A vector of the size of the weights is made for moves that are measured, and wiped where it was written, so
that this costs as much as the features of what moves.
"""

import numpy as np

from maxmargin.compiling import helper, subroutine
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._labelling import edge_size
from maxmargin.problems.graph import Graph
from maxmargin.rows import row_add, row_add_two, row_scores, row_wipe, row_wipe_two, rows_prefetch


@protocol.foresee.register(Graph)
def graph_foresee(problem, i):
    rows_prefetch(problem.rows, problem.offsets[i], problem.offsets[i + 1])
    rows_prefetch(problem.edge_rows, problem.edge_offsets[i], problem.edge_offsets[i + 1])


@protocol.score.register(Graph)
def graph_score(problem, i, w, theta):
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
def graph_gram(problem, i, move, image, work):
    protocol.push(problem, i, move, 1.0, work.image, work)
    protocol.score(problem, i, work.image, image)
    _wipe(problem, i, move, work.image)


@protocol.norm2.register(Graph)
def graph_norm2(problem, i, move, image, work):
    protocol.push(problem, i, move, 1.0, work.image, work)
    return _wipe(problem, i, move, work.image)


@protocol.push.register(Graph)
def graph_push(problem, i, move, scale, w, work):
    width, split = problem.width, problem.rows.n_columns * problem.width
    per_edge = edge_size(problem.inference, problem.n_labels, width)
    W, V = w[:split].reshape((-1, width)), w[split:].reshape((-1, per_edge))
    nodes = np.uint32((problem.offsets[i + 1] - problem.offsets[i]) * width)
    c = 0
    while c < move.size[0]:
        p = move.support[c]
        c += 1
        if p < nodes:
            c += _push_node(problem, i, move, c, scale, W)
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(per_edge))
            row_add(problem.edge_rows, problem.edge_offsets[i] + e, scale * move.delta[p], V[:, k])


@subroutine
def _push_node(problem, i, move, c, scale, W):
    """Push the label of a node before entry c of the support, and this one if it is another of the same node.

    A wrong label comes with the right one. Return how many more than one were pushed.
    """
    p, width = move.support[c - 1], np.uint32(problem.width)
    v, k = _row_and_column(p, width)
    t, q = problem.offsets[i] + v, move.support[c]
    if c < move.size[0] and q // width == v:
        row_add_two(problem.rows, t, scale * move.delta[p], scale * move.delta[q], W, k, q - v * width)
        return 1
    row_add(problem.rows, t, scale * move.delta[p], W[:, k])
    return 0


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
    c = 0
    while c < move.size[0]:
        p = move.support[c]
        c += 1
        if p < nodes:
            square, more = _wipe_node(problem, i, move, c, W)
            total, c = total + square, c + more
        else:
            e, k = _row_and_column(np.uint32(p - nodes), np.uint32(per_edge))
            total += row_wipe(problem.edge_rows, problem.edge_offsets[i] + e, V[:, k])
    return total


@subroutine
def _wipe_node(problem, i, move, c, W):
    """Wipe what `_push_node` has pushed; return the sum of squares, and how many more than one."""
    width = np.uint32(problem.width)
    v, k = _row_and_column(move.support[c - 1], width)
    t, q = problem.offsets[i] + v, move.support[c]
    if c < move.size[0] and q // width == v:
        return row_wipe_two(problem.rows, t, W, k, q - v * width), 1
    return row_wipe(problem.rows, t, W[:, k]), 0


@helper
def _row_and_column(p, width):
    """Where entry p of a matrix is; narrow numbers divide fast."""
    row = p // width
    return row, np.uint32(p - row * width)
