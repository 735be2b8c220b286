"""The linear map Phi_i from statistics to weights, as a matrix, built from its definition."""

from itertools import pairwise

import numpy as np
from scipy.linalg import block_diag

from maxmargin.structures.classes.model import MulticlassMap
from maxmargin.structures.dependency.model import DependencyMap
from maxmargin.structures.feature_map import Move, add_entry, map_sizes, new_move
from maxmargin.structures.graphs.model import GraphMap
from maxmargin.structures.matchings.model import MatchingMap
from maxmargin.structures.segments.model import SegmentsMap
from maxmargin.structures.sequences.model import ChainMap, SecondOrderMap
from support.catalogue import Case
from support.naive import Array, Output, segments_of


def feature_map(case: Case, i: int) -> Array:
    """Return Phi_i in the layouts of weights and statistics of the case's problem."""
    x, phi = case.X[i], case.problem.map
    if isinstance(phi, MatchingMap):
        return _link_map(x, phi.fertility - 1)
    if isinstance(phi, DependencyMap):
        return x.reshape(-1, x.shape[2]).T
    if isinstance(phi, GraphMap):
        return _graph_map(*x, phi)
    if isinstance(phi, SecondOrderMap):
        return block_diag(_chain_map(x, phi.inner), np.eye(phi.inner.n_labels**2 * phi.inner.width))
    if isinstance(phi, SegmentsMap):
        return _segment_map(x, phi)
    return _chain_map(x, phi) if isinstance(phi, ChainMap) else _class_map(x, phi.width)


def _link_map(x: Array, further: int) -> Array:
    """Links map to their features; the counts of further places, which come first, to the last weights."""
    m, n, n_features = x.shape
    Phi = np.zeros((n_features + further, further + m * n))
    Phi[:n_features, further:] = x.reshape(m * n, n_features).T
    Phi[n_features:, :further] = np.eye(further)
    return Phi


def _graph_map(nodes: Array, ends: Array, edges: Array, phi: GraphMap) -> Array:
    """Label k of a node maps to its features in the place of k, a table or bond of an edge to the edge's."""
    by_node, by_edge = np.kron(nodes.T, np.eye(phi.width)), np.kron(edges.T, np.eye(phi.per_edge))
    Phi = np.zeros((len(by_node) + len(by_edge), by_node.shape[1] + by_edge.shape[1]))
    Phi[: len(by_node), : by_node.shape[1]] = by_node
    Phi[len(by_node) :, by_node.shape[1] :] = by_edge
    return Phi


def _segment_map(x: Array, phi: SegmentsMap) -> Array:
    """Transitions and lengths map to themselves; a token's labels in three roles to x_t in those of weights.

    Rows of weights are the features three times, transitions, lengths and start; those of statistics
    transitions, lengths and the tokens three times.
    """
    shared, n_features = phi.n_labels + phi.n_lengths, x.shape[1]
    rows = np.zeros((3 * n_features + shared + 1, shared + 3 * len(x)))
    rows[: 3 * n_features, shared:] = np.kron(x.T, np.eye(3))
    rows[3 * n_features : -1, :shared] = np.eye(shared)
    rows[-1, shared + 1] = 1.0
    return np.kron(rows, np.eye(phi.width))


def _class_map(x: Array, width: int) -> Array:
    """The class indicator, times x."""
    return np.kron(x[:, None], np.eye(width))


def _chain_map(x: Array, phi: ChainMap) -> Array:
    """Transitions map to themselves; label k at position t to x_t, and at the ends to the biases of k.

    Rows of weights are the features, start, end and the labels; those of statistics the labels, then the
    positions.
    """
    length, n_features = x.shape
    K, width = phi.n_labels, phi.width
    rows = np.zeros((n_features + 2 + K, K + length))
    rows[n_features + 2 :, :K] = np.eye(K)
    rows[:n_features, K:] = x.T
    rows[n_features, K] = 1.0
    rows[n_features + 1, K + length - 1] = 1.0
    return np.kron(rows, np.eye(width))


def statistics(case: Case, i: int, y: Output) -> Array:
    """Return s_i(y): the counts of transitions and the label at each position, links, arcs, or the class."""
    phi = case.problem.map
    if isinstance(phi, MatchingMap):
        return _link_statistics(case, i, y)
    if isinstance(phi, DependencyMap):
        return _arc_statistics(phi, y)
    if isinstance(phi, GraphMap):
        return _graph_statistics(case, i, y)
    if isinstance(phi, SecondOrderMap):
        return _second_order_statistics(phi, y)
    if isinstance(phi, SegmentsMap):
        return _segment_statistics(phi, y)
    return _chain_statistics(phi, y) if isinstance(phi, ChainMap) else np.eye(phi.width)[y[0]]


def _chain_statistics(phi: ChainMap, y: Output) -> Array:
    """Counts of transitions, then the label at each position."""
    rows = np.zeros((phi.n_labels + phi.longest, phi.width))
    for t, label in enumerate(y):
        rows[phi.n_labels + t, label] = 1.0
        if t > 0:
            rows[y[t - 1], label] += 1.0
    return rows.ravel()


