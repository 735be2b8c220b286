"""Read the parts of graphs: features of nodes, the ends of edges, and features of edges, as arrays."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from maxmargin.arrays import CsrMatrix, IntArray, SparseMatrix, ValueArray, is_sparse, value_dtype
from maxmargin.encoding.kinds import is_numeric
from maxmargin.encoding.matrices import checked_csr, in_order
from maxmargin.encoding.tokens import Words, check_widths, first_not_finite
from maxmargin.wording import described

_FORMS = "(node_features, edges) or (node_features, edges, edge_features)"
Matrix = ValueArray | CsrMatrix
Fields = Sequence[object]


class Stacked(NamedTuple):
    """The features of all nodes, or of all edges, and where those of each graph begin."""

    rows: Matrix
    offsets: IntArray


def graph_fields(X: object, owner: str) -> list[Fields]:
    """Return the fields of each graph: the features of its nodes, its edges, and perhaps their features."""
    return [_fields(item, where_is(i), owner) for i, item in enumerate(_as_list(X, owner))]


def where_is(i: int) -> str:
    """Return the name of a graph in error messages."""
    return f"graph {i} of X"


def stacked_nodes(fields: list[Fields], owner: str) -> Stacked:
    """Return the features of all nodes, which are finite numbers; graphs may have no nodes."""
    nodes = [
        _finite(_node_matrix(own[0], where_is(i), owner), "node", where_is(i), owner)
        for i, own in enumerate(fields)
    ]
    return _joined("node", nodes, owner)


def nodes_as_given(graphs: list[object], *, owner: str) -> Stacked:
    """Return the features of all nodes, not checked to be finite."""
    nodes = [
        _node_matrix(_fields(item, where_is(i), owner)[0], where_is(i), owner)
        for i, item in enumerate(graphs)
    ]
    stacked = _joined("node", nodes, owner)
    check_not_empty(stacked.offsets, owner)
    return stacked


def check_not_empty(offsets: IntArray, owner: str) -> None:
    """Raise unless each graph has nodes."""
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise ValueError(
            f"{owner}: {where_is(int(empty[0]))} has no nodes, expected at least one node; remove it from X "
            "(and from y)."
        )


def checked_ends(fields: list[Fields], offsets: IntArray, owner: str) -> list[IntArray]:
    """Return the two nodes of each edge of each graph."""
    lengths = enumerate(b - a for a, b in pairwise(offsets.tolist()))
    return [_ends(own[1], n, where_is(i), owner) for (i, n), own in zip(lengths, fields, strict=True)]


def stacked_edges(
    fields: list[Fields], ends: list[IntArray], dtype: np.dtype[np.generic], owner: str
) -> Stacked:
    """Return the features of all edges, which are finite numbers, or a column of ones of this type."""
    edges: list[Matrix] = []
    for i, (own, joined) in enumerate(zip(fields, ends, strict=True)):
        if len(own) == 2:
            edges.append(np.ones((len(joined), 1), dtype=dtype))
        else:
            matrix = _matrix(own[2], "edge", where_is(i), owner)
            edges.append(_finite(matrix, "edge", where_is(i), owner))
        check_edges(i, edges[-1].shape[0], len(joined), owner)
    return _joined("edge", edges, owner)


def check_edges(i: int, n_rows: int, n_edges: int, owner: str) -> None:
    """Raise unless each edge of a graph has features."""
    if n_rows != n_edges:
        raise ValueError(
            f"{owner}: {where_is(i)} has {n_edges} edges, but features of {n_rows}; give one row of edge "
            "features per edge."
        )


def _as_list(X: object, owner: str) -> list[object]:
    alone = isinstance(X, tuple) and len(X) in (2, 3) and getattr(X[0], "ndim", 0) == 2
    if not isinstance(X, Iterable) or isinstance(X, str | dict) or hasattr(X, "ndim") or alone:
        advice = "; if it is one graph pass [X]" if alone else ""
        raise TypeError(f"{owner}: X must be a list of tuples {_FORMS}, got {described(X)}{advice}.")
    graphs = list(X)
    if not graphs:
        raise ValueError(f"{owner}: X has no graph, expected at least one; got {described(X)}.")
    return graphs


def _fields(item: object, where: str, owner: str) -> Sequence[object]:
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise TypeError(f"{owner}: {where} is {described(item)}, expected a tuple {_FORMS}.")
    return item


def _node_matrix(values: object, where: str, owner: str) -> Matrix:
    """Return the features of the nodes of a graph as they are given; raise if there is no column."""
    nodes = _matrix(values, "node", where, owner)
    if nodes.shape[1] == 0:
        raise ValueError(
            f"{owner}: {where} has node features of shape {nodes.shape}, expected at least one feature; "
            "remove it from X (and from y)."
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
    """Return the features in a dtype that kernels take; raise unless they are finite."""
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


def _joined(part: str, matrices: list[Matrix], owner: str) -> Stacked:
    """Return the features of all graphs; raise if their numbers of features differ."""
    check_widths({i: own.shape[1] for i, own in enumerate(matrices)}, Words("graph", part), owner)
    return Stacked(_stacked(matrices), _offsets(matrices))


def _stacked(matrices: list[Matrix]) -> Matrix:
    dense = [matrix for matrix in matrices if isinstance(matrix, np.ndarray)]
    if len(dense) == len(matrices):
        return np.concatenate(dense)
    sparse: CsrMatrix = in_order(csr_array(vstack([csr_array(matrix) for matrix in matrices])))
    return sparse


def _offsets(matrices: list[Matrix]) -> IntArray:
    return np.append(0, np.cumsum([matrix.shape[0] for matrix in matrices])).astype(np.int64)
