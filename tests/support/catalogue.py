"""Small random problems, each as the package holds it and with all its outputs written out."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

from maxmargin.methods.blocks import Blocks
from maxmargin.problems import Chain, Dependency, Graph, Matching, Multiclass, SecondOrderChain, Segments
from maxmargin.structures.dependency.encode import Arcs
from maxmargin.structures.label_sets.model import LabelGraph, LabelSets
from maxmargin.structures.problem import as_problem, sizes
from maxmargin.structures.segments.encode import EncodedSegments
from support import naive
from support.naive import Array, Enumerated

CHAIN_LOSSES = ("normalized_hamming", "hamming", "matrix")
ROWS = ("dense", "whole", "single", "sparse", "sparse single", "indicator")
SEGMENT_LOSSES = ("normalized_hamming", "hamming", "segments")
INFERENCES = ("tree", "cut", "messages")
ORDERS: dict[int, Any] = {
    1: (Chain, naive.chain_features),
    2: (SecondOrderChain, naive.second_order_features),
}


class Case(NamedTuple):
    """A problem, the same problem written out, and its features: one array per example."""

    problem: Any
    data: Enumerated
    X: list[Array]


def random_cost(rng: np.random.Generator, n_labels: int) -> Array:
    """Return a cost matrix with a zero diagonal."""
    return rng.uniform(0.1, 2.0, (n_labels, n_labels)) * (1.0 - np.eye(n_labels))


def _features(rng: np.random.Generator, shape: tuple[int, int], rows: str) -> tuple[Array, Any]:
    """Return features as an array of float64, and as the package is to get them.

    Whole numbers make ties; among so many few are zero, so that dense rows stay dense.
    """
    if rows == "zero":
        return np.zeros(shape), np.zeros(shape)
    if rows in ("dense", "whole", "single"):
        X = rng.integers(-4, 5, shape) if rows == "whole" else rng.normal(size=shape)
        X = X.astype(np.float32 if rows == "single" else np.float64)
        return X.astype(np.float64), X
    X = (rng.random(shape) < 0.6).astype(float)
    if rows != "indicator":
        X *= rng.normal(size=shape)
    X = X.astype(np.float32 if rows == "sparse single" else np.float64)
    return X.astype(np.float64), scipy.sparse.csr_array(X)


def chain_case(
    seed: int,
    lengths: tuple[int, ...] = (1, 2, 3, 2),
    n_labels: int = 3,
    *,
    n_features: int = 3,
    loss: str = "matrix",
    rows: str = "dense",
    order: int = 1,
) -> Case:
    """Return a random chain problem, of first or second order."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    features, given = _features(rng, (offsets[-1], n_features), rows)
    labels = rng.integers(n_labels, size=offsets[-1])
    cost = random_cost(rng, n_labels) if loss == "matrix" else 1.0 - np.eye(n_labels)
    made, phi = ORDERS[order]
    problem = made.from_encoded(given, offsets, labels, n_labels, loss=cost if loss == "matrix" else loss)
    X, y = np.split(features, offsets[1:-1]), np.split(labels, offsets[1:-1])
    return Case(problem, naive.enumerate_chain(X, y, n_labels, cost, loss != "hamming", phi), X)


def multiclass_case(
    seed: int,
    n: int = 5,
    n_labels: int = 3,
    *,
    n_features: int = 3,
    loss: str = "matrix",
    rows: str = "dense",
) -> Case:
    """Return a random multiclass problem."""
    rng = np.random.default_rng(seed)
    (X, given), y = _features(rng, (n, n_features), rows), rng.integers(n_labels, size=n)
    cost = random_cost(rng, n_labels) if loss == "matrix" else 1.0 - np.eye(n_labels)
    problem = Multiclass.from_encoded(given, y, n_labels, loss=cost if loss == "matrix" else loss)
    return Case(problem, naive.enumerate_multiclass(X, y, n_labels, cost), list(X))


