"""Compiled code: generic functions and kernels, the cache on disk, prefetching, interrupts and threads.

To write a model or a method you need five names of this package, all documented in
`maxmargin.compiling.generics`: `generic` functions are dispatched on the class of their first argument,
`kernel` loops call them, `helper` and `subroutine` mark the functions that such loops are made of, and
`apart` those of them that are too large to be inlined.

They are imported when they are first used: `object_code` runs compiled code without Numba.
"""

from typing import TYPE_CHECKING

from maxmargin._lazy import lazy_names

if TYPE_CHECKING:  # what type checkers and editors read; the table below says the same
    from maxmargin.compiling.generics import KERNELS as KERNELS
    from maxmargin.compiling.generics import apart as apart
    from maxmargin.compiling.generics import can_compile as can_compile
    from maxmargin.compiling.generics import compiled_only as compiled_only
    from maxmargin.compiling.generics import forwarder as forwarder
    from maxmargin.compiling.generics import generic as generic
    from maxmargin.compiling.generics import generic_with_default as generic_with_default
    from maxmargin.compiling.generics import helper as helper
    from maxmargin.compiling.generics import inner_kernel as inner_kernel
    from maxmargin.compiling.generics import is_wrapper as is_wrapper
    from maxmargin.compiling.generics import kernel as kernel
    from maxmargin.compiling.generics import python_generic as python_generic
    from maxmargin.compiling.generics import subroutine as subroutine

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "generics": [
                "KERNELS",
                "apart",
                "can_compile",
                "compiled_only",
                "forwarder",
                "generic",
                "generic_with_default",
                "helper",
                "inner_kernel",
                "is_wrapper",
                "kernel",
                "python_generic",
                "subroutine",
            ]
        },
    )
