"""The parts of a model file: written one by one, and read one by one with a check of each.

An array whose zeros are not stored takes more memory than its file. `Stored.check_room` bounds how much: a
file may ask for `_ROOM` bytes and `_FACTOR` times its own size. For the rare model that needs more, the file
is padded (`Draft.reserve`).
"""

import json
import math
import os
from collections.abc import Collection, Iterable
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from maxmargin.files.container import Contents, Json, Path, as_json, fail, from_json, loads
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import quoted

Bytes = NDArray[np.uint8]

# Ends a text. UTF-8 never contains this byte, so texts may contain any character.
_END, _NUL = b"\xff", b"\0"


def as_bytes(texts: Iterable[str]) -> Bytes:
    """Return texts as an array: each in UTF-8, followed by one byte that ends it."""
    texts = [*texts, ""]
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    if joined.count(_NUL) < len(texts):  # no text has one
        return np.frombuffer(joined.replace(_NUL, _END), dtype=np.uint8)
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(_END.join(encoded), dtype=np.uint8)


def as_texts(array: Bytes) -> list[str]:
    """Return the texts of an array made by `as_bytes`; raise ValueError if it is not valid."""
    content = array.tobytes()
    if content and not content.endswith(_END):
        raise ValueError("texts that do not end")
    if _NUL in content:
        return [str(text, "utf-8", "surrogatepass") for text in content.split(_END)[:-1]]
    # One call for all texts is three times as fast as one for each.
    return str(content.replace(_END, _NUL), "utf-8", "surrogatepass").split("\0")[:-1]


_ROOM, _FACTOR = 1 << 24, 256
_RESERVED = "reserved"
# The nonzeros of a matrix, row by row: how many each row has, their columns, and their values.
_COUNTS, _COLUMNS, _VALUES = ".counts", ".columns", ".values"


