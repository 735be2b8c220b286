"""The estimator of three Python functions: here sets of tags, chosen from a few, with a bonus for pairs."""

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from maxmargin import Accelerated, Pairwise, StructuredSVC, solve
from support import naive
from support.naive import Enumerated

TAGS = ("a", "b", "c")
OUTPUTS = [frozenset(tags) for size in range(len(TAGS) + 1) for tags in combinations(TAGS, size)]
WORDS = {"apple": {"a"}, "bread": {"b"}, "cake": {"c"}, "salad": {"a", "b"}, "menu": {"a", "b", "c"}}


def features(x: tuple[str, ...], y: frozenset[str]) -> dict[Any, float]:
    """Each word with each tag, and each pair of tags."""
    unary: dict[Any, float] = {(word, tag): 1.0 for word in x for tag in y}
    return unary | {("pair", *pair): 1.0 for pair in combinations(sorted(y), 2)}


def loss(y_true: frozenset[str], y: frozenset[str]) -> float:
    return len(y_true ^ y) / len(TAGS)


def argmax(x: tuple[str, ...], w: Any, y_true: frozenset[str] | None = None) -> frozenset[str]:
    def value(y: frozenset[str]) -> float:
        return w.dot(features(x, y)) + (0.0 if y_true is None else loss(y_true, y))

    return max(OUTPUTS, key=value)


def data(n: int = 24, seed: int = 0) -> tuple[list[tuple[str, ...]], list[frozenset[str]]]:
    rng = np.random.default_rng(seed)
    X = [tuple(sorted(rng.choice(list(WORDS), size=2, replace=False).tolist())) for _ in range(n)]
    return X, [frozenset().union(*(WORDS[word] for word in x)) for x in X]


def model(**options: Any) -> StructuredSVC:
    return StructuredSVC(features, loss, argmax, **({"C": 10.0, "tol": 1e-3, "random_state": 0} | options))


def test_the_objective_is_that_of_a_quadratic_program() -> None:
    X, y = data(6)
    fitted = model(C=1.0, tol=1e-5, max_iter=1000).fit(X, y)
    names = {name: k for k, name in enumerate(fitted.feature_names_)}
    phi = np.zeros((len(X), len(OUTPUTS), len(names)))
    for i, k in np.ndindex(*phi.shape[:2]):
        for name, value in features(X[i], OUTPUTS[k]).items():
            if name in names:  # those that no truth has are left out
                phi[i, k, names[name]] = value
    truths = [OUTPUTS.index(truth) for truth in y]
    psi = [phi[i, t] - phi[i] for i, t in enumerate(truths)]
    losses = [np.array([loss(truth, output) for output in OUTPUTS]) for truth in y]
    written_out = Enumerated([[(k,) for k in range(len(OUTPUTS))]] * len(X), truths, losses, psi)
    best = naive.optimum(written_out, 1 / len(X))
    assert 0.0 <= naive.primal(written_out, fitted.coef_, 1 / len(X)) - best.dual <= 1e-5
    assert fitted.gap_ <= 1e-5
    assert fitted.n_iter_ == fitted.history_.passes[-1]


def test_predictions_have_a_score() -> None:
    X, y = data()
    fitted = model().fit(X, y)
    test, truth = data(10, seed=1)
    predicted = fitted.predict(test)
    assert all(isinstance(answer, frozenset) for answer in predicted)
    assert fitted.score(test, truth) == pytest.approx(1 - np.mean(list(map(loss, truth, predicted))))
    assert fitted.score(X, y) == 1.0
    assert len(fitted.coef_) == len(fitted.feature_names_)


def test_methods_of_the_estimators_are_those_of_solve() -> None:
    X, y = data()
    fitted = model(max_iter=7, tol=0.0, check_every=7)
    with pytest.warns(UserWarning, match="gap"):
        fitted.fit(X, y)
    run = solve(
        fitted.problem(X, y),
        Accelerated(Pairwise(1 / (10 * len(X)))),
        tol=0.0,
        max_passes=7,
        check_every=7,
        random_state=0,
    )
    np.testing.assert_array_equal(fitted.coef_, run.w)


