"""The loops of tagging in plain Python, for tests."""

from typing import cast

import numpy as np

from maxmargin.compiling.object_code import Buffer, Function
from maxmargin.tagging.arguments import ARGUMENTS
from maxmargin.tagging.kernels import KERNELS


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
