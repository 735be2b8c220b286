r"""Feature templates in the syntax of CRF++ and of Wapiti.

A line ``U01:%x[-1,0]/%x[0,1]`` makes one feature of each token: the line with each macro ``%x[row,column]``
replaced by the entry of that column, counted from 0, of the token that is ``row`` tokens away. Rows before a
sentence read ``_B-1``, ``_B-2``, ..., counted from its start, and rows after it ``_B+1``, ``_B+2``, ... Lines
that begin with ``#`` are comments. A line ``B01:%x[0,0]`` makes one feature of each token but the first, in
the same way, which has a weight for each pair of labels of the token before and this one; the line ``B`` asks
for the same weight at all tokens. There may be lines of one kind only.

The syntax of Wapiti is almost the same. A line ``u:%x[-1,0]`` makes one feature of each token. Beside
``%x[row,column]``, the entry itself, there are ``%t[row,column,"regexp"]``, which is ``true`` or ``false``,
and ``%m[row,column,"regexp"]``, the first part of the entry that matches. A capital, as in ``%X``, makes
letters small, and ``@`` before a row counts from the start of the sentence, from 1, or from its end, from -1.
Rows before a sentence read ``_x-1``, ..., ``_x-4`` and then ``_x-#``, rows after it ``_x+1``, ... Everything
from a ``#`` on is a comment. A line that begins with ``b`` makes a feature of each token but the first, for
pairs of labels, and one that begins with ``*`` makes both.

Its regular expressions are searched in time that is bounded. ``.`` is any character; ``\a``, ``\d``, ``\l``,
``\p``, ``\s``, ``\u`` and ``\w`` are letters, digits, small letters, punctuation, spaces, capitals, and
letters or digits, of ASCII, and their capitals all other characters. ``*`` repeats what stands before it, as
few times as will do, and ``?`` makes it optional; ``^`` and ``$`` are the ends. Wapiti reads bytes; here, a
character is one of Unicode.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import NamedTuple

from maxmargin.files.sources import Malformed, malformed
from maxmargin.runtime.wording import quoted

Search = Callable[[str], str | None]
_UNIGRAM, _BIGRAM, _COMMENT = "U", "B", "#"
_MACRO = re.compile(r"%x\[\s*([-+]?\d+)\s*,\s*(\d+)\s*\]")
# As far as CRF++ lets macros look.
_REACH = 8
_BEFORE = [f"_B-{k}" for k in range(_REACH, 0, -1)]
_AFTER = [f"_B+{k}" for k in range(1, _REACH + 1)]
_COMMAND = re.compile(
    r"%([xtmXTM])\[\s*(@?)\s*([-+]?\d{1,9})\s*,\s*(\d{1,9})\s*(?:,\s*\"((?:[^\"\\]|\\.)*)\"\s*)?\]"
)
# How far rows may look, and where edges cease to be counted.
_FARTHEST, _COUNTED = 100, 4
_MOST_OPTIONAL = 5  # each doubles the ways that Python may try
_CLASSES = {
    "a": ascii_letters,
    "d": digits,
    "l": ascii_lowercase,
    "p": punctuation,
    "s": " \t\n\r\f\v",
    "u": ascii_uppercase,
    "w": ascii_letters + digits,
}


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


def parse_template(text: str, name: str = "template") -> Template:
    """Return the templates of a text.

    Parameters
    ----------
    text : str
        The lines of a template file of CRF++, or of a pattern file of Wapiti.
    name : str
        The name of the file, for errors.

    Raises
    ------
    Malformed
        If a line is not a template, or there is none.

    Examples
    --------
    >>> template = parse_template("U01:%x[-1,0]/%x[0,0]")
    >>> template.features([["He", "PRP"], ["runs", "VBZ"]])
    [['U01:_B-1/He'], ['U01:He/runs']]
    >>> parse_template('u:%X[0,0]/%m[0,0,"..$"]').features([["Runs", "VBZ"]])
    [['u:runs/ns']]
    >>> parse_template("U00:%x[0,0]\\nB01:%x[-1,1]/%x[0,1]").pair_features([["He", "PRP"], ["runs", "VBZ"]])
    [['B01:PRP/VBZ']]
    """
    if looks_like_wapiti(text):
        return parse_patterns(text, name)
    macros: dict[str, list[Macro]] = {_UNIGRAM: [], _BIGRAM: []}
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line or line.startswith(_COMMENT):
            continue
        if line[0] not in macros:
            raise malformed(name, number, "a template that starts with 'U', 'B' or '#'", quoted(line))
        macros[line[0]].append(_parsed(line, name, number))
    if not any(macros.values()):
        raise Malformed(f"{name}: expected a template such as U00:%x[0,0], got none")
    return with_edges(macros[_UNIGRAM], macros[_BIGRAM])


def with_edges(macros: Iterable[Macro], bigrams: Iterable[Macro]) -> Template:
    """Return templates for which rows outside of a sentence read as in CRF++."""
    return Template(macros, bigrams, _BEFORE, _AFTER)


def macro(text: str) -> Macro:
    """Return the template of a text with macros."""
    cells = tuple(Cell(int(row), int(column)) for row, column in _MACRO.findall(text))
    return Macro(_MACRO.sub("%s", text), cells)


def _parsed(line: str, name: str, number: int) -> Macro:
    """Return the template of a line; raise if a macro is malformed or looks too far."""
    if "%" in _MACRO.sub("", line):
        raise malformed(name, number, "%x[row,column] after each %", quoted(line))
    found = macro(line)
    far = next((cell.row for cell in found.cells if abs(cell.row) > _REACH), None)
    if far is not None:
        raise malformed(name, number, f"rows from -{_REACH} to {_REACH} in %x[row,column]", str(far))
    return found


def looks_like_wapiti(text: str) -> bool:
    """Return whether a template has something that CRF++ does not know and Wapiti does."""
    lines = [line.strip() for line in text.split("\n")]
    return any(line[:1] in ("u", "b", "*") or re.search(r"%[tmXTM]\[|%x\[\s*@", line) for line in lines)


def parse_patterns(text: str, name: str = "template") -> Template:
    """Return the templates of a text in Wapiti's syntax; raise `Malformed` if it is none."""
    macros: list[Macro] = []
    bigrams: list[Macro] = []
    for number, line in enumerate(text.split("\n"), start=1):
        pattern = line.partition("#")[0].strip()
        kind = pattern[:1].lower()
        if kind not in ("", "u", "b", "*"):
            raise malformed(name, number, "a pattern that starts with 'u', 'b', '*' or '#'", quoted(line))
        found = _parsed_pattern(pattern, name, number)
        macros += [found] if kind in ("u", "*") else []
        bigrams += [found] if kind in ("b", "*") else []
    if not macros and not bigrams:
        raise Malformed(f"{name}: expected a pattern such as u:%x[0,0], got none")
    rows = [abs(cell.row) for macro in (*macros, *bigrams) for cell in macro.cells if not cell.fixed]
    reach = range(1, max([_COUNTED + 1, *rows]) + 1)
    before = [_edge("-", k) for k in reversed(reach)]
    return Template(macros, bigrams, before, [_edge("+", k) for k in reach])


