"""Labellings of graphs against lists of all, scipy's maximum flow and a linear program with whole numbers."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from maxmargin.structures.graphs.cuts import CutWork, cut, cut_work
from maxmargin.structures.graphs.inference import ROOT, best_on_tree, best_subset, span, subset_work
from maxmargin.structures.graphs.loopy import best_by_messages, best_by_search, message_work, search_work
from maxmargin.structures.sequences.inference import viterbi
from support.graphs import arcs_of, best_score, cut_score, random_graph, table_score
from support.naive import Array

WIDTH = 4
seeds = st.integers(0, 2**32 - 1)


def random_scores(rng: np.random.Generator, n_nodes: int, n_edges: int, whole: bool) -> tuple[Array, Array]:
    """Return scores of labels and tables of edges, padded; whole numbers make ties."""
    unary, tables = rng.normal(size=(n_nodes, WIDTH)), rng.normal(size=(n_edges, 3, WIDTH))
    if whole:
        unary, tables = np.round(unary), np.round(tables)
    unary[:, 3:], tables[:, :, 3:] = 99.0, 99.0  # padding is never looked at
    return unary, tables


def spanned(ends: Array, n_nodes: int) -> tuple[bool, Array, Array]:
    order, parent = np.zeros((2, n_nodes), dtype=np.int64)
    return span(*arcs_of(ends, n_nodes), order, parent), order, parent


def on_tree(unary: Array, tables: Array, ends: Array) -> Array:
    n_nodes, y = len(unary), np.full(len(unary), -1)
    is_forest, order, parent = spanned(ends, n_nodes)
    assert is_forest
    heads, value = arcs_of(ends, n_nodes).heads, np.full((n_nodes, WIDTH), np.nan)
    best_on_tree(unary, tables, order, parent, heads, 3, value, np.zeros(WIDTH), y)
    return y


def by_messages(unary: Array, tables: Array, ends: Array, passes: int = 50) -> tuple[Array, float, float]:
    y, work = np.full(len(unary), -1), message_work(len(unary) + 1, len(ends) + 2, WIDTH)
    work.messages[:] = np.nan
    found = best_by_messages(unary, tables, *arcs_of(ends, len(unary)), 3, passes, work, y)
    return y, *found


def by_search(
    unary: Array, tables: Array, ends: Array, steps: int, passes: int = 2
) -> tuple[Array, float, float]:
    """Search from the labelling that a few passes of messages find."""
    n_nodes, y = len(unary), np.full(len(unary), -1)
    work, arcs = search_work(n_nodes + 1, len(ends) + 2, WIDTH), arcs_of(ends, n_nodes)
    score, _ = best_by_messages(unary, tables, *arcs, 3, passes, work.messages, y)
    work.reached[:] = np.nan
    return y, *best_by_search(unary, tables, *arcs, 3, score, steps, work, y)


def by_subsets(unary: Array, tables: Array, ends: Array) -> Array:
    n_nodes, y = len(unary), np.full(len(unary), -1)
    work = subset_work(n_nodes + 1)
    for array in work:
        array[:] = np.nan
    best_subset(unary, tables, *arcs_of(ends, n_nodes), work, y)
    return y


def cut_of(gains: Array, strengths: Array, ends: Array, work: CutWork | None = None) -> Array:
    n_nodes, n_edges = len(gains), len(ends)
    work = cut_work(n_nodes + 1, n_edges + 1) if work is None else work
    work.excess[:n_nodes], work.residual[: 2 * n_edges] = gains, np.repeat(strengths, 2)
    y = np.full(n_nodes, -1)
    cut(*arcs_of(ends, n_nodes), n_nodes, work, y)
    return y


@given(seeds, st.integers(1, 6), st.booleans())
def test_the_labelling_of_a_tree_is_the_best_of_all(seed: int, n_nodes: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    joined = [(int(rng.integers(v)), v)[:: rng.choice([-1, 1])] for v in range(1, n_nodes)]
    kept = [edge for edge in joined if rng.random() < 0.8]
    names = rng.permutation(n_nodes)
    ends = names[np.array(kept, dtype=np.int64).reshape(-1, 2)]
    unary, tables = random_scores(rng, n_nodes, len(ends), whole)
    y = on_tree(unary, tables, ends)
    best = best_score(unary, tables, ends, 3)
    assert table_score(unary, tables, ends, y) == pytest.approx(best, abs=1e-12)


def test_a_path_is_a_chain() -> None:
    rng = np.random.default_rng(0)
    ends = np.column_stack([np.arange(9), np.arange(1, 10)])
    for _ in range(20):
        unary, tables = random_scores(rng, 10, 1, whole=False)
        expected = np.zeros(10, dtype=np.int64)
        viterbi(unary, tables[0], 3, np.zeros((10, WIDTH)), expected)
        assert on_tree(unary, np.repeat(tables, 9, axis=0), ends).tolist() == expected.tolist()


@given(seeds, st.integers(1, 8), st.sampled_from([0.1, 0.2, 0.4]))
def test_forests_are_known_by_their_number_of_edges(seed: int, n_nodes: int, density: float) -> None:
    ends = random_graph(np.random.default_rng(seed), n_nodes, density)
    parts = list(range(n_nodes))
    for a, b in ends:
        parts = [parts[b] if part == parts[a] else part for part in parts]
    is_forest, order, parent = spanned(ends, n_nodes)
    assert is_forest == (len(ends) == n_nodes - len(set(parts)))
    if is_forest:
        assert sorted(order) == list(range(n_nodes))
        assert (parent == ROOT).sum() == len(set(parts))


@given(seeds, st.integers(1, 5), st.booleans())
def test_messages_bracket_the_best_labelling(seed: int, n_nodes: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    ends = random_graph(rng, n_nodes, 0.6)
    unary, tables = random_scores(rng, n_nodes, len(ends), whole)
    y, score, bound = by_messages(unary, tables, ends)
    best = best_score(unary, tables, ends, 3)
    assert table_score(unary, tables, ends, y) == pytest.approx(score, abs=1e-11)
    assert score <= best + 1e-11
    assert bound >= best - 1e-11 * (1.0 + abs(best))


@given(seeds, st.integers(1, 6), st.booleans(), st.sampled_from([0, 1, 7, 10_000]))
def test_searches_bracket_the_best_labelling_and_find_it(
    seed: int, n_nodes: int, whole: bool, steps: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = random_graph(rng, n_nodes, 0.8)
    unary, tables = random_scores(rng, n_nodes, len(ends), whole)
    y, score, bound = by_search(unary, tables, ends, steps)
    _, hasty, loose = by_search(unary, tables, ends, steps // 2)
    best, rounding = best_score(unary, tables, ends, 3), 1e-8
    assert table_score(unary, tables, ends, y) == pytest.approx(score, abs=1e-11)
    assert hasty - rounding <= score <= best + rounding
    assert best - rounding <= bound <= loose + rounding
    if steps > 3**6:  # more than all labellings
        assert score == pytest.approx(best, abs=rounding)
        assert bound == pytest.approx(best, abs=rounding)


@given(seeds, st.integers(1, 7), st.booleans())
def test_the_labelling_by_subsets_is_the_best_of_all(seed: int, n_nodes: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    ends = random_graph(rng, n_nodes, 0.7)
    unary, tables = random_scores(rng, n_nodes, len(ends), whole)
    y = by_subsets(unary, tables[:, :2], ends)
    best = best_score(unary, tables, ends, 2)
    assert table_score(unary, tables, ends, y) == pytest.approx(best, abs=1e-12)


def relaxed_and_whole(unary: Array, tables: Array, ends: Array) -> list[float]:
    """Return the largest score over marginals that agree at the nodes, and over whole numbers, by HiGHS."""
    n, m = len(unary), len(ends)
    scores = np.concatenate([unary[:, :3].ravel(), tables[:, :, :3].ravel()])
    rows = []
    for v in range(n):
        rows.append(np.zeros(len(scores)))
        rows[-1][3 * v : 3 * v + 3] = 1.0
    for e, (a, b) in enumerate(ends):
        table = np.arange(9).reshape(3, 3) + 3 * n + 9 * e
        for k in range(3):
            for node, entries in ((a, table[k]), (b, table[:, k])):
                rows.append(np.zeros(len(scores)))
                rows[-1][entries], rows[-1][3 * node + k] = 1.0, -1.0
    sums = np.r_[np.ones(n), np.zeros(6 * m)]
    constraint = LinearConstraint(np.array(rows), sums, sums)
    return [
        -milp(-scores, integrality=whole, bounds=Bounds(0, 1), constraints=constraint).fun for whole in (0, 1)
    ]


def test_messages_have_bounds_of_linear_programs_on_grids() -> None:
    """The bound is never below that of the relaxation; where it is reached the labelling is the best.

    A search finds the best everywhere, in far fewer steps than there are labellings.
    """
    rng, number, reached = np.random.default_rng(1), np.arange(12).reshape(3, 4), 0
    ends = np.concatenate(
        [
            np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
        ]
    )
    for _ in range(12):
        unary, tables = random_scores(rng, 12, len(ends), whole=False)
        unary[:, :3] *= 2.0
        _, score, bound = by_messages(unary, tables, ends)
        relaxed, best = relaxed_and_whole(unary, tables, ends)
        assert score <= best + 1e-8
        assert bound >= relaxed - 1e-8
        assert bound >= best - 1e-8
        _, score_found, bound_found = by_search(unary, tables, ends, steps=300)
        assert score_found == pytest.approx(best, abs=1e-7)
        assert bound_found == pytest.approx(best, abs=1e-7)
        if bound - score < 1e-6:
            assert score == pytest.approx(best, abs=1e-6)
            reached += 1
    assert reached >= 6


def test_one_pass_of_messages_is_exact_on_a_path() -> None:
    rng, ends = np.random.default_rng(2), np.column_stack([np.arange(5), np.arange(1, 6)])
    for _ in range(10):
        unary, tables = random_scores(rng, 6, 5, whole=False)
        y, score, bound = by_messages(unary, tables, ends, passes=1)
        assert score == pytest.approx(bound, abs=1e-9)
        assert y.tolist() == on_tree(unary, tables, ends).tolist()


@given(seeds, st.integers(1, 8), st.booleans())
def test_the_labelling_by_a_cut_is_the_best_of_all(seed: int, n_nodes: int, whole: bool) -> None:
    rng = np.random.default_rng(seed)
    ends = random_graph(rng, n_nodes, 0.5)
    gains, strengths = 2.0 * rng.normal(size=n_nodes), 2.0 * rng.random(len(ends))
    if whole:
        gains, strengths = np.round(gains), np.round(strengths)
    scores = {y: cut_score(gains, strengths, ends, y) for y in product((0, 1), repeat=n_nodes)}
    y = tuple(cut_of(gains, strengths, ends).tolist())
    assert scores[y] == pytest.approx(max(scores.values()), abs=1e-12)
    if whole:  # ties go to zeros: no best labelling has fewer ones
        assert sum(y) == min(sum(z) for z, score in scores.items() if score == max(scores.values()))


def minimum_by_scipy(gains: Array, strengths: Array, ends: Array) -> float:
    """Return the largest score by scipy's maximum flow, for whole numbers."""
    n = len(gains)
    source, sink = np.full(n, n), np.full(n, n + 1)
    tails = np.concatenate([source, np.arange(n), ends[:, 0], ends[:, 1]])
    heads = np.concatenate([np.arange(n), sink, ends[:, 1], ends[:, 0]])
    room = np.concatenate([np.maximum(gains, 0), np.maximum(-gains, 0), strengths, strengths])
    # SciPy 1.13 takes flows and indices of 32 bits only.
    places = tails.astype(np.int32), heads.astype(np.int32)
    network = csr_array((room.astype(np.int32), places), shape=(n + 2, n + 2))
    return float(np.maximum(gains, 0).sum() - maximum_flow(network, n, n + 1).flow_value)