def matching_case(
    seed: int,
    sizes: tuple[tuple[int, int], ...] = ((2, 2), (1, 3), (3, 2)),
    fertility: int = 1,
    *,
    n_features: int = 5,
    whole: bool = False,
) -> Case:
    """Return a random matching problem, some of whose wrong links are possible; whole numbers make ties."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(*size, n_features)) for size in sizes]
    X = [np.round(x) for x in X] if whole else X
    wrong, missed = (1.0, 3.0) if whole else rng.uniform(0.1, 3.0, 2)
    outputs = [naive.all_matchings(m * fertility, n) for m, n in sizes]
    Y = [_first_places(some[rng.integers(len(some))], fertility) for some in outputs]
    links = [[(p // fertility, k) for p, k in enumerate(y) if k >= 0] for y in Y]
    possible = [(rng.random(size) < 0.2).astype(int) for size in sizes]
    problem = Matching.from_links(
        X, links, possible=possible, wrong=wrong, missed=missed, fertility=fertility
    )
    costs = [np.where(mask, 0.0, wrong) for mask in possible]
    return Case(problem, naive.enumerate_matchings(X, Y, costs, missed, fertility), X)


def tree_case(
    seed: int,
    lengths: tuple[int, ...] = (3, 1, 4),
    *,
    single_root: bool = True,
    projective: bool = False,
    n_features: int = 5,
    loss: str = "normalized_hamming",
    rows: str = "dense",
) -> Case:
    """Return a random problem of dependency trees."""
    rng = np.random.default_rng(seed)
    kind = {"single_root": single_root, "projective": projective}
    sizes_of_X = [m * (m + 1) for m in lengths]
    features, given = _features(rng, (sum(sizes_of_X), n_features), rows)
    arcs = Arcs(given, np.append(0, np.cumsum(lengths)))
    X = np.split(features, np.cumsum(sizes_of_X)[:-1])
    X = [x.reshape(m, m + 1, n_features) for x, m in zip(X, lengths, strict=True)]
    outputs = [naive.all_trees(m, **kind) for m in lengths]
    Y = [trees[rng.integers(len(trees))] for trees in outputs]
    problem = Dependency.from_encoded(arcs, np.concatenate(Y), loss=loss, **kind)
    return Case(problem, naive.enumerate_trees(X, Y, loss == "normalized_hamming", **kind), X)


def graph_case(
    seed: int,
    sizes: tuple[int, ...] = (1, 3, 4),
    n_labels: int = 3,
    *,
    inference: str = "tree",
    n_features: int = 2,
    loss: str = "matrix",
    rows: str = "dense",
    density: float = 0.6,
    weighted: bool = True,
) -> Case:
    """Return a random problem of labelling graphs; those for trees have no cycles."""
    rng = np.random.default_rng(seed)
    graphs, given = [], []
    for size in sizes:
        ends = _random_edges(rng, size, 0.0 if inference == "tree" else density)
        nodes, edges = (_features(rng, (m, n_features), rows) for m in (size, len(ends)))
        graphs.append((nodes[0], ends, edges[0]))
        given.append((nodes[1], ends, edges[1]))
    Y = [rng.integers(n_labels, size=size) for size in sizes]
    Y[-1][:n_labels] = np.arange(n_labels)[: sizes[-1]]  # every label occurs
    weights = [rng.uniform(0.2, 2.0, size) if weighted else np.ones(size) for size in sizes]
    cost = random_cost(rng, n_labels) if loss == "matrix" else 1.0 - np.eye(n_labels)
    problem = Graph.from_graphs(
        given, Y, inference=inference, loss=cost if loss == "matrix" else loss, node_weights=weights
    )
    shares = [w if loss == "hamming" else w / w.sum() for w in weights]
    return Case(problem, naive.enumerate_graphs(graphs, Y, cost, shares, inference == "cut"), graphs)


def label_set_case(
    seed: int,
    n: int = 3,
    n_labels: int = 4,
    *,
    inference: str = "tree",
    n_features: int = 2,
    loss: str = "hamming",
    rows: str = "dense",
) -> Case:
    """Return a random problem of sets of labels, with its graphs written out: a row of features per label."""
    rng = np.random.default_rng(seed)
    ends = _random_edges(rng, n_labels, 0.0 if inference == "tree" else 0.6)
    X, given = _features(rng, (n, n_features), rows)
    y = rng.integers(2, size=(n, n_labels))
    labels = LabelGraph(n_labels, ends, 3.0, inference)
    edges = 3.0 * np.eye(max(len(ends), 1))[: len(ends)]
    graphs = [(np.kron(np.eye(n_labels), x), ends, edges) for x in X]
    shares = [np.full(n_labels, 1.0 if loss == "hamming" else 1.0 / n_labels)] * n
    data = naive.enumerate_graphs(graphs, list(y), 1.0 - np.eye(2), shares, False)
    return Case(LabelSets.from_encoded(given, y, labels, loss=loss), data, graphs)


def segment_case(
    seed: int,
    lengths: tuple[int, ...] = (1, 4, 3),
    limits: tuple[int, ...] = (3, 2, 1),
    *,
    n_features: int = 2,
    loss: str = "segments",
    rows: str = "dense",
    outside: bool = True,
) -> Case:
    """Return a random problem of segmentation; ``outside``, the last label is that of tokens outside."""
    rng = np.random.default_rng(seed)
    offsets, n_classes = np.append(0, np.cumsum(lengths)), len(limits) - outside
    features, given = _features(rng, (offsets[-1], n_features), rows)
    outputs = [naive.all_segmentations(length, np.array(limits)) for length in lengths]
    Y = [some[rng.integers(len(some))] for some in outputs]
    found = EncodedSegments(np.concatenate(Y), np.arange(n_classes), len(limits))
    problem = Segments.from_encoded(given, offsets, found, np.array(limits), loss=loss)
    X = np.split(features, offsets[1:-1])
    return Case(problem, naive.enumerate_segments(X, Y, np.array(limits), n_classes, loss), X)


def _random_edges(rng: np.random.Generator, n_nodes: int, density: float) -> Array:
    """Return a random forest, and any other edge with this probability; in any order and direction."""
    order = rng.permutation(n_nodes)
    edges = [(order[rng.integers(k)], order[k]) for k in range(1, n_nodes) if rng.random() < 0.8]
    known = {frozenset(edge) for edge in edges}
    others = [(a, b) for a in range(n_nodes) for b in range(a) if frozenset((a, b)) not in known]
    edges += [edge for edge in others if rng.random() < density]
    turned = [edge[:: rng.choice([-1, 1])] for edge in edges]
    return rng.permutation(np.array(turned, dtype=np.int64).reshape(-1, 2))


def _first_places(y: naive.Output, fertility: int) -> naive.Output:
    """Return the same links, those of a source in order at its first places."""
    rows = [sorted(k for k in y[p : p + fertility] if k >= 0) for p in range(0, len(y), fertility)]
    return tuple(k for row in rows for k in row + [-1] * (fertility - len(row)))


@st.composite
def chain_cases(
    draw: Any, max_length: int = 4, max_labels: int = 4, rows: tuple[str, ...] = ROWS, order: int = 1
) -> Case:
    """Draw chains of every kind: lengths, labels, losses, dense or sparse rows, with and without ties."""
    lengths = draw(st.lists(st.integers(1, max_length), min_size=1, max_size=3))
    return chain_case(
        draw(st.integers(0, 2**32 - 1)),
        tuple(lengths),
        draw(st.integers(2, max_labels)),
        n_features=draw(st.integers(1, 4)),
        loss=draw(st.sampled_from(CHAIN_LOSSES)),
        rows=draw(st.sampled_from(rows)),
        order=order,
    )


@st.composite
def multiclass_cases(draw: Any, rows: tuple[str, ...] = ROWS) -> Case:
    """Draw multiclass problems of every kind."""
    return multiclass_case(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, 6)),
        draw(st.integers(2, 6)),
        n_features=draw(st.integers(1, 4)),
        loss=draw(st.sampled_from(("zero_one", "matrix"))),
        rows=draw(st.sampled_from(rows)),
    )


@st.composite
def matching_cases(draw: Any) -> Case:
    """Draw matchings of every kind: sizes, fertilities, numbers of features, with and without ties."""
    fertility = draw(st.integers(1, 2))
    size = st.tuples(st.integers(1, 4 - fertility), st.integers(1, 3))
    return matching_case(
        draw(st.integers(0, 2**32 - 1)),
        tuple(draw(st.lists(size, min_size=1, max_size=3))),
        fertility,
        n_features=draw(st.integers(1, 9)),
        whole=draw(st.booleans()),
    )


@st.composite
def tree_cases(draw: Any, rows: tuple[str, ...] = ROWS, projective: tuple[bool, ...] = (False, True)) -> Case:
    """Draw dependency trees of every kind: lengths, losses, rows, with and without ties."""
    return tree_case(
        draw(st.integers(0, 2**32 - 1)),
        tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))),
        single_root=draw(st.booleans()),
        projective=draw(st.sampled_from(projective)),
        n_features=draw(st.integers(1, 4)),
        loss=draw(st.sampled_from(("normalized_hamming", "hamming"))),
        rows=draw(st.sampled_from(rows)),
    )


@st.composite
def graph_cases(draw: Any, inference: tuple[str, ...] = INFERENCES, rows: tuple[str, ...] = ROWS) -> Case:
    """Draw graphs of every kind: sizes, labels, losses, dense or sparse rows, with and without ties."""
    kind = draw(st.sampled_from(inference))
    n_labels = 2 if kind in ("cut", "subsets") else draw(st.integers(2, 3))
    sizes = draw(st.lists(st.integers(1, 3 if kind == "cut" else 4), max_size=2))
    return graph_case(
        draw(st.integers(0, 2**32 - 1)),
        (*sizes, draw(st.integers(n_labels, 4))),
        n_labels,
        inference=kind,
        n_features=draw(st.integers(1, 3)),
        loss=draw(st.sampled_from(CHAIN_LOSSES)),
        rows=draw(st.sampled_from(rows)),
    )


@st.composite
def label_set_cases(draw: Any, rows: tuple[str, ...] = ROWS) -> Case:
    """Draw sets of labels of every kind: numbers of labels, structures, losses, dense or sparse rows."""
    return label_set_case(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
        inference=draw(st.sampled_from(("tree", "subsets"))),
        n_features=draw(st.integers(1, 3)),
        loss=draw(st.sampled_from(("hamming", "normalized_hamming"))),
        rows=draw(st.sampled_from(rows)),
    )


@st.composite
def segment_cases(draw: Any, max_length: int = 5, rows: tuple[str, ...] = ROWS) -> Case:
    """Draw segmentations of every kind: lengths, limits, losses, kinds of rows, with and without ties."""
    limits = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    return segment_case(
        draw(st.integers(0, 2**32 - 1)),
        tuple(draw(st.lists(st.integers(1, max_length if len(limits) < 3 else 4), min_size=1, max_size=2))),
        tuple(limits) if limits != [1] else (2,),
        n_features=draw(st.integers(1, 3)),
        loss=draw(st.sampled_from(SEGMENT_LOSSES)),
        rows=draw(st.sampled_from(rows)),
        outside=len(limits) > 1 and limits[-1] == 1,
    )


def flat(problem: Any, w: Array) -> Array:
    """Return weights in the naive layout."""
    return np.concatenate([np.ravel(part) for part in problem.unpack(w)])


def layout(problem: Any, weights: Array) -> Array:
    """Return weights given in the naive layout in the problem's own; what pads it is zero."""
    w = np.zeros(sizes(as_problem(problem)).weights)
    end = 0
    for part in problem.unpack(w):
        part[...] = weights[end : end + part.size].reshape(part.shape)
        end += part.size
    assert end == len(weights)
    return w


def dense_block(blocks: Blocks, i: int, length: int) -> Array:
    """Return sparse vector i of a pool as an array."""
    out = np.zeros(length)
    entries = slice(blocks.extent[i, 0], blocks.extent[i, :2].sum())
    np.add.at(out, blocks.where[entries], blocks.value[entries])
    return out
