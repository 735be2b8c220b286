"""Graphs: oracle, loss and statistics against lists of all outputs; what they equal; and what they refuse."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import Accelerated, BlockFrankWolfe, FrankWolfe, Pairwise, Status, solve
from maxmargin.methods.scratch import find_corner, new_scratch
from maxmargin.problems import Chain, Graph
from maxmargin.solving.objective import hinge_losses
from maxmargin.structures.graphs.loopy import Messages
from maxmargin.structures.oracle import argmax, is_bounded, is_exact, loss, output_size, shortfall
from maxmargin.structures.problem import sizes
from support import naive
from support.catalogue import Case, flat, graph_case, graph_cases, label_set_cases, layout
from support.model_checks import (
    assert_compiled_hinges,
    assert_compiled_predictions,
    assert_loss_and_statistics,
    assert_oracles_maximise,
    draw_weights,
    found_output,
)
from support.naive import Array, Output, margins

LAM = 0.1
EXACT = ("tree", "cut", "subsets")


def with_inference(problem: Any, inference: Any) -> Any:
    """Return the same graphs with another way to find the best labelling."""
    return problem._replace(oracle=problem.oracle._replace(inference=inference))


def written_out_score(case: Case, i: int, w: Array, y: Output) -> float:
    """Return <w, phi(x, y)> as the model's definition has it, node by node and edge by edge."""
    weights, (nodes, ends, edges) = case.problem.unpack(w), case.X[i]
    total = sum(float(x @ weights.nodes[y[v]]) for v, x in enumerate(nodes))
    for e, ((a, b), x) in enumerate(zip(ends, edges, strict=True)):
        table = weights.edges if weights.edges.ndim == 1 else weights.edges[:, y[a], y[b]]
        total += float(x @ table) * (y[len(nodes) + e] if weights.edges.ndim == 1 else 1)
    return total


@given(graph_cases(EXACT) | label_set_cases(), st.integers(0, 1000), st.booleans())
def test_oracles_maximise_over_all_outputs(case: Case, seed: int, whole: bool) -> None:
    assert_oracles_maximise(case, draw_weights(case, seed, whole), written_out_score)


@given(
    graph_cases(("messages",)), st.integers(0, 1000), st.sampled_from([1, 20]), st.sampled_from([0, 3, 200])
)
def test_messages_are_an_output_and_bound_the_best(case: Case, seed: int, passes: int, steps: int) -> None:
    problem = with_inference(case.problem, Messages(passes, steps))
    w, scratch = draw_weights(case, seed, whole=False), new_scratch(problem)
    for i in range(len(case.X)):
        best = margins(case.data, i, flat(problem, w)).max()
        _, hinge = find_corner(problem, i, w, scratch)
        found = case.data.outputs[i].index(tuple(scratch.y[: output_size(problem.oracle, i)].tolist()))
        assert hinge == pytest.approx(margins(case.data, i, flat(problem, w))[found], abs=1e-11)
        assert hinge <= best + 1e-11
        assert hinge + shortfall(problem.oracle, i, scratch.oracle) >= best - 1e-11 * (1.0 + abs(best))
        if steps > 3**4:  # more than all labellings
            assert hinge == pytest.approx(best, abs=1e-8)
    assert not is_exact(problem.oracle)
    assert is_bounded(problem.oracle)


@given(graph_cases(EXACT, rows=("dense",)) | label_set_cases(("dense",)), st.integers(0, 1000))
def test_compiled_hinges_are_the_largest_margins(case: Case, seed: int) -> None:
    w = draw_weights(case, seed, whole=False)
    assert_compiled_hinges(case, w)
    assert_compiled_predictions(case, w)


@given(graph_cases() | label_set_cases())
def test_loss_and_statistics_are_those_of_every_output(case: Case) -> None:
    assert_loss_and_statistics(case)


METHODS = [FrankWolfe(LAM), BlockFrankWolfe(LAM), Accelerated(Pairwise(LAM))]


