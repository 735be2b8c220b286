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
from maxmargin.formats.templates import AFTER, BEFORE, Macro, Template

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
    table = _Table(list(chain.from_iterable(sentences)), lengths, described)
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
    described : callable or None
    """

    def __init__(
        self,
        rows: list[Sequence[str]],
        lengths: IntArray,
        described: Callable[[str], tuple[str, ...]] | None,
    ) -> None:
        self.rows, self.described = rows, described
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.place, self.length = np.arange(len(rows)) - first, np.repeat(lengths, lengths)
        self._columns: dict[int, _Column] = {}
        self._shifted: dict[tuple[int, int], NDArray[np.int64]] = {}

    def made(self, macro: Macro) -> tuple[list[str], IntArray, IntArray]:
        """Return the distinct features that a template makes, the first token with each, and each token's."""
        key, size = np.zeros(len(self.rows), dtype=np.int64), 1
        for place in macro.places:
            if size > _LARGE:
                distinct, key = np.unique(key, return_inverse=True)
                size = len(distinct)
            width = len(self.column(place[1]).texts)
            key, size = key * width + self.shifted(*place), size * width
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        entries = [
            [self.column(c).texts[k] for k in self.shifted(r, c)[first].tolist()] for r, c in macro.places
        ]
        if len(entries) == 1:
            before, after = macro.text.split("%s")
            return [before + entry + after for entry in entries[0]], first, which
        texts = [macro.text % entry for entry in zip(*entries, strict=True)] if entries else [macro.text]
        return texts, first, which

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
            return _Column([*texts, *BEFORE[::-1], *AFTER], codes)
        words, codes = learn([[row[0] for row in self.rows]], len(self.rows))
        texts, of_words = learn([[self.described(word)[c] for word in words]], len(words))
        return _Column([*texts, *BEFORE[::-1], *AFTER], of_words[codes])

    def shifted(self, r: int, c: int) -> NDArray[np.int64]:
        """Return the number of the entry of column c that is r tokens away from each token."""
        if (r, c) not in self._shifted:
            codes, n = self.column(c).codes, len(self.column(c).texts) - len(BEFORE) - len(AFTER)
            target, place = self.place + r, np.arange(len(codes)) + r
            found = codes[place.clip(0, len(codes) - 1)].astype(np.int64)
            found = np.where(target < 0, n - 1 - target, found)
            behind = n + len(BEFORE) + target - self.length
            self._shifted[r, c] = np.where(target >= self.length, behind, found)
        return self._shifted[r, c]
