"""`l1_ratio` of all estimators: an elastic net, whose weights are often zero, and what is refused."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from maxmargin import ChainSVC, MulticlassSVC, SegmentSVC, load
from support import naive
from support.bitwise_runs import bits
from support.estimators import KINDS

LINEAR = {name: kind for name, kind in KINDS.items() if "kernel" not in name}


def fitted(name: str, **parameters: Any) -> Any:
    kind = LINEAR[name]
    return kind.new(**{"C": 2.0, "tol": 1e-3} | parameters).fit(kind.X, kind.y)


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", LINEAR)
def test_weights_of_every_estimator_become_zero(name: str, tmp_path: Path) -> None:
    plain, model = fitted(name, C=0.5), fitted(name, C=0.5, l1_ratio=0.8)
    assert np.count_nonzero(model._w) < np.count_nonzero(plain._w)
    assert model._w.shape == plain._w.shape
    assert model.certified_ == plain.certified_
    assert 0.0 <= model.gap_ <= 1e-3 * max(model.history_.primal.min(), 0.01) + 1e-12
    assert clone(model).get_params()["l1_ratio"] == 0.8
    if name != "structured":  # functions are not stored
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert bits(again._w) == bits(model._w)
        assert again.l1_ratio == 0.8
        assert same(again.predict(LINEAR[name].X), model.predict(LINEAR[name].X))


@pytest.mark.parametrize(("C", "r"), [(1.0, 0.5), (5.0, 0.6), (0.3, 0.9)])
def test_the_objective_is_that_of_an_elastic_net(C: float, r: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 3)), np.array([0, 1, 2, 0, 1, 2, 0])
    data = naive.enumerate_multiclass(X, y, 3, 1.0 - np.eye(3))
    model = MulticlassSVC(C=C, l1_ratio=r, tol=1e-5, fit_intercept=False, random_state=0).fit(X, y)

    def objective(w: Any) -> float:
        hinges = sum(naive.margins(data, i, w).max() for i in range(7))
        return float(C * hinges + r * np.abs(w).sum() + 0.5 * (1.0 - r) * (w @ w))

    best = naive.penalised_optimum(data, (1.0 - r) / (7 * C), np.zeros(0, int), r / (1.0 - r))
    least = objective(best)
    assert least - 1e-6 <= objective(model.coef_.ravel()) <= least * (1.0 + 1e-4) + 1e-6
    assert model.history_.primal.min() * 7 * C == pytest.approx(least, rel=1e-4)
    assert (model.coef_ == 0.0).any()


@pytest.mark.parametrize("name", LINEAR)
def test_a_share_of_zero_is_none(name: str) -> None:
    assert bits(fitted(name, l1_ratio=0.0)._w) == bits(fitted(name)._w)


@pytest.mark.parametrize("name", ["chain", "multiclass"])
def test_training_goes_on_where_it_stopped(name: str, tmp_path: Path) -> None:
    kind, given = LINEAR[name], {"C": 2.0, "tol": 1e-3, "l1_ratio": 0.4}
    expected = kind.new(**given).fit(kind.X, kind.y)
    half = len(kind.X) // 2
    more = kind.new(**given)
    more.partial_fit(kind.X[:half], kind.y[:half], classes=expected.classes_)
    more.partial_fit(kind.X[half:], kind.y[half:])
    warm = kind.new(**given | {"C": 1.0, "warm_start": True}).fit(kind.X, kind.y)
    assert warm.set_params(C=2.0).fit(kind.X, kind.y).history_.dual[0] > 0.0
    file = tmp_path / "checkpoint"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind.new(**given | {"max_iter": 2}, checkpoint=file).fit(kind.X, kind.y)
    stopped = kind.new(**given, checkpoint=file).fit(kind.X, kind.y)
    assert bits(stopped._w) == bits(expected._w)
    threads = kind.new(**given, n_jobs=2).fit(kind.X, kind.y)
    for model in (warm, threads, *([more] if name == "multiclass" else [])):
        assert model.history_.primal.min() == pytest.approx(expected.history_.primal.min(), rel=3e-3)
        assert np.count_nonzero(model._w) < model._w.size
    other = warm.set_params(l1_ratio=0.2).fit(kind.X, kind.y)  # another problem: it starts afresh
    assert bits(other._w) == bits(kind.new(**given | {"l1_ratio": 0.2}).fit(kind.X, kind.y)._w)


def test_probabilities_are_those_of_the_sparse_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0.0).astype(int)
    model = MulticlassSVC(C=1.0, l1_ratio=0.5, probability=True, random_state=0).fit(X, y)
    assert (model.coef_ == 0.0).any()
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_signs_and_the_penalty_hold_together() -> None:
    kind = LINEAR["graph"]
    given = {"C": 0.5, "tol": 1e-3, "inference": "tree", "nonnegative": {"nodes": [0, 1]}}
    model = kind.new(**given, l1_ratio=0.5).fit(kind.X, kind.y)
    assert (model.coef_[:, :2] >= 0.0).all()
    assert np.count_nonzero(model._w) < np.count_nonzero(kind.new(**given).fit(kind.X, kind.y)._w)


def test_long_sequences_have_sparse_weights_too() -> None:
    rng = np.random.default_rng(0)
    X = [[[f"w{k}"] for k in rng.integers(50, size=3000)] for _ in range(2)]
    y = [["a" if int(x[0][1:]) < 5 else "b" for x in xs] for xs in X]
    model = ChainSVC(C=1e-3, l1_ratio=0.5, random_state=0, max_iter=30, tol=0.3).fit(X, y)
    assert (model.coef_ == 0.0).any()
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"l1_ratio": 1.0}, "The 'l1_ratio' parameter of ChainSVC must be"),
        ({"l1_ratio": -0.1}, "The 'l1_ratio' parameter of ChainSVC must be"),
        ({"l1_ratio": "a"}, "The 'l1_ratio' parameter of ChainSVC must be"),
        ({"l1_ratio": 0.3, "kernel": "rbf"}, "ChainSVC: l1_ratio must be None with a kernel other than"),
        ({"l1_ratio": 0.3, "method": "ssg"}, "solve: method must be Away, BlockExact, .* L1Penalised, got"),
        ({"l1_ratio": 0.3, "method": "perceptron"}, "solve: method must be Away, .* L1Penalised, got"),
    ],
)
def test_what_cannot_hold_is_refused_in_one_line(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=rf"^{expected}[^\n]*$"):
        ChainSVC(**parameters).fit([[[0.5], [1.0]], [[2.0]]], [["a", "b"], ["a"]])


NAMED = [[{"w": f"w{k % 7}", "n": f"n{k}"} for k in range(9)] for _ in range(4)]
TAGS = [["B-a" if k % 7 == 0 else "I-a" if k % 7 < 3 else "O" for k in range(9)] for _ in range(4)]


@pytest.mark.parametrize("make", [ChainSVC, SegmentSVC])
def test_names_without_weights_are_forgotten(make: Any, tmp_path: Path) -> None:
    given = {"C": 0.3, "l1_ratio": 0.6, "random_state": 0}
    model, all_names = make(**given).fit(NAMED, TAGS), make(**given, warm_start=True).fit(NAMED, TAGS)
    assert 0 < len(model.feature_names_) < len(all_names.feature_names_) == 16
    assert model.n_features_in_ == len(model.feature_names_) == model.coef_.shape[1]
    parts = ["coef_"] if make is ChainSVC else ["coef_", "first_coef_", "last_coef_"]
    assert np.any([getattr(model, part).any(axis=0) for part in parts], axis=0).all()
    assert model.top_features(k=99).equals(all_names.top_features(k=99))
    assert model.predict(NAMED) == all_names.predict(NAMED)
    np.testing.assert_array_equal(
        np.concatenate(model.predict_margins(NAMED)), np.concatenate(all_names.predict_margins(NAMED))
    )
    model.save(tmp_path / "model")
    all_names.save(tmp_path / "all")
    assert (tmp_path / "model").stat().st_size < (tmp_path / "all").stat().st_size
    again = load(tmp_path / "model")
    assert again.feature_names_ == model.feature_names_
    assert again.predict(NAMED) == model.predict(NAMED)
    assert make(C=0.3, random_state=0).fit(NAMED, TAGS).n_features_in_ == 16


def test_a_model_without_features_predicts_what_is_most_frequent() -> None:
    model = ChainSVC(C=1e-6, l1_ratio=0.9, random_state=0).fit(NAMED, TAGS)
    assert not model.coef_.any()
    assert len(model.feature_names_) == 1
    assert [len(y) for y in model.predict(NAMED)] == [9] * 4


@pytest.mark.parametrize("name", ["chain", "segments", "multiclass", "multilabel", "graph"])
def test_coefficients_are_a_sparse_matrix_on_request(name: str) -> None:
    kind = LINEAR[name]
    model = fitted(name, l1_ratio=0.5)
    array, predicted, top = model.coef_, model.predict(kind.X), model.top_features(k=50)
    assert model.sparsify() is model
    for each in (model, clone(model).fit(kind.X, kind.y).sparsify(), pickle.loads(pickle.dumps(model))):
        assert issparse(each.coef_)
    np.testing.assert_array_equal(model.coef_.toarray(), array)
    assert model.coef_.nnz == np.count_nonzero(array)
    assert same(model.predict(kind.X), predicted)
    assert model.top_features(k=50).equals(top)
    assert not issparse(model.densify().coef_)
    assert not issparse(model.sparsify().fit(kind.X, kind.y).coef_)
    with pytest.raises(NotFittedError):
        kind.new().sparsify()
