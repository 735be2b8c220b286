"""Estimators with kernels, against linear ones of explicit features and against scikit-learn's SVC."""

import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from maxmargin import ChainSVC, GraphSVC, MulticlassSVC, MultilabelSVC, SegmentSVC, pickle_training_data
from maxmargin.problems import PolynomialKernel
from support.kernels import monomials
from support.naive import Array

_rng = np.random.default_rng(0)
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS = (IRIS - IRIS.mean(axis=0)) / IRIS.std(axis=0)
FEW = _rng.permutation(150)[:15]
POLY = {"kernel": "poly", "degree": 2, "gamma": 0.7, "coef0": 0.5}
OPTIONS = {"tol": 0.05, "max_iter": 500, "random_state": 0, "verbose": 0}
TIGHT = OPTIONS | {"tol": 1e-6, "max_iter": 5000}
LOOSE = {"tol": 0.5}  # where the same run is compared with itself


def explicit_rows(X: Array) -> Array:
    return monomials(X, PolynomialKernel(2, 0.7, 0.5))


class Setting(NamedTuple):
    """An estimator, its examples, and how the explicit features of examples are found."""

    make: Any
    X: Any
    y: Any
    explicit: Callable[[Any], Any]

    def new(self, **parameters: Any) -> Any:
        return self.make(**OPTIONS | {"C": 0.5} | parameters)


def _each(X: list[Array]) -> list[Array]:
    return [explicit_rows(x) for x in X]


LABELS = [np.arange(first, first + length) % 3 for first, length in enumerate([3, 1, 3, 2, 3, 4])]
TOKENS = [np.eye(3)[labels] + 0.8 * _rng.normal(size=(len(labels), 3)) for labels in LABELS]
SEGMENTS = [[(0, 2, "A")], [(0, 1, "B")], [(1, 3, "B")], [], [(0, 1, "A"), (1, 3, "B")], [(2, 4, "A")]]
EDGES = [[(t, t + 1) for t in range(len(labels) - 1)] for labels in LABELS]
GRAPHS = [(x, np.array(e, dtype=int).reshape(-1, 2)) for x, e in zip(TOKENS, EDGES, strict=True)]
SETS = (IRIS[FEW, :3] @ _rng.normal(size=(3, 3)) > 0.0).astype(int)
SETTINGS = {
    "multiclass": Setting(MulticlassSVC, IRIS[FEW], SPECIES[FEW], explicit_rows),
    "multilabel": Setting(MultilabelSVC, IRIS[FEW], SETS, explicit_rows),
    "chain": Setting(ChainSVC, TOKENS, LABELS, _each),
    "segments": Setting(SegmentSVC, TOKENS, SEGMENTS, _each),
    "graph": Setting(GraphSVC, GRAPHS, LABELS, lambda X: [(explicit_rows(x), edges) for x, edges in X]),
}


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


def assert_same_outputs(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a, b) or list(a) == list(b)


def test_a_polynomial_kernel_is_a_linear_model_of_its_features(setting: Setting) -> None:
    make, X, y, explicit = setting
    model, linear = setting.new(**POLY).fit(X, y), setting.new().fit(explicit(X), y)
    for name in ("primal", "dual", "gap"):
        np.testing.assert_allclose(model.history_[name], linear.history_[name], rtol=0.0, atol=1e-8)
    assert (model.gap_, model.certified_, model.n_iter_) == (
        pytest.approx(linear.gap_, abs=1e-8),
        True,
        linear.n_iter_,
    )
    assert_same_outputs(model.predict(X), linear.predict(explicit(X)))
    assert model.score(X, y) == linear.score(explicit(X), y) > 0.3
    others = list(reversed(X)) if isinstance(X, list) else X[::-1] + 0.3
    assert_same_outputs(model.predict(others), linear.predict(explicit(others)))
    for name in ("intercept_", "edge_coef_", "transitions_", "start_", "end_", "lengths_"):
        if hasattr(linear, name):
            np.testing.assert_allclose(getattr(model, name), getattr(linear, name), atol=1e-8)
    assert make(**POLY).get_params()["degree"] == 2


