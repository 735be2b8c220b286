"""The hash table of the names of features.

Names are hashed and compared eight bytes at a time. All functions take only arrays and numbers, so that they
can run without Numba once they are compiled.
"""

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.intrinsics import prefetch

# What the loops of tagging return: all went well, workspace is too short for a line or a sequence, or the
# estimator has to read it: there is a value, a declaration or a fault.
DONE, LONG_LINE, LONG_SEQUENCE, ODD = 0, -1, -2, -3
# What is known of a field or a name: its first byte, its number of bytes, the upper half of its hash, and
# the number of the name.
START, LENGTH, HASH, _NUMBER = range(4)

_END_OF_NAME = 0xFF
_MIX, _HALF, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(0xFFFFFFFF)
EMPTY, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_WORD = 8
_1, _2, _3, _4, _5, _6, _7 = map(np.uint64, range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = map(np.uint64, range(8, 64, 8))


@helper
def index_features(names, counts, columns, values, n_labels, batch, slots, rows):
    """Fill the hash table of names, and find where the weights of each feature begin.

    Features without weights are left out: they do not change a prediction. Returns `DONE`, or `ODD` unless
    there are as many names as features, those with weights distinct, and each feature has finite weights of
    different labels, in their order.

    Parameters
    ----------
    names : uint8 array
        The names of features in UTF-8, each followed by `_END_OF_NAME`.
    counts : uint8 array
        The number of weights of each feature.
    columns, values : uint8 and float64 arrays
        The labels of weights, and the weights, of one feature after another.
    n_labels : int
    batch : int64 array of shape (some, 4)
        Workspace for what is known of some names, and their numbers.
    slots : uint64 array
        Zero. A slot is a pair: zero, or the upper half of a hash above the number of a feature plus one; and
        where its name starts. Their number is a power of two, and more than half of them stay empty.
    rows : int64 array
        Receives where the weights of each feature begin, and where the last ones end.
    """
    mask, place, n = np.uint64(slots.shape[0] // 2 - 1), 0, 0
    while place < names.shape[0]:
        filled = 0
        while place < names.shape[0] and filled < batch.shape[0]:
            if n == counts.shape[0]:
                return ODD
            filled += _find_name(names, place, counts[n], n, slots, mask, batch[filled])
            place = _name_end(names, place) + 1
            n += 1
        for k in range(filled):
            if not _insert(names, batch[k], slots, mask):
                return ODD
    if n != counts.shape[0]:
        return ODD
    return _find_rows(counts, columns, values, n_labels, rows)


@helper
def _find_name(names, start, count, number, slots, mask, entry):
    """Write what is known of a name to ``entry`` if its feature has weights, and return whether it has."""
    if count == 0:
        return 0
    length = _name_end(names, start) - start
    upper = hash_of(names, start, length)
    entry[START], entry[LENGTH], entry[HASH], entry[_NUMBER] = start, length, upper, number
    slot = np.int64(TWO * (upper & mask))
    prefetch(slots, slot, slot + 1)
    return 1


@helper
def _name_end(names, start):
    """Return where a name ends."""
    place = np.uint64(start)
    while names[place] != _END_OF_NAME:
        place += ONE
    return np.int64(place)


@helper
def hash_of(text, start, length):
    """Return the upper half of a hash of some bytes."""
    key, whole = np.uint64(length) * _MIX, length - length % _WORD
    for place in range(start, start + whole, _WORD):
        key = _mixed(key, _word(text, place))
    if whole < length:
        key = _mixed(key, _part(text, start + whole, length - whole))
    return (key * _MIX) >> _HALF


@helper
def _mixed(key, word):
    key = (key ^ word) * _MIX
    return key ^ (key >> _HALF)


@helper
def _word(text, place):
    """Return eight bytes as a number; the compiler makes one access of it."""
    p = np.uint64(place)
    return (
        np.uint64(text[p])
        | np.uint64(text[p + _1]) << _8
        | np.uint64(text[p + _2]) << _16
        | np.uint64(text[p + _3]) << _24
        | np.uint64(text[p + _4]) << _32
        | np.uint64(text[p + _5]) << _40
        | np.uint64(text[p + _6]) << _48
        | np.uint64(text[p + _7]) << _56
    )


@helper
def _part(text, place, length):
    """Return fewer than eight bytes as a number."""
    if place + _WORD <= text.shape[0]:
        return _word(text, place) & ((ONE << np.uint64(8 * length)) - ONE)
    word = EMPTY
    for k in range(length):
        word |= np.uint64(text[place + k]) << np.uint64(8 * k)
    return word


@helper
def _are_equal(a, p, b, q, length):
    """Return whether ``length`` bytes of two texts are the same, from p and from q."""
    whole = length - length % _WORD
    for k in range(0, whole, _WORD):
        if _word(a, p + k) != _word(b, q + k):
            return False
    return whole == length or _part(a, p + whole, length - whole) == _part(b, q + whole, length - whole)


@helper
def _insert(names, entry, slots, mask):
    """Write a name to the first slot that is free for it; return whether it is new."""
    if find(names, entry, names, slots, mask) >= 0:
        return False
    upper = np.uint64(entry[HASH])
    slot = upper & mask
    while slots[TWO * slot] != EMPTY:
        slot = (slot + ONE) & mask
    slots[TWO * slot] = (upper << _HALF) | np.uint64(entry[_NUMBER] + 1)
    slots[TWO * slot + ONE] = np.uint64(entry[START])
    return True


@helper
def find(text, field, names, slots, mask):
    """Return the number of a field of a text, or -1 if it is not a feature in the table."""
    first, length, upper = field[START], field[LENGTH], np.uint64(field[HASH])
    slot = upper & mask
    while slots[TWO * slot] != EMPTY:
        if slots[TWO * slot] >> _HALF == upper:
            start = np.int64(slots[TWO * slot + ONE])
            fits = start + length < names.shape[0] and names[start + length] == _END_OF_NAME
            if fits and _are_equal(text, first, names, start, length):
                return np.int64(slots[TWO * slot] & _LOW) - 1
        slot = (slot + ONE) & mask
    return -1


@helper
def _find_rows(counts, columns, values, n_labels, rows):
    """Write where the weights of each feature begin; check that labels are in order and weights finite."""
    total = np.int64(0)
    for f in range(counts.shape[0]):
        rows[f] = total
        stop = total + np.int64(counts[f])
        if stop > values.shape[0]:
            return ODD
        before = np.int64(-1)
        for p in range(total, stop):
            column = np.int64(columns[p])
            if column <= before or column >= n_labels or values[p] - values[p] != 0.0:
                return ODD
            before = column
        total = stop
    rows[counts.shape[0]] = total
    return DONE if total == values.shape[0] else ODD
