"""The file format: named arrays and a header of plain data, as a safetensors file.

The metadata of the file have one key, `_KEY`, whose value is a JSON object: the kind of the file, the
version of its format, and the header. Before it stands a checksum (`seals`), which finds accidental damage;
earlier versions wrote none. safetensors checks that the arrays cover the file without overlaps or
holes, and that shapes agree with sizes. `read` checks the rest: nothing of the file is evaluated or imported,
and no more is allocated than the file has bytes, apart from a header of bounded length.
"""

import json
import math
import mmap
import os
import stat
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from maxmargin.files import atomic
from maxmargin.files.atomic import write_atomically
from maxmargin.runtime.wording import described, quoted, shortened

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Arrays = Mapping[str, NDArray[np.generic]]
Path = str | os.PathLike[str]

_KEY = "maxmargin"
# Whatever grows with the data is an array: JSON objects take about 30 times the memory of their text.
_LONGEST_HEADER = 1 << 20
_COPIES = 3  # of all arrays, which safetensors makes while it writes them
_LENGTH_BYTES = 8
_LONGEST_SEAL = 64
# Most characters of an error that are quoted from a file, or from what checks say about it.
_LONGEST_TEXT = 300
_TYPES = {
    "BOOL": np.bool_,
    "I8": np.int8,
    "U8": np.uint8,
    "I16": np.int16,
    "U16": np.uint16,
    "I32": np.int32,
    "U32": np.uint32,
    "I64": np.int64,
    "U64": np.uint64,
    "F32": np.float32,
    "F64": np.float64,
}
SCALARS = tuple(_TYPES.values())
_DTYPES = {np.dtype(scalar) for scalar in SCALARS}


class Format(NamedTuple):
    """What a file is for, and the version of its format that this library writes."""

    kind: str
    version: int


MODEL = Format("model", 1)
CHECKPOINT = Format("checkpoint", 1)


class FileError(ValueError):
    """A file is not what it should be: truncated, changed, of another kind or from a later version."""


class Contents(NamedTuple):
    """What a file holds, and the version of the format in which it was written."""

    header: dict[str, Json]
    arrays: dict[str, NDArray[np.generic]]
    version: int


def write(path: Path, form: Format, arrays: Arrays, header: Mapping[str, Json]) -> None:
    """Write a complete file and sync it to disk, or leave the existing one."""
    for name, array in arrays.items():
        if array.dtype not in _DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}, which files do not hold")
    text = json.dumps({**form._asdict(), "header": header}, allow_nan=False, separators=(",", ":"))
    # safetensors reads the memory of an array from its first to its last byte. np.ascontiguousarray would
    # not do, as it makes arrays without dimensions one-dimensional.
    contiguous = {name: np.require(array, requirements="C") for name, array in arrays.items()}
    _check_room(_COPIES * (len(text) + sum(array.nbytes for array in contiguous.values())))
    content = save(contiguous, {_KEY: text})
    head, body = atomic.sealed(content)
    if _header_length(head) > _LONGEST_HEADER:
        raise ValueError(f"{path}: a header must have at most {_LONGEST_HEADER} bytes, got {len(text)}")
    write_atomically(path, head, body)


def _check_room(n_bytes: int) -> None:
    """Raise MemoryError unless this many bytes can be allocated: safetensors would end the process."""
    np.empty(n_bytes, dtype=np.uint8)


def read(path: Path, form: Format) -> Contents:
    """Return the contents of such a file; raise `FileError` if it is not one, OSError if there is none."""
    _check_length(path)
    _check_seal(path)
    try:
        with safe_open(path, framework="numpy") as file:
            version, header = _parsed(path, form, file.metadata())
            names = file.keys()
            for name in names:
                _check_array(path, name, file.get_slice(name))
            arrays = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        fail(path, "a whole safetensors file", str(error))
    for name, array in arrays.items():
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            fail(path, f"bytes 0 and 1 in {quoted(name)}", "others")
    return Contents(header, arrays, version)


def fail(path: Path, expected: str, got: str) -> NoReturn:
    """Raise the one error of a file that is not what it should be."""
    line = " ".join(got.split())
    raise FileError(f"{os.fspath(path)}: expected {expected}, got {shortened(line, _LONGEST_TEXT)}")


def _header_length(content: bytes) -> int:
    return int.from_bytes(content[:_LENGTH_BYTES], "little")