@pytest.mark.parametrize(
    "options", [{"order": 2}, {"rescaling": "slack"}, {"forbidden": [(0, 0)]}, {"n_jobs": 2}]
)
def test_options_of_chains_work_with_a_kernel(options: dict[str, Any]) -> None:
    setting = SETTINGS["chain"]
    model = setting.new(**POLY, **options).fit(TOKENS, LABELS)
    linear = setting.new(**options).fit(_each(TOKENS), LABELS)
    np.testing.assert_allclose(model.history_.primal, linear.history_.primal, rtol=0.0, atol=1e-8)
    assert_same_outputs(model.predict(TOKENS), linear.predict(_each(TOKENS)))
    for a, b in zip(model.predict_k_best(TOKENS, 3), linear.predict_k_best(_each(TOKENS), 3), strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_allclose(a.margins, b.margins, atol=1e-8)


def test_models_with_a_kernel_have_support_rows_and_linear_ones_coefficients(setting: Setting) -> None:
    make, X, y, _ = setting
    model = setting.new(kernel="rbf", **LOOSE).fit(X, y)
    n_rows = len(X) if make in (MulticlassSVC, MultilabelSVC) else sum(map(len, TOKENS))
    n_labels = {MulticlassSVC: 3, MultilabelSVC: 3, ChainSVC: 3, GraphSVC: 3, SegmentSVC: 9}[make]
    assert model.dual_coef_.shape == (n_labels, len(model.support_))
    assert (np.diff(model.support_) > 0).all()
    assert 0 <= model.support_.min() <= model.support_.max() < n_rows
    np.testing.assert_array_equal(model.n_support_, np.count_nonzero(model.dual_coef_, axis=1))
    assert np.abs(model.dual_coef_).max(axis=0).min() > 0.0  # every support row has a coefficient
    for name in ("coef_",) if make is not SegmentSVC else ("coef_", "first_coef_", "last_coef_"):
        with pytest.raises(
            AttributeError, match=f"^{make.__name__}: {name} is only available when using a linear"
        ):
            getattr(model, name)
        assert not hasattr(model, name)
    linear = setting.new(**LOOSE).fit(X, y)
    assert np.isfinite(linear.coef_).all()
    for name in ("support_", "dual_coef_", "n_support_"):
        with pytest.raises(
            AttributeError, match=f"^{make.__name__}: {name} needs a fitted model with a kernel"
        ):
            getattr(linear, name)


def rows_of(setting: Setting, X: Any) -> Any:
    """The rows of all examples: of tables, tokens or nodes."""
    if setting.make in (MulticlassSVC, MultilabelSVC):
        return np.asarray(X)
    return np.concatenate([x[0] if setting.make is GraphSVC else x for x in X])


@pytest.mark.parametrize("zeros", [[0], [3, 4], [-1], [0, 1, 4, -2, -1]], ids=str)
def test_support_rows_have_the_numbers_of_all_rows_given(setting: Setting, zeros: list[int]) -> None:
    X, y = setting.X, setting.y
    weights = np.linspace(0.5, 1.5, len(X))
    weights[zeros] = 0.0
    kept = np.flatnonzero(weights).tolist()
    some = ([X[i] for i in kept], [y[i] for i in kept]) if isinstance(X, list) else (X[kept], y[kept])
    model = setting.new(kernel="rbf", **LOOSE).fit(X, y, sample_weight=weights)
    without = setting.new(kernel="rbf", **LOOSE).fit(*some, sample_weight=weights[kept])
    np.testing.assert_array_equal(model.dual_coef_, without.dual_coef_)
    np.testing.assert_array_equal(
        rows_of(setting, X)[model.support_], rows_of(setting, some[0])[without.support_]
    )
    assert not np.array_equal(model.support_, without.support_) or min(zeros) < 0


def test_support_rows_have_the_numbers_of_all_rows_given_in_all_calls(setting: Setting) -> None:
    X, y = setting.X, setting.y
    weights = np.ones(len(X))
    weights[[3, -1]] = 0.0
    rows = np.concatenate([rows_of(setting, X)] * 3)
    n_rows = len(rows) // 3
    model = setting.new(kernel="rbf", **LOOSE | {"tol": 1e-3}).partial_fit(X, y, sample_weight=weights)
    for call in (1, 2):  # the second call has all examples, the third has not
        options = {"sample_weight": weights} if call == 2 else {}
        model.partial_fit(X, y, **options)
        np.testing.assert_array_equal(rows[model.support_], model._support.rows)
        assert call * n_rows <= model.support_.max() < (call + 1) * n_rows


def test_support_nodes_have_the_numbers_of_all_nodes_given() -> None:
    setting = SETTINGS["graph"]
    rng = np.random.default_rng(3)
    y = [np.where(rng.random(len(labels)) < 0.3, -1, labels) for labels in LABELS]
    y[1][:] = -1
    weights = np.ones(len(y))
    weights[[0, 4]] = 0.0
    for options in ({}, {"sample_weight": weights}):
        model = setting.new(kernel="rbf", void=-1, **LOOSE).fit(GRAPHS, y, **options)
        np.testing.assert_array_equal(rows_of(setting, GRAPHS)[model.support_], model._support.rows)
        assert (np.concatenate(y)[model.support_] >= 0).all()


def test_data_that_are_read_once_have_the_same_support_rows() -> None:
    weights = np.ones(len(TOKENS))
    weights[[0, 3]] = 0.0
    model = SETTINGS["chain"].new(kernel="rbf", **LOOSE)
    expected = model.fit(TOKENS, LABELS, sample_weight=weights).support_.tolist()
    once = ((iter(x.tolist())) for x in TOKENS)
    assert model.fit(once, iter(LABELS), sample_weight=weights).support_.tolist() == expected


def test_the_decision_function_is_that_of_the_support_rows() -> None:
    X, y = IRIS[FEW], SPECIES[FEW]
    model = MulticlassSVC(C=0.5, kernel="rbf", gamma=0.4, **OPTIONS).fit(X, y)
    K = rbf_kernel(IRIS, X[model.support_], gamma=0.4)
    np.testing.assert_allclose(
        model.decision_function(IRIS), K @ model.dual_coef_.T + model.intercept_, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(IRIS), model.decision_function(IRIS).argmax(axis=1))
    two = MulticlassSVC(C=0.5, kernel="rbf", gamma=0.4, **OPTIONS).fit(X[y > 0], y[y > 0])
    scores = rbf_kernel(IRIS, X[y > 0][two.support_], gamma=0.4) @ two.dual_coef_.T + two.intercept_
    np.testing.assert_allclose(two.decision_function(IRIS), scores[:, 1] - scores[:, 0], atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_gamma_is_that_of_svc(kernel: str, gamma: Any, sparse: bool) -> None:
    X = scipy.sparse.csr_array(IRIS[FEW] * (IRIS[FEW] > 0.0)) if sparse else 2.0 * IRIS[FEW] + 0.3
    theirs = SVC(kernel=kernel, gamma=gamma).fit(X, SPECIES[FEW])
    model = MulticlassSVC(kernel=kernel, gamma=gamma, **OPTIONS | {"C": 1e-6, "max_iter": 1, "tol": 9.0})
    assert model.fit(X, SPECIES[FEW])._function.gamma == pytest.approx(theirs._gamma, rel=1e-12)


class Shifted:
    """A Gaussian kernel plus a constant: the square of a constant feature."""

    semidefinite = True

    def __init__(self, constant: float) -> None:
        self.constant = constant

    def __call__(self, a: Array, b: Array) -> Array:
        return np.asarray(rbf_kernel(a, b, gamma=0.5)) + self.constant


def test_two_classes_converge_to_svc_as_the_constant_grows() -> None:
    r"""SVC's intercept has no price; ours is the weight of a constant, whose price falls as it grows.

    With u = w_1 - w_0 our objective is
    :math:`\frac{1}{4 C n} \|u\|^2 + \frac1n \sum_i \max(0, 1 - s_i u(x_i))`, as the test of a linear SVM in
    test_reference_optima.py shows. This is SVC's divided by 2 C n, for twice our C.
    """
    X, y = IRIS[50:, :2][::4], SPECIES[50:][::4]
    theirs = SVC(C=1.0, kernel="rbf", gamma=0.5, tol=1e-8).fit(X, y).decision_function(X)
    assert abs(theirs).max() > 1.0
    errors = []
    for constant in (1.0, 4.0, 16.0):
        model = MulticlassSVC(C=0.5, kernel=Shifted(constant), fit_intercept=False, **TIGHT).fit(X, y)
        assert model.gap_ <= 1e-6
        assert model.certified_
        errors.append(float(np.abs(model.decision_function(X) - theirs).max()))
        np.testing.assert_allclose(model.dual_coef_[1], -model.dual_coef_[0], atol=1e-9)
    assert errors[1] < errors[0] / 2
    assert errors[2] < errors[1] / 2
    assert errors[2] < 0.01


WORDS = ["bat", "bad", "batter", "sung", "sing", "singer", "table", "tables", "stab"]
KIND = ["b", "b", "b", "s", "s", "s", "t", "t", "t"]
PAIRS = sorted({w[k : k + 2] for w in WORDS for k in range(len(w) - 1)} | set("abdegilnrstu"))


def counts(words: Any) -> Array:
    """Return how often each letter and each pair of letters occurs."""
    found = [Counter(w) + Counter(w[k : k + 2] for k in range(len(w) - 1)) for w in words]
    return np.array([[float(one[pair]) for pair in PAIRS] for one in found]) / 3.0


def spectrum(a: list[str], b: list[str]) -> Array:
    assert isinstance(a, list)
    assert isinstance(b, list)
    return counts(a) @ counts(b).T


LINES = [WORDS[:4], WORDS[4:5], WORDS[5:7], WORDS[7:]]


def test_kernels_of_strings_train_as_explicit_features() -> None:
    y, segments = [[w[0] for w in line] for line in LINES], [[(0, 2, "P")], [], [(1, 2, "P")], [(0, 1, "Q")]]
    lines = [counts(line) for line in LINES]
    for make, X, truth, explicit in (
        (MulticlassSVC, WORDS, KIND, counts(WORDS)),
        (ChainSVC, LINES, y, lines),
        (SegmentSVC, LINES, segments, lines),
    ):
        model = make(C=0.15, kernel=spectrum, **OPTIONS).fit(X, truth)
        linear = make(C=0.15, **OPTIONS).fit(explicit, truth)
        np.testing.assert_allclose(model.history_.primal, linear.history_.primal, rtol=0.0, atol=1e-8)
        assert_same_outputs(model.predict(X), linear.predict(explicit))
        assert not model.certified_  # nobody says that the kernel is semidefinite
        more = make(C=0.15, kernel=spectrum, **OPTIONS).partial_fit(X, truth)
        more.partial_fit(X[:2], truth[:2])
        assert more.gap_ <= more.tol * more.history_.primal.min()
        assert_same_outputs(pickle.loads(pickle.dumps(more)).predict(X), more.predict(X))
    sets = np.array([[w[0] == "b", "ng" in w] for w in WORDS]).astype(int)
    model = MultilabelSVC(C=1.0, kernel=spectrum, **OPTIONS).fit(WORDS, sets)
    np.testing.assert_array_equal(model.predict(WORDS), sets)


def sparse_product(a: Any, b: Any) -> Array:
    assert scipy.sparse.issparse(a)
    return (a @ b.T).toarray()


def test_callables_get_arrays_and_sparse_matrices() -> None:
    X, y = IRIS[FEW], SPECIES[FEW]
    linear = MulticlassSVC(C=0.15, **OPTIONS).fit(X, y)
    for kernel, given in ((lambda a, b: a @ b.T, X), (sparse_product, scipy.sparse.csr_array(X))):
        model = MulticlassSVC(C=0.15, kernel=kernel, **OPTIONS).fit(given, y)
        np.testing.assert_allclose(model.history_.primal, linear.history_.primal, rtol=0.0, atol=1e-8)
        np.testing.assert_allclose(model.decision_function(given), linear.decision_function(X), atol=1e-7)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda a, b: np.ones((3, 2)),
            r"kernel must return a matrix of shape \(15, 15\), .* got \(3, 2\)\.$",
        ),
        (lambda a, b: 1.0, r"kernel must return a matrix of shape \(15, 15\), .* got \(\)\.$"),
        (lambda a, b: "no", r"kernel must return a matrix of numbers: could not convert string"),
        (lambda a, b: scipy.sparse.csr_array(a @ b.T), r"kernel must return a matrix of numbers: "),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "a kernel matrix must have finite entries, got NaN"),
        (lambda a, b: a[:, :1] - b[:, 0], "a kernel matrix must be symmetric, got"),
    ],
)
def test_wrong_callables_are_refused(kernel: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^MulticlassSVC: {message}") as caught:
        MulticlassSVC(kernel=kernel, **OPTIONS).fit(IRIS[FEW], SPECIES[FEW])
    assert "\n" not in str(caught.value)


def test_errors_of_the_callable_itself_are_not_taken_for_its_values() -> None:
    def broken(a: Any, b: Any) -> Any:
        raise ValueError("no such file")

    with pytest.raises(ValueError, match=r"^MulticlassSVC: no such file$"):
        MulticlassSVC(kernel=broken, **OPTIONS).fit(IRIS[FEW], SPECIES[FEW])


def test_a_kernel_that_is_not_semidefinite_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"^\w+: .* not positive semidefinite on these data; choose another"
    ) as caught:
        MulticlassSVC(kernel=lambda a, b: -rbf_kernel(a, b), **OPTIONS).fit(IRIS[FEW], SPECIES[FEW])
    assert "\n" not in str(caught.value)
    model = MulticlassSVC(kernel="sigmoid", gamma=0.01, coef0=0.0, **OPTIONS).fit(IRIS[FEW], SPECIES[FEW])
    assert not model.certified_


