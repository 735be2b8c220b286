"""Encode graphs: features of nodes, edges, and features of edges, as arrays over all graphs.

Features of nodes and edges may have names, as those of tokens have.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, vstack
from scipy.sparse.csgraph import connected_components

from maxmargin.encoding.kinds import (
    Words,
    check_widths,
    checked_floats,
    first_not_finite,
    is_empty,
    is_numeric,
)
from maxmargin.encoding.labels import Labels, encode_labels, without_label
from maxmargin.encoding.matrices import checked_csr, in_order
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.runtime.arrays import (
    CsrMatrix,
    FloatArray,
    IntArray,
    SparseMatrix,
    ValueArray,
    freeze,
    is_sparse,
    value_dtype,
)
from maxmargin.runtime.wording import described, shown

_FORMS = "(node_features, edges) or (node_features, edges, edge_features)"
Matrix = ValueArray | CsrMatrix
Fields = Sequence[object]


class Stacked(NamedTuple):
    """The features of all nodes, or of all edges, and where those of each graph begin."""

    rows: Matrix
    offsets: IntArray


def graph_fields(X: object) -> list[Fields]:
    """Return the fields of each graph: the features of its nodes, its edges, and perhaps their features."""
    return [_fields(item, where_is(i)) for i, item in enumerate(_as_list(X))]


def where_is(i: int) -> str:
    """Return the name of a graph in error messages."""
    return f"graph {i} of X"


def stacked_nodes(fields: list[Fields]) -> Stacked:
    """Return the features of all nodes, which are finite numbers; graphs may have no nodes."""
    nodes = [_finite(_node_matrix(own[0], where_is(i)), "node", where_is(i)) for i, own in enumerate(fields)]
    return _joined("node", nodes)


def nodes_as_given(graphs: list[object]) -> Stacked:
    """Return the features of all nodes, not checked to be finite."""
    nodes = [_node_matrix(_fields(item, where_is(i))[0], where_is(i)) for i, item in enumerate(graphs)]
    stacked = _joined("node", nodes)
    check_not_empty(stacked.offsets)
    return stacked


def check_not_empty(offsets: IntArray) -> None:
    """Raise unless each graph has nodes."""
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise ValueError(
            f"{where_is(int(empty[0]))} has no nodes, expected at least one node; remove it from X "
            "(and from y)."
        )


def checked_ends(fields: list[Fields], offsets: IntArray) -> list[IntArray]:
    """Return the two nodes of each edge of each graph."""
    lengths = enumerate(b - a for a, b in pairwise(offsets.tolist()))
    return [_ends(own[1], n, where_is(i)) for (i, n), own in zip(lengths, fields, strict=True)]


def stacked_edges(fields: list[Fields], ends: list[IntArray], dtype: np.dtype[np.generic]) -> Stacked:
    """Return the features of all edges, which are finite numbers, or a column of ones of this type."""
    edges: list[Matrix] = []
    for i, (own, joined) in enumerate(zip(fields, ends, strict=True)):
        if len(own) == 2:
            edges.append(np.ones((len(joined), 1), dtype=dtype))
        else:
            matrix = _matrix(own[2], "edge", where_is(i))
            edges.append(_finite(matrix, "edge", where_is(i)))
        check_edges(i, edges[-1].shape[0], len(joined))
    return _joined("edge", edges)


def check_edges(i: int, n_rows: int, n_edges: int) -> None:
    """Raise unless each edge of a graph has features."""
    if n_rows != n_edges:
        raise ValueError(
            f"{where_is(i)} has {n_edges} edges, but features of {n_rows}; give one row of edge "
            "features per edge."
        )


def _as_list(X: object) -> list[object]:
    alone = isinstance(X, tuple) and len(X) in (2, 3) and getattr(X[0], "ndim", 0) == 2
    if not isinstance(X, Iterable) or isinstance(X, str | dict) or hasattr(X, "ndim") or alone:
        advice = "; if it is one graph pass [X]" if alone else ""
        raise TypeError(f"X must be a list of tuples {_FORMS}, got {described(X)}{advice}.")
    graphs = list(X)
    if not graphs:
        raise ValueError(f"X has no graph, expected at least one; got {described(X)}.")
    return graphs


def _fields(item: object, where: str) -> Sequence[object]:
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise TypeError(f"{where} is {described(item)}, expected a tuple {_FORMS}.")
    return item


def _node_matrix(values: object, where: str) -> Matrix:
    """Return the features of the nodes of a graph as they are given; raise if there is no column."""
    nodes = _matrix(values, "node", where)
    if nodes.shape[1] == 0:
        raise ValueError(
            f"{where} has node features of shape {nodes.shape}, expected at least one feature; "
            "remove it from X (and from y)."
        )
    return nodes


def _matrix(values: object, kind: str, where: str) -> Matrix:
    """Return the features of the nodes or edges of a graph; raise unless they are numbers."""
    try:
        matrix: SparseMatrix | NDArray[Any] = values if is_sparse(values) else np.asarray(values)
    except ValueError:  # lists of unequal lengths
        matrix = np.empty(0, dtype=object)
    if matrix.ndim != 2 or not is_numeric(matrix.dtype):
        raise ValueError(
            f"{where} has {kind} features that are {described(values)}, expected numbers of shape "
            f"(n_{kind}s, n_features)."
        )
    if isinstance(matrix, np.ndarray):
        return matrix
    return checked_csr(matrix, f"{where}: its {kind} features")


def _finite(matrix: Matrix, kind: str, where: str) -> Matrix:
    """Return the features in a dtype that kernels take; raise unless they are finite."""
    dtype, converted = value_dtype(matrix.dtype), matrix
    if isinstance(matrix, np.ndarray):
        converted = matrix.astype(dtype, copy=False)
    else:
        converted = csr_array(matrix, dtype=dtype)
    _check_finite(converted, kind, where)
    return converted


def _check_finite(matrix: Matrix, kind: str, where: str) -> None:
    bad = first_not_finite(matrix if isinstance(matrix, np.ndarray) else matrix.data)
    if bad is not None:
        row = bad // matrix.shape[1]
        if not isinstance(matrix, np.ndarray):
            row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
        raise ValueError(f"a feature of {kind} {row} of {where} is not finite; remove or impute it.")


def _ends(edges: object, n_nodes: int, where: str) -> IntArray:
    """Return the edges of a graph; raise unless each joins two nodes that no other edge joins."""
    ends = np.asarray(edges)
    if ends.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(
            f"{where} has edges that are {described(edges)}, expected ints of shape (n_edges, 2): "
            "the two nodes of each."
        )
    ends = ends.astype(np.int64)
    outside = np.flatnonzero((ends < 0).any(axis=1) | (ends >= n_nodes).any(axis=1))
    if len(outside):
        raise ValueError(
            f"edge {outside[0]} of {where} is {tuple(ends[outside[0]].tolist())}, but its nodes are "
            f"0, ..., {n_nodes - 1}."
        )
    _check_distinct(ends, n_nodes, where)
    return ends


def _check_distinct(ends: IntArray, n_nodes: int, where: str) -> None:
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if len(loops):
        raise ValueError(f"edge {loops[0]} of {where} joins node {ends[loops[0], 0]} to itself; remove it.")
    keys = ends.min(axis=1) * n_nodes + ends.max(axis=1)
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        again = np.setdiff1d(np.arange(len(keys)), first)[0]
        raise ValueError(
            f"edge {again} of {where} joins the nodes {tuple(ends[again].tolist())}, as one before "
            "does; keep one edge between two nodes."
        )


def _joined(part: str, matrices: list[Matrix]) -> Stacked:
    """Return the features of all graphs; raise if their numbers of features differ."""
    check_widths({i: own.shape[1] for i, own in enumerate(matrices)}, Words("graph", part))
    return Stacked(_stacked(matrices), _offsets(matrices))


def _stacked(matrices: list[Matrix]) -> Matrix:
    dense = [matrix for matrix in matrices if isinstance(matrix, np.ndarray)]
    if len(dense) == len(matrices):
        return np.concatenate(dense)
    sparse: CsrMatrix = in_order(csr_array(vstack([csr_array(matrix) for matrix in matrices])))
    return sparse


def _offsets(matrices: list[Matrix]) -> IntArray:
    return np.append(0, np.cumsum([matrix.shape[0] for matrix in matrices])).astype(np.int64)


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


def encode_graphs(X: object) -> Graphs:
    """Return the graphs of a list of tuples ``(node_features, edges[, edge_features])`` of numbers."""
    fields = graph_fields(X)
    nodes = stacked_nodes(fields)
    check_not_empty(nodes.offsets)
    ends = checked_ends(fields, nodes.offsets)
    edges = stacked_edges(fields, ends, nodes.rows.dtype)
    return Graphs(freeze(nodes.rows), nodes.offsets, freeze(edges.rows), edges.offsets, np.concatenate(ends))


def has_cycles(graphs: Graphs) -> bool:
    """Return whether any graph has a cycle: more edges than a forest with as many components."""
    n_nodes, counts = int(graphs.offsets[-1]), np.diff(graphs.edge_offsets)
    ends = graphs.ends + np.repeat(graphs.offsets[:-1], counts)[:, None]
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_nodes, n_nodes))
    return len(ends) > n_nodes - int(connected_components(joined, directed=False)[0])


def encode_node_labels(
    y: object, graphs: Graphs, *, classes: ArrayLike | None = None
) -> tuple[IntArray, Labels]:
    """Number the labels of all nodes; the labels of a graph may be an array of any shape."""
    return number_node_labels(y, graphs.offsets, classes=classes)


def encode_with_void(
    y: object, graphs: Graphs, void: str | int | None, *, classes: ArrayLike | None = None
) -> tuple[IntArray, Labels]:
    """Number the labels of all nodes but those that are void, whose number is -1."""
    if void is None:
        return encode_node_labels(y, graphs, classes=classes)
    known = None if classes is None else np.unique(np.append(np.asarray(classes), void))
    codes, found = encode_node_labels(y, graphs, classes=known)
    kind = "str" if found.dtype.kind == "U" else "int"
    if isinstance(void, str) != (kind == "str"):
        raise TypeError(f"void must be of type {kind}, as the labels of y are, got {shown(void)}.")
    codes, found = without_label(codes, found, void)
    if not len(found) or (codes < 0).all():
        raise ValueError(f"y has no label but {void!r}, which is void; give other labels.")
    return codes, found


def number_node_labels(
    y: object, offsets: IntArray, *, classes: ArrayLike | None = None
) -> tuple[IntArray, Labels]:
    """Number the labels of all nodes, given where the nodes of each graph begin."""
    flat = [_raveled(labels) for labels in y] if isinstance(y, list | tuple) else y
    return encode_labels(flat, offsets, classes=classes, words=WORDS)


def _raveled(labels: object) -> object:
    return labels.ravel() if isinstance(labels, np.ndarray) and labels.ndim > 1 else labels


def encode_node_weights(weights: object, graphs: Graphs) -> FloatArray:
    """Return the weights of all nodes; raise unless they are valid."""
    given = list(weights) if isinstance(weights, Iterable) else []
    lengths = np.diff(graphs.offsets).tolist()
    if len(given) != len(lengths):
        raise ValueError(
            f"node_weights must be a list of {len(lengths)} arrays, one per graph, got {described(weights)}."
        )
    found = [checked_floats(item, f"node_weights of graph {i}").ravel() for i, item in enumerate(given)]
    for i, (array, length) in enumerate(zip(found, lengths, strict=True)):
        is_valid = (array >= 0.0).all() and 0.0 < array.sum() < np.inf
        if len(array) != length or (length and not is_valid):
            raise ValueError(
                f"node_weights of graph {i} must be {length} finite numbers >= 0 with a positive "
                f"sum, got {len(array)} of sum {array.sum():.3g}."
            )
    return np.concatenate(found)


def labelled_nodes(
    graphs: Graphs, labels: IntArray, counts: FloatArray
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which nodes to train on, and which graphs have any; void nodes have the label -1."""
    kept = labels >= 0
    # A graph whose other nodes all have weight zero has no loss, nor a number of nodes to divide it by.
    counted = np.add.reduceat(np.where(kept, counts, 0.0), graphs.offsets[:-1]) > 0.0
    if not counted.any():
        raise ValueError("node_weights are zero at all nodes that are not void; weight some of them.")
    return kept & np.repeat(counted, np.diff(graphs.offsets)), counted


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
    return freeze(matrix[kept] if isinstance(matrix, np.ndarray) else csr_array(matrix)[kept])


