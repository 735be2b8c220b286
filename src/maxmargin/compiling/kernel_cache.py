"""The cache of kernels on disk, and an inventory of what it holds.

Numba's own file cache has four defects. It looks only at the file of the cached function, so an edit to a
model would leave a stale loop behind. One class that can no longer be imported makes its index unreadable.
Two processes that write the index at the same time can store code under the wrong signature. And it loads
whatever anybody has put there. The cache here has no index: it is a directory named by a hash of all sources
that hold compiled code, with one file per signature. It never stores a user's code, and never loads anything
that others could have written. On a cache miss, kernels compiled beforehand are searched (the *baseline* of
`places`).
"""

import functools
import hashlib
import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

import numba
from numba import config

from maxmargin.compiling import places
from maxmargin.compiling.numba_private import instructions
from maxmargin.compiling.numba_private.instructions import Code, Target
from maxmargin.compiling.places import (
    cache_parents,
    is_ours,
    private_directory,
    read_trusted,
    sources,
    write_private,
)
from maxmargin.runtime.wording import counted

KEPT_CACHES = 4
_CHECK_BYTES = hashlib.sha256().digest_size

# The types of a function's arguments, as Numba describes them.
Signature = tuple[object, ...]
# Name of a function, its signature, and the processor that its code is for.
_Key = tuple[str, Signature, object]


