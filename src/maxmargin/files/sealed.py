"""Sealed files: named arrays and a header of plain data, read as bytes and written at once.

A file has the format of safetensors. Its metadata have one key, `KEY`, whose value is a JSON object: the kind
of the file, the version of its format, and the header. Before it stands a *seal*, a checksum by which every
reader sees that the file is as it was written; earlier versions wrote none. `read_file` checks the rest: the
arrays cover the file without overlaps or holes, and shapes agree with sizes. Nothing of a file is evaluated
or imported.

A seal stands at the same place of every file, as the first of the metadata that safetensors allows. It covers
all other bytes. No check of the parts of a file is as complete: a changed weight is a weight, too.

The module does not import NumPy, as `maxmargin tag` reads models without it.
"""

import json
import math
import os
import secrets
import stat
import zlib
from collections.abc import Callable
from contextlib import suppress
from glob import escape
from mmap import mmap
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, NoReturn, TypeGuard, TypeVar

from maxmargin.runtime.wording import quoted, shortened

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

# O_BINARY: Windows would otherwise translate line ends.
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


def write_atomically(path: str | os.PathLike[str], *content: bytes | memoryview) -> None:
    """Write a file of these parts beside ``path``, sync it to disk, and give it the name ``path``.

    Whatever happens, ``path`` is the old file or the new one. An error removes the temporary file. A process
    that is killed leaves it behind, as ``.NAME.*.part``; the next process that writes ``path`` removes it. If
    ``path`` is a link, the file that it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(_unfinished_name(target, secrets.token_hex(8)))
    try:
        # The permissions are those of any new file, unlike those that tempfile sets.
        with open(os.open(unfinished, _NEW_FILE, 0o666), "wb") as stream:
            _locked(stream.fileno())
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
            if fcntl is not None:
                os.replace(unfinished, target)  # while it is locked
        if fcntl is None:  # Windows renames only closed files
            os.replace(unfinished, target)
    except BaseException:  # including Ctrl-C
        with suppress(OSError):
            unfinished.unlink()
        raise
    _sync_directory(target.parent)
    remove_unfinished(target)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove the files beside ``path`` that processes killed in `write_atomically` have left behind.

    Files that a process is writing stay: it has locked them, or, on Windows, has them open.
    """
    target = Path(os.path.realpath(path))
    for unfinished in target.parent.glob(_unfinished_name(Path(escape(target.name)), "*")):
        with suppress(OSError):
            if _is_abandoned(unfinished):
                unfinished.unlink()


def _is_abandoned(unfinished: Path) -> bool:
    """Whether no process is writing this file."""
    handle = os.open(unfinished, os.O_RDONLY)
    try:
        return _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    On systems without locks, it counts as locked by this process.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unfinished_name(target: Path, mark: str) -> str:
    return f".{target.name}.{mark}.part"


