"""Checkpoints: the state of a run in a file, from which the run continues bit for bit.

A file holds the state, and the *identity* of the run: digests of its problem and method, and the settings
that determine its course. A file of another identity is refused.

A state is made of named tuples, tuples, lists, data classes, arrays and numbers. `flatten` takes it apart,
into named arrays and a tree of plain data. `restored` puts it together again, modelled on a *template*: a
state of the same kind, which provides the classes, so that nothing named in a file is looked up or imported.
Two names of one array are restored as two names of one array. A class that has more than its changing parts,
such as a subset of a problem, registers `parts` and `with_parts`.
"""

import copy
import dataclasses
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import singledispatch
from itertools import pairwise
from numbers import Real
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin.files import container
from maxmargin.files.sealed import CHECKPOINT, Json, fail, remove_unfinished
from maxmargin.runtime.arrays import aligned_copy
from maxmargin.runtime.limits import now
from maxmargin.runtime.wording import described, quoted, shown

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


# Weights of named features are mostly zeros. Of an array with many zeros, files hold the other entries, and a
# bit for each entry that says which these are. Entries are compared bit by bit: -0.0 is not a zero here.

_BITS, _ENTRIES = ".bits", ".entries"
_WORTH = 1 << 10  # bytes that are saved at least


def without_zeros(arrays: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Json]]:
    """Return arrays as files hold them, and by name the shapes of those whose zeros are left out."""
    found: dict[str, Array] = {}
    shapes: dict[str, Json] = {}
    for name, array in arrays.items():
        entries = np.ascontiguousarray(array).reshape(-1)
        is_held = entries.view(f"u{array.itemsize}") != 0
        if array.nbytes - np.count_nonzero(is_held) * array.itemsize - array.size // 8 < _WORTH:
            found[name] = array
        else:
            found |= {name + _BITS: np.packbits(is_held), name + _ENTRIES: entries[is_held]}
            shapes[name] = list(array.shape)
    return found, shapes


def with_zeros(arrays: Mapping[str, Array], shapes: Json) -> dict[str, Array]:
    """Return the arrays that `without_zeros` was given; raise `Unfit` if these are not what it returned."""
    found = dict(arrays)
    for name, shape in shapes.items() if isinstance(shapes, dict) else ():
        stored = found.pop(name + _BITS, None), found.pop(name + _ENTRIES, None)
        array = None if stored[0] is None or stored[1] is None else _filled(stored[0], stored[1], shape)
        if array is None:
            raise Unfit(f"the entries of {quoted(name)}")
        found[name] = array
    return found


