"""What the chain estimator refuses: one line that says who, what was expected, what was got."""

import re

import numpy as np
import pytest
import scipy.sparse

from maxmargin import ChainSVC

X = [np.arange(6.0).reshape(3, 2), np.ones((2, 2))]
Y = [[0, 1, 0], [1, 0]]
TOKENS = [[["a"], ["b"], ["a"]], [["b"], ["a"]]]


def with_value(value):
    return [X[0], np.array([[1.0, value], [1.0, 1.0]])]


def message_of(kind, function, *args):
    with pytest.raises(kind) as caught:
        function(*args)
    message = str(caught.value)
    assert "\n" not in message
    assert "ChainSVC" in message
    return message


FEATURES = {
    "ragged sequences": (
        [X[0], np.ones((2, 3))],
        ValueError,
        "sequence 1 of X has 3 features, but sequence 0 has 2",
    ),
    "ragged tokens": (
        [[[1.0, 2.0], [3.0], [4.0]], X[1]],
        ValueError,
        "give every token the same number of features",
    ),
    "nan": (
        with_value(np.nan),
        ValueError,
        "feature 1 of token 0 of sequence 1 of X is nan, expected a finite",
    ),
    "inf": (
        with_value(np.inf),
        ValueError,
        "feature 1 of token 0 of sequence 1 of X is inf, expected a finite",
    ),
    "sparse nan": (
        [scipy.sparse.csr_array(x) for x in with_value(np.nan)],
        ValueError,
        "feature 1 of token 0 of sequence 1 of X is nan, expected a finite",
    ),
    "dict nan": (
        [[{"a": 1.0}] * 3, [{"a": np.nan}] * 2],
        ValueError,
        "feature 'a' of token 0 of sequence 1 of X is nan",
    ),
    "empty sequences": (
        [np.zeros((0, 2)), []],
        ValueError,
        "each sequence of X is empty; give one or more that are not",
    ),
    "no labels for an empty sequence": (
        [X[0], np.zeros((0, 2))],
        ValueError,
        "sequence 1 has 0 tokens in X, but 2 labels in y",
    ),
    "no sequences": ([], ValueError, "X has no sequence, expected at least one"),
    "no features": ([np.ones((3, 0)), np.ones((2, 0))], ValueError, "X has 0 features, expected at least 1"),
    "one array": (X[0], TypeError, "X must be a list of sequences, .*if it is one sequence pass"),
    "one sparse matrix": (scipy.sparse.csr_array(X[0]), TypeError, "X must be a list of sequences"),
    "words": (
        [["the", "dog", "barks"], ["a", "cat"]],
        TypeError,
        "is the plain string 'the'.* wrap words as",
    ),
    "text": ("the dog barks", TypeError, "X must be a list of sequences, .*got 'the dog barks'"),
    "kinds": (
        [X[0], TOKENS[1]],
        TypeError,
        "sequence 1 of X is a list of lists of feature strings, but the first",
    ),
    "complex": ([x + 1j for x in X], ValueError, "not a 2-D array of real numbers"),
    "none": (None, TypeError, "X must be a list of sequences, .*got None"),
}


@pytest.mark.parametrize(("features", "kind", "expected"), FEATURES.values(), ids=FEATURES)
def test_bad_features_are_refused(features, kind, expected):
    message = message_of(kind, ChainSVC().fit, features, Y)
    assert message.startswith("ChainSVC: ")
    assert re.search(expected, message)


LABELS = {
    "one class": ([[1, 1, 1], [1, 1]], ValueError, "y must have at least two different labels, got 1 class"),
    "too few": (Y[:1], ValueError, "X has 2 sequences, but y has 1"),
    "lengths": ([[0, 1, 0], [1]], ValueError, "sequence 1 has 2 tokens in X, but 1 labels in y"),
    "floats": (
        [[0.5, 1.0, 0.0], [1.0, 0.0]],
        TypeError,
        "label 0 of sequence 0 of y is 0.5 .*expected a str or an int",
    ),
    "a none": ([[0, None, 0], [1, 0]], TypeError, "label 1 of sequence 0 of y is None"),
    "none": (None, TypeError, "y must be a list of label sequences, got None"),
    "flat": ([0, 1], TypeError, r"y\[0\] is 0 \(int\); if y is one sequence pass \[y\]"),
    "mixed": (
        [[0, "a", 0], [1, 0]],
        TypeError,
        "label 1 of sequence 0 of y is 'a' .*but the first label is 0",
    ),
}


