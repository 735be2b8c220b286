"""Segments as tags and as codes, and back."""

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.structures.segments.encode import (
    decode_segments,
    encode_segments,
    segments_of_tags,
    tags_of_segments,
)
from support.naive import segments_of

pieces = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["", "NP", "VP", "B-x"])), min_size=1, max_size=6
)


def laid_out(drawn: list[tuple[int, str]]) -> tuple[list[Any], int]:
    """Return segments of these lengths and labels, one after another, without the unlabelled; and the end."""
    stops = list(accumulate(length for length, _ in drawn))
    found = [(stop - m, stop, label) for (m, label), stop in zip(drawn, stops, strict=True) if label]
    return found, stops[-1]


@given(pieces)
def test_segments_are_the_same_after_tagging(drawn: list[tuple[int, str]]) -> None:
    segments, length = laid_out(drawn)
    tags = tags_of_segments(segments, length)
    assert len(tags) == length
    assert [t for t, tag in enumerate(tags) if tag.startswith("B-")] == [start for start, _, _ in segments]
    assert segments_of_tags(tags) == segments


@given(st.lists(pieces, min_size=1, max_size=4))
def test_segments_are_the_same_after_coding(drawn: list[Any]) -> None:
    listed, lengths = map(list, zip(*map(laid_out, [*drawn, [(1, "NP")]]), strict=True))
    offsets = np.append(0, np.cumsum(lengths))
    found = encode_segments(listed, offsets)
    assert decode_segments(found.codes, offsets, found.classes) == listed
    outside = sum(lengths) - sum(stop - start for segments in listed for start, stop, _ in segments)
    assert found.n_labels == len(found.classes) + (outside > 0)
    for i, segments in enumerate(listed):
        codes = segments_of(tuple(found.codes[offsets[i] : offsets[i + 1]]))
        named = [(a, b, found.classes[k]) for a, b, k in codes if k < len(found.classes)]
        assert named == segments


def test_tags_that_continue_nothing_start_a_segment() -> None:
    assert segments_of_tags(["I-a", "I-a", "I-b", "O", "I-b", "B-b"]) == [
        (0, 2, "a"),
        (2, 3, "b"),
        (4, 5, "b"),
        (5, 6, "b"),
    ]


def test_ints_and_arrays_are_coded_with_tokens_outside() -> None:
    y = [np.array([[0, 2, 7], [2, 3, 5]]), []]
    found = encode_segments(y, np.array([0, 3, 4]))
    assert found.classes.tolist() == [5, 7]
    assert found.codes.tolist() == [3, 2, 1, 5]
    assert decode_segments(found.codes, np.array([0, 3, 4]), found.classes) == [[(0, 2, 7), (2, 3, 5)], []]


@pytest.mark.parametrize("tag", ["", "B", "B-", "E-x", 3, None])
def test_tags_other_than_bio_are_refused(tag: Any) -> None:
    with pytest.raises(ValueError, match="expected the tags 'O', 'B-label' or 'I-label'"):
        segments_of_tags(["B-x", tag])
