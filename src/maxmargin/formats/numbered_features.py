"""Features of the tokens of many sentences by a template, numbered without a text for each.

The entries of each column are numbered first. A feature then is a combination of numbers, and only distinct
combinations become texts: words and their neighbours occur again and again.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.arrays import IntArray
from maxmargin.encoding.lookup import learn
from maxmargin.encoding.numbered import NumberedSequences
from maxmargin.encoding.tokens import offsets_of
from maxmargin.formats.macros import Cell, Macro, Template

# Products of numbers beyond this are numbered anew, so that they do not overflow.
_LARGE = 1 << 40


class _Column(NamedTuple):
    """The distinct entries of a column, what stands before and behind sentences, and each token's number."""

    texts: list[str]
    codes: NDArray[np.integer]


def number_features(
    template: Template,
    sentences: Sequence[Sequence[Sequence[str]]],
    described: Callable[[str], tuple[str, ...]] | None = None,
) -> NumberedSequences:
    """Return the features of all tokens, as `Template.features` makes them of each sentence.

    Parameters
    ----------
    template : Template
    sentences : sequence of sequences of rows
        The columns of each token; there may be more than the template needs.
    described : callable, optional
        Makes the first columns of the template from the first column of a row; the others follow.
    """
    lengths = np.array([len(rows) for rows in sentences], dtype=np.int64)
    table = _Table(list(chain.from_iterable(sentences)), lengths, template, described)
    made = [table.made(macro) for macro in template.macros]
    # In order of first appearance: token by token, and by the order of templates within a token.
    firsts = np.concatenate([first * len(made) + k for k, (_, first, _) in enumerate(made)])
    order = np.argsort(firsts)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    begins = np.cumsum([0, *(len(first) for _, first, _ in made)])
    codes = np.stack([rank[begin + which] for begin, (*_, which) in zip(begins, made, strict=False)], axis=1)
    texts = list(chain.from_iterable(texts for texts, _, _ in made))
    names, number = learn([[texts[k] for k in order.tolist()]], len(order))
    counts = np.full(len(codes), len(made), dtype=np.int64)
    return NumberedSequences(names, number[codes.ravel()], None, counts, offsets_of(lengths))


class _Table:
    """The tokens of all sentences.

    Parameters
    ----------
    rows : list of rows
    lengths : ndarray of int64
        The number of tokens of each sentence.
    template : Template
        Has what rows before and behind sentences read.
    described : callable or None
    """

    def __init__(
        self,
        rows: list[Sequence[str]],
        lengths: IntArray,
        template: Template,
        described: Callable[[str], tuple[str, ...]] | None,
    ) -> None:
        self.rows, self.described = rows, described
        self.before, self.after = template.before, template.after
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.place, self.length = np.arange(len(rows)) - first, np.repeat(lengths, lengths)
        self._columns: dict[int, _Column] = {}
        self._shifted: dict[tuple[int, int, bool], NDArray[np.int64]] = {}

    def made(self, macro: Macro) -> tuple[list[str], IntArray, IntArray]:
        """Return the distinct features that a template makes, the first token with each, and each token's."""
        key, size = np.zeros(len(self.rows), dtype=np.int64), 1
        for cell in macro.cells:
            if size > _LARGE:
                distinct, key = np.unique(key, return_inverse=True)
                size = len(distinct)
            width = len(self.column(cell.column).texts)
            key, size = key * width + self.shifted(cell), size * width
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        return macro.joined([self._texts(cell, first) for cell in macro.cells], len(first)), first, which

    def _texts(self, cell: Cell, tokens: IntArray) -> list[str]:
        """Return what a macro stands for at some tokens."""
        texts = self.column(cell.column).texts
        found = [texts[k] for k in self.shifted(cell)[tokens].tolist()]
        return found if cell.change is None else list(map(cell.change, found))

    def column(self, c: int) -> _Column:
        """Return a column."""
        if c not in self._columns:
            self._columns[c] = self._numbered(c)
        return self._columns[c]

    def _numbered(self, c: int) -> _Column:
        n_described = 0 if self.described is None else len(self.described(""))
        if self.described is None or c >= n_described:
            k = c if self.described is None else c - n_described + 1
            texts, codes = learn([[row[k] for row in self.rows]], len(self.rows))
            return _Column([*texts, *self.before[::-1], *self.after], codes)
        words, codes = learn([[row[0] for row in self.rows]], len(self.rows))
        texts, of_words = learn([[self.described(word)[c] for word in words]], len(words))
        return _Column([*texts, *self.before[::-1], *self.after], of_words[codes])

    def shifted(self, cell: Cell) -> NDArray[np.int64]:
        """Return the number of the entry that a macro refers to, for each token."""
        key = cell.row, cell.column, cell.fixed
        if key not in self._shifted:
            codes, n_before = self.column(cell.column).codes, len(self.before)
            n = len(self.column(cell.column).texts) - n_before - len(self.after)
            target = self.place + cell.row
            if cell.fixed:
                target = np.where(cell.row >= 0, cell.row - 1, cell.row + self.length)
            target = target.clip(-n_before, self.length + len(self.after) - 1)
            place = (np.arange(len(codes)) - self.place + target).clip(0, len(codes) - 1)
            found = np.where(target < 0, n - 1 - target, codes[place])
            self._shifted[key] = np.where(target >= self.length, n + n_before + target - self.length, found)
        return self._shifted[key]
