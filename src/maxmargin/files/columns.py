"""Files of columns, as of CoNLL-2000, -2002, -2003 and CRF++, and of word alignments; features of tokens.

A column file has a token per line, and a blank line after a sentence. Columns are separated by tabs or
spaces, and every line has as many as the first. The last column is the label. There are no comments: ``#`` is
a word. A line that starts with ``-DOCSTART-`` is not a token: it marks the start of a document.

Word alignments have a line per pair of sentences, with its links ``i-j`` from word i to word j, counted
from 0. Sure links are written ``3-4``, possible ones ``3?4`` or ``3p4``.

Features of the tokens are those of a template of CRF++, or those that words have by default.

The module does not import NumPy, as `maxmargin tag` uses it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from maxmargin.files.sources import Line, Malformed, Source
from maxmargin.files.templates import Macro, Template, macro, parse_template, with_edges
from maxmargin.runtime.wording import quoted

if TYPE_CHECKING:
    from maxmargin.encoding.sequences import NumberedSequences

_DOCUMENT = "-DOCSTART-"
# What the line that starts a document is tagged with.
OUTSIDE = "O"


class Sentence(NamedTuple):
    """A sentence.

    Attributes
    ----------
    rows : list of lists of str
        The columns of each token.
    line : int
        The number of the first line.
    separator : str
        What separates columns in the file: a tab or a space.
    """

    rows: list[list[str]]
    line: int
    separator: str = " "

    @property
    def starts_document(self) -> bool:
        """Whether this is the line that starts a document, and not a sentence."""
        return self.rows[0][0] == _DOCUMENT

    def column(self, number: int) -> list[str]:
        """Return a column; -1 is the last."""
        return [row[number] for row in self.rows]

    def with_columns(self, *columns: Iterable[str]) -> list[str]:
        """Return the lines of the sentence with more columns, and a blank line."""
        rows = (row + list(more) for row, more in zip(self.rows, zip(*columns, strict=True), strict=True))
        return [*map(self.separator.join, rows), ""]


def read_columns(source: Source, *, widths: tuple[int, ...] = ()) -> Iterator[Sentence]:
    """Yield the sentences of a column file, and the lines that start documents as sentences of their own.

    Parameters
    ----------
    source : Source
    widths : tuple of int, optional
        The numbers of columns that the file may have; any number by default.

    Raises
    ------
    Malformed
        If a line does not have as many columns as the first, or the first has none of these numbers.
    """
    rows: list[list[str]] = []
    first, width, separator = 0, 0, " "
    for line in source.lines():
        fields = split_fields(line.text)
        if fields and not width:
            width = _checked_width(source, line, len(fields), widths)
            separator = "\t" if "\t" in line.text else " "
        if len(fields) not in (0, width):
            raise source.error(
                line.number, f"{width} columns as in the lines before", f"{len(fields)}: {quoted(line.text)}"
            )
        if rows and (not fields or fields[0] == _DOCUMENT):
            yield Sentence(rows, first, separator)
            rows = []
        if fields:
            first = first if rows else line.number
            rows.append(fields)
        if fields and fields[0] == _DOCUMENT:
            yield Sentence(rows, first, separator)
            rows = []
    if rows:
        yield Sentence(rows, first, separator)


def split_fields(text: str) -> list[str]:
    """Return the columns of a line, which tabs and spaces separate; other white space is part of a column.

    Examples
    --------
    >>> split_fields("He\\tPRP  B-NP ")
    ['He', 'PRP', 'B-NP']
    """
    fields = text.replace("\t", " ").split(" ")
    return [field for field in fields if field] if "" in fields else fields


def _checked_width(source: Source, line: Line, width: int, widths: tuple[int, ...]) -> int:
    if widths and width not in widths:
        expected = " or ".join(map(str, sorted(widths)))
        raise source.error(line.number, f"{expected} columns", f"{width}: {quoted(line.text)}")
    return width


_LINK = re.compile(r"(\d+)([-?p])(\d+)")
_SURE = "-"


class Links(NamedTuple):
    """The sure and the possible links of a pair of sentences; sure ones are possible too."""

    sure: set[tuple[int, int]]
    possible: set[tuple[int, int]]


def read_links(source: Source) -> Iterator[Links]:
    """Yield the links of each line."""
    for line in source.lines():
        found = Links(set(), set())
        for field in line.text.split():
            match = _LINK.fullmatch(field)
            if match is None:
                raise source.error(line.number, "links such as 0-1 or 2?3", quoted(field))
            link = int(match[1]), int(match[3])
            found.possible.add(link)
            if match[2] == _SURE:
                found.sure.add(link)
        yield found


# The columns that a word is described by; the columns of the file after the first follow.
_OF_WORD = (
    "word",
    "lower",
    "shape",
    "form",
    *(f"prefix{k}" for k in range(1, 5)),
    *(f"suffix{k}" for k in range(1, 5)),
)


def word_features(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the features of each token of a sentence, whose first column is the word.

    These are the words and further columns, such as parts of speech, up to two positions away; pairs of
    neighbouring words; pairs and triples of neighbours in further columns; and of the word itself its lower
    case, its shape, also of both neighbours, and its first and last one to four letters.

    Examples
    --------
    >>> word_features([["Dr", "NNP"], ["No", "NNP"]])[1][:4]
    ['word[-2]=_B-1', 'word[-1]=Dr', 'word[0]=No', 'word[1]=_B+1']
    """
    rows_of = [[*described(row[0]), *row[1:]] for row in rows]
    return word_template(len(rows[0])).features(rows_of)


