"""Compiled code on disk: which sources it is made from, where it is kept, and which of it may be loaded.

What a process compiles is kept beside the package or in its user's cache, and is loaded only from files that
this user or root can have written. A directory is trusted if it and all directories above it belong to this
user or to root, and nobody else can write to them. A sticky directory such as /tmp may be above it. ssh
applies the same rules to its keys. Without POSIX permissions, as on Windows, every file that can be opened is
trusted.

There may also be kernels compiled beforehand for a target that most processors support, the *baseline*. Some
wheels of the package carry them, and several users or machines can share a directory of them. Such a kernel
is used if the user's own cache has none, and only if it was compiled from the same sources with the same
versions of Numba and Python, as recorded in the name of its directory, and if the processor of this process
has all features of the baseline. Otherwise Numba compiles as usual. All results are bitwise the same.
"""

import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

_PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]
# What no compiled function is made from, nor anything that one imports. All other sources count, so that code
# on disk can be too new, but never too old: a new file counts, and so does one that only has constants.
_ABOVE = {"__main__.py", "cli", "dask", "datasets", "displays", "estimators", "product"}
_COMPILED = {"__pycache__", "_kernels"}
_POSIX = hasattr(os, "geteuid")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Do not follow a symbolic link, and do not wait for a pipe.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# Names a directory that is read instead of the one in the package; if it is empty, none is.
VARIABLE = "MAXMARGIN_KERNELS"
_SHIPPED = ROOT / "_kernels"


def is_ours(thing: type | Callable[..., object]) -> bool:
    """Return whether this package defines a class or function."""
    return str(thing.__module__).startswith(_PACKAGE + ".")


def cache_parents(chosen: str) -> Iterator[Path]:
    """Yield the directories in which compiled code may be kept; only the one that users chose, if any."""
    if chosen:
        yield Path(chosen) / _PACKAGE
        return
    yield ROOT / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    yield Path(home) / _PACKAGE


def sources() -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of all files that compiled code may depend on, always in one order."""
    for path in _python_files(str(ROOT), _ABOVE | _COMPILED):
        with open(path, "rb", buffering=0) as stream:  # `maxmargin tag` waits for this
            yield path[len(str(ROOT)) :].replace(os.sep, "/"), stream.read()


def _python_files(folder: str, without: Collection[str]) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name in without or entry.name == "estimator.py":
            continue
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir():
            yield from _python_files(entry.path, _COMPILED)


class Untrusted(PermissionError):
    """Others could have written here."""


def private_directory(path: Path) -> Path:
    """Return the real path of a trusted directory, made for this user alone if missing, or raise OSError."""
    real = Path(os.path.realpath(path))
    missing = [place for place in (real, *real.parents) if not place.is_dir()]
    _check_above(missing[-1] if missing else real)
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)  # another process may be making it
    check_directory(real)
    return real


def check_directory(path: Path) -> None:
    """Raise `Untrusted` if others could have written to this directory, given by its real path."""
    _check(path, os.lstat(path), _OTHERS_WRITE)
    _check_above(path)


def read_trusted(file: Path) -> bytes | None:
    """Return the content of a trusted file in a trusted directory, or None."""
    try:
        check_directory(file.parent)
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | _PLAIN_FILE)) as stream:
            status = os.fstat(stream.fileno())  # of the open file, whatever had its name before
            _check(file, status, _OTHERS_WRITE)
            return stream.read() if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def write_private(file: Path, content: bytes) -> None:
    """Write a file for this user only, if the disk allows; readers see all of it or nothing."""
    unfinished = None
    try:
        private_directory(file.parent)  # another process may have removed it
        handle, unfinished = tempfile.mkstemp(dir=file.parent, prefix=file.name + ".")
        with open(handle, "wb") as stream:
            stream.write(content)
        os.replace(unfinished, file)
    except OSError:
        if unfinished is not None:
            with suppress(OSError):
                os.unlink(unfinished)


def _check_above(path: Path) -> None:
    for above in path.parents:
        status = os.lstat(above)
        _check(above, status, 0 if status.st_mode & stat.S_ISVTX else _writers_above(status))


def _check(path: Path, status: os.stat_result, writers: int) -> None:
    """Raise `Untrusted` if a file belongs to another user, or its mode has a permission of ``writers``."""
    if not _POSIX:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise Untrusted(f"{path} belongs to another user")
    if status.st_mode & writers:
        raise Untrusted(f"others can write to {path}")


def _writers_above(status: os.stat_result) -> int:
    """Return the write permissions on a directory that endanger its contents.

    If each user has a private group of the same name, directories are often writable for it: this is safe.
    """
    return stat.S_IWOTH if _is_own_group(status.st_gid) else _OTHERS_WRITE


def _is_own_group(number: int) -> bool:
    if not _POSIX:
        return True
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


class Baseline(NamedTuple):
    """A processor: its name in LLVM, and what a machine needs to run code for it."""

    name: str
    features: frozenset[str]


# The third level of the psABI: Intel's processors since 2013 and AMD's since 2015, but for some small ones.
_LEVEL_1 = "+64bit,+cmov,+cx8,+fxsr,+mmx,+sse,+sse2"
_LEVEL_2 = "+crc32,+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
_LEVEL_3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
_X86_64 = Baseline("x86-64-v3", frozenset(f"{_LEVEL_1},{_LEVEL_2},{_LEVEL_3}".split(",")))
# What every processor of an architecture has, such as vectors of 128 bits on ARM's of 64 bits.
_GENERIC = Baseline("generic", frozenset())


def _of_architecture(triple: str) -> Baseline:
    return _X86_64 if triple.startswith("x86_64-") else _GENERIC


def host() -> tuple[str, str, str]:
    """Return the processor that Numba compiles for, as Numba does: LLVM's triple, its name, its features.

    It is this machine's, unless the environment names another one.
    """
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if name == "generic" else llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), name or llvm.get_host_cpu_name(), features


def baseline_for(processor: object) -> tuple[str, str, str] | None:
    """Return the baseline in Numba's description, or None if a processor so described lacks a feature of it.

    Settings such as ``NUMBA_CPU_NAME`` change the description of a processor, so they are honoured.
    """
    match processor:
        case (str() as triple, str(), str() as features):
            least = _of_architecture(triple)
            return (triple, least.name, "") if least.features <= {*features.split(",")} else None
    return None


def baseline_settings() -> dict[str, str]:
    """Return the environment of a process that only compiles, for the baseline."""
    return {
        "NUMBA_CPU_NAME": _of_architecture(llvm.get_process_triple()).name,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_DISABLE_INTEL_SVML": "1",  # a library that few users have
        VARIABLE: "",
    }


def baseline_place() -> Path | None:
    """Return the directory of kernels compiled beforehand; None if the environment turns them off."""
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return _SHIPPED
    return Path(chosen) if chosen else None


def read_baseline(file: str) -> bytes | None:
    """Return the content of a file that was compiled beforehand, by its path there, or None.

    Files in the package are as trusted as its Python code. Elsewhere, a file is read only if no one but this
    user or root can have written it.
    """
    at = baseline_place()
    if at is None:
        return None
    if VARIABLE in os.environ:
        chosen = at / file
        return read_trusted(Path(os.path.realpath(chosen.parent), chosen.name))
    try:
        return (at / file).read_bytes()
    except OSError:
        return None


def has_baseline(directory: str) -> bool:
    """Whether there are kernels compiled beforehand in a directory of this name, for this machine."""
    at = baseline_place()
    return at is not None and baseline_for(host()) is not None and (at / directory).is_dir()