def test_wrong_parameters_are_refused() -> None:
    for name, value in (
        ("kernel", "gaussian"),
        ("degree", -1),
        ("degree", 1.5),
        ("gamma", -0.1),
        ("coef0", "a"),
    ):
        with pytest.raises(ValueError, match=f"^The '{name}' parameter of MulticlassSVC must be"):
            MulticlassSVC(**OPTIONS | {name: value}).fit(IRIS[FEW], SPECIES[FEW])
    graph = GraphSVC(kernel="rbf", nonnegative={"nodes": [0]}, **OPTIONS)
    with pytest.raises(
        ValueError, match=r"^GraphSVC: nonnegative must be None with a kernel .*; leave it out\.$"
    ):
        graph.fit(GRAPHS, LABELS)


def test_sparse_and_single_precision_features_train_alike() -> None:
    X, y = np.random.default_rng(5).normal(size=(15, 7)), SPECIES[FEW]
    X[np.abs(X) < 0.8] = 0.0
    for make, truth in ((MulticlassSVC, y), (MultilabelSVC, SETS)):
        model = make(C=0.5, kernel="rbf", **OPTIONS).fit(X, truth)
        sparse = make(C=0.5, kernel="rbf", **OPTIONS).fit(scipy.sparse.csr_array(X), truth)
        np.testing.assert_allclose(sparse.history_.primal, model.history_.primal, rtol=0.0, atol=1e-8)
        np.testing.assert_array_equal(sparse.predict(X), model.predict(scipy.sparse.csr_array(X)))
        single = make(C=0.5, kernel="rbf", **OPTIONS).fit(X.astype(np.float32), truth)
        assert single._dtype is np.float32
        assert single.history_.dual[-1] == pytest.approx(model.history_.dual[-1], abs=1e-3)
        assert single.history_.dual[-1] != model.history_.dual[-1]
        np.testing.assert_array_equal(single.predict(X.astype(np.float32)), model.predict(X))


