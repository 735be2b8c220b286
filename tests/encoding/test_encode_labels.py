"""Label sequences against numpy.unique, and their errors."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encoding.labels import encode_labels

OFFSETS = np.array([0, 2, 3])
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=4)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


def sequences_of(labels):
    return st.lists(st.lists(labels, min_size=1, max_size=6), min_size=1, max_size=6)


@given(sequences_of(TEXTS) | sequences_of(NUMBERS))
def test_codes_are_those_of_numpy_unique(y):
    codes, classes = encode_labels(y)
    flat = np.concatenate([np.array(labels) for labels in y])
    expected, inverse = np.unique(flat, return_inverse=True)
    assert codes.dtype == np.int64
    assert classes.dtype.kind == expected.dtype.kind
    assert classes.tolist() == expected.tolist()
    assert codes.tolist() == inverse.tolist()


@pytest.mark.parametrize(
    "y",
    [
        [["b", "a"], ["b"]],
        (("b", "a"), ("b",)),
        [np.array(["b", "a"]), np.array(["b"], dtype=object)],
        [pd.Series(["b", "a"]), ["b"]],
        [[np.str_("b"), "a"], [np.str_("b")]],
        (iter(labels) for labels in [["b", "a"], ["b"]]),
    ],
    ids=["lists", "tuples", "arrays", "series", "scalars", "iterators"],
)
def test_text_labels_have_many_forms(y):
    codes, classes = encode_labels(y, OFFSETS)
    assert codes.tolist() == [1, 0, 1]
    assert classes.tolist() == ["a", "b"]
    assert classes.dtype == np.dtype("<U1")


@pytest.mark.parametrize(
    "y",
    [
        [[7, -1], [7]],
        [np.array([7, -1], np.int8), np.array([7], np.uint64)],
        [[np.int64(7), -1], [np.uint8(7)]],
    ],
)
def test_integer_labels_have_many_forms(y):
    codes, classes = encode_labels(y, OFFSETS)
    assert codes.tolist() == [1, 0, 1]
    assert classes.tolist() == [-1, 7]
    assert classes.dtype == np.int64


@pytest.mark.parametrize("y", [[[True, False]], [[np.True_, np.False_]], [np.array([True, False])]])
def test_booleans_are_integers(y):
    codes, classes = encode_labels(y)
    assert codes.tolist() == [1, 0]
    assert classes.tolist() == [0, 1]
    assert classes.dtype == np.int64


def test_rows_of_an_array_are_sequences():
    codes, classes = encode_labels(np.array([[3, 5], [5, 5]]), np.array([0, 2, 4]))
    assert codes.tolist() == [0, 1, 1, 1]
    assert classes.tolist() == [3, 5]


def test_known_classes_keep_their_numbers():
    codes, classes = encode_labels([["b"], ["c", "b"]], classes=np.array(["a", "b", "c"]))
    assert codes.tolist() == [1, 2, 1]
    assert classes.tolist() == ["a", "b", "c"]


def test_integers_are_accepted_for_known_booleans():
    codes, _ = encode_labels([[True, 0]], classes=np.array([0, 1]))
    assert codes.tolist() == [1, 0]


WRONG = {
    "mixed": (
        [["a"], ["b", 1]],
        TypeError,
        "label 1 of sequence 1 of y is 1 (int), but the first label is 'a' (str); make all labels",
    ),
    "mixed bool": ([[True, "a"]], TypeError, "label 1 of sequence 0 of y is 'a' (str), but the"),
    "none": ([["a", None]], TypeError, "label 1 of sequence 0 of y is None (NoneType), expected a"),
    "nan": ([[1], [float("nan")]], TypeError, "label 0 of sequence 1 of y is nan (float)"),
    "float": ([np.array([1.0])], TypeError, "is 1.0 (float), expected a str or an int; convert"),
    "bytes": ([[b"a"]], TypeError, "is b'a' (bytes), expected a str or an int"),
    "nested": ([[1, [2]]], TypeError, "label 1 of sequence 0 of y is a list, expected a str"),
    "nested array": ([np.ones((2, 2), int)], TypeError, "label 0 of sequence 0 of y is a list"),
    "flat texts": (["a", "b"], TypeError, "y[0] is 'a' (str); if y is one sequence pass [y]"),
    "flat numbers": ([1, 2], TypeError, "y[0] is 1 (int); if y is one sequence pass [y]"),
    "flat array": (np.array([1, 2]), TypeError, "y[0] is np.int64(1) (int64); if y is one seq"),
    "0-D array": ([np.array(1)], TypeError, "y[0] is an ndarray of shape ()"),
    "set": ([{"a"}], TypeError, "y[0] is a set"),
    "text": ("ab", TypeError, "y must be a list of label sequences, got 'ab' (str)"),
    "number": (3, TypeError, "y must be a list of label sequences, got 3 (int)"),
    "frame": (pd.DataFrame({"a": [1]}), TypeError, "got a DataFrame of shape (1, 1)"),
    "no sequence": ([], ValueError, "y has no sequence, expected at least one"),
    "empty": ([["a"], []], ValueError, "y[1] is empty, expected at least one label"),
    "huge": ([[2**63]], ValueError, "an integer label of y does not fit into 64 bits"),
    "nul": ([["a\0"]], ValueError, "a label of y ends with the NUL character"),
}


@pytest.mark.parametrize(("y", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_labels_are_refused(y, error, message):
    with pytest.raises(error, match=re.escape(message)) as raised:
        encode_labels(y)
    assert "\n" not in str(raised.value)


def test_an_unknown_label_is_named():
    message = (
        "label 1 of sequence 1 of y is 'x', expected one of the 6 known labels "
        "('a', 'b', 'c', 'd', 'e', ...); fit on data that has it, or remove the sequence."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        encode_labels([["a"], ["b", "x"]], classes=list("abcdef"))
    with pytest.raises(ValueError, match=r"is 3, expected one of the 1 known labels \('a'\)"):
        encode_labels([[3]], classes=["a"])


def test_lengths_other_than_the_tokens_are_refused():
    with pytest.raises(ValueError, match="sequence 1 has 1 tokens in X, but 2 labels in y; give"):
        encode_labels([["a", "b"], ["a", "b"]], OFFSETS)
    with pytest.raises(ValueError, match="sequence 1 has 1 tokens in X, but 0 labels in y; give"):
        encode_labels([["a", "b"], []], OFFSETS)
    with pytest.raises(ValueError, match="X has 2 sequences, but y has 3; give one label sequence"):
        encode_labels([["a", "b"], ["a"], ["b"]], OFFSETS)
