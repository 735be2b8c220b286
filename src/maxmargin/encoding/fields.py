"""Number the fields of a text, the bytes between tabs and line ends, in compiled code.

Equal fields have equal numbers, in order of first appearance. The numbers come from a hash table that
compares bytes, so they are exact. No Python object is made per field.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import IntArray
from maxmargin.compiling import helper

Codes = NDArray[np.int32]
_TAB, _END, _RETURN = 9, 10, 13
_PRIME, _BASIS, _MIX = (
    np.uint64(0x100000001B3),
    np.uint64(0xCBF29CE484222325),
    np.uint64(0x9E3779B97F4A7C15),
)
_HALF, _LOW, _ONE, _EMPTY = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(1), np.uint64(0)
_FIRST_SLOTS, _PIECE = 1 << 12, 1 << 18
# Where a scan stands: the next byte, and how many fields, lines and distinct fields there are so far.
_PLACE, _FIELDS, _LINES, _NAMES = range(4)


class Fields(NamedTuple):
    """The fields of all lines of a text.

    Attributes
    ----------
    codes : ndarray of int32
        The number of each field.
    counts : ndarray of int64
        The number of fields of each line; an empty line has one, which is empty.
    starts, lengths : ndarrays of int64
        Where each distinct field first occurs in the text, and its number of bytes.
    """

    codes: Codes
    counts: IntArray
    starts: IntArray
    lengths: IntArray


def number_fields(text: bytes) -> Fields:
    """Number the fields of a text.

    Parameters
    ----------
    text : bytes
        Lines that end with ``\\n`` or ``\\r\\n``, the last one too.

    Examples
    --------
    >>> fields = number_fields(b"a\\tb\\nb\\n")
    >>> fields.codes.tolist(), fields.counts.tolist()
    ([0, 1, 1], [2, 1])
    """
    if text and not text.endswith(b"\n"):
        raise ValueError("number_fields: the last line must end with a line end.")
    data = np.frombuffer(text, dtype=np.uint8)
    n_lines = text.count(b"\n")
    codes = np.empty(n_lines + _n_tabs(data), dtype=np.int32)
    counts, scan = np.zeros(n_lines, dtype=np.int64), np.zeros(4, dtype=np.int64)
    slots = np.zeros(_FIRST_SLOTS, dtype=np.uint64)
    spans = np.empty((2, _FIRST_SLOTS // 2), dtype=np.int64)
    with np.errstate(over="ignore"):  # products wrap around; NumPy's scalars would warn
        while True:
            scan_fields(data, slots, spans, codes, counts, scan)
            if scan[_PLACE] == len(data):
                break
            more = np.zeros(2 * len(slots), dtype=np.uint64)
            move_slots(slots, more)
            slots, spans = more, np.concatenate([spans, np.empty_like(spans)], axis=1)
    starts, lengths = spans[:, : scan[_NAMES]]
    return Fields(codes, counts, starts, lengths)


def _n_tabs(data: NDArray[np.uint8]) -> int:
    """Return the number of tabs, counted in pieces that stay in the cache."""
    return sum(int(np.count_nonzero(data[k : k + _PIECE] == _TAB)) for k in range(0, len(data), _PIECE))


@helper
def scan_fields(text, slots, spans, codes, counts, scan):
    """Number fields from where the scan stands, to the end of the text or until the table is half full.

    A slot is zero, or the upper half of a hash above the number of a name plus one. ``spans`` has the start
    and the length of each name.
    """
    place, n_fields, n_lines, n_names = scan[_PLACE], scan[_FIELDS], scan[_LINES], scan[_NAMES]
    while place < text.shape[0] and n_names < spans.shape[1]:
        start, key, byte = place, _BASIS, text[place]
        while byte != _TAB and byte != _END and (byte != _RETURN or text[place + 1] != _END):
            key = (key ^ np.uint64(byte)) * _PRIME
            place += 1
            byte = text[place]
        key = (key ^ (key >> _HALF)) * _MIX
        number = _number(text, start, place - start, key, slots, spans, n_names)
        n_names += number == n_names
        codes[n_fields] = number
        n_fields += 1
        counts[n_lines] += 1
        place += 2 if byte == _RETURN else 1
        n_lines += byte != _TAB
    scan[_PLACE], scan[_FIELDS], scan[_LINES], scan[_NAMES] = place, n_fields, n_lines, n_names


@helper
def _number(text, start, length, key, slots, spans, n_names):
    """Return the number of a name, which is ``n_names`` if it is new; then its slot and span are written."""
    mask = np.uint64(slots.shape[0] - 1)
    upper = key >> _HALF
    slot = upper & mask
    while slots[slot] != _EMPTY:
        if slots[slot] >> _HALF == upper:
            number = np.int64(slots[slot] & _LOW) - 1
            if spans[1, number] == length and _are_equal(text, spans[0, number], start, length):
                return number
        slot = (slot + _ONE) & mask
    slots[slot] = (upper << _HALF) | np.uint64(n_names + 1)
    spans[0, n_names], spans[1, n_names] = start, length
    return n_names


@helper
def _are_equal(text, a, b, length):
    """Return whether the bytes from a and from b are the same."""
    k = 0
    while k < length and text[a + k] == text[b + k]:
        k += 1
    return k == length


@helper
def move_slots(slots, more):
    """Insert what is in the slots into a larger table."""
    mask = np.uint64(more.shape[0] - 1)
    for old in range(slots.shape[0]):
        if slots[old] != _EMPTY:
            slot = (slots[old] >> _HALF) & mask
            while more[slot] != _EMPTY:
                slot = (slot + _ONE) & mask
            more[slot] = slots[old]
