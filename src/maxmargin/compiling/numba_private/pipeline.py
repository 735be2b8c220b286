"""Compilers of kernels and of their parts: they skip work of Numba's, and make the same code faster.

From the inside out: items of arrays, libraries that link and optimise code, lowering to LLVM's language, the
compilers that use these, and how tuples are passed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from inspect import signature
from types import CodeType, SimpleNamespace
from typing import Any, Protocol

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, types

from maxmargin.compiling.numba_private import nothing, works, works_as_tested
from maxmargin.compiling.places import is_ours

try:
    from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs, must_use_alloca
    from numba.core.base import BaseContext
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.ir import Assign, FunctionIR
    from numba.core.lowering import Lower
    from numba.core.registry import cpu_target
    from numba.core.typed_passes import NativeLowering, NopythonRewrites
    from numba.core.untyped_passes import InlineClosureLikes
    from numba.np.arrayobj import load_item, store_item
except ImportError:
    # The trial below fails, and the classes below are not used.
    Compiler = Flags = JITCodeLibrary = Lower = NativeLowering = PassManager = object
    load_item = store_item = None

# The attribute that marks a large part: it is called, not inlined.
NOT_INLINED = "is_not_inlined"
# How the names of compiled Python functions begin.
_MANGLED = "_ZN"


class _Variable(Protocol):
    name: str


class _Signature(Protocol):
    args: tuple[types.Type, ...]
    return_type: types.Type


class ItemLower(Lower):  # type: ignore[misc]
    """Numba's lowering, with another one for numbers of contiguous arrays.

    For every access Numba copies the fields of an array into memory, from which LLVM has to load them again.
    Here they are taken from the array itself, and LLVM generates the same code in less time.
    """

    def lower_getitem(
        self, wanted: types.Type, expression: object, array: _Variable, index: _Variable, found: _Signature
    ) -> ir.Value:
        """Generate the code of ``array[index]``."""
        if not self._is_number(array, index):
            return super().lower_getitem(wanted, expression, array, index, found)
        item = load_item(self.context, self.builder, self.typeof(array.name), self._place(array, index))
        return self._as_type(item, found.return_type, wanted)

    def lower_setitem(
        self, array: _Variable, index: _Variable, value: _Variable, found: _Signature
    ) -> ir.Value | None:
        """Generate the code of ``array[index] = value``."""
        if not self._is_number(array, index):
            return super().lower_setitem(array, index, value, found)
        kind, given, taken = self.typeof(array.name), self.typeof(value.name), found.args[2]
        item = self._as_type(self._as_type(self.loadvar(value.name), given, taken), taken, kind.dtype)
        store_item(self.context, self.builder, kind, item, self._place(array, index))
        return None

    def _is_number(self, array: _Variable, index: _Variable) -> bool:
        """Whether the item is a number of a contiguous array, and indices are not checked."""
        kind, indices = self.typeof(array.name), _axes(self.typeof(index.name))
        return (
            type(kind) is types.Array  # not one within a record
            and kind.layout == "C"
            and isinstance(kind.dtype, types.Number | types.Boolean)
            and len(indices) == kind.ndim
            and all(isinstance(each, types.Integer) for each in indices)
            and not self.context.enable_boundscheck
        )

    def _place(self, array: _Variable, index: _Variable) -> ir.Value:
        """Generate the address of an item: that of ``data[(i * shape[1] + j) * shape[2] + k]``, and so on."""
        fields, builder = self.context.data_model_manager[self.typeof(array.name)], self.builder
        whole, place = self.loadvar(array.name), None
        shape = fields.get(builder, whole, "shape")
        for axis in range(len(_axes(self.typeof(index.name)))):
            length = builder.extract_value(shape, axis)
            k = self._index(index, axis, length)
            place = k if place is None else builder.add(builder.mul(place, length), k)
        return builder.gep(fields.get(builder, whole, "data"), [place])

    def _index(self, index: _Variable, axis: int, length: ir.Value) -> ir.Value:
        """Generate the index of an axis of this length; a negative one counts from the end."""
        kind, given, builder = self.typeof(index.name), self.loadvar(index.name), self.builder
        if isinstance(kind, types.BaseTuple):
            kind, given = kind.types[axis], builder.extract_value(given, axis)
        if not kind.signed:
            return self._as_type(given, kind, types.uintp)
        k = self._as_type(given, kind, types.intp)
        return builder.select(builder.icmp_signed("<", k, k.type(0)), builder.add(length, k), k)

    def _as_type(self, value: ir.Value, given: types.Type, wanted: types.Type) -> ir.Value:
        return self.context.cast(self.builder, value, given, wanted)


def _axes(index: types.Type) -> tuple[types.Type, ...]:
    return tuple(index.types) if isinstance(index, types.BaseTuple) else (index,)


def _look_up_items() -> None:
    """Look up what the lowering of items overrides or calls."""
    signature(Lower.lower_getitem).bind(*[None] * 6)
    signature(Lower.lower_setitem).bind(*[None] * 5)
    for function, n_taken in ((load_item, 4), (store_item, 5)):
        signature(function).bind(*[None] * n_taken)
    model = cpu_target.target_context.data_model_manager[types.Array(types.float64, 1, "C")]
    if not {"data", "shape"} <= {*model._fields}:
        raise LookupError("Numba's arrays have other fields")
    cpu_target.target_context.enable_boundscheck  # noqa: B018


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into kernels and never runs by itself.

    After compiling a function, Numba links it with everything that it calls, optimises the whole, turns it
    into machine code and wraps it for the interpreter. Parts call other parts, so this work would be repeated
    at every level, although only kernels need machine code. So a part has its own code alone.
    """

    _shared_module: llvm.ModuleRef | None

    def _optimize_functions(self, module: llvm.ModuleRef) -> None:
        """Leave optimisation to the kernel."""
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Let several kernels have copies of the code; make no machine code."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def link_into(self, module: llvm.ModuleRef) -> None:
        """Add the code of this part, without that of the parts it calls."""
        self._ensure_finalized()
        module.link_in(self._final_module, preserve=True)

    def _get_module_for_linking(self) -> llvm.ModuleRef:
        """Return the code of this part and of all that it calls, for functions other than kernels."""
        self._ensure_finalized()
        if self._shared_module is None:
            whole = self._shared_module = self._final_module.clone()
            for library in _with_all_parts(self._linking_libraries):
                if isinstance(library, PartLibrary):
                    library.link_into(whole)
                else:
                    whole.link_in(library._get_module_for_linking(), preserve=True)
        return self._shared_module


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel and of all its parts, linked and optimised once, without unrolling loops.

    Numba optimises code before it links it and again afterwards, with a pass between the two for reference
    counts, of which kernels have none. Most loops of a kernel are short, over labels or the planes of an
    example, so unrolling them gains nothing. Without unrolling, a chain's loop has half as much code, and its
    passes take as long or a little less.
    """

    def _optimize_functions(self, module: llvm.ModuleRef) -> None:
        """Leave optimisation to the whole."""
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Link all parts, optimise, and make machine code."""
        called = list(_with_all_parts(self._linking_libraries))
        for library in called:
            if isinstance(library, PartLibrary):
                library.link_into(self._final_module)
        # Numba links the others.
        self._linking_libraries[:] = [each for each in called if not isinstance(each, PartLibrary)]
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise the code once all parts are linked."""
        _check_linked(self._final_module)
        passes = llvm.create_pass_builder(self._codegen._tm, _tuning())
        passes.getModulePassManager().run(self._final_module, passes)

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code, and the names in it.

        Numba also keeps the code in LLVM's language, for functions that are linked into others. Kernels are
        not linked, and it would take more than half of a file.
        """
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), _names_alone(self.get_defined_functions()))


