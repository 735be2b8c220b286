"""Generic functions and kernels: the one seam between models and methods.

A *generic function* is dispatched on the class of its first argument, by `functools.singledispatch` in the
interpreter and by `numba.extending.overload` in compiled code, from one registry. A *kernel* is a loop over
generic functions that runs in one of three modes:

cached
    compiled, and kept on disk: every class among the arguments is this package's own;
compiled
    compiled again in each process: some argument is a user's named tuple;
interpreted
    plain Python: the first argument holds an object other than named tuples, arrays and numbers.

All three give the same bits. A kernel that another kernel calls is compiled as a part of it; if the outer
one is interpreted, the inner one chooses its own mode. So a step can be compiled although the oracle that
feeds it is a Python function.

**Wrappers.** A named tuple with a field ``inner`` wraps another object of the same kind. A generic function
that is not registered for the wrapper's class is forwarded: it is called with the inner object, and with
the inner objects of the arguments named ``state`` and ``work``. An implementation registered for `tuple` is
the default of all named tuples, and does not stop this.

Compilation, and loading from disk, is never interrupted: an exception raised in the middle of it would leave
Numba's registries half written, and every later compilation of the process would fail. Ctrl-C takes effect
when the current function is compiled, which can take some seconds.
"""

import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Number
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numba import config, njit
from numba.extending import overload, register_jitable

from maxmargin.compiling.interpreting import SWITCH, THREAD, quiet
from maxmargin.compiling.kernel_cache import PackageCache
from maxmargin.compiling.numba_private import warn_of_losses
from maxmargin.compiling.numba_private.instructions import CAN_KEEP, keep_in
from maxmargin.compiling.numba_private.pipeline import KERNEL, NOT_INLINED, PART
from maxmargin.compiling.places import is_ours
from maxmargin.compiling.progress import announced
from maxmargin.runtime.limits import stopped_clock, uninterruptible, without_collection
from maxmargin.runtime.wording import note_example

# Fields that kernels compile for, and the usual classes among them: before every call of a kernel, all fields
# of problem, state and workspace are checked, and an isinstance check against an abstract class takes ten
# times as long.
_COMPILABLE = np.ndarray | Number
_USUAL = frozenset({np.ndarray, int, float, bool})
# Tuples, and the package's own classes of named tuples that have been seen.
_OWN: set[type] = {tuple}
# Arguments of a generic function whose inner objects a wrapper passes on.
_WRAPPED_TOO = ("state", "work")

Function = TypeVar("Function", bound=Callable[..., object])


def generic(stub: Callable[..., object], *, compiled: bool = False) -> Any:
    """Make ``stub`` a generic function, dispatched on the class of its first argument, compiled or not.

    The body of ``stub`` handles objects of unregistered classes in the interpreter. By convention it calls
    the method of the same name. Arguments are positional.
    """
    function = _dispatched(stub)

    def resolve(subject: object, *args: object) -> Callable[..., object] | None:
        implementation = function.implementation(getattr(subject, "instance_class", object))
        return implementation if compiled or implementation is not stub else None

    overload(function, strict=False, jit_options=PART)(resolve)
    return function


def generic_with_default(default: Callable[..., object]) -> Any:
    """Make a generic function whose body serves every class without an implementation, compiled or not."""
    return generic(default, compiled=True)


def python_generic(stub: Callable[..., object]) -> Any:
    """Make a generic function that only Python calls. It is not forwarded: its body handles wrappers."""
    return functools.singledispatch(stub)


def _dispatched(stub: Callable[..., object]) -> Any:
    """`functools.singledispatch`, with a cache of classes and with forwarding of wrappers."""
    function = functools.singledispatch(stub)
    known: dict[type, Callable[..., object]] = {}

    @functools.wraps(stub)
    def call(subject: object, *args: object) -> object:
        implementation = known.get(subject.__class__)
        if implementation is None:
            implementation = known[subject.__class__] = call.implementation(subject.__class__)  # type: ignore[attr-defined]
        return implementation(subject, *args)

    forward = forwarder(call)

    def implementation(cls: type) -> Callable[..., object]:
        found = function.dispatch(cls)
        is_default = found in (stub, function.registry.get(tuple))
        return forward if is_default and is_wrapper(cls) else found

    def register(*args: Any) -> object:
        known.clear()
        return function.register(*args)

    call.register, call.dispatch = register, function.dispatch  # type: ignore[attr-defined]
    call.implementation, call.registry = implementation, function.registry  # type: ignore[attr-defined]
    return call


def is_wrapper(cls: type) -> bool:
    """Whether a class is a named tuple that wraps another object, its field ``inner``."""
    return "inner" in getattr(cls, "_fields", ())


