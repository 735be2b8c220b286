"""Feature templates in the syntax of CRF++.

A line ``U01:%x[-1,0]/%x[0,1]`` makes one feature of each token: the line with each macro ``%x[row,column]``
replaced by the entry of that column, counted from 0, of the token that is ``row`` tokens away. Rows before a
sentence read ``_B-1``, ``_B-2``, ..., counted from its start, and rows after it ``_B+1``, ``_B+2``, ... Lines
that begin with ``#`` are comments. A line ``B01:%x[0,0]`` makes one feature of each token but the first, in
the same way, which has a weight for each pair of labels of the token before and this one; the line ``B`` asks
for the same weight at all tokens. There may be lines of one kind only. `maxmargin.formats.wapiti` reads what
Wapiti adds to this.
"""

import re
from collections.abc import Iterable

from maxmargin.formats.macros import Cell, Macro, Template
from maxmargin.formats.sources import Malformed, malformed
from maxmargin.formats.wapiti import looks_like_wapiti, parse_patterns
from maxmargin.wording import quoted

# As far as CRF++ lets macros look.
_REACH = 8
_BEFORE = [f"_B-{k}" for k in range(_REACH, 0, -1)]
_AFTER = [f"_B+{k}" for k in range(1, _REACH + 1)]
_MACRO = re.compile(r"%x\[\s*([-+]?\d+)\s*,\s*(\d+)\s*\]")
_UNIGRAM, _BIGRAM, _COMMENT = "U", "B", "#"


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
