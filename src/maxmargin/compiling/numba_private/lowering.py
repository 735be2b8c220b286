"""From Numba's representation of a kernel, or of a part of one, to LLVM's."""

from collections import Counter
from inspect import signature
from typing import Any

from maxmargin.compiling.numba_private.items import ItemLower, look_up_items
from maxmargin.compiling.numba_private.libraries import KernelLibrary, PartLibrary

try:
    from numba.core import ir
    from numba.core.analysis import compute_cfg_from_blocks, compute_use_defs, must_use_alloca
    from numba.core.base import BaseContext
    from numba.core.lowering import Lower
    from numba.core.typed_passes import NativeLowering
except ImportError:
    Lower = NativeLowering = object  # the trial of compilers fails, and the classes below are not used

# The attribute that marks a large part: it is called, not inlined.
APART = "is_apart"


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


def values_of(function: "ir.FunctionIR") -> set[str]:
    """Return the variables that are assigned once, in a block that every path to their uses goes through."""
    if function.func_id.is_generator:
        return set()
    blocks = function.blocks
    homes = [
        (each.target.name, label) for label, block in blocks.items() for each in block.find_insts(ir.Assign)
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
        flags.forceinline = not getattr(state.func_id.func, APART, False)
        flags.no_compile = flags.no_cpython_wrapper = True
        super().run_pass(state)
        # The dispatcher expects an entry point of this type. It identifies the part, and is never called.
        key: object = [].append
        target.insert_user_function(key, state["cr"].fndesc, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=key)
        return True


def look_up_lowering() -> None:
    """Look up what lowering overrides or calls."""
    look_up_items()
    signature(Lower._find_singly_assigned_variable).bind(None)
    signature(Lower.delvar).bind(None, "")
    signature(BaseContext.insert_user_function).bind(None, None, None, [])
    if not isinstance(NativeLowering.lowering_class, property):
        raise LookupError("Numba chooses its lowering in another way")
    for function in (compute_cfg_from_blocks, compute_use_defs, must_use_alloca):
        signature(function).bind({})
