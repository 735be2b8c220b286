"""A hash table of names that NumPy probes for thousands of strings per call.

Looking up a fresh string in a large dict takes more than 100 ns, most of it for hashing and cache
misses. Here the strings are joined into one buffer (one memory copy each), read back as rows of
machine words, and hashed, looked up and compared by whole arrays. The answer is exact: the machine
words of the name found are compared with those of the string.

Encoding a million tokens of CoNLL-2000 with known names (`SequenceEncoder.transform`, and so `predict`)
takes 3.5 processor seconds with the table and 9.0 with a dict. The time to fit is the same with and without
the table. ``benchmarks/encoding.py`` measures both.
"""

import numpy as np
from numpy.typing import NDArray

MachineWords = NDArray[np.uint64]
Codes = NDArray[np.int32]
Slots = NDArray[np.int64]

SEPARATOR = "\0"
# Possible numbers of bytes of a row: one, two, four or eight machine words.
WIDTHS = (8, 16, 32, 64)
SHARE_THAT_FITS = 0.99
# Odd random numbers, one per machine word of the widest row.
MULTIPLIERS = np.array(
    [
        0xD40B358C6CD86DA9,
        0xDB44A7FC0D49C431,
        0xCE11399A66DBC205,
        0xD6E03250E68ED9A1,
        0xD71F34B5C174433B,
        0x9222F5DB6382C7B7,
        0xF31FDE5083538DF9,
        0xC48827AA68DB6D5D,
    ],
    np.uint64,
)


class PackedTable:
    """Open-addressing hash table of the short names of a vocabulary.

    A name is a row of `width` bytes (UTF-8, padded with zeros). Names that are longer than a row or
    contain the separator are left out: a `Search` looks them up in the dict.

    Parameters
    ----------
    names : list of str
    """

    def __init__(self, names: list[str]) -> None:
        numbers = np.array([k for k, name in enumerate(names) if SEPARATOR not in name], np.int32)
        strings = JoinedStrings(SEPARATOR.join([names[k] for k in numbers.tolist()]))
        strings.split(len(numbers))
        self.n_names = len(names)
        self.width = _row_width(strings.lengths)
        self.masks = _masks(self.width)
        short = strings.lengths <= self.width
        numbers, words = numbers[short], strings.words(self.masks)[short]
        # Empty slots point to one more row, of bytes that never occur in UTF-8.
        self.rows = np.full(len(names) + 1, b"\xff" * self.width, self.masks.dtype)
        self.rows[numbers] = words.view(self.masks.dtype).ravel()
        self.slots = np.full(1 << max(4, (4 * len(names)).bit_length()), len(names), np.int32)
        self._insert(numbers, self.home(words))

    def _insert(self, numbers: Codes, slot: Slots) -> None:
        """Insert all names at once by linear probing; where several want a slot, the first one gets it."""
        while len(numbers):
            free = np.flatnonzero(self.slots[slot] == self.n_names)[::-1]
            self.slots[slot[free]] = numbers[free]
            left = self.slots[slot] != numbers
            numbers, slot = numbers[left], self.next(slot[left])

    def home(self, words: MachineWords) -> Slots:
        """Return the slot where the search for each row starts: the upper bits of a hash of all its bytes."""
        hashes = _hashes(words)
        hashes >>= np.uint64(65 - len(self.slots).bit_length())
        places: Slots = hashes.view(np.int64)
        return places

    def next(self, slot: Slots) -> Slots:
        """Return the slots that follow these."""
        return (slot + 1) & (len(self.slots) - 1)

    def holds_another(self, found: Codes, words: MachineWords) -> NDArray[np.bool_]:
        """Return whether each slot holds another name than the one searched for; empty slots do not."""
        unequal = self.rows.take(found).view(np.uint64).reshape(words.shape) != words
        # Read as one number, the bytes of a row of booleans tell whether any is true.
        another: NDArray[np.bool_] = unequal.view(f"u{words.shape[1]}").ravel() != 0
        another &= found != self.n_names
        return another


class Search:
    """A search for many strings, given in chunks.

    The first slot of every string is probed while its chunk is in the cache. The few strings that
    need more probes are kept for `finish`, where one loop serves them all.

    Parameters
    ----------
    table : PackedTable
    codes : dict
        The number of each name; consulted for long strings.
    n_strings : int
        Number of strings in all chunks.
    """

    def __init__(self, table: PackedTable, codes: dict[str, int], n_strings: int) -> None:
        self.table = table
        self.codes = codes
        self.found = np.empty(n_strings, np.int32)
        self.n_found = 0
        self.left: list[tuple[Slots, Slots, MachineWords]] = []

    def add(self, found: Codes) -> None:
        """Record numbers of the next strings that were found elsewhere."""
        self.found[self.n_found : self.n_found + len(found)] = found
        self.n_found += len(found)

    def look(self, text: str, n_strings: int) -> bool:
        """Look up the next strings; return False, and change nothing, if one contains the separator."""
        strings = JoinedStrings(text)
        if not strings.split(n_strings):
            return False
        words = strings.words(self.table.masks)
        slot = self.table.home(words)
        found = self.table.slots.take(slot)
        another = self.table.holds_another(found, words)
        # The row holds only the beginning of a long string: the dict decides.
        for k in np.flatnonzero(strings.lengths > self.table.width).tolist():
            found[k] = self.codes.get(strings[k], self.table.n_names)
            another[k] = False
        left = np.flatnonzero(another)
        self.left.append((left + self.n_found, slot[left], words[left]))
        self.add(found)
        return True

    def finish(self) -> Codes:
        """Return the numbers of all strings, in order; the table's `n_names` for unknown ones."""
        if not self.left:
            return self.found
        left, slot, words = map(np.concatenate, zip(*self.left, strict=True))
        while len(left):
            slot = self.table.next(slot)
            self.found[left] = here = self.table.slots.take(slot)
            again = self.table.holds_another(here, words)
            left, slot, words = left[again], slot[again], words[again]
        return self.found


