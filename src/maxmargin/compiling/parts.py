"""How the parts of kernels are compiled: only lowered, then optimised with the kernel that they end up in.

Numba optimises a function, with all that it calls, as soon as it has compiled it, makes machine code of it
and wraps it for the interpreter. A part is inlined into parts that are inlined in turn, so that this would be
done once per level and to no use: machine code is wanted of the kernels alone. Without it, the first fit of a
chain compiles in two thirds of the time.
"""

from typing import Any

from numba.core.base import BaseContext
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

# What is overridden or called below: a name that has moved is found here, not in the middle of a compilation.
JITCodeLibrary._optimize_final_module, JITCodeLibrary._finalize_final_module  # noqa: B018
JITCodeLibrary._finalize_dynamic_globals, BaseContext.insert_user_function  # noqa: B018
PassManager.add_pass_after, PassManager.finalize  # noqa: B018


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into that of other functions and never runs by itself."""

    def _optimize_final_module(self) -> None:
        """Leave that to the kernel."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):  # type: ignore[misc]
    """Lower a part, and make it known to the functions that call it.

    The flags are set here, not as options: what a caller's options are is a part of the key under which Numba
    keeps the functions it calls, and a kernel shares its parts with other parts.
    """

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower into a library of the above kind."""
        flags, target = state.flags, state.targetctx
        state.library = PartLibrary(target.codegen(), state.func_id.func_qualname)
        flags.forceinline = flags.no_compile = flags.no_cpython_wrapper = True
        super().run_pass(state)
        key: Any = [].append  # of the type that a dispatcher asks for, and like no other; it is never called
        target.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, with the lowering of parts."""

    def define_pipelines(self) -> list[Any]:
        """Return the usual passes, but for the one that lowers."""
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(PartLowering, NativeLowering)
            pipeline.passes = [step for step in pipeline.passes if step[0] is not NativeLowering]
            pipeline.finalize()
        return pipelines
