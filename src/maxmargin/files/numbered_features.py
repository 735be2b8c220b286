"""Features of the tokens of many sentences by a template, numbered without a text for each.

The entries of each column are numbered first. A feature then is a combination of numbers, and only distinct
combinations become texts: words and their neighbours occur again and again. Texts are looked up in a dict
only where two combinations may have the same one.
"""

from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.kinds import offsets_of
from maxmargin.encoding.sequences import NumberedSequences
from maxmargin.encoding.table import learn
from maxmargin.files.templates import Cell, Macro, Template
from maxmargin.runtime.arrays import IntArray

# Products of numbers beyond this are renumbered, so that they do not overflow.
_LARGE = 1 << 40
_MOST = 1 << 62


class _Column(NamedTuple):
    """The distinct entries of a column, what stands before and after sentences, and each token's number.

    ``repeats`` is whether an entry equals what stands before or after sentences.
    """

    texts: list[str]
    codes: NDArray[np.integer]
    repeats: bool


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
    order = np.argsort(np.concatenate([features.first * len(made) + k for k, features in enumerate(made)]))
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    begins = np.cumsum([0, *(len(features.first) for features in made)])
    which = [number[begin + features.which] for begin, features in zip(begins, made, strict=False)]
    codes = np.stack(which, axis=1).ravel()
    texts = list(chain.from_iterable(features.texts for features in made))
    names = [texts[k] for k in order.tolist()]
    if not _have_own_texts(template.macros):
        names, number = learn([names], len(names))
        codes = number[codes]
    counts = np.full(len(table.rows), len(made), dtype=np.int64)
    return NumberedSequences(names, codes, None, counts, offsets_of(lengths))


def _have_own_texts(macros: Sequence[Macro]) -> bool:
    """Whether no two templates make the same feature: their beginnings tell them apart."""
    heads = sorted(macro.parts[0] for macro in macros)
    return not any(second.startswith(first) for first, second in pairwise(heads))


class _Features(NamedTuple):
    """The distinct features that a template makes, the first token with each, and each token's."""

    texts: list[str]
    first: IntArray
    which: IntArray


class _Table:
    """The tokens of all sentences.

    Parameters
    ----------
    rows : list of rows
    lengths : ndarray of int64
        The number of tokens of each sentence.
    template : Template
        Has what rows before and after sentences read.
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
        self._letters: dict[tuple[str, int], bool] = {}
        self._shifted: dict[tuple[int, int, bool], NDArray[np.int64]] = {}

    def made(self, macro: Macro) -> _Features:
        """Return the features that a template makes."""
        key, size = np.zeros(len(self.rows), dtype=np.int64), 1
        for cell in macro.cells:
            if size > _LARGE:
                distinct, key = np.unique(key, return_inverse=True)
                size = len(distinct)
            width = len(self.column(cell.column).texts)
            key, size = key * width + self.shifted(cell), size * width
        first, which = _distinct(key)
        texts = macro.joined([self._texts(cell, first) for cell in macro.cells], len(first))
        if self._is_one_to_one(macro):
            return _Features(texts, first, which)
        texts, number = learn([texts], len(texts))
        firsts = np.full(len(texts), len(key))
        np.minimum.at(firsts, number, first)
        return _Features(texts, firsts, number[which].astype(np.int64))

    def _is_one_to_one(self, macro: Macro) -> bool:
        """Whether different entries are sure to make different features.

        They do if what follows an entry begins with a character that no entry there has.
        """
        if any(cell.change is not None or self.column(cell.column).repeats for cell in macro.cells):
            return False
        before = zip(macro.cells[:-1], macro.parts[1:-1], strict=True)
        return all(part and not self._occurs(part[0], cell.column) for cell, part in before)

    def _occurs(self, letter: str, c: int) -> bool:
        """Whether an entry of a column has a letter."""
        if (letter, c) not in self._letters:
            self._letters[letter, c] = any(letter in text for text in self.column(c).texts)
        return self._letters[letter, c]

    def _texts(self, cell: Cell, tokens: IntArray) -> list[str]:
        """Return the texts that a macro stands for at some tokens."""
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
            return self._with_edges(texts, codes)
        words, codes = learn([[row[0] for row in self.rows]], len(self.rows))
        texts, of_words = learn([[self.described(word)[c] for word in words]], len(words))
        return self._with_edges(texts, of_words[codes])

    def _with_edges(self, texts: list[str], codes: NDArray[np.integer]) -> _Column:
        edges = [*self.before[::-1], *self.after]
        return _Column([*texts, *edges], codes, not set(edges).isdisjoint(texts))

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


def _distinct(key: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first place of each distinct number, and the number of each place among the distinct ones.

    Numbers are sorted together with their places, which is faster than sorting places by numbers.
    """
    n = len(key)
    if int(key.max(initial=0)) >= _MOST // max(n, 1):
        key = np.unique(key, return_inverse=True)[1]
    value, place = np.divmod(np.sort(key * n + np.arange(n)), max(n, 1))
    is_first = np.ones(n, dtype=np.bool_)
    np.not_equal(value[1:], value[:-1], out=is_first[1:])
    which = np.empty(n, dtype=np.int64)
    which[place] = np.cumsum(is_first) - 1
    return place[is_first], which
