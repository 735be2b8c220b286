"""Stack the tokens of sequences or the nodes of graphs as they are given, and put new rows in their place."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import CsrMatrix, is_sparse
from maxmargin.encoding.graph_parts import nodes_as_given
from maxmargin.encoding.graphs import number_node_labels
from maxmargin.encoding.kinds import find_kind, some_sequences
from maxmargin.encoding.labels import Labels, encode_labels
from maxmargin.encoding.segments import list_segments, tags_of_segments
from maxmargin.encoding.sequences import ARRAYS, SequenceEncoder
from maxmargin.encoding.stacking import csr_rows, dense_rows
from maxmargin.encoding.tokens import Offsets

Rows = NDArray[Any] | CsrMatrix
_INT32 = np.iinfo(np.int32).max


class Stack(NamedTuple):
    """The tokens of all sequences, or the nodes of all graphs, one after another.

    Attributes
    ----------
    rows : ndarray or csr_array
        New arrays, in the dtype of the features given. They may hold NaN and infinity.
    offsets : ndarray of int64 (n + 1,)
        The rows of sequence or graph i are ``rows[offsets[i]:offsets[i + 1]]``.
    graphs : list of tuples or None
        The graphs; None for sequences.
    lengths : int or None
        The length of all sequences if they are given as a 3-D array, else None.
    """

    rows: Rows
    offsets: Offsets
    graphs: list[Sequence[object]] | None = None
    lengths: int | None = None


def stack_parts(X: object, owner: str) -> Stack | list[object]:
    """Return the tokens or nodes of X stacked, or a list of its sequences if their features are named."""
    sequences = some_sequences(X, owner)
    if _is_graph(sequences[0]):
        rows, offsets = nodes_as_given(sequences, owner=owner)
        return Stack(rows, offsets, sequences)  # type: ignore[arg-type]  # all are tuples or lists by now
    kind = find_kind(sequences, owner)
    if kind not in ARRAYS:
        return sequences
    if kind == "sparse":
        rows, offsets = csr_rows(sequences, owner)
        return Stack(_narrow(rows), offsets)
    lengths = X.shape[1] if isinstance(X, np.ndarray) and X.ndim == 3 else None
    return Stack(*dense_rows(sequences, owner), None, lengths)


def stack_named(sequences: list[object], encoder: SequenceEncoder, *, learn: bool) -> Stack:
    """Return the tokens of sequences whose features are named, encoded; the encoder may learn the names."""
    tokens = encoder.fit_transform(sequences) if learn else encoder.transform(sequences)
    return Stack(_narrow(csr_array(tokens.rows, copy=True)), tokens.offsets)  # the encoder's are read-only


def _narrow(rows: csr_array) -> csr_array:
    """Return the matrix with indices of 32 bits if they suffice: some transformers refuse longer ones."""
    if max(rows.nnz, *rows.shape) <= _INT32:
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def _is_graph(item: object) -> bool:
    """Return whether an item of X is a graph: its first field is a matrix, while a token is not."""
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        return False
    first = item[0]
    if is_sparse(first) or hasattr(first, "ndim"):
        return bool(first.ndim == 2)
    return isinstance(first, tuple | list) and bool(first) and isinstance(first[0], tuple | list | np.ndarray)


def put_back(stack: Stack, rows: Rows) -> object:
    """Return the sequences or graphs with views of new rows instead of the old, in the form given."""
    if stack.lengths is not None and isinstance(rows, np.ndarray):
        return rows.reshape(-1, stack.lengths, rows.shape[1])
    edges = stack.offsets.tolist()
    if isinstance(rows, np.ndarray):
        pieces: list[Rows] = [rows[a:b] for a, b in pairwise(edges)]
    else:
        pieces = [_some_rows(rows, a, b) for a, b in pairwise(edges)]
    if stack.graphs is None:
        return pieces
    return [(piece, *graph[1:]) for piece, graph in zip(pieces, stack.graphs, strict=True)]


def _some_rows(rows: CsrMatrix, a: int, b: int) -> CsrMatrix:
    """Return the rows a, ..., b - 1 of a sparse matrix, with views of its values and indices."""
    first, stop = rows.indptr[a], rows.indptr[b]
    some: CsrMatrix = csr_array((b - a, rows.shape[1]), dtype=rows.dtype)
    # Set one by one: scipy's constructor copies views of long arrays.
    some.data, some.indices = rows.data[first:stop], rows.indices[first:stop]
    some.indptr = rows.indptr[a : b + 1] - first
    return some


def flat_labels(y: object, stack: Stack, owner: str) -> Labels:
    """Return the labels of all tokens or nodes; tokens of segments have the tags "B-x", "I-x" and "O"."""
    if stack.graphs is not None:
        codes, classes = number_node_labels(y, stack.offsets, owner=owner)
        return classes[codes]
    if isinstance(y, Iterable) and not isinstance(y, str | np.ndarray):
        y = list(y)
        if _are_segments(y):
            listed = list_segments(y, stack.offsets, owner=owner)
            lengths = np.diff(stack.offsets).tolist()
            y = [tags_of_segments(some, m) for some, m in zip(listed, lengths, strict=True)]
    codes, classes = encode_labels(y, stack.offsets, owner=owner)
    return classes[codes]


def _are_segments(y: list[object]) -> bool:
    """Return whether these are lists of segments, some of which may be empty, rather than of labels."""
    lists = [items for items in y if isinstance(items, tuple | list)]
    first = next((item for items in lists for item in items), None)
    return isinstance(first, tuple | list)
