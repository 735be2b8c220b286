"""What encoded examples must be before kernels, which check no index, may read them.

Each function returns a copy of its own, in the form that kernels are compiled for, or raises.
"""

from numbers import Integral
from typing import Any

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, owned
from maxmargin.encoding.graphs import Graphs
from maxmargin.encoding.links import Links
from maxmargin.wording import described


def checked_offsets(
    offsets: Any, n_rows: int | None, owner: str, *, name: str = "offsets", least: int = 1
) -> IntArray:
    """Return where each example begins and the last ends, if each has at least so many rows of all."""
    array = _integers(offsets, owner, name)
    if len(array) < 2 or array[0] != 0 or n_rows not in (None, array[-1]):
        ends = "none" if len(array) == 0 else f"{len(array)} from {array[0]} to {array[-1]}"
        stop = "the number of rows" if n_rows is None else f"{n_rows}, the number of rows"
        raise ValueError(f"{owner}: {name} must be two or more ints from 0 to {stop}, got {ends}.")
    short = array[1:] < array[:-1] + least  # without differences, which may overflow
    if short.any():
        i = int(short.argmax())
        raise ValueError(
            f"{owner}: {name} must rise by at least {least}, got {array[i]} and {array[i + 1]} for "
            f"example {i}; leave out examples that are empty."
        )
    return array


def checked_numbers(
    values: Any, length: int, stop: Any, owner: str, *, name: str = "labels", begin: int = 0
) -> IntArray:
    """Return so many ints, each at least ``begin`` and below ``stop``, one number or one for each."""
    array = _integers(values, owner, name)
    if len(array) != length:
        raise ValueError(f"{owner}: {name} must be {length} ints, got {len(array)}; give one for each.")
    outside = (array < begin) | (array >= stop)
    if outside.any():
        at = int(outside.argmax())
        most = int(np.broadcast_to(stop, length)[at]) - 1
        raise ValueError(f"{owner}: {name} must be from {begin} to {most}, got {array[at]} at position {at}.")
    return array


def checked_heads(heads: Any, offsets: IntArray, owner: str) -> IntArray:
    """Return the head of each word, if it is the root or another word of the sentence."""
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


def checked_count(value: Any, owner: str, name: str) -> int:
    """Return an int that is at least one."""
    if not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{owner}: {name} must be an int >= 1, got {described(value)}.")
    return int(value)


def checked_flags(values: Any, length: int, owner: str, name: str) -> Any:
    """Return so many bools."""
    array = np.asarray(values)
    if array.shape != (length,) or array.dtype != np.bool_:
        raise ValueError(
            f"{owner}: {name} must be {length} bools, got {described(values)} of dtype {array.dtype}."
        )
    return array.copy()


def checked_forbidden(forbidden: Any, n_labels: int, owner: str) -> Any:
    """Return which labels may not follow which; the last row is for the start, the last column the end."""
    array, shape = np.asarray(forbidden), (n_labels + 1, n_labels + 1)
    if array.shape != shape or array.dtype != np.bool_:
        raise ValueError(
            f"{owner}: forbidden must be bools of shape {shape}, got {described(forbidden)} of dtype "
            f"{array.dtype}; make it by encode_forbidden."
        )
    return array


def checked_graphs(graphs: Graphs, n_nodes: int, n_edges: int) -> Graphs:
    """Return the graphs with copies of all but their features, if each edge joins two nodes of its graph."""
    offsets = checked_offsets(graphs.offsets, n_nodes, "Graph")
    edge_offsets = checked_offsets(graphs.edge_offsets, n_edges, "Graph", name="edge_offsets", least=0)
    if len(edge_offsets) != len(offsets) or np.shape(graphs.ends) != (n_edges, 2):
        raise ValueError(
            f"Graph: edge_offsets and ends must have shapes ({len(offsets)},) and ({n_edges}, 2), got "
            f"({len(edge_offsets)},) and {np.shape(graphs.ends)}."
        )
    most = np.repeat(np.repeat(np.diff(offsets), np.diff(edge_offsets)), 2)
    ends = checked_numbers(np.ravel(graphs.ends), 2 * n_edges, most, "Graph", name="ends of edges")
    ends = ends.reshape(n_edges, 2)
    loops = ends[:, 0] == ends[:, 1]
    if loops.any():
        raise ValueError(
            f"Graph: edge {int(loops.argmax())} must join two nodes, got {ends[loops.argmax(), 0]} twice."
        )
    return graphs._replace(offsets=offsets, edge_offsets=edge_offsets, ends=ends)


def checked_importance(weights: Any, n_nodes: int) -> FloatArray:
    array = np.array(weights, dtype=np.float64)
    if array.shape != (n_nodes,) or not ((array >= 0.0) & (array < np.inf)).all():
        raise ValueError(
            f"Graph: weights must be {n_nodes} finite numbers >= 0, one per node, got {described(weights)}."
        )
    return array


def checked_links(links: Links) -> Links:
    """Return the links in arrays of our own, if each pair has as many as its words make."""
    n_features = checked_count(links.n_features, "Matching", "n_features")
    features = np.asarray(links.features)
    if features.ndim != 1 or len(features) % n_features:
        raise ValueError(
            f"Matching: features must be a vector of {n_features} numbers per link, got "
            f"{described(features)}."
        )
    offsets = checked_offsets(links.offsets, len(features) // n_features, "Matching")
    n, stop = len(offsets) - 1, int(offsets[-1]) + 1
    sources, targets = (
        checked_numbers(side, n, stop, "Matching", name=name, begin=1)
        for side, name in ((links.sources, "sources"), (links.targets, "targets"))
    )
    wrong = np.diff(offsets) % sources + abs(np.diff(offsets) // sources - targets) > 0
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"Matching: pair {i} must have a link for each of {sources[i]} sources and {targets[i]} targets, "
            f"got {offsets[i + 1] - offsets[i]}."
        )
    return Links(owned(features, np.float64), offsets, sources, targets, n_features)


def _integers(values: Any, owner: str, name: str) -> IntArray:
    """Return a copy of a vector of ints."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{owner}: {name} must be a vector of ints, got {described(values)} of dtype {array.dtype}."
        )
    return np.array(array, dtype=np.int64)
