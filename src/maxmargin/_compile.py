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
so that editing a model would leave a stale loop behind; one class that cannot be imported any more
makes its index unreadable; and two processes that write the index at once can leave code under
another signature. The cache here has no index: it is a directory named by a hash of all sources
that hold compiled code, with a file per signature, and nothing of a user's is ever written to it.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba import config, njit
from numba.extending import overload, register_jitable

try:
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    _reduce, _rebuild = CompileResult._reduce, CompileResult._rebuild
except (ImportError, AttributeError):  # private names of Numba: without them each process compiles anew
    _CAN_CACHE = False
else:
    _CAN_CACHE = True

_ROOT = Path(__file__).parent
_PACKAGE = __name__.partition(".")[0]
_SOURCES = ("_compile.py", "_parts.py", "_prefetch.py", "rows", "inference", "problems", "methods")
_KEPT_CACHES = 4
_CHECK_BYTES = hashlib.sha256().digest_size
# No kernel allocates, so none counts references: counting those of every array and slice that a call
# touches would double the time of a step. Calls are inlined, as their cost is that of a row of arithmetic.
_KERNEL = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
_INLINED = _KERNEL | {"forceinline": True}
try:
    from maxmargin._parts import PartCompiler
except ImportError:  # private names of Numba again: without them parts are compiled as if they were kernels
    _PART: dict[str, Any] = _INLINED
else:
    _PART = _KERNEL | {"pipeline_class": PartCompiler}


def generic(stub: Callable[..., Any], *, compiled: bool = False) -> Any:
    """Make ``stub`` a function dispatched on the class of its first argument, also in compiled code.

    The body of ``stub`` is what happens to an object of an unregistered class in the interpreter: by
    convention it calls the method of the same name. Arguments are positional.
    """
    function = _dispatched(stub)

    def resolve(subject: Any, *args: Any) -> Callable[..., Any] | None:
        implementation = function.dispatch(getattr(subject, "instance_class", object))
        return implementation if compiled or implementation is not stub else None

    overload(function, strict=False, jit_options=_PART)(resolve)
    return function


def _dispatched(stub: Callable[..., Any]) -> Any:
    """`functools.singledispatch` with a shorter way to classes met before: a step makes many such calls."""
    function = functools.singledispatch(stub)
    known: dict[type, Callable[..., Any]] = {}

    @functools.wraps(stub)
    def call(subject: Any, *args: Any) -> Any:
        implementation = known.get(subject.__class__)
        if implementation is None:
            implementation = known[subject.__class__] = function.dispatch(subject.__class__)
        return implementation(subject, *args)

    def register(*args: Any) -> Any:
        known.clear()
        return function.register(*args)

    call.register, call.dispatch = register, function.dispatch  # type: ignore[attr-defined]
    return call


def generic_with_default(default: Callable[..., Any]) -> Any:
    """The same, for a function whose body serves every class without one of its own, compiled or not."""
    return generic(default, compiled=True)


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of arrays and numbers; it is compiled in every mode and kept on disk."""
    return _on_disk(njit(**_INLINED)(function), function)


def subroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a part of kernels: it is compiled, cached or interpreted with the kernel that calls it."""
    return register_jitable(**_PART)(function)


class kernel:
    """A loop that is cached, compiled or interpreted as its arguments' classes allow."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        functools.update_wrapper(self, loop)
        self.interpreted = loop
        self.compiled = njit(**_KERNEL)(loop)
        self.cached = _on_disk(njit(**_KERNEL)(loop), loop)
        KERNELS.append(self)

    def mode(self, *args: Any) -> str:
        """Return how a call with these arguments runs: "cached", "compiled" or "interpreted"."""
        if not _is_made_of_tuples(args[0]):
            return "interpreted"
        return "cached" if all(_is_ours(cls) for arg in args for cls in _classes(arg)) else "compiled"

    def __call__(self, *args: Any) -> Any:
        return getattr(self, self.mode(*args))(*args)


KERNELS: list[kernel] = []


def _is_made_of_tuples(subject: Any) -> bool:
    """Whether it is a named tuple, and what it wraps is one."""
    while isinstance(subject, tuple) and hasattr(subject, "inner"):
        subject = subject.inner
    return isinstance(subject, tuple)


def _classes(value: Any) -> Iterator[type]:
    """Yield the classes of the named tuples of which ``value`` is made."""
    if isinstance(value, tuple):
        if type(value) is not tuple:
            yield type(value)
        for field in value:
            yield from _classes(field)


def _is_ours(thing: Any) -> bool:
    """Whether a class or function was defined in this package, so that its source is in the hash."""
    return str(thing.__module__).startswith(_PACKAGE + ".")


def _on_disk(dispatcher: Any, function: Callable[..., Any]) -> Any:
    """Give ``dispatcher`` the package's cache, or none where nothing can be written."""
    if not config.DISABLE_JIT and _is_ours(function) and cache_directory() is not None:
        dispatcher._cache = _PackageCache(function)
    return dispatcher


@functools.cache
def fingerprint() -> str:
    """Hash of every source file that holds compiled code, and of what compiles it."""
    compiler = (numba.__version__, sys.version, config.OPT, config.BOUNDSCHECK)
    digest = hashlib.sha256(repr(compiler).encode())
    for name in _SOURCES:
        path = _ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(_ROOT).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """Directory of the compiled kernels, made on first use; None if none can be written."""
    for parent in _cache_parents() if _CAN_CACHE else ():
        try:
            directory = parent / f"kernels-{fingerprint()}"
            directory.mkdir(parents=True, exist_ok=True)
            directory.touch()  # in use: not to be pruned
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


class _PackageCache:
    """The compiled code of one function on disk: what Numba's dispatchers ask of a cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.cache_path = str(cache_directory())
        self._name = f"{function.__module__}.{function.__qualname__}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the code compiled for ``signature``, or None."""
        target.refresh()
        key = self._name, signature, target.codegen().magic_tuple()
        content = _read(self._file(key))
        return _rebuild(target, *content[1]) if content is not None and content[0] == key else None

    def save_overload(self, signature: Any, code: Any) -> None:
        """Write the code compiled for ``signature``, if it is for the package's classes alone."""
        ours = all(_is_ours(cls) for type_ in signature for cls in _classes_of_type(type_))
        if ours and not code.library.has_dynamic_globals:
            key = self._name, signature, code.codegen.magic_tuple()
            _write(self._file(key), (key, _reduce(code)))

    def _file(self, key: Any) -> Path:
        return Path(self.cache_path) / f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}"


def _classes_of_type(type_: Any) -> Iterator[type]:
    """Yield the classes of the named tuples of which a Numba type is made."""
    if hasattr(type_, "instance_class"):
        yield type_.instance_class
    for field in getattr(type_, "types", ()):
        yield from _classes_of_type(field)


def _read(file: Path) -> Any:
    """Return what `_write` has written, or None if there is no such file or it is not whole."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    check, data = content[:_CHECK_BYTES], content[_CHECK_BYTES:]
    return pickle.loads(data) if hashlib.sha256(data).digest() == check else None


def _write(file: Path, value: Any) -> None:
    """Write ``value`` in one stroke, if the disk allows: readers see all of the file or none."""
    data = dumps(value)
    unfinished = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)  # another process may have pruned it
        unfinished.write_bytes(hashlib.sha256(data).digest() + data)
        unfinished.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