def _sync_directory(directory: Path) -> None:
    """Sync the new name to disk, where directories can be opened: not on Windows."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_LENGTH_BYTES = 8
_SEAL, KEY = "crc32", "maxmargin"
_METADATA = b'{"__metadata__":{'
_BEFORE, _DIGITS, _AFTER = _METADATA + f'"{_SEAL}":"'.encode(), 8, b'",'
_FIRST = _LENGTH_BYTES + len(_BEFORE)
_UNIT = 8  # headers are as long as a multiple of this, so that arrays are aligned

Bytes = bytes | bytearray | memoryview | mmap


def sealed(content: bytes) -> tuple[bytes, memoryview]:
    """Return a safetensors file that has metadata, in two parts, with a seal."""
    first = _LENGTH_BYTES + header_length(content)
    header = content[_LENGTH_BYTES:first].rstrip(b" ")
    if not header.startswith(_METADATA):
        raise ValueError("expected a file of safetensors that begins with metadata")
    header = _BEFORE + b"0" * _DIGITS + _AFTER + header.removeprefix(_METADATA)
    header += b" " * (-len(header) % _UNIT)
    head, arrays = len(header).to_bytes(_LENGTH_BYTES, "little") + header, memoryview(content)[first:]
    return head[:_FIRST] + _checksum(head, arrays) + head[_FIRST + _DIGITS :], arrays


def has_seal(content: Bytes) -> bool:
    """Return whether a file, of which at least the beginning is given, has a seal."""
    return content[_LENGTH_BYTES:_FIRST] == _BEFORE


def is_sealed(content: Bytes) -> bool:
    """Return whether a file has a seal, and is as it was written."""
    whole = memoryview(content)
    return has_seal(content) and whole[_FIRST : _FIRST + _DIGITS] == _checksum(whole)


def _checksum(head: bytes | memoryview, *others: memoryview) -> bytes:
    """Return the digits of the seal of a file, in one or more parts; the first has the place of the seal."""
    found = 0
    for part in (head[:_FIRST], head[_FIRST + _DIGITS :], *others):
        found = zlib.crc32(part, found)
    return b"%08x" % found


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
FilePath = str | os.PathLike[str]
Content = TypeVar("Content", bytearray, mmap)

# Whatever grows with the data is an array: JSON objects take about 30 times the memory of their text.
LONGEST_HEADER = 1 << 20
# Most characters of an error that are quoted from a file, or from what checks say about it.
_LONGEST_TEXT = 300
_WHOLE = "a whole safetensors file"
_MOST_AXES = 32  # of arrays of NumPy
# The bytes of an entry of each type.
SIZES = {"BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "I32": 4, "U32": 4, "I64": 8, "U64": 8}
SIZES |= {"F32": 4, "F64": 8}


class Format(NamedTuple):
    """What a file is for, and the version of its format that this library writes."""

    kind: str
    version: int


MODEL = Format("model", 1)
CHECKPOINT = Format("checkpoint", 2)  # the first version has all zeros


class FileError(ValueError):
    """A file is not what it should be: truncated, changed, of another kind or from a later version."""


class Span(NamedTuple):
    """Where an array is within a file, its type and its shape."""

    dtype: str
    shape: list[int]
    start: int
    stop: int


class Raw(NamedTuple, Generic[Content]):
    """What a file holds, as bytes, and the version of the format in which it was written."""

    content: Content
    spans: dict[str, Span]
    header: dict[str, Json]
    version: int


def read_file(path: FilePath, form: Format, hold: Callable[[BinaryIO, int], Content]) -> Raw[Content]:
    """Return what such a file holds; raise `FileError` if it is not one, OSError if there is none.

    ``hold`` returns the content of an open file of a size.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
        fail(path, "a file", "a directory or a device")
    with open(path, "rb") as stream:
        length = header_length(stream.read(_LENGTH_BYTES))
        if status.st_size < _LENGTH_BYTES + length:
            fail(path, _WHOLE, f"{status.st_size} bytes, of another format or truncated")
        if length > LONGEST_HEADER:
            fail(path, f"a header of at most {LONGEST_HEADER} bytes", f"{length} bytes")
        stream.seek(0)
        content = hold(stream, status.st_size)
    if has_seal(content) and not is_sealed(content):
        fail(path, _WHOLE, "one that was changed or truncated, by its checksum")
    first = _LENGTH_BYTES + length
    try:
        outer = _json(bytes(content[_LENGTH_BYTES:first]).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        fail(path, _WHOLE, f"a header that is not JSON: {error}")
    if not isinstance(outer, dict):
        fail(path, _WHOLE, f"the header {quoted(outer)}")
    metadata = outer.pop("__metadata__", None)
    spans = {name: _span(path, name, found, first) for name, found in outer.items()}
    _check_cover(path, spans, first, len(content))
    version, header = _parsed(path, form, metadata)
    return Raw(content, spans, header, version)


def header_length(content: bytes) -> int:
    """Return the length of the header of a file, of which at least the first bytes are given."""
    return int.from_bytes(content[:_LENGTH_BYTES], "little")


def _span(path: FilePath, name: str, found: Json, first: int) -> Span:
    """Return where an array is, if its size is that of its shape."""
    said = found if isinstance(found, dict) else {}
    dtype, shape, places = (said.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not _are_lengths(shape) or not _are_lengths(places) or len(places) != 2:
        fail(path, _WHOLE, f"{quoted(found)} for {quoted(name)}")
    if dtype not in SIZES:
        fail(path, f"a dtype of {', '.join(SIZES)} for {quoted(name)}", quoted(dtype))
    start, stop = places
    if len(shape) > _MOST_AXES:
        fail_shape(path, name, shape)
    if stop - start != math.prod(shape) * SIZES[dtype]:
        fail(path, _WHOLE, f"{stop - start} bytes for shape {quoted(shape)} of {quoted(name)}")
    return Span(dtype, shape, first + start, first + stop)


def _are_lengths(found: Json) -> TypeGuard[list[int]]:
    return isinstance(found, list) and all(type(item) is int and 0 <= item < 1 << 63 for item in found)


def _check_cover(path: FilePath, spans: dict[str, Span], first: int, size: int) -> None:
    """Raise unless the arrays follow one another up to the end of the file."""
    end = first
    for start, stop in sorted((span.start, span.stop) for span in spans.values()):
        if start != end:
            fail(path, _WHOLE, "arrays that overlap, or have a hole between them")
        end = stop
    if end != size:
        fail(path, _WHOLE, f"arrays of {end - first} bytes in a file with {size - first}")


def _parsed(path: FilePath, form: Format, metadata: object) -> tuple[int, dict[str, Json]]:
    """Return the version and the header of a file of this kind."""
    said = metadata if isinstance(metadata, dict) else {}
    text = said.get(KEY)
    if not isinstance(text, str) or not said.keys() <= {KEY, _SEAL}:
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


def fail(path: FilePath, expected: str, got: str) -> NoReturn:
    """Raise the one error of a file that is not what it should be."""
    line = " ".join(got.split())
    raise FileError(f"{os.fspath(path)}: expected {expected}, got {shortened(line, _LONGEST_TEXT)}")


def fail_shape(path: FilePath, name: str, shape: list[int]) -> NoReturn:
    """Raise the error of an array that NumPy does not support."""
    fail(path, f"a shape that fits into memory for {quoted(name)}", quoted(shape))


def loads(path: FilePath, text: str) -> Json:
    """Return the JSON of a text: objects with each name once, and finite numbers."""
    try:
        return _json(text)
    except (ValueError, RecursionError) as error:
        fail(path, "JSON", str(error))


def _json(text: str) -> Json:
    found: Json = json.loads(
        text, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_without_repeats
    )
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