@pytest.mark.parametrize(("labels", "kind", "expected"), LABELS.values(), ids=LABELS)
def test_bad_labels_are_refused(labels, kind, expected):
    message = message_of(kind, ChainSVC().fit, X, labels)
    assert message.startswith("ChainSVC: ")
    assert re.search(expected, message)


PREDICTED = {
    "features": (
        [np.ones((2, 3))],
        ValueError,
        "X has 3 features, but ChainSVC is expecting 2 features as input",
    ),
    "kind": (TOKENS, TypeError, "ChainSVC was fitted on sequences that are each a 2-D array of numbers"),
    "nan": (with_value(np.nan), ValueError, "feature 1 of token 0 of sequence 1 of X is nan"),
    "one array": (X[0], TypeError, "if it is one sequence pass"),
    "after an empty sequence": (
        [[], *with_value(np.nan)],
        ValueError,
        "feature 1 of token 0 of sequence 2 of X is nan",
    ),
}


@pytest.fixture(scope="module")
def model():
    return ChainSVC(tol=0.1, random_state=0).fit(X, Y)


@pytest.mark.parametrize(("features", "kind", "expected"), PREDICTED.values(), ids=PREDICTED)
def test_bad_features_at_predict_are_refused(model, features, kind, expected):
    assert re.search(expected, message_of(kind, model.predict, features))


@pytest.mark.parametrize("name", ["too few", "lengths", "floats", "a none", "none", "flat", "mixed"])
def test_bad_labels_at_score_are_refused(model, name):
    labels, kind, expected = LABELS[name]
    assert re.search(expected, message_of(kind, model.score, X, labels))


PARAMETERS = {
    "C": ({"C": -1}, r"The 'C' parameter of ChainSVC must be a float in the range \(0.0, inf\), .* Got -1"),
    "nan C": ({"C": np.nan}, "The 'C' parameter of ChainSVC must be .*Got nan"),
    "method": ({"method": "sgd"}, "The 'method' parameter of ChainSVC must be a str among .*Got 'sgd'"),
    "loss": ({"loss": "zero_one"}, "The 'loss' parameter of ChainSVC must be a str among .*Got 'zero_one'"),
    "loss shape": ({"loss": np.zeros((3, 3))}, r"^ChainSVC: a cost matrix must .* \(2, 2\), got \(3, 3\)"),
    "loss diagonal": ({"loss": np.ones((2, 2))}, "^ChainSVC: a cost matrix must be finite and nonnegative"),
    "loss ragged": ({"loss": [[0.0, 1.0], [1.0]]}, r"^ChainSVC: loss must be .* \(2, 2\), got a list"),
    "min_count": ({"min_count": 0}, "The 'min_count' parameter of ChainSVC"),
    "tol": ({"tol": -1.0}, "The 'tol' parameter of ChainSVC"),
    "max_iter": ({"max_iter": 0}, "The 'max_iter' parameter of ChainSVC"),
    "time_limit": ({"time_limit": 0}, "The 'time_limit' parameter of ChainSVC"),
    "check_every": ({"check_every": 0}, "The 'check_every' parameter of ChainSVC"),
    "sampling": ({"sampling": "cyclic"}, "The 'sampling' parameter of ChainSVC"),
    "random_state": ({"random_state": "a"}, "The 'random_state' parameter of ChainSVC"),
}


@pytest.mark.parametrize(("parameters", "expected"), PARAMETERS.values(), ids=PARAMETERS)
def test_bad_parameters_are_refused(parameters, expected):
    assert re.search(expected, message_of(ValueError, ChainSVC(**parameters).fit, X, Y))


def test_too_rare_features_are_refused():
    message = message_of(ValueError, ChainSVC(min_count=9).fit, TOKENS, Y)
    assert "no token of X has a feature that occurs in min_count=9 tokens" in message
