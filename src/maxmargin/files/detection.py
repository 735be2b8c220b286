"""Recognise the format of a data file by its first lines."""

import codecs
import re
from typing import NamedTuple

from maxmargin.files.columns import split_fields
from maxmargin.files.conllu import N_COLUMNS
from maxmargin.files.sources import Malformed, Source

COLUMNS, ATTRIBUTES, SVMHMM, SVMLIGHT, CONLLU = "columns", "attributes", "svmhmm", "svmlight", "conllu"
JSON = "json"
FORMATS = (COLUMNS, ATTRIBUTES, SVMHMM, SVMLIGHT, CONLLU, JSON)
_MOST_LINES = 100
_SVMLIGHT = re.compile(r"(?:[-+]?\d[^\s:]*)?(?:\s+qid:\d+)?(?:\s*\d+:\S+)*\s*(?:#.*)?")
_QUERY = re.compile(r"\bqid:\d+\b")


class Detected(NamedTuple):
    """A format, and what was seen of it, for messages."""

    name: str
    seen: str


def detect(source: Source) -> Detected:
    """Return the format that the first lines of a file are in.

    JSON lines begin with a brace and have "tokens". Files of SVM^light have features ``number:value``, files
    of SVM^hmm also ``qid``. CoNLL-U has ten columns, the first of them a number. Attribute files are
    separated by tabs and have ``=`` in most attributes, or lines with different numbers of them. Everything
    else is a column file, such as one whose lines have as many columns, here by tabs and there by spaces.

    Raises
    ------
    Malformed
        If there is no line that is not blank, or if the lines are not text.
    """
    lines = [line for line in _first_lines(source) if line.strip()]
    if not lines:
        raise Malformed(f"{source.name}: expected data, got no line that is not blank")
    if all(map(_is_object, lines)):
        return Detected(JSON, "an object with tokens per line")
    words = [line for line in lines if not line.startswith("#")]
    if words and all(map(_is_word, words)):
        return Detected(CONLLU, "10 columns, the first a number")
    if all(map(_SVMLIGHT.fullmatch, lines)) and any(":" in line for line in lines):
        has_queries = any(map(_QUERY.search, lines))
        return Detected(
            *((SVMHMM, "features and qid") if has_queries else (SVMLIGHT, "features without qid"))
        )
    if _are_attributes(lines):
        return Detected(ATTRIBUTES, "a label and attributes, separated by tabs")
    width = len(split_fields(lines[0]))
    return Detected(COLUMNS, f"{width} per token, the last is the label")


def _first_lines(source: Source) -> list[str]:
    """Return some lines from the beginning; the last may be incomplete, and is left out if there are more."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(source.peek())
    except UnicodeDecodeError as error:
        raise source.undecodable(0, error) from None
    lines = text.replace("\r", "").split("\n")
    return lines[: max(1, min(len(lines) - 1, _MOST_LINES))]


def _is_object(line: str) -> bool:
    return line.startswith("{") and '"tokens"' in line


def _is_word(line: str) -> bool:
    row = line.split("\t")
    return len(row) == N_COLUMNS and row[0][:1].isdigit()


def _are_attributes(lines: list[str]) -> bool:
    rows = [line.split("\t") for line in lines]
    attributes = [field for row in rows for field in row[1:]]
    if 2 * sum("=" in field for field in attributes) > len(attributes):
        return True
    widths = {len(row) for row in rows}, {len(split_fields(line)) for line in lines}
    return bool(attributes) and min(map(len, widths)) > 1