def forwarder(function: Any, **changed: str) -> Callable[..., object]:
    """Return a function that calls ``function`` with the inner object of a wrapper.

    ``changed`` gives other arguments as expressions, in which ``{0}`` is the wrapper. The function is made
    from text, as compiled code cannot take a variable number of arguments.
    """
    names = list(inspect.signature(function).parameters)
    passed = {name: f"{name}.inner" for k, name in enumerate(names) if k == 0 or name in _WRAPPED_TOO}
    passed |= {name: text.format(names[0]) for name, text in changed.items()}
    scope: dict[str, Any] = {"function": function, "__name__": function.__module__}
    arguments = ", ".join(passed.get(name, name) for name in names)
    exec(f"def forward({', '.join(names)}):\n    return function({arguments})", scope)
    forward: Callable[..., object] = scope["forward"]
    forward.__name__ = forward.__qualname__ = f"inner_{function.__name__}"
    return forward


def helper(function: Function) -> Function:
    """Compile a function of arrays and numbers, in every mode: as a part of the kernels that call it.

    For calls from Python it is compiled separately and kept on disk. Arguments are positional.
    """
    if config.DISABLE_JIT:
        return function
    interpreted = quiet(function)
    made: list[Callable[..., object]] = []

    def compiled() -> Callable[..., object]:
        """Make the dispatcher when it is first used: few of the package's helpers are called from Python."""
        if not made:
            made.append(_kept(function))
        return made[0]  # if threads make several, all use the first, and share what they compile

    @functools.wraps(function)
    def call(*args: object) -> object:
        if SWITCH.on:
            return function(*args) if THREAD.is_quiet else interpreted(*args)
        return compiled()(*args)

    overload(call, strict=False, jit_options=PART)(lambda *args: function)
    call.compiled = compiled  # type: ignore[attr-defined]
    return cast("Function", call)


def subroutine(function: Function) -> Function:
    """Mark a part of kernels: it is compiled, cached or interpreted as the kernel that calls it."""
    marked: Function = register_jitable(**PART)(function)
    return marked


def not_inlined(function: Function) -> Function:
    """Mark a large part of kernels that is called, not inlined, so that kernels compile in less time.

    The time to optimise a function grows faster than its size. A call costs some tens of nanoseconds, so the
    part should do much more than that, or be called rarely. Write it below other decorators.
    """
    setattr(function, NOT_INLINED, True)
    return function


def apart(function: Function) -> Function:
    """Mark a large part of kernels: the old name of `not_inlined`."""
    warnings.warn(
        "maxmargin: apart is now called not_inlined, and will be removed in version 0.3; write not_inlined.",
        FutureWarning,
        stacklevel=2,
    )
    return not_inlined(function)


def compiled_only(function: Function) -> Function:
    """Mark a part of kernels that does nothing in the interpreter, as it only makes compiled code faster."""

    @functools.wraps(function)
    def call(*args: object) -> None:
        pass

    overload(call, strict=False, jit_options=PART)(lambda *args: function)
    return cast("Function", call)


class kernel:
    """A loop that is cached, compiled or interpreted, depending on the classes of its arguments."""

    interpreted: Callable[..., object]
    compiled: Callable[..., object]
    cached: Callable[..., object]

    def __init__(self, loop: Callable[..., object]) -> None:
        functools.update_wrapper(self, loop)
        self.interpreted = loop
        KERNELS.append(self)

    def __getattr__(self, name: str) -> Callable[..., object]:
        """Make a dispatcher when it is first used: `compiled` in each process, or `cached` on disk."""
        if name not in _DISPATCHERS:
            raise AttributeError(name)
        # If threads make several, all use the first, and share what they compile.
        found: Callable[..., object] = vars(self).setdefault(name, _DISPATCHERS[name](self.interpreted))
        return found

    def mode(self, *args: object) -> str:
        """Return how a call with these arguments runs: "cached", "compiled" or "interpreted"."""
        if SWITCH.on or not can_compile(args[0]):
            return "interpreted"
        return "cached" if _are_ours(args) else "compiled"

    def __call__(self, *args: object) -> Any:
        run = getattr(self, self.mode(*args))
        try:
            return quiet(run)(*args) if SWITCH.on else run(*args)
        finally:
            _CHOICES.clear()


class _Choice(NamedTuple):
    """The mode of an inner kernel, for the same named tuples as in its last call."""

    tuples: Sequence[object]
    run: Callable[..., object]


KERNELS: list[kernel] = []
# Choices refer to whole problems and states, so they are dropped when the outer kernel returns.
_CHOICES: dict[kernel, _Choice] = {}