def _second_order_statistics(phi: SecondOrderMap, y: Output) -> Array:
    """Those of the chain, then the counts of trigrams by their label in the middle, as far as i has any."""
    chain = phi.inner
    first = _chain_statistics(chain, y)[: (chain.n_labels + len(y)) * chain.width]
    trigrams = np.zeros((chain.n_labels, chain.n_labels, chain.width))
    for t in range(2, len(y)):
        trigrams[y[t - 1], y[t - 2], y[t]] += 1.0
    found = np.zeros(map_sizes(phi).statistics)
    found[: len(first) + trigrams.size] = np.concatenate([first, trigrams.ravel()])
    return found


def _link_statistics(case: Case, i: int, y: Output) -> Array:
    """Counts of further places, then indicators of links, source by source."""
    fertility, n = case.problem.map.fertility, case.X[i].shape[1]
    found = np.zeros(map_sizes(case.problem.map).statistics)
    for place, k in enumerate(y):
        if k >= 0:
            found[fertility - 1 + place // fertility * n + k] += 1.0
            if place % fertility > 0:
                found[place % fertility - 1] += 1.0
    return found


def _arc_statistics(phi: DependencyMap, y: Output) -> Array:
    """Indicators of arcs, word by word."""
    found = np.zeros(map_sizes(phi).statistics)
    for j, h in enumerate(y):
        found[j * (len(y) + 1) + h] = 1.0
    return found


def _graph_statistics(case: Case, i: int, y: Output) -> Array:
    """The label of each node, then the pair of labels or the bond of each edge."""
    (nodes, ends, _), phi = case.X[i], case.problem.map
    found, width, per_edge = np.zeros(map_sizes(phi).statistics), phi.width, phi.per_edge
    for v in range(len(nodes)):
        found[v * width + y[v]] = 1.0
    begin = len(nodes) * width
    for e, (a, b) in enumerate(ends):
        if per_edge == 1:
            found[begin + e] = y[len(nodes) + e]
        else:
            found[begin + e * per_edge + y[a] * width + y[b]] = 1.0
    return found


def _segment_statistics(phi: SegmentsMap, y: Output) -> Array:
    """Counts of transitions and lengths, then the labels of tokens in their three roles."""
    K, shared = phi.n_labels, phi.n_labels + phi.n_lengths
    rows = np.zeros((shared + 3 * phi.longest, phi.width))
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
    phi = case.problem.map
    if isinstance(phi, SecondOrderMap):
        return _second_order_direction(case, i, rng)
    if isinstance(phi, SegmentsMap):
        return _segment_direction(case, i, rng)
    if isinstance(phi, ChainMap | MulticlassMap):
        return _rows_direction(case, i, rng)
    delta = np.zeros(map_sizes(phi).statistics)
    m, zeros = _n_statistics(case, i), 0.4 if isinstance(phi, GraphMap) else 0.3
    delta[:m] = np.where(rng.random(m) < zeros, 0.0, rng.normal(size=m))
    return delta


def _n_statistics(case: Case, i: int) -> int:
    """Return the number of statistics of example i: of links, of arcs, or of nodes and edges."""
    phi = case.problem.map
    if isinstance(phi, GraphMap):
        nodes, ends, _ = case.X[i]
        return len(nodes) * phi.width + len(ends) * phi.per_edge
    further = phi.fertility - 1 if isinstance(phi, MatchingMap) else 0
    return further + int(np.prod(case.X[i].shape[:2]))


def _rows_direction(case: Case, i: int, rng: np.random.Generator) -> Array:
    phi = case.problem.map
    chain = isinstance(phi, ChainMap)
    length, longest, K = (len(case.X[i]), phi.longest, phi.n_labels) if chain else (1, 1, 0)
    delta = np.zeros((K + longest, phi.width))
    delta[: K + length, : phi.n_labels] = rng.normal(size=(K + length, phi.n_labels))
    delta[rng.random(len(delta)) < 0.3] = 0.0
    return delta.ravel()


def _segment_direction(case: Case, i: int, rng: np.random.Generator) -> Array:
    phi = case.problem.map
    shared, length = phi.n_labels + phi.n_lengths, len(case.X[i])
    delta = np.zeros((shared + 3 * phi.longest, phi.width))
    delta[: shared + 3 * length, : phi.n_labels] = rng.normal(size=(shared + 3 * length, phi.n_labels))
    return np.where(rng.random(delta.shape) < 0.5, 0.0, delta).ravel()


def _second_order_direction(case: Case, i: int, rng: np.random.Generator) -> Array:
    phi = case.problem.map
    delta, K = np.zeros(map_sizes(phi).statistics), phi.inner.n_labels
    rows, m = delta.reshape(-1, phi.inner.width), K + len(case.X[i]) + K**2
    rows[:m, :K] = rng.normal(size=(m, K)) * (rng.random((m, K)) < 0.6)
    return delta


def as_move(delta: Array) -> Move:
    """Return the direction as the package holds it: with the list of its nonzeros."""
    move = new_move(len(delta))
    for p in np.flatnonzero(delta):
        add_entry(move, int(p), delta[p])
    return move
