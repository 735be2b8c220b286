"""The table of names: a hash table of texts, which compiled code fills and searches.

Names are kept in one array of bytes, as files hold them: in UTF-8, each followed by a byte that UTF-8 never
contains. They are hashed and compared eight bytes at a time, and found in batches: the slots of a batch are
prefetched, as otherwise most of the time would be spent waiting for them. Answers are exact, as bytes are
compared. No Python object is made per name.

Reading attribute files, encoding named features and fast tagging all use this table. Its loops take only
arrays and numbers, so that tagging can run them without Numba.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, count, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import helper
from maxmargin.compiling.loops import prefetch
from maxmargin.encoding.kinds import CHUNK, chunk_edges
from maxmargin.runtime.arrays import IntArray

Bytes = NDArray[np.uint8]
Codes = NDArray[np.int32]

END_OF_NAME = 0xFF

# A slot is a pair: zero, or the upper half of a hash above the number of a name plus one; and where the name
# starts. The number of slots is a power of two, and half of them stay empty.
EMPTY, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_MIX, _HALF, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(32), np.uint64(0xFFFFFFFF)
_WORD = 8
_1, _2, _3, _4, _5, _6, _7 = map(np.uint64, range(1, 8))
_8, _16, _24, _32, _40, _48, _56 = map(np.uint64, range(8, 64, 8))
# What is known of a part of a text that may be a name: its first byte, its number of bytes and its hash.
START, LENGTH, HASH = range(3)


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
def prefetch_slot(slots, key):
    """Fetch the slot where the search for a hash begins."""
    slot = np.int64(TWO * (np.uint64(key) & np.uint64(slots.shape[0] // 2 - 1)))
    prefetch(slots, slot, slot + 1)


@helper
def prefetch_name(names, slots, key):
    """Fetch the name of the slot where the search for a hash begins."""
    start = np.int64(slots[TWO * (np.uint64(key) & np.uint64(slots.shape[0] // 2 - 1)) + ONE])
    prefetch(names, start, start + 1)


@helper
def slot_of(text, part, names, slots):
    """Return the slot of a part of a text: the one of this name, or the empty one where it belongs."""
    start, length, upper = part[START], part[LENGTH], np.uint64(part[HASH])
    mask = np.uint64(slots.shape[0] // 2 - 1)
    slot = upper & mask
    while slots[TWO * slot] != EMPTY:
        if slots[TWO * slot] >> _HALF == upper:
            known = np.int64(slots[TWO * slot + ONE])
            fits = known + length < names.shape[0] and names[known + length] == END_OF_NAME
            if fits and _are_equal(text, start, names, known, length):
                return slot
        slot = (slot + ONE) & mask
    return slot


@helper
def number_at(slots, slot):
    """Return the number of the name of a slot, -1 if it is empty."""
    return np.int64(slots[TWO * slot] & _LOW) - 1


@helper
def write_slot(slots, slot, key, number, start):
    """Give a slot to a name, of this number, that starts at this place."""
    slots[TWO * slot] = (np.uint64(key) << _HALF) | np.uint64(number + 1)
    slots[TWO * slot + ONE] = np.uint64(start)


# The state of a scan: the next byte of the text, how many parts and lines of it were read, and the number of
# names in the table and of their bytes.
_PLACE, _PARTS, _LINES, _NAMES, _USED = range(5)
_BATCH, _FIRST_SLOTS, _PIECE = 64, 1 << 12, 1 << 18
_TAB, _NEWLINE = 9, 10


@helper
def number_parts(text, mark, end, names, room, slots, codes, counts, scan, batch, is_fixed):
    """Number the parts of a text, from the state of the scan on, to its end or until the table is half full.

    Parts end with the byte ``mark``, or with ``end``, which also ends a line. New names are written to the
    table; if it is fixed, they get the number after the last one instead. ``room`` is the memory of
    ``names``. Neither these nor the text can be written to, so that what reads both is compiled only once.
    """
    most = scan[_NAMES] if is_fixed else slots.shape[0] // 4 - batch.shape[0]
    while scan[_PLACE] < text.shape[0] and scan[_NAMES] <= most:
        n = _find_parts(text, mark, end, slots, counts, scan, batch)
        for k in range(n):
            prefetch_name(names, slots, batch[k, HASH])
        for k in range(n):
            slot = slot_of(text, batch[k], names, slots)
            number = number_at(slots, slot)
            if number < 0:
                number = scan[_NAMES]
                if not is_fixed:
                    _add_name(text, batch[k], room, slots, slot, scan)
            codes[scan[_PARTS] + k] = number
        scan[_PARTS] += n


@helper
def _find_parts(text, mark, end, slots, counts, scan, batch):
    """Write what is known of the next parts to ``batch``, and return how many they are."""
    # Unsigned, so that the compiler does not look for negative indices at every byte.
    place, size, n_lines, n = np.uint64(scan[_PLACE]), np.uint64(text.shape[0]), scan[_LINES], 0
    while place < size and n < batch.shape[0]:
        start, byte = np.int64(place), text[place]
        while byte != mark and byte != end:
            place += ONE
            byte = text[place]
        length = np.int64(place) - start
        key = hash_of(text, start, length)
        batch[n, START], batch[n, LENGTH], batch[n, HASH] = start, length, key
        prefetch_slot(slots, key)
        n += 1
        counts[n_lines] += 1
        n_lines += byte == end
        place += ONE
    scan[_PLACE], scan[_LINES] = np.int64(place), n_lines
    return n


@helper
def _add_name(text, part, room, slots, slot, scan):
    """Append a part of a text to the names, and give it a slot."""
    first, length = scan[_USED], part[LENGTH]
    for k in range(length):
        room[first + k] = text[part[START] + k]
    room[first + length] = END_OF_NAME
    write_slot(slots, slot, part[HASH], scan[_NAMES], first)
    scan[_USED] += length + 1
    scan[_NAMES] += 1


@helper
def move_slots(slots, more):
    """Rehash the slots into a larger table."""
    mask = np.uint64(more.shape[0] // 2 - 1)
    for old in range(0, slots.shape[0], 2):
        if slots[old] != EMPTY:
            slot = (slots[old] >> _HALF) & mask
            while more[TWO * slot] != EMPTY:
                slot = (slot + ONE) & mask
            more[TWO * slot], more[TWO * slot + ONE] = slots[old], slots[old + 1]


class NameTable:
    """Names, numbered in order of first appearance.

    Parameters
    ----------
    n_bytes : int
        Room for names in UTF-8, each with a byte that ends it; memory that is not used is never taken.
    n_names : int
        About how many names there will be.
    """

    def __init__(self, n_bytes: int, n_names: int = 0) -> None:
        n_slots = max(_FIRST_SLOTS, 1 << (2 * (n_names + _BATCH)).bit_length())
        self._room, self._slots = np.empty(n_bytes, dtype=np.uint8), np.zeros(2 * n_slots, dtype=np.uint64)
        self._n_names = self._used = 0

    @classmethod
    def of(cls, names: list[str]) -> "NameTable":
        """Return the table of some names, which are distinct."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        text = np.frombuffer(bytes([END_OF_NAME]).join([*encoded, b""]), np.uint8)
        table = cls(len(text), len(names))
        table._scan(text, END_OF_NAME, END_OF_NAME, np.empty(len(names), np.int32), len(names), False)
        return table

    @property
    def names(self) -> Bytes:
        """The names, each followed by `END_OF_NAME`."""
        return self._room[: self._used]

    def learn(self, text: Bytes, n_parts: int, n_lines: int) -> tuple[Codes, IntArray]:
        """Return the numbers of the fields of lines, which end with tabs and line ends, and their counts."""
        codes = np.empty(n_parts, dtype=np.int32)
        return codes, self._scan(text, _TAB, _NEWLINE, codes, n_lines, False)

    def look_up(self, text: Bytes, out: Codes) -> None:
        """Write the numbers of strings, each followed by NUL; that after the last one for unknown strings."""
        self._scan(text, 0, END_OF_NAME, out, 1, True)

    def _scan(self, text: Bytes, mark: int, end: int, codes: Codes, n_lines: int, is_fixed: bool) -> IntArray:
        """Number the parts of a text, and return how many each line has."""
        counts, batch = np.zeros(n_lines, dtype=np.int64), np.empty((_BATCH, 3), dtype=np.int64)
        scan = np.array([0, 0, 0, self._n_names, self._used])
        ends, names = (np.uint8(mark), np.uint8(end)), self._room[:]
        names.flags.writeable = False
        with np.errstate(over="ignore"):  # products wrap around; NumPy's scalars would warn
            while True:
                number_parts(
                    text, *ends, names, self._room, self._slots, codes, counts, scan, batch, is_fixed
                )
                if scan[_PLACE] == len(text):
                    break
                more = np.zeros(2 * len(self._slots), dtype=np.uint64)
                move_slots(self._slots, more)
                self._slots = more
        self._n_names, self._used = int(scan[_NAMES]), int(scan[_USED])
        return counts


