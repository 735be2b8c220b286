"""A switch that turns off the compiler, for tests.

Compiling the kernels of one model takes 10 to 30 seconds; interpreting them on a few examples takes
milliseconds. So a test that is not about compiled code runs its kernels in plain Python, in the same process.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class _Switch:
    """Whether kernels and helpers run interpreted, in all threads."""

    on = False


SWITCH = _Switch()


@contextmanager
def interpreted() -> Iterator[None]:
    """Run every kernel and helper in plain Python in this block: the results are the same."""
    before, SWITCH.on = SWITCH.on, True
    try:
        yield
    finally:
        SWITCH.on = before


def quiet(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Return a function that, like compiled code, does not warn of overflow or NaN."""
    import numpy as np  # not at the top: the switch is read where NumPy is not needed

    return np.errstate(all="ignore")(function)
