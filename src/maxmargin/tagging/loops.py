"""The loops of tagging, ready to run: compiled code from disk, compiled now, or interpreted in tests."""

import os
from typing import NamedTuple

from maxmargin.compiling.interpreting import SWITCH
from maxmargin.compiling.object_code import Function, Store, loaded
from maxmargin.tagging.arguments import ARGUMENTS

_STORE = "tagger"


class Loops(NamedTuple):
    """The loops of `kernels`, which take buffers and ints."""

    index_features: Function
    tag_text: Function


def ready_loops() -> Loops | None:
    """Return the loops, compiled and stored if they are not on disk; None if they cannot be."""
    if SWITCH.on:
        from maxmargin.tagging.interpreted import interpreted_loops

        return Loops(**interpreted_loops())
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return None
    store = Store(_STORE)
    code = store.read()
    if code is None and store.directory() is not None:
        from maxmargin.tagging.making import made_code

        code = made_code()
        if code is not None:
            store.write(code)
    return None if code is None else Loops(**loaded(code, ARGUMENTS))
