"""Functions that kernels call by their address.

A kernel is compiled together with everything it calls, so another oracle means another compilation of the
whole loop. A function that is called by its address is compiled separately. The kernel is the same for all
functions that take arguments of the same types, and is compiled once.

Such a call cannot be inlined, and copies the fields of all its arguments: some tens of nanoseconds.
"""

import functools
from collections.abc import Callable
from typing import Protocol, cast

from numba import typeof
from numba.extending import overload

from maxmargin.compiling.generics import can_compile, kernel
from maxmargin.compiling.interpreting import SWITCH
from maxmargin.compiling.numba_private import HAS_ADDRESSES, PART, address_of, call_at


class Addressed(Protocol):
    """A function that kernels call by its address, which is the first argument of the call."""

    def __call__(self, address: int, *args: object) -> None: ...

    def address(self, *args: object) -> int:
        """Return the address of the function, compiled for arguments of these types."""


def addressed(function: Callable[..., None]) -> Addressed:
    """Make a function that kernels call by its address. In the interpreter it is called as it is.

    The arguments of the call must have the types for which `address` compiled the function.
    """
    made = kernel(function)

    @functools.wraps(function)
    def call(address: int, *args: object) -> None:
        function(*args)

    def compiled(address: object, *args: object) -> Callable[..., None]:
        if HAS_ADDRESSES:
            return lambda address, *args: call_at(address, args)
        return lambda address, *args: None

    def address(*args: object) -> int:
        dispatcher, types = getattr(made, made.mode(*args)), tuple(map(typeof, args))
        if types not in dispatcher.overloads:
            dispatcher.compile(types)
        return address_of(dispatcher.overloads[types])

    overload(call, strict=False, jit_options=PART)(compiled)
    call.address = address  # type: ignore[attr-defined]
    return cast("Addressed", call)


def can_call_addresses(subject: object) -> bool:
    """Whether kernels run compiled for this first argument, and can call functions by their address."""
    return HAS_ADDRESSES and not SWITCH.on and can_compile(subject)
