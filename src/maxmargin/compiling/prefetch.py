"""Ask for memory ahead of its use: the data of the next visit arrive while the present one computes.

Examples are visited in random order, so that the processor cannot foresee them. Without this, a pass over the
OCR words takes an eighth more time.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from maxmargin.compiling.generics import helper
from maxmargin.compiling.numba_private import note_loss

try:
    from numba.core.cgutils import get_or_insert_function
    from numba.np.arrayobj import make_array
except ImportError:
    make_array = None
    note_loss("passes take up to an eighth more time without prefetching")

_LINE = 64
# The processor foresees the rest of a long walk by itself.
_MOST_LINES = 32
_READ, _KEEP, _DATA = 0, 3, 1


def _ask(array: Any, p: int) -> None:
    """Ask for the cache line of ``array[p]``; nothing in the interpreter."""


@intrinsic  # type: ignore[untyped-decorator]
def _ask_compiled(typing_context: Any, array: Any, p: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        number, address = ir.IntType(32), ir.IntType(8).as_pointer()
        prefetch = get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [address, *[number] * 3]), "llvm.prefetch.p0i8"
        )
        place = builder.bitcast(builder.gep(data, [args[1]]), address)
        builder.call(prefetch, [place, number(_READ), number(_KEEP), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@overload(_ask, strict=False)
def _ask_if_possible(array: Any, p: Any) -> Any:
    if make_array is None:
        return lambda array, p: None
    return lambda array, p: _ask_compiled(array, p)


@helper
def prefetch(array, first, stop):
    """Ask for ``array[first:stop]``, an array of one axis."""
    step = _LINE // array.itemsize
    for p in range(first, min(stop, first + _MOST_LINES * step), step):
        _ask(array, p)