class Draft:
    """A file to be written.

    Parameters
    ----------
    dtype : type
        The type of floats that are weights or features.
    """

    def __init__(self, dtype: type[np.floating]) -> None:
        self.header: dict[str, Json] = {}
        self.arrays: dict[str, NDArray[np.generic]] = {}
        self._dtype, self._reserved = dtype, 0

    def reserve(self, n_bytes: int) -> None:
        """Let a reader of the file make an array of this size."""
        self._reserved = max(self._reserved, n_bytes)

    def finish(self) -> None:
        """Make the file long enough for what was reserved."""
        missing = -(-(self._reserved - _ROOM) // _FACTOR) - sum(part.nbytes for part in self.arrays.values())
        if missing > 0:
            self.arrays[_RESERVED] = np.zeros(missing, dtype=np.uint8)

    def put(self, name: str, value: object) -> None:
        """Store plain data."""
        self.header[name] = as_json(value)

    def put_long(self, name: str, value: object) -> None:
        """Store plain data that may be too long for the header."""
        self.arrays[name] = as_bytes([json.dumps(as_json(value), separators=(",", ":"))])

    def put_texts(self, name: str, texts: Iterable[str]) -> None:
        """Store texts."""
        self.arrays[name] = as_bytes(texts)

    def put_floats(self, name: str, array: FloatArray) -> None:
        """Store weights or features, rounded if a smaller type was asked for."""
        with np.errstate(over="ignore", under="ignore"):
            stored = array.astype(self._dtype, copy=False)
        if not np.isfinite(stored).all():
            raise ValueError(f"weights must be finite numbers of type {np.dtype(self._dtype)}")
        self.arrays[name] = stored

    def put_sparse(self, name: str, array: FloatArray) -> None:
        """Store the shape and the nonzeros of an array, or all of it if that is as short."""
        self.header[name] = list(array.shape)
        rows = _as_matrix(array)
        # By their bits, so that a negative zero counts as a nonzero.
        is_stored = np.ascontiguousarray(rows).view(np.uint64) != 0
        counts = np.count_nonzero(is_stored, axis=1)
        size = _smallest(counts).nbytes + counts.sum() * (np.dtype(self._dtype).itemsize + 1)
        if size >= array.nbytes:
            self.put_floats(name, np.ascontiguousarray(array))
            return
        self.arrays[name + _COUNTS] = _smallest(counts)
        self.arrays[name + _COLUMNS] = _smallest(is_stored.nonzero()[1])
        self.put_floats(name + _VALUES, rows[is_stored])


class Shape(NamedTuple):
    """What an array must be: the letters of its types, as in ``dtype.kind``, and the length of each side."""

    kinds: str
    sides: tuple[int | None, ...]

    def holds(self, array: NDArray[np.generic]) -> bool:
        """Return whether an array has such a type and shape; None stands for any length."""
        lengths = zip(self.sides, array.shape, strict=False)
        return (
            array.dtype.kind in self.kinds
            and array.ndim == len(self.sides)
            and all(side in (None, length) for side, length in lengths)
        )

    def __str__(self) -> str:
        words = {"b": "bools", "iu": "ints", "u": "ints", "f": "floats"}
        return f"{words.get(self.kinds, 'numbers')} of shape ({', '.join(map(_side, self.sides))})"


class Stored:
    """A file that was read. Each part can be taken once; `finish` raises if some are left.

    Parameters
    ----------
    path : str or PathLike
        For errors, and for the size of the file.
    contents : Contents
    owner : str
        The name that errors begin with when objects are restored.
    """

    def __init__(self, path: Path, contents: Contents, owner: str) -> None:
        self.path, self.owner = path, owner
        self._header, self._arrays = dict(contents.header), dict(contents.arrays)
        self._arrays.pop(_RESERVED, None)
        self._room = _ROOM + _FACTOR * os.stat(path).st_size

    def fail(self, expected: str, got: str) -> NoReturn:
        """Raise the error of a file that is not what it should be."""
        fail(self.path, expected, got)

    def has(self, name: str) -> bool:
        """Return whether there is such a part."""
        return name in self._header or name in self._arrays

    def take(self, name: str) -> object:
        """Return plain data."""
        if name not in self._header:
            self.fail(f"a value for {name!r}", "none")
        return self._plain(name, self._header.pop(name))

    def take_long(self, name: str) -> object:
        """Return plain data that `Draft.put_long` has stored."""
        texts = self.take_texts(name)
        if len(texts) != 1:
            self.fail(f"one text for {name!r}", str(len(texts)))
        return self._plain(name, loads(self.path, texts[0]))

    def take_names(self, name: str, known: Collection[str]) -> list[str]:
        """Return a list of known names."""
        found = self.take(name)
        if not isinstance(found, list) or not all(isinstance(item, str) and item in known for item in found):
            self.fail(f"{name!r} to be some of {', '.join(known)}", quoted(found))
        return found

    def take_object(self, name: str, known: Collection[str]) -> dict[str, object]:
        """Return plain data by known names."""
        found = self._header.pop(name, None)
        if not isinstance(found, dict) or not all(item in known for item in found):
            self.fail(f"{name!r} to have some of {', '.join(known)}", quoted(found))
        return {item: self._plain(item, value) for item, value in found.items()}

    def _plain(self, name: str, found: Json) -> object:
        try:
            return from_json(found)
        except (ValueError, RecursionError) as error:
            self.fail(f"plain data for {name!r}", str(error))

    def take_array(self, name: str, kinds: str, *sides: int | None) -> NDArray[np.generic]:
        """Return an array of a type and a shape."""
        if name not in self._arrays:
            self.fail(f"an array {name!r}", "none")
        array, expected = self._arrays.pop(name), Shape(kinds, sides)
        if not expected.holds(array):
            self.fail(f"{name!r} to be {expected}", f"{array.dtype} of shape {array.shape}")
        return array

    def take_ints(self, name: str, *sides: int | None, least: int = 0) -> NDArray[np.int64]:
        """Return an array of ints that are not below ``least``."""
        array = self.take_array(name, "iu", *sides)
        if array.size and (array.min() < least or array.max() > np.iinfo(np.int64).max):  # type: ignore[operator]
            self.fail(f"{name!r} to be ints >= {least}", f"one of {array.min()} to {array.max()}")
        return array.astype(np.int64)

    def take_floats(self, name: str, *sides: int | None) -> FloatArray:
        """Return an array of finite floats."""
        found = self.take_array(name, "f", *sides)
        if not np.isfinite(found).all():
            self.fail(f"finite numbers in {name!r}", "others")
        return found.astype(np.float64)

    def take_texts(self, name: str) -> list[str]:
        """Return texts."""
        array = self.take_array(name, "u", None)
        try:
            return as_texts(array.astype(np.uint8, casting="no"))
        except (TypeError, ValueError) as error:
            self.fail(f"{name!r} to be texts in UTF-8", str(error))

    def check_room(self, n_bytes: int, what: str) -> None:
        """Raise if this many bytes are more than a file of this size may ask for."""
        if n_bytes > self._room:
            self.fail(f"{what} of at most {self._room} bytes for a file of this size", f"{n_bytes} bytes")

    def take_sparse(self, name: str, out: FloatArray) -> None:
        """Write an array that `Draft.put_sparse` has stored to ``out``, whose entries are zero."""
        shape = self.take(name)
        if shape != list(out.shape):
            self.fail(f"shape {list(out.shape)} for {name!r}", quoted(shape))
        if name in self._arrays:
            out[...] = self.take_floats(name, *out.shape)
            return
        rows = _as_matrix(out)
        values = self.take_floats(name + _VALUES, None)
        counts = self.take_ints(name + _COUNTS, len(rows))
        columns = self.take_ints(name + _COLUMNS, len(values))
        # Each count is checked, as the sum could overflow.
        if len(counts) and (counts.max() > rows.shape[1] or counts.sum() != len(values)):
            self.fail(f"as many counts as values in {name!r}", f"{counts.sum()} and {len(values)}")
        if len(columns) and columns.max() >= rows.shape[1]:
            self.fail(f"columns below {rows.shape[1]} in {name!r}", str(columns.max()))
        rows[np.repeat(np.arange(len(rows)), counts), columns] = values
        if not np.may_share_memory(rows, out):  # the sides of a part could not be joined without a copy
            out[...] = (rows.T if _is_wide(out) else rows).reshape(out.shape)

    def finish(self) -> None:
        """Raise if a part is left, as no reader knows it."""
        left = [*self._header, *self._arrays]
        if left:
            self.fail("no other parts", quoted(left[0]))


def _side(side: int | None) -> str:
    return "any" if side is None else str(side)


def _is_wide(array: FloatArray) -> bool:
    return array.shape[0] < math.prod(array.shape[1:])


def _as_matrix(array: FloatArray) -> FloatArray:
    """Return an array as a matrix that has at least as many rows as columns, a view if there can be one."""
    matrix = array.reshape(array.shape[0], math.prod(array.shape[1:]))
    return matrix.T if _is_wide(array) else matrix


def _smallest(array: NDArray[np.integer]) -> NDArray[np.unsignedinteger]:
    """Return ints >= 0 in the smallest type that holds them."""
    return array.astype(np.min_scalar_type(int(array.max()) if array.size else 0))
