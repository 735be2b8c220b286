"""A model of your own, compiled
=============================

Choose the k best of several items, trained for precision at k.

Each example has m items with features, k of which are relevant. An output is a set of k items. Its score is
the sum of the scores of its items, and its loss the share of them that is not relevant (Joachims 2005).
"""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from maxmargin import Accelerated, Pairwise, check_problem, solve
from maxmargin.compiling import subroutine
from maxmargin.structures import feature_map, oracle
from maxmargin.structures.problem import Problem

K = 3


# The feature map. The statistics of an output are indicators of its items; Phi_i is the transpose of X[i].
class ItemMap(NamedTuple):
    X: np.ndarray  # shape (n, m, n_features)
    products: np.ndarray  # X[i] @ X[i].T of each example


@feature_map.map_sizes.register(ItemMap)
def item_map_sizes(phi):
    n, m, d = phi.X.shape
    return feature_map.MapSizes(n, d, m)


@feature_map.score.register(ItemMap)
def item_score(phi, i, w, theta):
    for j in range(theta.shape[0]):
        theta[j] = 0.0
        for f in range(w.shape[0]):
            theta[j] += phi.X[i, j, f] * w[f]


@feature_map.gram.register(ItemMap)
def item_gram(phi, i, move, image, work):
    for j in range(image.shape[0]):
        image[j] = 0.0
        for c in range(move.size[0]):  # the nonzeros of the direction
            image[j] += phi.products[i, j, move.support[c]] * move.delta[move.support[c]]


@feature_map.push.register(ItemMap)
def item_push(phi, i, move, scale, w, work):
    for c in range(move.size[0]):
        j = move.support[c]
        for f in range(w.shape[0]):
            w[f] += scale * move.delta[j] * phi.X[i, j, f]


# The oracle. It sees scores, never features.
class TopK(NamedTuple):
    relevant: np.ndarray  # shape (n, m), bool


class TopKWork(NamedTuple):
    value: np.ndarray


@oracle.output_sizes.register(TopK)
def top_k_output_sizes(top):
    return oracle.OutputSizes(output=K, parts=2 * K)


@oracle.oracle_workspace.register(TopK)
def top_k_workspace(top):
    return TopKWork(np.zeros(top.relevant.shape[1]))


@subroutine  # compiled as a part of what calls it
def choose(value, y):
    """Write the K items of largest value to y."""
    for s in range(K):
        best = 0
        for j in range(value.shape[0]):
            if value[j] > value[best]:
                best = j
        y[s] = best
        value[best] = -np.inf


@oracle.argmax.register(TopK)
def top_k_argmax(top, i, theta, y, work):
    for j in range(theta.shape[0]):
        work.value[j] = theta[j] if top.relevant[i, j] else theta[j] + 1.0 / K
    choose(work.value, y)


@oracle.decode.register(TopK)
def top_k_decode(top, i, theta, y, work):
    for j in range(theta.shape[0]):
        work.value[j] = theta[j]
    choose(work.value, y)


@oracle.loss.register(TopK)
def top_k_loss(top, i, y):
    wrong = 0
    for s in range(K):
        wrong += not top.relevant[i, y[s]]
    return wrong / K


@oracle.psi.register(TopK)
def top_k_psi(top, i, y, index, value):
    count = 0
    for j in range(top.relevant.shape[1]):
        chosen = False
        for s in range(K):
            chosen = chosen or y[s] == j
        if chosen != top.relevant[i, j]:
            index[count], value[count] = j, 1.0 if top.relevant[i, j] else -1.0
            count += 1
    return count


def lists_of_digits(X, labels, n, rng):
    """Return n lists of ten digits, the first three of which are eights, shuffled."""
    eights, others = X[labels == 8], X[labels != 8]
    lists, relevant = np.empty((n, 10, X.shape[1])), np.zeros((n, 10), dtype=bool)
    for i in range(n):
        items = np.concatenate(
            [eights[rng.permutation(len(eights))[:K]], others[rng.permutation(len(others))[:7]]]
        )
        order = rng.permutation(10)
        lists[i], relevant[i] = items[order], order < K
    return lists, relevant


digits, labels = load_digits(return_X_y=True)
digits /= 16  # pixels between 0 and 1
rng = np.random.default_rng(0)
X, relevant = lists_of_digits(digits[:900], labels[:900], 300, rng)
problem = Problem(ItemMap(X, X @ X.transpose(0, 2, 1)), TopK(relevant))
print(check_problem(problem))
result = solve(problem, Accelerated(Pairwise(lam=1 / 300)), tol=0.01, random_state=0)
print(f"The objective, {result.primal:.3f}, is certified to be within {result.gap:.2g} of its minimum.")
X_test, relevant_test = lists_of_digits(digits[900:], labels[900:], 300, rng)
best = np.argsort(-(X_test @ result.weights), axis=1)[:, :K]
precision = np.take_along_axis(relevant_test, best, axis=1).mean()
print(f"Precision at {K} on 300 other lists: {precision:.3f}")
