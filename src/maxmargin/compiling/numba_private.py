"""All uses of Numba beyond its public interface; no other module has any.

Private names may change with any release of Numba. Each group of names is tested when this module is
imported, and has a fallback. With a fallback, the package computes the same bits, but more slowly; the first
compilation then issues one warning that says what is lost.
"""

import warnings
from collections.abc import Callable, Sequence
from inspect import signature
from types import CodeType, SimpleNamespace
from typing import Any, Protocol

from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

_LOSSES: list[str] = []


def warn_of_losses() -> None:
    """Issue one warning for everything that is lost; later calls do nothing."""
    if _LOSSES:
        losses = "; ".join(_LOSSES)
        _LOSSES.clear()
        warnings.warn(
            f"maxmargin: private names of this version of Numba have moved: {losses}. Results are the same; "
            "install a version of Numba that this version of maxmargin was tested with.",
            RuntimeWarning,
            stacklevel=2,
        )


def _works(trial: Callable[[], object], loss: str) -> bool:
    """Return whether a trial of private names succeeds; if it fails, note what is lost."""
    try:
        trial()
    except Exception:  # a name that has moved, or that works differently: any kind of error
        _LOSSES.append(loss)
        return False
    return True


# Options of the compiler


def _takes_option(name: str) -> bool:
    def trial() -> None:
        from numba.core.compiler import Flags
        from numba.core.cpu import CPUTargetOptions

        CPUTargetOptions.parse_as_flags(Flags(), {name: True})

    return _works(trial, f"kernels are slower without the compiler option {name}")


def _options(**wanted: bool) -> dict[str, object]:
    """Return the requested compiler options that this version of Numba has."""
    return {name: value for name, value in wanted.items() if _takes_option(name)}


# No kernel allocates, so none needs to count references. Counting those of every array and slice that a call
# touches would double the time of a step.
KERNEL: dict[str, object] = {"nogil": True} | _options(_nrt=False, no_cfunc_wrapper=True)


# Kernels. Some of what Numba does for every function costs time and is of no use here.

try:
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import NativeLowering, NopythonRewrites
    from numba.core.untyped_passes import InlineClosureLikes
except ImportError:
    # The trial below fails, and the classes below are not used.
    Compiler = Flags = NativeLowering = PassManager = object


def _nothing() -> None:
    """Serve as a function that is inspected but never called."""


class KernelFlags(Flags):  # type: ignore[misc]
    """Numba's flags, with the same hash and equality in less time.

    Flags are part of the keys under which Numba looks up every call that it types, thousands in a kernel.
    Its own methods visit all options each time, set or not; that took a twentieth of a first fit.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return _HASH_OF_FLAGS

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Flags) and self._values == other._values:
            return True
        answer: bool = super().__eq__(other)
        return answer


# The names of the options are all that is hashed, so all flags have the same hash.
_HASH_OF_FLAGS = hash(Flags())


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler without the passes for array expressions, which would allocate, and for closures."""

    def __init__(self, typingctx: object, targetctx: object, library: object, *others: object) -> None:
        *types_of_call, flags, local_types = others
        super().__init__(typingctx, targetctx, library, *types_of_call, KernelFlags(flags), local_types)

    def define_pipelines(self) -> list[PassManager]:
        """Return the usual passes, except those that would find nothing to do."""
        pipelines: list[PassManager] = super().define_pipelines()
        constants = self.state.func_id.code.co_consts
        useless = {NopythonRewrites}
        if not any(isinstance(constant, CodeType) for constant in constants):
            useless.add(InlineClosureLikes)
        for pipeline in pipelines:
            pipeline.passes = [step for step in pipeline.passes if step[0] not in useless]
            pipeline.finalize()
        return pipelines


def _try_kernels() -> None:
    """Compare flags, and build the passes."""
    flags = Flags()
    flags.nrt = True
    if KernelFlags(flags) != flags or hash(KernelFlags(flags)) != hash(flags) or KernelFlags() == flags:
        raise LookupError("Numba compares flags in another way")
    names = "typingctx", "targetctx", "library", "args", "return_type", "flags", "locals"
    if tuple(signature(Compiler).parameters) != names:
        raise LookupError("Numba's compiler has other arguments")
    before, after = _passes(Compiler), _passes(KernelCompiler)
    if {NopythonRewrites, InlineClosureLikes} != set(before) - set(after):
        raise LookupError("Numba has other passes")


def _passes(compiler: Any) -> list[object]:
    """Return the passes of a compiler for a function."""
    instance = compiler.__new__(compiler)
    identity = SimpleNamespace(code=_nothing.__code__)
    instance.state = SimpleNamespace(flags=Flags(), func_ir=None, func_id=identity)
    (pipeline,) = instance.define_pipelines()
    return [step[0] for step in pipeline.passes]


_COMPILES_LESS = _works(_try_kernels, "the first fit takes longer to compile")
if _COMPILES_LESS:
    KERNEL |= {"pipeline_class": KernelCompiler}


# Parts of kernels. After compiling a function, Numba optimises it with everything that it calls, turns it
# into machine code and wraps it for the interpreter. Parts are inlined into other parts, so this work would
# be repeated at every level, although only kernels need machine code. So parts are only lowered, and
# optimised with the kernel that contains them. This cuts the compilation of a chain's first fit by a third.