@lru_cache(maxsize=1 << 16)
def described(word: str) -> tuple[str, ...]:
    """Return what is known of a word by its spelling, in the order of `_OF_WORD`."""
    shape = "".join(map(_class_of, word))
    form = "".join(c for k, c in enumerate(shape) if k == 0 or c != shape[k - 1])
    affixes = [word[:k] for k in range(1, 5)] + [word[-k:] for k in range(1, 5)]
    return word, word.lower(), shape, form, *affixes


def _class_of(letter: str) -> str:
    """Return X for a capital, x for another letter, 0 for a digit, and any other character itself."""
    if letter.isalpha():
        return "X" if letter.isupper() else "x"
    return "0" if letter.isdigit() else letter


@lru_cache
def word_template(n_columns: int) -> Template:
    """Return the templates for sentences of this many columns."""
    of_word = {name: column for column, name in enumerate(_OF_WORD)}
    macros = [*_windows("word", 0, 1), _window("word", 0, -1, 2), _window("word", 0, 0, 2)]
    for name in ("shape", "form"):
        macros += [_window(name, of_word[name], row, 1) for row in (-1, 0, 1)]
    macros += [
        _window(name, column, 0, 1)
        for name, column in of_word.items()
        if name not in ("word", "shape", "form")
    ]
    for k in range(1, n_columns):
        for length in (1, 2, 3):
            macros += _windows(f"column{k}", len(_OF_WORD) + k - 1, length)
    return with_edges(macros, [macro("B")])


def _windows(name: str, column: int, length: int) -> Iterator[Macro]:
    """Yield the templates of all runs of this many neighbours within two positions."""
    return (_window(name, column, row, length) for row in range(-2, 4 - length))


def _window(name: str, column: int, row: int, length: int) -> Macro:
    """Return the template of ``length`` neighbouring entries of a column."""
    rows = range(row, row + length)
    entries = " ".join(f"%x[{r},{column}]" for r in rows)
    return macro(f"{name}[{':'.join(str(r) for r in sorted({rows[0], rows[-1]}))}]={entries}")


class ColumnFeatures:
    """How rows of columns become features.

    Parameters
    ----------
    template : str or None
        The text of the template.
    columns : int
        The number of columns, the label included.
    template_name : str
        The file of the template, for errors.
    """

    def __init__(self, template: str | None, columns: int, template_name: str = "template") -> None:
        self.template, self.columns = template, columns
        self.parsed = None if template is None else parse_template(template, template_name)
        self._features = word_features if self.parsed is None else self.parsed.features
        needed = 1 if self.parsed is None else self.parsed.n_columns
        if needed > columns - 1:
            raise Malformed(
                f"{template_name}: expected columns below {columns - 1}, as the data have {columns} and the "
                f"last is the label, got column {needed - 1}"
            )

    @property
    def describes_pairs(self) -> bool:
        """Whether pairs of neighbours have features of their own."""
        return self.parsed is not None and self.parsed.describes_pairs

    def numbered(self, sentences: Sequence[Sequence[Sequence[str]]]) -> "NumberedSequences":
        """Return the features of each token of many sentences, numbered."""
        from maxmargin.files.numbered_features import number_features

        if self.parsed is not None:
            return number_features(self.parsed, sentences)
        return number_features(word_template(self.columns - 1), sentences, described)

    def of(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each token of a sentence, whose label is not read."""
        return self._features([row[: self.columns - 1] for row in rows])

    def of_pairs(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each pair of neighbours of a sentence, if the template has some."""
        assert self.parsed is not None
        return self.parsed.pair_features([row[: self.columns - 1] for row in rows])


def column_features(source: Source, template: str | None) -> ColumnFeatures:
    """Return the features for a file with as many columns as its first line.

    Parameters
    ----------
    source : Source
        Nothing of it is read, only peeked at.
    template : str or None
        The file of the template.
    """
    first = next(filter(str.strip, source.peek().decode("utf-8", "replace").split("\n")), "")
    width = len(split_fields(first.rstrip("\r")))
    if template is None:
        return ColumnFeatures(None, width)
    with Source(template, source.encoding) as stream:
        text = "\n".join(line.text for line in stream.lines())
        return ColumnFeatures(text, width, stream.name)
