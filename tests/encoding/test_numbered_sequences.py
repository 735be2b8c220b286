"""Sequences whose names are numbered already are learnt and encoded as the same lists are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.encoding.sequences import NumberedSequences, SequenceEncoder

TOKENS = st.lists(st.lists(st.sampled_from("abcd"), max_size=4), max_size=4)


def numbered(X: list[list[list[str]]]) -> NumberedSequences:
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for tokens in X for names in tokens for name in names]
    counts = [len(names) for tokens in X for names in tokens]
    offsets = np.cumsum([0, *map(len, X)])
    return NumberedSequences(
        list(numbers), np.array(codes, dtype=np.int32), None, np.array(counts, dtype=np.int64), offsets
    )


@given(st.lists(TOKENS, max_size=3), st.lists(TOKENS, max_size=3), st.integers(1, 2))
def test_numbered_sequences_are_encoded_as_lists(
    X: list[list[list[str]]], new: list[list[list[str]]], min_count: int
) -> None:
    X = [*X, [["a"], ["a", "e"]]]
    assert numbered(X).listed() == X
    encoders = SequenceEncoder(min_count=min_count), SequenceEncoder(min_count=min_count)
    for method, data in (("fit_transform", X), ("transform", new)):
        expected = getattr(encoders[0], method)(data)
        found = getattr(encoders[1], method)(numbered(data))
        assert np.array_equal(found.rows.toarray(), expected.rows.toarray())
        assert np.array_equal(found.offsets, expected.offsets)
    assert encoders[0].feature_names_ == encoders[1].feature_names_


def test_an_encoder_of_arrays_refuses_names() -> None:
    encoder = SequenceEncoder().fit([np.ones((2, 3))])
    with pytest.raises(TypeError, match="fitted on sequences that are each a 2-D array of numbers"):
        encoder.transform(numbered([[["a"]]]))
