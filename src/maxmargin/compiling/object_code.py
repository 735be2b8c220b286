"""Compiled functions that run without Numba and NumPy: machine code on disk, which llvmlite loads.

Numba's own files of compiled code can only be read by Numba, whose import takes longer than many tasks. Here
a file holds the object code of some functions and the names of their symbols. `maxmargin.compiling.ahead`
makes it; this module imports neither Numba nor NumPy. Files are read only from places where no other user
could have written them. They are used only with the processor, the llvmlite and the sources for which they
were made, unless they come from `baseline`.
"""

import ctypes
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

import llvmlite
import llvmlite.binding as llvm

from maxmargin.compiling import baseline
from maxmargin.compiling.places import ROOT, cache_parents
from maxmargin.compiling.trust import private_directory, read_trusted, write_private

_KEPT_FILES = 4
_CHECK_BYTES = 4


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
    sources : iterable of str
        The files of the package that they are compiled from.
    """

    def __init__(self, name: str, sources: Iterable[str]) -> None:
        key = zlib.crc32(repr((llvmlite.__version__, EXTENSION_SUFFIXES[0])).encode())
        for source in sources:
            key = zlib.crc32((ROOT / source).read_bytes(), key)
        self.name, self._key = name, key
        self.file = self._file(baseline.host())

    def _file(self, processor: tuple[str, str, str]) -> str:
        return f"{self.name}-{zlib.crc32(repr(processor).encode(), self._key):08x}"

    def read(self) -> ObjectCode | None:
        """Return what is on disk, or None."""
        for parent in self._parents():
            content = read_trusted(Path(os.path.realpath(parent / self.file)))
            if content is not None:
                return _unpacked(content)
        least = baseline.within(baseline.host())
        content = None if least is None else baseline.read(self._file(least))
        return None if content is None else _unpacked(content)

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


def _packed(code: ObjectCode) -> bytes:
    """Return code as bytes: a check, a line of JSON, and the objects."""
    header = json.dumps([code.symbols, [len(content) for content in code.objects]]).encode()
    data = header + b"\n" + b"".join(code.objects)
    return zlib.crc32(data).to_bytes(_CHECK_BYTES, "little") + data


def _unpacked(content: bytes) -> ObjectCode | None:
    """Return the code that these bytes hold, or None if they were changed."""
    check, data = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
    if zlib.crc32(data).to_bytes(_CHECK_BYTES, "little") != check:
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
    target, (_, name, features) = llvm.Target.from_default_triple(), baseline.host()
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
