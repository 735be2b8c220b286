"""The feature map of chains: from labels and transitions to weights, and back to scores."""

from maxmargin.compiling.prefetch import prefetch
from maxmargin.loops import add_product, add_scaled, clear, copy
from maxmargin.problems import _protocol as protocol
from maxmargin.problems._products import (
    has_table,
    multiply_products,
    prefetch_tokens,
    products_norm2,
    push_transitions,
    stream_products,
    transitions_norm2,
)
from maxmargin.problems.chain import Chain
from maxmargin.rows import row_push_few, row_scores


@protocol.foresee.register(Chain)
def chain_foresee(problem, i):
    prefetch_tokens(problem, i)
    prefetch(problem.labels, problem.offsets[i], problem.offsets[i + 1])


@protocol.score.register(Chain)
def chain_score(problem, i, w, theta):
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    W, F, K = w.reshape((-1, problem.width)), problem.rows.n_columns, problem.n_labels
    parts = theta.reshape((-1, problem.width))
    copy(w[(F + 2) * problem.width :], theta[: K * problem.width])
    for t in range(length):
        row_scores(problem.rows, first + t, W, parts[K + t])
    add_scaled(1.0, W[F], parts[K])
    add_scaled(1.0, W[F + 1], parts[K + length - 1])


@protocol.gram.register(Chain)
def chain_gram(problem, i, move, image, work):
    length, K = problem.offsets[i + 1] - problem.offsets[i], problem.n_labels
    delta, parts = move.delta.reshape((-1, problem.width)), image.reshape((-1, problem.width))
    copy(move.delta[: K * problem.width], image[: K * problem.width])
    D, G = delta[K : K + length], parts[K : K + length]
    if has_table(problem, i):
        multiply_products(problem, i, move, D, G)
    else:
        stream_products(problem, i, D, G, work)
    add_scaled(1.0, D[0], G[0])
    add_scaled(1.0, D[length - 1], G[length - 1])


@protocol.norm2.register(Chain)
def chain_norm2(problem, i, move, image, work):
    length, K = problem.offsets[i + 1] - problem.offsets[i], problem.n_labels
    delta, parts = move.delta.reshape((-1, problem.width)), image.reshape((-1, problem.width))
    D, G, sums = delta[K : K + length], parts[K : K + length], parts[0]
    clear(sums)
    add_product(1.0, D[0], D[0], sums)
    add_product(1.0, D[length - 1], D[length - 1], sums)
    return products_norm2(problem, i, D, G, sums, work) + transitions_norm2(problem, move)


@protocol.push.register(Chain)
def chain_push(problem, i, move, scale, w, work):
    first, length = problem.offsets[i], problem.offsets[i + 1] - problem.offsets[i]
    W, F, K = w.reshape((-1, problem.width)), problem.rows.n_columns, problem.n_labels
    D = move.delta.reshape((-1, problem.width))
    for t in range(length):
        row_push_few(problem.rows, first + t, scale, D[K + t], W, work.nonzero)
    add_scaled(scale, D[K], W[F])
    add_scaled(scale, D[K + length - 1], W[F + 1])
    push_transitions(problem, move, scale, w[(F + 2) * problem.width :])
