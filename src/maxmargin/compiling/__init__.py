"""Compiled code: generic functions and kernels, the cache on disk, prefetching, interrupts and threads.

To write a model or a method you need five names of this package, all documented in
`maxmargin.compiling.generics`: `generic` functions are dispatched on the class of their first argument,
`kernel` loops call them, `helper` and `subroutine` mark the functions that such loops are made of, and
`not_inlined` those of them that are too large to be inlined.

They are imported when they are first used, as the stub beside this file lists them: `object_code` runs
compiled code without Numba.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
