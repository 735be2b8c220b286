"""Compiled code as bytes, and back."""

from inspect import signature
from typing import Protocol

from numba import config, njit

from maxmargin.compiling.numba_private.losses import nothing, works

try:
    from numba.core.codegen import CodeLibrary, JITCPUCodegen
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps
except ImportError:
    CompileResult = dumps = None  # the trial below fails


class _Library(Protocol):
    has_dynamic_globals: bool

    def get_pointer_to_function(self, name: str) -> int: ...


class _Description(Protocol):
    llvm_func_name: str


class _Codegen(Protocol):
    def magic_tuple(self) -> object: ...


class Code(Protocol):
    """What Numba makes of a function for one signature."""

    library: _Library
    codegen: _Codegen
    fndesc: _Description


class Target(Protocol):
    """The processor for which Numba compiles."""

    def refresh(self) -> None:
        """Load what other packages have registered with Numba."""

    def codegen(self) -> _Codegen:
        """Return the generator of code."""


class _Dispatcher(Protocol):
    _cache: object


def _try_disk() -> None:
    """Look up the names that serialise code, rebuild it, and say whether and where it can run."""
    dumps(())
    signature(CompileResult._reduce).bind(None)
    signature(CompileResult._rebuild).bind(None, *9 * [None])
    signature(JITCPUCodegen.magic_tuple).bind(None)
    CodeLibrary.has_dynamic_globals  # noqa: B018
    if not config.DISABLE_JIT:
        njit(nothing)._cache  # noqa: B018


CAN_KEEP = works(_try_disk, "compiled kernels are not kept on disk, each process compiles them anew")


def reduce_code(key: object, code: Code) -> bytes:
    """Return compiled code as bytes, with a key in front."""
    return bytes(dumps((key, CompileResult._reduce(code))))


def rebuild_code(target: Target, reduced: tuple[object, ...]) -> Code:
    """Return code that `reduce_code` serialised, ready to run."""
    rebuilt: Code = CompileResult._rebuild(target, *reduced)
    return rebuilt


try:
    from numba.core.runtime.nrt import rtsys
except ImportError:
    rtsys = None  # the trial below fails

# Numba prepares a target for compiling before it loads code, which takes a quarter of a second. Code that is
# compiled already needs the symbols of the run-time library alone; whoever compiles prepares the rest.
_LOADS_ONLY = works(
    lambda: signature(rtsys.initialize).bind(None), "the first call of a process takes a moment longer"
)


def processor_of_target(target: Target) -> object:
    """Return an identifier of the processor of a target; code for it can be loaded afterwards."""
    if _LOADS_ONLY:
        rtsys.initialize(target)
    else:
        target.refresh()
    return target.codegen().magic_tuple()


def processor_of_code(code: Code) -> object:
    """Return an identifier of the processor that code was compiled for."""
    return code.codegen.magic_tuple()


def can_be_kept(code: Code) -> bool:
    """Return whether compiled code is free of addresses of this process."""
    return not code.library.has_dynamic_globals


def keep_in(dispatcher: _Dispatcher, cache: object) -> None:
    """Make a dispatcher look for code in ``cache``, and store there what it compiles."""
    dispatcher._cache = cache
