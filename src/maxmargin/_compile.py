"""Generic functions and kernels: the one seam between models and methods.

A *generic function* is dispatched on the class of its first argument, by
`functools.singledispatch` in the interpreter and by `numba.extending.overload` in compiled
code, from one registry. A *kernel* is a loop over generic functions that runs in one of three ways:

cached
    compiled, and kept on disk: every class among the arguments is this package's own;
compiled
    compiled anew in each process: some argument is a user's named tuple;
interpreted
    plain Python: the first argument is any other object with the same functions as methods.

All three give the same bits. Numba's own file cache looks only at the file of the cached function,
so that editing a model would leave a stale loop behind, and one class that cannot be imported
any more makes a whole index unreadable. The cache here is a directory named by a hash of all
sources that hold compiled code, and nothing of a user's is ever written to it.
"""

import functools
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.extending import overload, register_jitable

_ROOT = Path(__file__).parent
_PACKAGE = __name__.partition(".")[0]
_SOURCES = ("_compile.py", "rows.py", "inference", "problems", "methods")
_KEPT_CACHES = 4
# No kernel allocates, so none counts references: counting those of every array and slice that a call
# touches would double the time of a step. Calls are inlined, as their cost is that of a row of arithmetic.
_KERNEL = {"nogil": True, "_nrt": False}
_INLINED = _KERNEL | {"forceinline": True}


def generic(stub: Callable[..., Any]) -> Any:
    """Make ``stub`` a function dispatched on the class of its first argument, also in compiled code.

    The body of ``stub`` is what happens to an object of an unregistered class in the interpreter: by
    convention it calls the method of the same name. Arguments are positional.
    """
    function = functools.singledispatch(stub)

    def resolve(subject: Any, *args: Any) -> Callable[..., Any] | None:
        implementation = function.dispatch(getattr(subject, "instance_class", object))
        return None if implementation is stub else implementation

    overload(function, strict=False, jit_options=_INLINED)(resolve)
    return function


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays and numbers; it is compiled in every mode and kept on disk."""
    return _on_disk(njit(**_INLINED)(function), function)


def subroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a part of kernels: it is compiled, cached or interpreted with the kernel that calls it."""
    return register_jitable(**_INLINED)(function)


class kernel:
    """A loop that is cached, compiled or interpreted as its arguments' classes allow."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        functools.update_wrapper(self, loop)
        self.interpreted = loop
        self.compiled = njit(**_KERNEL)(loop)
        self.cached = _on_disk(njit(**_KERNEL)(loop), loop)

    def mode(self, *args: Any) -> str:
        """Return how a call with these arguments runs: "cached", "compiled" or "interpreted"."""
        if not isinstance(args[0], tuple):
            return "interpreted"
        ours = all(cls.__module__.startswith(_PACKAGE + ".") for arg in args for cls in _classes(arg))
        return "cached" if ours else "compiled"

    def __call__(self, *args: Any) -> Any:
        return getattr(self, self.mode(*args))(*args)


def _classes(value: Any) -> Iterator[type]:
    """Yield the classes of the named tuples of which ``value`` is made."""
    if isinstance(value, tuple):
        if type(value) is not tuple:
            yield type(value)
        for field in value:
            yield from _classes(field)


def _on_disk(dispatcher: Any, function: Callable[..., Any]) -> Any:
    """Give ``dispatcher`` the package's cache, or none where no directory can be written."""
    if not config.DISABLE_JIT and cache_directory() is not None:
        dispatcher._cache = _PackageCache(function)
    return dispatcher


@functools.cache
def fingerprint() -> str:
    """Hash of every source file that holds compiled code."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        path = _ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(_ROOT).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """Directory of the compiled kernels, made on first use; None if none can be written."""
    for parent in _cache_parents():
        directory = parent / f"kernels-{fingerprint()}"
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            _prune(parent, directory)
            return directory
    return None


def _cache_parents() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / _PACKAGE
        return
    yield _ROOT / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    yield Path(home) / _PACKAGE


def _prune(parent: Path, current: Path) -> None:
    """Remove the caches of all but the last few versions of the sources."""
    try:
        caches = sorted(parent.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
    except OSError:  # another process prunes at the same time
        return
    for old in caches[:-_KEPT_CACHES]:
        if old != current:
            shutil.rmtree(old, ignore_errors=True)


class _PackageLocator(_CacheLocator):  # type: ignore[misc]
    """Places a function's cache by the sources of the whole package, not by its own file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self._disambiguator = f"{Path(code.co_filename).stem}-{code.co_firstlineno}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], _path: str) -> "_PackageLocator":
        return cls(function)

    def ensure_cache_path(self) -> None:
        """Nothing to do: `cache_directory` has made it."""

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return fingerprint()

    def get_disambiguator(self) -> str:
        return self._disambiguator


class _PackageCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_PackageLocator,)


class _PackageCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _PackageCacheImpl
