"""Compiled functions that run without Numba and NumPy: machine code on disk, which llvmlite loads.

Numba's own files of compiled code can only be read by Numba, whose import takes longer than many tasks. Here
a file holds the object code of some functions and the names of their symbols. `maxmargin.tagging.making`
makes it; this module imports neither Numba nor NumPy. Files are read only from places where no other user
could have written them. They are used only with the sources, the Numba, the llvmlite and the processor for
which they were made; those of `baseline` run on all processors that have its features.
"""

import ctypes
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm

from maxmargin.compiling import places
from maxmargin.compiling.places import cache_parents, private_directory, read_trusted, sources, write_private

_KEPT_FILES = 4
_CHECK_BYTES = 4
# Settings of Numba that change the code; `places.host` has those of the processor.
_SETTINGS = "NUMBA_OPT", "NUMBA_BOUNDSCHECK"


class Array(NamedTuple):
    """An argument that is an array, laid out row by row: the type of its entries, and its number of axes."""

    dtype: str
    ndim: int = 1

    @property
    def itemsize(self) -> int:
        """The number of bytes of an entry."""
        return int(self.dtype[1:])


# What functions take, by their names: arrays, and None for an integer.
Arguments = Mapping[str, tuple[Array | None, ...]]


class Buffer(NamedTuple):
    """An array to pass: its memory, of bytes or of an array of ctypes, and the length of each axis."""

    memory: object
    shape: tuple[int, ...]


class ObjectCode(NamedTuple):
    """Object files, and the symbol of each function."""

    symbols: dict[str, str]
    objects: list[bytes]


Function = Callable[..., int]
_Word = type[ctypes.c_void_p] | type[ctypes.c_int64]


class Store:
    """Compiled functions on disk.

    Parameters
    ----------
    name : str
        What the functions are for.
    """

    def __init__(self, name: str) -> None:
        self.name, self._key = name, _key()
        self.file = self._file(places.host())

    def _file(self, processor: tuple[str, str, str]) -> str:
        return f"{self.name}-{zlib.crc32(repr(processor).encode(), self._key):08x}"

    def read(self) -> ObjectCode | None:
        """Return what is on disk, or None; damaged files count as none."""
        return next((code for code in map(_unpacked, self._contents()) if code is not None), None)

    def _contents(self) -> Iterator[bytes | None]:
        """Yield the files that may hold the code: for this processor, and for the baseline within it."""
        for parent in self._parents():
            yield read_trusted(Path(os.path.realpath(parent / self.file)))
        least = places.baseline_for(places.host())
        if least is not None:
            yield places.read_baseline(self._file(least))

    def directory(self) -> Path | None:
        """Return where code can be written, or None; make the directory if there is none."""
        for parent in self._parents():
            with suppress(OSError):
                directory = private_directory(parent)
                if os.access(directory, os.W_OK):
                    return directory
        return None

    def write(self, code: ObjectCode) -> None:
        """Write code, and remove that of all but the last few versions of the sources."""
        directory = self.directory()
        if directory is None:
            return
        write_private(directory / self.file, _packed(code))
        with suppress(OSError):
            files = sorted(directory.glob(f"{self.name}-*"), key=lambda path: path.stat().st_mtime)
            for old in files[:-_KEPT_FILES]:
                old.unlink()

    def _parents(self) -> Iterator[Path]:
        return cache_parents(os.environ.get("NUMBA_CACHE_DIR", ""))


def _key() -> int:
    """Return a hash of the sources that functions are compiled from, and of what compiles them."""
    settings = [os.environ.get(name) for name in _SETTINGS]
    compiler = _version_of_numba(), llvmlite.__version__, EXTENSION_SUFFIXES[0], settings
    key = zlib.crc32(repr(compiler).encode())
    for name, content in sources():
        key = zlib.crc32(content, zlib.crc32(name.encode(), key))
    return key


def _version_of_numba() -> str:
    """Return the version without importing Numba: from the file that says so, as metadata take longer."""
    found = find_spec("numba")
    if found is not None and found.origin is not None:
        with suppress(OSError):
            text = Path(found.origin).with_name("_version.py").read_text("utf-8")
            said = re.search(r'"version": "([^"]+)"', text)
            if said is not None:
                return said[1]
    from importlib.metadata import version

    return version("numba")


def _packed(code: ObjectCode) -> bytes:
    """Return code as bytes: a check, a line of JSON, and the objects."""
    header = json.dumps([code.symbols, [len(content) for content in code.objects]]).encode()
    data = header + b"\n" + b"".join(code.objects)
    return zlib.crc32(data).to_bytes(_CHECK_BYTES, "little") + data


def _unpacked(content: bytes | None) -> ObjectCode | None:
    """Return the code that these bytes hold; None if there are none, or they were changed."""
    if content is None:
        return None
    check, data = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
    # The check of nothing is zero, as in a file of zeros.
    if not data or zlib.crc32(data).to_bytes(_CHECK_BYTES, "little") != check:
        return None
    header, _, rest = data.partition(b"\n")
    symbols, lengths = json.loads(header)
    objects = []
    for length in lengths:
        objects.append(rest[:length])
        rest = rest[length:]
    return ObjectCode(symbols, objects)


def target_machine() -> llvm.TargetMachine:
    """Return the processor of this process, as code is made for it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target, (_, name, features) = llvm.Target.from_default_triple(), places.host()
    return target.create_target_machine(
        cpu=name,
        features=features,
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",  # as Numba chooses
        codemodel="jitdefault",
    )


def loaded(code: ObjectCode, arguments: Arguments) -> dict[str, Function]:
    """Return the functions, ready to be called with buffers and ints."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    for content in code.objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return {
        name: _callable(engine, engine.get_function_address(code.symbols[name]), kinds)
        for name, kinds in arguments.items()
    }


def _callable(engine: llvm.ExecutionEngine, address: int, kinds: tuple[Array | None, ...]) -> Function:
    """Return a function that calls code as Numba does: a place for the result, one for errors, arguments."""
    words: list[_Word] = [ctypes.c_void_p, ctypes.c_void_p]
    for kind in kinds:
        words += [ctypes.c_int64] if kind is None else _words_of_array(kind.ndim)
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *words)(address)

    def call(*values: Buffer | int) -> int:
        result = ctypes.c_int64()
        passed: list[object] = [ctypes.addressof(result), None]
        for kind, value in zip(kinds, values, strict=True):
            passed += [value] if kind is None else _passed(kind, value)
        entry(*passed)
        return result.value

    call.engine = engine  # type: ignore[attr-defined]  # the code lives as long as its engine
    return call


def _words_of_array(ndim: int) -> list[_Word]:
    """Return the types that an array is passed as: two objects, sizes, its memory, its shape and strides."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return [pointer, pointer, number, number, pointer, *[number] * 2 * ndim]


def _passed(kind: Array, value: object) -> list[object]:
    """Return an array as it is passed."""
    assert isinstance(value, Buffer)
    if len(value.shape) != kind.ndim:  # ctypes would pass the words after it to other arguments
        raise ValueError(f"expected an array of {kind.ndim} axes, got shape {value.shape}")
    strides, size = [kind.itemsize], kind.itemsize
    for side in reversed(value.shape[1:]):
        strides.insert(0, strides[0] * side)
    count = strides[0] // size * value.shape[0]
    return [None, None, count, size, value.memory, *value.shape, *strides]