class Fields(NamedTuple):
    """The fields of all lines of a text.

    Attributes
    ----------
    codes : ndarray of int32
        The number of each field, in order of first appearance.
    counts : ndarray of int64
        The number of fields of each line; an empty line has one, which is empty.
    names : ndarray of uint8
        The distinct fields, each followed by `END_OF_NAME`.
    """

    codes: Codes
    counts: IntArray
    names: Bytes


def number_fields(text: bytes) -> Fields:
    """Number the fields of a text, the bytes between tabs and line ends.

    Parameters
    ----------
    text : bytes
        Lines that end with ``\\n`` or ``\\r\\n``, the last one too.

    Examples
    --------
    >>> fields = number_fields(b"a\\tb\\nb\\n")
    >>> fields.codes.tolist(), fields.counts.tolist(), fields.names.tobytes()
    ([0, 1, 1], [2, 1], b'a\\xffb\\xff')
    """
    if text and not text.endswith(b"\n"):
        raise ValueError("number_fields: the last line must end with a line end.")
    if b"\r" in text:  # the search for one byte is much faster than for two
        text = text.replace(b"\r\n", b"\n")
    data, n_lines = np.frombuffer(text, dtype=np.uint8), text.count(b"\n")
    table = NameTable(len(data))
    codes, counts = table.learn(data, n_lines + _n_tabs(data), n_lines)
    return Fields(codes, counts, table.names)


