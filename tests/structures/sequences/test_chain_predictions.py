"""The labels that ChainSVC predicts, in the form of those it was given, and its weights by name."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from maxmargin import ChainSVC

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dogs", "bark"]]
X = [[[word] for word in words] for words in WORDS]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
NUMBERS = [[3, 1, 2], [3, 1, 2], [1, 2]]


def fitted(y: Any, **parameters: Any) -> ChainSVC:
    return ChainSVC(**({"C": 10.0, "verbose": 0, "random_state": 0} | parameters)).fit(X, y)


FORMS = {
    "lists of str": (Y, list, str),
    "tuples of str": (list(map(tuple, Y)), list, str),
    "lists of numpy str": ([list(np.array(y)) for y in Y], list, str),
    "an iterator": (iter(Y), list, str),
    "lists of int": (NUMBERS, list, int),
    "arrays of str": (list(map(np.array, Y)), np.ndarray, np.str_),
    "arrays of int": (list(map(np.array, NUMBERS)), np.ndarray, np.int64),
}


@pytest.mark.parametrize("form", FORMS)
def test_predictions_have_the_form_of_the_labels(form: str) -> None:
    y, outer, inner = FORMS[form]
    predicted = fitted(y).predict(X)
    assert type(predicted) is list
    assert {type(labels) for labels in predicted} == {outer}
    assert {type(label) for labels in predicted for label in labels} == {inner}
    assert [list(labels) for labels in predicted] == (Y if inner in (str, np.str_) else NUMBERS)


def test_the_first_call_decides_on_the_form() -> None:
    model = ChainSVC(verbose=0).partial_fit(X, Y).partial_fit(X, list(map(np.array, Y)))
    assert type(model.predict(X)[0]) is list


def entities(tags: list[str]) -> list[tuple[str, int]]:
    """As metrics of entities read tags: nested lists only, which they join, and prefixes of str."""
    assert all(isinstance(sequence, list) for sequence in tags)
    joined = [tag for sequence in tags for tag in [*sequence, "O"]]
    return [(tag[2:], i) for i, tag in enumerate(joined) if tag.startswith("B-")]


def test_metrics_of_entities_take_predictions_as_they_are() -> None:
    tags: Any = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP", "O"], ["B-NP", "O"]]
    predicted: Any = fitted(tags).predict(X)
    assert entities(predicted) == entities(tags)
    assert predicted == tags  # == of lists is a bool, that of arrays is not


def test_weights_by_name_are_all_weights() -> None:
    model = fitted(Y)
    names, labels = model.feature_names_, model.classes_.tolist()
    state, transitions = model.state_features_, model.transition_features_
    assert names is not None
    for (feature, label), weight in state.items():
        assert weight == model.coef_[labels.index(label), names.index(str(feature))] != 0.0
    assert len(state) == np.count_nonzero(model.coef_)
    for (before, after), weight in transitions.items():
        if before is None:
            assert weight == model.start_[labels.index(after)]
        elif after is None:
            assert weight == model.end_[labels.index(before)]
        else:
            assert weight == model.transitions_[labels.index(before), labels.index(after)]
    parts = (model.transitions_, model.start_, model.end_)
    assert len(transitions) == sum(map(np.count_nonzero, parts))
    for table in (state, transitions):
        assert list(table.values()) == sorted(table.values(), reverse=True)
        assert (
            Counter(table).most_common(3) == list(table.items())[:3]
        )  # as users of other libraries rank them
    assert next(iter(state)) in {("the", "DET"), ("a", "DET"), ("barks", "VERB"), ("dogs", "NOUN")}


def test_features_without_names_have_numbers() -> None:
    rows = [np.eye(3)[[0, 1, 2][: len(y)]] for y in Y]
    model = ChainSVC(C=10.0, verbose=0, random_state=0).fit(rows, Y)
    assert {feature for feature, _ in model.state_features_} <= {0, 1, 2}
    kernel = ChainSVC(kernel="rbf", verbose=0, random_state=0).fit(rows, Y)
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = kernel.state_features_
    assert kernel.transition_features_
