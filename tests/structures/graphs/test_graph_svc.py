"""The graph estimator: its weights, what it refuses, and how it works with scikit-learn."""

import pickle
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from maxmargin import GraphSVC, grid_edges
from maxmargin.problems import Graph
from maxmargin.structures.graphs.encode import encode_graphs

SHAPES = [(2, 3), (3, 2), (1, 4), (2, 2), (3, 3), (2, 3)]
_rng = np.random.default_rng(0)


def _image(shape, rng):
    """A bright side and a dark one, seen through noise."""
    y = np.where(np.broadcast_to(np.arange(shape[1]) >= shape[1] // 2, shape), "light", "dark")
    nodes = np.stack([(y == "light") + 0.6 * rng.normal(size=shape), np.ones(shape)], axis=-1)
    return (nodes.reshape(-1, 2), grid_edges(shape)), y


X, Y = (list(side) for side in zip(*(_image(shape, _rng) for shape in SHAPES), strict=True))
TREES = [(nodes, [(v, v + 1) for v in range(len(nodes) - 1)]) for nodes, _ in X]


def fitted(graphs=X, labels=Y, node_weights=None, **parameters):
    parameters = {"C": 1.0, "tol": 0.02, "random_state": 0} | parameters
    return GraphSVC(**parameters).fit(graphs, labels, node_weights)


def objective(model, graphs, truths, C, costs=None):
    """The objective of trees, from all labellings; nodes of label -1 are not there."""
    hinges = []
    for (nodes, edges), truth in zip(graphs, truths, strict=True):
        there = np.flatnonzero(truth >= 0)
        number = {int(v): k for k, v in enumerate(there)}
        graph = nodes[there], [(number[a], number[b]) for a, b in edges if a in number and b in number]
        y = truth[there]
        cost = np.ones(len(y)) if costs is None else np.asarray(costs)[y]
        values = [
            cost @ (np.array(z) != y) / len(y) + score_of(model, graph, z) - score_of(model, graph, y)
            for z in product(range(len(model.classes_)), repeat=len(y))
        ]
        hinges.append(max(values))
    squares = (model.coef_**2).sum() + (model.edge_coef_**2).sum()
    return squares / (2 * C * len(graphs)) + np.mean(hinges)


def score_of(model, graph, y):
    """The score of a labelling by numbers, by its formula."""
    nodes, edges = graph
    total = sum(x @ model.coef_[k] for x, k in zip(nodes, y, strict=True))
    for a, b in edges:
        if model.edge_coef_.ndim == 1:
            total += max(model.edge_coef_[0], 0.0) * (y[a] == y[b])
        else:
            total += model.edge_coef_[0, y[a], y[b]]
    return total


def total_score(weights, graph, y):
    """The score of a labelling by numbers, with features of edges."""
    nodes, ends, edges = graph
    total = sum(x @ weights[0][k] for x, k in zip(nodes, y, strict=True))
    return total + sum(x @ weights[1][:, y[a], y[b]] for x, (a, b) in zip(edges, ends, strict=True))


@pytest.mark.parametrize(("graphs", "inference"), [(X, "cut"), (TREES, "tree")])
def test_predictions_have_the_highest_score(graphs, inference):
    model = fitted(graphs)
    assert model.inference_ == inference
    assert model.classes_.tolist() == ["dark", "light"]
    for graph, predicted in zip(graphs, model.predict(graphs), strict=True):
        y = np.searchsorted(model.classes_, predicted)
        best = max(score_of(model, graph, z) for z in product((0, 1), repeat=len(y)))
        assert score_of(model, graph, y) == pytest.approx(best, abs=1e-12)


def test_the_certificate_is_that_of_an_enumeration():
    rng = np.random.default_rng(2)
    C, weights = 0.5, [rng.uniform(0.5, 2.0, y.size) for y in Y]
    model = fitted(TREES, node_weights=weights, C=C, loss="normalized_hamming", tol=1e-3)
    hinges = []
    for graph, truth, w in zip(TREES, Y, weights, strict=True):
        y = np.searchsorted(model.classes_, truth.ravel())
        values = [
            w @ (np.array(z) != y) / w.sum() + score_of(model, graph, z) - score_of(model, graph, y)
            for z in product((0, 1), repeat=len(y))
        ]
        hinges.append(max(values))
    squares = (model.coef_**2).sum() + (model.edge_coef_**2).sum()
    primal = squares / (2 * C * len(X)) + np.mean(hinges)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0 <= model.gap_ <= 1e-3
    assert model.n_iter_ == model.history_.passes[-1]


def with_void(void, label):
    """The labels with every third node void."""
    hidden = [np.where(np.arange(y.size) % 3 == 1, void, label(y.ravel())) for y in Y]
    return [*hidden[:-1], np.full(Y[-1].size, void)]  # the last graph has no other node


@pytest.mark.parametrize(("void", "label"), [(255, lambda y: (y == "light") * 1), ("?", lambda y: y)])
def test_void_nodes_are_not_there(void, label):
    truths = with_void(void, label)
    model = fitted(TREES, truths, void=void, C=0.5, loss="normalized_hamming", tol=1e-3)
    assert void not in model.classes_.tolist()
    codes = [np.where(y == void, -1, np.searchsorted(model.classes_, y)) for y in truths[:-1]]
    primal = objective(model, TREES[:-1], codes, 0.5)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    predicted = model.predict(TREES)
    assert [len(p) for p in predicted] == [len(nodes) for nodes, _ in TREES]
    assert void not in np.concatenate(predicted)
    known = np.concatenate(truths) != void
    right = np.concatenate(predicted)[known] == np.concatenate(truths)[known]
    assert model.score(TREES, truths) == right.mean()


def test_void_nodes_can_have_weights_and_further_calls():
    truths = with_void(255, lambda y: (y == "light") * 1)
    some = fitted(TREES, truths, void=255, C=0.5)
    weighted = GraphSVC(C=0.5, tol=0.02, random_state=0, void=255)
    weighted.fit(TREES, truths, sample_weight=np.ones(len(TREES)))
    np.testing.assert_allclose(weighted.coef_, some.coef_)
    more = GraphSVC(C=0.5, loss="normalized_hamming", tol=1e-3, random_state=0, void=255)
    for part in (slice(0, 2), slice(2, None)):
        more.partial_fit(TREES[part], truths[part], classes=[0, 1, 255])
    codes = [np.where(y == 255, -1, y) for y in truths[:-1]]
    assert more.classes_.tolist() == [0, 1]
    assert objective(more, TREES[:-1], codes, 0.5) == pytest.approx(more.history_.primal.min(), rel=1e-9)


def test_inference_is_chosen_with_void_nodes():
    """Without them the graph has no cycle, but the graphs to predict have."""
    y = np.array([[0, 1], [1, 9]])
    model = fitted([X[3]], [y], void=9)
    assert model.inference_ == "cut"
    assert model.predict([X[3]])[0].shape == (4,)


def test_class_weights_are_those_of_an_enumeration():
    factors = {"light": 3.0}
    model = fitted(TREES, class_weight=factors, C=0.5, loss="normalized_hamming", tol=1e-3)
    codes = [np.searchsorted(model.classes_, y.ravel()) for y in Y]
    primal = objective(model, TREES, codes, 0.5, costs=[1.0, 3.0])
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    counts = np.bincount(np.concatenate(codes))
    balanced = fitted(TREES, class_weight="balanced", C=0.5)
    same = fitted(
        TREES, class_weight=dict(zip(["dark", "light"], counts.sum() / (2 * counts), strict=True)), C=0.5
    )
    np.testing.assert_allclose(balanced.coef_, same.coef_)


def test_the_search_is_bounded_by_choice():
    """On dense graphs with random weights, messages alone miss some of the best labellings."""
    rng = np.random.default_rng(1)
    ends = np.array([(a, b) for a in range(5) for b in range(a)])
    graphs = [(rng.normal(size=(5, 2)), ends, rng.normal(size=(len(ends), 2))) for _ in range(20)]
    model = GraphSVC(inference="messages", max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(graphs, [rng.integers(3, size=5) for _ in graphs])
    model._w = rng.normal(size=model._w.shape)
    weights = Graph.for_prediction(encode_graphs(graphs), 3, "messages").unpack(model._w)
    scores = [{y: total_score(weights, graph, y) for y in product(range(3), repeat=5)} for graph in graphs]
    exact, hasty = model.predict(graphs), model.set_params(search=0).predict(graphs)
    exact, hasty = (
        [table[tuple(y)] for table, y in zip(scores, found, strict=True)] for found in (exact, hasty)
    )
    np.testing.assert_allclose(exact, [max(table.values()) for table in scores], atol=1e-9)
    assert sum(hasty) < sum(exact) - 1e-6
    with pytest.raises(ValueError, match="The 'search' parameter of GraphSVC must be"):
        model.set_params(search=-1).predict(graphs)


def test_score_is_the_share_of_right_nodes():
    model = fitted(C=10.0, loss="hamming")
    assert model.edge_coef_[0] > 0
    right = [(p == y.ravel()) for p, y in zip(model.predict(X), Y, strict=True)]
    assert model.score(X, Y) == np.concatenate(right).mean() > 0.85
    unseen = [np.where(y == "light", "bright", y) for y in Y]
    assert model.score(X, unseen) < model.score(X, Y)


def test_messages_train_on_graphs_with_cycles():
    labels = [np.arange(y.size) % 3 for y in Y]
    model = fitted(labels=labels, max_iter=50, tol=0.1)
    assert model.inference_ == "messages"
    assert model.edge_coef_.shape == (1, 3, 3)
    assert model.predict(X)[0].dtype == np.int64


def test_clones_pickles_and_threads_agree():
    model = fitted(n_jobs=2)
    assert clone(model).get_params() == model.get_params()
    other = pickle.loads(pickle.dumps(model))
    for one, two, alone in zip(model.predict(X), other.predict(X), fitted().predict(X), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, alone)


def test_a_search_for_C_keeps_the_best_score():
    search = GridSearchCV(GraphSVC(tol=0.1, random_state=0), {"C": [0.01, 1.0]}, cv=KFold(2))
    search.fit(X, Y, node_weights=[np.ones(y.size) for y in Y])
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.5
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)


def test_warm_start_goes_on():
    model = fitted(warm_start=True)
    assert model.n_iter_ > 0
    assert model.fit(X, Y).n_iter_ == 0
    model.set_params(C=2.0).fit(X, Y)
    assert model.gap_ <= 0.02 * max(model.history_.primal.min(), 1.0)


def test_a_fit_that_does_not_converge_warns():
    with pytest.warns(ConvergenceWarning, match=r"^GraphSVC: .* raise max_iter or tol, or lower C"):
        fitted(tol=0.0, max_iter=1, C=100.0)


def test_wrong_data_and_parameters_are_refused():
    with pytest.raises(NotFittedError):
        GraphSVC().predict(X)
    with pytest.raises(ValueError, match="The 'inference' parameter of GraphSVC must be"):
        fitted(inference="guess")
    with pytest.raises(
        ValueError, match=r"^GraphSVC: graph 0 of X has a cycle, but inference='tree' is for graphs"
    ):
        fitted(inference="tree")
    forest = GraphSVC(verbose=0, random_state=0).fit([(x, edges[:1]) for x, edges in X], Y)
    with pytest.raises(ValueError, match=r"^GraphSVC: graph 0 of X has a cycle, but inference='tree' is for"):
        forest.predict(X)
    with pytest.raises(ValueError, match=r"^GraphSVC: nodes of X have 1 features, but .* fitted with 2"):
        fitted().predict([(nodes[:, :1], edges) for nodes, edges in X])
    with pytest.raises(ValueError, match=r"^GraphSVC: edges of X have 2 features, but .* fitted with 1"):
        fitted().predict([(nodes, edges, np.ones((len(edges), 2))) for nodes, edges in X])
    with pytest.raises(ValueError, match=r"^GraphSVC: X has 6 graphs, but y has 5; .* per graph"):
        fitted(labels=Y[:5])
    with pytest.raises(ValueError, match=r"^GraphSVC: graph 0 has 6 nodes in X, but 5 labels .* per node"):
        fitted(labels=[Y[0].ravel()[:5], *Y[1:]])
    with pytest.raises(TypeError, match=r"^GraphSVC: label 1 of graph 1 of y is .* expected a str or an int"):
        fitted(labels=[Y[0], ["dark", None, "dark", "dark", "dark", "dark"], *Y[2:]])
    with pytest.raises(TypeError, match=r"^GraphSVC: .* if y is one graph pass \[y\]"):
        fitted(labels=["dark"] * 6)
    with pytest.raises(ValueError, match=r"^GraphSVC: y must have at least two different labels"):
        fitted(labels=[np.zeros(y.size, dtype=int) for y in Y])
    with pytest.raises(
        TypeError, match=r"^GraphSVC: void must be of type str, as the labels of y are, got 5"
    ):
        fitted(void=5)
    with pytest.raises(ValueError, match=r"^GraphSVC: y has no label but 1, which is void; give other"):
        fitted(labels=[np.ones(y.size, dtype=int) for y in Y], void=1)
    with pytest.raises(ValueError, match=r"^GraphSVC: node_weights are zero at all nodes that are not void"):
        fitted(void="dark", node_weights=[(y == "dark") * 1.0 for y in Y])
    with pytest.raises(ValueError, match=r"^GraphSVC: class_weight must be None where rescaling is 'slack'"):
        fitted(TREES, class_weight="balanced", rescaling="slack")
