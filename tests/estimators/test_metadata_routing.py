"""Weights of examples on their way through scikit-learn's pipelines and searches."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from maxmargin import ChainSVC, MulticlassSVC, TokenTransformer
from support.estimators import KINDS

FOLDS = KFold(3)
_rng = np.random.default_rng(0)
TABLE = _rng.normal(size=(30, 3))
CLASSES = np.argmax(TABLE + 1.5 * _rng.normal(size=(30, 3)), axis=1)
SEQUENCES = list(np.split(TABLE, 10))
LABELS = [y.tolist() for y in np.split(CLASSES, 10)]


@pytest.fixture(autouse=True)
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


def weights_for(y: Any) -> Any:
    return np.random.default_rng(1).integers(1, 9, len(y)).astype(float)


def taken(values: Any, places: Any) -> Any:
    return values[places] if isinstance(values, np.ndarray) else [values[i] for i in places]


SETTINGS = {
    "multiclass": (MulticlassSVC(C=0.1, random_state=0), MaxAbsScaler(), TABLE, CLASSES),
    "chain": (ChainSVC(C=0.1, random_state=0), TokenTransformer(MaxAbsScaler()), SEQUENCES, LABELS),
}


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Any:
    return SETTINGS[request.param]


def fitted(model: Any, scaler: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """The estimator and the scaler fitted one by one, without scikit-learn's routing."""
    scaler = clone(scaler)
    return clone(model).fit(scaler.fit_transform(X), y, sample_weight=weights), scaler


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_can_be_asked_for_its_weights(kind: str) -> None:
    model = KINDS[kind].new().set_fit_request(sample_weight=True).set_partial_fit_request(sample_weight=True)
    requests = clone(model).get_metadata_routing()
    assert requests.fit.requests["sample_weight"] is True
    assert requests.partial_fit.requests["sample_weight"] is True


def test_a_pipeline_hands_weights_to_fit(setting: Any) -> None:
    model, scaler, X, y = setting
    pipeline = make_pipeline(scaler, clone(model).set_fit_request(sample_weight=True))
    pipeline.fit(X, y, sample_weight=weights_for(y))
    np.testing.assert_array_equal(pipeline[-1].coef_, fitted(*setting, weights_for(y))[0].coef_)
    assert not np.allclose(pipeline[-1].coef_, fitted(*setting)[0].coef_, atol=1e-3)


def test_weights_that_are_not_requested_are_refused(setting: Any) -> None:
    model, scaler, X, y = setting
    with pytest.raises(UnsetMetadataPassedError, match="not explicitly set as requested"):
        make_pipeline(scaler, model).fit(X, y, sample_weight=weights_for(y))


def weighted_score(setting: Any, train: Any, test: Any) -> float:
    model, scaler, X, y = setting
    weights = weights_for(y)
    model, scaler = fitted(model, scaler, taken(X, train), taken(y, train), weights[train])
    score: float = model.score(scaler.transform(taken(X, test)), taken(y, test), sample_weight=weights[test])
    return score


@pytest.mark.parametrize("name", SETTINGS)
def test_folds_are_fitted_and_scored_with_their_weights(name: str) -> None:
    setting = model, scaler, X, y = SETTINGS[name]
    asked = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    pipeline, params = make_pipeline(scaler, asked), {"sample_weight": weights_for(y)}
    found = cross_validate(pipeline, X, y, params=params, cv=FOLDS)["test_score"]
    splits = FOLDS.split(X)
    np.testing.assert_allclose(found, [weighted_score(setting, train, test) for train, test in splits])
    assert not np.allclose(found, cross_validate(make_pipeline(scaler, model), X, y, cv=FOLDS)["test_score"])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_search_refits_with_all_weights(name: str) -> None:
    model, scaler, X, y = SETTINGS[name]
    asked = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    X = scaler.fit_transform(X)
    search = GridSearchCV(asked, {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, y, sample_weight=weights_for(y))
    expected = clone(model).set_params(**search.best_params_).fit(X, y, sample_weight=weights_for(y))
    np.testing.assert_array_equal(search.best_estimator_.coef_, expected.coef_)


def test_weights_reach_partial_fit() -> None:
    model, weights = MulticlassSVC(C=0.1, random_state=0), weights_for(CLASSES)
    selector = SelectFromModel(clone(model).set_partial_fit_request(sample_weight=True, classes=True))
    selector.partial_fit(TABLE, CLASSES, sample_weight=weights, classes=range(3))
    expected = model.partial_fit(TABLE, CLASSES, classes=range(3), sample_weight=weights)
    np.testing.assert_array_equal(selector.estimator_.coef_, expected.coef_)
    assert not np.allclose(expected.coef_, MulticlassSVC(C=0.1, random_state=0).fit(TABLE, CLASSES).coef_)
