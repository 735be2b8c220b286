"""Examples given in parts, and threads, in the estimators of every structure."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from maxmargin import (
    Accelerated,
    ChainSVC,
    DependencySVC,
    Divided,
    GraphSVC,
    MatchingSVC,
    MulticlassSVC,
    MultilabelSVC,
    Pairwise,
    StructuredSVC,
    grid_edges,
    pickle_training_data,
    solve,
)
from maxmargin.encoding.kinds import joined
from maxmargin.problems import Chain
from maxmargin.structures.graphs.encode import Graphs

N = 8


def _noise(i: int, *shape: int) -> Any:
    return np.random.default_rng(i).normal(size=shape)


def _pair(i: int) -> tuple[Any, Any]:
    truth = np.eye(2 + i % 2, 3, dtype=bool)
    return truth[:, :, None] * [1.0, 0.0] + 0.4 * np.random.default_rng(i).normal(
        size=(*truth.shape, 2)
    ), truth.astype(int)


def _sentence(i: int) -> tuple[Any, Any]:
    heads = np.arange(1 + i % 3)
    truth = np.equal.outer(heads, np.arange(len(heads) + 1))
    return truth[:, :, None] * [1.0, 0.0] + 0.4 * np.random.default_rng(i).normal(
        size=(*truth.shape, 2)
    ), heads


def _image(i: int) -> tuple[Any, Any]:
    shape = (2, 2 + i % 2)
    y = np.broadcast_to(np.arange(shape[1]) > 0, shape).ravel() * 1
    return (
        np.c_[y + 0.5 * _noise(i, y.size), np.ones(y.size)],
        grid_edges(shape),
    ), y


def _row(i: int) -> tuple[Any, Any]:
    x = _noise(i, 3)
    return x, (x > [0.0, 0.0, 0.5]) * 1


def _word(i: int) -> tuple[Any, Any]:
    return f"w{i % 4}", i % 4 % 3


def word_features(x: str, y: int) -> dict[Any, float]:
    return {(x, y): 1.0}


def zero_one(y_true: int, y: int) -> float:
    return float(y_true != y)


def best_word(x: str, w: Any, y_true: int | None = None) -> int:
    return max(range(3), key=lambda y: w[x, y] + (0.0 if y_true is None else zero_one(y_true, y)))


class Setting(NamedTuple):
    """An estimator and its examples."""

    estimator: Any
    X: Any
    y: Any


def _setting(estimator: Any, example: Any, stack: Any = list) -> Setting:
    X, y = zip(*map(example, range(N)), strict=True)
    options = {"tol": 0.005, "max_iter": 3000, "check_every": 1, "random_state": 0}
    return Setting(estimator.set_params(**options), stack(X), stack(y))


NAMES = [(name, 0) for name in ("w0", "w1", "w2", "w3")] + [(f"w{i}", k) for i in range(4) for k in (1, 2)]
SETTINGS = {
    "matching": _setting(MatchingSVC(C=0.5), _pair),
    "dependency": _setting(DependencySVC(C=0.5), _sentence),
    "graph": _setting(GraphSVC(C=0.5), _image),
    "multilabel": _setting(MultilabelSVC(C=0.5, structure="independent"), _row, np.array),
    "structured": _setting(
        StructuredSVC(word_features, zero_one, best_word, C=0.5, feature_names=NAMES), _word
    ),
}


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


def weights_of(model: Any) -> Any:
    names = ("coef_", "intercept_", "edge_coef_", "places_")
    return np.concatenate([np.ravel(getattr(model, name)) for name in names if hasattr(model, name)])


def assert_same_fit(model: Any, expected: Any) -> None:
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    np.testing.assert_array_equal(model.history_.primal, expected.history_.primal)


def test_parts_are_certified_as_one_fit(setting: Setting) -> None:
    model, (_, X, y) = clone(setting.estimator), setting
    model.partial_fit(X[:4], y[:4])
    assert_same_fit(model, clone(setting.estimator).fit(X[:4], y[:4]))
    with pickle_training_data():
        again = pickle.loads(pickle.dumps(model))
    again.partial_fit(X[4:], y[4:])
    assert_same_fit(model.partial_fit(X[4:], y[4:]), again)
    whole = clone(setting.estimator).fit(X, y)
    for a, b in ((model, whole), (whole, model)):
        assert a.gap_ <= a.tol * a.history_.primal.min()
        assert b.history_.dual.max() - 1e-9 <= a.history_.primal.min() <= b.history_.primal.min() + a.gap_
    # It began from where the first call stopped, after two comparisons of the examples with those before.
    assert model.history_.oracle_calls[0] == 2 * (4 + len(X))
    assert_same_fit(model.fit(X, y), whole)
    assert model._seen is None


def test_a_call_that_fails_changes_nothing(setting: Setting) -> None:
    _, X, y = setting
    model = clone(setting.estimator).partial_fit(X[:4], y[:4])
    kept = weights_of(model), model.gap_
    with pytest.raises((TypeError, ValueError)) as caught:
        model.partial_fit(X[4:], y[5:])
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(weights_of(model), kept[0])
    assert model.gap_ == kept[1]
    assert_same_fit(
        model.partial_fit(X[4:], y[4:]),
        clone(setting.estimator).partial_fit(X[:4], y[:4]).partial_fit(X[4:], y[4:]),
    )


def test_parts_of_other_features_are_refused() -> None:
    others = {
        "matching": ([np.ones((2, 2, 5))], [[0, 1]], "links of X have 5 features, but .* fitted with 2"),
        "dependency": ([np.ones((1, 2, 5))], [[0]], "arcs of X have 5 features, but .* fitted with 2"),
        "graph": ([(np.ones((2, 5)), [(0, 1)])], [[0, 1]], "nodes of X have 5 features, but .* with 2"),
        "multilabel": (np.ones((1, 5)), [[0, 1, 1]], "X has 5 features, but MultilabelSVC is expecting 3"),
    }
    for name, (X, y, message) in others.items():
        model = clone(SETTINGS[name].estimator).partial_fit(SETTINGS[name].X, SETTINGS[name].y)
        with pytest.raises(ValueError, match=f"^{type(model).__name__}: {message}"):
            model.partial_fit(X, y)
        if name == "multilabel":
            with pytest.raises(ValueError, match=r"^MultilabelSVC: y has 2 columns, expected 3"):
                model.partial_fit(np.ones((1, 3)), [[0, 1]])
        if name == "graph":
            with pytest.raises(ValueError, match=r"^GraphSVC: label 1 of graph 0 of y is 9, expected one of"):
                model.partial_fit(SETTINGS[name].X[:1], [[0, 9, 1, 1]])


@pytest.mark.parametrize(
    ("classes", "got"),
    [
        (["a", "b", 1], r"1 \(int\)"),
        (["a", "b", None], "None"),
        ([["a", "b"]], "a list"),
        ("ab", r"'ab' \(str\)"),
        ([], "an empty list"),
        (np.array([0.0, np.nan]), "nan"),
    ],
)
@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (ChainSVC(), [[["p"], ["q"]]], [["a", "b"]]),
        (GraphSVC(), [(np.eye(2), [(0, 1)])], [["a", "b"]]),
        (MulticlassSVC(), np.eye(2), ["a", "b"]),
    ],
)
def test_classes_that_are_refused(model: Any, X: Any, y: Any, classes: Any, got: str) -> None:
    owner = type(model).__name__
    with pytest.raises(TypeError, match=f"^{owner}: classes must be a list of all labels, .* got {got}") as e:
        clone(model).partial_fit(X, y, classes=classes)
    assert "\n" not in str(e.value)


def test_classes_become_labels_of_the_kind_that_fit_learns() -> None:
    X, y = [[["p"], ["q"]]], [[0, 1]]
    for classes in ({1, 0}, [True, False], np.array([1, 0, 1])):
        known = ChainSVC(random_state=0).partial_fit(X, y, classes=classes).classes_
        assert (known.tolist(), known.dtype) == ([0, 1], ChainSVC(random_state=0).fit(X, y).classes_.dtype)
    with pytest.raises(TypeError, match=r"^ChainSVC: classes must be str or int, got 0.0 \(float\)"):
        ChainSVC().partial_fit(X, y, classes=[0.0, 1.0])


def test_words_and_tags_in_parts() -> None:
    X = [[("the", "DET"), ("dog", "NOUN")], [("dogs", "NOUN"), ("bark", "VERB")], [("sleep", "VERB")]]
    model = DependencySVC(C=1.0, random_state=0).partial_fit(X[:2], [[2, 0], [2, 0]])
    n_features = model.n_features_in_
    model.partial_fit(X[2:], [[0]])
    assert model.n_features_in_ == n_features == len(model.coef_)
    assert model.gap_ <= model.tol
    with pytest.raises(TypeError, match=r"^DependencySVC: X has features of arcs, but .* words and tags"):
        model.partial_fit([np.ones((1, 2, n_features))], [[0]])


def test_encodings_are_joined_field_by_field() -> None:
    def graphs(seed: int, sizes: list[int]) -> Graphs:
        rng = np.random.default_rng(seed)
        nodes, edges = rng.normal(size=(sum(sizes), 2)), scipy.sparse.csr_array(rng.normal(size=(2, 1)))
        offsets = np.append(0, np.cumsum(sizes))
        return Graphs(nodes, offsets, edges, np.array([0, 1, 2]), np.array([[0, 1], [1, 0]]))

    first, second = graphs(0, [2, 3]), graphs(1, [4, 2])
    both = joined(first, second)
    np.testing.assert_array_equal(both.nodes, np.vstack([first.nodes, second.nodes]))
    np.testing.assert_array_equal(both.offsets, [0, 2, 5, 9, 11])
    np.testing.assert_array_equal(both.edge_offsets, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(
        both.edges.toarray(), np.vstack([first.edges.toarray(), second.edges.toarray()])
    )
    assert len(both.ends) == 4
    assert joined(([1], 3), ([2], 3)) == ([1, 2], 3)


def test_threads_train_a_part_each() -> None:
    y = [[0, 1, 2], [1, 0], [2, 0, 1, 1], [1]]
    rng = np.random.default_rng(0)
    X = [np.eye(3)[labels] + 0.5 * rng.normal(size=(len(labels), 3)) for labels in y]
    options = {"random_state": 0}
    limits = {"tol": 0.01 * ChainSVC().tol, "rtol": ChainSVC().tol, "max_passes": ChainSVC().max_iter}
    problem = Chain.from_sequences(X, y, loss="hamming")
    for n_jobs in (2, 3):
        method = Accelerated(Divided(Pairwise(1 / (0.5 * 4)), n_jobs))
        expected = solve(problem, method, **limits, **options)
        model = ChainSVC(C=0.5, n_jobs=n_jobs, **options).fit(X, y)
        np.testing.assert_array_equal(model.history_.primal, expected.history.primal)
        np.testing.assert_array_equal(model._w, expected.w)
    plain = solve(problem, Accelerated(Pairwise(1 / (0.5 * 4))), **limits, **options)
    for n_jobs in (None, 1):
        np.testing.assert_array_equal(ChainSVC(C=0.5, n_jobs=n_jobs, **options).fit(X, y)._w, plain.w)
    by_gap = ChainSVC(C=0.5, n_jobs=2, sampling="gap", **options).fit(X, y)
    np.testing.assert_array_equal(
        by_gap._w, ChainSVC(C=0.5, n_jobs=1, sampling="gap", **options).fit(X, y)._w
    )
