"""Scores: what does not fit the predictions is refused in one line, and never broadcast."""

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from support.estimators import KINDS, SETS, Kind

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request: pytest.FixtureRequest) -> tuple[Kind, Any]:
    kind = KINDS[request.param]
    return kind, kind.new().fit(kind.X, kind.y)


def refusal(model: Any, X: Any, y: Any, **arguments: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        model.score(X, y, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{type(model).__name__}: ")
    return message


def test_outputs_must_be_as_many_as_examples(kind: Kind) -> None:
    model = kind.new().fit(kind.X, kind.y)
    assert np.isfinite(model.score(kind.X, kind.y))
    for y in (kind.y[:-1], kind.y[:1], [*kind.y, kind.y[0]], [], 0, None, "abc", np.nan):
        refusal(model, kind.X, y)


def test_outputs_must_be_of_the_kind_that_is_predicted() -> None:
    wrong = {
        "multiclass": [np.array(["0", "1", "2"] * 2), np.full(6, np.nan), np.full(6, 0.5), [None] * 6],
        "chain": [[["0", "1", "2", "0"]] * 4, [[np.nan] * 4] * 4, [[0, 1, 2]] * 4, np.zeros((4, 4, 1))],
        "segments": [[[(0, 2, 1)]] * 4, [["B-A", "O"]] * 4, [[(0, 9, "A")]] * 4, [[np.nan]] * 4],
        "matching": [[["a", "b"]] * 4, [[0]] * 4, [[np.nan, 0]] * 4, [[0, 7]] * 4],
        "dependency": [[["0", "1", "2"]] * 4, [[0]] * 4, [[np.nan] * 3] * 4, [[0, 1, 9]] * 4],
        "graph": [[["0", "1", "0"]] * 4, [[0, 1]] * 4, [[np.nan] * 3] * 4],
        "multilabel": [
            SETS[:1],
            SETS[0],
            SETS[:, :1],
            0,
            SETS.astype(str),
            np.full((4, 3), np.nan),
            SETS + 0.5,
            np.stack([SETS, SETS]),
        ],
        "structured": [[0, 1], 3, {0: 1}],
    }
    assert wrong.keys() == KINDS.keys()
    for name, outputs in wrong.items():
        model = KINDS[name].new().fit(KINDS[name].X, KINDS[name].y)
        for y in outputs:
            refusal(model, KINDS[name].X, y)


def test_labels_of_another_kind_are_named() -> None:
    X, y = KINDS["chain"].X, [["0", "1", "2", "0"]] * 4
    model = KINDS["chain"].new().fit(X, KINDS["chain"].y)
    assert refusal(model, X, y) == (
        "ChainSVC: y has the label '0' (str), but ChainSVC was fitted with labels such as 0 (int); give "
        "labels of the same kind."
    )
    assert model.score(X, [[7, 7, 7, 7]] * 4) == 0.0  # of the same kind, but not seen in fit


def test_a_loss_that_is_not_a_number_is_refused() -> None:
    kind = KINDS["structured"]
    model = kind.new().fit(kind.X, kind.y).set_params(loss=lambda truth, y: np.nan)
    assert "loss must be a finite number >= 0, got nan for example 0" in refusal(model, kind.X, kind.y)


@pytest.mark.parametrize("which", ["multiclass", "multilabel"])
def test_weighted_scores_of_classes_are_accuracies(which: str) -> None:
    X, y = KINDS[which].X, KINDS[which].y
    model = KINDS[which].new(C=0.01).fit(X, y)
    for chosen in (None, np.random.default_rng(0).uniform(0.5, 2.0, len(X))):
        expected = accuracy_score(y, model.predict(X), sample_weight=chosen)
        assert model.score(X, y, sample_weight=chosen) == pytest.approx(expected, abs=1e-12)


def test_weighted_scores_of_sequences_are_accuracies_of_their_tokens() -> None:
    rng, kind = np.random.default_rng(0), KINDS["chain"]
    X = [rng.normal(size=(length, 3)) for length in (4, 1, 0, 7, 2)]
    y, lengths = [rng.integers(0, 3, len(x)).tolist() for x in X], [len(x) for x in X]
    model = kind.new().fit(kind.X, kind.y)
    for chosen in (None, rng.uniform(0.0, 2.0, len(X)), np.array([0.0, 1.0, 5.0, 0.0, 2.0])):
        weights = None if chosen is None else np.repeat(chosen, lengths)
        expected = accuracy_score([*chain(*y)], [*chain(*model.predict(X))], sample_weight=weights)
        assert model.score(X, y, sample_weight=chosen) == pytest.approx(expected, abs=1e-12)


def taken(values: Any, places: Any) -> Any:
    return values[places] if isinstance(values, np.ndarray) else [values[i] for i in places]


@given(data=st.data())
def test_an_example_of_weight_two_counts_as_two(fitted: tuple[Kind, Any], data: st.DataObject) -> None:
    kind, model = fitted
    n = len(kind.y)
    truth = taken(kind.y, data.draw(st.permutations(range(n))))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any))
    repeated = np.repeat(np.arange(n), weights)
    expected = model.score(taken(kind.X, repeated), taken(truth, repeated))
    assert model.score(kind.X, truth, sample_weight=weights) == pytest.approx(expected, abs=1e-12)


def test_weights_must_be_one_number_for_each_example(kind: Kind) -> None:
    model, weights = kind.new().fit(kind.X, kind.y), np.linspace(0.5, 2.0, len(kind.y))
    for bad in (
        weights[:1],
        weights[:, None],
        -weights,
        0.0 * weights,
        np.full(len(weights), np.nan),
        "ab",
        ["a"] * len(weights),
    ):
        refusal(model, kind.X, kind.y, sample_weight=bad)