@functools.cache
def fingerprint() -> str:
    """Return a hash of every source file that compiled code may depend on, and of the compiler's version.

    Numba's code fits all releases of Python with the same interface to extension modules, such as 3.13.
    """
    svml = getattr(config, "USING_SVML", None)  # Intel's library, whose functions have other bits
    compiler = (numba.__version__, EXTENSION_SUFFIXES[0], config.OPT, config.BOUNDSCHECK, svml)
    digest = hashlib.sha256(repr(compiler).encode())
    for name, content in sources():
        digest.update(name.encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def directory_name() -> str:
    """Return the name of directories of compiled code that fits these sources and this compiler."""
    return f"kernels-{fingerprint()}"


def has_kernels() -> bool:
    """Whether compiled code is on disk: kept there by an earlier process, or compiled beforehand."""
    kept = cache_directory()
    return places.has_baseline(directory_name()) or (kept is not None and any(kept.iterdir()))


class _Places(NamedTuple):
    """Where compiled code is read and written, and why other places were refused."""

    readable: tuple[Path, ...]
    writable: Path | None
    refused: tuple[str, ...]


def cache_directory() -> Path | None:
    """Return the directory to which compiled kernels are written, or None; make it on first use."""
    return _places().writable


def readable_directories() -> tuple[Path, ...]:
    """Return the directories from which compiled kernels of this user are read."""
    return _places().readable


@functools.cache
def _places() -> _Places:
    readable: list[Path] = []
    refused: list[str] = []
    for parent in cache_parents(config.CACHE_DIR) if instructions.CAN_KEEP else ():
        try:
            directory = private_directory(parent / directory_name())
            readable.append(directory)
            directory.touch()  # in use, so not to be pruned
            if os.access(directory, os.W_OK):
                _prune(directory)
                return _Places(tuple(readable), directory, tuple(refused))
        except OSError as error:
            refused.append(f"{parent}: {error.strerror or error}")
    return _Places(tuple(readable), None, tuple(refused))


def _prune(current: Path) -> None:
    """Remove the caches of all but the last few versions of the sources."""
    try:
        caches = sorted(current.parent.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
    except OSError:  # another process is pruning
        return
    for old in caches[:-KEPT_CACHES]:
        if old != current:
            shutil.rmtree(old, ignore_errors=True)


class PackageCache:
    """The compiled code of one function on disk, with the methods that Numba's dispatchers call."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """Directory to which code is written, for Numba's statistics."""
        return str(cache_directory())

    def load_overload(self, signature: Signature, target: Target) -> Code | None:
        """Return the code compiled for ``signature``, or None."""
        for key, content in self._found(signature, instructions.processor_of_target(target)):
            kept = _unpickled(content)
            if kept is not None and kept[0] == key:
                return instructions.rebuild_code(target, kept[1])
        return None

    def _found(self, signature: Signature, processor: object) -> Iterator[tuple[_Key, bytes | None]]:
        """Yield the files that may hold the code: for this processor, and for the baseline within it."""
        key = self._name, signature, processor
        for directory in _places().readable:
            yield key, read_trusted(directory / self._file(key))
        least = places.baseline_for(processor)
        if least is not None:
            key = self._name, signature, least
            yield key, places.read_baseline(f"{directory_name()}/{self._file(key)}")

    def save_overload(self, signature: Signature, code: Code) -> None:
        """Write the code compiled for ``signature``, unless a user's class is among its types."""
        ours = all(is_ours(cls) for type_ in signature for cls in _classes_of_type(type_))
        if not ours or not instructions.can_be_kept(code):
            return
        directory = cache_directory()
        if directory is None:
            _warn_of_no_directory()
            return
        key = self._name, signature, instructions.processor_of_code(code)
        data = instructions.reduce_code(key, code)
        write_private(directory / self._file(key), hashlib.sha256(data).digest() + data)

    def _file(self, key: _Key) -> str:
        return f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"


def _classes_of_type(type_: object) -> Iterator[type]:
    """Yield the classes of all named tuples in a Numba type."""
    if hasattr(type_, "instance_class"):
        yield type_.instance_class
    for field in getattr(type_, "types", ()):
        yield from _classes_of_type(field)


def _unpickled(content: bytes | None) -> tuple[_Key, tuple[object, ...]] | None:
    """Return what `PackageCache.save_overload` wrote, or None if there is no file or it is damaged."""
    if content is None:
        return None
    check, data = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
    if hashlib.sha256(data).digest() != check:
        return None
    kept: tuple[_Key, tuple[object, ...]] = pickle.loads(data)
    return kept


def kept_signature(content: bytes | None) -> Signature | None:
    """Return the signature of the code in a trusted file, or None if there is none or it is damaged."""
    kept = _unpickled(content)
    return None if kept is None else kept[0][1]


@functools.cache
def _warn_of_no_directory() -> None:
    """Warn once that the next process has to compile again."""
    warnings.warn(
        "maxmargin: compiled kernels are not kept on disk, each process compiles them anew "
        f"({'; '.join(_places().refused)}); set NUMBA_CACHE_DIR to a directory that only you can write.",
        RuntimeWarning,
        stacklevel=2,
    )


# The loop over examples, which is compiled for every pair of problem and method.
_LOOP = "maxmargin.methods.sweep.sweep-"
_BYTES = 1e6


class Trained(NamedTuple):
    """What a loop over examples is compiled for.

    Attributes
    ----------
    model : str
        The model, such as "Chain".
    rows : str
        How its features are stored, such as "dense"; empty if there is but one way.
    method : str
    """

    model: str
    rows: str
    method: str


class Inventory(NamedTuple):
    """The compiled code in one directory; ``str`` makes one line of it, and one for each model.

    Attributes
    ----------
    origin : str
        Who compiled it, in words.
    directory : Path
    functions : int
        Number of compiled functions.
    size : int
        Their bytes.
    trained : tuple of Trained
        The models and methods whose training is among them.
    """

    origin: str
    directory: Path
    functions: int
    size: int
    trained: tuple[Trained, ...]

    def __str__(self) -> str:
        held = f"{counted(self.functions, 'function')}, {self.size / _BYTES:.1f} MB"
        return "\n".join([f"{self.origin}: {held}, in {self.directory}", *self._models()])

    def _models(self) -> Iterator[str]:
        """Yield a line for each model: its kinds of rows, with their methods."""
        for model in sorted({each.model for each in self.trained}):
            methods: dict[str, list[str]] = {}
            for each in sorted(self.trained):
                if each.model == model:
                    methods.setdefault(each.rows, []).append(each.method)
            kinds = [f"{rows} rows by " * bool(rows) + ", ".join(some) for rows, some in methods.items()]
            yield f"  {model}: {'; '.join(kinds)}"


def inventories() -> list[Inventory]:
    """Return what is on disk for these sources and this machine; nothing is compiled or run."""
    found = [
        _inventory("this user's cache", directory, partial(_trusted, directory))
        for directory in readable_directories()
    ]
    place, name = places.baseline_place(), directory_name()
    if place is not None and places.has_baseline(name):
        origin = f"compiled beforehand, {places.VARIABLE if places.VARIABLE in os.environ else 'shipped'}"
        found.append(_inventory(origin, place / name, lambda file: places.read_baseline(f"{name}/{file}")))
    return found


def _trusted(directory: Path, name: str) -> bytes | None:
    return read_trusted(directory / name)


def _inventory(origin: str, directory: Path, read: Callable[[str], bytes | None]) -> Inventory:
    """Return what is in a directory, whose files ``read`` returns if they can be trusted."""
    files = [file for file in directory.iterdir() if file.is_file()]
    signatures = [kept_signature(read(file.name)) for file in files if file.name.startswith(_LOOP)]
    trained = {_trained(signature) for signature in signatures if signature is not None}
    size = sum(file.stat().st_size for file in files)
    return Inventory(origin, directory, len(files), size, tuple(sorted(trained)))


def _trained(signature: tuple[object, ...]) -> Trained:
    """Return what a loop is for, by the types of its first two arguments: a problem and a method."""
    problem, method = signature[:2]
    names = list(_names(problem))
    model = next((name.removesuffix("Map") for name in names if name.endswith("Map")), "")
    rows = next((name.removesuffix("Rows").lower() for name in names if name.endswith("Rows")), "")
    return Trained(model, rows, next(_names(method), ""))


def _names(type_: object) -> Iterator[str]:
    """Yield the names of the classes of all named tuples in a Numba type, outer ones first."""
    if hasattr(type_, "instance_class"):
        yield str(type_.instance_class.__name__)
    for field in getattr(type_, "types", ()):
        yield from _names(field)