def _check_length(path: Path) -> None:
    """Raise unless this is a plain file whose header is in it and not too long."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
        fail(path, "a file", "a directory or a device")
    with open(path, "rb") as stream:
        length = _header_length(stream.read(_LENGTH_BYTES))
    if status.st_size < _LENGTH_BYTES + length:
        fail(path, "a whole safetensors file", f"{status.st_size} bytes, of another format or truncated")
    if length > _LONGEST_HEADER:
        fail(path, f"a header of at most {_LONGEST_HEADER} bytes", f"{length} bytes")


def _check_seal(path: Path) -> None:
    """Raise if a file has a seal, and is not as it was written."""
    with open(path, "rb") as stream:
        if atomic.has_seal(stream.read(_LONGEST_SEAL)):
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                is_whole = atomic.is_sealed(memoryview(content))
            if not is_whole:
                fail(path, "a whole safetensors file", "one that was changed or truncated, by its checksum")


def _check_array(path: Path, name: str, described: object) -> None:
    """Raise unless an array has a type and a shape that NumPy supports."""
    dtype, shape = described.get_dtype(), described.get_shape()  # type: ignore[attr-defined]
    if dtype not in _TYPES:
        fail(path, f"a dtype of {', '.join(_TYPES)} for {quoted(name)}", quoted(dtype))
    # An empty array may have long sides.
    size = math.prod(max(side, 1) for side in shape) * np.dtype(_TYPES[dtype]).itemsize
    if len(shape) > 32 or size > np.iinfo(np.intp).max:
        fail(path, f"a shape that fits into memory for {quoted(name)}", quoted(shape))


def _parsed(path: Path, form: Format, metadata: object) -> tuple[int, dict[str, Json]]:
    """Return the version and the header of a file of this kind."""
    said = metadata if isinstance(metadata, dict) else {}
    text = said.get(_KEY)
    if text is None or not said.keys() <= {_KEY, atomic.KEY}:
        fail(path, f"a {form.kind} file of maxmargin", "a safetensors file of another program")
    found = loads(path, text)
    if not isinstance(found, dict):
        fail(path, "a header that is a JSON object", quoted(found))
    kind, version, header = (found.get(name) for name in ("kind", "version", "header"))
    if kind != form.kind:
        fail(path, f"a {form.kind} file of maxmargin", f"one of kind {quoted(kind)}")
    if type(version) is not int or version < 1:
        fail(path, "a version >= 1 of the format", quoted(version))
    if version > form.version:
        fail(
            path,
            f"version {form.version} of the format, or an earlier one",
            f"{quoted(version)}: written by a later version of maxmargin; install that one to read it",
        )
    if not isinstance(header, dict) or set(found) != {*form._fields, "header"}:
        fail(path, "a kind, a version and a header", quoted(list(found)))
    return version, header


def loads(path: Path, text: str) -> Json:
    """Return the JSON of a text: objects with each name once, and finite numbers."""
    try:
        found: Json = json.loads(
            text, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_without_repeats
        )
    except (ValueError, RecursionError) as error:
        fail(path, "JSON", str(error))
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {quoted(text)}")
    return number


def _without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name that occurs twice")
    return found


# Plain data as JSON: users' parameters and names of features, and nothing that can be executed.
#
# JSON has no arrays of numbers, tuples, sets, dicts with keys other than texts, or infinite numbers. Each
# becomes an object with a single name, its type.

_SCALAR_TYPES = {np.dtype(scalar).name: scalar for scalar in SCALARS} | {"object": np.object_}
_COLLECTIONS: dict[str, Callable[[Any], object]] = {"tuple": tuple, "set": set, "frozenset": frozenset}


class NotPlain(ValueError):
    """A value is not plain data, and files do not hold it. The error says what it is."""


def as_json(value: object) -> Json:
    """Return a value as JSON; scalars of NumPy become those of Python."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray):
        # Texts of unequal lengths take less memory as objects.
        kind = value.dtype.name if value.dtype.name in _SCALAR_TYPES else "object"
        return {"array": [kind, as_json(value.tolist())]}
    if isinstance(value, Mapping):
        return {"dict": [[as_json(key), as_json(item)] for key, item in value.items()]}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"tuple": [as_json(item) for item in value]}
    if isinstance(value, AbstractSet):
        kind = "set" if isinstance(value, set) else "frozenset"
        return {kind: [as_json(item) for item in sorted(value, key=repr)]}
    raise NotPlain(described(value))


def from_json(found: Json) -> object:
    """Return the value that `as_json` turned into this JSON; raise ValueError if there is none."""
    if isinstance(found, list):
        return [from_json(item) for item in found]
    if not isinstance(found, dict):
        return found
    if len(found) != 1:
        raise ValueError(f"an object with {len(found)} names")
    ((kind, content),) = found.items()
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(str(content))
    if not isinstance(content, list) or kind not in {"array", "dict", *_COLLECTIONS}:
        raise ValueError(f"an object of type {kind[:20]!r}")
    if kind == "array":
        return _array(content)
    if kind == "dict":
        return dict(map(_pair, content))
    items = [from_json(item) for item in content]
    return _COLLECTIONS[kind](items if kind == "tuple" else map(_hashable, items))


def _array(content: list[Json]) -> NDArray[np.generic]:
    if len(content) != 2 or not isinstance(content[0], str) or content[0] not in _SCALAR_TYPES:
        raise ValueError("an array that is not a type and a list")
    try:
        return np.array(from_json(content[1]), dtype=_SCALAR_TYPES[content[0]])
    except (TypeError, OverflowError) as error:
        raise ValueError(f"an array whose items are of other types: {error}") from None


def _pair(item: Json) -> tuple[Hashable, object]:
    if not isinstance(item, list) or len(item) != 2:
        raise ValueError("a dict that is not a list of pairs")
    return _hashable(from_json(item[0])), from_json(item[1])


def _hashable(value: object) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"a {type(value).__name__} as the item of a set, or as the key of a dict") from None
    return value


# The version of this library, which files and pickles record.


def installed_version() -> str:
    """Return the version of maxmargin; empty if it is not installed."""
    try:
        return version("maxmargin")
    except PackageNotFoundError:
        return ""
