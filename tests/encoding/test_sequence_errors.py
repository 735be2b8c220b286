"""Every wrong input has an error of one line that says what to do."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from maxmargin.encoding import table
from maxmargin.encoding.sequences import SequenceEncoder

A = np.ones((2, 2))
BAD = np.array([[1.0, 2.0], [3.0, np.nan]])
WORDS = [["a"], ["b"]]
DICTS = [{"a": 1}]


def used_up():
    generator = (name for name in "ab")
    assert list(generator) == ["a", "b"]
    return generator


WRONG = {
    "no sequence": ([], ValueError, "X has no sequence, expected at least one; got an empty list"),
    "empty sequences": ([[], ()], ValueError, "each sequence of X is empty; give one or more that are not"),
    "empty arrays": ([np.ones((0, 2))] * 2, ValueError, "each sequence of X is empty"),
    "after an empty one": (
        [[], A, np.ones((1, 9))],
        ValueError,
        "sequence 2 of X has 9 features, but sequence 1",
    ),
    "ragged": (
        [A, A, np.ones((2, 3))],
        ValueError,
        "sequence 2 of X has 3 features, but sequence 0 has 2; give all sequences the same",
    ),
    "ragged sparse": (
        [sparse.csr_array(A), sparse.csr_array((2, 3))],
        ValueError,
        "sequence 1 of X has 3 features, but sequence 0 has 2",
    ),
    "ragged tokens": ([[[1, 2], [1]]], ValueError, "give every token the same number of features"),
    "1-D array": ([np.ones(3)], ValueError, "an ndarray of shape (3,), expected 2-D (length"),
    "1-D list": ([[1, 2]], ValueError, "is the number 1, so the sequence is 1-D; expected 2-D"),
    "1-D sparse": ([sparse.coo_array([1.0])], ValueError, "of shape (1,), expected 2-D"),
    "0-D": ([np.array(1.0)], ValueError, "of shape (), expected 2-D"),
    "3-D": ([np.ones((2, 2, 2))], ValueError, "of shape (2, 2, 2), expected 2-D"),
    "no columns": ([np.ones((2, 0))], ValueError, "X has 0 features, expected at least 1"),
    "no names": ([[[], []]], ValueError, "no token of X has a feature that occurs in min_count=1"),
    "nan": ([A, BAD], ValueError, "feature 1 of token 1 of sequence 1 of X is nan, expected a fi"),
    "inf": ([A / 0.5, -A * np.inf], ValueError, "token 0 of sequence 1 of X is -inf"),
    "sparse nan": (
        [sparse.csr_array(A), sparse.csr_array(BAD)],
        ValueError,
        "feature 1 of token 1 of sequence 1 of X is nan",
    ),
    "nan in dict": (
        [DICTS, [{"b": 1}, {"c": 2, "a": np.nan}]],
        ValueError,
        "feature 'a' of token 1 of sequence 1 of X is nan (float), expected a finite number",
    ),
    "huge in dict": ([[{"a": 10**400}]], ValueError, "feature 'a' of token 0 of sequence 0"),
    "huge among texts": ([[{"b": "x", "a": 10**400}]], ValueError, "feature 'a' of token 0"),
    "complex": ([A * 1j], ValueError, "not a 2-D array of real numbers"),
    "complex sparse": ([sparse.csr_array(A * 1j)], TypeError, "dtype complex128, expected real"),
    "one array": (A, TypeError, "got an ndarray of shape (2, 2); if it is one sequence pass [X]"),
    "one sparse": (sparse.csr_array(A), TypeError, "if it is one sequence pass [X]"),
    "flat array": (np.ones(3), TypeError, "pass a list of 2-D arrays"),
    "frame": (pd.DataFrame(A), TypeError, "got a DataFrame of shape (2, 2); pass one array per"),
    "text": ("the dog", TypeError, "got 'the dog' (str); split the text"),
    "mapping": ({"a": WORDS}, TypeError, "got a dict; pass a list of its sequences"),
    "number": (5, TypeError, "X must be a list of sequences, each a 2-D array"),
    "none": (None, TypeError, "got None (NoneType); pass a list"),
    "words": (
        [["the", "dog"]],
        TypeError,
        "token 0 of sequence 0 of X is the plain string 'the', expected a dict or a list of "
        "feature strings; wrap words as [[word], ...]",
    ),
    "later words": ([WORDS, ["dog"]], TypeError, "token 0 of sequence 1 of X is the plain string"),
    "long word": ([["x" * 99]], TypeError, f"the plain string '{'x' * 36}..., expected"),
    "bytes": ([[b"dog"]], TypeError, "the plain string b'dog'"),
    "sentences": (["the dog"], TypeError, "sequence 0 of X is 'the dog' (str), expected a list"),
    "one of dicts": ([{"a": 1}], TypeError, "sequence 0 of X is a dict, expected a list of tokens"),
    "number in strings": (
        [WORDS, [["a"], ["a", 1]]],
        TypeError,
        "token 1 of sequence 1 of X has the feature 1 (int), expected a string; use a dict",
    ),
    "number in set": ([[{"a", 1}]], TypeError, "has the feature 1 (int), expected a string"),
    "list in strings": ([[["a", ["b"]]]], TypeError, "has the feature a list, expected a string"),
    "string in numbers": ([[[1, "a"]]], ValueError, "not a 2-D array of real numbers"),
    "list as value": (
        [[{"a": [1]}]],
        TypeError,
        "token 0 of sequence 0 of X has the feature 1 (int) in 'a', expected a string; use a dict",
    ),
    "none as value": ([[{"a": 1, "b": None}]], TypeError, "feature 'b' of token 0"),
    "number as name": ([[{1: 2.0}]], TypeError, "has the feature 1 (int), expected a string"),
    "number names text": ([[{1: "a"}]], TypeError, "has the feature 1 (int), expected a string"),
    "number names mix": ([[{"b": 1, 1: "a"}]], TypeError, "has the feature 1 (int)"),
    "nested": ([[[[1]]]], TypeError, "token 0 of sequence 0 of X starts with a list"),
    "object": ([[object()]], TypeError, "is an object, expected a dict, a list of feature strings"),
    "used up": ([WORDS, [used_up()]], ValueError, "sequence 1 of X is a generator that is already exhausted"),
    "strings, array": (
        [WORDS, A],
        TypeError,
        "sequence 1 of X is a 2-D array of numbers, but the first is a list of lists of feature st",
    ),
    "array, strings": ([A, A, WORDS], TypeError, "sequence 2 of X is a list of lists of feature"),
    "array, pairs": ([A, [["a", "b"]]], TypeError, "sequence 1 of X is a list of lists of feature"),
    "array, sparse": ([A, sparse.csr_array(A)], TypeError, "sequence 1 of X is a sparse matrix"),
    "sparse, array": ([sparse.csr_array(A), A], TypeError, "sequence 1 of X is a 2-D array of num"),
    "strings, sparse": ([WORDS, sparse.csr_array(A)], TypeError, "sequence 1 of X is a sparse ma"),
    "dicts, numbers": ([DICTS, [[1.0]]], TypeError, "token 0 of sequence 1 of X has the feature 1.0"),
    "strings, numbers": ([WORDS, [[1.0]]], TypeError, "token 0 of sequence 1 of X has the feature"),
    "strings, number": ([WORDS, 3], TypeError, "sequence 1 of X is 3 (int), expected a list of to"),
    "strings, text": ([WORDS, "ab"], TypeError, "sequence 1 of X is 'ab' (str), expected a list"),
}


@pytest.mark.parametrize(("X", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_refused(X, error, message):
    with pytest.raises(error, match=re.escape(message)) as raised:
        SequenceEncoder().fit(X)
    assert "\n" not in str(raised.value)


def test_a_wrong_number_of_features_is_refused():
    encoder = SequenceEncoder().fit([A])
    phrase = "X has 3 features, but the encoder is expecting 2 features as input"
    with pytest.raises(ValueError, match=phrase):
        encoder.transform([np.ones((2, 3))])
    with pytest.raises(ValueError, match=phrase):
        encoder.transform([sparse.csr_array((2, 3))])


def test_arrays_for_names_and_names_for_arrays_are_refused():
    with pytest.raises(TypeError, match="sequence 0 of X is a list of dicts, but the encoder was fit"):
        SequenceEncoder().fit([A]).transform([DICTS])
    with pytest.raises(TypeError, match="is a sparse matrix, but the encoder was fitted on sequences"):
        SequenceEncoder().fit([WORDS]).transform([sparse.csr_array(A)])


@pytest.mark.parametrize("few", [0, 10**9], ids=["table", "dict"])
def test_numbers_among_the_strings_to_transform_are_refused(few, monkeypatch):
    monkeypatch.setattr(table, "FEW", few)
    encoder = SequenceEncoder().fit([WORDS])
    with pytest.raises(TypeError, match=r"token 1 of sequence 1 of X has the feature 3 \(int\)"):
        encoder.transform([WORDS, [["a"], ["b", 3]]])
    with pytest.raises(TypeError, match="token 0 of sequence 0 of X has the feature a list"):
        encoder.transform([[["a", ["b"]], ["a"]]])


@pytest.mark.parametrize("min_count", [0, -1, 1.5, True, "1", None])
def test_a_wrong_min_count_is_refused(min_count):
    with pytest.raises(ValueError, match=f"at least 1, got {min_count!r}; use 1 to keep all"):
        SequenceEncoder(min_count=min_count).fit([WORDS])


def test_a_min_count_must_leave_something():
    with pytest.raises(ValueError, match="occurs in min_count=3 tokens; give the tokens features or"):
        SequenceEncoder(min_count=3).fit([WORDS])


def test_an_encoder_must_be_fitted():
    with pytest.raises(ValueError, match=r"^the encoder is not fitted yet; call fit first"):
        SequenceEncoder().transform([WORDS])
