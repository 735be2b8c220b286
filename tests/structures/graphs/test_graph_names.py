"""Graphs whose nodes and edges have named features: paths, as templates with pairs of labels make them."""

import pickle
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from maxmargin import GraphSVC, grid_edges, load
from support import naive

WORDS = [["a", "b", "a"], ["b", "a"], ["c", "b"], ["a"], ["b", "b", "c"]]
Y = [["P", "Q", "Q"], ["Q", "P"], ["P", "P"], ["P"], ["Q", "P", "P"]]
RUN = {"C": 0.7, "tol": 1e-4, "random_state": 0, "verbose": 0}


def graph(words: list[str]) -> Any:
    """A path whose edges have one feature that all share, and one of the pair of words."""
    edges = [["B", f"{a} {b}"] for a, b in pairwise(words)]
    return [[word] for word in words], grid_edges((1, len(words))), edges


X = [graph(words) for words in WORDS]
NODES, EDGES = ["a", "b", "c"], ["B", "a b", "b a", "c b", "b b", "b c"]


def rows(features: list[list[str]], names: list[str]) -> naive.Array:
    """Return features as a matrix of counts."""
    return np.array([[float(own.count(name)) for name in names] for own in features]).reshape(-1, len(names))


def as_arrays(X: Any) -> Any:
    return [(rows(nodes, NODES), ends, rows(edges, EDGES)) for nodes, ends, edges in X]


def score(model: GraphSVC, words: list[str], y: tuple[int, ...]) -> float:
    """The score of a labelling, with weights by their names alone."""
    nodes = dict(zip(model.feature_names_ or (), model.coef_.T, strict=True))
    edges = dict(zip(model.edge_feature_names_ or (), model.edge_coef_, strict=True))
    total = sum(nodes[word][k] for word, k in zip(words, y, strict=True) if word in nodes)
    for (a, b), pair in zip(pairwise(words), pairwise(y), strict=True):
        total += sum(edges[name][pair] for name in ("B", f"{a} {b}") if name in edges)
    return float(total)


def test_names_are_numbered_and_the_model_is_that_of_arrays() -> None:
    model = GraphSVC(**RUN).fit(X, Y)
    assert (model.feature_names_, model.edge_feature_names_) == (NODES, EDGES)
    assert (model.n_features_in_, model.n_edge_features_in_) == (3, 6)
    arrays = GraphSVC(**RUN).fit(as_arrays(X), Y)
    assert arrays.feature_names_ is arrays.edge_feature_names_ is None
    np.testing.assert_allclose(model.coef_, arrays.coef_, atol=1e-12)
    np.testing.assert_allclose(model.edge_coef_, arrays.edge_coef_, atol=1e-12)


def test_the_optimum_is_that_of_a_quadratic_program() -> None:
    model = GraphSVC(**RUN).fit(X, Y)
    truths = [np.searchsorted(["P", "Q"], y) for y in Y]
    data = naive.enumerate_graphs(
        as_arrays(X), truths, 1.0 - np.eye(2), [np.ones(len(y)) for y in Y], has_bonds=False
    )
    best = naive.optimum(data, 1.0 / (RUN["C"] * len(X)))
    objective = naive.primal(data, np.r_[model.coef_.ravel(), model.edge_coef_.ravel()], 1.0 / (0.7 * len(X)))
    assert best.dual - 1e-9 <= objective <= best.primal + model.gap_ + 1e-9
    assert model.gap_ <= 1e-4 * objective + 1e-6


def test_predictions_have_the_highest_score_of_all_labellings() -> None:
    model = GraphSVC(**{**RUN, "C": 0.1}).fit(X, Y)
    for words in [*WORDS, ["c", "new", "a", "b"], ["new"], ["b", "b", "b"]]:
        found = model.predict([graph(words)])[0].tolist()
        scores = {y: score(model, words, y) for y in product((0, 1), repeat=len(words))}
        assert scores[tuple("PQ".index(label) for label in found)] == pytest.approx(
            max(scores.values()), abs=1e-12
        )


def test_empty_graphs_change_nothing() -> None:
    """They have empty outputs, and change nothing in training, whatever their weight is."""
    empty: Any = ([], [], [])
    model = GraphSVC(**RUN).fit(X, Y)
    more = GraphSVC(**RUN).fit([empty, *X, ([], [])], [[], *Y, []])
    assert more.coef_.tobytes() == model.coef_.tobytes()
    weights = np.arange(1.0, 6.0)
    weighted = GraphSVC(**RUN).fit([*X, empty], [*Y, []], sample_weight=[*weights, 7.0])
    assert weighted.coef_.tobytes() == GraphSVC(**RUN).fit(X, Y, sample_weight=weights).coef_.tobytes()
    void = GraphSVC(void="?", **RUN).fit([*X, empty, graph(["c"])], [*Y, [], ["?"]])
    assert void.coef_.tobytes() == model.coef_.tobytes()
    costs = [np.ones(len(y)) for y in Y]
    assert GraphSVC(**RUN).fit([*X, empty], [*Y, []], [*costs, []]).coef_.tobytes() == model.coef_.tobytes()

    alone, among = model.predict(X), more.predict([empty, X[0], empty, *X[1:], empty])
    assert [y.tolist() for y in among] == [[], alone[0].tolist(), [], *(y.tolist() for y in alone[1:]), []]
    assert [y.tolist() for y in model.predict([empty, empty])] == [[], []]
    assert [m.tolist() for m in model.predict_margins([empty])] == [[]]
    assert len(model.predict_margins([empty, X[0]])[1]) == 3
    assert model.score([empty, *X], [[], *Y]) == model.score(X, Y)
    assert model.explain(empty).contributions == ()
    model.calibrate([empty, *X], [[], *Y])
    shapes = [p.shape for p in model.predict_marginals([X[0], empty])]
    assert shapes == [(3, 2), (0, 2)]


