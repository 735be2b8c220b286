"""A switch that turns off the compiler, for tests.

Compiling the kernels of one model takes 10 to 30 seconds; interpreting them on a few examples takes
milliseconds. So a test that is not about compiled code runs its kernels in plain Python, in the same process.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class _Switch:
    """Whether kernels and helpers run interpreted, in all threads."""

    on = False


class _Thread(threading.local):
    """Whether this thread is within a quiet function."""

    is_quiet = False


SWITCH, THREAD = _Switch(), _Thread()


@contextmanager
def interpreted() -> Iterator[None]:
    """Run every kernel and helper in plain Python in this block: the results are the same."""
    before, SWITCH.on = SWITCH.on, True
    try:
        yield
    finally:
        SWITCH.on = before


def quiet(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Return a function that, like compiled code, does not warn of overflow or NaN.

    Functions that it calls are not made quiet again, as that takes longer than most helpers do.
    """
    import numpy as np  # not at the top: code that does not need NumPy reads the switch

    silenced = np.errstate(all="ignore")(function)

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        if THREAD.is_quiet:
            return function(*args, **kwargs)
        try:
            THREAD.is_quiet = True
            return silenced(*args, **kwargs)
        finally:
            THREAD.is_quiet = False

    return call
