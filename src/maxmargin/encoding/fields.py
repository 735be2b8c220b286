"""Number the fields of a text, the bytes between tabs and line ends, in compiled code.

Equal fields have equal numbers, in order of first appearance. The numbers come from a hash table that
compares bytes, so they are exact. No Python object is made per field.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper
from maxmargin.compiling.intrinsics import prefetch
from maxmargin.runtime.arrays import IntArray

Codes = NDArray[np.int32]
_TAB, _END, _RETURN = 9, 10, 13
_PRIME, _BASIS, _MIX = (
    np.uint64(0x100000001B3),
    np.uint64(0xCBF29CE484222325),
    np.uint64(0x9E3779B97F4A7C15),
)
_HALF, _LOW, _EMPTY = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(0)
_ONE, _TWO = np.uint64(1), np.uint64(2)
_FIRST_SLOTS, _PIECE = 1 << 12, 1 << 18
# The state of a scan: the next byte, and the numbers of fields, lines and distinct fields so far.
_PLACE, _FIELDS, _LINES, _NAMES = range(4)
# A field of a batch: its first byte, its number of bytes, and the upper half of its hash.
_START, _LENGTH, _HASH = range(3)
_BATCH = 64


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
    slots, batch = np.zeros(2 * _FIRST_SLOTS, dtype=np.uint64), np.empty((_BATCH, 3), dtype=np.int64)
    spans = np.empty((2, _FIRST_SLOTS // 2), dtype=np.int64)
    with np.errstate(over="ignore"):  # products wrap around; NumPy's scalars would warn
        while True:
            scan_fields(data, slots, spans, codes, counts, scan, batch)
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
def scan_fields(text, slots, spans, codes, counts, scan, batch):
    """Number fields from the state of the scan on, to the end of the text or until the table is half full.

    A slot is a pair: zero, or the upper half of a hash above the number of a name plus one; and where the
    name starts. ``spans`` has the start and the length of each name. A batch of fields is found before it is
    numbered, so that its slots of the table are prefetched: otherwise most of the time would be spent waiting
    for them.
    """
    mask = np.uint64(slots.shape[0] // 2 - 1)
    while scan[_PLACE] < text.shape[0] and scan[_NAMES] + batch.shape[0] <= spans.shape[1]:
        n = _find_fields(text, slots, mask, counts, scan, batch)
        for k in range(n):
            start = np.int64(slots[_TWO * (np.uint64(batch[k, _HASH]) & mask) + _ONE])
            prefetch(text, start, start + 1)
        for k in range(n):
            number = _number(text, batch[k], slots, mask, spans, scan[_NAMES])
            scan[_NAMES] += number == scan[_NAMES]
            codes[scan[_FIELDS] + k] = number
        scan[_FIELDS] += n


@helper
def _find_fields(text, slots, mask, counts, scan, batch):
    """Write the start, the length and the hash of the next fields to ``batch``, and return how many."""
    place, n_lines, n = scan[_PLACE], scan[_LINES], 0
    while place < text.shape[0] and n < batch.shape[0]:
        start, key = place, _BASIS
        while not is_end(text, place):
            key = (key ^ np.uint64(text[place])) * _PRIME
            place += 1
        upper = ((key ^ (key >> _HALF)) * _MIX) >> _HALF
        batch[n, _START], batch[n, _LENGTH], batch[n, _HASH] = start, place - start, upper
        slot = np.int64(_TWO * (upper & mask))
        prefetch(slots, slot, slot + 1)
        n += 1
        counts[n_lines] += 1
        n_lines += text[place] != _TAB
        place += 2 if text[place] == _RETURN else 1
    scan[_PLACE], scan[_LINES] = place, n_lines
    return n


@helper
def _number(text, field, slots, mask, spans, n_names):
    """Return the number of a field, which is ``n_names`` if it is new; then its slot and span are written."""
    start, length, upper = field[_START], field[_LENGTH], np.uint64(field[_HASH])
    slot = upper & mask
    while slots[_TWO * slot] != _EMPTY:
        if slots[_TWO * slot] >> _HALF == upper:
            known = np.int64(slots[_TWO * slot + _ONE])
            if _are_equal(text, known, start, length) and is_end(text, known + length):
                return np.int64(slots[_TWO * slot] & _LOW) - 1
        slot = (slot + _ONE) & mask
    slots[_TWO * slot], slots[_TWO * slot + _ONE] = (upper << _HALF) | np.uint64(n_names + 1), start
    spans[0, n_names], spans[1, n_names] = start, length
    return n_names


@helper
def is_end(text, place):
    """Return whether a field ends before this byte: a tab, or a line end."""
    byte = text[place]
    return byte in (_TAB, _END) or (byte == _RETURN and text[place + 1] == _END)


@helper
def _are_equal(text, a, b, length):
    """Return whether the bytes from a and from b are the same."""
    k = 0
    while k < length and text[a + k] == text[b + k]:
        k += 1
    return k == length


@helper
def move_slots(slots, more):
    """Rehash the slots into a larger table."""
    mask = np.uint64(more.shape[0] // 2 - 1)
    for old in range(0, slots.shape[0], 2):
        if slots[old] != _EMPTY:
            slot = (slots[old] >> _HALF) & mask
            while more[_TWO * slot] != _EMPTY:
                slot = (slot + _ONE) & mask
            more[_TWO * slot], more[_TWO * slot + _ONE] = slots[old], slots[old + 1]
