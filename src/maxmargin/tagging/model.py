"""What tagging needs of a model file, read without NumPy.

`maxmargin.load` is the one reader that checks a whole file, and says what is wrong with it. This one returns
None for every file that is not as `save` wrote it, by its seal, so that it reads nothing that `load` refuses.
It also returns None for every file that is not a plain chain. As anybody can seal a file, it checks the parts
that compiled code reads; `lines.index_features` checks the rest.
"""

import ctypes
import json
import math
import os
import stat
from array import array
from typing import NamedTuple

from maxmargin.compiling.object_code import Buffer
from maxmargin.files.atomic import is_sealed

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_LENGTH_BYTES, _LONGEST_HEADER = 8, 1 << 20
_VERSION, _KEY, _END = 1, "maxmargin", b"\xff"
_SIZES = {"U8": 1, "F64": 8}
# What the header of such a model says, and what it must not have.
_PLAIN = {"estimator": "ChainSVC", "functions": [], "_function": ["linear"], "_order": 1}
_NAMED, _TEXTS, _FORBIDDEN = ("strings", "dicts"), ("texts", "objects"), "_forbidden"
_LANES = 4  # labels are padded to a multiple of this, as everywhere
_MOST_LABELS = 255


class ChainModel(NamedTuple):
    """A chain: its labels, its weights, and the names of its features.

    Attributes
    ----------
    labels : list of str
    names : Buffer
        The names of features in UTF-8, each followed by a byte 255.
    counts, columns, values : Buffer
        How many weights each feature has, and their labels and values.
    n_weighted : int
        How many features have weights.
    chain : Buffer of shape (n_labels + 2, width)
        The weights of pairs of labels, of the first label and of the last one.
    task : str
        The name of the task that reads its data.
    settings : Json
        The settings of the task.
    """

    labels: list[str]
    names: Buffer
    counts: Buffer
    columns: Buffer
    values: Buffer
    n_weighted: int
    chain: Buffer
    task: str
    settings: Json


class _Unfit(Exception):
    """A file holds something else, or is not as it should be."""


