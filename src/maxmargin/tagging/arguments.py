"""What the loops of `kernels` take."""

from maxmargin.compiling.object_code import Arguments, Array

_BYTES, _COUNTS, _PLACES, _NUMBERS, _TABLE = Array("u1"), Array("i4"), Array("i8"), Array("f8"), Array("u8")
_ROWS = Array("f8", 2)

ARGUMENTS: Arguments = {
    # names, counts, columns, values, n_labels, batch, slots, rows
    "index_features": (_BYTES, _BYTES, _BYTES, _NUMBERS, None, Array("i8", 2), _TABLE, _PLACES),
    # text; names, slots, rows, columns, values, chain; line, fields, numbers, unary, value, path; out, scan
    "tag_text": (
        *(_BYTES, _BYTES, _TABLE, _PLACES, _BYTES, _NUMBERS, _ROWS),
        *(_BYTES, Array("i8", 2), Array("i8", 2), _ROWS, _ROWS, _PLACES),
        *(_COUNTS, _PLACES),
    ),
}
