"""Slack rescaling by counts of wrong labels: second-order chains, segments and trees against all outputs."""

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from maxmargin import (
    BlockFrankWolfe,
    BrokenOracle,
    ChainSVC,
    GraphSVC,
    MultilabelSVC,
    SegmentSVC,
    Status,
    check_problem,
    solve,
)
from maxmargin.problems import Graph, SlackRescaled
from maxmargin.structures.graphs.inference import (
    ROOT,
    best_on_tree_by_count,
    count_rows,
    counted_tree,
    span,
    trace_tree_back,
)
from maxmargin.structures.recursions import best_by_count, best_scores, counted_work
from support import naive
from support.catalogue import Case, chain_case, flat, graph_case, segment_case
from support.graphs import arcs_of, table_score
from support.naive import Array
from support.slack import check_slack_oracle, rescaled

LAM = 0.1
RUN: dict[str, Any] = {"method": "bcfw", "tol": 0.03, "max_iter": 5000, "random_state": 0}
LOSSES = ("hamming", "normalized_hamming")


def sparse_tree(nodes: Array, ends: Any) -> Any:
    """Return a graph as it is for sets of labels: sparse features of nodes, and ones for edges."""
    return csr_array(nodes), ends, csr_array(np.ones((len(ends), 1)))


def sparse_case() -> Case:
    """Return trees of this kind."""
    rng, ends = np.random.default_rng(4), [(v // 2, v + 1) for v in range(4)]
    X, Y = [rng.normal(size=(m, 2)) for m in (1, 4, 5)], [np.arange(m) % 2 for m in (1, 4, 5)]
    problem = Graph.from_graphs([sparse_tree(x, ends[: len(x) - 1]) for x in X], Y)
    graphs = [(x, np.array(ends[: len(x) - 1]).reshape(-1, 2), np.ones((len(x) - 1, 1))) for x in X]
    shares = [np.full(len(x), 1 / len(x)) for x in X]
    return Case(problem, naive.enumerate_graphs(graphs, Y, 1.0 - np.eye(2), shares, False), X)


CASES = {
    "second-order chain": chain_case(3, (3, 1, 4), 2, loss="hamming", order=2),
    "segments": segment_case(5, (4, 1, 3), (3, 2), loss="hamming", outside=False),
    "tree": sparse_case(),
}


@st.composite
def chains(draw: Any) -> Case:
    lengths = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    chosen = {"loss": draw(st.sampled_from(LOSSES)), "rows": draw(st.sampled_from(("dense", "whole")))}
    return chain_case(draw(st.integers(0, 10**6)), lengths, draw(st.integers(2, 3)), order=2, **chosen)


@st.composite
def segmentations(draw: Any) -> Case:
    limits = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    lengths = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
    chosen = {"loss": draw(st.sampled_from(LOSSES)), "rows": draw(st.sampled_from(("dense", "whole")))}
    limits = tuple(limits) if limits != [1] else (2,)
    return segment_case(draw(st.integers(0, 10**6)), lengths, limits, outside=False, **chosen)


@st.composite
def forests(draw: Any) -> Case:
    n_labels = draw(st.integers(2, 3))
    sizes = *draw(st.lists(st.integers(1, 5), max_size=2)), draw(st.integers(n_labels, 5))
    chosen = {"loss": draw(st.sampled_from(LOSSES)), "rows": draw(st.sampled_from(("dense", "whole")))}
    return graph_case(draw(st.integers(0, 10**6)), sizes, n_labels, weighted=False, **chosen)


@settings(max_examples=90)
@given(st.one_of(chains(), segmentations(), forests()), st.integers(0, 1000))
def test_the_oracle_finds_the_largest_of_all_outputs(case: Case, seed: int) -> None:
    check_slack_oracle(case.problem, case.data, seed)


def random_forest(rng: np.random.Generator, n_nodes: int) -> Array:
    """Return the edges of a random forest, some of them from a node to a later one, some to an earlier."""
    names = rng.permutation(n_nodes)
    joined = [(names[rng.integers(v)], names[v])[:: rng.choice([-1, 1])] for v in range(1, n_nodes)]
    return np.array([edge for edge in joined if rng.random() < 0.8], dtype=np.int64).reshape(-1, 2)


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_tables_hold_labellings_of_every_number_of_wrong_labels(seed: int, n_nodes: int) -> None:
    rng = np.random.default_rng(seed)
    ends = random_forest(rng, n_nodes)
    unary, pairs = rng.normal(size=(n_nodes, 4)), rng.normal(size=(len(ends), 3, 4))
    unary[:, 3:], pairs[:, :, 3:] = 99.0, 99.0  # padding is never looked at
    arcs, truth = arcs_of(ends, n_nodes), rng.integers(3, size=n_nodes)
    order, parent = np.zeros((2, n_nodes), dtype=np.int64)
    assert span(*arcs, order, parent)
    n_rows = count_rows(order, parent, arcs.heads, np.zeros(n_nodes, dtype=np.int64))
    work = counted_tree(n_nodes + 1, n_rows + 1, 4)
    work.tables[:] = np.nan
    best_on_tree_by_count(unary, pairs, order, parent, arcs.heads, truth, 3, work)
    assert not np.isnan(work.tables[:n_rows, :3]).any()
    assert np.isnan(work.tables[n_rows]).all()
    labellings = [np.array(y) for y in product(range(3), repeat=n_nodes)]
    by_count: list[list[float]] = [[] for _ in range(n_nodes + 1)]
    for y in labellings:
        by_count[(y != truth).sum()].append(table_score(unary, pairs, ends, y))
    assert work.scores[: n_nodes + 1] == pytest.approx([max(scores) for scores in by_count], abs=1e-11)
    m = int(rng.integers(n_nodes + 1))
    found = np.full(n_nodes, -1)
    trace_tree_back(pairs, order, parent, arcs.heads, m, 3, work, found)
    assert (found != truth).sum() == m
    assert table_score(unary, pairs, ends, found) == pytest.approx(max(by_count[m]), abs=1e-11)


def test_a_path_is_a_chain() -> None:
    rng, length = np.random.default_rng(0), 30
    unary, pairwise, truth = (
        rng.normal(size=(length, 4)),
        rng.normal(size=(3, 4)),
        rng.integers(3, size=length),
    )
    chain = counted_work(length, 4)
    best_by_count(unary, pairwise, truth, 3, chain.value)
    best_scores(chain.value, length, 3, chain.scores)
    heads = np.column_stack([np.arange(1, length), np.arange(length - 1)]).ravel()
    order, parent = np.arange(length), np.append(ROOT, 2 * np.arange(length - 1) + 1)
    n_rows = count_rows(order, parent, heads, np.zeros(length, dtype=np.int64))
    tree = counted_tree(length, n_rows, 4)
    pairs = np.repeat(pairwise[None], length - 1, axis=0)
    best_on_tree_by_count(unary, pairs, order, parent, heads, truth, 3, tree)
    assert n_rows == 2 * length + sum(range(3, length + 2))
    assert tree.scores == pytest.approx(chain.scores, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_a_quadratic_program(name: str) -> None:
    case = CASES[name]
    problem, data = SlackRescaled(case.problem), rescaled(case.data)
    best = naive.optimum(data, LAM)
    result = solve(problem, BlockFrankWolfe(LAM), tol=5e-3 * best.primal, max_passes=20000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    w = flat(case.problem, result.w)
    assert result.primal == pytest.approx(naive.primal(data, w, LAM), abs=1e-10)
    assert result.dual - 1e-9 <= best.dual <= best.primal <= result.primal + 1e-9
    assert check_problem(problem, outputs=[list(map(list, some)) for some in case.data.outputs]).ok


@pytest.mark.parametrize("name", CASES)
def test_features_that_are_not_finite_are_reported(name: str) -> None:
    phi = CASES[name].problem.map
    rows = getattr(phi, "inner", phi).rows  # of second order
    values = rows.values.reshape(-1)
    values[2], kept = np.nan, values[2]
    try:
        with pytest.raises(BrokenOracle, match=r"example \d has a negative or undefined"):
            solve(SlackRescaled(CASES[name].problem), BlockFrankWolfe(LAM), random_state=0)
    finally:
        values[2] = kept


REFUSED = {
    "inference='tree', got 'messages'; remove cycles": graph_case(0, loss="hamming", inference="messages"),
    "inference='tree', got 'cut'; remove cycles": graph_case(
        0, (2, 3), 2, loss="hamming", inference="cut", weighted=False
    ),
    "the loss 'normalized_hamming' or 'hamming', got a cost matrix": graph_case(0, weighted=False),
    "the loss 'normalized_hamming' or 'hamming', got 'segments'; use one of these": segment_case(0),
    "nodes of equal weight, got node weights that differ in graph 1": graph_case(0, loss="hamming"),
    "the loss .* got a cost matrix; use one of these, or rescale": chain_case(0, order=2),
}


@pytest.mark.parametrize("message", REFUSED)
def test_losses_that_cannot_be_counted_are_refused(message: str) -> None:
    with pytest.raises(ValueError, match=f"^SlackRescaled: slack rescaling needs {message}") as caught:
        SlackRescaled(REFUSED[message].problem)
    assert "\n" not in str(caught.value)


_rng = np.random.default_rng(0)
X = [_rng.normal(size=(length, 2)) for length in (4, 3, 1, 5)]
Y = [(x[:, 0] > 0).astype(int) for x in X]
Y[0][:2] = 0, 1
TREES = [sparse_tree(x, [(v // 2, v) for v in range(1, len(x))]) for x in X]


def primal(model: Any, score: Any, size: float) -> float:
    """Return the objective by its formula, for a score of a labelling of example i."""
    hinges = [
        max(
            np.mean(y != np.array(z)) * (1.0 + score(i, z) - score(i, y))
            for z in product((0, 1), repeat=len(y))
        )
        for i, y in enumerate(Y)
    ]
    return size / (2 * model.C * len(Y)) + float(np.mean(hinges))


def test_chains_of_second_order_reach_the_objective_of_their_formula() -> None:
    model = ChainSVC(C=2.0, order=2, loss="normalized_hamming", rescaling="slack", **RUN).fit(X, Y)

    def score(i: int, z: Any) -> float:
        total = model.start_[z[0]] + model.end_[z[-1]]
        total += sum(x @ model.coef_[k] for x, k in zip(X[i], z, strict=True))
        total += sum(model.transitions_[a, b] for a, b in pairwise(z))
        return total + sum(model.trigrams_[abc] for abc in zip(z, z[1:], z[2:], strict=False))

    parts = model.coef_, model.transitions_, model.trigrams_, model.start_, model.end_
    size = sum((part**2).sum() for part in parts)
    assert primal(model, score, size) == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0.0 <= model.gap_ <= model.tol


def test_segments_reach_the_objective_of_their_formula() -> None:
    features, tags = X[:3], [["B-x", "I-x", "O", "O"], ["O", "B-x", "I-x"], ["O"]]
    model = SegmentSVC(C=2.0, loss="normalized_hamming", rescaling="slack", **RUN).fit(features, tags)
    parts = model.coef_, model.first_coef_, model.last_coef_, model.start_, model.transitions_, model.lengths_
    codes = [(1, 0, 3, 3), (3, 1, 0), (3,)]
    data = naive.enumerate_segments(features, codes, model.max_length_, 1, "normalized_hamming")
    w = np.concatenate([part.ravel() for part in parts])
    assert naive.primal(rescaled(data), w, 1 / 6) == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0.0 <= model.gap_ <= model.tol
    with pytest.raises(ValueError, match=r"^SegmentSVC: slack rescaling needs the loss .* got 'segments'"):
        SegmentSVC(rescaling="slack", loss="segments").fit(features, tags)


def test_trees_reach_the_objective_of_their_formula() -> None:
    model = GraphSVC(C=2.0, loss="normalized_hamming", rescaling="slack", **RUN).fit(TREES, Y)
    assert model.inference_ == "tree"

    def score(i: int, z: Any) -> float:
        total = sum(x @ model.coef_[k] for x, k in zip(X[i], z, strict=True))
        return total + sum(model.edge_coef_[0, z[a], z[b]] for a, b in TREES[i][1])

    size = (model.coef_**2).sum() + (model.edge_coef_**2).sum()
    assert primal(model, score, size) == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0.0 <= model.gap_ <= model.tol
    with pytest.raises(ValueError, match=r"^GraphSVC: slack rescaling needs nodes of equal weight"):
        GraphSVC(rescaling="slack").fit(TREES, Y, node_weights=[1.0 + np.arange(len(y)) for y in Y])
    with pytest.raises(ValueError, match=r"^GraphSVC: slack rescaling needs inference='tree', got 'cut'"):
        GraphSVC(rescaling="slack", inference="cut").fit(TREES, Y)


@pytest.mark.long
@pytest.mark.parametrize("structure", ["independent", "tree"])
def test_sets_of_labels_reach_the_objective_of_their_formula(structure: str) -> None:
    features = np.random.default_rng(1).normal(size=(8, 2))
    labels = (np.column_stack([features, features.sum(axis=1)]) > 0).astype(int)
    model = MultilabelSVC(C=2.0, structure=structure, rescaling="slack", **RUN)
    model.fit(features, labels)
    hinges = []
    for x, y in zip(features, labels, strict=True):

        def score(z: Any, x: Array = x) -> float:
            joint = zip(model.edges_, model.edge_coef_, strict=True)
            return z @ (model.coef_ @ x + model.intercept_) + sum(v[z[a], z[b]] for (a, b), v in joint)

        every = (np.array(z) for z in product((0, 1), repeat=3))
        hinges.append(max(np.sum(y != z) * (1.0 + score(z) - score(y)) for z in every))
    # The weights of label 1 are the negative of those of label 0, where both have the same features.
    # A pair has a feature of three.
    size = ((model.coef_**2).sum() + (model.intercept_**2).sum()) / 2 + (model.edge_coef_**2).sum() / 9
    assert size / (4.0 * 8) + np.mean(hinges) == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0.0 <= model.gap_ <= model.tol


def test_all_pairs_of_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^MultilabelSVC: structure must be 'independent' or 'tree' where"):
        MultilabelSVC(structure="full", rescaling="slack").fit([[0.0], [1.0]], [[0, 1], [1, 0]])