def test_a_small_cache_has_the_same_answer(setting: Setting) -> None:
    _, X, y, _ = setting
    whole, small = (
        setting.new(kernel="rbf", **LOOSE, **options).fit(X, y) for options in ({}, {"cache_size": 1e-6})
    )
    np.testing.assert_array_equal(small.dual_coef_, whole.dual_coef_)
    np.testing.assert_array_equal(small.history_.gap, whole.history_.gap)


# Encodings join examples, and kernels are of rows: every day the other models are tested without kernels.
JOINED = [pytest.param(k, marks=() if k in ("multiclass", "chain") else pytest.mark.long) for k in SETTINGS]


@pytest.mark.parametrize("name", JOINED)
def test_parts_are_certified_as_one_fit(name: str) -> None:
    setting = SETTINGS[name]
    _, X, y, _ = setting
    k, kernel = len(X) - 2, {"kernel": "rbf", "gamma": 0.3}
    model, whole = setting.new(**kernel).partial_fit(X[:k], y[:k]), setting.new(**kernel).fit(X, y)
    assert model.gap_ <= model.tol * model.history_.primal.min()
    model.partial_fit(X[k:], y[k:])
    # It began from where the first call stopped, after two comparisons of the examples with those before.
    assert model.history_.oracle_calls[0] == 2 * (k + len(X))
    for a, b in ((model, whole), (whole, model)):
        assert a.gap_ <= a.tol * a.history_.primal.min()
        assert b.history_.dual.max() - 1e-9 <= a.history_.primal.min() <= b.history_.primal.min() + a.gap_
    with pickle_training_data():
        again = pickle.loads(pickle.dumps(model))
    assert_same_outputs(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        again.partial_fit(X[:2], y[:2]).dual_coef_, model.partial_fit(X[:2], y[:2]).dual_coef_
    )