def read_chain(path: str) -> ChainModel | None:
    """Return the chain that a file holds, or None; raise OSError if there is no file."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None
    try:
        return _File(path).chain()
    except (_Unfit, ValueError, RecursionError, LookupError, TypeError):
        return None


class _File:
    """A model file in memory."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as stream:
            content = bytearray(os.fstat(stream.fileno()).st_size)
            stream.readinto(content)
        _require(is_sealed(content))
        length = int.from_bytes(content[:_LENGTH_BYTES], "little")
        _require(length <= min(_LONGEST_HEADER, len(content) - _LENGTH_BYTES))
        self.content, self.first = content, _LENGTH_BYTES + length
        self.arrays = json.loads(content[_LENGTH_BYTES : self.first])
        found = json.loads(self.arrays["__metadata__"][_KEY])
        _require(found["kind"] == "model" and found["version"] == _VERSION)
        self.header = found["header"]

    def chain(self) -> ChainModel:
        """Return the model."""
        header = self.header
        _require(all(header[name] == value for name, value in _PLAIN.items()))
        _require(header["_encoder"] in _NAMED and header["classes_"] in _TEXTS)
        _require(_FORBIDDEN not in self.arrays)
        labels, n_features = self.texts("classes_"), header["_encoder.size"]
        n_labels = len(labels)
        _require(type(n_features) is int and n_features > 0 and 0 < n_labels <= _MOST_LABELS)
        _require(header["weights.unary"] == [n_labels, n_features])
        n_bytes = self.length("_encoder")
        names = self.buffer("_encoder", "U8", n_bytes)
        _require(self.content[self.span("_encoder", "U8", n_bytes)[1] - 1] == _END[0])
        is_dense = "weights.unary" in self.arrays
        weights = (self.dense if is_dense else self.sparse)(n_labels, n_features)
        return ChainModel(labels, names, *weights, self.rows(n_labels), *self.notes())

    def sparse(self, n_labels: int, n_features: int) -> tuple[Buffer, Buffer, Buffer, int]:
        """Return the weights of features of which zeros are not stored, and how many features have some."""
        _require(n_labels < n_features)  # otherwise they are stored label by label
        name = "weights.unary.counts"
        n_weights = self.length("weights.unary.values")
        return (
            self.buffer(name, "U8", n_features),
            self.buffer("weights.unary.columns", "U8", n_weights),
            self.buffer("weights.unary.values", "F64", n_weights),
            n_features - self.content.count(b"\0", *self.span(name, "U8", n_features)),
        )

    def dense(self, n_labels: int, n_features: int) -> tuple[Buffer, Buffer, Buffer, int]:
        """Return the weights of features that are all stored, label by label, in the order of features."""
        start, stop = self.span("weights.unary", "F64", n_labels, n_features)
        values, size = array("d", bytes(stop - start)), _SIZES["F64"] * n_features
        for k in range(n_labels):
            values[k::n_labels] = array("d", self.content[start + k * size : start + (k + 1) * size])
        return (
            Buffer(bytes([n_labels]) * n_features, (n_features,)),
            Buffer(bytes(range(n_labels)) * n_features, (len(values),)),
            Buffer((ctypes.c_double * len(values)).from_buffer(values), (len(values),)),
            n_features,
        )

    def notes(self) -> tuple[str, Json]:
        """Return the task and its settings."""
        (text,) = self.texts("notes")
        notes = dict(json.loads(text)["dict"])
        _require(type(notes["task"]) is str)
        return notes["task"], dict(notes["settings"]["dict"])

    def rows(self, n_labels: int) -> Buffer:
        """Return the weights of pairs of labels, of the first label and of the last one."""
        width = -(-n_labels // _LANES) * _LANES
        found = (ctypes.c_double * ((n_labels + 2) * width))()
        parts = [
            *self.small("transitions", n_labels, n_labels),
            *self.small("start", n_labels),
            *self.small("end", n_labels),
        ]
        for j in range(n_labels + 2):
            row = parts[j * n_labels : (j + 1) * n_labels]
            for k, weight in enumerate(row):
                found[j * width + k] = weight
        return Buffer(found, (n_labels + 2, width))

    def small(self, name: str, *shape: int) -> list[float]:
        """Return a part of the weights, whose zeros may not be stored."""
        name, size = f"weights.{name}", math.prod(shape)
        _require(self.header[name] == list(shape))
        if name in self.arrays:
            found = self.floats(name, *shape)
        else:
            counts = self.bytes(f"{name}.counts", shape[0])
            columns, values = (
                self.bytes(f"{name}.columns", sum(counts)),
                self.floats(f"{name}.values", sum(counts)),
            )
            found = _filled(size, size // shape[0], counts, columns, values)
        _require(all(map(math.isfinite, found)))
        return found

    def texts(self, name: str) -> list[str]:
        """Return texts; raise ValueError if they are not UTF-8."""
        content = self.bytes(name, self.length(name))
        _require(content.endswith(_END))
        return [str(text, "utf-8") for text in content.split(_END)[:-1]]

    def length(self, name: str) -> int:
        """Return the length of a vector; raise ValueError if it is not one, as compiled code relies on it."""
        (found,) = self.arrays[name]["shape"]
        _require(type(found) is int and found >= 0)
        return int(found)

    def bytes(self, name: str, *shape: int) -> bytearray:
        """Return an array of bytes."""
        start, stop = self.span(name, "U8", *shape)
        return self.content[start:stop]

    def floats(self, name: str, *shape: int) -> list[float]:
        """Return an array of floats, flat."""
        start, stop = self.span(name, "F64", *shape)
        return list(memoryview(self.content)[start:stop].cast("d"))

    def buffer(self, name: str, dtype: str, *shape: int) -> Buffer:
        """Return an array as compiled code reads it."""
        start, stop = self.span(name, dtype, *shape)
        memory = (ctypes.c_char * (stop - start)).from_buffer(self.content, start)
        _require(ctypes.addressof(memory) % _SIZES[dtype] == 0)
        return Buffer(memory, shape)

    def span(self, name: str, dtype: str, *shape: int) -> tuple[int, int]:
        """Return where an array of this type and shape is, within the file."""
        described = self.arrays[name]
        start, stop = described["data_offsets"]
        _require(described["dtype"] == dtype and described["shape"] == list(shape))
        _require(type(start) is int and type(stop) is int and all(type(side) is int for side in shape))
        size = math.prod(shape) * _SIZES[dtype]
        start, stop = start + self.first, stop + self.first
        _require(self.first <= start and stop <= len(self.content) and stop - start == size)
        return start, stop


def _filled(
    size: int, n_columns: int, counts: bytearray, columns: bytearray, values: list[float]
) -> list[float]:
    """Return an array of which the nonzeros are stored, row by row."""
    found, done = [0.0] * size, 0
    for row, count in enumerate(counts):
        for p in range(done, done + count):
            _require(columns[p] < n_columns)
            found[row * n_columns + columns[p]] = values[p]
        done += count
    return found


def _require(holds: bool) -> None:
    if not holds:
        raise _Unfit
