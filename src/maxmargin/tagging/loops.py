"""The loops of tagging, ready to run: compiled code from disk, compiled now, or interpreted in tests."""

import os
from typing import NamedTuple

from maxmargin.compiling.interpreting import SWITCH
from maxmargin.compiling.object_code import Arguments, Array, Function, Store, loaded

# What the loops of tagging return: all went well, workspace is too short for a line or a sequence, or the
# estimator has to read it: there is a value, a declaration or a fault.
DONE, LONG_LINE, LONG_SEQUENCE, ODD = 0, -1, -2, -3
# Where a scan stands: the next sequence, the sequence after it, and how many lines and sequences are written.
PLACE, NEXT, LINES, SEQUENCES = range(4)
# Ends a sequence in the output.
END_OF_SEQUENCE = -1

_BYTES, _COUNTS, _PLACES, _NUMBERS, _TABLE = Array("u1"), Array("i4"), Array("i8"), Array("f8"), Array("u8")
_ROWS = Array("f8", 2)

# What the loops of `lines` take.
ARGUMENTS: Arguments = {
    # names, counts, columns, values, n_labels, batch, slots, rows
    "index_features": (_BYTES, _BYTES, _BYTES, _NUMBERS, None, Array("i8", 2), _TABLE, _PLACES),
    # text; names, slots, rows, columns, values, chain; line, fields, numbers, unary, value, path; out, scan
    "tag_text": (
        *(_BYTES, _BYTES, _TABLE, _PLACES, _BYTES, _NUMBERS, _ROWS),
        *(_BYTES, Array("i8", 2), Array("i8", 2), _ROWS, _ROWS, _PLACES),
        *(_COUNTS, _PLACES),
    ),
    # text, end, counts, lengths, factors; and the same, to path; out
    "tag_names": (
        *(_BYTES, None, _PLACES, _PLACES, _NUMBERS),
        *(_BYTES, _TABLE, _PLACES, _BYTES, _NUMBERS, _ROWS),
        *(Array("i8", 2), Array("i8", 2), _ROWS, _ROWS, _PLACES),
        _COUNTS,
    ),
}

_STORE = "tagger"


class Loops(NamedTuple):
    """The loops of `lines`, which take buffers and ints."""

    index_features: Function
    tag_text: Function
    tag_names: Function


def ready_loops() -> Loops | None:
    """Return the loops, compiled and stored if they are not on disk; None if they cannot be."""
    if SWITCH.on:
        from maxmargin.tagging.making import interpreted_loops

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
