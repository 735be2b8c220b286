"""The multiclass estimator: scikit-learn's contract, its optimum, its parameters."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import MulticlassSVC
from maxmargin.estimators.parameters import METHODS

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
ZERO_ONE = 1.0 - np.eye(3)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def failing_checks(estimator):
    if estimator.fit_intercept:
        reason = "compares to seven digits: done with a small tol in test_sample_weights"
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    return {"check_class_weight_classifiers": "without an intercept no class can have all examples"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [MulticlassSVC(tol=1e-2), MulticlassSVC(method="fw", fit_intercept=False, tol=0.1)],
    expected_failed_checks=failing_checks,
)
def test_the_contract_of_scikit_learn_holds(estimator, check):
    check(estimator)


def objective(coef, C, cost=ZERO_ONE):
    scores = X @ coef.T
    hinge = (scores + cost[Y]).max(axis=1) - scores[np.arange(len(X)), Y]
    return (coef**2).sum() / (2 * C * len(X)) + hinge.mean()


def test_the_optimum_is_that_of_liblinear():
    C = 0.01
    reference = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-10, max_iter=10**6)
    best = objective(reference.fit(X, Y).coef_, C)
    model = MulticlassSVC(C=C, fit_intercept=False, tol=1e-3, random_state=0).fit(X, Y)
    reached = objective(model.coef_, C)
    assert best - 1e-9 <= reached <= best + model.gap_
    assert model.gap_ <= 1e-3
    assert not model.intercept_.any()


def slack_objective(coef, C, cost):
    scores = X @ coef.T
    violation = cost[Y] * (1.0 + scores - scores[np.arange(len(X)), Y][:, None])
    return (coef**2).sum() / (2 * C * len(X)) + violation.max(axis=1).mean()


def test_rescaled_slacks_are_margins_where_every_mistake_costs_one():
    parameters = {"C": 0.01, "fit_intercept": False, "random_state": 0}
    plain = MulticlassSVC(tol=1e-3, **parameters).fit(X, Y)
    slack = MulticlassSVC(tol=1e-3, rescaling="slack", **parameters).fit(X, Y)
    np.testing.assert_array_equal(slack.coef_, plain.coef_)
    # By the oracle of rescaled slacks, which a matrix of costs needs.
    other = MulticlassSVC(tol=1e-2, rescaling="slack", loss=ZERO_ONE, **parameters).fit(X, Y)
    values = [slack_objective(model.coef_, 0.01, ZERO_ONE) for model in (slack, other)]
    assert values[0] - slack.gap_ <= values[1] + 1e-9
    assert values[1] - other.gap_ <= values[0] + 1e-9
    assert other.history_.primal.min() == pytest.approx(values[1])


def test_intercept_is_a_constant_feature():
    with_constant = np.hstack([X, np.ones((len(X), 1))])
    model = MulticlassSVC(C=0.01, tol=0.01, random_state=0).fit(X, Y)
    other = MulticlassSVC(C=0.01, tol=0.01, fit_intercept=False, random_state=0).fit(with_constant, Y)
    np.testing.assert_allclose(model.coef_, other.coef_[:, :-1], rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, other.coef_[:, -1], rtol=1e-12)


def fitted(features, labels=Y, **parameters):
    return MulticlassSVC(C=0.01, tol=0.01, random_state=0, **parameters).fit(features, labels)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "convert",
    [
        scipy.sparse.csr_array,
        scipy.sparse.csr_matrix,
        scipy.sparse.csc_array,
        scipy.sparse.coo_matrix,
        np.asfortranarray,
        np.ndarray.tolist,
    ],
)
def test_features_have_many_forms(convert, fit_intercept):
    features, labels = X[::3], Y[::3]
    expected = fitted(features, labels, fit_intercept=fit_intercept)
    model = fitted(convert(features), labels, fit_intercept=fit_intercept)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(convert(X)), expected.predict(X))


def test_labels_have_many_forms():
    numbers, names = fitted(X, Y), fitted(X, NAMES)
    np.testing.assert_array_equal(numbers.coef_, names.coef_)
    assert names.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(names.classes_[numbers.predict(X)], names.predict(X))
    assert names.score(X, NAMES) > 0.7


def test_predictions_have_the_highest_score():
    model = fitted(X)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_two_classes_have_one_decision_value():
    two = Y < 2
    model = MulticlassSVC(tol=0.01, random_state=0).fit(X[two], NAMES[two])
    decision = model.decision_function(X[two])
    assert decision.shape == (100,)
    assert model.coef_.shape == (2, 4)
    np.testing.assert_array_equal(model.predict(X[two]), np.where(decision > 0, "versicolor", "setosa"))


@cache
def exact_dual():
    """A lower bound that is close to the least objective."""
    return MulticlassSVC(C=0.01, tol=1e-4, random_state=0).fit(X, Y).history_.dual.max()


@pytest.mark.parametrize("method", [name for name in METHODS if not name.startswith("perceptron")])
def test_methods_agree(method):
    model = MulticlassSVC(C=0.01, method=method, tol=0.02, max_iter=3000, random_state=0).fit(X, Y)
    assert model.gap_ <= 0.02
    assert model.history_.primal.min() - exact_dual() <= 0.02
    assert model.n_iter_ == np.ceil(model.history_.passes[-1])


@pytest.mark.parametrize("method", ["perceptron", "perceptron-avg"])
def test_perceptrons_learn_without_a_certificate(method):
    model = MulticlassSVC(C=0.01, method=method, tol=0.02, max_iter=20, check_every=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="20 passes"):
        model.fit(X, Y)
    assert 0.0 < model.gap_ <= min(model.history_.primal[-1], 1.0)  # zero weights have the objective 1
    assert model.score(X, Y) > 0.8


def test_seed_decides_the_fit():
    one, same, other = (
        MulticlassSVC(C=0.01, tol=0.1, random_state=seed).fit(X, Y).coef_ for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_a_costly_mistake_is_avoided():
    cost = 1.0 - np.eye(3)
    cost[1, 2] = 20.0  # versicolor taken for virginica
    plain, careful = (
        MulticlassSVC(C=0.1, loss=loss, fit_intercept=False, tol=0.01, random_state=0).fit(X, Y)
        for loss in ("zero_one", cost)
    )
    assert careful.history_.primal.min() == pytest.approx(objective(careful.coef_, 0.1, cost), rel=1e-9)
    mistakes = [np.sum((model.predict(X) == 2) & (Y == 1)) for model in (careful, plain)]
    assert mistakes[0] < mistakes[1]


def test_clones_keep_the_parameters():
    model = MulticlassSVC(C=3.0, loss=1.0 - np.eye(3), method="fw", verbose=0, random_state=7)
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert clone(model).get_params()["C"] == 3.0
    assert not hasattr(clone(fitted(X)), "coef_")


def test_a_pickle_predicts_the_same():
    model = fitted(X, NAMES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.gap_ == model.gap_
    assert list(again.history_) == list(model.history_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_model_selection_finds_the_best_C():
    search = GridSearchCV(MulticlassSVC(max_iter=20, random_state=0), {"C": [1e-4, 0.1]}, cv=3).fit(X, NAMES)
    assert search.best_params_ == {"C": 0.1}
    assert search.score(X, NAMES) > 0.9
    pipeline = make_pipeline(StandardScaler(), MulticlassSVC(max_iter=20, random_state=0))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.9


def test_no_warning_is_given_if_converged():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(X).gap_ <= 0.01


def test_warning_names_the_gap_and_the_line():
    model = MulticlassSVC(tol=1e-9, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, Y)
    (warning,) = caught
    message = str(warning.message)
    assert message == (
        "MulticlassSVC: the limit of passes was reached before the gap was small enough: "
        f"after 2 passes the gap is {model.gap_:.3g}, above tol=1e-09 times the objective "
        f"{model.history_.primal.min():.4g}; "
        "raise max_iter or tol, or lower C."
    )
    assert warning.filename == __file__


def test_an_estimator_must_be_fitted():
    with pytest.raises(NotFittedError, match="This MulticlassSVC instance is not fitted yet") as caught:
        MulticlassSVC().predict(X)
    assert "\n" not in str(caught.value)


def with_value(value):
    features = X.copy()
    features[7, 2] = value
    return features


BAD = {
    "nan": (with_value(np.nan), Y, "feature 2 of example 7 of X is NaN, expected a finite number"),
    "inf": (with_value(np.inf), Y, "feature 2 of example 7 of X is inf, expected a finite number"),
    "sparse nan": (scipy.sparse.csr_array(with_value(np.nan)), Y, "feature 2 of example 7 of X is NaN"),
    "one array": (X[:, 0], Y, "Expected 2D array, got 1D array instead"),
    "ragged": ([[1.0, 2.0], [3.0]], [0, 1], "setting an array element with a sequence"),
    "text": ([["a", "b"], ["c", "d"]], [0, 1], "could not convert string to float: 'a'"),
    "empty": (np.zeros((0, 4)), [], r"Found array with 0 sample\(s\)"),
    "no features": (np.zeros((3, 0)), [0, 1, 0], r"Found array with 0 feature\(s\)"),
    "one class": (X, np.zeros(150), "y must have at least two different labels, got 1 class"),
    "lengths": (X, Y[:-1], r"Found input variables with inconsistent numbers of samples: \[150, 149\]"),
    "floats": (X, X[:, 0], "Unknown label type: continuous"),
    "none": (X, None, "requires y to be passed, but the target y is None"),
    "nan label": (X, np.where(Y == 0, np.nan, Y), "Input y contains NaN"),
    "two-dimensional labels": (X, np.c_[Y, Y], "y should be a 1d array"),
    "complex": (X + 1j, Y, "Complex data not supported"),
}


@pytest.mark.parametrize(("features", "labels", "expected"), BAD.values(), ids=BAD)
def test_bad_data_are_refused(features, labels, expected):
    with pytest.raises(ValueError, match=f"^MulticlassSVC: .*{expected}") as caught:
        MulticlassSVC().fit(features, labels)
    assert "\n" not in str(caught.value)


PREDICTED = {
    "nan": (with_value(np.nan), "feature 2 of example 7 of X is NaN"),
    "features": (X[:, :2], "X has 2 features, but MulticlassSVC is expecting 4 features as input"),
    "one array": (X[0], "Expected 2D array, got 1D array instead"),
}


@pytest.mark.parametrize(("features", "expected"), PREDICTED.values(), ids=PREDICTED)
def test_bad_data_at_predict_are_refused(features, expected):
    with pytest.raises(ValueError, match=f"^MulticlassSVC: .*{expected}") as caught:
        fitted(X).predict(features)
    assert "\n" not in str(caught.value)


PARAMETERS = {
    "C": ({"C": -1}, r"The 'C' parameter of MulticlassSVC must be .* a float in the range \(0.0, inf\)"),
    "zero": ({"C": 0}, "The 'C' parameter of MulticlassSVC"),
    "method": ({"method": "sgd"}, "The 'method' parameter of MulticlassSVC must be a str among .*Got 'sgd'"),
    "max_iter": ({"max_iter": 0}, "The 'max_iter' parameter"),
    "tol": ({"tol": -0.1}, "The 'tol' parameter"),
    "sampling": ({"sampling": "cyclic"}, "The 'sampling' parameter"),
    "loss name": ({"loss": "hinge"}, "The 'loss' parameter"),
    "loss shape": (
        {"loss": np.zeros((2, 2))},
        r"MulticlassSVC: a cost matrix must .* \(3, 3\), got \(2, 2\)",
    ),
    "loss diagonal": ({"loss": np.ones((3, 3))}, "MulticlassSVC: a cost matrix must be finite"),
    "loss negative": ({"loss": np.eye(3) - 1.0}, "MulticlassSVC: a cost matrix must be finite"),
    "loss ragged": ({"loss": [[0.0], [1.0, 2.0]]}, r"MulticlassSVC: loss must be .* \(3, 3\), got a list"),
}


@pytest.mark.parametrize(("parameters", "expected"), PARAMETERS.values(), ids=PARAMETERS)
def test_bad_parameters_are_refused(parameters, expected):
    with pytest.raises(ValueError, match=expected) as caught:
        MulticlassSVC(**parameters).fit(X, Y)
    assert "\n" not in str(caught.value)
