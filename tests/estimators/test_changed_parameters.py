"""Parameters set between calls: checked in every call, and never half respected."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import pickle_training_data
from maxmargin.estimators.state import parameters_of
from support.estimators import KINDS, Kind

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
CHANGES = [(kind, name) for kind in KINDS for name in KINDS[kind].changes]
SHORT = {"max_iter": 1, "check_every": 1}  # most of these tests are not about the solution


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.mark.parametrize(("which", "name"), CHANGES)
def test_another_model_is_refused_in_parts(which: str, name: str) -> None:
    kind = KINDS[which]
    model = kind.new(**SHORT).partial_fit(kind.X, kind.y)
    kept, predicted, gap = getattr(model, name), pickle.dumps(model.predict(kind.X)), model.gap_
    model.set_params(**{name: kind.changes[name]})
    message = (
        f"^{type(model).__name__}: {name} must be .*, as in the first call of partial_fit, got .*; call fit"
    )
    with pytest.raises(ValueError, match=message) as caught:
        model.partial_fit(kind.X, kind.y)
    assert "\n" not in str(caught.value)
    assert pickle.dumps(model.predict(kind.X)) == predicted  # the model is the one that was fitted
    assert model.gap_ == gap
    model.set_params(**{name: kept}).partial_fit(kind.X, kind.y)


def test_parameters_are_those_of_scikit_learn(kind: Kind) -> None:
    model = kind.new()
    found = parameters_of(model)
    assert list(found) == list(model.get_params(deep=False))
    assert all(found[name] is value for name, value in model.get_params(deep=False).items())


def test_all_parameters_of_the_model_are_watched(kind: Kind) -> None:
    watched = set(kind.new()._model_parameters())
    untried = {"loss", "argmax", "n_features"} if kind is KINDS["structured"] else set()
    assert watched - untried == set(kind.changes)


@pytest.mark.long
def test_other_parameters_may_change_between_parts(kind: Kind) -> None:
    model = kind.new(tol=0.1).partial_fit(kind.X, kind.y)
    model.set_params(C=3.0, tol=1e-3, method="pairwise", max_iter=3000).partial_fit(kind.X[:2], kind.y[:2])
    assert model.gap_ <= 1e-3


def test_equal_parameters_are_the_same(kind: Kind) -> None:
    model = kind.new()
    with pickle_training_data():
        again = pickle.loads(pickle.dumps(model.partial_fit(kind.X, kind.y)))
    again.set_params(**clone(model).get_params()).partial_fit(kind.X[:2], kind.y[:2])
    assert again.gap_ <= again.tol * again.history_.primal.min()


def test_a_matrix_of_losses_that_is_equal_is_the_same() -> None:
    kind = KINDS["chain"]
    model = kind.new(loss=1.0 - np.eye(3)).partial_fit(kind.X, kind.y)
    model.set_params(loss=1.0 - np.eye(3)).partial_fit(kind.X, kind.y)
    for other in (2.0 - 2.0 * np.eye(3), 1.0 - np.eye(2), "hamming"):
        with pytest.raises(ValueError, match=r"^ChainSVC: loss must be an ndarray of shape \(3, 3\), as in"):
            model.set_params(loss=other).partial_fit(kind.X, kind.y)


def test_a_fit_learns_anew_with_other_parameters() -> None:
    kind = KINDS["chain"]
    model = kind.new().partial_fit(kind.X, kind.y).set_params(order=2).fit(kind.X, kind.y)
    np.testing.assert_array_equal(model.trigrams_, kind.new(order=2).fit(kind.X, kind.y).trigrams_)
    assert model.partial_fit(kind.X, kind.y).trigrams_.shape == (3, 3, 3)


@pytest.mark.parametrize("which", [name for name in KINDS if name not in ("multiclass", "structured")])
@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_threads_to_predict_are_checked(which: str, n_jobs: Any) -> None:
    kind = KINDS[which]
    model = kind.new(**SHORT).fit(kind.X, kind.y).set_params(n_jobs=n_jobs)
    for read in (model.predict, lambda X: model.score(X, kind.y)):
        with pytest.raises(ValueError, match=f"^The 'n_jobs' parameter of {type(model).__name__} must be"):
            read(kind.X)


@pytest.mark.parametrize("which", ["chain", "segments"])
@pytest.mark.parametrize("k", [0, -1, 1.5, "a", None])
def test_the_number_of_best_outputs_is_checked(which: str, k: Any) -> None:
    kind = KINDS[which]
    model = kind.new(**SHORT).fit(kind.X, kind.y)
    with pytest.raises(ValueError, match=f"^{type(model).__name__}: k must be an int >= 1, got "):
        model.predict_k_best(kind.X, k)


@pytest.mark.parametrize("which", ["chain", "segments"])
def test_more_best_outputs_than_there_are_cost_nothing(which: str) -> None:
    kind = KINDS[which]
    model = kind.new().fit(kind.X, kind.y)
    short = [x[:2] for x in kind.X]
    for many, all_of_them in zip(
        model.predict_k_best(short, 10**12), model.predict_k_best(short, 50), strict=True
    ):
        assert len(many.margins) == len(all_of_them.margins) < 50
        np.testing.assert_array_equal(many.margins, all_of_them.margins)
