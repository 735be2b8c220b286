"""Encode graphs whose nodes or edges may have named features, as tokens of sequences do."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import IntArray, frozen
from maxmargin.encoding.graph_parts import (
    Fields,
    Stacked,
    check_edges,
    checked_ends,
    graph_fields,
    stacked_edges,
    stacked_nodes,
)
from maxmargin.encoding.graphs import WORDS, Graphs
from maxmargin.encoding.kinds import is_empty
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.encoding.tokens import Words

NODES, EDGES = WORDS, Words(WORDS.example, "edge")


class GraphEncoder(NamedTuple):
    """The encoders of the names of features, of nodes and of edges; None where features are numbers.

    Graphs may be empty.
    """

    nodes: SequenceEncoder | None
    edges: SequenceEncoder | None

    def transform(self, X: object, owner: str) -> Graphs:
        """Return graphs encoded with the names that were learnt; others are ignored."""
        return self._encoded(graph_fields(X, owner), owner, learn=False)

    def _encoded(self, fields: list[Fields], owner: str, *, learn: bool) -> Graphs:
        if self.nodes is None:
            nodes = stacked_nodes(fields, owner)
        else:
            nodes = _named([own[0] for own in fields], self.nodes, learn=learn)
        ends = checked_ends(fields, nodes.offsets, owner)
        if self.edges is None:
            edges = stacked_edges(fields, ends, nodes.rows.dtype, owner)
        else:
            edges = _named(_edge_features(fields), self.edges, learn=learn)
            _check_numbers(edges.offsets, ends, owner)
        return Graphs(
            frozen(nodes.rows), nodes.offsets, frozen(edges.rows), edges.offsets, np.concatenate(ends)
        )


def learn_graphs(X: object, min_count: int, owner: str) -> tuple[Graphs, GraphEncoder]:
    """Return the graphs encoded, and the encoders of the names of their features.

    Parameters
    ----------
    X : list of tuples
        ``(node_features, edges)`` or ``(node_features, edges, edge_features)``. Features are a matrix of
        numbers, or a list with a dict or a collection of strings for each node or edge, as `SequenceEncoder`
        takes them for tokens.
    min_count : int
        Drop named features that occur in fewer nodes, or edges.
    owner : str
        The name that errors begin with.
    """
    fields = graph_fields(X, owner)
    nodes, edges = [own[0] for own in fields], _edge_features(fields)
    encoder = GraphEncoder(
        SequenceEncoder(min_count=min_count, owner=owner, words=NODES) if _are_named(nodes) else None,
        SequenceEncoder(min_count=min_count, owner=owner, words=EDGES) if _are_named(edges) else None,
    )
    if encoder.nodes is not None and all(len(own) == 3 and _is_nothing(own[2]) for own in fields):
        raise ValueError(
            f"{owner}: no graph of X has an edge with features; give one that has, or leave them out."
        )
    return encoder._encoded(fields, owner, learn=True), encoder


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


def _check_numbers(offsets: IntArray, ends: list[IntArray], owner: str) -> None:
    """Raise unless each edge of each graph has features."""
    for i, (n_rows, joined) in enumerate(zip(np.diff(offsets).tolist(), ends, strict=True)):
        check_edges(i, n_rows, len(joined), owner)
