"""Compiled code of kernels and of their parts: what is linked, optimised, and kept on disk."""

from collections.abc import Iterable, Iterator
from inspect import signature

import llvmlite.binding as llvm
from numba import config

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.registry import cpu_target
except ImportError:
    JITCodeLibrary = object  # the trial of compilers fails, and the classes below are not used

# How the names of compiled Python functions begin.
_MANGLED = "_ZN"


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


def look_up_libraries() -> None:
    """Look up what the libraries override or call, and what they ask of LLVM."""
    for method in ("_optimize_final_module", "finalize", "_get_module_for_linking", "_ensure_finalized"):
        signature(getattr(JITCodeLibrary, method)).bind(None)
    for method in ("enable_object_caching", "_get_compiled_object", "serialize_using_object_code"):
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
