"""What kernels are made of: loops over vectors, and what Python cannot say.

The interpreter runs each of the latter as plain Python, with the same result.

- `prefetch` loads the data of the next visit from memory during the current one. Examples are visited in
  random order, which the processor cannot predict. Without it, a pass over the OCR words takes an eighth more
  time.
- `table` is a view of an array with rows.
- `addressed` makes functions that kernels call by their address, so that they are compiled apart from
  kernels.
- `publish` and `published` are atomic: threads exchange numbers with them, within kernels. Otherwise compiled
  code may keep an array's value in a register, and processors may reorder what they write.
- `adding` replaces a field of a named tuple: compiled code has no `_replace`.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numba import typeof, types
from numba.extending import lower_builtin, overload, type_callable
from numpy.typing import NDArray

from maxmargin.compiling.generics import can_compile, helper, kernel
from maxmargin.compiling.interpreting import SWITCH
from maxmargin.compiling.numba_private.instructions import (
    CAN_EXCHANGE,
    CAN_PREFETCH,
    CAN_VIEW,
    HAS_ADDRESSES,
    address_of,
    call_at,
    load_acquire,
    prefetch_line,
    store_release,
    view_rows,
)
from maxmargin.compiling.numba_private.pipeline import KERNEL, PART
from maxmargin.runtime.arrays import IntArray


@helper
def add_scaled(scale, x, out):
    """``out += scale * x``"""
    for k in range(out.shape[0]):
        out[k] += scale * x[k]


@helper
def scale_by(c, out):
    """``out *= c``"""
    for k in range(out.shape[0]):
        out[k] *= c


@helper
def add_four(a, x, b, y, c, u, d, v, out):
    """``out += a * x + b * y + c * u + d * v``, added one after another; ``out`` is read and written once."""
    for k in range(out.shape[0]):
        out[k] = (((out[k] + a * x[k]) + b * y[k]) + c * u[k]) + d * v[k]


@helper
def add_product(scale, x, y, out):
    """``out += scale * x * y``"""
    for k in range(out.shape[0]):
        out[k] += scale * x[k] * y[k]


@helper
def weighted_sum(a, x, b, y, out):
    """``out[:] = a * x + b * y``"""
    for k in range(out.shape[0]):
        out[k] = a * x[k] + b * y[k]


@helper
def scaled_copy(scale, x, out):
    """``out[:] = scale * x``"""
    for k in range(out.shape[0]):
        out[k] = scale * x[k]


@helper
def copy(x, out):
    """``out[:] = x``"""
    for k in range(out.shape[0]):
        out[k] = x[k]


@helper
def fill(out, value):
    """``out[:] = value``"""
    for k in range(out.shape[0]):
        out[k] = value


@helper
def clear(out):
    """``out[:] = 0``"""
    for k in range(out.shape[0]):
        out[k] = 0.0


@helper
def count_nonzero(x):
    """``np.count_nonzero(x)``"""
    count = 0
    for k in range(x.shape[0]):
        count += x[k] != 0.0
    return count


@helper
def list_nonzero(x, out):
    """``out[:count] = np.flatnonzero(x)``; return the count. ``out`` needs one spare entry."""
    count = 0
    for k in range(x.shape[0]):
        out[count] = k
        count += x[k] != 0.0
    return count


@helper
def largest(x, count):
    """``x[:count].max()``, or -inf if all are NaN. Each of four maxima waits only for its own last one."""
    a = b = c = d = -np.inf
    whole = count - count % 4
    for k in range(0, whole, 4):
        a = x[k] if x[k] > a else a
        b = x[k + 1] if x[k + 1] > b else b
        c = x[k + 2] if x[k + 2] > c else c
        d = x[k + 3] if x[k + 3] > d else d
    for k in range(whole, count):
        a = x[k] if x[k] > a else a
    return max(max(a, b), max(c, d))


@helper
def dot_at(where, size, a, b):
    """``a[where[:size]] @ b[where[:size]]``"""
    total = 0.0
    for c in range(size):
        total += a[where[c]] * b[where[c]]
    return total


@helper
def euclidean(u, v):
    """``u @ v``, with an order of additions that does not depend on the processor or on memory alignment."""
    a = b = c = d = 0.0
    whole = u.shape[0] - u.shape[0] % 4
    for j in range(0, whole, 4):
        a += u[j] * v[j]
        b += u[j + 1] * v[j + 1]
        c += u[j + 2] * v[j + 2]
        d += u[j + 3] * v[j + 3]
    for j in range(whole, u.shape[0]):
        a += u[j] * v[j]
    return (a + b) + (c + d)


# Bytes of a cache line, and how many are prefetched: on a longer walk the processor does so by itself.
_LINE, _MOST_LINES = 64, 32

Number = TypeVar("Number", bound=np.generic)
Subject = TypeVar("Subject", bound=NamedTuple)


def _request(array: np.ndarray, p: int) -> None:
    """Prefetch the cache line of entry p of an array; do nothing in the interpreter."""


@overload(_request, strict=False, jit_options=PART)
def _request_compiled(array: types.Array, p: types.Integer) -> Callable[..., None]:
    if CAN_PREFETCH:
        return lambda array, p: prefetch_line(array, p)
    return lambda array, p: None


@helper
def prefetch(array, first, stop):
    """Prefetch the entries first, ..., stop - 1 of a contiguous array, counted over all of its axes."""
    step = _LINE // array.itemsize
    for p in range(first, min(stop, first + _MOST_LINES * step), step):
        _request(array, p)


def table(array: NDArray[Number], width: int) -> NDArray[Number]:
    """Return a contiguous array as rows of ``width`` > 0 numbers, which must divide the number of entries."""
    return array.reshape(-1, width)


def _type_of_table(context: object) -> Callable[..., types.Array | None]:
    def typed(array: types.Type, width: types.Type) -> types.Array | None:
        is_contiguous = isinstance(array, types.Array) and array.layout == "C"
        return array.copy(ndim=2) if is_contiguous and isinstance(width, types.Integer) else None

    return typed


def _reshaped(array: types.Array, width: types.Integer) -> Callable[..., object]:
    return lambda array, width: array.reshape((-1, width))


if CAN_VIEW:
    type_callable(table)(_type_of_table)
    lower_builtin(table, types.Array, types.Integer)(view_rows)
else:
    # Inlined, as functions without reference counts cannot return arrays; what is inlined is typed with them.
    counting = {"_nrt": True} if "_nrt" in KERNEL else {}
    overload(table, strict=False, inline="always", jit_options=counting)(_reshaped)


class Addressed(Protocol):
    """A function that kernels call by its address, which is the first argument of the call.

    A kernel is compiled together with everything it calls, so another oracle means another compilation of the
    whole loop. A function that is called by its address is compiled separately. The kernel is the same for
    all functions that take arguments of the same types, and is compiled once.

    Such a call cannot be inlined, and copies the fields of all its arguments: some tens of nanoseconds.
    """

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


def adding(name: str) -> Callable[[Subject, float], Subject]:
    """Return a function that adds a number to a field of a named tuple, if it has one of this name."""

    def added(subject: Subject, value: float) -> Subject:
        if name not in getattr(subject, "_fields", ()):
            return subject
        return subject._replace(**{name: getattr(subject, name) + value})

    def compiled(subject: types.NamedTuple, value: types.Float) -> Callable[..., object]:
        return _made(subject.instance_class, name)

    overload(added, strict=False, jit_options=PART)(compiled)
    return added


def _made(cls: type[NamedTuple], name: str) -> Callable[..., object]:
    """Return the function for a class, made from text, as its fields are known only now."""
    fields = (f"subject.{field} + value" if field == name else f"subject.{field}" for field in cls._fields)
    answer = f"cls({', '.join(fields)})" if name in cls._fields else "subject"
    scope: dict[str, Callable[..., object]] = {"cls": cls}
    exec(f"def added(subject, value):\n    return {answer}", scope)
    return scope["added"]