@pytest.mark.long
@pytest.mark.parametrize("inference", EXACT)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_methods_come_close_to_the_optimum(method: Any, inference: str) -> None:
    case = graph_case(3, (2, 3, 4), 2 if inference == "cut" else 3, inference=inference, density=0.3)
    best = naive.optimum(case.data, LAM)
    result = solve(case.problem, method, tol=0.02 * best.primal, max_passes=3000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    assert result.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= result.primal <= 1.02 * best.primal + 1e-9
    assert result.primal == pytest.approx(naive.primal(case.data, flat(case.problem, result.w), LAM))


@pytest.mark.long
@pytest.mark.parametrize("method", [FrankWolfe(LAM), Pairwise(LAM)], ids=lambda m: type(m).__name__)
def test_methods_go_on_where_the_oracle_misses_the_best(method: Any) -> None:
    """Frustrated cycles: no step is taken towards an answer that is worse than those of before.

    The relaxation bounds what the answers lack, so that the bounds hold; and the run says it is not done.
    """
    case = graph_case(8, (4, 4, 4, 4), 3, inference="messages", density=1.0)  # where answers are missed
    hasty = with_inference(case.problem, Messages(1, 0))
    result = solve(hasty, method, tol=0.01, max_passes=300, random_state=0)
    w, best = flat(hasty, result.w), naive.optimum(case.data, LAM)
    all_margins = [margins(case.data, i, w) for i in range(4)]
    found = [case.data.outputs[i].index(found_output(hasty, i, result.w, argmax)) for i in range(4)]
    assert any(m[k] < m.max() - 0.1 for m, k in zip(all_margins, found, strict=True))
    assert result.certified
    assert result.dual <= best.primal + 1e-9
    assert best.dual <= naive.primal(case.data, w, LAM) <= result.primal + 1e-9
    assert result.status is Status.MAX_PASSES
    assert naive.primal(case.data, w, LAM) < 0.8 * naive.primal(case.data, np.zeros_like(w), LAM)


def test_relaxations_that_are_tight_certify_the_optimum() -> None:
    case = graph_case(6, (3, 4, 4), 3, inference="messages", density=0.3)
    best = naive.optimum(case.data, LAM)
    result = solve(case.problem, Pairwise(LAM), tol=0.01, max_passes=2000, random_state=0)
    assert result.status is Status.CONVERGED
    assert result.certified
    assert best.dual - 0.01 <= result.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= result.primal <= best.primal + 0.01 + 1e-9


def with_features_of_edges(case: Case, make: Any) -> Case:
    """Return the same graphs, labels and losses for other features of edges."""
    X = [(nodes, ends, make(edges)) for nodes, ends, edges in case.X]
    labels = np.split(case.problem.oracle.labels, np.cumsum([len(x[0]) for x in X])[:-1])
    problem = Graph.from_graphs(X, labels, inference="cut", loss="hamming")
    ones = [np.ones(len(nodes)) for nodes, _, _ in X]
    return Case(problem, naive.enumerate_graphs(X, labels, 1.0 - np.eye(2), ones, True), X)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=pytest.mark.long) for k in (2, 3, 4))])
def test_bonds_of_positive_features_impose_signs_by_themselves(seed: int) -> None:
    """With one feature the optimum is that of the model whose weight of bonds must not be negative."""
    case = graph_case(seed, (3, 3, 4), 2, inference="cut", density=0.3)
    case = with_features_of_edges(case, lambda edges: np.abs(edges[:, :1]))
    result = solve(case.problem, Pairwise(LAM), tol=1e-5, max_passes=5000, random_state=0)
    assert result.status is Status.CONVERGED
    signed = naive.signed_optimum(case.data, LAM, np.array([case.data.psi[0].shape[1] - 1]))
    assert result.primal == pytest.approx(naive.primal(case.data, signed, LAM), abs=2e-5)
    clipped = flat(case.problem, result.w)
    clipped[-1] = max(clipped[-1], 0.0)
    assert naive.primal(case.data, clipped, LAM) <= result.primal + 1e-12


