"""ChainSVC of second order: its weights, its certificate, and how it works with scikit-learn."""

import pickle
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from maxmargin import ChainSVC

_rng = np.random.default_rng(0)
LENGTHS = (5, 1, 4, 2, 5, 3, 6, 4, 5, 3, 5, 6)


def _labels(length: int, rng: np.random.Generator) -> Any:
    """Draw two labels, and go on so that each three in a row add up to a multiple of three."""
    labels = list(rng.integers(3, size=2))
    while len(labels) < length:
        labels.append(-(labels[-1] + labels[-2]) % 3)
    return np.array(labels[:length])


Y = [_labels(length, _rng) for length in LENGTHS]
X = [np.eye(4)[labels] + 0.8 * _rng.normal(size=(len(labels), 4)) for labels in Y]
NAMES = [[("verb", "noun", "adverb")[label] for label in labels] for labels in Y]
MODEL = ChainSVC(C=1.0, order=2, loss="normalized_hamming", tol=0.02, max_iter=1000, random_state=0)


def score_of(model: ChainSVC, x: Any, labels: Any) -> float:
    """Return the score of a labelling, by its formula."""
    total = model.start_[labels[0]] + model.end_[labels[-1]]
    total += sum(model.coef_[label] @ row for label, row in zip(labels, x, strict=True))
    total += sum(model.transitions_[a, b] for a, b in pairwise(labels))
    return total + sum(model.trigrams_[abc] for abc in zip(labels, labels[1:], labels[2:], strict=False))


def objective(model: ChainSVC, n: int) -> float:
    """Return the objective on the first n sequences, by enumeration."""
    parts = model.coef_, model.transitions_, model.trigrams_, model.start_, model.end_
    hinges = [
        max(np.mean(y != np.array(z)) + score_of(model, x, z) for z in product(range(3), repeat=len(y)))
        - score_of(model, x, y)
        for x, y in zip(X[:n], Y[:n], strict=True)
    ]
    return sum((part**2).sum() for part in parts) / (2 * model.C * n) + float(np.mean(hinges))


def flat(sequences: Any) -> list[Any]:
    return [label for labels in sequences for label in labels]


@pytest.mark.long
def test_certificate_and_predictions_are_those_of_an_enumeration() -> None:
    model = clone(MODEL).fit(X[:6], Y[:6])
    assert objective(model, 6) == pytest.approx(model.history_.primal.min(), rel=1e-9)
    assert 0.0 <= model.gap_ <= model.tol
    for x, predicted in zip(X[:6], model.predict(X[:6]), strict=True):
        best = max(product(range(3), repeat=len(x)), key=lambda labels, x=x: score_of(model, x, labels))
        assert tuple(predicted) == best


def test_what_follows_two_labels_is_learnt() -> None:
    second = clone(MODEL).set_params(tol=0.005).fit(X, Y)
    assert second.trigrams_.shape == (3, 3, 3)
    seen = {abc for y in Y for abc in zip(y, y[1:], y[2:], strict=False)}
    assert all(second.trigrams_[abc] >= 0.0 for abc in seen)
    assert all(second.trigrams_[abc] <= 0.0 for abc in product(range(3), repeat=3) if sum(abc) % 3)
    assert second.score(X, Y) > clone(MODEL).set_params(order=1).fit(X, Y).score(X, Y)


def test_labels_may_be_strings() -> None:
    model, expected = (
        clone(MODEL).set_params(tol=0.2).fit(X, labels) for labels in (NAMES, [2 - y for y in Y])
    )
    assert model.classes_.tolist() == ["adverb", "noun", "verb"]
    np.testing.assert_array_equal(model.trigrams_, expected.trigrams_)
    assert [("adverb", "noun", "verb")[k] for k in flat(expected.predict(X))] == flat(model.predict(X))
    assert model.score(X, NAMES) == expected.score(X, [2 - y for y in Y])


@pytest.mark.long
def test_clones_pickles_and_grid_searches_work() -> None:
    model = clone(MODEL).fit(X, Y)
    assert clone(model).get_params() == MODEL.get_params()
    assert repr(ChainSVC(order=2)) == "ChainSVC(order=2)"
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.trigrams_, model.trigrams_)
    assert flat(again.predict(X)) == flat(model.predict(X))
    search = GridSearchCV(MODEL, {"order": [1, 2]}, cv=3).fit(X, Y)
    by_hand = [cross_val_score(clone(MODEL).set_params(order=order), X, Y, cv=3).mean() for order in (1, 2)]
    assert search.cv_results_["mean_test_score"].tolist() == pytest.approx(by_hand)
    assert by_hand[0] != by_hand[1]


def test_a_fitted_model_keeps_its_order() -> None:
    model = clone(MODEL).set_params(tol=0.5).fit(X, Y)
    predicted = flat(model.predict(X))
    model.set_params(order=1)
    assert flat(model.predict(X)) == predicted
    assert model.trigrams_.shape == (3, 3, 3)
    assert not hasattr(model.fit(X, Y), "trigrams_")


@pytest.mark.long
def test_partial_fit_is_certified_for_all_examples() -> None:
    """Also where later sequences are longer than all before."""
    model = clone(MODEL)
    for a, b in ((0, 6), (6, 7)):
        model.partial_fit(X[a:b], Y[a:b], classes=[0, 1, 2])
        assert 0.0 <= model.gap_ <= model.tol
        assert objective(model, b) == pytest.approx(model.history_.primal.min(), rel=1e-9)


def test_warm_start_goes_on_unless_the_order_changes() -> None:
    model = clone(MODEL).set_params(warm_start=True, check_every=1, tol=0.1).fit(X, Y)
    model.set_params(C=1.3).fit(X, Y)
    cold = clone(model).fit(X, Y)
    assert model.n_iter_ < cold.n_iter_
    model.set_params(order=1).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, clone(model).fit(X, Y).coef_)


@pytest.mark.parametrize("order", [0, 3, 1.5, "2", None])
def test_other_orders_are_refused(order: Any) -> None:
    with pytest.raises(ValueError, match=r"^The 'order' parameter of ChainSVC must be .*\. Got ") as caught:
        ChainSVC(order=order).fit(X, Y)
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_k_best_labellings_have_the_margins_of_their_scores() -> None:
    model, few = clone(MODEL).fit(X[:6], Y[:6]), X[:6]
    for x, first, (labels, margins) in zip(
        few, model.predict(few), model.predict_k_best(few, 30), strict=True
    ):
        assert labels[0].tolist() == first.tolist()
        scores = np.sort([score_of(model, x, z) for z in product(range(3), repeat=len(x))])[::-1][:30]
        assert margins == pytest.approx(scores[0] - scores, abs=1e-10)
        assert [score_of(model, x, z) for z in labels] == pytest.approx(scores, abs=1e-10)
        assert len({tuple(z) for z in labels}) == min(30, 3 ** len(x))


def test_trigrams_need_a_model_of_second_order() -> None:
    with pytest.raises(AttributeError, match=r"^ChainSVC: trigrams_ needs a model of order 2, got order 1"):
        _ = clone(MODEL).set_params(order=1).fit(X, Y).trigrams_