def inner_kernel(loop: Function) -> Function:
    """Make a kernel that other kernels can call.

    An interpreted loop calls it with the same named tuples for every example, and checking the classes of all
    their fields takes longer than a step. So the mode is chosen again only when a tuple has changed.
    """
    made = kernel(loop)

    @functools.wraps(loop)
    def call(*args: object) -> object:
        if SWITCH.on:
            return loop(*args)
        tuples = [arg for arg in args if isinstance(arg, tuple)]
        choice = _CHOICES.get(made)
        if choice is None or not _are_same(choice.tuples, tuples):
            choice = _CHOICES[made] = _Choice(tuples, getattr(made, made.mode(*args)))
        return choice.run(*args)

    overload(call, strict=False, jit_options=PART)(lambda *args: loop)
    return cast("Function", call)


def _are_same(a: Sequence[object], b: Sequence[object]) -> bool:
    return len(a) == len(b) and all(map(operator.is_, a, b))


def can_compile(subject: object) -> bool:
    """Whether kernels compile for this object: a named tuple of named tuples, arrays and numbers."""
    return isinstance(subject, tuple) and _is_compilable(subject)


def _is_compilable(field: object) -> bool:
    if not isinstance(field, tuple):
        return isinstance(field, _COMPILABLE)
    for each in field:  # noqa: SIM110 (a generator takes twice as long)
        if each.__class__ not in _USUAL and not _is_compilable(each):
            return False
    return True


def _are_ours(values: Iterable[object]) -> bool:
    """Whether the classes of all named tuples in these values are the package's own."""
    for value in values:
        cls = value.__class__
        if cls in _USUAL or not isinstance(value, tuple):
            continue
        if not ((cls in _OWN or _is_own(cls)) and _are_ours(value)):
            return False
    return True


def _is_own(cls: type) -> bool:
    """Whether a class of tuples is the package's own; remember it if so."""
    if is_ours(cls):
        _OWN.add(cls)
    return cls in _OWN


def afresh(function: Callable[..., object]) -> Any:
    """Return a Numba dispatcher without a cache, whose compilation is not interrupted, and is announced."""
    dispatcher = njit(**KERNEL)(function)
    if config.DISABLE_JIT:
        return dispatcher
    compile_one = dispatcher.compile

    def compile_whole(signature: object) -> object:
        warn_of_losses()
        with uninterruptible(), without_collection(), stopped_clock(), announced(function, signature):
            return compile_one(signature)

    dispatcher.compile = compile_whole
    return dispatcher


def _kept(function: Callable[..., object]) -> Any:
    """Return a Numba dispatcher that uses the cache on disk, if the function is the package's own."""
    dispatcher = afresh(function)
    if CAN_KEEP and not config.DISABLE_JIT and is_ours(function):
        keep_in(dispatcher, PackageCache(function))
    return dispatcher


# How kernels make their dispatchers. They do so when these are used: making those of all kernels and helpers
# took a third of the time of importing an estimator.
_DISPATCHERS = {"compiled": afresh, "cached": _kept}
_METHOD_NAMES = {"map_sizes": "sizes", "output_sizes": "sizes"}


class Dispatched(Protocol):
    """A generic function."""

    __name__: str

    def dispatch(self, cls: type) -> object:
        """Return the implementation for a class."""


class InnerWork(NamedTuple):
    """The workspace of a wrapper that adds nothing to that of the inner object."""

    inner: object


def called(half: object, name: str, i: int, *args: object) -> object:
    """Call a method of a user's object for example i; if it raises, add a note that names i to the error."""
    try:
        return getattr(half, name)(i, *args)
    except Exception as error:
        note_example(error, type(half).__name__, name, i)
        raise


def absent(*args: object) -> None:
    """Mark an optional function that a wrapper lacks, although the inner object may have it.

    Register it for the class of the wrapper to prevent forwarding.
    """
    raise NotImplementedError


def has_implementation(half: object, function: Dispatched) -> bool:
    """Whether a generic function is registered for the class of a map or an oracle, or is a method of it.

    Methods of a named tuple do not count: it runs compiled, and compiled code cannot call methods. A wrapper
    has the functions of the inner object, unless they are `absent`: its implementations call the inner ones.
    """
    cls = type(half)
    found = function.dispatch(cls)
    if is_wrapper(cls):
        return found is not absent and has_implementation(half.inner, function)  # type: ignore[attr-defined]
    if found is not function.dispatch(tuple if isinstance(half, tuple) else object):
        return True
    return not isinstance(half, tuple) and callable(getattr(half, method_name(function), None))


def method_name(function: Dispatched) -> str:
    """Return the name that a generic function has as a method of a Python object."""
    return _METHOD_NAMES.get(function.__name__, function.__name__)