@given(graph_cases(("cut",), rows=("dense",)), st.integers(0, 1000))
def test_hinges_of_bonds_bound_those_of_positive_parts(case: Case, seed: int) -> None:
    """And they are the same where no bond scores below zero."""
    weights = flat(case.problem, draw_weights(case, seed, whole=False))
    found = hinge_losses(case.problem, layout(case.problem, weights))
    for i, (nodes, ends, edges) in enumerate(case.X):
        unary = nodes @ weights[: 2 * nodes.shape[1]].reshape(2, -1).T
        bonds = edges @ weights[2 * nodes.shape[1] :]
        scores = {
            y[: len(nodes)]: sum(unary[v, y[v]] for v in range(len(nodes)))
            + sum(max(c, 0.0) for c, (a, b) in zip(bonds, ends, strict=True) if y[a] == y[b])
            for y in case.data.outputs[i]
        }
        losses = {y[: len(nodes)]: L for y, L in zip(case.data.outputs[i], case.data.losses[i], strict=True)}
        truth = case.data.outputs[i][case.data.truths[i]][: len(nodes)]
        positive = max(losses[y] + scores[y] for y in scores) - scores[truth]
        assert found[i] >= positive - 1e-11
        if (bonds >= 0.0).all():
            assert found[i] == pytest.approx(positive, abs=1e-11)


def test_a_path_is_a_chain() -> None:
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(m, 3)) for m in (4, 1, 6)], [rng.integers(3, size=m) for m in (4, 1, 6)]
    Y[2][:3] = 0, 1, 2
    paths = [(x, np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])) for x in X]
    graph, chain = Graph.from_graphs(paths, Y), Chain.from_sequences(X, Y)
    weights = rng.normal(size=18)
    w, v = layout(graph, weights), np.zeros(sizes(chain).weights)
    parts = chain.unpack(v)  # without scores of the ends, which a graph does not have
    parts.unary[:], parts.transitions[:] = weights[:9].reshape(3, 3), weights[9:].reshape(3, 3)
    assert hinge_losses(graph, w) == pytest.approx(hinge_losses(chain, v), abs=1e-12)


def test_nodes_without_edges_are_independent() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(5, 2)), np.array([0, 1, 1, 0, 1])
    for inference in ("tree", "cut", "messages"):
        problem = Graph.from_graphs([(x, [])], [y], inference=inference, loss="hamming")
        w = layout(problem, rng.normal(size=sum(part.size for part in problem.unpack(_zeros(problem)))))
        scores = x @ problem.unpack(w).nodes.T
        margin = scores + 1.0 - np.eye(2)[y] - scores[np.arange(5), y][:, None]
        assert hinge_losses(problem, w) == pytest.approx([margin.max(axis=1).sum()])


def _zeros(problem: Any) -> Array:
    return np.zeros(sizes(problem).weights)


X = [(np.arange(6.0).reshape(3, 2), [[0, 1], [2, 1]]), (np.ones((2, 2)), np.array([[0, 1]], dtype=np.uint8))]
Y: list[Any] = [["a", "b", "b"], ["a", "a"]]


def test_graphs_have_many_forms() -> None:
    expected = Graph.from_graphs(X, Y)
    given: list[Any] = [
        (scipy.sparse.csr_array(X[0][0]), np.array(X[0][1]), scipy.sparse.csr_array(np.ones((2, 1)))),
        [X[1][0].tolist(), [(0, 1)], [[1]]],
    ]
    problem = Graph.from_graphs(given, [np.array(Y[0]), np.array([Y[1]])], node_weights=[np.ones(3), [1, 1]])
    assert is_exact(problem.oracle)
    for name in ("nodes", "edges", "start", "arcs", "heads", "labels", "importance"):
        np.testing.assert_array_equal(getattr(problem.oracle, name), getattr(expected.oracle, name))
    for name in ("nodes", "edges"):
        np.testing.assert_array_equal(getattr(problem.map, name), getattr(expected.map, name))
    w = np.arange(1.0, 1 + sizes(expected).weights)
    assert hinge_losses(problem, w) == pytest.approx(hinge_losses(expected, w))


def test_wrong_labels_cost_their_nodes_weights() -> None:
    problem = Graph.from_graphs(X, Y, node_weights=[[1, 2, 1], [3, 1]])
    assert [loss(problem.oracle, 0, np.array(y)) for y in ([0, 1, 1], [1, 1, 1], [0, 0, 1])] == [0, 0.25, 0.5]
    problem = Graph.from_graphs(X, Y, loss="hamming", node_weights=[[1, 2, 1], [3, 1]])
    assert [loss(problem.oracle, 1, np.array(y)) for y in ([0, 0], [1, 0], [1, 1])] == [0, 3, 4]
    problem = Graph.from_graphs(X, Y, loss=[[0, 2], [1, 0]])
    assert [loss(problem.oracle, 1, np.array(y)) for y in ([0, 0], [1, 0])] == [0, 1]