def _edge(sign: str, k: int) -> str:
    return f"_x{sign}{k if k <= _COUNTED else '#'}"


def _parsed_pattern(pattern: str, name: str, number: int) -> Macro:
    if "%" in _COMMAND.sub("", pattern):
        expected = '%x[row,column], %t[row,column,"regexp"] or %m[row,column,"regexp"] after each %'
        raise malformed(name, number, expected, quoted(pattern))
    try:
        cells = tuple(_cell(*found.groups()) for found in _COMMAND.finditer(pattern))
    except ValueError as error:
        raise malformed(name, number, str(error), quoted(pattern)) from None
    return Macro(_COMMAND.sub("%s", pattern), cells)


def _cell(command: str, at: str, row: str, column: str, regexp: str | None) -> Cell:
    """Return what a macro stands for; raise ValueError with what was expected."""
    if abs(int(row)) > _FARTHEST:
        raise ValueError(f"rows from -{_FARTHEST} to {_FARTHEST}")
    if (command.lower() == "x") != (regexp is None):
        raise ValueError("a regexp in %t and %m, and none in %x")
    change = None if regexp is None else _change(command.lower(), searching(parsed(regexp)))
    if command.isupper():
        change = str.lower if change is None else _small(change)
    return Cell(int(row), int(column), bool(at), change)