def _filled(bits: Array, entries: Array, shape: Json) -> Array | None:
    """Return an array of this shape with the entries where bits say; None if they do not fit."""
    sides = [side for side in shape if type(side) is int and side > 0] if isinstance(shape, list) else []
    size = math.prod(sides)
    if sides != shape or bits.dtype != np.uint8 or bits.shape != (-(-size // 8),) or entries.ndim != 1:
        return None
    is_held = np.unpackbits(bits.astype(np.uint8, copy=False), count=size).view(np.bool_)
    if np.count_nonzero(is_held) != len(entries):
        return None
    array = np.zeros(size, entries.dtype)
    array[is_held] = entries
    return array.reshape(sides)


# The next file is due at the earliest after this many times the seconds that the last write took.
_PATIENCE = 50.0
_PASSES = re.compile(r"([1-9][0-9]*) pass(es)?")

Path = str | os.PathLike[str]


class Counted(Protocol):
    """The part of a run's state that tells when to write it."""

    @property
    def passes(self) -> int:
        """Number of passes made."""


CountedState = TypeVar("CountedState", bound=Counted)


class _Checkpoint(NamedTuple):
    path: str
    every: float | str


class Checkpoint(_Checkpoint):
    """Where and how often a run stores its state, so that it can continue after a crash.

    The file is written beside the old one, synced to disk and renamed, so there is always a complete file. It
    is written again when the run ends or is interrupted. It is never removed: delete it when you no longer
    need it.

    The next file is due after ``every``, or after 50 times the duration of the last write if that is longer.
    So writing takes at most about 2 % of the time, apart from the first and the last file. A crash loses at
    most the longer of the two times, or slightly more during a certificate or a pass of a method that moves
    all blocks at once, as neither is divided. If a file cannot be written, there is one warning, and the run
    continues.

    Continue only from your own files: kernels follow the indices in them without checks.

    Parameters
    ----------
    path : str or path
        The file.
    every : float or str
        Seconds between two files; or passes, such as ``"5 passes"``.
    """

    __slots__ = ()

    def __new__(cls, path: Path, every: float | str = 60.0) -> "Checkpoint":
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(f"Checkpoint: path must be the path of a file, got {shown(path)}.")
        in_passes = isinstance(every, str) and _PASSES.fullmatch(every)
        if not in_passes and not (isinstance(every, Real) and 0.0 <= float(every) < math.inf):
            raise ValueError(
                f"Checkpoint: every must be a number of seconds >= 0, or passes such as '5 passes', "
                f"got {shown(every)}."
            )
        return super().__new__(cls, str(os.fspath(path)), every)

    @property
    def seconds(self) -> float:
        """Seconds between two files; zero if passes are counted instead."""
        return 0.0 if isinstance(self.every, str) else float(self.every)

    @property
    def passes(self) -> int:
        """Passes between two files; zero if seconds are counted instead."""
        return int(self.every.split()[0]) if isinstance(self.every, str) else 0


CheckpointLike = Checkpoint | Path


def as_checkpoint(given: CheckpointLike) -> Checkpoint:
    """Return a checkpoint, or the path of one, as a checkpoint."""
    return given if isinstance(given, Checkpoint) else Checkpoint(given)


class Identity(NamedTuple):
    """What identifies a run; files of other runs are refused.

    Attributes
    ----------
    version : str
        The version of maxmargin.
    problem, method : str
        Digests.
    settings : dict
        The parameters that determine the course of the run, by name; None is not compared.
    """

    version: str
    problem: str
    method: str
    settings: dict[str, Json]


class Keeper:
    """Writes the state of a run when it is due."""

    def __init__(self, checkpoint: Checkpoint, identity: Identity, state: Counted) -> None:
        self.checkpoint, self.identity = checkpoint, identity
        self._template = skeleton(state)
        self._begin, self._cost, self._passes, self._warned = now(), 0.0, state.passes, False
        self._flat(state)  # raises at once if the state cannot be stored
        remove_unfinished(checkpoint.path)

    def is_due(self, state: Counted) -> bool:
        """Whether it is time to write the state.

        Time is counted from the state of the last file to the end of the next write.
        """
        elapsed = now() - self._begin + self._cost
        is_late = elapsed >= max(self.checkpoint.seconds, _PATIENCE * self._cost)
        return is_late and state.passes >= self._passes + self.checkpoint.passes

    def save(self, state: Counted) -> None:
        """Write the state; warn once if that is not possible."""
        begin, flat = now(), self._flat(state)
        try:
            arrays, shapes = without_zeros(flat.arrays)
            header = {**self.identity._asdict(), "state": flat.tree, "shapes": shapes}
            container.write(self.checkpoint.path, CHECKPOINT, arrays, header)
        except (OSError, MemoryError) as error:
            self._warn(error)
        self._begin, self._cost, self._passes = begin, now() - begin, state.passes

    def _flat(self, state: Counted) -> Flat:
        """Take the state apart; raise now, rather than when it is needed, if it cannot be restored."""
        advice = "leave the checkpoint out"
        try:
            flat = flatten(state)
            restored(self._template, flat, adopt=lambda array: array)
        except Unfit as error:
            raise TypeError(f"Checkpoint: the method's state must keep {error}; {advice}.") from None
        except TypeError as error:
            raise TypeError(f"Checkpoint: the method must have {error}; {advice}.") from None
        return flat

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            warnings.warn(
                f"Checkpoint: {self.checkpoint.path} could not be written ({error}); training continues, and "
                "an earlier file is left as it was.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._warned = True


def read_state(path: Path, identity: Identity, template: CountedState) -> CountedState:
    """Return the state in a file, like the template; raise `FileError` if it is not of this identity."""
    header, arrays, _ = container.read(path, CHECKPOINT)
    difference = _difference(header, identity)
    if difference:
        fail(path, "a checkpoint of this run", f"one {difference}; remove it or give another path")
    try:
        flat = Flat(with_zeros(arrays, header.get("shapes")), header.get("state"))
        state: CountedState = restored(template, flat)
    except Unfit as error:
        fail(path, f"in a checkpoint {error}", "something else: the file is damaged; remove it")
    return state


def _difference(header: dict[str, Json], identity: Identity) -> str:
    """Return how the run of a file differs from this one; empty if it does not."""
    if header.get("version") != identity.version:
        return f"of maxmargin {quoted(header.get('version'))}, not {identity.version}"
    if header.get("problem") != identity.problem:
        return "of other data"
    if header.get("method") != identity.method:
        return "of another method, or with other parameters, such as C"
    settings = header.get("settings")
    for name, value in identity.settings.items():
        found = settings.get(name) if isinstance(settings, dict) else None
        if found != value and found is not None and value is not None:
            return f"with {name}={quoted(found)}, not {quoted(value)}"
    return ""
