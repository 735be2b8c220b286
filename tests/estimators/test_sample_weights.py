"""Weights of examples and of labels: as if examples occurred so often, and as scikit-learn weighs them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from maxmargin import (
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MulticlassSVC,
    MultilabelSVC,
    StructuredSVC,
)
from maxmargin.structures.label_sets.model import chow_liu, mutual_information

pytestmark = pytest.mark.long

_rng = np.random.default_rng(0)
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0)
FEW = _rng.permutation(150)[:40]

LABELS = [np.arange(first, first + length) % 3 for first, length in enumerate([3, 1, 4, 2, 3, 5, 2, 4])]
TOKENS = [np.eye(3)[labels] + 0.8 * _rng.normal(size=(len(labels), 3)) for labels in LABELS]


def zero_one(y_true: Any, y: Any) -> float:
    return float(y_true != y)


def unit(x: Any, y: Any) -> Any:
    return np.eye(3)[y] * x


def best_unit(x: Any, w: Any, y_true: Any = None) -> int:
    return int(np.argmax(x * w[:3] + (0.0 if y_true is None else (np.arange(3) != y_true))))


class Setting(NamedTuple):
    """An estimator and its examples."""

    estimator: Any
    X: Any
    y: Any


TIGHT = {"tol": 1e-5, "max_iter": 5000, "random_state": 0}
SETTINGS = {
    "chain": Setting(ChainSVC(C=0.5, **TIGHT), TOKENS, LABELS),
    "multiclass": Setting(MulticlassSVC(C=0.1, **TIGHT), IRIS[FEW], SPECIES[FEW]),
    "structured": Setting(
        StructuredSVC(unit, zero_one, best_unit, C=0.2, **TIGHT), [1.0, 2.0, -1.0, 0.5, 1.5], [0, 1, 2, 1, 0]
    ),
}
EVERY = SETTINGS | {
    "dependency": Setting(DependencySVC(), [np.ones((2, 3, 1)), np.zeros((1, 2, 1))], [[2, 0], [0]]),
    "graph": Setting(GraphSVC(), [(np.eye(2), [(0, 1)]), (np.eye(2), [])], [[0, 1], [1, 0]]),
    "matching": Setting(MatchingSVC(), [np.ones((2, 2, 1)), np.ones((1, 1, 1))], [[0, 1], [-1]]),
    "multilabel": Setting(MultilabelSVC(), np.eye(2), np.eye(2, dtype=int)),
}


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


def taken(values: Any, places: Any) -> Any:
    return values[places] if isinstance(values, np.ndarray) else [values[i] for i in places]


def weights_of(model: Any) -> Any:
    names = ("coef_", "intercept_", "transitions_", "start_", "end_")
    return np.concatenate([np.ravel(getattr(model, name)) for name in names if hasattr(model, name)])


def assert_same_minimum(one: Any, other: Any) -> None:
    """Both certified brackets hold the minimum: neither objective is below the other's bound."""
    for a, b in ((one, other), (other, one)):
        assert a.gap_ <= a.tol
        assert b.history_.dual.max() - 1e-9 <= a.history_.primal.min() <= b.history_.primal.min() + a.tol
    assert weights_of(one) == pytest.approx(weights_of(other), abs=0.05)


def test_whole_weights_are_repeated_examples(setting: Setting) -> None:
    n = len(setting.y)
    weights = np.random.default_rng(1).integers(0, 4, n)
    places = np.repeat(np.arange(n), weights)
    several = clone(setting.estimator).fit(taken(setting.X, places), taken(setting.y, places))
    weighted = clone(setting.estimator).fit(setting.X, setting.y, sample_weight=weights)
    assert_same_minimum(weighted, several)
    # The same minimum at C / 7, in other units of C.
    more = clone(setting.estimator).set_params(C=setting.estimator.C / 7)
    assert_same_minimum(weighted, more.fit(setting.X, setting.y, sample_weight=7.0 * weights))


def test_a_weight_of_zero_is_without_the_example(setting: Setting) -> None:
    n = len(setting.y)
    weights = np.where(np.arange(n) % 4 == 3, 0.0, np.linspace(0.5, 2.0, n))
    kept = np.flatnonzero(weights)
    part = clone(setting.estimator).fit(
        taken(setting.X, kept), taken(setting.y, kept), sample_weight=weights[kept]
    )
    whole = clone(setting.estimator).fit(setting.X, setting.y, sample_weight=weights)
    np.testing.assert_array_equal(weights_of(whole), weights_of(part))
    np.testing.assert_array_equal(whole.history_.primal, part.history_.primal)


