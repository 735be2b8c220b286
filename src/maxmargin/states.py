"""States as arrays and plain data, so that files can hold them, and back.

A state is made of named tuples, tuples, lists, data classes, arrays and numbers. `flatten` takes it apart,
into named arrays and a tree of plain data. `restored` puts it together again, modelled on a *template*: a
state of the same kind, which provides the classes, so that nothing named in a file is looked up or imported.
Two names of one array are restored as two names of one array. A class that has more than its changing parts,
such as a subset of a problem, registers `parts` and `with_parts`.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import aligned_copy
from maxmargin.persistence.container import Json
from maxmargin.wording import described

Array = NDArray[np.generic]
State = TypeVar("State")

# Numbers other than Python's ints, by the names of their types. Files hold finite decimal numbers only, so
# floats are written in hexadecimal.
_FLOATS: dict[str, Callable[[float], object]] = {"float": float, "float64": np.float64}
_INTS: dict[str, Callable[[int], object]] = {"int64": np.int64, "bool": np.bool_}


class Unfit(ValueError):
    """What is stored is not a state of the template's kind."""


class Flat(NamedTuple):
    """A state taken apart: arrays by name, and a tree of plain data that refers to them."""

    arrays: dict[str, Array]
    tree: Json


@singledispatch
def parts(value: object) -> Sequence[object] | None:
    """Return the parts of a value that a run changes; None if it is an array or a number."""
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return None


@singledispatch
def with_parts(value: object, new: Sequence[object]) -> object:
    """Return a value like this one with other parts."""
    changed = copy.copy(value)
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    for field, part in zip(fields, new, strict=True):
        object.__setattr__(changed, field.name, part)
    return changed


@parts.register(tuple)
@parts.register(list)
def sequence_parts(value: Sequence[object]) -> Sequence[object]:
    return value


@with_parts.register(tuple)
@with_parts.register(list)
def sequence_with_parts(value: Sequence[object], new: Sequence[object]) -> Sequence[object]:
    # Not by calling the class, which may check or convert its arguments.
    make: Callable[[Sequence[object]], Sequence[object]] = getattr(value, "_make", type(value))
    return make(new)


@parts.register(dict)
def dict_parts(value: dict[str, object]) -> Sequence[object]:
    return [value[name] for name in sorted(value)]


@with_parts.register(dict)
def dict_with_parts(value: dict[str, object], new: Sequence[object]) -> dict[str, object]:
    return dict(zip(sorted(value), new, strict=True))


@parts.register(np.random.Generator)
def generator_parts(value: np.random.Generator) -> Sequence[object]:
    return [value.bit_generator.state]


@with_parts.register(np.random.Generator)
def generator_with_parts(value: np.random.Generator, new: Sequence[object]) -> np.random.Generator:
    """Set the state of the generator and return it: callers may hold it too."""
    value.bit_generator.state = cast("dict[str, object]", new[0])
    return value


def flatten(state: object) -> Flat:
    """Take a state apart; its arrays are not copied. Raise TypeError if it holds objects of other kinds."""
    arrays: dict[str, Array] = {}
    names: dict[object, str] = {}

    def tree_of(value: object) -> Json:
        inside = parts(value)
        if inside is not None:
            return [tree_of(part) for part in inside]
        if not isinstance(value, np.ndarray):
            return _encoded(value)
        name = names.setdefault(_memory(value), f"{len(names)}")
        arrays[name] = value
        return name

    tree = tree_of(state)
    _check_overlaps(arrays.values())
    return Flat(arrays, tree)


def restored(template: State, flat: Flat, adopt: Callable[[Array], Array] = aligned_copy) -> State:
    """Return the state, each array of which is adopted once; raise `Unfit` if it is of another kind."""
    adopted: dict[str, Array] = {}

    def array_like(like: Array, name: Json) -> Array:
        found = flat.arrays.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or found is None or found.dtype != like.dtype or found.ndim != like.ndim:
            raise Unfit(f"an array of {like.ndim} dimensions and dtype {like.dtype}")
        if name not in adopted:
            adopted[name] = adopt(found)
        return adopted[name]

    def value_like(like: object, tree: Json) -> object:
        if isinstance(like, np.ndarray):
            return array_like(like, tree)
        inside = parts(like)
        if inside is None:
            return _decoded(like, tree)
        models = _models(like, inside, tree)
        pairs = zip(models, cast("list[Json]", tree), strict=True)
        return with_parts(like, [value_like(*pair) for pair in pairs])

    return cast("State", value_like(template, flat.tree))


def skeleton(state: object) -> object:
    """Return a template like the state, whose arrays are empty."""
    inside = parts(state)
    if isinstance(state, np.ndarray):
        return np.empty((0,) * state.ndim, dtype=state.dtype)
    if inside is None or isinstance(state, np.random.Generator):
        return copy.deepcopy(state)
    return with_parts(state, [skeleton(part) for part in inside])


def _memory(array: Array) -> object:
    """Return a key that is the same for two names of one array."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.str, *([id(array)] * (array.size == 0))


def _check_overlaps(arrays: Iterable[Array]) -> None:
    """Raise if arrays share some of their memory, which they would not do when they are restored."""
    bounds = sorted(np.lib.array_utils.byte_bounds(array) for array in arrays if array.size)
    if any(first[1] > second[0] for first, second in pairwise(bounds)):
        raise TypeError("a state of separate arrays, got one that is a view of a part of another")


def _encoded(value: object) -> Json:
    """Return a number, a truth value, None or a text as plain data."""
    if value is None or (isinstance(value, int) and type(value) in (int, bool)):
        return value
    name = type(value).__name__
    if isinstance(value, float) and name in _FLOATS:
        return {name: float(value).hex()}
    if isinstance(value, np.generic) and name in _INTS:
        return {name: int(value)}
    if type(value) is str:
        return {"str": value}
    raise TypeError(f"a state of named tuples, arrays and numbers, got {described(value)} in it")


def _decoded(like: object, tree: Json) -> object:
    """Return a number, a truth value, None or a text of the same kind as ``like``."""
    is_number = isinstance(like, int | float | np.generic)
    if isinstance(tree, dict) and len(tree) == 1:
        (name, value), *_ = tree.items()
        if is_number and name in _FLOATS and isinstance(value, str):
            return _FLOATS[name](_from_hex(value))
        if is_number and name in _INTS and type(value) is int:
            return _INTS[name](value)
        if name == "str" and value == like:  # texts are names of kinds
            return like
    elif (is_number and type(tree) in (int, bool)) or (tree is None and like is None):
        return tree
    raise Unfit(f"a value like {described(like)}")


def _from_hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise Unfit("a number") from None


def _models(like: object, inside: Sequence[object], tree: Json) -> Sequence[object]:
    """Return the templates of the parts. A plain tuple or list may be longer than its template."""
    if not isinstance(tree, list):
        raise Unfit(f"the parts of {described(like)}")
    if type(like) in (tuple, list) and len(inside):
        return [inside[min(k, len(inside) - 1)] for k in range(len(tree))]
    if len(tree) != len(inside):
        raise Unfit(f"{len(inside)} parts of {described(like)}")
    return inside
