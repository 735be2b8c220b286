"""Encode graphs: features of nodes, edges, and features of edges, as arrays over all graphs."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from maxmargin.arrays import FloatArray, IntArray, frozen
from maxmargin.encoding.graph_parts import (
    Matrix,
    check_not_empty,
    checked_ends,
    graph_fields,
    stacked_edges,
    stacked_nodes,
)
from maxmargin.encoding.kinds import checked_floats
from maxmargin.encoding.labels import Labels, encode_labels, without_label
from maxmargin.encoding.tokens import Words
from maxmargin.wording import described, shown

WORDS = Words("graph", "node")


class Graphs(NamedTuple):
    """The nodes and edges of all graphs, one graph after another.

    Attributes
    ----------
    nodes : ndarray of float64 or float32 (n_nodes, n_features) or csr_array
    offsets : ndarray of int64 (n_graphs + 1,)
        Graph i consists of the nodes offsets[i], ..., offsets[i + 1] - 1.
    edges : ndarray of float64 or float32 (n_edges, n_edge_features) or csr_array
        A column of ones if edges have no features.
    edge_offsets : ndarray of int64 (n_graphs + 1,)
    ends : ndarray of int64 (n_edges, 2)
        The two nodes of each edge, numbered within their graph.
    """

    nodes: Matrix
    offsets: IntArray
    edges: Matrix
    edge_offsets: IntArray
    ends: IntArray


def encode_graphs(X: object, *, owner: str) -> Graphs:
    """Return the graphs of a list of tuples ``(node_features, edges[, edge_features])`` of numbers."""
    fields = graph_fields(X, owner)
    nodes = stacked_nodes(fields, owner)
    check_not_empty(nodes.offsets, owner)
    ends = checked_ends(fields, nodes.offsets, owner)
    edges = stacked_edges(fields, ends, nodes.rows.dtype, owner)
    return Graphs(frozen(nodes.rows), nodes.offsets, frozen(edges.rows), edges.offsets, np.concatenate(ends))


def has_cycles(graphs: Graphs) -> bool:
    """Return whether any graph has a cycle: more edges than a forest with as many components."""
    n_nodes, counts = int(graphs.offsets[-1]), np.diff(graphs.edge_offsets)
    ends = graphs.ends + np.repeat(graphs.offsets[:-1], counts)[:, None]
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_nodes, n_nodes))
    return len(ends) > n_nodes - int(connected_components(joined, directed=False)[0])


def encode_node_labels(
    y: object, graphs: Graphs, *, owner: str, classes: ArrayLike | None = None
) -> tuple[IntArray, Labels]:
    """Number the labels of all nodes; the labels of a graph may be an array of any shape."""
    return number_node_labels(y, graphs.offsets, owner=owner, classes=classes)


def encode_with_void(
    y: object, graphs: Graphs, void: str | int | None, *, owner: str, classes: ArrayLike | None = None
) -> tuple[IntArray, Labels]:
    """Number the labels of all nodes but those that are void, whose number is -1."""
    if void is None:
        return encode_node_labels(y, graphs, owner=owner, classes=classes)
    known = None if classes is None else np.unique(np.append(np.asarray(classes), void))
    codes, found = encode_node_labels(y, graphs, owner=owner, classes=known)
    kind = "str" if found.dtype.kind == "U" else "int"
    if isinstance(void, str) != (kind == "str"):
        raise TypeError(f"{owner}: void must be of type {kind}, as the labels of y are, got {shown(void)}.")
    codes, found = without_label(codes, found, void)
    if not len(found) or (codes < 0).all():
        raise ValueError(f"{owner}: y has no label but {void!r}, which is void; give other labels.")
    return codes, found


def number_node_labels(
    y: object, offsets: IntArray, *, owner: str, classes: ArrayLike | None = None
) -> tuple[IntArray, Labels]:
    """Number the labels of all nodes, given where the nodes of each graph begin."""
    flat = [_raveled(labels) for labels in y] if isinstance(y, list | tuple) else y
    return encode_labels(flat, offsets, classes=classes, owner=owner, words=WORDS)


def _raveled(labels: object) -> object:
    return labels.ravel() if isinstance(labels, np.ndarray) and labels.ndim > 1 else labels


def encode_node_weights(weights: object, graphs: Graphs, *, owner: str) -> FloatArray:
    """Return the weights of all nodes; raise unless they are valid."""
    given = list(weights) if isinstance(weights, Iterable) else []
    lengths = np.diff(graphs.offsets).tolist()
    if len(given) != len(lengths):
        raise ValueError(
            f"{owner}: node_weights must be a list of {len(lengths)} arrays, one per graph, got "
            f"{described(weights)}."
        )
    found = [
        checked_floats(item, owner, f"node_weights of graph {i}").ravel() for i, item in enumerate(given)
    ]
    for i, (array, length) in enumerate(zip(found, lengths, strict=True)):
        is_valid = (array >= 0.0).all() and 0.0 < array.sum() < np.inf
        if len(array) != length or (length and not is_valid):
            raise ValueError(
                f"{owner}: node_weights of graph {i} must be {length} finite numbers >= 0 with a positive "
                f"sum, got {len(array)} of sum {array.sum():.3g}."
            )
    return np.concatenate(found)


def without_nodes(graphs: Graphs, kept: NDArray[np.bool_]) -> Graphs:
    """Return the graphs with some of their nodes, and the edges between them; a graph may become empty."""
    counts = np.diff(graphs.edge_offsets)
    ends = graphs.ends + np.repeat(graphs.offsets[:-1], counts)[:, None]
    joined = kept[ends].all(axis=1)
    numbers = np.append(0, np.cumsum(kept))
    offsets = numbers[graphs.offsets]
    edge_offsets = np.append(0, np.cumsum(joined))[graphs.edge_offsets]
    ends = numbers[ends[joined]] - np.repeat(offsets[:-1], np.diff(edge_offsets))[:, None]
    nodes, edges = _taken(graphs.nodes, kept), _taken(graphs.edges, joined)
    return Graphs(nodes, offsets, edges, edge_offsets, ends)


def without_empty(graphs: Graphs) -> Graphs:
    """Return the graphs that have nodes."""
    kept = np.append(True, np.diff(graphs.offsets) > 0)
    return graphs._replace(offsets=graphs.offsets[kept], edge_offsets=graphs.edge_offsets[kept])


def _taken(matrix: Matrix, kept: NDArray[np.bool_]) -> Matrix:
    return frozen(matrix[kept] if isinstance(matrix, np.ndarray) else csr_array(matrix)[kept])
