"""Values that nobody expects, and good values with one thing wrong deep within."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]


class Weird:
    """An object of no known kind."""

    def __repr__(self) -> str:
        return "Weird"


class LongerThanItSays(list[Any]):
    """A list whose length is not that of its content."""

    def __len__(self) -> int:
        return 10**6


def _broken_csr() -> Any:
    matrix = sp.csr_array(np.eye(3))
    matrix.indices[1] = 10**6
    return matrix


_SCALARS = [None, 0, 1, -1, 3.5, float("nan"), float("inf"), -0.0, True, 10**30, -(10**30), 2**40, 1e-320]
_TEXTS = ["", "abc", "é☃", b"x", "a" * 1000, "a\0", "\ud800", "line\nline", "nan", np.str_("a")]
_LISTS: list[Any] = [
    *(
        [],
        (),
        {},
        set(),
        [[]],
        [[], []],
        [[[]]],
        [None],
        [None, None],
        ["a"],
        [["a"]],
        [[["a"]]],
        [[0, 1], [1, 0]],
    ),
    *(
        [["a", 1]],
        [[["a"], [1]]],
        {"a": 1},
        [{"a": 1}],
        [[{"a": 1}]],
        [[{"a": float("nan")}]],
        [[{"a": "b"}]],
    ),
    *([[{1: 2}]], [[{None: 1}]], [[-1]], [[2**40]], [10**30], [[10**30]], [["x", "y"], ["z"]], [["\ud800"]]),
    *([[np.nan]], [["nan"]], [[np.str_("a")]], [[True, False]], [[1.0, 2.0]], [(0, 1, "A")], [[(0, 1, "A")]]),
]
_ARRAYS = [
    *(np.array(3.0), np.zeros(0), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 3)), np.zeros((2, 3, 2))),
    *(np.ones((1, 1, 1, 1)), np.array([["a", "b"]]), np.array([None, 1], object), np.array([[1, np.nan]])),
    *(np.array([[1, np.inf]]), np.array([1 + 2j]), np.array(["2020-01-01"], "datetime64[D]")),
    *(np.zeros((2, 3), bool), np.zeros((2, 3), np.float16), np.zeros((2, 3), np.longdouble)),
    *(np.ma.masked_array([1.0, 2.0], [0, 1]), np.full((2, 2), 1e308), np.full((2, 2), 1e-320)),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
]
# Made when they are drawn: they can be used up, or changed.
_MADE: list[Callable[[], Any]] = [
    *(
        lambda kind=kind: kind(np.eye(3))
        for kind in (sp.csr_array, sp.coo_array, sp.csc_matrix, sp.lil_array)
    ),
    *(lambda shape=shape: sp.csr_array(shape) for shape in ((0, 3), (3, 0), (2, 2))),
    *(_broken_csr, Weird, lambda: Weird, lambda: len, lambda: iter([1, 2]), lambda: (i for i in [[1], [2]])),
    *(lambda: LongerThanItSays([1]), lambda: memoryview(b"abc"), lambda: range(3), object),
    *(
        lambda: pd.DataFrame({"a": [1, 2]}),
        lambda: pd.Series(["a", None]),
        lambda: pd.Categorical(["a", "b"]),
    ),
    *(
        lambda: pd.DataFrame({1: [1.0], "a": ["x"]}),
        lambda: [np.eye(2), np.eye(3)],
        lambda: [sp.csr_array(np.eye(2))],
    ),
]
_CONSTANTS = [lambda value=value: value for value in (*_SCALARS, *_TEXTS, *_LISTS, *_ARRAYS)]
GARBAGE = st.sampled_from([*_CONSTANTS, *_MADE]).map(lambda make: make())
_NUMBERS = [np.nan, np.inf, 1e308, -1e308, 1e-320, 1e150, -1.0, 2.0**62, 0.5]
_TYPES = [np.float16, np.float32, np.int8, np.uint8, np.bool_, np.longdouble, object, ">f8", str]


def garbage(draw: Draw) -> Any:
    """Draw garbage, or a list of it."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.lists(GARBAGE, min_size=1, max_size=3))
    return draw(GARBAGE)


def mutated(draw: Draw, value: Any, depth: int = 0) -> Any:
    """Draw a value with one change deep within it."""
    if depth > 4 or draw(st.integers(0, 3)) == 0:
        return garbage(draw)
    if isinstance(value, list | tuple) and value:
        return _mutated_list(draw, value, depth)
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value, key=repr)))
        return value | {key: mutated(draw, value[key], depth + 1)}
    if isinstance(value, np.ndarray) and value.size:
        return _mutated_array(draw, value)
    if sp.issparse(value) and value.ndim == 2:
        return draw(st.sampled_from([value.tocoo, value.tocsc, value.tolil, value.todok, value.toarray]))()
    if isinstance(value, int):
        return draw(st.sampled_from([-1, 100, 2**40, -7, "a", None, 1.5, 2**70, True, value + 1]))
    return garbage(draw)


def _mutated_list(draw: Draw, value: Any, depth: int) -> Any:
    items, i = list(value), draw(st.integers(0, len(value) - 1))
    what = draw(st.sampled_from(["within"] * 5 + ["drop", "repeat", "add", "turn", "array"]))
    if what == "within":
        items[i] = mutated(draw, items[i], depth + 1)
    elif what == "drop":
        del items[i]
    elif what == "repeat":
        items.insert(i, items[i])
    elif what == "add":
        items.insert(i, garbage(draw))
    elif what == "turn":
        items.reverse()
    else:
        return np.array([*items, None], dtype=object)[:-1]
    return tuple(items) if isinstance(value, tuple) else items


def _mutated_array(draw: Draw, value: Any) -> Any:
    what = draw(st.integers(0, 7))
    if what == 0:
        changed = value.astype(object) if value.dtype.kind in "US" else value.astype(float)
        changed.flat[draw(st.integers(0, value.size - 1))] = draw(st.sampled_from(_NUMBERS))
        return changed
    if what == 1:
        kind = draw(st.sampled_from(_TYPES))
        return value.astype(kind) if value.dtype.kind not in "US" else value.astype(object)
    if what == 2:
        frozen = value.copy()
        frozen.flags.writeable = False
        return frozen
    others = [value[..., :-1], value[:-1], np.asfortranarray(value), value[::-1], value[..., None]]
    return draw(st.sampled_from([*others, value.tolist(), value * 0 if value.dtype.kind in "iuf" else value]))
