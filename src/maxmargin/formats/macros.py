"""Features made of the entries around a token, by templates with macros."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """What a macro stands for: an entry of a column, as it is or changed.

    Attributes
    ----------
    row : int
        How many tokens away; or, if ``fixed``, the place in the sentence: from 1, or from -1 at its end.
    column : int
    fixed : bool
    change : callable or None
        From the entry to the text that takes the place of the macro.
    """

    row: int
    column: int
    fixed: bool = False
    change: Callable[[str], str] | None = None

    def texts(self, column: list[str], n_before: int, n: int) -> list[str]:
        """Return the texts for n tokens, given their column with what stands before and after it."""
        if self.fixed:
            place = self.row - 1 if self.row >= 0 else self.row + n
            found = [column[min(max(n_before + place, 0), len(column) - 1)]] * n
        else:
            found = column[n_before + self.row : n_before + self.row + n]
        return found if self.change is None else list(map(self.change, found))


class Macro(NamedTuple):
    """A template: its text with ``%s`` in the place of each macro, and what each stands for."""

    text: str
    cells: tuple[Cell, ...]

    @property
    def parts(self) -> list[str]:
        """The text before, between and after macros."""
        return self.text.split("%s")

    def features(self, columns: list[list[str]], n_before: int, n: int) -> list[str]:
        """Return the feature of each of n tokens."""
        return self.joined([cell.texts(columns[cell.column], n_before, n) for cell in self.cells], n)

    def joined(self, texts: list[list[str]], n: int) -> list[str]:
        """Return n features, given the n texts of each macro."""
        if len(texts) == 1:
            before, after = self.parts
            return [before + text + after for text in texts[0]]
        return [self.text % text for text in zip(*texts, strict=True)] if texts else [self.text] * n


class Template:
    """Templates of features.

    Parameters
    ----------
    macros : iterable of Macro
        One per feature of a token.
    bigrams : iterable of Macro
        One per feature of a token together with the one before it, which has weights for pairs of labels.
    before, after : sequences of str
        What the rows before and after a sentence read, in their order: at least as many as macros reach out.

    Attributes
    ----------
    n_columns : int
        The number of columns that the macros need.
    before, after : lists of str
    """

    def __init__(
        self, macros: Iterable[Macro], bigrams: Iterable[Macro], before: Sequence[str], after: Sequence[str]
    ) -> None:
        self.macros, self.bigrams = tuple(macros), tuple(bigrams)
        self.before, self.after = list(before), list(after)
        cells = [cell for macro in (*self.macros, *self.bigrams) for cell in macro.cells]
        self.n_columns = 1 + max((cell.column for cell in cells), default=-1)

    @property
    def transitions(self) -> bool:
        """Whether pairs of labels are to have weights."""
        return bool(self.bigrams)

    @property
    def describes_pairs(self) -> bool:
        """Whether pairs of neighbours need features: those depend on the tokens, or tokens have none."""
        return not self.macros or any(macro.cells for macro in self.bigrams)

    def features(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each token of a sentence, in the order of the templates."""
        return self._made(self.macros, rows)

    def pair_features(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each token but the first, together with the one before it.

        Macros count rows from the second token of a pair. Those of the first token would have no effect, as
        no label precedes its own.
        """
        return self._made(self.bigrams, rows)[1:]

    def _made(self, macros: Sequence[Macro], rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features that some templates make of each token."""
        columns = [[*self.before, *column, *self.after] for column in zip(*rows, strict=True)]
        made = [macro.features(columns, len(self.before), len(rows)) for macro in macros]
        return [list(features) for features in zip(*made, strict=True)] if made else [[] for _ in rows]