def test_labels_and_features_of_examples_without_weight_are_not_known() -> None:
    known = [2.0 * (y < 2).all() for y in LABELS]
    assert ChainSVC(tol=0.1, random_state=0).fit(TOKENS, LABELS, known).classes_.tolist() == [0, 1]

    def features(x: str, y: int) -> dict[str, float]:
        return {f"{x}{y}": 1.0}

    model = StructuredSVC(features, zero_one, lambda x, w, y_true=None: 1, exact=False, tol=1.0)
    assert model.fit(["a", "b"], [0, 1], sample_weight=[2, 0]).feature_names_ == ["a0"]


def test_parts_with_weights_are_certified_as_one_fit(setting: Setting) -> None:
    n = len(setting.y)
    weights = np.random.default_rng(2).uniform(0.2, 3.0, n)
    weights[n // 2 :] = 1.0
    half = n // 2
    model = clone(setting.estimator)
    model.partial_fit(setting.X[:half], setting.y[:half], sample_weight=weights[:half])
    passes = model.n_iter_
    model.partial_fit(setting.X[half:], setting.y[half:])
    assert passes > 0
    assert_same_minimum(model, clone(setting.estimator).fit(setting.X, setting.y, sample_weight=weights))
    unweighted = clone(setting.estimator).partial_fit(setting.X[:half], setting.y[:half])
    unweighted.partial_fit(setting.X[half:], setting.y[half:], sample_weight=np.full(n - half, 2.0))
    both = np.where(np.arange(n) < half, 1.0, 2.0)
    assert_same_minimum(unweighted, clone(setting.estimator).fit(setting.X, setting.y, sample_weight=both))


def test_other_weights_start_from_nothing(setting: Setting) -> None:
    n = len(setting.y)
    one, two = (np.random.default_rng(seed).uniform(0.2, 3.0, n) for seed in (3, 4))
    model = clone(setting.estimator).set_params(warm_start=True)
    model.fit(setting.X, setting.y, sample_weight=one)
    assert model.fit(setting.X, setting.y, sample_weight=one).n_iter_ == 0
    assert model.fit(setting.X, setting.y, sample_weight=two).n_iter_ > 0
    cold = clone(setting.estimator).fit(setting.X, setting.y, sample_weight=two)
    np.testing.assert_array_equal(weights_of(model), weights_of(cold))


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 2: 3.0}])
def test_the_optimum_is_that_of_liblinear(class_weight: Any) -> None:
    weights = np.random.default_rng(5).uniform(0.1, 3.0, 40)
    weights /= weights[SPECIES[FEW] == 0].sum()  # liblinear balances without weights
    for k in range(3):
        weights[SPECIES[FEW] == k] *= np.mean(SPECIES[FEW] == k) / weights[SPECIES[FEW] == k].sum()
    options = {"C": 5.0, "fit_intercept": False, "class_weight": class_weight}
    reference = LinearSVC(multi_class="crammer_singer", tol=1e-10, max_iter=10**6, **options)
    reference.fit(IRIS[FEW], SPECIES[FEW], sample_weight=weights)
    model = MulticlassSVC(tol=1e-9, max_iter=10**4, random_state=0, **options)
    model.fit(IRIS[FEW], SPECIES[FEW], sample_weight=weights)
    np.testing.assert_allclose(
        model.coef_, reference.coef_, rtol=1e-3, atol=1e-3 * np.abs(reference.coef_).max()
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
def test_scikit_learns_own_checks_of_weights(check: Any) -> None:
    """They compare to seven digits: the answer must be as exact."""
    check("MulticlassSVC", MulticlassSVC(tol=1e-13, check_every=50))


def test_weights_of_labels_are_rows_of_costs() -> None:
    zero_one_cost = 1.0 - np.eye(3)
    chain = clone(SETTINGS["chain"].estimator).set_params(loss="normalized_hamming")
    weighted = clone(chain).set_params(class_weight={0: 2.0, 2: 0.5})
    by_hand = clone(chain).set_params(loss=zero_one_cost * np.array([2.0, 1.0, 0.5])[:, None])
    weighted.fit(TOKENS, LABELS)
    np.testing.assert_array_equal(weights_of(weighted), weights_of(by_hand.fit(TOKENS, LABELS)))
    counts = np.bincount(np.concatenate(LABELS))
    balanced = clone(weighted).set_params(class_weight="balanced").fit(TOKENS, LABELS)
    by_hand.set_params(loss=zero_one_cost * (counts.sum() / (3 * counts))[:, None])
    np.testing.assert_allclose(weights_of(balanced), weights_of(by_hand.fit(TOKENS, LABELS)), atol=1e-9)


def test_balanced_labels_are_counted_with_the_weights_of_sequences() -> None:
    weights = np.array([1, 2, 1, 3, 1, 1, 2, 1])
    places = np.repeat(np.arange(8), weights)
    model = clone(SETTINGS["chain"].estimator).set_params(class_weight="balanced")
    several = clone(model).fit(taken(TOKENS, places), taken(LABELS, places))
    assert_same_minimum(model.fit(TOKENS, LABELS, sample_weight=weights), several)


def test_the_tree_of_labels_counts_rows_by_their_weights() -> None:
    rng = np.random.default_rng(6)
    y, weights = rng.integers(2, size=(12, 4)), rng.integers(1, 5, 12)
    several = np.repeat(y, weights, axis=0)
    np.testing.assert_allclose(mutual_information(y, weights), mutual_information(several), atol=1e-12)
    np.testing.assert_array_equal(chow_liu(y, weights), chow_liu(several))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda n: np.ones(n + 1), "sample_weight.shape == "),
        (lambda n: np.ones((n, 1)), "Sample weights must be 1D array or scalar"),
        (lambda n: [np.nan, *np.ones(n - 1)], "Input sample_weight contains NaN"),
        (lambda n: [*np.ones(n - 1), np.inf], "Input sample_weight contains infinity"),
        (lambda n: [*np.ones(n - 1), -1.0], r"sample_weight must be >= 0, got -1.0 for example "),
        (lambda n: np.zeros(n), "(must have a number > 0, got zeros only|at least one non-zero)"),
        (lambda n: ["a"] * n, "could not convert string to float"),
        (
            lambda n: [[1.0] * (i + 1) for i in range(n)],
            "sample_weight must have one number for each example",
        ),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_wrong_weights_are_refused(name: str, weights: Any, message: str, method: str) -> None:
    model, X, y = EVERY[name]
    with pytest.raises(ValueError, match=f"^{type(model).__name__}: .*{message}") as caught:
        getattr(clone(model), method)(X, y, sample_weight=weights(len(y)))
    assert "\n" not in str(caught.value)