NODES, EDGES = WORDS, Words(WORDS.example, "edge")


class GraphEncoder(NamedTuple):
    """The encoders of the names of features, of nodes and of edges; None where features are numbers.

    Graphs may be empty.
    """

    nodes: SequenceEncoder | None
    edges: SequenceEncoder | None

    def transform(self, X: object) -> Graphs:
        """Return graphs encoded with the names that were learnt; others are ignored."""
        return self._encoded(graph_fields(X), learn=False)

    def _encoded(self, fields: list[Fields], *, learn: bool) -> Graphs:
        if self.nodes is None:
            nodes = stacked_nodes(fields)
        else:
            nodes = _named([own[0] for own in fields], self.nodes, learn=learn)
        ends = checked_ends(fields, nodes.offsets)
        if self.edges is None:
            edges = stacked_edges(fields, ends, nodes.rows.dtype)
        else:
            edges = _named(_edge_features(fields), self.edges, learn=learn)
            _check_numbers(edges.offsets, ends)
        return Graphs(
            freeze(nodes.rows), nodes.offsets, freeze(edges.rows), edges.offsets, np.concatenate(ends)
        )


def learn_graphs(X: object, min_count: int) -> tuple[Graphs, GraphEncoder]:
    """Return the graphs encoded, and the encoders of the names of their features.

    Parameters
    ----------
    X : list of tuples
        ``(node_features, edges)`` or ``(node_features, edges, edge_features)``. Features are a matrix of
        numbers, or a list with a dict or a collection of strings for each node or edge, as `SequenceEncoder`
        takes them for tokens.
    min_count : int
        Drop named features that occur in fewer nodes, or edges.
    """
    fields = graph_fields(X)
    nodes, edges = [own[0] for own in fields], _edge_features(fields)
    encoder = GraphEncoder(
        SequenceEncoder(min_count=min_count, words=NODES) if _are_named(nodes) else None,
        SequenceEncoder(min_count=min_count, words=EDGES) if _are_named(edges) else None,
    )
    if encoder.nodes is not None and all(len(own) == 3 and _is_nothing(own[2]) for own in fields):
        raise ValueError("no graph of X has an edge with features; give one that has, or leave them out.")
    return encoder._encoded(fields, learn=True), encoder


