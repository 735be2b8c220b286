"""The linear map Phi_i from statistics to weights, as a matrix, built from its definition."""

from itertools import pairwise

import numpy as np
from scipy.linalg import block_diag

from maxmargin.methods._move import Move, add_entry, new_move
from maxmargin.problems import Arborescence, Chain, Graph, Matching, SecondOrderChain, Segments
from maxmargin.problems._labelling import Cut
from maxmargin.problems._protocol import sizes
from support.catalogue import Case
from support.naive import Array, Output, segments_of


def feature_map(case: Case, i: int) -> Array:
    """Return Phi_i in the layouts of weights and statistics of the case's problem."""
    x, problem = case.X[i], case.problem
    if isinstance(problem, Matching):
        return _link_map(x, problem.fertility - 1)
    if isinstance(problem, Arborescence):
        return x.reshape(-1, x.shape[2]).T
    if isinstance(problem, Graph):
        return _graph_map(*x, problem)
    if isinstance(problem, SecondOrderChain):
        return block_diag(_chain_map(x, problem.chain), np.eye(_n_trigrams(problem)))
    if isinstance(problem, Segments):
        return _segment_map(x, problem)
    return _chain_map(x, problem) if isinstance(problem, Chain) else _class_map(x, problem.width)


def _link_map(x: Array, further: int) -> Array:
    """Links map to their features; the counts of further places, which come first, to the last weights."""
    m, n, n_features = x.shape
    Phi = np.zeros((n_features + further, further + m * n))
    Phi[:n_features, further:] = x.reshape(m * n, n_features).T
    Phi[n_features:, :further] = np.eye(further)
    return Phi


def _graph_map(nodes: Array, ends: Array, edges: Array, problem: Graph) -> Array:
    """Label k of a node maps to its features in the place of k, a table or bond of an edge to the edge's."""
    per_edge = _edge_size(problem)
    by_node, by_edge = np.kron(nodes.T, np.eye(problem.width)), np.kron(edges.T, np.eye(per_edge))
    Phi = np.zeros((len(by_node) + len(by_edge), by_node.shape[1] + by_edge.shape[1]))
    Phi[: len(by_node), : by_node.shape[1]] = by_node
    Phi[len(by_node) :, by_node.shape[1] :] = by_edge
    return Phi


def _edge_size(problem: Graph) -> int:
    return 1 if isinstance(problem.inference, Cut) else problem.n_labels * problem.width


def _n_trigrams(problem: SecondOrderChain) -> int:
    return problem.chain.n_labels**2 * problem.chain.width


def _segment_map(x: Array, problem: Segments) -> Array:
    """Transitions and lengths map to themselves; a token's labels in three roles to x_t in those of weights.

    Rows of weights are the features three times, transitions, lengths and start; those of statistics
    transitions, lengths and the tokens three times.
    """
    shared, n_features = problem.n_labels + problem.n_lengths, x.shape[1]
    rows = np.zeros((3 * n_features + shared + 1, shared + 3 * len(x)))
    rows[: 3 * n_features, shared:] = np.kron(x.T, np.eye(3))
    rows[3 * n_features : -1, :shared] = np.eye(shared)
    rows[-1, shared + 1] = 1.0
    return np.kron(rows, np.eye(problem.width))


def _class_map(x: Array, width: int) -> Array:
    """The class indicator, times x."""
    return np.kron(x[:, None], np.eye(width))


def _chain_map(x: Array, problem: Chain) -> Array:
    """Transitions map to themselves; label k at position t to x_t, and at the ends to the biases of k.

    Rows of weights are the features, start, end and the labels; those of statistics the labels, then the
    positions.
    """
    length, n_features = x.shape
    K, width = problem.n_labels, problem.width
    rows = np.zeros((n_features + 2 + K, K + length))
    rows[n_features + 2 :, :K] = np.eye(K)
    rows[:n_features, K:] = x.T
    rows[n_features, K] = 1.0
    rows[n_features + 1, K + length - 1] = 1.0
    return np.kron(rows, np.eye(width))


def statistics(case: Case, i: int, y: Output) -> Array:
    """Return s_i(y): the counts of transitions and the label at each position, links, arcs, or the class."""
    problem = case.problem
    if isinstance(problem, Matching):
        return _link_statistics(case, i, y)
    if isinstance(problem, Arborescence):
        return _arc_statistics(case, y)
    if isinstance(problem, Graph):
        return _graph_statistics(case, i, y)
    if isinstance(problem, SecondOrderChain):
        return _second_order_statistics(case, i, y)
    if isinstance(problem, Segments):
        return _segment_statistics(case, y)
    if not isinstance(problem, Chain):
        return np.eye(problem.width)[y[0]]
    rows = np.zeros((problem.n_labels + problem.longest, problem.width))
    for t, label in enumerate(y):
        rows[problem.n_labels + t, label] = 1.0
        if t > 0:
            rows[y[t - 1], label] += 1.0
    return rows.ravel()


