"""Feature templates in the syntax of CRF++.

A line ``U01:%x[-1,0]/%x[0,1]`` makes one feature of each token: the line with each macro ``%x[row,column]``
replaced by the entry of that column, counted from 0, of the token that is ``row`` tokens away. Rows before a
sentence read ``_B-1``, ``_B-2``, ..., counted from its start, and rows after it ``_B+1``, ``_B+2``, ... Lines
that begin with ``#`` are comments. The line ``B`` asks for a weight of each pair of neighbouring labels.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from maxmargin.formats.sources import Malformed, malformed
from maxmargin.wording import quoted

# As far as CRF++ lets macros look.
_REACH = 8
BEFORE = [f"_B-{k}" for k in range(_REACH, 0, -1)]
AFTER = [f"_B+{k}" for k in range(1, _REACH + 1)]
_MACRO = re.compile(r"%x\[\s*([-+]?\d+)\s*,\s*(\d+)\s*\]")
_UNIGRAM, _BIGRAM, _COMMENT = "U", "B", "#"


class Macro(NamedTuple):
    """A template: its text with ``%s`` in the place of each macro, and the (row, column) of each."""

    text: str
    places: tuple[tuple[int, int], ...]


class Template:
    """Templates of features.

    Parameters
    ----------
    macros : iterable of Macro
        One per feature of a token.
    transitions : bool
        Whether pairs of labels are to have weights.

    Attributes
    ----------
    n_columns : int
        The number of columns that the macros need.
    """

    def __init__(self, macros: Iterable[Macro], *, transitions: bool = True) -> None:
        self.macros, self.transitions = tuple(macros), transitions
        self.n_columns = 1 + max((c for macro in self.macros for _, c in macro.places), default=-1)

    def features(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the features of each token of a sentence, in the order of the templates.

        Examples
        --------
        >>> template = parse_template("U01:%x[-1,0]/%x[0,0]")
        >>> template.features([["He", "PRP"], ["runs", "VBZ"]])
        [['U01:_B-1/He'], ['U01:He/runs']]
        """
        columns = [[*BEFORE, *column, *AFTER] for column in zip(*rows, strict=True)]
        made = [_expanded(macro, columns, len(rows)) for macro in self.macros]
        return [list(features) for features in zip(*made, strict=True)]


def _expanded(macro: Macro, columns: list[list[str]], n: int) -> list[str]:
    """Return the feature that a template makes of each of n tokens."""
    entries = [columns[c][_REACH + r : _REACH + r + n] for r, c in macro.places]
    if len(entries) == 1:
        before, after = macro.text.split("%s")
        return [before + entry + after for entry in entries[0]]
    return [macro.text % entry for entry in zip(*entries, strict=True)] if entries else [macro.text] * n


def parse_template(text: str, name: str = "template") -> Template:
    """Return the templates of a text.

    Parameters
    ----------
    text : str
        The lines of a template file of CRF++.
    name : str
        The name of the file, for errors.

    Raises
    ------
    Malformed
        If a line is no template, or asks for features of pairs of labels, which no model here has.
    """
    macros, transitions = [], False
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line or line.startswith(_COMMENT):
            continue
        if line.startswith(_BIGRAM) and "%" not in line:
            transitions = True
        elif line.startswith(_UNIGRAM):
            macros.append(_parsed(line, name, number))
        else:
            raise _unknown(line, name, number)
    if not macros:
        raise Malformed(f"{name}: expected a template such as U00:%x[0,0], got none")
    return Template(macros, transitions=transitions)


def macro(text: str) -> Macro:
    """Return the template of a text with macros."""
    places = tuple((int(row), int(column)) for row, column in _MACRO.findall(text))
    return Macro(_MACRO.sub("%s", text), places)


def _parsed(line: str, name: str, number: int) -> Macro:
    """Return the template of a line; raise if a macro is malformed or looks too far."""
    if "%" in _MACRO.sub("", line):
        raise malformed(name, number, "%x[row,column] after each %", quoted(line))
    found = macro(line)
    far = next((row for row, _ in found.places if abs(row) > _REACH), None)
    if far is not None:
        raise malformed(name, number, f"rows from -{_REACH} to {_REACH} in %x[row,column]", str(far))
    return found


def _unknown(line: str, name: str, number: int) -> Malformed:
    if line.startswith(_BIGRAM):
        expected = "'B' alone, as weights of pairs of labels do not depend on words here"
    else:
        expected = "a template that starts with 'U', 'B' or '#'"
    return malformed(name, number, expected, quoted(line))
