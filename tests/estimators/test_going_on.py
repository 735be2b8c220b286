"""Estimators that go on from what they have done: warm_start, partial_fit; and their threads."""

import pickle
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

from maxmargin import Accelerated, BlockExact, ChainSVC, MulticlassSVC, Pairwise, pickle_training_data, solve
from maxmargin.problems import Chain, Multiclass

pytestmark = pytest.mark.long

_rng = np.random.default_rng(0)
LENGTHS = [3, 1, 4, 2, 3, 5, 2, 4, 3, 1, 4, 2]
# Three labels that follow each other in a circle, seen through noise.
LABELS = [np.arange(first, first + length) % 3 for first, length in enumerate(LENGTHS)]
TOKENS = [np.eye(4)[labels] + 0.8 * _rng.normal(size=(len(labels), 4)) for labels in LABELS]
WORDS = [[[f"w{x[:3].argmax()}"] for x in tokens] for tokens in TOKENS]
DICTS = [[{f"f{j}": value for j, value in enumerate(x)} for x in tokens] for tokens in TOKENS]
INDICATORS = [np.array([np.eye(3)[x[:3].argmax()] for x in tokens]) for tokens in TOKENS]

IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0)
ORDER = np.random.default_rng(1).permutation(150)
IRIS, SPECIES = IRIS[ORDER][:90], SPECIES[ORDER][:90]


class Setting(NamedTuple):
    """An estimator, its examples, and the objective of a model of it on the first n of them."""

    estimator: Any
    X: Any
    y: Any
    objective: Callable[[Any, int], float]


def chain_objective(features: list[Any]) -> Callable[[Any, int], float]:
    """Of all labellings, by enumeration; features as arrays."""

    def objective(model: Any, n: int) -> float:
        parts = model.coef_, model.transitions_, model.start_, model.end_
        norm2 = sum((part**2).sum() for part in parts)
        hinges = [chain_hinge(model, x, y) for x, y in zip(features[:n], LABELS[:n], strict=True)]
        return norm2 / (2 * model.C * n) + np.mean(hinges)

    return objective


def chain_hinge(model: Any, x: Any, y: Any) -> float:
    def score(labels: Any) -> float:
        total = model.start_[labels[0]] + model.end_[labels[-1]]
        total += sum(model.coef_[label] @ row for label, row in zip(labels, x, strict=True))
        return total + sum(model.transitions_[a, b] for a, b in pairwise(labels))

    all_labels = product(range(3), repeat=len(y))
    return max(np.mean(np.array(labels) != y) + score(labels) for labels in all_labels) - score(y)


def iris_objective(model: Any, n: int) -> float:
    scores = IRIS[:n] @ model.coef_.T + model.intercept_
    hinges = (scores + (1.0 - np.eye(3))[SPECIES[:n]]).max(axis=1) - scores[np.arange(n), SPECIES[:n]]
    return ((model.coef_**2).sum() + (model.intercept_**2).sum()) / (2 * model.C * n) + hinges.mean()


TOL = 5e-4
CHAIN = ChainSVC(C=1.0, loss="normalized_hamming", tol=0.01, max_iter=2000, check_every=1, random_state=0)
MULTICLASS = MulticlassSVC(C=0.1, tol=TOL, max_iter=2000, check_every=1, random_state=0)
SETTINGS = {
    "chain of arrays": Setting(CHAIN, TOKENS, LABELS, chain_objective(TOKENS)),
    "chain of dicts": Setting(CHAIN, DICTS, LABELS, chain_objective(TOKENS)),
    "chain of strings": Setting(CHAIN, WORDS, LABELS, chain_objective(INDICATORS)),
    "dense": Setting(MULTICLASS, IRIS, SPECIES, iris_objective),
    "sparse": Setting(MULTICLASS, scipy.sparse.csr_array(IRIS), SPECIES, iris_objective),
}
BOTH = {name: SETTINGS[name] for name in ("chain of arrays", "dense")}


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


@pytest.fixture(params=BOTH)
def either(request: pytest.FixtureRequest) -> Setting:
    return BOTH[request.param]


def size(X: Any) -> int:
    return len(X) if isinstance(X, list) else X.shape[0]


def weights_of(model: Any) -> Any:
    names = ("coef_", "intercept_", "transitions_", "start_", "end_")
    return np.concatenate([np.ravel(getattr(model, name)) for name in names if hasattr(model, name)])