def test_weights_belong_to_the_names_that_occur() -> None:
    X, y = data()
    names = [(word, tag) for word in WORDS for tag in TAGS]
    fitted = model(feature_names=names).fit(X, y)
    assert fitted.feature_names_ == names
    assert ("bread", "a") not in model().fit([("bread",)], [frozenset("b")]).feature_names_


@pytest.mark.long
def test_clones_pickles_and_grid_searches_work() -> None:
    X, y = data()
    fitted = model(method="bcfw", tol=0.05).fit(X, y)
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X) == fitted.predict(X)
    search = GridSearchCV(model(method="bcfw", tol=0.05), {"C": [1e-3, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 10.0}
    assert search.best_score_ > 0.8


def test_warm_starts_go_on_and_see_other_data() -> None:
    X, y = data()
    warm = model(warm_start=True, tol=0.01).fit(X, y)
    w = warm.coef_
    warm.fit(X, y)
    assert warm.n_iter_ == 0
    np.testing.assert_array_equal(warm.coef_, w)
    other = data(seed=3)
    np.testing.assert_array_equal(warm.fit(*other).coef_, model(tol=0.01).fit(*other).coef_)


def dense(x: Any, y: int) -> Any:
    phi = np.zeros(4)
    phi[2 * y : 2 * y + 2] = x
    return phi


def wrong(y_true: int, y: int) -> float:
    return float(y != y_true)


def best(x: Any, w: Any, y_true: int | None = None) -> int:
    return int(np.argmax([w @ dense(x, y) + (0.0 if y_true is None else wrong(y_true, y)) for y in (0, 1)]))


def always_one(x: Any, w: Any, y_true: int | None = None) -> int:
    return 1


POINTS = [np.array([1.0, 2.0]), np.array([-1.0, 0.5]), np.array([0.3, -1.0])]
LABELS = [0, 1, 1]
FLAWS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "nan": (
        {"features": lambda x, y: dense(x, y) * (np.nan if x[0] < 0 else 1)},
        ValueError,
        "features of example 1 are wrong: expected finite numbers, got nan for feature 0",
    ),
    "inf in an answer": (
        {"features": lambda x, y: [0, 0, 0, np.inf if x[0] == 1 and y == 1 else 0], "argmax": always_one},
        ValueError,
        "features of example 0 are wrong: expected finite numbers, got inf for feature 3",
    ),
    "another length": (
        {"features": lambda x, y: np.ones(3 if x[0] == 0.3 else 4)},
        ValueError,
        "features of example 2 are wrong: expected a 1-D array of 4 numbers, got an ndarray of shape (3,)",
    ),
    "another length in an answer": (
        {"features": lambda x, y: np.ones(4 + int(y == 1 and x[0] == 1)), "argmax": always_one},
        ValueError,
        "features of example 0 are wrong: expected a 1-D array of 4 numbers, got an ndarray of shape (5,)",
    ),
    "another kind": (
        {"features": lambda x, y: dense(x, y) if x[0] > 0.5 else {"a": 1.0}},
        ValueError,
        "features of example 1 are wrong: expected a 1-D array of 4 numbers, got a dict",
    ),
    "no features": (
        {"features": lambda x, y: "text"},
        TypeError,
        "features must return a 1-D array, a sparse row, a dict {name: number} or a pair (indices, values)",
    ),
    "a matrix": (
        {"features": lambda x, y: np.ones((2, 2))},
        TypeError,
        "got an ndarray of shape (2, 2) for example 0",
    ),
    "pairs without n_features": (
        {"features": lambda x, y: ([0, 1], x)},
        ValueError,
        "n_features must be given where features are pairs",
    ),
    "an index out of range": (
        {"features": lambda x, y: ([0, 4], x), "n_features": 4},
        ValueError,
        "features of example 0 are wrong: expected indices below 4, got 4",
    ),
    "indices that are no ints": (
        {"features": lambda x, y: ([0.0, 1.5], x), "n_features": 4},
        ValueError,
        "expected indices that are ints",
    ),
    "a sparse row of another length": (
        {"features": lambda x, y: scipy.sparse.csr_array(np.ones((1, 4 if x[0] > 0.5 else 5)))},
        ValueError,
        "example 1 are wrong: expected a sparse row of 4 numbers, got a csr_array of shape (1, 5)",
    ),
    "a dict of texts": (
        {"features": lambda x, y: {"a": "b"}},
        ValueError,
        "features of example 0 are wrong: expected numbers as values of the dict, got 'b' (str)",
    ),
    "names for arrays": (
        {"feature_names": ["a"]},
        ValueError,
        "feature_names are for features that are dicts, got an ndarray of shape (4,)",
    ),
    "a negative loss": (
        {"loss": lambda t, y: -wrong(t, y)},
        ValueError,
        "loss must be a finite number >= 0, got -1.0 for example",
    ),
    "a loss of the truth": (
        {"loss": lambda t, y: 1.0},
        ValueError,
        "loss of the truth must be 0, got 1.0 for example 0",
    ),
    "no answer": (
        {"argmax": lambda x, w, y_true=None: None},
        ValueError,
        "argmax must return an output like the truth, 0 (int), got None (NoneType) for example 0",
    ),
}


@pytest.mark.parametrize("name", FLAWS)
def test_flaws_are_told_in_one_line(name: str) -> None:
    options, kind, expected = FLAWS[name]
    functions = {"features": dense, "loss": wrong, "argmax": best}
    flawed = StructuredSVC(**(functions | {"method": "bcfw", "random_state": 0} | options))
    with pytest.raises(kind) as caught:
        flawed.fit(POINTS, LABELS)
    assert str(caught.value).startswith("StructuredSVC: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_answer_of_another_shape_is_refused() -> None:
    labels = [np.array([0, 1]), np.array([1, 1]), np.array([1, 0])]
    flawed = StructuredSVC(
        lambda x, y: np.ones(2), lambda t, y: 0.0, lambda x, w, y_true=None: np.zeros(3), random_state=0
    )
    with pytest.raises(
        ValueError, match=r"of shape \(2,\), got an ndarray of shape \(3,\) for example \d"
    ) as c:
        flawed.fit(POINTS, labels)
    assert "\n" not in str(c.value)


@pytest.mark.parametrize(
    ("X", "y", "kind", "expected"),
    [
        (POINTS, LABELS[:2], ValueError, "one or more, got 3 and 2"),
        ([], [], ValueError, "one or more, got 0 and 0"),
        (5, LABELS, TypeError, "X must be a list with one object per example, got 5"),
        (POINTS, "011", TypeError, "y must be a list with one object per example, got '011'"),
    ],
)
def test_data_must_be_lists(X: Any, y: Any, kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind, match=f"^StructuredSVC: .*{expected}"):
        StructuredSVC(dense, wrong, best).fit(X, y)


def test_errors_of_the_functions_name_the_example() -> None:
    def fails(x: Any, w: Any, y_true: Any = None) -> int:
        raise ZeroDivisionError("at home")

    with pytest.raises(ZeroDivisionError, match="at home") as caught:
        StructuredSVC(dense, wrong, fails, method="fw").fit(POINTS, LABELS)
    assert caught.value.__notes__ == ["StructuredSVC: raised by argmax for example 0"]


@pytest.mark.parametrize("features", [lambda x, y: {"a": 1.0}, lambda x, y: np.zeros(0)])
def test_no_features_at_all_leave_all_weights_zero(features: Any) -> None:
    """All outputs have the score zero, and the objective is the mean of the largest losses."""
    named = isinstance(features(0, 0), dict)
    model = StructuredSVC(
        features=features,
        loss=lambda y, z: 2.0 * float(y != z),
        argmax=lambda x, w, y=None: 0 if y is None else 1 - y,
        feature_names=[] if named else None,
        random_state=0,
    )
    with pytest.warns(UserWarning, match="all weights are zero after training"):
        model.fit([0, 1], [0, 1])
    assert model.coef_.shape == (0,)
    assert model.history_.primal.tolist() == [2.0]
    assert model.gap_ == 0.0
    assert model.predict([5]) == [0]
