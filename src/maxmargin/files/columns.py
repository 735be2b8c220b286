"""Files of columns, as of CoNLL-2000, -2002, -2003 and CRF++, and of word alignments.

A column file has a token per line, and a blank line after a sentence. Columns are separated by tabs or
spaces, and every line has as many as the first. The last column is the label. There are no comments: ``#`` is
a word. A line that starts with ``-DOCSTART-`` is not a token: it marks the start of a document.

Word alignments have a line per pair of sentences, with its links ``i-j`` from word i to word j, counted
from 0. Sure links are written ``3-4``, possible ones ``3?4`` or ``3p4``.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from maxmargin.files.sources import Line, Source
from maxmargin.runtime.wording import quoted

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
