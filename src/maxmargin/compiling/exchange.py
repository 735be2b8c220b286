"""Numbers that threads exchange within kernels: one writes, others wait for it.

Compiled code may keep an array's value in a register, and processors may reorder what they write. So such
numbers have atomic loads and stores. In the interpreter, and on one thread, these are plain ones.
"""

from collections.abc import Callable

from numba import types
from numba.extending import overload

from maxmargin.arrays import IntArray
from maxmargin.compiling.generics import helper
from maxmargin.compiling.numba_private import CAN_EXCHANGE as CAN_EXCHANGE
from maxmargin.compiling.numba_private import PART, load_acquire, store_release


def published(array: IntArray) -> int:
    """Return ``array[0]``, with acquire semantics: all earlier writes of its writer are then visible."""
    return int(array[0])


def publish(array: IntArray, value: int) -> None:
    """``array[0] = value``, with release semantics: after all earlier writes of this thread."""
    array[0] = value


@overload(published, strict=False, jit_options=PART)
def _published_compiled(array: types.Array) -> Callable[..., int]:
    if CAN_EXCHANGE:
        return lambda array: load_acquire(array)
    return lambda array: array[0]


@overload(publish, strict=False, jit_options=PART)
def _publish_compiled(array: types.Array, value: types.Integer) -> Callable[..., None]:
    if CAN_EXCHANGE:
        return lambda array, value: store_release(array, value)

    def plain(array: IntArray, value: int) -> None:
        array[0] = value

    return plain


@helper
def has_reached(array, value, patience):
    """Whether ``array[0]`` reaches ``value`` within ``patience`` reads."""
    while patience > 0 and published(array) < value:
        patience -= 1
    return patience > 0
