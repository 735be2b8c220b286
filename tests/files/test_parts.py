"""Texts, plain data and arrays without zeros: what is stored is read back, and what is not is refused."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin.files.container import MODEL, Contents, FileError, NotPlain, as_json, from_json, read, write
from maxmargin.files.parts import Draft, Stored, as_bytes, as_texts

ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
KEYS = st.recursive(
    ATOMS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=2), max_leaves=3
)
PLAIN = st.recursive(
    KEYS | hnp.arrays(np.float64, hnp.array_shapes(max_side=2), elements=st.floats(-9, 9)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2) | st.tuples(inner),
    max_leaves=5,
)
# Any code points, lone surrogates too.
TEXTS = st.lists(st.text(st.characters(exclude_categories=()), max_size=4), max_size=5)


@given(TEXTS)
def test_texts_are_read_back(texts: list[str]) -> None:
    assert as_texts(as_bytes(texts)) == texts


@pytest.mark.parametrize("content", [b"a", b"\xffa", b"\xc3\xff", b"\xed\xa0\xff", b"\xc0\x80\xff"])
def test_bytes_that_are_no_texts(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"do not end|decode"):
        as_texts(np.frombuffer(content, np.uint8))


@given(PLAIN)
def test_plain_data_are_read_back(value: Any) -> None:
    found = from_json(json.loads(json.dumps(as_json(value), allow_nan=False)))
    np.testing.assert_equal(found, value)
    assert type(found) is type(value)


def test_numbers_of_numpy_become_those_of_python() -> None:
    found = from_json(as_json([np.float32(0.5), np.int8(3), np.bool_(True), np.str_("a"), math.inf]))
    assert [type(item) for item in found] == [float, int, bool, str, float]
    assert math.isnan(from_json(as_json(math.nan)))
    labels = from_json(as_json(np.array(["a", "bc"])))
    assert labels.dtype == object
    assert labels.tolist() == ["a", "bc"]


@pytest.mark.parametrize("value", [object(), len, np.random.default_rng(0), [{1: object()}], b"bytes", 1j])
def test_what_is_not_plain(value: Any) -> None:
    with pytest.raises(NotPlain):
        as_json(value)


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"a": [], "b": []},
        {"float": "1"},
        {"float": ["inf"]},
        {"object": [1]},
        {"tuple": 3},
        {"set": [[1]]},
        {"dict": [[1]]},
        {"dict": [[[1], 2]]},
        {"array": ["float64"]},
        {"array": [["float64"], [1]]},
        {"array": ["complex128", [1]]},
        {"array": ["int8", [1000]]},
        {"array": ["float64", [[1], [1, 2]]]},
        {"array": ["float64", [{"dict": []}]]},
    ],
)
def test_json_of_no_value_is_refused(found: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(found)


def stored(tmp_path: Path, draft: Draft) -> Stored:
    write(tmp_path / "file", MODEL, draft.arrays, draft.header)
    return Stored(tmp_path / "file", read(tmp_path / "file", MODEL), "test")


SPARSE = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    elements=st.sampled_from([0.0, 0.0, 0.0, 0.0, -0.0, 1.5, -2e-300]),
)


@given(SPARSE, st.permutations(range(3)))
def test_arrays_without_zeros_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, array: Any, axes: list[int]
) -> None:
    turned = array.transpose([axis for axis in axes if axis < array.ndim])  # weights are views like these
    draft, out = (
        Draft(np.float64),
        np.zeros(array.shape).transpose([axis for axis in axes if axis < array.ndim]),
    )
    draft.put_sparse("w", turned)
    file = stored(tmp_path_factory.mktemp("sparse"), draft)
    file.take_sparse("w", out)
    file.finish()
    assert out.tobytes() == turned.tobytes()


def test_files_are_long_enough_for_the_memory_they_ask_for(tmp_path: Path) -> None:
    draft, out = Draft(np.float64), np.zeros((3000, 3000))
    out[7, 5] = 1.0
    draft.put_sparse("w", out)
    needed = 4 * out.nbytes
    with pytest.raises(FileError, match=f"got {needed} bytes"):
        stored(tmp_path, draft).check_room(needed, "weights")
    draft.reserve(needed)
    draft.finish()
    file = stored(tmp_path, draft)
    file.check_room(needed, "weights")
    assert (tmp_path / "file").stat().st_size < needed / 200
    file.take_sparse("w", np.zeros((3000, 3000)))
    file.finish()


def test_parts_are_taken_once_and_all() -> None:
    file = Stored(__file__, Contents({"a": 1, "b": 2}, {"c": np.zeros(2)}, 1), "test")
    assert file.take("a") == 1
    with pytest.raises(FileError, match="expected a value for 'a', got none"):
        file.take("a")
    with pytest.raises(
        FileError, match=r"expected 'c' to be ints of shape \(any\), got float64 of shape \(2,\)"
    ):
        file.take_ints("c", None)
    with pytest.raises(FileError, match="expected no other parts, got 'b'"):
        file.finish()
