r"""Feature patterns in the syntax of Wapiti, which are almost those of CRF++.

A line ``u:%x[-1,0]`` makes one feature of each token. Beside ``%x[row,column]``, the entry itself, there are
``%t[row,column,"regexp"]``, which is ``true`` or ``false``, and ``%m[row,column,"regexp"]``, the first part
of the entry that matches. A capital, as in ``%X``, makes letters small, and ``@`` before a row counts from
the start of the sentence, from 1, or from its end, from -1. Rows before a sentence read ``_x-1``, ...,
``_x-4`` and then ``_x-#``, rows after it ``_x+1``, ... Everything from a ``#`` on is a comment. A line that
begins with ``b`` makes a feature of each token but the first, for pairs of labels, and one that begins with
``*`` makes both. `maxmargin.formats.regexps` has the syntax of regexps.
"""

import re
from collections.abc import Callable

from maxmargin.formats.macros import Cell, Macro, Template
from maxmargin.formats.regexps import Search, parsed, searching
from maxmargin.formats.sources import Malformed, malformed
from maxmargin.wording import quoted

_COMMAND = re.compile(
    r"%([xtmXTM])\[\s*(@?)\s*([-+]?\d{1,9})\s*,\s*(\d{1,9})\s*(?:,\s*\"((?:[^\"\\]|\\.)*)\"\s*)?\]"
)
# How far rows may look, and where edges cease to be counted.
_REACH, _COUNTED = 100, 4


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
        found = _parsed(pattern, name, number)
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


def _parsed(pattern: str, name: str, number: int) -> Macro:
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
    if abs(int(row)) > _REACH:
        raise ValueError(f"rows from -{_REACH} to {_REACH}")
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