def _n_tabs(data: Bytes) -> int:
    """Return the number of tabs, counted in pieces that stay in the cache."""
    return sum(int(np.count_nonzero(data[k : k + _PIECE] == _TAB)) for k in range(0, len(data), _PIECE))


# Names as Python strings: a dict numbers few of them, the table many at once.

Bags = Sequence[Iterable[str]]

# Looking up fewer strings than this takes no longer in the dict, which needs no compiled code.
FEW = 8_192


class Vocabulary:
    """Distinct names and their numbers.

    Parameters
    ----------
    names : list of str
        Name ``names[k]`` has number ``k``.
    """

    _pays_off = False

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._table: NameTable | None = None

    @cached_property
    def codes(self) -> dict[str, int]:
        """The number of each name, made when it is first needed: it takes longer than reading the names."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    def __getstate__(self) -> dict[str, object]:
        return {"names": self.names, "_table": None}

    def expect(self, n_strings: int) -> None:
        """Choose the table if it pays off for `n_strings` look-ups; the first one builds it."""
        self._pays_off |= n_strings >= max(FEW, len(self.names))

    def lookup(self, bags: Bags, sizes: NDArray[np.int64]) -> Codes:
        """Return the numbers of the strings of all bags, bag after bag; ``len(names)`` for unknown strings.

        Parameters
        ----------
        bags : sequence of iterables of str
        sizes : ndarray of int64
            Number of strings in each bag.

        Raises
        ------
        TypeError
            If a bag holds something that is not a string.
        """
        n_strings = int(sizes.sum())
        self.expect(n_strings)
        if not self._pays_off or n_strings < FEW:
            return self._lookup_in_dict(bags, n_strings)
        if self._table is None:
            self._table = NameTable.of(self.names)
        return self._lookup_in_table(self._table, bags, sizes)

    def _lookup_in_table(self, table: NameTable, bags: Bags, sizes: NDArray[np.int64]) -> Codes:
        if not sizes.all():
            bags = [bag for bag, size in zip(bags, sizes.tolist(), strict=True) if size]
            sizes = sizes[sizes > 0]
        edges, codes = chunk_edges(sizes, CHUNK), np.empty(int(sizes.sum()), np.int32)
        parts = np.split(codes, np.cumsum(np.add.reduceat(sizes, edges[:-1]))[:-1])
        for start, stop, out in zip(edges, edges[1:], parts, strict=False):
            chunk = bags[start:stop]
            text = "\0".join(chain(map("\0".join, chunk), [""])).encode("utf-8", "surrogatepass")
            if text.count(b"\0") == len(out):
                table.look_up(np.frombuffer(text, np.uint8), out)
            else:  # a string contains the separator
                out[:] = self._lookup_in_dict(chunk, len(out))
        return codes

    def _lookup_in_dict(self, bags: Bags, n_strings: int) -> Codes:
        if not all(issubclass(t, str) for t in set(map(type, chain.from_iterable(bags)))):
            raise TypeError("a name is not a string")
        found = map(self.codes.get, chain.from_iterable(bags), repeat(len(self.names)))
        return np.fromiter(found, np.int32, n_strings)


def learn(bags: Bags, n_strings: int) -> tuple[list[str], Codes]:
    """Return the distinct names in order of first appearance, and the number of every string.

    The strings of a set are taken in sorted order.

    Parameters
    ----------
    bags : sequence of iterables of str
    n_strings : int
        Number of strings in all bags together.

    Raises
    ------
    TypeError
        If a bag holds something that is not a string.
    """
    # A dict that numbers each new name on first access: one pass that runs no Python code.
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    strings = map(numbers.__getitem__, chain.from_iterable(_in_order(bags)))
    codes = np.fromiter(strings, np.int32, n_strings)
    if not all(issubclass(t, str) for t in set(map(type, numbers))):
        raise TypeError("a name is not a string")
    return _compacted(numbers), codes


def _in_order(bags: Bags) -> Bags:
    """Sort the strings of sets, whose order varies from process to process."""
    if {set, frozenset}.isdisjoint(map(type, bags)):
        return bags
    return [sorted(bag) if isinstance(bag, set | frozenset) else bag for bag in bags]


def _compacted(names: Iterable[str]) -> list[str]:
    """Return copies that are adjacent in memory: faster to compare, and they keep no other string alive."""
    names = list(names)
    copies = "\0".join(names).split("\0")
    return copies if len(copies) == len(names) else list(map(str, names))