def _second_order_statistics(case: Case, i: int, y: Output) -> Array:
    """Those of the chain, then the counts of trigrams by their label in the middle, as far as i has any."""
    chain = case.problem.chain
    first = statistics(Case(chain, case.data, case.X), i, y)[: (chain.n_labels + len(y)) * chain.width]
    trigrams = np.zeros((chain.n_labels, chain.n_labels, chain.width))
    for t in range(2, len(y)):
        trigrams[y[t - 1], y[t - 2], y[t]] += 1.0
    found = np.zeros(sizes(case.problem).statistics)
    found[: len(first) + trigrams.size] = np.concatenate([first, trigrams.ravel()])
    return found


def _link_statistics(case: Case, i: int, y: Output) -> Array:
    """Counts of further places, then indicators of links, source by source."""
    fertility, n = case.problem.fertility, case.X[i].shape[1]
    found = np.zeros(sizes(case.problem).statistics)
    for place, k in enumerate(y):
        if k >= 0:
            found[fertility - 1 + place // fertility * n + k] += 1.0
            if place % fertility > 0:
                found[place % fertility - 1] += 1.0
    return found


def _arc_statistics(case: Case, y: Output) -> Array:
    """Indicators of arcs, word by word."""
    found = np.zeros(sizes(case.problem).statistics)
    for j, h in enumerate(y):
        found[j * (len(y) + 1) + h] = 1.0
    return found


def _graph_statistics(case: Case, i: int, y: Output) -> Array:
    """The label of each node, then the pair of labels or the bond of each edge."""
    (nodes, ends, _), width = case.X[i], case.problem.width
    found, per_edge = np.zeros(sizes(case.problem).statistics), _edge_size(case.problem)
    for v in range(len(nodes)):
        found[v * width + y[v]] = 1.0
    begin = len(nodes) * width
    for e, (a, b) in enumerate(ends):
        if per_edge == 1:
            found[begin + e] = y[len(nodes) + e]
        else:
            found[begin + e * per_edge + y[a] * width + y[b]] = 1.0
    return found


def _segment_statistics(case: Case, y: Output) -> Array:
    """Counts of transitions and lengths, then the labels of tokens in their three roles."""
    K, shared = case.problem.n_labels, case.problem.n_labels + case.problem.n_lengths
    rows = np.zeros((shared + 3 * case.problem.longest, case.problem.width))
    segments = segments_of(y)
    for start, stop, k in segments:
        rows[K + stop - start - 1, k] += 1.0
        rows[shared + 3 * start + 1, k] += 1.0
        rows[shared + 3 * (stop - 1) + 2, k] += 1.0
        for t in range(start, stop):
            rows[shared + 3 * t, k] += 1.0
    for (_, _, j), (_, _, k) in pairwise(segments):
        rows[j, k] += 1.0
    return rows.ravel()


def random_direction(case: Case, i: int, rng: np.random.Generator) -> Array:
    """Return a vector in output space: zero where it pads, beyond example i, and in a few more places."""
    problem = case.problem
    if isinstance(problem, Matching):
        m, n, _ = case.X[i].shape
        delta = np.zeros(sizes(problem).statistics)
        delta[: problem.fertility - 1 + m * n] = rng.normal(size=problem.fertility - 1 + m * n)
        return np.where(rng.random(len(delta)) < 0.3, 0.0, delta)
    if isinstance(problem, Arborescence):
        delta, n_arcs = np.zeros(sizes(problem).statistics), int(np.prod(case.X[i].shape[:2]))
        delta[:n_arcs] = np.where(rng.random(n_arcs) < 0.3, 0.0, rng.normal(size=n_arcs))
        return delta
    if isinstance(problem, Graph):
        nodes, ends, _ = case.X[i]
        delta = np.zeros(sizes(problem).statistics)
        m = len(nodes) * problem.width + len(ends) * _edge_size(problem)
        delta[:m] = np.where(rng.random(m) < 0.4, 0.0, rng.normal(size=m))
        return delta
    if isinstance(problem, SecondOrderChain):
        return _second_order_direction(case, i, rng)
    if isinstance(problem, Segments):
        shared, length = problem.n_labels + problem.n_lengths, len(case.X[i])
        delta = np.zeros((shared + 3 * problem.longest, problem.width))
        delta[: shared + 3 * length, : problem.n_labels] = rng.normal(
            size=(shared + 3 * length, problem.n_labels)
        )
        return np.where(rng.random(delta.shape) < 0.5, 0.0, delta).ravel()
    length, K = (len(case.X[i]), problem.n_labels) if isinstance(problem, Chain) else (1, 0)
    longest = problem.longest if isinstance(problem, Chain) else 1
    delta = np.zeros((K + longest, problem.width))
    delta[: K + length, : problem.n_labels] = rng.normal(size=(K + length, problem.n_labels))
    delta[rng.random(len(delta)) < 0.3] = 0.0
    return delta.ravel()


def _second_order_direction(case: Case, i: int, rng: np.random.Generator) -> Array:
    chain, delta = case.problem.chain, np.zeros(sizes(case.problem).statistics)
    rows, K = delta.reshape(-1, chain.width), chain.n_labels
    m = K + len(case.X[i]) + K**2
    rows[:m, :K] = rng.normal(size=(m, K)) * (rng.random((m, K)) < 0.6)
    return delta


def as_move(delta: Array) -> Move:
    """Return the direction as the package holds it: with the list of its nonzeros."""
    move = new_move(len(delta))
    for p in np.flatnonzero(delta):
        add_entry(move, int(p), delta[p])
    return move
