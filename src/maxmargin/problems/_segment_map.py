"""The feature map of segmentations: from labels of tokens, lengths and transitions to weights, and back."""

from maxmargin.compiling.prefetch import prefetch
from maxmargin.inference.segments import PARTS
from maxmargin.loops import add_product, add_scaled, clear, copy
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._products import (
    has_table,
    head_norm2,
    multiply_products_behind,
    prefetch_tokens,
    products_norm2,
    push_head,
    stream_products,
)
from maxmargin.problems.segments import Segments, head_size
from maxmargin.rows import row_push_few, row_scores


@protocol.foresee.register(Segments)
def segments_foresee(problem, i):
    prefetch_tokens(problem, i)
    prefetch(problem.truth, problem.offsets[i], problem.offsets[i + 1])


@protocol.score.register(Segments)
def segments_score(problem, i, w, theta):
    first, width, head = problem.offsets[i], problem.width, head_size(problem)
    n_features = problem.rows.n_columns * PARTS * width
    W = w[:n_features].reshape((-1, PARTS * width))
    parts = theta[head:].reshape((-1, PARTS * width))
    copy(w[n_features : n_features + head], theta[:head])
    for t in range(problem.offsets[i + 1] - first):
        row_scores(problem.rows, first + t, W, parts[t])
    add_scaled(1.0, w[n_features + head :], parts[0][width : 2 * width])


@protocol.gram.register(Segments)
def segments_gram(problem, i, move, image, work):
    length, width, head = problem.offsets[i + 1] - problem.offsets[i], problem.width, head_size(problem)
    copy(move.delta[:head], image[:head])
    D = move.delta[head:].reshape((-1, PARTS * width))[:length]
    G = image[head:].reshape((-1, PARTS * width))[:length]
    if has_table(problem, i):
        multiply_products_behind(head, problem, i, move, D, G)
    else:
        stream_products(problem, i, D, G, work)
    add_scaled(1.0, D[0][width : 2 * width], G[0][width : 2 * width])


@protocol.norm2.register(Segments)
def segments_norm2(problem, i, move, image, work):
    length, width, head = problem.offsets[i + 1] - problem.offsets[i], problem.width, head_size(problem)
    D = move.delta[head:].reshape((-1, PARTS * width))[:length]
    G, sums = image[head:].reshape((-1, PARTS * width))[:length], image[: PARTS * width]
    clear(sums)
    add_product(1.0, D[0][width : 2 * width], D[0][width : 2 * width], sums[:width])
    return products_norm2(problem, i, D, G, sums, work) + head_norm2(head, move)


@protocol.push.register(Segments)
def segments_push(problem, i, move, scale, w, work):
    first, width, head = problem.offsets[i], problem.width, head_size(problem)
    n_features = problem.rows.n_columns * PARTS * width
    W = w[:n_features].reshape((-1, PARTS * width))
    D = move.delta[head:].reshape((-1, PARTS * width))
    for t in range(problem.offsets[i + 1] - first):
        row_push_few(problem.rows, first + t, scale, D[t], W, work.nonzero)
    push_head(head, move, scale, w[n_features : n_features + head])
    add_scaled(scale, D[0][width : 2 * width], w[n_features + head :])
