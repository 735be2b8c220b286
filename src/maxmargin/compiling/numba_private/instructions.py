"""Compiled code as bytes, and back; and code that Python cannot express, such as prefetching."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Protocol

from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

from maxmargin.compiling.numba_private import nothing, works

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


try:
    from numba.np.arrayobj import make_array
except ImportError:
    make_array = None  # the trials below fail
try:
    from numba.core.cgutils import get_or_insert_function
except ImportError:
    get_or_insert_function = None  # the trial below fails
try:
    from numba.core.callconv import CPUCallConv
except ImportError:
    CPUCallConv = object  # the trial of addresses fails

_READ, _KEEP, _DATA = 0, 3, 1


class _Context(Protocol):
    """Numba's target context: how values are represented and passed."""

    call_conv: CPUCallConv

    def get_dummy_value(self) -> ir.Value: ...

    def cast(
        self, builder: ir.IRBuilder, value: ir.Value, given: types.Type, wanted: types.Type
    ) -> ir.Value: ...


class _Signature(Protocol):
    args: Sequence[types.Type]
    return_type: types.Type


# Generates the code of a call: from context, builder, signature and arguments to a value.
_Lowering = Callable[[_Context, ir.IRBuilder, _Signature, Sequence[ir.Value]], ir.Value]


def _try_prefetching() -> None:
    """Look up the names that the code below uses while a kernel compiles."""
    make_array(types.Array(types.float64, 1, "C"))
    signature(get_or_insert_function).bind(None, None, "")


CAN_PREFETCH = works(_try_prefetching, "passes take up to an eighth more time without prefetching")


@intrinsic  # type: ignore[untyped-decorator]
def prefetch_line(typing_context: object, array: types.Array, p: types.Integer) -> tuple[object, _Lowering]:
    """Prefetch the cache line of ``array[p]``, in compiled code where `CAN_PREFETCH`."""

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: _Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        number, address = ir.IntType(32), ir.IntType(8).as_pointer()
        prefetch = get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [address, *[number] * 3]), "llvm.prefetch.p0i8"
        )
        place = builder.bitcast(builder.gep(data, [args[1]]), address)
        builder.call(prefetch, [place, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


# Functions that kernels call by their address
try:
    from numba.core.cgutils import unpack_tuple
    from numba.core.codegen import JITCodeLibrary
    from numba.core.funcdesc import FunctionDescriptor
except ImportError:
    unpack_tuple = JITCodeLibrary = FunctionDescriptor = None  # the trial below fails

# The types of numbers that are passed to such a function.
_PASSED = types.int64, types.float64


def _try_addresses() -> None:
    """Look up the names that find the address of a function, and that call it."""
    signature(JITCodeLibrary.get_pointer_to_function).bind(None, "")
    signature(unpack_tuple).bind(None, None)
    signature(CPUCallConv.get_function_type).bind(None, None, ())
    signature(CPUCallConv.call_function).bind(None, None, None, None, (), ())
    FunctionDescriptor.llvm_func_name  # noqa: B018


HAS_ADDRESSES = not config.DISABLE_JIT and works(
    _try_addresses, "rescaled slacks have loops of their own to compile"
)


def address_of(code: Code) -> int:
    """Return the address of compiled code; the code must not be freed as long as it is used."""
    return code.library.get_pointer_to_function(code.fndesc.llvm_func_name)


@intrinsic  # type: ignore[untyped-decorator]
def call_at(
    typing_context: object, address: types.Integer, taken: types.BaseTuple
) -> tuple[object, _Lowering] | None:
    """Call the function at an address, which was compiled for exactly these arguments and returns nothing."""
    if any(isinstance(each, types.Number) and each not in _PASSED for each in taken.types):
        return None  # Python's numbers, for which the function is compiled, have other types

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: _Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        calls, passed = context.call_conv, unpack_tuple(builder, args[1])
        place = builder.inttoptr(args[0], calls.get_function_type(types.none, taken.types).as_pointer())
        calls.call_function(builder, place, types.none, taken.types, passed)
        return context.get_dummy_value()

    return types.void(types.int64, taken), generate


# Numbers that threads exchange
def _try_exchanging() -> None:
    """Look up the names that the code below uses while a kernel compiles."""
    make_array(types.Array(types.int64, 1, "C"))
    signature(ir.IRBuilder.load_atomic).bind(None, None, "", 8)
    signature(ir.IRBuilder.store_atomic).bind(None, None, None, "", 8)


CAN_EXCHANGE = works(_try_exchanging, "the parts of Divided run on one thread")
_WORD = 8


@intrinsic  # type: ignore[untyped-decorator]
def load_acquire(typing_context: object, array: types.Array) -> tuple[object, _Lowering]:
    """Return ``array[0]``, an int64, with acquire semantics: earlier writes of its writer are visible."""

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: _Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(data, "acquire", _WORD)

    return types.int64(array), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_release(
    typing_context: object, array: types.Array, value: types.Integer
) -> tuple[object, _Lowering]:
    """``array[0] = value``, an int64, with release semantics: after all earlier writes of this thread."""

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: _Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        builder.store_atomic(args[1], data, "release", _WORD)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


# Views of arrays. Numba's `reshape` decides at run time whether it needs a copy, by calling a function that
# is not inlined, and is slow to compile.
try:
    from numba.core.imputils import impl_ret_borrowed
    from numba.np.arrayobj import populate_array
except ImportError:
    impl_ret_borrowed = populate_array = None  # the trial below fails


def _try_viewing() -> None:
    """Look up the names that the code below uses while a kernel compiles."""
    make_array(types.Array(types.float64, 2, "C"))
    signature(populate_array).bind(None, None, (), (), None, meminfo=None, parent=None)
    signature(impl_ret_borrowed).bind(None, None, None, None)


CAN_VIEW = works(_try_viewing, "the first fit takes longer to compile")


def view_rows(
    context: _Context, builder: ir.IRBuilder, signature: _Signature, args: Sequence[ir.Value]
) -> ir.Value:
    """Generate a view of a contiguous array as rows of a width; as a `_Lowering`, where `CAN_VIEW`.

    Functions without reference counts cannot return arrays, so the code is generated where it is called.
    """
    source = make_array(signature.args[0])(context, builder, args[0])
    made = make_array(signature.return_type)(context, builder)
    width = context.cast(builder, args[1], signature.args[1], types.intp)
    populate_array(
        made,
        source.data,
        (builder.udiv(source.nitems, width), width),
        (builder.mul(width, source.itemsize), source.itemsize),
        source.itemsize,
        meminfo=source.meminfo,
        parent=source.parent,
    )
    return impl_ret_borrowed(context, builder, signature.return_type, made._getvalue())
