"""The multilabel estimator: its tree of labels, its predictions, and how it works with scikit-learn."""

import pickle
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from maxmargin import MultilabelSVC
from maxmargin.structures.label_sets.estimator import LabelledRows
from maxmargin.structures.label_sets.model import chow_liu, mutual_information
from maxmargin.structures.problem import n_bytes

_rng = np.random.default_rng(0)
X = _rng.normal(size=(30, 3))
Y = np.column_stack([X[:, 0] > 0, X[:, 0] + 0.3 * _rng.normal(size=30) > 0, X[:, 1] > 0, X[:, 2] > 0.5]) * 1


def fitted(features=X, labels=Y, **parameters):
    return MultilabelSVC(**{"C": 1.0, "tol": 0.02, "random_state": 0} | parameters).fit(features, labels)


def score_of(model, x, y):
    """The score of a set of labels, by its formula."""
    y = np.asarray(y)
    return y @ (model.coef_ @ x + model.intercept_) + sum(
        table[y[a], y[b]] for (a, b), table in zip(model.edges_, model.edge_coef_, strict=True)
    )


def test_information_shared_by_labels_is_measured():
    found = mutual_information(Y)
    for a, b in combinations(range(4), 2):
        assert found[a, b] == pytest.approx(mutual_info_score(Y[:, a], Y[:, b]), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_of_labels_is_the_best_of_all(seed):
    y = np.random.default_rng(seed).integers(2, size=(20, 4))
    y[:, 2] |= y[:, 0]
    shared, best = mutual_information(y), -1.0
    for edges in combinations(combinations(range(4), 2), 3):
        reached = {0}
        for _ in range(3):
            reached |= {v for edge in edges for v in edge if reached & set(edge)}
        if len(reached) == 4:
            best = max(best, sum(shared[edge] for edge in edges))
    edges = chow_liu(y)
    assert edges.shape == (3, 2)
    assert sum(shared[a, b] for a, b in edges) == pytest.approx(best)


@pytest.mark.parametrize(
    ("structure", "n_edges"), [("independent", 0), ("tree", 3), ("full", 6), ("auto", 6)]
)
def test_predictions_have_the_highest_score(structure, n_edges):
    model = fitted(structure=structure)
    assert model.structure_ == ("full" if structure == "auto" else structure)
    assert model.edges_.shape == (n_edges, 2)
    assert model.edge_coef_.shape == (n_edges, 2, 2)
    predicted = model.predict(X)
    for x, y in zip(X, predicted, strict=True):
        best = max(score_of(model, x, z) for z in product((0, 1), repeat=4))
        assert score_of(model, x, y) == pytest.approx(best, abs=1e-9)
    assert model.score(X, Y) == accuracy_score(Y, predicted) > 0.4


@pytest.mark.parametrize("structure", ["tree", "full"])
@pytest.mark.parametrize(("loss", "unit"), [("hamming", 1.0), ("normalized_hamming", 0.25)])
def test_the_certificate_is_that_of_an_enumeration(structure, loss, unit):
    model = fitted(C=0.1, structure=structure, loss=loss)
    hinges = [
        max(
            unit * np.sum(z != y) + score_of(model, x, z) - score_of(model, x, y)
            for z in product((0, 1), repeat=4)
        )
        for x, y in zip(X, Y, strict=True)
    ]
    # Steps leave opposite weights for a label and for its absence: each squared length is halved. A pair
    # has a feature of three.
    squares = ((model.coef_**2).sum() + (model.intercept_**2).sum()) / 2 + (model.edge_coef_**2).sum() / 9
    primal = squares / (2 * 0.1 * len(X)) + np.mean(hinges)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert model.gap_ <= 0.02 * primal


@pytest.mark.parametrize("structure", ["independent", "tree", "full"])
def test_decision_function_is_the_difference_of_best_sets(structure):
    model = fitted(structure=structure)
    decision = model.decision_function(X)
    np.testing.assert_array_equal(decision > 0, model.predict(X) == 1)
    for x, margins in zip(X, decision, strict=True):
        scores = {z: score_of(model, x, z) for z in product((0, 1), repeat=4)}
        for label, margin in enumerate(margins):
            best = [max(score for z, score in scores.items() if z[label] == k) for k in (0, 1)]
            assert margin == pytest.approx(best[1] - best[0], abs=1e-9)


def test_decision_function_agrees_with_predictions():
    model = fitted(X[:20], Y[:20], kernel="rbf", tol=0.1)
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)
    names = np.where(Y[:, 0] == 1, "yes", "no")
    vector = fitted(labels=names)
    assert vector.decision_function(X).shape == (30,)
    np.testing.assert_array_equal(vector.classes_[(vector.decision_function(X) > 0) * 1], vector.predict(X))


def test_decision_function_works_for_more_labels_than_are_enumerated():
    features, labels = X[:3], np.random.default_rng(3).integers(2, size=(3, 13))
    with pytest.warns(ConvergenceWarning):
        model = fitted(features, labels, structure="full", max_iter=1, tol=0.0)
    np.testing.assert_array_equal(model.decision_function(features) > 0, model.predict(features) == 1)
    assert fitted(features, labels).structure_ == "tree"