def test_the_kernel_of_parts_is_that_of_the_first() -> None:
    X, y = IRIS[FEW], SPECIES[FEW]
    model = MulticlassSVC(kernel="rbf", **OPTIONS).partial_fit(X[:8], y[:8], classes=[0, 1, 2])
    gamma = SVC(gamma="scale").fit(X[:8], y[:8])._gamma
    model.partial_fit(X[8:] * 3.0, y[8:])
    assert model._function.gamma == pytest.approx(gamma)
    expected = MulticlassSVC(kernel="rbf", gamma=gamma, **OPTIONS).fit(np.vstack([X[:8], X[8:] * 3.0]), y)
    assert model.history_.dual.max() <= expected.history_.primal.min() + 1e-9
    assert expected.history_.dual.max() <= model.history_.primal.min() + 1e-9


@pytest.mark.long
def test_warm_starts_work_along_c(setting: Setting) -> None:
    _, X, y, _ = setting
    model = setting.new(kernel="rbf", warm_start=True)
    for C in (0.1, 1.0, 10.0):
        model.set_params(C=C).fit(X, y)
        cold = setting.new(kernel="rbf", C=C).fit(X, y)
        assert model.gap_ <= model.tol * max(model.history_.primal.min(), 0.01)
        assert cold.history_.dual.max() <= model.history_.primal.min() + 1e-9
        assert model.history_.dual.max() <= cold.history_.primal.min() + 1e-9
    assert model.history_.passes[0] == 0


