"""Files of arrays and a header, with NumPy; and plain data as JSON.

`maxmargin.files.sealed` has the format and most of its checks.

Plain data are users' parameters and names of features, and nothing that can be executed. JSON has no arrays
of numbers, tuples, sets, dicts with keys other than texts, or infinite numbers. Each becomes an object with a
single name, its type.
"""

import json
import math
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from importlib.metadata import PackageNotFoundError, version
from mmap import ACCESS_READ, mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from maxmargin.files.sealed import (
    KEY,
    LONGEST_HEADER,
    FilePath,
    Span,
    fail_shape,
    header_length,
    read_file,
    sealed,
    write_atomically,
)
from maxmargin.files.sealed import MODEL as MODEL
from maxmargin.files.sealed import FileError as FileError
from maxmargin.files.sealed import Format as Format
from maxmargin.files.sealed import Json as Json
from maxmargin.files.sealed import fail as fail
from maxmargin.runtime.wording import described, quoted

Path = FilePath
Arrays = Mapping[str, NDArray[np.generic]]
_COPIES = 3  # of all arrays, which safetensors makes while it writes them
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
    head, body = sealed(save(contiguous, {KEY: text}))
    if header_length(head) > LONGEST_HEADER:
        raise ValueError(f"{path}: a header must have at most {LONGEST_HEADER} bytes, got {len(text)}")
    write_atomically(path, head, body)


def _check_room(n_bytes: int) -> None:
    """Raise MemoryError unless this many bytes can be allocated: safetensors would end the process."""
    np.empty(n_bytes, dtype=np.uint8)


def read(path: Path, form: Format) -> Contents:
    """Return the contents of such a file; raise `FileError` if it is not one, OSError if there is none.

    No more is allocated than the file has bytes, apart from a header of bounded length.
    """
    raw = read_file(path, form, lambda stream, size: mmap(stream.fileno(), 0, access=ACCESS_READ))
    arrays = {name: _array_of(path, name, span, raw.content) for name, span in raw.spans.items()}
    return Contents(raw.header, arrays, raw.version)


def _array_of(path: Path, name: str, span: Span, content: mmap) -> NDArray[np.generic]:
    """Return a copy of an array, if NumPy supports its shape."""
    shape, dtype = span.shape, np.dtype(_TYPES[span.dtype])
    # An empty array may have long sides.
    size = math.prod(max(side, 1) for side in shape) * dtype.itemsize
    if size > np.iinfo(np.intp).max:
        fail_shape(path, name, shape)
    array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = np.frombuffer(content, np.uint8)[span.start : span.stop]
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        fail(path, f"bytes 0 and 1 in {quoted(name)}", "others")
    return array


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


def installed_version() -> str:
    """Return the version of maxmargin; empty if it is not installed."""
    try:
        return version("maxmargin")
    except PackageNotFoundError:
        return ""