def _small(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda entry: change(entry).lower()


def _change(command: str, search: Search) -> Callable[[str], str]:
    """Return the change of a test, or of a match."""

    def tested(entry: str) -> str:
        return "false" if search(entry) is None else "true"

    def matched(entry: str) -> str:
        return search(entry) or ""

    return tested if command == "t" else matched


class Item(NamedTuple):
    """A set of characters, or all others, and how often one occurs: "", "*" or "?"."""

    characters: str
    among: bool
    times: str


class Regexp(NamedTuple):
    """Items one after another, at the start or the end of a text or anywhere."""

    items: list[Item]
    at_start: bool
    at_end: bool


def parsed(text: str) -> Regexp:
    """Return a regexp; raise ValueError with what was expected."""
    marks = re.findall(r"\\.|.", text, re.DOTALL)
    at_start, at_end = marks[:1] == ["^"], marks[-1:] == ["$"]
    items: list[Item] = []
    for k, mark in enumerate(marks):
        if mark in ("*", "?"):
            if k == at_start or marks[k - 1] in ("*", "?"):
                raise ValueError(f"a character before {mark} in a regexp (write \\{mark} for itself)")
            items[-1] = items[-1]._replace(times=mark)
        elif not (at_start and k == 0) and not (at_end and k == len(marks) - 1):
            items.append(_item(mark))
    return Regexp(items, at_start, at_end)


def _item(mark: str) -> Item:
    """Return the item for a character, or for one after a backslash."""
    known = _CLASSES.get(mark[1:].lower()) if len(mark) == 2 else None
    if known is not None:
        return Item(known, mark[1].islower(), "")
    return Item("", False, "") if mark == "." else Item(mark[-1], True, "")


def searching(regexp: Regexp) -> Search:
    """Return a function that returns the first match in a text, or None.

    Python tries every way to divide a text among the repetitions, so that eight of them take minutes for
    forty characters, and templates may come with models from strangers. Where there are few, Python is
    faster.
    """
    counts = [item.times for item in regexp.items]
    if counts.count("*") > 1 or counts.count("?") > _MOST_OPTIONAL:
        return lambda text: search(regexp, text)
    compiled = re.compile(translated(regexp), re.DOTALL)

    def found(text: str) -> str | None:
        match = compiled.search(text)
        return None if match is None else match[0]

    return found


def translated(regexp: Regexp) -> str:
    """Return a regexp in Python's syntax."""
    counts = {"": "", "*": "*?", "?": "?"}
    middle = "".join(_class(item) + counts[item.times] for item in regexp.items)
    return r"\A" * regexp.at_start + middle + r"\Z" * regexp.at_end


def _class(item: Item) -> str:
    return f"[{'' if item.among else '^'}{re.escape(item.characters)}]" if item.characters else "."


def search(regexp: Regexp, text: str) -> str | None:
    """Return the first match, trying every item at every character once at most.

    What could not be matched from an item and a character on can never be, whatever was matched before.
    """
    tried: set[tuple[int, int]] = set()
    for start in range(1 if regexp.at_start else len(text) + 1):
        left = [(0, start)]
        while left:
            at = left.pop()
            if at in tried:
                continue
            tried.add(at)
            k, p = at
            if k < len(regexp.items):
                left += _ways(regexp.items[k], text, k, p)
            elif p == len(text) or not regexp.at_end:
                return text[start:p]
    return None


def _ways(item: Item, text: str, k: int, p: int) -> list[tuple[int, int]]:
    """Return where to go on from item k and character p, the best way last."""
    fits = p < len(text) and (text[p] in item.characters) == item.among
    if item.times == "*":
        return [(k, p + 1), (k + 1, p)] if fits else [(k + 1, p)]
    taken = [(k + 1, p + 1)] if fits else []
    return [(k + 1, p), *taken] if item.times == "?" else taken