@pytest.mark.parametrize("strength", [2, 6, 20])
def test_cuts_of_large_graphs_are_those_of_scipy(strength: int) -> None:
    rng, work = np.random.default_rng(strength), cut_work(400, 2000)  # used again and again
    for density in (0.005, 0.01, 0.02):
        ends = random_graph(rng, 400, density)
        gains = rng.integers(-20, 21, 400).astype(float)
        strengths = rng.integers(0, strength + 1, len(ends)).astype(float)
        y = cut_of(gains, strengths, ends, work)
        assert cut_score(gains, strengths, ends, y) == minimum_by_scipy(gains, strengths, ends)


def test_nodes_without_edges_have_their_best_labels() -> None:
    none: Any = np.zeros((0, 2), dtype=np.int64)
    assert cut_of(np.array([1.0, -1.0, 0.0]), np.zeros(0), none).tolist() == [1, 0, 0]
    unary = np.array([[0.0, 2.0, 1.0, 9.0], [3.0, 2.0, 3.0, 9.0]])
    assert on_tree(unary, np.zeros((0, 3, WIDTH)), none).tolist() == [1, 0]
    assert by_messages(unary, np.zeros((0, 3, WIDTH)), none)[0].tolist() == [1, 0]
    assert by_search(unary, np.zeros((0, 3, WIDTH)), none, 9)[0].tolist() == [1, 0]