def _with_all_parts(libraries: Iterable[JITCodeLibrary]) -> Iterator[JITCodeLibrary]:
    """Yield libraries and those of all parts they call, each once, callers first.

    Linking leaves out functions that nothing has called so far.
    """
    waiting, seen = list(libraries), set()
    while waiting:
        library = waiting.pop()
        if library not in seen:
            seen.add(library)
            yield library
            if isinstance(library, PartLibrary):
                waiting += library._linking_libraries


def _check_linked(module: llvm.ModuleRef) -> None:
    """Raise if a part is missing, which would be called at address zero."""
    for function in module.functions:
        if function.is_declaration and function.name.startswith(_MANGLED):
            raise AssertionError(f"{function.name} is not linked")


def _tuning() -> llvm.PipelineTuningOptions:
    """Return Numba's settings of LLVM, but for loops."""
    tuning = llvm.create_pipeline_tuning_options(int(config.OPT))
    tuning.loop_vectorization = bool(config.LOOP_VECTORIZE)
    tuning.slp_vectorization = bool(config.SLP_VECTORIZE)
    tuning.loop_unrolling = tuning.loop_interleaving = False
    return tuning


def _names_alone(functions: Iterable[llvm.ValueRef]) -> bytes:
    """Return LLVM's code of functions with these names, which Numba looks up and nothing calls."""
    body = "{ call void @llvm.trap() unreachable }"
    stubs = [f'define void @"{function.name}"() {body}' for function in functions]
    return llvm.parse_assembly("\n".join(["declare void @llvm.trap()", *stubs])).as_bitcode()