def test_a_warm_start_from_other_rows_begins_anew() -> None:
    model = SETTINGS["chain"].new(kernel="rbf", warm_start=True).fit(TOKENS, LABELS)
    assert model.fit(TOKENS, LABELS).history_.passes[0] == 0
    assert model.fit([x + 0.1 * x**2 for x in TOKENS], LABELS).history_.passes[0] > 0
    assert model.set_params(gamma=0.2).fit(TOKENS, LABELS).history_.passes[0] > 0


@pytest.mark.long
def test_two_threads_reach_the_same_bounds(setting: Setting) -> None:
    _, X, y, _ = setting
    one, two = (setting.new(kernel="rbf", n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 2))
    assert all(model.gap_ <= model.tol * model.history_.primal.min() for model in (one, two))
    assert two.history_.dual.max() <= one.history_.primal.min() + 1e-9
    assert one.history_.dual.max() <= two.history_.primal.min() + 1e-9
    np.testing.assert_array_equal(two.dual_coef_, setting.new(kernel="rbf", n_jobs=2).fit(X, y).dual_coef_)


@pytest.mark.long
def test_weights_are_repetitions() -> None:
    X, y = IRIS[FEW], SPECIES[FEW]
    repeated = np.repeat(np.arange(len(X)), np.arange(len(X)) % 3 + 1)
    model = MulticlassSVC(C=0.5, kernel="rbf", **TIGHT).fit(X, y, sample_weight=np.arange(len(X)) % 3 + 1)
    gamma = model._function.gamma
    other = MulticlassSVC(C=0.5, kernel="rbf", gamma=gamma, **TIGHT).fit(X[repeated], y[repeated])
    # The objective is strongly convex: ||W - W'||^2 <= 4 C n gap, and k(x, x) = 1.
    bound = 2.0 * np.sqrt(2.0 * 0.5 * len(repeated) * 1e-6)
    np.testing.assert_allclose(model.decision_function(IRIS), other.decision_function(IRIS), atol=2.0 * bound)


