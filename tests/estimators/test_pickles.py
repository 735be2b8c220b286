"""Pickles hold the model; the training data only if the user asks."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.preprocessing import StandardScaler

from maxmargin import MulticlassSVC, TokenTransformer, pickle_training_data
from maxmargin.estimators import state
from support.estimators import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = {"max_iter": 2, "check_every": 1}  # these tests are not about the solution


@pytest.fixture(params=[name for name in KINDS if name != "structured"])
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


def stored(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def test_a_pickle_predicts_and_has_no_training_data(kind: Any) -> None:
    plain = kind.new(**SHORT).fit(kind.X, kind.y)
    assert plain.kept_bytes_ == 0
    for model in (
        kind.new(warm_start=True, **SHORT).fit(kind.X, kind.y),
        kind.new(**SHORT).partial_fit(kind.X, kind.y),
    ):
        assert model.kept_bytes_ > 0
        assert stored(model).kept_bytes_ == 0
        assert pickle.dumps(stored(model).predict(kind.X)) == pickle.dumps(model.predict(kind.X))
        assert len(pickle.dumps(model)) < len(pickle.dumps(plain)) + 500
        assert model.kept_bytes_ > 0  # pickling leaves the estimator itself alone


def test_partial_fit_after_a_pickle_says_what_is_missing(kind: Any) -> None:
    model = stored(kind.new(**SHORT).partial_fit(kind.X, kind.y))
    with pytest.raises(ValueError, match=r"^\w+: partial_fit needs the examples .*within maxmargin\.p"):
        model.partial_fit(kind.other_X, kind.other_y)
    assert model.fit(kind.X, kind.y).gap_ >= 0.0
    assert model.partial_fit(kind.X, kind.y).gap_ >= 0.0  # fit has begun anew


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, stored], ids=["copy", "deepcopy", "pickle"])
def test_copies_go_on(kind: Any, copied: Any) -> None:
    model = kind.new(**SHORT).partial_fit(kind.X, kind.y)
    with pickle_training_data():
        other = copied(model)
    for each in (model, other):
        each.partial_fit(kind.X, kind.y)
    np.testing.assert_array_equal(model._w, other._w)
    assert model.n_iter_ == other.n_iter_


def test_a_warm_start_after_a_pickle_starts_afresh() -> None:
    X, y = np.eye(4), [0, 1, 0, 1]
    model = stored(MulticlassSVC(warm_start=True, random_state=0).fit(X, y)).fit(X, y)
    cold = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.coef_, cold.coef_)
    assert model.n_iter_ == cold.n_iter_ > 0


def test_kept_bytes_are_those_of_the_arrays() -> None:
    X = np.random.default_rng(0).normal(size=(500, 30))
    model = MulticlassSVC(warm_start=True, random_state=0, fit_intercept=False, **SHORT)
    model.fit(X, np.arange(500) % 3)
    assert X.nbytes < model.kept_bytes_ < 10 * X.nbytes


@pytest.mark.parametrize("name", ["multiclass", "chain", "transformer"])
def test_pickles_tell_of_another_version(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TokenTransformer(StandardScaler()) if name == "transformer" else KINDS[name].new(**SHORT)
    X, y = (KINDS["chain"] if name == "transformer" else KINDS[name])[1:3]
    model.fit([np.eye(2)] if name == "transformer" else X, y)
    pickle.loads(pickle.dumps(model))  # of this version: warnings are errors
    monkeypatch.setattr(state, "installed_version", lambda: "0.1.0")
    data = pickle.dumps(model)
    monkeypatch.setattr(state, "installed_version", lambda: "99.0")
    with pytest.warns(InconsistentVersionWarning, match=r"of maxmargin 0\.1\.0, this is 99\.0; it may not"):
        again = pickle.loads(data)
    assert vars(again).keys() == vars(pickle.loads(pickle.dumps(model))).keys()