def _is_nothing(features: object) -> bool:
    return isinstance(features, list | tuple) and not features


def _edge_features(fields: list[Fields]) -> list[object]:
    """Return the features of the edges of each graph, which may have none."""
    return [own[2] if len(own) == 3 else [] for own in fields]


def _are_named(features: list[object]) -> bool:
    """Return whether features have names, by the first node, or edge, that has any."""
    rows = (row for own in features if isinstance(own, list | tuple) for row in own)
    first = next((row for row in rows if not is_empty(row)), None)
    if isinstance(first, np.ndarray):
        first = first.tolist()
    is_list = isinstance(first, list | tuple) and isinstance(first[0], str | bytes)
    return is_list or isinstance(first, Mapping | set | frozenset)


def _named(features: list[object], encoder: SequenceEncoder, *, learn: bool) -> Stacked:
    """Return the features of all nodes, or edges, by the numbers of their names."""
    return Stacked(*(encoder.fit_transform(features) if learn else encoder.transform(features)))


def _check_numbers(offsets: IntArray, ends: list[IntArray]) -> None:
    """Raise unless each edge of each graph has features."""
    for i, (n_rows, joined) in enumerate(zip(np.diff(offsets).tolist(), ends, strict=True)):
        check_edges(i, n_rows, len(joined))
