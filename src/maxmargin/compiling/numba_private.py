"""What this package takes from Numba beyond its public interface, each with what is done without it.

Private names may move with any release. Where one is gone, the package still computes the same bits, but
slower; the first compilation then says in one warning what is lost.
"""

import warnings
from collections.abc import Callable
from typing import Any

_LOSSES: list[str] = []
_NOT_KEPT = "compiled kernels are not kept on disk, each process compiles them anew"

try:
    from numba.core.cpu import CPUTargetOptions as _known_options
except ImportError:
    _known_options = object


def note_loss(loss: str) -> None:
    """Remember what is lost by a name that has moved."""
    if loss not in _LOSSES:
        _LOSSES.append(loss)


def warn_of_losses() -> None:
    """Warn once of all that was noted."""
    if _LOSSES:
        losses = "; ".join(_LOSSES)
        _LOSSES.clear()
        warnings.warn(
            f"maxmargin: private names of this version of Numba have moved: {losses}. Results are the same; "
            "install a version of Numba that this version of maxmargin was tested with.",
            RuntimeWarning,
            stacklevel=2,
        )


def options(**wanted: Any) -> dict[str, Any]:
    """Return those of the wanted compiler options that this version of Numba knows."""
    missing = [name for name in wanted if not hasattr(_known_options, name)]
    if missing:
        note_loss(f"kernels are slower without the options {', '.join(missing)}")
    return {name: value for name, value in wanted.items() if name not in missing}


# No kernel allocates, so none counts references: counting those of every array and slice that a call
# touches would double the time of a step. Calls are inlined, as their cost is that of a row of arithmetic.
KERNEL = {"nogil": True} | options(_nrt=False, no_cfunc_wrapper=True)
try:
    from maxmargin.compiling.parts import PartCompiler
except (ImportError, AttributeError):
    note_loss("the first fit takes longer to compile")
    PART: dict[str, Any] = KERNEL | options(forceinline=True)
else:
    PART = KERNEL | {"pipeline_class": PartCompiler}

try:
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    pickled: Callable[[Any], bytes] = dumps
    reduce_code: Callable[[Any], Any] = CompileResult._reduce
    rebuild_code: Callable[..., Any] = CompileResult._rebuild
    JITCPUCodegen.magic_tuple, JITCodeLibrary.has_dynamic_globals  # noqa: B018
except (ImportError, AttributeError):
    CAN_KEEP = False
    note_loss(_NOT_KEPT)
else:
    CAN_KEEP = True


def processor(codegen: Any) -> Any:
    """Return what tells the processors apart for which code is made."""
    return codegen.magic_tuple()


def can_be_kept(code: Any) -> bool:
    """Return whether compiled code holds no address of this process."""
    return not code.library.has_dynamic_globals


def keep_in(dispatcher: Any, cache: Any) -> None:
    """Have a dispatcher look for code in ``cache``, and put there what it compiles."""
    if hasattr(dispatcher, "_cache"):
        dispatcher._cache = cache
    else:
        note_loss(_NOT_KEPT)
