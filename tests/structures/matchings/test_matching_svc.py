"""The matching estimator: forms of data, its weights, what it refuses, and how it works with scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from maxmargin import MatchingSVC
from support.naive import all_matchings

SIZES = [(2, 3), (3, 2), (1, 1), (3, 3), (2, 2), (3, 1), (2, 3), (3, 3)]
_rng = np.random.default_rng(0)


def _pair(size, rng):
    """Links whose first feature says, through noise, whether they are true; on the diagonal most are."""
    y = np.where(np.arange(size[0]) < size[1], np.arange(size[0]), -1)
    y[rng.random(size[0]) < 0.2] = -1
    truth = y[:, None] == np.arange(size[1])
    return truth[:, :, None] * [1.0, 0.0] + 0.3 * rng.normal(size=(*size, 2)), y


X, Y = (list(side) for side in zip(*(_pair(size, _rng) for size in SIZES), strict=True))
LINKS = [[(j, int(k)) for j, k in enumerate(y) if k >= 0] for y in Y]


def fitted(features=X, matchings=Y, possible=None, **parameters):
    parameters = {"C": 1.0, "tol": 0.02, "random_state": 0} | parameters
    return MatchingSVC(**parameters).fit(features, matchings, possible)


def score_of(model, x, y):
    """The score of a matching of places to targets, by its formula."""
    fertility, total = len(model.places_) + 1, 0.0
    for place, k in enumerate(y):
        if k >= 0:
            total += x[place // fertility, k] @ model.coef_ + model.intercept_
            total += model.places_[place % fertility - 1] if place % fertility else 0.0
    return total


def test_predictions_have_the_highest_score():
    model = fitted()
    for x, predicted in zip(X, model.predict(X), strict=True):
        best = max(score_of(model, x, y) for y in all_matchings(*x.shape[:2]))
        assert score_of(model, x, predicted) == pytest.approx(best, abs=1e-12)
        assert predicted.dtype == np.int64


def test_predictions_of_several_links_have_the_highest_score():
    model = fitted(matchings=LINKS, fertility=2)
    assert model.places_.shape == (1,)
    for x, links in zip(X, model.predict(X), strict=True):
        assert links == sorted(set(links))
        best = max(score_of(model, x, y) for y in all_matchings(2 * len(x), x.shape[1]))
        further = sum(links[c][0] == links[c + 1][0] for c in range(len(links) - 1))
        found = sum(x[link] @ model.coef_ + model.intercept_ for link in links)
        assert found + further * model.places_[0] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("size", [(2, 3), (3, 1)])
def test_more_places_than_targets_count_as_the_targets(size):
    """A source has one link per target at most; with one target, predictions are lists of links still."""
    pairs = [i for i, given in enumerate(SIZES) if given == size]
    data = [X[i] for i in pairs], [LINKS[i] for i in pairs]
    model, expected = (fitted(*data, fertility=fertility) for fertility in (10**9, max(size[1], 2)))
    assert model.places_.tolist() == expected.places_.tolist()
    assert model.coef_.tolist() == expected.coef_.tolist()
    assert all(isinstance(links, list) for links in model.predict(data[0]))


def test_later_pairs_with_more_links_than_places_are_refused():
    model = MatchingSVC(fertility=9, random_state=0, verbose=0).partial_fit([np.ones((2, 3, 1))], [[0, 1]])
    model.partial_fit([np.ones((1, 5, 1))], [[(0, 1), (0, 2), (0, 4)]])
    with pytest.raises(ValueError, match="pair 0 of y has 4 links, but the pairs of the first"):
        model.partial_fit([np.ones((1, 5, 1))], [[(0, k) for k in range(4)]])


@pytest.mark.parametrize("possible", [None, [[(0, 0)]] * len(X)])
def test_the_certificate_is_that_of_an_enumeration(possible):
    C, wrong, missed = 0.5, 0.7, 2.0
    model = fitted(C=C, wrong=wrong, missed=missed, possible=possible, tol=1e-3)
    squares, hinges = (model.coef_**2).sum() + model.intercept_**2, []
    free = set() if possible is None else {(0, 0)}
    for x, truth in zip(X, Y, strict=True):
        links = {(j, k) for j, k in enumerate(truth) if k >= 0}
        values = []
        for y in all_matchings(*x.shape[:2]):
            found = {(j, k) for j, k in enumerate(y) if k >= 0}
            loss = wrong * len(found - links - free) + missed * len(links - found)
            values.append(loss + score_of(model, x, y) - score_of(model, x, truth))
        hinges.append(max(values))
    primal = squares / (2 * C * len(X)) + np.mean(hinges)
    assert primal == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert model.gap_ == model.history_.primal.min() - model.history_.dual.max()
    assert 0 <= model.gap_ <= 1e-3
    assert model.n_iter_ == model.history_.passes[-1]


def test_intercept_is_a_constant_feature():
    constant = [np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2) for x in X]
    model, other = fitted(), fitted(constant, fit_intercept=False)
    np.testing.assert_array_equal(np.append(model.coef_, model.intercept_), other.coef_)
    assert other.intercept_ == 0.0
    assert (model.n_features_in_, other.n_features_in_) == (2, 3)


def test_score_is_the_f1_of_links():
    model = fitted(C=10.0)
    assert model.coef_[0] > abs(model.coef_[1])
    predicted = model.predict(X)
    found = {(i, j, k) for i, y in enumerate(predicted) for j, k in enumerate(y) if k >= 0}
    truth = {(i, j, k) for i, y in enumerate(Y) for j, k in enumerate(y) if k >= 0}
    assert model.score(X, Y) == pytest.approx(2 * len(found & truth) / (len(found) + len(truth)))
    assert model.score(X, LINKS) == model.score(X, Y) > 0.8


def test_truths_without_links_give_models_without_links():
    unlinked = [[-1] * len(x) for x in X]
    model = fitted(matchings=unlinked, C=10.0)
    assert [y.tolist() for y in model.predict(X)] == unlinked
    assert model.score(X, unlinked) == 1.0
    assert model.score(X, Y) == 0.0


def test_settings_changed_after_the_fit_do_not_disturb_it():
    model = fitted()
    expected = model.predict(X)
    model.set_params(fertility=3, fit_intercept=False)
    for found, same in zip(model.predict(X), expected, strict=True):
        np.testing.assert_array_equal(found, same)


def test_clones_pickles_and_threads_agree():
    model = fitted(n_jobs=2, tol=1e-3)
    assert clone(model).get_params() == model.get_params()
    other = pickle.loads(pickle.dumps(model))
    for one, two, alone in zip(model.predict(X), other.predict(X), fitted(tol=1e-3).predict(X), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, alone)


def test_searches_and_cross_validation_score_by_links():
    search = GridSearchCV(MatchingSVC(tol=0.1, random_state=0), {"C": [0.01, 1.0]}, cv=KFold(2))
    search.fit(X, Y, possible=[[(0, 0)]] * len(X))
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() > 0.5
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert cross_val_score(search.best_estimator_, X, Y, cv=KFold(2)).shape == (2,)


def test_warm_start_goes_on():
    model = fitted(warm_start=True)
    weights = model.coef_.copy()
    assert model.n_iter_ > 0
    assert model.fit(X, Y).n_iter_ == 0
    np.testing.assert_array_equal(model.coef_, weights)
    assert model.set_params(C=2.0).fit(X, Y).gap_ <= 0.02


def test_a_fit_that_does_not_converge_warns():
    with pytest.warns(ConvergenceWarning, match=r"^MatchingSVC: .* raise max_iter or tol, or lower C"):
        fitted(tol=0.0, max_iter=1, C=100.0)


def test_an_estimator_must_be_fitted():
    with pytest.raises(NotFittedError):
        MatchingSVC().predict(X)


REFUSED = [
    ({"wrong": -1.0}, "The 'wrong' parameter of MatchingSVC must be"),
    ({"fertility": 0}, "The 'fertility' parameter of MatchingSVC must be"),
    ({"method": "newton"}, "The 'method' parameter of MatchingSVC must be"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(**parameters)


def test_wrong_data_are_refused():
    with pytest.raises(ValueError, match=r"^MatchingSVC: target 0 of pair 0 of y has 2 links"):
        fitted(matchings=[[0, 0], *Y[1:]])
    with pytest.raises(
        ValueError, match=r"^MatchingSVC: possible must be a list of 8 matchings, got 1 items"
    ):
        fitted(possible=[[]])
    with pytest.raises(ValueError, match=r"^MatchingSVC: matching 0 of possible has the link \(5, 5\)"):
        fitted(possible=[[(5, 5)]] + [[]] * 7)
    with pytest.raises(ValueError, match=r"^MatchingSVC: links of X have 1 features, but .* fitted with 2"):
        fitted().predict([x[:, :, :1] for x in X])
