"""Checks of encoded examples. Kernels do not check indices, so they are checked here first.

Each function returns arrays in the form that kernels are compiled for, or raises. The arrays are copies,
except where nothing can change the original, such as a mapped file.
"""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.arrays import BoolArray, FloatArray, IntArray, owned
from maxmargin.encoding.chunks import pieces
from maxmargin.encoding.graphs import Graphs
from maxmargin.encoding.kinds import checked_floats
from maxmargin.encoding.links import Links
from maxmargin.wording import described

_MOST = 1 << 48  # for counts, which are multiplied in 64 bits; later checks ensure that all fits into memory


def checked_offsets(
    offsets: ArrayLike, n_rows: int | None, owner: str, *, name: str = "offsets", least: int = 1
) -> IntArray:
    """Return where each example begins and the last one ends; raise if one has fewer than ``least`` rows."""
    array = _integers(offsets, owner, name)
    if len(array) < 2 or array[0] != 0 or n_rows not in (None, array[-1]):
        ends = "none" if len(array) == 0 else f"{len(array)} from {array[0]} to {array[-1]}"
        stop = "the number of rows" if n_rows is None else f"{n_rows}, the number of rows"
        raise ValueError(f"{owner}: {name} must be two or more ints from 0 to {stop}, got {ends}.")
    short = array[1:] < array[:-1] + least  # a difference might overflow
    if short.any():
        i = int(short.argmax())
        raise ValueError(
            f"{owner}: {name} must rise by at least {least}, got {array[i]} and {array[i + 1]} for "
            f"example {i}; leave out empty examples."
        )
    return array


def checked_numbers(
    values: ArrayLike, length: int, stop: int | IntArray, owner: str, *, name: str = "labels", begin: int = 0
) -> IntArray:
    """Return ``length`` ints; raise unless each is at least ``begin`` and below ``stop``."""
    array = _integers(values, owner, name)
    if len(array) != length:
        raise ValueError(f"{owner}: {name} must be {length} ints, got {len(array)}; give one for each.")
    for piece in pieces(length):
        limit = stop[piece] if isinstance(stop, np.ndarray) else stop
        outside = (array[piece] < begin) | (array[piece] >= limit)
        if outside.any():
            at = piece.start + int(outside.argmax())
            most = int(np.broadcast_to(stop, length)[at]) - 1
            raise ValueError(
                f"{owner}: {name} must be from {begin} to {most}, got {array[at]} at position {at}."
            )
    return array


def checked_heads(heads: ArrayLike, offsets: IntArray, owner: str) -> IntArray:
    """Return the head of each word; raise unless it is the root or another word of the sentence."""
    lengths = np.diff(offsets)
    words = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], lengths)
    stop = np.repeat(lengths + 1, lengths)
    found = checked_numbers(heads, int(offsets[-1]), stop, owner, name="heads")
    own = found == words
    if own.any():
        raise ValueError(
            f"{owner}: heads must be other words or 0 for the root, got {found[own.argmax()]} at "
            f"position {own.argmax()}, the word itself."
        )
    return found


def checked_count(value: object, owner: str, name: str) -> int:
    """Return the value as an int; raise unless it is at least one, and small enough for an index."""
    if not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{owner}: {name} must be an int >= 1, got {described(value)}.")
    if int(value) > _MOST:
        raise ValueError(f"{owner}: {name} must be at most {_MOST}, got {described(value)}.")
    return int(value)


def checked_flags(values: ArrayLike, length: int, owner: str, name: str) -> BoolArray:
    """Return ``length`` bools."""
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype != np.bool_:
        raise ValueError(
            f"{owner}: {name} must be {length} bools, got {described(values)} of dtype {array.dtype}."
        )
    return array.copy()


def checked_forbidden(forbidden: ArrayLike, n_labels: int, owner: str) -> BoolArray:
    """Return which labels may not follow which; the last row is the start, the last column the end."""
    array, shape = np.asarray(forbidden), (n_labels + 1, n_labels + 1)
    if array.shape != shape or array.dtype != np.bool_:
        raise ValueError(
            f"{owner}: forbidden must be bools of shape {shape}, got {described(forbidden)} of dtype "
            f"{array.dtype}; make it with encode_forbidden."
        )
    return array


def checked_graphs(graphs: Graphs, n_nodes: int, n_edges: int, owner: str) -> Graphs:
    """Return the graphs with copies of all but their features, if each edge joins two nodes of its graph."""
    offsets = checked_offsets(graphs.offsets, n_nodes, owner)
    edge_offsets = checked_offsets(graphs.edge_offsets, n_edges, owner, name="edge_offsets", least=0)
    if len(edge_offsets) != len(offsets) or np.shape(graphs.ends) != (n_edges, 2):
        raise ValueError(
            f"{owner}: edge_offsets and ends must have shapes ({len(offsets)},) and ({n_edges}, 2), got "
            f"({len(edge_offsets)},) and {np.shape(graphs.ends)}."
        )
    most = np.repeat(np.repeat(np.diff(offsets), np.diff(edge_offsets)), 2)
    ends = checked_numbers(np.ravel(graphs.ends), 2 * n_edges, most, owner, name="ends of edges")
    ends = ends.reshape(n_edges, 2)
    loops = ends[:, 0] == ends[:, 1]
    if loops.any():
        raise ValueError(
            f"{owner}: edge {int(loops.argmax())} must join two nodes, got {ends[loops.argmax(), 0]} twice."
        )
    return graphs._replace(offsets=offsets, edge_offsets=edge_offsets, ends=ends)


def checked_importance(weights: object, n_nodes: int, owner: str) -> FloatArray:
    """Return the weight of each node in the loss."""
    array = checked_floats(weights, owner, "weights").copy()
    if array.shape != (n_nodes,) or not ((array >= 0.0) & (array < np.inf)).all():
        raise ValueError(
            f"{owner}: weights must be {n_nodes} finite numbers >= 0, one per node, got {described(weights)}."
        )
    return array


def checked_links(links: Links, owner: str) -> Links:
    """Return the links in copied arrays; raise unless each pair has one link per pair of words."""
    n_features = checked_count(links.n_features, owner, "n_features")
    features = np.asarray(links.features)
    if features.ndim != 1 or len(features) % n_features:
        raise ValueError(
            f"{owner}: features must be a vector of {n_features} numbers per link, got {described(features)}."
        )
    offsets = checked_offsets(links.offsets, len(features) // n_features, owner)
    n, stop = len(offsets) - 1, int(offsets[-1]) + 1
    sources, targets = (
        checked_numbers(side, n, stop, owner, name=name, begin=1)
        for side, name in ((links.sources, "sources"), (links.targets, "targets"))
    )
    wrong = np.diff(offsets) % sources + abs(np.diff(offsets) // sources - targets) > 0
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"{owner}: pair {i} must have a link for each of {sources[i]} sources and {targets[i]} targets, "
            f"got {offsets[i + 1] - offsets[i]}."
        )
    return Links(owned(features, np.float64), offsets, sources, targets, n_features)


def _integers(values: ArrayLike, owner: str, name: str) -> IntArray:
    """Return a vector of ints."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{owner}: {name} must be a vector of ints, got {described(values)} of dtype {array.dtype}."
        )
    return owned(array, np.int64)