def test_rare_names_are_left_out() -> None:
    model = GraphSVC(min_count=2, **RUN).fit(X, Y)
    assert model.feature_names_ == NODES
    assert model.edge_feature_names_ == ["B", "b a"]
    assert GraphSVC(min_count=3, **RUN).fit(X, Y).feature_names_ == ["a", "b"]
    with pytest.raises(
        ValueError, match=r"^GraphSVC: no node of X has a feature .* min_count=9 nodes; give the"
    ):
        GraphSVC(min_count=9, **RUN).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"^GraphSVC: no edge of X has a feature .* min_count=7 edges; give the"
    ):
        GraphSVC(min_count=7, **RUN).fit([*X, (*graph(["a"] * 7)[:2], [["x"]] * 6)], [*Y, ["P"] * 7])


def test_names_may_have_values_and_be_of_nodes_or_edges_alone() -> None:
    named = [([{"word": "a", "x": 2.0}, {"x": 0.5}], [(0, 1)], [{"near": True, "far": 0.25}])]
    model = GraphSVC(**RUN).fit(named, [[0, 1]])
    assert (model.feature_names_, model.edge_feature_names_) == (["word=a", "x"], ["near", "far"])
    arrays = [(np.array([[1.0, 2.0], [0.0, 0.5]]), [(0, 1)], np.array([[1.0, 0.25]]))]
    expected = GraphSVC(**RUN).fit(arrays, [[0, 1]])
    for nodes, edges in ((named, arrays), (arrays, named)):
        mixed = [(nodes[0][0], [(0, 1)], edges[0][2])]
        found = GraphSVC(**RUN).fit(mixed, [[0, 1]])
        np.testing.assert_allclose(found.edge_coef_, expected.edge_coef_)
        assert [y.tolist() for y in found.predict(mixed)] == [[0, 1]]
    bare = GraphSVC(**RUN).fit([(nodes, ends) for nodes, ends, _ in X], Y)
    assert (bare.feature_names_, bare.edge_feature_names_, bare.n_edge_features_in_) == (NODES, None, 1)


def test_further_calls_ignore_new_names() -> None:
    model = GraphSVC(**RUN).partial_fit(X[:3], Y[:3], classes=["P", "Q"]).partial_fit(X[3:], Y[3:])
    assert model.edge_feature_names_ == EDGES[:4]
    assert model.coef_.shape == (2, 3)
    with pytest.raises(ValueError, match=r"^GraphSVC: each graph of X is empty; give one or more"):
        model.partial_fit([([], [], [])], [[]])


def test_weights_and_contributions_have_names() -> None:
    model = GraphSVC(**RUN).fit(X, Y)
    assert set(model.top_features(k=6)["feature"]) <= set(NODES)
    top = model.top_transitions(1).iloc[0]
    assert top["feature"] in EDGES
    j, k = ("PQ".index(top[side]) for side in ("before", "after"))
    assert top["weight"] == model.edge_coef_[EDGES.index(top["feature"]), j, k]
    found = model.explain(X[0])
    assert {row.feature for row in found.contributions if row.kind == "edge"} <= {"B", "a b", "b a"}
    total = sum(row.contribution for row in found.contributions)
    assert total == pytest.approx(max(score(model, WORDS[0], y) for y in product((0, 1), repeat=3)))


def test_pickles_and_files_have_the_names(tmp_path: Any) -> None:
    model = GraphSVC(**RUN).fit(X, Y)
    model.save(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        assert (other.feature_names_, other.edge_feature_names_) == (NODES, EDGES)
        assert [y.tolist() for y in other.predict(X)] == [y.tolist() for y in model.predict(X)]
        with pytest.raises(
            TypeError, match=r"^GraphSVC: edge 1 of graph 0 of X has the feature 3 \(int\), expected a"
        ):
            other.predict([([["a"]] * 3, [(0, 1), (1, 2)], [["B"], ["B", 3]])])


def test_wrong_names_are_refused() -> None:
    model = GraphSVC(**RUN).fit(X, Y)
    refused = [
        (
            (np.ones((2, 3)), [(0, 1)], [["B"]]),
            TypeError,
            "graph 0 of X is a 2-D array of numbers, but GraphSVC was",
        ),
        (([["a"], ["b"]], [(0, 1)]), ValueError, "graph 0 of X has 1 edges, but features of 0; give one row"),
        (
            ([["a"], ["b"]], [(0, 1)], [["B"], ["B"]]),
            ValueError,
            "graph 0 of X has 1 edges, but features of 2",
        ),
        (([["a"], "b"], [(0, 1)], [["B"]]), TypeError, "node 1 of graph 0 of X is the plain string 'b'"),
        (([["a"]], [(0, 1)], [["B"]]), ValueError, "edge 0 of graph 0 of X is"),
        (([{"a": float("nan")}], [], []), ValueError, "feature 'a' of node 0 of graph 0 of X is"),
    ]
    for item, kind, message in refused:
        with pytest.raises(kind, match=f"^GraphSVC: {message}"):
            model.predict([item])
    arrays = GraphSVC(**RUN).fit(as_arrays(X), Y)
    with pytest.raises(
        ValueError, match=r"^GraphSVC: graph 0 of X has node features that are .*, expected numbers"
    ):
        arrays.predict(X)
    with pytest.raises(
        ValueError, match=r"^GraphSVC: no graph of X has an edge with features; give one that has"
    ):
        GraphSVC(**RUN).fit([graph(["a"]), graph(["b"])], [["P"], ["Q"]])