class JoinedStrings:
    """Strings joined by the separator, as bytes.

    Parameters
    ----------
    text : str

    Attributes
    ----------
    starts, lengths : ndarray of int64
        First byte and number of bytes of each string, after `split`.
    """

    def __init__(self, text: str) -> None:
        # The last separator, and padding so that a whole row can be read at the last string.
        padded = text + SEPARATOR * (1 + WIDTHS[-1])
        self.buffer = np.frombuffer(padded.encode("utf-8", "surrogatepass"), np.uint8)
        self.starts = self.lengths = np.empty(0, np.int64)

    def __getitem__(self, k: int) -> str:
        piece = self.buffer[self.starts[k] : self.starts[k] + self.lengths[k]]
        return piece.tobytes().decode("utf-8", "surrogatepass")

    def split(self, n_strings: int) -> bool:
        """Find the strings; return False if there are not as many separators as strings."""
        size = len(self.buffer) - WIDTHS[-1]
        hit = np.zeros(-(-size // 4) * 4, np.bool_)
        np.equal(self.buffer[:size], 0, out=hit[:size])
        if np.count_nonzero(hit) != n_strings:
            return False
        ends = _flatnonzero(hit, n_strings)
        self.starts = np.zeros_like(ends)
        np.add(ends[:-1], 1, out=self.starts[1:])
        self.lengths = ends - self.starts
        return True

    def words(self, masks: NDArray[np.void]) -> MachineWords:
        """Return the bytes of each string as a row of machine words, padded with zeros."""
        row = masks.dtype
        # A row starts at every byte of the buffer: void items may overlap and need no alignment.
        n_rows = len(self.buffer) - row.itemsize + 1
        rows: NDArray[np.void] = np.ndarray((n_rows,), row, self.buffer.data, 0, (1,))
        words = rows[self.starts].view(np.uint64)
        words &= masks.take(self.lengths, mode="clip").view(np.uint64)
        return words.reshape(-1, row.itemsize // 8)


def are_distinct(names: list[str]) -> bool:
    """Return whether no name occurs twice, several times faster than a set could.

    Only names whose first bytes have equal hashes are compared.
    """
    strings = JoinedStrings(SEPARATOR.join(names))
    if not names or not strings.split(len(names)):
        return len(set(names)) == len(names)
    hashes = _hashes(strings.words(_masks(_row_width(strings.lengths))))
    ordered = np.sort(hashes)
    # By sorting: the table that NumPy 2.0 may choose instead overflows on numbers of 64 bits.
    shared = np.isin(hashes, ordered[1:][ordered[1:] == ordered[:-1]], kind="sort")
    doubtful = [names[k] for k in np.flatnonzero(shared).tolist()]
    return len(set(doubtful)) == len(doubtful)


def _hashes(words: MachineWords) -> MachineWords:
    """Return a hash of all bytes of each row; its upper bits are the best mixed."""
    mixed: MachineWords = words[:, 0] * MULTIPLIERS[0]
    upper = np.empty_like(mixed)
    for k in range(1, words.shape[1]):
        mixed ^= np.right_shift(mixed, np.uint64(32), out=upper)
        mixed += words[:, k]
        mixed *= MULTIPLIERS[k]
    return mixed


def _flatnonzero(hit: NDArray[np.bool_], n_hits: int) -> Slots:
    """Return ``np.flatnonzero(hit)`` for a multiple of four elements, `n_hits` of them true."""
    # Four elements at a time: searching fewer, denser elements is twice as fast.
    fours = hit.view("<u4")
    places = np.flatnonzero(fours != 0)
    if len(places) != n_hits:
        return np.flatnonzero(hit)
    # For a number with one byte set to 1, the top byte of this product is the place of that byte.
    byte = (fours[places] * np.uint32(0x00010203)) >> np.uint32(24)
    places *= 4
    places += byte
    return places


def _row_width(lengths: Slots) -> int:
    """Return the smallest width that holds nearly all names."""
    enough = np.quantile(lengths, SHARE_THAT_FITS) if len(lengths) else 0
    return next((width for width in WIDTHS if width >= enough), WIDTHS[-1])


def _masks(width: int) -> NDArray[np.void]:
    """Return masks; mask k keeps the first k bytes of a row."""
    kept = np.tri(width + 1, width, -1, np.uint8) * np.uint8(255)
    return kept.view(np.dtype((np.void, width))).ravel()