def test_weights_work_with_examples_read_once() -> None:
    model, X, y = SETTINGS["chain"]
    weights = np.arange(len(y)) % 3
    expected = clone(model).fit(X, y, sample_weight=weights)
    once = clone(model).fit(iter(X), iter(y), sample_weight=weights)
    np.testing.assert_array_equal(once._w, expected._w)


@pytest.mark.parametrize("name", ["chain", "multiclass"])
def test_wrong_weights_of_labels_are_refused(name: str) -> None:
    model, X, y = SETTINGS[name]
    owner = type(model).__name__
    for class_weight, message in (
        ({0: -1.0}, "class_weight must be finite and > 0, got -1.0 for 0"),
        ({0: np.nan}, "class_weight must be finite and > 0, got nan"),
        ({0: "two"}, "class_weight must have a number for each label, got .* 'two'"),
        ({7: 2.0}, r"class_weight has the label 7, which is not in y; labels are \[0, 1"),
    ):
        with pytest.raises(ValueError, match=f"^{owner}: .*{message}"):
            clone(model).set_params(class_weight=class_weight).fit(X, y)
    with pytest.raises(ValueError, match=f"The 'class_weight' parameter of {owner} must be"):
        clone(model).set_params(class_weight="even").fit(X, y)
    with pytest.raises(ValueError, match=f"^{owner}: class_weight must be None or a dict for partial_fit"):
        clone(model).set_params(class_weight="balanced").partial_fit(X, y)


def test_slack_rescaling_knows_no_weights_of_labels() -> None:
    with pytest.raises(ValueError, match=r"^ChainSVC: class_weight must be None where rescaling is 'slack'"):
        ChainSVC(class_weight="balanced", rescaling="slack").fit(TOKENS, LABELS)


def test_scores_are_weighted() -> None:
    weights = np.random.default_rng(7).uniform(0.0, 2.0, 40)
    model = MulticlassSVC(tol=0.1, random_state=0).fit(IRIS[FEW], SPECIES[FEW])
    right = model.predict(IRIS[FEW]) == SPECIES[FEW]
    found = model.score(IRIS[FEW], SPECIES[FEW], sample_weight=weights)
    assert found == pytest.approx(weights @ right / weights.sum())
    y = np.eye(3, dtype=int)[SPECIES[FEW]]
    several = MultilabelSVC(tol=0.1, structure="independent", random_state=0).fit(IRIS[FEW], y)
    exact = (several.predict(IRIS[FEW]) == y).all(axis=1)
    assert several.score(IRIS[FEW], y, sample_weight=weights) == pytest.approx(
        weights @ exact / weights.sum()
    )