def predicted(model: Any, X: Any) -> list[Any]:
    return np.concatenate([np.atleast_1d(labels) for labels in model.predict(X)]).tolist()


def assert_same_fit(model: Any, expected: Any) -> None:
    """Bitwise, with the certificates."""
    np.testing.assert_array_equal(weights_of(model), weights_of(expected))
    for column in ("passes", "primal", "dual"):
        np.testing.assert_array_equal(model.history_[column], expected.history_[column])


def refused(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        function(*args, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_auto_is_the_default_and_is_accelerated() -> None:
    options = {"tol": 1e-4, "rtol": 0.01, "max_passes": 2000, "check_every": 1, "random_state": 0}
    chain = solve(Chain.from_sequences(TOKENS, LABELS), Accelerated(Pairwise(1 / (1.0 * 12))), **options)
    with_constant = np.c_[IRIS, np.ones(90)]
    multiclass = solve(
        Multiclass.from_arrays(with_constant, SPECIES),
        Accelerated(BlockExact(1 / (0.1 * 90))),
        **options | {"tol": 0.01 * TOL, "rtol": TOL},
    )
    for setting, result in ((SETTINGS["chain of arrays"], chain), (SETTINGS["dense"], multiclass)):
        model = clone(setting.estimator).fit(setting.X, setting.y)
        assert model.method == "auto"
        np.testing.assert_array_equal(model.history_.primal, result.history.primal)
        np.testing.assert_array_equal(model.history_.dual, result.history.dual)
        np.testing.assert_array_equal(np.sort(weights_of(model)), np.sort(result.weights))
        assert_same_fit(clone(setting.estimator).set_params(method="auto").fit(setting.X, setting.y), model)


def test_refit_at_the_same_C_needs_no_pass(setting: Setting) -> None:
    model = clone(setting.estimator).set_params(warm_start=True).fit(setting.X, setting.y)
    dual, n = model.history_.dual.max(), size(setting.X)
    assert model.n_iter_ >= 2
    model.fit(setting.X, setting.y)
    assert model.n_iter_ == 0
    assert 0.0 <= model.gap_ <= model.tol * model.history_.primal.min()
    assert setting.objective(model, n) == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert dual - 1e-12 <= model.history_.primal.min() <= dual + model.tol


def test_a_refit_at_another_C_takes_fewer_passes(setting: Setting) -> None:
    X, y, n = setting.X, setting.y, size(setting.X)
    model = clone(setting.estimator).set_params(warm_start=True).fit(X, y)
    model.set_params(C=1.3 * model.C).fit(X, y)
    cold = clone(setting.estimator).set_params(C=model.C).fit(X, y)
    assert model.n_iter_ < cold.n_iter_
    assert 0.0 <= model.gap_ <= model.tol * model.history_.primal.min()
    primal = setting.objective(model, n)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    exact = clone(cold).set_params(tol=1e-5, warm_start=False).fit(X, y)
    assert exact.history_.dual.max() - 1e-9 <= primal <= setting.objective(exact, n) + model.gap_


def test_other_data_start_from_nothing(either: Setting) -> None:
    X, y = either.X, either.y
    model = clone(either.estimator).set_params(warm_start=True).fit(X, y)
    others = {
        "features": ([x[::-1] for x in X] if isinstance(X, list) else X[::-1].copy(), y),
        "labels": (X, [2 - labels for labels in y]),
        "fewer": (X[:9], y[:9]),
        "wider": ([np.c_[x, x] for x in X] if isinstance(X, list) else np.c_[X, X], y),
        "two labels": (X, [np.minimum(labels, 1) for labels in y]),
    }
    for features, labels in others.values():
        model.fit(X, y)
        cold = clone(either.estimator).fit(features, labels)
        assert_same_fit(model.fit(features, labels), cold)
        assert cold.n_iter_ > 0


def test_another_method_starts_from_nothing(either: Setting) -> None:
    model = clone(either.estimator).set_params(warm_start=True).fit(either.X, either.y)
    for method in ("pairwise", "bcfw", "auto"):
        model.set_params(method=method, tol=0.05).fit(either.X, either.y)
        assert_same_fit(model, clone(model).set_params(warm_start=False).fit(either.X, either.y))


def test_nothing_is_kept_without_warm_start(either: Setting) -> None:
    model = clone(either.estimator).fit(either.X, either.y)
    assert not hasattr(model, "_last")
    assert_same_fit(clone(model).fit(either.X, either.y), model)
    once = weights_of(model)
    model.set_params(warm_start=True).fit(either.X, either.y)
    np.testing.assert_array_equal(weights_of(model), once)  # nothing was there to go on from
    assert model.n_iter_ > 0
    model.set_params(warm_start=False).fit(either.X, either.y)
    assert not hasattr(model, "_last")
    assert model.n_iter_ > 0


def test_clone_and_pickle(either: Setting) -> None:
    model = clone(either.estimator).set_params(warm_start=True).fit(either.X, either.y)
    assert clone(model).fit(either.X, either.y).n_iter_ == model.n_iter_ > 0
    with pickle_training_data():
        again = pickle.loads(pickle.dumps(model))
    assert predicted(again, either.X) == predicted(model, either.X)
    for one in (again, model):
        one.set_params(C=1.3 * one.C).fit(either.X, either.y)
    assert_same_fit(again, model)


def parts_of(setting: Setting) -> list[tuple[Any, Any]]:
    """Three parts; all labels are in the first."""
    n = size(setting.X)
    cuts = [0, n // 2, 5 * n // 6, n]
    return [(setting.X[a:b], setting.y[a:b]) for a, b in pairwise(cuts)]


def test_partial_fit_is_certified_for_all_examples(setting: Setting) -> None:
    model, seen = clone(setting.estimator), 0
    for X, y in parts_of(setting):
        model.partial_fit(X, y)
        seen += size(X)
        exact = clone(setting.estimator).set_params(tol=1e-3).fit(setting.X[:seen], setting.y[:seen])
        primal = setting.objective(model, seen)
        assert 0.0 <= model.gap_ <= model.tol * model.history_.primal.min()
        assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
        assert exact.history_.dual.max() - 1e-9 <= primal <= setting.objective(exact, seen) + model.gap_
    assert seen == size(setting.X)


def test_the_last_partial_fit_needs_fewer_passes(setting: Setting) -> None:
    """Where there is something to save: the fit from nothing needs many."""
    model = clone(setting.estimator).set_params(C=10.0)
    for X, y in parts_of(setting):
        model.partial_fit(X, y)
    assert model.n_iter_ < clone(model).fit(setting.X, setting.y).n_iter_


def test_the_first_partial_fit_is_a_fit(setting: Setting) -> None:
    model = clone(setting.estimator).partial_fit(setting.X, setting.y)
    assert_same_fit(model, clone(setting.estimator).fit(setting.X, setting.y))


def test_pickled_between_partial_fits(either: Setting) -> None:
    first, second, _ = parts_of(either)
    model = clone(either.estimator).partial_fit(*first)
    with pickle_training_data():
        again = pickle.loads(pickle.dumps(model))
    again.partial_fit(*second)
    assert_same_fit(again, model.partial_fit(*second))


def test_fit_forgets_partial_fits(setting: Setting) -> None:
    first, second, _ = parts_of(setting)
    model = clone(setting.estimator).partial_fit(*first).fit(*second)
    assert_same_fit(model, clone(setting.estimator).fit(*second))
    assert_same_fit(model.partial_fit(*first), clone(setting.estimator).fit(*first))


def test_dense_and_sparse_parts_train_the_same() -> None:
    (first, second, _), dense = parts_of(SETTINGS["dense"]), clone(MULTICLASS)
    dense.partial_fit(*first).partial_fit(*second)
    mixed = clone(MULTICLASS).partial_fit(*first)
    mixed.partial_fit(scipy.sparse.csr_array(second[0]), second[1])
    np.testing.assert_allclose(mixed.coef_, dense.coef_, atol=1e-9)


def test_dense_and_sparse_sequences_train_the_same() -> None:
    first, second, _ = parts_of(SETTINGS["chain of arrays"])
    dense = clone(CHAIN).partial_fit(*first).partial_fit(*second)
    as_sparse = [scipy.sparse.csr_array(x) for x in second[0]]
    mixed = clone(CHAIN).partial_fit(*first).partial_fit(as_sparse, second[1])
    np.testing.assert_allclose(mixed.coef_, dense.coef_, atol=1e-9)


def without_label_2(setting: Setting) -> tuple[Any, Any]:
    """Examples that have labels 0 and 1 only."""
    if isinstance(setting.X, list):
        pairs = [(x, y) for x, y in zip(setting.X, setting.y, strict=True) if not (y == 2).any()]
        return [x for x, _ in pairs], [y for _, y in pairs]
    return setting.X[setting.y < 2], setting.y[setting.y < 2]


def test_labels_unknown_to_the_first_call(setting: Setting) -> None:
    X, y = without_label_2(setting)
    model = clone(setting.estimator).partial_fit(X, y)
    name = type(model).__name__
    assert refused(model.partial_fit, setting.X, setting.y).startswith(f"{name}: ")
    model = clone(setting.estimator).partial_fit(X, y, classes=[2, 1, 0])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(setting.X, setting.y)
    assert set(predicted(model, setting.X)) == {0, 1, 2}
    assert model.gap_ <= model.tol


def test_classes_that_the_first_call_lacks(either: Setting) -> None:
    refused(clone(either.estimator).partial_fit, either.X, either.y, classes=[0, 1])
    refused(clone(either.estimator).partial_fit, either.X, either.y, classes=[0])


def other_width(X: Any) -> Any:
    return [x[:, :2] for x in X] if isinstance(X, list) else X[:, :2]


def with_nan(X: Any) -> Any:
    X = [x.copy() for x in X] if isinstance(X, list) else X.copy()
    X[0][..., 0] = np.nan
    return X


@pytest.mark.parametrize("before", ["partial_fit", "fit"])
def test_a_call_that_fails_changes_nothing(either: Setting, before: str) -> None:
    X, y = either.X, either.y
    model = getattr(clone(either.estimator), before)(X, y)
    answers, certificate = predicted(model, X), (model.gap_, model.n_iter_)
    unknown = [labels + 7 for labels in y[:1]]
    calls: list[tuple[Any, ...]] = [
        (with_nan(X), y),
        (X, y[:-1]),
        (X[:1], unknown, [0, 1]),
    ]
    if before == "partial_fit":
        calls += [(other_width(X), y), (X[:1], unknown)]
    else:  # the classes given count
        calls += [(X[:1], [0 * labels for labels in y[:1]], [0]), (X, y, [0, 1])]
    for call in calls:
        assert type(model).__name__ in refused(model.partial_fit, *call)
        assert predicted(model, X) == answers
        assert (model.gap_, model.n_iter_) == certificate
        assert model.classes_.tolist() == [0, 1, 2]
    assert_same_fit(model.partial_fit(X, y), getattr(clone(either.estimator), before)(X, y).partial_fit(X, y))


def test_threads_do_not_change_predictions(setting: Setting) -> None:
    model = clone(setting.estimator).fit(setting.X, setting.y)
    expected = predicted(model, setting.X)
    for n_jobs in (1, 2, -1):
        assert predicted(model.set_params(n_jobs=n_jobs), setting.X) == expected


@pytest.mark.parametrize("method", ["auto", "pairwise", "bcfw", "fw"])
def test_training_with_threads_goes_on(either: Setting, method: str) -> None:
    parameters = {"method": method, "tol": 0.05, "check_every": 5}
    plain = clone(either.estimator).set_params(**parameters).fit(either.X, either.y)
    for n_jobs in (2, 3):  # as many parts
        threaded, again = (clone(plain).set_params(n_jobs=n_jobs).fit(either.X, either.y) for _ in range(2))
        assert_same_fit(threaded, again)
        assert threaded.gap_ <= 0.05
        primal = either.objective(threaded, size(either.X))
        assert primal == pytest.approx(threaded.history_.primal.min(), rel=1e-9)
        assert plain.history_.dual.max() - 1e-9 <= primal <= plain.history_.primal.min() + threaded.gap_


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_numbers_of_threads_that_are_refused(either: Setting, n_jobs: Any) -> None:
    model = clone(either.estimator).set_params(n_jobs=n_jobs)
    assert f"The 'n_jobs' parameter of {type(model).__name__} must be" in refused(
        model.fit, either.X, either.y
    )
    assert "'n_jobs'" in refused(model.partial_fit, either.X, either.y)