def test_another_fit_forgets_the_support_rows(setting: Setting) -> None:
    _, X, y, _ = setting
    model = setting.new(kernel="rbf", gamma=2.0, **LOOSE).fit(X, y)
    assert len(model.support_) > 0
    model.set_params(kernel="linear").fit(X, y)
    assert not hasattr(model, "support_")
    assert_same_outputs(model.predict(X), setting.new(**LOOSE).fit(X, y).predict(X))
    model.set_params(**POLY).fit(X, y)
    fresh = setting.new(**POLY, **LOOSE).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, fresh.dual_coef_)
    assert not hasattr(model, "coef_")


def test_clones_and_pickles_keep_the_parameters(setting: Setting) -> None:
    _, X, y, _ = setting
    model = setting.new(kernel="rbf", gamma=0.7, **LOOSE)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    model.fit(X, y)
    assert not hasattr(copied, "_support")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)
    assert_same_outputs(again.predict(X), model.predict(X))


def test_a_search_over_gamma_finds_the_best() -> None:
    search = GridSearchCV(
        MulticlassSVC(kernel="rbf", **OPTIONS | {"tol": 0.1}),
        {"gamma": [1e-3, 0.5]},
        cv=2,
        error_score="raise",
    )
    search.fit(IRIS[::5], SPECIES[::5])
    assert search.best_params_["gamma"] == 0.5
    assert search.best_score_ > 0.8
    assert search.predict(IRIS).shape == (150,)


def test_a_kernel_separates_what_a_line_cannot() -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * (1.0 + np.arange(16)[:, None] % 2)
    y = np.arange(16) % 2
    assert MulticlassSVC(C=10.0, **OPTIONS).fit(X, y).score(X, y) < 0.8
    assert MulticlassSVC(C=10.0, kernel="rbf", **OPTIONS).fit(X, y).score(X, y) == 1.0
    sets = np.column_stack([y, 1 - y])
    assert MultilabelSVC(C=10.0, kernel="rbf", **OPTIONS).fit(X, sets).score(X, sets) == 1.0