NAN = np.where(np.arange(4).reshape(2, 2) == 3, np.nan, 1.0)
CYCLE = (np.ones((3, 2)), [[0, 1], [1, 2], [2, 0]])
REFUSED: list[tuple[Any, Any, str]] = [
    ([], Y, "X has no graph, expected at least one"),
    (X[0], Y, r"X must be a list of tuples .*; if it is one graph pass \[X\]"),
    (3, Y, r"X must be a list of tuples .*, got 3 \(int\)"),
    ([X[0], np.ones((2, 2))], Y, r"graph 1 of X is an ndarray of shape \(2, 2\), expected a tuple"),
    ([X[0], (np.ones(2), [])], Y, "graph 1 of X has node features that are an ndarray"),
    ([X[0], (np.ones((0, 2)), [])], Y, "graph 1 of X has no nodes, expected at least one node"),
    ([X[0], (np.ones((2, 0)), [])], Y, r"graph 1 of X has node features of shape \(2, 0\)"),
    ([X[0], (np.ones((2, 3)), [])], Y, "nodes of graph 1 of X have 3 features, but those of graph 0 have 2"),
    ([X[0], (np.ones((2, 2)), [[0, 1]], np.ones((1, 2)))], Y, "edges of graph 1 of X have 2 features, but"),
    ([X[0], (NAN, [])], Y, "a feature of node 1 of graph 1 of X is not finite"),
    ([X[0], (scipy.sparse.csr_array(NAN), [])], Y, "a feature of node 1 of graph 1 of X is not finite"),
    ([X[0], (np.ones((2, 2)), [[0, 1]], [[np.inf]])], Y, "a feature of edge 0 of graph 1 of X is not finite"),
    ([X[0], (np.ones((2, 2)), [[0, 1]], np.ones((2, 1)))], Y, "graph 1 of X has 1 edges, but features of 2"),
    ([X[0], (np.ones((2, 2)), [[0, 2]])], Y, r"edge 0 of graph 1 of X is \(0, 2\), but its nodes are 0, "),
    ([X[0], (np.ones((2, 2)), [[0.0, 1.0]])], Y, "graph 1 of X has edges that are a list, expected ints"),
    ([X[0], (np.ones((2, 2)), [[1, 1]])], Y, "edge 0 of graph 1 of X joins node 1 to itself"),
    ([X[0], (np.ones((2, 2)), [[0, 1], [1, 0]])], Y, r"edge 1 of graph 1 of X joins the nodes \(1, 0\), as"),
    ([CYCLE, X[1]], Y, "graph 0 of X has a cycle, but inference='tree' is for graphs without"),
    (X, [["a", "b", "b"]], "X has 2 graphs, but y has 1"),
    (X, [["a", "a", "a"], ["a", "a"]], "y must have at least two different labels"),
]


@pytest.mark.parametrize(("graphs", "y", "message"), REFUSED)
def test_wrong_graphs_and_labels_are_refused(graphs: Any, y: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^Graph: {message}") as caught:
        Graph.from_graphs(graphs, y)
    assert "\n" not in str(caught.value)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^Graph: inference='cut' is for two labels, got 3; use"):
        Graph.from_graphs(X, [["a", "b", "c"], ["a", "a"]], inference="cut")
    with pytest.raises(ValueError, match=r"^Graph: inference must be one of .*, got 'guess'"):
        Graph.from_graphs(X, Y, inference="guess")
    with pytest.raises(ValueError, match=r"^Graph: node_weights must be a list of 2 arrays, one per graph"):
        Graph.from_graphs(X, Y, node_weights=[[1, 1, 1]])
    for weights, got in (([1, 1, 1], "3 of sum 3"), ([0, 0], "2 of sum 0"), ([1, -1], "2 of sum 0")):
        with pytest.raises(ValueError, match=rf"^Graph: node_weights of graph 1 must be 2 .*, got {got}"):
            Graph.from_graphs(X, Y, node_weights=[[1, 1, 1], weights])
