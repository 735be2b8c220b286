"""Small graphs: how arcs are numbered, and scores of labellings written out."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from support.naive import Array


class Arcs(NamedTuple):
    """The arcs out of each node, and where each leads to."""

    start: Array
    arcs: Array
    heads: Array


def arcs_of(ends: Array, n_nodes: int) -> Arcs:
    """Number the arcs: edge e has 2e, from its first end to its second, and 2e + 1."""
    tails, heads = ends.ravel(), ends[:, ::-1].ravel()
    out = [np.flatnonzero(tails == v) for v in range(n_nodes)]
    start = np.append(0, np.cumsum([len(arcs) for arcs in out]))
    return Arcs(start, np.concatenate(out).astype(np.int64), heads.astype(np.int64))


def random_graph(rng: np.random.Generator, n_nodes: int, density: float) -> Array:
    """Return random edges, in both directions."""
    pairs = [(a, b) for a in range(n_nodes) for b in range(n_nodes) if a < b and rng.random() < density]
    turned = [pair[:: rng.choice([-1, 1])] for pair in pairs]
    return np.array(turned, dtype=np.int64).reshape(-1, 2)


def table_score(unary: Array, tables: Array, ends: Array, y: Any) -> float:
    """Return the score of a labelling: of its labels, and of the pair of labels of each edge."""
    nodes = sum(unary[v, label] for v, label in enumerate(y))
    return float(nodes + sum(tables[e, y[a], y[b]] for e, (a, b) in enumerate(ends)))


def best_score(unary: Array, tables: Array, ends: Array, n_labels: int) -> float:
    """Return the largest score among all labellings."""
    labellings = product(range(n_labels), repeat=len(unary))
    return max(table_score(unary, tables, ends, y) for y in labellings)


def cut_score(gains: Array, strengths: Array, ends: Array, y: Any) -> float:
    """Return what the ones gain, less the strengths of the edges whose ends differ."""
    y = np.asarray(y)
    return float(gains @ y - strengths @ np.abs(y[ends[:, 0]] - y[ends[:, 1]]))
