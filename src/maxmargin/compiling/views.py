"""Views of arrays in kernels."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numba import types
from numba.extending import lower_builtin, overload, type_callable
from numpy.typing import NDArray

from maxmargin.compiling.numba_private import CAN_VIEW, KERNEL, view_rows

Number = TypeVar("Number", bound=np.generic)


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
