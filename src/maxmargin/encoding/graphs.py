"""Encode graphs: features of nodes, edges, and features of edges, as arrays over all graphs."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components

from maxmargin.arrays import (
    CsrMatrix,
    FloatArray,
    IntArray,
    SparseMatrix,
    ValueArray,
    frozen,
    is_sparse,
    value_dtype,
)
from maxmargin.encoding.kinds import checked_floats, is_numeric
from maxmargin.encoding.labels import Labels, Words, encode_labels, without_label
from maxmargin.encoding.matrices import checked_csr, in_order
from maxmargin.encoding.tokens import first_not_finite
from maxmargin.wording import described, shown

_FORMS = "(node_features, edges) or (node_features, edges, edge_features)"
Matrix = ValueArray | CsrMatrix


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
    """Return the graphs of a list of tuples ``(node_features, edges[, edge_features])``."""
    graphs = [_read_graph(item, f"graph {i} of X", owner) for i, item in enumerate(_as_list(X, owner))]
    nodes, edges = [graph[0] for graph in graphs], [graph[2] for graph in graphs]
    for name, matrices in (("nodes", nodes), ("edges", edges)):
        _check_widths(name, matrices, owner)
    ends = np.concatenate([graph[1] for graph in graphs])
    stacked_nodes, stacked_edges = frozen(_stacked(nodes)), frozen(_stacked(edges))
    return Graphs(stacked_nodes, _offsets(nodes), stacked_edges, _offsets(edges), ends)


def stack_nodes(graphs: list[object], *, owner: str) -> tuple[Matrix, IntArray]:
    """Return the features of all nodes as they are given, not checked to be finite, and the offsets."""
    places = [f"graph {i} of X" for i in range(len(graphs))]
    nodes = [
        _node_matrix(_fields(item, where, owner)[0], where, owner)
        for item, where in zip(graphs, places, strict=True)
    ]
    _check_widths("nodes", nodes, owner)
    return _stacked(nodes), _offsets(nodes)


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
    return encode_labels(flat, offsets, classes=classes, owner=owner, words=Words("graph", "node"))


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
        if len(array) != length or not (array >= 0.0).all() or not 0.0 < array.sum() < np.inf:
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


def _as_list(X: object, owner: str) -> list[object]:
    alone = isinstance(X, tuple) and len(X) in (2, 3) and getattr(X[0], "ndim", 0) == 2
    if not isinstance(X, Iterable) or isinstance(X, str | dict) or hasattr(X, "ndim") or alone:
        advice = "; if it is one graph pass [X]" if alone else ""
        raise TypeError(f"{owner}: X must be a list of tuples {_FORMS}, got {described(X)}{advice}.")
    graphs = list(X)
    if not graphs:
        raise ValueError(f"{owner}: X has no graph, expected at least one; got {described(X)}.")
    return graphs


def _read_graph(item: object, where: str, owner: str) -> tuple[Matrix, IntArray, Matrix]:
    fields = _fields(item, where, owner)
    nodes = _finite(_node_matrix(fields[0], where, owner), "node", where, owner)
    ends = _ends(fields[1], nodes.shape[0], where, owner)
    if len(fields) == 2:
        return nodes, ends, np.ones((len(ends), 1), dtype=nodes.dtype)
    edges = _finite(_matrix(fields[2], "edge", where, owner), "edge", where, owner)
    if edges.shape[0] != len(ends):
        raise ValueError(
            f"{owner}: {where} has {len(ends)} edges, but features of {edges.shape[0]}; give one row of edge "
            "features per edge."
        )
    return nodes, ends, edges


def _fields(item: object, where: str, owner: str) -> Sequence[object]:
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise TypeError(f"{owner}: {where} is {described(item)}, expected a tuple {_FORMS}.")
    return item


def _node_matrix(values: object, where: str, owner: str) -> Matrix:
    """Return the features of the nodes of a graph as they are given; raise if there are none."""
    nodes = _matrix(values, "node", where, owner)
    if nodes.shape[0] == 0 or nodes.shape[1] == 0:
        raise ValueError(
            f"{owner}: {where} has node features of shape {nodes.shape}, expected at least one node and one "
            "feature; remove it from X (and from y)."
        )
    return nodes


def _matrix(values: object, kind: str, where: str, owner: str) -> Matrix:
    """Return the features of the nodes or edges of a graph; raise unless they are numbers."""
    try:
        matrix: SparseMatrix | NDArray[Any] = values if is_sparse(values) else np.asarray(values)
    except ValueError:  # lists of unequal lengths
        matrix = np.empty(0, dtype=object)
    if matrix.ndim != 2 or not is_numeric(matrix.dtype):
        raise ValueError(
            f"{owner}: {where} has {kind} features that are {described(values)}, expected numbers of shape "
            f"(n_{kind}s, n_features)."
        )
    if isinstance(matrix, np.ndarray):
        return matrix
    return checked_csr(matrix, f"{owner}: {where}: its {kind} features")


def _finite(matrix: Matrix, kind: str, where: str, owner: str) -> Matrix:
    """Return the features in a type of kernels; raise unless they are finite."""
    dtype, converted = value_dtype(matrix.dtype), matrix
    if isinstance(matrix, np.ndarray):
        converted = matrix.astype(dtype, copy=False)
    else:
        converted = csr_array(matrix, dtype=dtype)
    _check_finite(converted, kind, where, owner)
    return converted


def _check_finite(matrix: Matrix, kind: str, where: str, owner: str) -> None:
    bad = first_not_finite(matrix if isinstance(matrix, np.ndarray) else matrix.data)
    if bad is not None:
        row = bad // matrix.shape[1]
        if not isinstance(matrix, np.ndarray):
            row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
        raise ValueError(f"{owner}: a feature of {kind} {row} of {where} is not finite; remove or impute it.")


def _ends(edges: object, n_nodes: int, where: str, owner: str) -> IntArray:
    """Return the edges of a graph; raise unless each joins two nodes that no other edge joins."""
    ends = np.asarray(edges)
    if ends.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"{owner}: {where} has edges that are {described(edges)}, expected ints of shape (n_edges, 2): "
            "the two nodes of each."
        )
    ends = ends.astype(np.int64)
    outside = np.flatnonzero((ends < 0).any(axis=1) | (ends >= n_nodes).any(axis=1))
    if len(outside):
        raise ValueError(
            f"{owner}: edge {outside[0]} of {where} is {tuple(ends[outside[0]].tolist())}, but its nodes are "
            f"0, ..., {n_nodes - 1}."
        )
    _check_distinct(ends, n_nodes, where, owner)
    return ends


def _check_distinct(ends: IntArray, n_nodes: int, where: str, owner: str) -> None:
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if len(loops):
        raise ValueError(
            f"{owner}: edge {loops[0]} of {where} joins node {ends[loops[0], 0]} to itself; remove it."
        )
    keys = ends.min(axis=1) * n_nodes + ends.max(axis=1)
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = np.setdiff1d(np.arange(len(keys)), first)[0]
        raise ValueError(
            f"{owner}: edge {again} of {where} joins the nodes {tuple(ends[again].tolist())}, as one before "
            "does; keep one edge between two nodes."
        )


def _check_widths(name: str, matrices: list[Matrix], owner: str) -> None:
    width = matrices[0].shape[1]
    for i, matrix in enumerate(matrices):
        if matrix.shape[1] != width:
            raise ValueError(
                f"{owner}: {name} of graph {i} of X have {matrix.shape[1]} features, but those of graph 0 "
                f"have {width}; give all {name} the same features."
            )


def _taken(matrix: Matrix, kept: NDArray[np.bool_]) -> Matrix:
    return frozen(matrix[kept] if isinstance(matrix, np.ndarray) else csr_array(matrix)[kept])


def _stacked(matrices: list[Matrix]) -> Matrix:
    dense = [matrix for matrix in matrices if isinstance(matrix, np.ndarray)]
    if len(dense) == len(matrices):
        return np.concatenate(dense)
    sparse: CsrMatrix = in_order(csr_array(vstack([csr_array(matrix) for matrix in matrices])))
    return sparse


def _offsets(matrices: list[Matrix]) -> IntArray:
    return np.append(0, np.cumsum([matrix.shape[0] for matrix in matrices])).astype(np.int64)
