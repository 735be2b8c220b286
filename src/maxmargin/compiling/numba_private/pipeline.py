"""Compilers of kernels and of their parts: they skip work of Numba's, and make the same code faster."""

from inspect import signature
from types import CodeType, SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import types

from maxmargin.compiling.numba_private.libraries import look_up_libraries
from maxmargin.compiling.numba_private.lowering import KernelLowering, PartLowering, look_up_lowering
from maxmargin.compiling.numba_private.versions import nothing, works, works_as_tested
from maxmargin.compiling.places import is_ours


def _takes_option(name: str) -> bool:
    def trial() -> None:
        from numba.core.compiler import Flags
        from numba.core.cpu import CPUTargetOptions

        CPUTargetOptions.parse_as_flags(Flags(), {name: True})

    return works(trial, f"kernels are slower without the compiler option {name}")


def _options(**wanted: bool) -> dict[str, object]:
    """Return the requested compiler options that this version of Numba has."""
    return {name: value for name, value in wanted.items() if _takes_option(name)}


# No kernel allocates, so none needs to count references. Counting those of every array and slice that a call
# touches would double the time of a step.
KERNEL: dict[str, object] = {"nogil": True} | _options(_nrt=False, no_cfunc_wrapper=True)


# Some of what Numba does for every function costs time and is of no use in kernels.
try:
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import NativeLowering, NopythonRewrites
    from numba.core.untyped_passes import InlineClosureLikes
except ImportError:
    # The trial below fails, and the classes below are not used.
    Compiler = Flags = NativeLowering = PassManager = object


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

    lowering: type[NativeLowering] = KernelLowering

    def __init__(self, typingctx: object, targetctx: object, library: object, *others: object) -> None:
        *types_of_call, flags, local_types = others
        super().__init__(typingctx, targetctx, library, *types_of_call, KernelFlags(flags), local_types)

    def define_pipelines(self) -> list[PassManager]:
        """Return the usual passes with another one for lowering, except those that would find nothing."""
        pipelines: list[PassManager] = super().define_pipelines()
        constants = self.state.func_id.code.co_consts
        useless = {NativeLowering, NopythonRewrites}
        if not any(isinstance(constant, CodeType) for constant in constants):
            useless.add(InlineClosureLikes)
        for pipeline in pipelines:
            pipeline.add_pass_after(self.lowering, NativeLowering)
            pipeline.passes = [step for step in pipeline.passes if step[0] not in useless]
            pipeline.finalize()
        return pipelines


class PartCompiler(KernelCompiler):
    """The compiler of parts of kernels. They are lowered, and optimised with the kernel."""

    lowering = PartLowering


def _try_compilers() -> None:
    """Compare flags, build the passes, and look up the names that are overridden or called by them."""
    flags = Flags()
    flags.nrt = True
    if KernelFlags(flags) != flags or hash(KernelFlags(flags)) != hash(flags) or KernelFlags() == flags:
        raise LookupError("Numba compares flags in another way")
    flags.forceinline = flags.no_compile = flags.no_cpython_wrapper = True
    names = "typingctx", "targetctx", "library", "args", "return_type", "flags", "locals"
    if tuple(signature(Compiler).parameters) != names:
        raise LookupError("Numba's compiler has other arguments")
    before = set(_passes(Compiler)) - {NativeLowering, NopythonRewrites, InlineClosureLikes}
    for compiler in (KernelCompiler, PartCompiler):
        register_pass(mutates_CFG=True, analysis_only=False)(compiler.lowering)
        if set(_passes(compiler)) != before | {compiler.lowering}:
            raise LookupError("Numba has other passes")
    look_up_lowering()
    look_up_libraries()


def _passes(compiler: Any) -> list[object]:
    """Return the passes of a compiler for a function."""
    instance = compiler.__new__(compiler)
    identity = SimpleNamespace(code=nothing.__code__)
    instance.state = SimpleNamespace(flags=Flags(), func_ir=None, func_id=identity)
    (pipeline,) = instance.define_pipelines()
    return [step[0] for step in pipeline.passes]


PART: dict[str, object]
if works_as_tested(_try_compilers, "the first fit takes longer to compile"):
    PART = KERNEL | {"pipeline_class": PartCompiler}
    KERNEL |= {"pipeline_class": KernelCompiler}
else:
    PART = KERNEL | _options(forceinline=True)


# How compiled functions pass named tuples to each other: whole, not field by field.

try:
    from numba.core.datamodel import default_manager
    from numba.core.datamodel.models import TupleModel
except ImportError:
    default_manager, TupleModel = None, object  # the trial below fails


class WholeTuple(TupleModel):  # type: ignore[misc]
    """The representation of named tuples in compiled code, passed as one argument where they are ours.

    Numba passes every field of every array in a tuple as an argument of its own. A problem, a state and a
    workspace have some 300 of them, which parts of kernels pass on to other parts: half of the code that
    LLVM read took tuples apart and put them together again. Tuples of other packages are passed as usual.
    """

    def _is_whole(self) -> bool:
        return is_ours(self.fe_type.instance_class)

    def get_argument_type(self) -> object:
        """Return the type or types in which the tuple is passed."""
        return self.get_value_type() if self._is_whole() else super().get_argument_type()

    def as_argument(self, builder: ir.IRBuilder, value: ir.Value) -> object:
        """Return the argument or arguments that represent a tuple."""
        return value if self._is_whole() else super().as_argument(builder, value)

    def from_argument(self, builder: ir.IRBuilder, value: object) -> object:
        """Return the tuple that was passed."""
        return value if self._is_whole() else super().from_argument(builder, value)


def _pass_whole() -> None:
    """Look up the names that are overridden, and register the representation."""
    if default_manager._handlers[types.NamedTuple] is not TupleModel:
        raise LookupError("Numba has another representation of named tuples")
    for name, n_taken in (("get_argument_type", 1), ("as_argument", 3), ("from_argument", 3)):
        signature(getattr(TupleModel, name)).bind(*[None] * n_taken)
    default_manager.register(types.NamedTuple, WholeTuple)


ARE_WHOLE = works_as_tested(_pass_whole, "the first fit takes longer to compile")
