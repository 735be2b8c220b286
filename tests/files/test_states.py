"""States taken apart and put together again, against the states themselves."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from maxmargin.files import checkpoint
from maxmargin.files.checkpoint import Flat, Unfit, flatten, restored, skeleton, with_zeros, without_zeros
from support.naive import Array


class Pair(NamedTuple):
    """A named tuple whose class checks its arguments, as those of methods do."""

    first: Any
    second: Any


@dataclass
class Record:
    """A data class."""

    first: Any
    second: Any


numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.floats(allow_nan=False).map(np.float64),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.booleans().map(np.bool_),
)
dtypes = st.sampled_from([np.float64, np.int64, np.uint32, np.bool_, np.float32])
arrays = dtypes.flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
values = st.recursive(
    st.one_of(numbers, arrays),
    lambda inner: st.one_of(
        st.builds(Pair, inner, inner),
        st.builds(Record, inner, inner),
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    ),
    max_leaves=8,
)


def assert_equal(found: Any, expected: Any) -> None:
    """Both have the same classes, and the same bits in all numbers."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()
        assert found.flags.carray
        assert found.ctypes.data % 64 == 0 or not found.size
    elif isinstance(expected, Record):
        assert_equal([found.first, found.second], [expected.first, expected.second])
    elif isinstance(expected, dict):
        assert list(found) == sorted(expected)
        assert_equal(list(found.values()), [expected[name] for name in sorted(expected)])
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_equal(a, b)
    elif isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(found)
    else:
        assert repr(found) == repr(expected)  # minus zero is another number


@given(values)
def test_what_was_taken_apart_is_put_together(state: Any) -> None:
    flat = flatten(state)
    in_a_file = Flat(flat.arrays, json.loads(json.dumps(flat.tree, allow_nan=False)))
    for template in (state, skeleton(state)):
        assert_equal(restored(template, in_a_file), state)


def test_shared_arrays_stay_shared() -> None:
    a, b = np.zeros(3), np.zeros(3)
    found = restored(Pair([a, a], b), flatten(Pair([a, a], b)))
    assert found.first[0] is found.first[1] is not found.second
    found = restored(Pair(b, a), flatten(Pair(a[:], a)))  # another name of the same memory
    assert found.first is found.second
    assert not np.shares_memory(found.first, a)


def test_views_of_parts_are_refused() -> None:
    a = np.zeros(6)
    assert len(flatten([a[:3], a[3:]]).arrays) == 2
    with pytest.raises(TypeError, match="a state of separate arrays, got one that is a view of a part"):
        flatten([a, a[2:]])


def test_sequences_may_be_longer_than_the_template() -> None:
    more = (Pair(1.0, np.ones(2)), Pair(2.0, np.ones(5)), Pair(3.0, np.zeros(0)))
    assert_equal(restored(more[:1], flatten(more)), more)
    assert restored(more, flatten(())) == ()


class Stranger:
    """An object that cannot be stored."""


@pytest.mark.parametrize("stranger", [Stranger(), {1, 2}, 1j, np.complex128(1j), b"x", len])
def test_other_objects_are_refused(stranger: Any) -> None:
    with pytest.raises(TypeError, match="a state of named tuples, arrays and numbers, got "):
        flatten(Pair(1.0, [stranger]))


@pytest.mark.parametrize(
    ("template", "tree", "arrays"),
    [
        (np.zeros(2), "1", {}),
        (np.zeros(2), "0", {"0": np.zeros((2, 2))}),
        (np.zeros(2), "0", {"0": np.zeros(2, dtype=np.float32)}),
        (np.zeros(2), ["0"], {"0": np.zeros(2)}),
        (np.zeros(2), {"float": "0x1p0"}, {}),
        (1.0, "0", {"0": np.zeros(())}),
        (1.0, None, {}),
        (1.0, {"float": "one"}, {}),
        (1.0, {"float": "0x1p99999"}, {}),
        (1.0, {"float": 1}, {}),
        (1.0, {"complex": "0x1p0"}, {}),
        (1.0, {"int64": "1"}, {}),
        (1.0, 1.5, {}),
        (None, 1, {}),
        ("PCG64", {"str": "MT19937"}, {}),
        (Pair(1.0, 2.0), [1], {}),
        (Pair(1.0, 2.0), 1, {}),
        (Record(1.0, 2.0), {"first": 1}, {}),
        ((), [1], {}),
    ],
)
def test_what_is_not_a_state_of_the_kind_is_refused(
    template: Any, tree: Any, arrays: dict[str, Array]
) -> None:
    with pytest.raises(Unfit):
        restored(template, Flat(arrays, tree))


def test_a_class_says_what_of_it_changes() -> None:
    class Held(NamedTuple):
        constant: object
        changing: Array

    checkpoint.parts.register(Held)(lambda held: [held.changing])
    checkpoint.with_parts.register(Held)(lambda held, new: held._replace(changing=new[0]))
    constant = object()
    found = restored(Held(constant, np.zeros(1)), flatten(Held(object(), np.arange(3.0))))
    assert found.constant is constant
    assert found.changing.tolist() == [0.0, 1.0, 2.0]


@given(
    dtype=dtypes,
    shape=st.sampled_from([(), (0, 3), (5000,), (70, 64), (3, 2, 501)]),
    entries=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([0.0, -0.0, 1.0, 5e-324, np.nan]))),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_arrays_without_their_zeros_are_restored_to_the_bit(dtype, shape, entries, share):
    given = np.zeros(math.prod(shape), dtype)
    given[: int(share * given.size)] = 1
    for place, value in entries if given.size else ():
        given[place % given.size] = value if dtype in (np.float64, np.float32) else value == 1.0
    given = given.reshape(shape)
    stored, shapes = without_zeros({"a": given, "b": given})
    found = with_zeros(stored, json.loads(json.dumps(shapes)))
    assert sorted(found) == ["a", "b"]
    for array in found.values():
        assert (array.dtype, array.shape) == (given.dtype, given.shape)
        assert array.tobytes() == given.tobytes()
    n_words = np.count_nonzero(given.reshape(-1).view(f"u{given.itemsize}"))
    least = min(given.nbytes, given.itemsize * n_words + -(-given.size // 8))
    assert least <= sum(array.nbytes for array in stored.values()) / 2 <= least + (1 << 10)


@pytest.mark.parametrize(
    "change",
    [
        lambda stored, shapes: stored.pop("a.bits"),
        lambda stored, shapes: stored.pop("a.entries"),
        lambda stored, shapes: stored.update({"a.entries": stored["a.entries"][1:]}),
        lambda stored, shapes: stored.update({"a.entries": stored["a.entries"][None]}),
        lambda stored, shapes: stored.update({"a.bits": stored["a.bits"].astype(np.int64)}),
        lambda stored, shapes: stored.update({"a.bits": stored["a.bits"][:-1]}),
        *(
            lambda stored, shapes, shape=shape: shapes.update(a=shape)
            for shape in (
                [4000],
                [-1, -5000],
                [5000, True],
                [5000, 0, 1 << 80],
                [1 << 80],
                [5000.0],
                "a",
                None,
            )
        ),
    ],
)
def test_entries_that_are_not_those_of_an_array_do_not_fit(change):
    stored, shapes = without_zeros({"a": np.append(np.zeros(4999), 1.0)})
    change(stored, shapes)
    with pytest.raises(Unfit, match="the entries of 'a'"):
        with_zeros(stored, shapes)