try:
    from numba.core.base import BaseContext
    from numba.core.codegen import JITCodeLibrary
except ImportError:
    JITCodeLibrary = object  # the trial below fails


# The attribute that marks a large part: it is called, not inlined.
APART = "is_apart"


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into the code of other functions and never runs by itself."""

    def _optimize_final_module(self) -> None:
        """Leave optimisation to the kernel."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


class PartLowering(NativeLowering):  # type: ignore[misc]
    """Lower a part, and register it with the functions that call it.

    The flags are set here, not as options. A caller's options are part of the key under which Numba stores
    the functions that it calls, and kernels and parts must share their parts.
    """

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower into a `PartLibrary`."""
        flags, target = state.flags, state.targetctx
        state.library = PartLibrary(target.codegen(), state.func_id.func_qualname)
        flags.forceinline = not getattr(state.func_id.func, APART, False)
        flags.no_compile = flags.no_cpython_wrapper = True
        super().run_pass(state)
        # The dispatcher expects an entry point of this type. It identifies the part, and is never called.
        key: object = [].append
        target.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


class PartCompiler(KernelCompiler):
    """The compiler of kernels with `PartLowering`."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes of kernels, with another one for lowering."""
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(PartLowering, NativeLowering)
            pipeline.passes = [step for step in pipeline.passes if step[0] is not NativeLowering]
            pipeline.finalize()
        return pipelines


def _try_parts() -> None:
    """Build the passes, and look up the names that are overridden or called while a part compiles."""
    register_pass(mutates_CFG=True, analysis_only=False)(PartLowering)
    flags = Flags()
    flags.forceinline = flags.no_compile = flags.no_cpython_wrapper = True
    if PartLowering not in _passes(PartCompiler):
        raise LookupError("Numba lowers elsewhere")
    for method in ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"):
        signature(getattr(JITCodeLibrary, method)).bind(None)
    signature(BaseContext.insert_user_function).bind(None, None, None, [])


PART: dict[str, object]
if _COMPILES_LESS and _works(_try_parts, "the first fit takes longer to compile"):
    PART = KERNEL | {"pipeline_class": PartCompiler}
else:
    PART = KERNEL | _options(forceinline=True)


# Compiled code on disk

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
        njit(_nothing)._cache  # noqa: B018


CAN_KEEP = _works(_try_disk, "compiled kernels are not kept on disk, each process compiles them anew")


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
_LOADS_ONLY = _works(
    lambda: signature(rtsys.initialize).bind(None), "the first call of a process takes a moment longer"
)


def processor_of_target(target: Target) -> object:
    """Return what distinguishes the processor of a target from others; code for it can be loaded then."""
    if _LOADS_ONLY:
        rtsys.initialize(target)
    else:
        target.refresh()
    return target.codegen().magic_tuple()


def processor_of_code(code: Code) -> object:
    """Return what distinguishes the processor that code was compiled for from others."""
    return code.codegen.magic_tuple()


def can_be_kept(code: Code) -> bool:
    """Return whether compiled code is free of addresses of this process."""
    return not code.library.has_dynamic_globals


def keep_in(dispatcher: _Dispatcher, cache: object) -> None:
    """Make a dispatcher look for code in ``cache``, and store there what it compiles."""
    dispatcher._cache = cache


# Prefetching

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
    """What knows how values are represented and passed."""

    call_conv: CPUCallConv

    def get_dummy_value(self) -> ir.Value: ...


class _Signature(Protocol):
    args: Sequence[types.Type]


# Generates the code of a call: from context, builder, signature and arguments to a value.
_Lowering = Callable[[_Context, ir.IRBuilder, _Signature, Sequence[ir.Value]], ir.Value]


def _try_prefetching() -> None:
    """Look up the names that the code below uses while a kernel compiles."""
    make_array(types.Array(types.float64, 1, "C"))
    signature(get_or_insert_function).bind(None, None, "")


CAN_PREFETCH = _works(_try_prefetching, "passes take up to an eighth more time without prefetching")


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
    from numba.core.funcdesc import FunctionDescriptor
except ImportError:
    unpack_tuple = FunctionDescriptor = None  # the trial below fails

# The types of numbers that are passed to such a function.
_PASSED = types.int64, types.float64


def _try_addresses() -> None:
    """Look up the names that find the address of a function, and that call it."""
    signature(JITCodeLibrary.get_pointer_to_function).bind(None, "")
    signature(unpack_tuple).bind(None, None)
    signature(CPUCallConv.get_function_type).bind(None, None, ())
    signature(CPUCallConv.call_function).bind(None, None, None, None, (), ())
    FunctionDescriptor.llvm_func_name  # noqa: B018


HAS_ADDRESSES = not config.DISABLE_JIT and _works(
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


CAN_EXCHANGE = _works(_try_exchanging, "the parts of Divided run on one thread")
_WORD = 8


@intrinsic  # type: ignore[untyped-decorator]
def load_acquire(typing_context: object, array: types.Array) -> tuple[object, _Lowering]:
    """Return ``array[0]``, an int64; what its writer wrote before it is seen from now on."""

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
    """``array[0] = value``, an int64, after all that this thread wrote before."""

    def generate(
        context: _Context, builder: ir.IRBuilder, signature: _Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        builder.store_atomic(args[1], data, "release", _WORD)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
