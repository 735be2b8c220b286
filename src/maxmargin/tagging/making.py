"""Compile the loops of tagging."""

from collections.abc import Callable
from typing import cast

import numpy as np

from maxmargin.compiling.ahead import NotAlone, object_code
from maxmargin.compiling.object_code import Buffer, Function, ObjectCode
from maxmargin.tagging.lines import index_features, tag_text
from maxmargin.tagging.loops import ARGUMENTS

# The loops of tagging by name, to be compiled or interpreted.

KERNELS: dict[str, Callable[..., int]] = {"index_features": index_features, "tag_text": tag_text}


def made_code() -> ObjectCode | None:
    """Return the code of the loops; None if this version of Numba makes code that does not run alone."""
    try:
        return object_code(KERNELS, ARGUMENTS)
    except NotAlone:
        return None


# The loops of tagging in plain Python, for tests.


def interpreted_loops() -> dict[str, Function]:
    """Return functions that take what the compiled ones take."""
    return {name: _on_arrays(name) for name in ARGUMENTS}


def _on_arrays(name: str) -> Function:
    def call(*values: Buffer | int) -> int:
        kinds = ARGUMENTS[name]
        passed = [
            value
            if kind is None
            else np.frombuffer(cast(bytes, value.memory), dtype=kind.dtype).reshape(value.shape)  # type: ignore[union-attr]
            for kind, value in zip(kinds, values, strict=True)
        ]
        return int(KERNELS[name](*passed))

    return call
