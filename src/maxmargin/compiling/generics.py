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

All three give the same bits. Compilation, and loading from disk, is never interrupted: an exception raised in
the middle of it would leave Numba's registries half written, and every later compilation of the process would
fail. A Ctrl-C is heard when the function under way is compiled, which can take some seconds.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from numba import config, njit
from numba.extending import overload, register_jitable

from maxmargin.compiling.interrupts import uninterruptible
from maxmargin.compiling.kernel_cache import PackageCache, is_ours
from maxmargin.compiling.numba_private import CAN_KEEP, KERNEL, PART, keep_in, warn_of_losses


def generic(stub: Callable[..., Any], *, compiled: bool = False) -> Any:
    """Make ``stub`` a function dispatched on the class of its first argument, also in compiled code.

    The body of ``stub`` is what happens to an object of an unregistered class in the interpreter: by
    convention it calls the method of the same name. Arguments are positional.
    """
    function = _dispatched(stub)

    def resolve(subject: Any, *args: Any) -> Callable[..., Any] | None:
        implementation = function.dispatch(getattr(subject, "instance_class", object))
        return implementation if compiled or implementation is not stub else None

    overload(function, strict=False, jit_options=PART)(resolve)
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
    """Compile a function of arrays and numbers, in every mode: as a part of the kernels that call it.

    For calls from Python it is compiled by itself and kept on disk. Arguments are positional.
    """
    if config.DISABLE_JIT:
        return function
    compiled = _kept(function)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return compiled(*args)

    overload(call, strict=False, jit_options=PART)(lambda *args: function)
    call.compiled = compiled  # type: ignore[attr-defined]
    return call


def subroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a part of kernels: it is compiled, cached or interpreted with the kernel that calls it."""
    return register_jitable(**PART)(function)


class kernel:
    """A loop that is cached, compiled or interpreted as its arguments' classes allow."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        functools.update_wrapper(self, loop)
        self.interpreted = loop
        self.compiled = _compiled(loop)
        self.cached = _kept(loop)
        KERNELS.append(self)

    def mode(self, *args: Any) -> str:
        """Return how a call with these arguments runs: "cached", "compiled" or "interpreted"."""
        if not _is_made_of_tuples(args[0]):
            return "interpreted"
        return "cached" if all(is_ours(cls) for arg in args for cls in _classes(arg)) else "compiled"

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


def _compiled(function: Callable[..., Any]) -> Any:
    """Return a dispatcher of Numba's whose compilation is not interrupted."""
    dispatcher = njit(**KERNEL)(function)
    if config.DISABLE_JIT:
        return dispatcher
    compile_one = dispatcher.compile

    def compile_whole(signature: Any) -> Any:
        warn_of_losses()
        with uninterruptible():
            return compile_one(signature)

    dispatcher.compile = compile_whole
    return dispatcher


def _kept(function: Callable[..., Any]) -> Any:
    """The same, with the package's cache on disk, if the function is the package's own."""
    dispatcher = _compiled(function)
    if CAN_KEEP and not config.DISABLE_JIT and is_ours(function):
        keep_in(dispatcher, PackageCache(function))
    return dispatcher
