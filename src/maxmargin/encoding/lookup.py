"""Numbers of names: a dict, and for many names at once a hash table that NumPy probes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, count, repeat

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.chunks import CHUNK, chunk_edges
from maxmargin.encoding.packed import SEPARATOR, PackedTable, Search

Bags = Sequence[Iterable[str]]
Codes = NDArray[np.int32]

# Fewer strings than this are looked up faster in the dict than by some forty NumPy calls.
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
        self._table: PackedTable | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def codes(self) -> dict[str, int]:
        """The number of each name, made when it is first needed: it takes longer than reading the names."""
        return dict(zip(self.names, range(len(self)), strict=True))

    def __getstate__(self) -> dict[str, object]:
        return {"names": self.names, "_table": None}

    def expect(self, n_strings: int) -> None:
        """Choose the packed table if it pays off for `n_strings` look-ups; the first one builds it."""
        self._pays_off |= n_strings >= max(FEW, len(self))

    def _packed(self) -> PackedTable:
        if self._table is None:
            self._table = PackedTable(self.names)
        return self._table

    def lookup(self, bags: Bags, sizes: NDArray[np.int64]) -> Codes:
        """Return the numbers of the strings of all bags, bag after bag; ``len(self)`` for unknown strings.

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
        return self._lookup_in_table(self._packed(), bags, sizes)

    def _lookup_in_table(self, table: PackedTable, bags: Bags, sizes: NDArray[np.int64]) -> Codes:
        if not sizes.all():
            bags = [bag for bag, size in zip(bags, sizes.tolist(), strict=True) if size]
            sizes = sizes[sizes > 0]
        edges = chunk_edges(sizes, CHUNK)
        counts = np.add.reduceat(sizes, edges[:-1]).tolist()
        search = Search(table, self.codes, int(sizes.sum()))
        for start, stop, n_strings in zip(edges, edges[1:], counts, strict=False):
            chunk = bags[start:stop]
            text = SEPARATOR.join(map(SEPARATOR.join, chunk))
            if not search.look(text, n_strings):
                search.add(self._lookup_in_dict(chunk, n_strings))
        return search.finish()

    def _lookup_in_dict(self, bags: Bags, n_strings: int) -> Codes:
        if not all(issubclass(t, str) for t in set(map(type, chain.from_iterable(bags)))):
            raise TypeError("a name is not a string")
        found = map(self.codes.get, chain.from_iterable(bags), repeat(len(self)))
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
    copies = SEPARATOR.join(names).split(SEPARATOR)
    return copies if len(copies) == len(names) else list(map(str, names))
