"""Where Python does not search for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Do not search for garbage in this block.

    Compiling, importing and reading make up to millions of objects that live until their end, or longer.
    Searching them again and again takes a tenth of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
