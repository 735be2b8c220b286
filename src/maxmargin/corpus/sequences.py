"""The sequences and labels of a corpus, as estimators take them; items are made when they are asked for."""

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import SupportsIndex, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.arrays import CsrMatrix, IntArray
from maxmargin.encoding.kinds import Kind
from maxmargin.encoding.labels import Label, Labels
from maxmargin.encoding.tokens import Tokens

ItemT = TypeVar("ItemT")
# A sequence of names, of values by name, or of rows.
CorpusSequence = list[list[str]] | list[dict[str, float]] | CsrMatrix


class _Mapped(Sequence[ItemT]):
    """Items that are made from mapped arrays when they are asked for; a subclass defines `_item`."""

    def __init__(self, offsets: IntArray) -> None:
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: SupportsIndex) -> ItemT: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemT]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> ItemT | list[ItemT]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._item(*_bounds(self.offsets, operator.index(index)))

    def _item(self, first: int, stop: int) -> ItemT:
        """Return the item of these tokens."""
        raise NotImplementedError


class CorpusSequences(_Mapped[CorpusSequence]):
    """The sequences of a corpus, which estimators take as X.

    Items are made when they are asked for: lists of tokens, each a list of names or, if features have values,
    a dict. If names were hashed they are not known, and items are sparse matrices.

    Attributes
    ----------
    tokens : Tokens
        The rows of all tokens, a csr_array of mapped arrays, and the offsets of the sequences.
    names : list of str or None
        The names of the columns; None if they were hashed.
    hash_bits : int or None
    kind : {"strings", "dicts"}
    """

    def __init__(self, tokens: Tokens, names: list[str] | None, hash_bits: int | None, kind: str) -> None:
        super().__init__(tokens.offsets)
        self.tokens, self.names, self.hash_bits = tokens, names, hash_bits
        self.kind = cast("Kind", kind)

    def _item(self, first: int, stop: int) -> CorpusSequence:
        rows = cast("csr_array", self.tokens.rows)
        edges = rows.indptr[first : stop + 1]
        columns, values = (part[edges[0] : edges[-1]] for part in (rows.indices, rows.data))
        if self.names is None:
            shape = stop - first, rows.shape[1]
            return csr_array((values, columns, edges - edges[0]), shape=shape)
        names = [self.names[column] for column in columns.tolist()]
        spans = list(pairwise((edges - edges[0]).tolist()))
        if rows.data.strides == (0,):  # all values are one
            return [names[a:b] for a, b in spans]
        pairs = list(zip(names, values.tolist(), strict=True))
        return [dict(pairs[a:b]) for a, b in spans]

    def __repr__(self) -> str:
        return f"<{len(self)} sequences of {len(self.tokens.rows.indptr) - 1} tokens>"  # type: ignore[union-attr]


class CorpusLabels(_Mapped[list[Label]]):
    """The labels of a corpus, which estimators take as y; items are lists of labels.

    Attributes
    ----------
    codes : ndarray of int64
        The number of each token's label.
    classes : ndarray
        The labels, sorted.
    offsets : ndarray of int64
        Where each sequence begins, and the last one ends.
    """

    def __init__(self, codes: NDArray[np.int64], classes: Labels, offsets: NDArray[np.int64]) -> None:
        super().__init__(offsets)
        self.codes, self.classes = codes, classes

    def _item(self, first: int, stop: int) -> list[Label]:
        return cast("list[Label]", self.classes[self.codes[first:stop]].tolist())

    def __iter__(self) -> Iterator[list[Label]]:
        labels: list[Label] = list(self.classes.tolist())
        for first, stop in pairwise(self.offsets):
            yield [labels[code] for code in self.codes[first:stop].tolist()]


def _bounds(offsets: NDArray[np.int64], index: int) -> tuple[int, int]:
    """Return where a sequence begins and ends."""
    n = len(offsets) - 1
    if not -n <= index < n:
        raise IndexError(f"sequence {index} of {n}")
    return int(offsets[index % n]), int(offsets[index % n + 1])