def _look_up_libraries() -> None:
    """Look up what the libraries override or call, and what they ask of LLVM."""
    methods = "finalize _get_module_for_linking _ensure_finalized enable_object_caching _get_compiled_object"
    for method in (*methods.split(), "_optimize_final_module", "serialize_using_object_code"):
        signature(getattr(JITCodeLibrary, method)).bind(None)
    signature(JITCodeLibrary._optimize_functions).bind(None, None)
    codegen = cpu_target.target_context.codegen()
    library = codegen.create_library("trial")
    is_new = library._linking_libraries == [] and not library._finalized and library._shared_module is None
    if not (is_new and library._final_module):
        raise LookupError("Numba's libraries have other fields")
    tuning = llvm.create_pipeline_tuning_options(int(config.OPT))
    if not (tuning.loop_unrolling and tuning.loop_interleaving):
        raise LookupError("LLVM has other defaults")
    llvm.create_pass_builder(codegen._tm, tuning).getModulePassManager()
    codegen._data_layout  # noqa: B018


class KernelLower(ItemLower):
    """Numba's lowering, with fewer variables in memory.

    Numba keeps a variable in a register if a single block of the code has all its uses. Others have a place
    in memory. This memory is cleared at their last use, where their references are released. LLVM's first
    pass undoes this field by field, which took a third of its time: problems, states and workspaces have
    hundreds of fields.
    """

    def _find_singly_assigned_variable(self) -> None:
        """Find the variables that need no place in memory."""
        self._singly_assigned_vars = values_of(self.func_ir)
        self._blk_local_varmap: dict[str, object] = {}

    def delvar(self, name: str) -> None:
        """Release references at the last use of a variable; kernels have none."""
        if self.context.enable_nrt:
            super().delvar(name)


def values_of(function: "FunctionIR") -> set[str]:
    """Return the variables that are assigned once, in a block that every path to their uses goes through."""
    if function.func_id.is_generator:
        return set()
    blocks = function.blocks
    homes = [
        (each.target.name, label) for label, block in blocks.items() for each in block.find_insts(Assign)
    ]
    counts, home = Counter(name for name, _ in homes), dict(homes)
    found = {name for name, count in counts.items() if count == 1} - must_use_alloca(blocks)
    dominators = compute_cfg_from_blocks(blocks).dominators()
    for label, used in compute_use_defs(blocks).usemap.items():
        # Blocks are lowered in the order of their labels.
        found -= {name for name in found & used if home[name] >= label or home[name] not in dominators[label]}
    return found


class KernelLowering(NativeLowering):  # type: ignore[misc]
    """Lower a kernel into a `KernelLibrary`."""

    _name = "kernel_lowering"
    lowering_class = KernelLower

    def run_pass(self, state: Any) -> bool:
        """Lower, and keep the machine code for the cache on disk."""
        state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        super().run_pass(state)
        return True


class PartLowering(NativeLowering):  # type: ignore[misc]
    """Lower a part, and register it with the functions that call it.

    The flags are set here, not as options. A caller's options are part of the key under which Numba stores
    the functions that it calls, and kernels and parts must share their parts.
    """

    _name = "part_lowering"
    lowering_class = KernelLower

    def run_pass(self, state: Any) -> bool:
        """Lower into a `PartLibrary`."""
        flags, target = state.flags, state.targetctx
        state.library = PartLibrary(target.codegen(), state.func_id.func_qualname)
        flags.forceinline = not getattr(state.func_id.func, NOT_INLINED, False)
        flags.no_compile = flags.no_cpython_wrapper = True
        super().run_pass(state)
        # The dispatcher expects an entry point of this type. It identifies the part, and is never called.
        key: object = [].append
        target.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


def _look_up_lowering() -> None:
    """Look up what lowering overrides or calls."""
    signature(Lower._find_singly_assigned_variable).bind(None)
    signature(Lower.delvar).bind(None, "")
    signature(BaseContext.insert_user_function).bind(None, None, None, [])
    if not isinstance(NativeLowering.lowering_class, property):
        raise LookupError("Numba chooses its lowering in another way")
    for function in (compute_cfg_from_blocks, compute_use_defs, must_use_alloca):
        signature(function).bind({})


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
    for look_up in (_look_up_items, _look_up_libraries, _look_up_lowering):
        look_up()


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