def test_features_and_labels_have_names():
    pandas = pytest.importorskip("pandas")
    few = slice(0, 12)
    table = pandas.DataFrame(X[few], columns=list("abc"))
    sets = pandas.DataFrame(Y[few], columns=["w", "x", "y", "z"])
    model = fitted(table, sets)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.classes_.tolist() == ["w", "x", "y", "z"]
    np.testing.assert_array_equal(model.predict(table), fitted(X[few], Y[few]).predict(X[few]))
    assert model.score(table, sets) == model.score(table, Y[few])
    assert fitted(X[few], pandas.DataFrame(Y[few])).classes_.tolist() == [0, 1, 2, 3]
    started = MultilabelSVC(random_state=0).partial_fit(table, sets)
    with pytest.raises(ValueError, match=r"^MultilabelSVC: y has the columns .* give them in this order"):
        started.partial_fit(table, sets[["x", "w", "y", "z"]])
    with pytest.raises(ValueError, match=r"^MultilabelSVC: two columns of y are called 'w'; give"):
        fitted(table, sets.set_axis(["w", "x", "w", "z"], axis=1))


def test_truths_have_the_columns_of_fit():
    pandas = pytest.importorskip("pandas")
    few = slice(0, 12)
    sets = pandas.DataFrame(Y[few], columns=["w", "x", "y", "z"])
    model = MultilabelSVC(structure="tree", random_state=0).fit(X[few], sets)
    other = sets[["x", "w", "y", "z"]]
    for call in (model.score, model.calibrate):
        with pytest.raises(ValueError, match=r"y has the columns \['x', 'w', .* expected \['w', 'x', "):
            call(X[few], other)
    # Columns without names, or a model without them, are taken in their order.
    assert model.score(X[few], sets) == model.score(X[few], pandas.DataFrame(Y[few]))
    assert MultilabelSVC(random_state=0).fit(X[few], Y[few]).score(X[few], sets) >= 0.0


@pytest.mark.parametrize(
    "tags",
    [
        [{"a", "b"}, {"c"}],
        [("a",), ("b",)],
        [["a", "b"], ["c", "d"]],
        [[0, 2], [1]],
        np.array([{1}, {2}]),
    ],
)
def test_lists_of_labels_are_told_about_the_binarizer(tags):
    features = X[:2]
    with pytest.raises(ValueError, match=r"^MultilabelSVC: y must be zeros .* use MultiLabelBinarizer\(\)"):
        fitted(features, tags)
    model = MultilabelSVC(max_iter=1, tol=10.0, random_state=0).fit(X[:8], Y[:8])
    with pytest.raises(ValueError, match=r"^MultilabelSVC: y must be zeros .* use MultiLabelBinarizer\(\)"):
        model.score(features, tags)


@pytest.mark.parametrize(("loss", "factor"), [("hamming", 2.0), ("normalized_hamming", 4.0)])
def test_without_pairs_each_label_has_a_binary_svm(loss, factor):
    features, labels = X[:20], Y[:20, [0, 2]]
    model = fitted(features, labels, structure="independent", loss=loss, C=0.1, tol=1e-7, max_iter=5000)
    for label in range(2):
        rival = LinearSVC(loss="hinge", C=0.1 * factor, tol=1e-8, max_iter=100_000, random_state=0)
        rival.fit(features, labels[:, label])
        scale = factor / 2.0  # a share of 1/2 makes margins half as large
        # A gap of 1e-4, at which training stops, leaves errors of up to 0.03 at this C.
        np.testing.assert_allclose(scale * model.coef_[label], rival.coef_[0], atol=0.03 * scale)
        np.testing.assert_allclose(scale * model.intercept_[label], rival.intercept_[0], atol=0.03 * scale)


@pytest.mark.long
def test_sparse_features_clones_pickles_and_grid_searches_work():
    model, sparse = fitted(), fitted(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(model.coef_, sparse.coef_)
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    search = GridSearchCV(model, {"structure": ["independent", "tree"]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.3


def test_wrong_tables_are_refused():
    with pytest.raises(ValueError, match=r"^MultilabelSVC: y must be zeros and ones, .* got 2"):
        fitted(labels=Y + 1)
    with pytest.raises(ValueError, match=r"^MultilabelSVC: .*inconsistent numbers of samples"):
        fitted(labels=Y[:5])
    with pytest.raises(ValueError, match=r"^MultilabelSVC: Input X contains NaN"):
        fitted(np.where(X > 2.0, np.nan, X))
    with pytest.raises(
        ValueError, match=r"^MultilabelSVC: X has 2 features, but MultilabelSVC is expecting 3"
    ):
        fitted().predict(X[:, :2])


def a_large_set(n=200, n_features=40, n_labels=100, sparse=False):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, n_features))
    if sparse:
        features = scipy.sparse.csr_array(features * (rng.random((n, n_features)) < 0.5))
    return features, (rng.random((n, n_labels)) < 0.2).astype(np.int64)


@pytest.mark.parametrize("structure", ["independent", "tree"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_row_is_stored_once_for_all_labels(structure, sparse, monkeypatch):
    """The problem takes at most three times the memory of X, and that of weights and outputs."""
    features, labels = a_large_set(sparse=sparse)
    problems, problem_of = [], LabelledRows.problem
    monkeypatch.setattr(
        LabelledRows,
        "problem",
        lambda self, model, given: problems.append(problem_of(self, model, given)) or problems[-1],
    )
    model = fitted(features, labels, structure=structure, max_iter=1, tol=10.0)
    parts = [features.data, features.indices, features.indptr] if sparse else features
    allowed = 3 * n_bytes(parts) + model._w.nbytes
    assert n_bytes(problems[0]) <= allowed + labels.nbytes
    assert n_bytes(model._structure.ask(model, features).problem) <= allowed
    assert allowed < 0.5 * labels.shape[1] * n_bytes(parts)
