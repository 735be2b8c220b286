"""Dependency trees in the CoNLL-U format of Universal Dependencies.

A word is a line of ten columns separated by tabs: its number, form, lemma, universal and language-specific
part of speech, features, head, relation, and two more. Lines that start with ``#`` are comments. Ranges such
as ``2-3``, for words written as one, and empty nodes such as ``2.1`` are not words. They are kept when heads
are written.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from maxmargin.files.sources import Line, Source
from maxmargin.runtime.wording import quoted

N_COLUMNS = 10
_NUMBER, _FORM, _UPOS, _XPOS, _HEAD, _RELATION, _MISC = 0, 1, 3, 4, 6, 7, 9
TAGS = {"both": (_UPOS, _XPOS), "upos": (_UPOS,), "xpos": (_XPOS,)}
PUNCTUATION = "PUNCT"


class Sentence(NamedTuple):
    """A sentence: all its lines, with the columns of those that are words.

    Attributes
    ----------
    lines : list of str
        All lines, comments included.
    words : dict
        The columns of each word by the place of its line in ``lines``.
    line : int
        The number of the first line.
    """

    lines: list[str]
    words: dict[int, list[str]]
    line: int

    def tagged(self, tags: str) -> list[tuple[str, str]]:
        """Return the words with their tags: "upos", "xpos" or "both" joined."""
        return [(row[_FORM], "-".join(row[column] for column in TAGS[tags])) for row in self.words.values()]

    def heads(self) -> list[int]:
        """Return the heads of the words, 0 for the root and 1 for the first word."""
        return [int(row[_HEAD]) for row in self.words.values()]

    def punctuation(self) -> list[bool]:
        """Return whether each word is punctuation, by its universal part of speech."""
        return [row[_UPOS] == PUNCTUATION for row in self.words.values()]

    def with_heads(self, heads: Sequence[int], notes: Sequence[str] | None = None) -> list[str]:
        """Return the lines with other heads, and with notes in the last column.

        The relation of a word whose head changes is not known, and is left out.
        """
        lines = list(self.lines)
        for k, ((place, row), head) in enumerate(zip(self.words.items(), heads, strict=True)):
            new = list(row)
            if row[_HEAD] != str(head):
                new[_HEAD], new[_RELATION] = str(head), "_"
            if notes is not None:
                new[_MISC] = notes[k] if row[_MISC] == "_" else f"{row[_MISC]}|{notes[k]}"
            lines[place] = "\t".join(new)
        return lines


def read_conllu(source: Source, *, labelled: bool = True) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL-U file.

    Parameters
    ----------
    source : Source
    labelled : bool
        Whether all words must have a head; if not, a column may hold ``_`` in its place.

    Raises
    ------
    Malformed
        If a line has other than ten columns, words are not numbered 1, 2, ..., or heads do not form a tree.
    """
    found = Sentence([], {}, 1)
    for line in source.lines():
        if line.text.strip():
            row = _word(source, line, len(found.words) + 1, labelled)
            if row is not None:
                found.words[len(found.lines)] = row
            found.lines.append(line.text)
            continue
        if found.words:
            yield _checked(source, found, labelled)
        found = Sentence([], {}, line.number + 1)
    if found.words:
        yield _checked(source, found, labelled)


def _word(source: Source, line: Line, number: int, labelled: bool) -> list[str] | None:
    """Return the columns of a line, or None if it is a comment, a range or an empty node."""
    if line.text.startswith("#"):
        return None
    row = line.text.split("\t")
    if len(row) != N_COLUMNS:
        raise source.error(
            line.number, f"{N_COLUMNS} columns separated by tabs", f"{len(row)}: {quoted(line.text)}"
        )
    if not _is_number(row[_NUMBER]):
        if not _is_number(row[_NUMBER].replace("-", "", 1).replace(".", "", 1)):
            raise source.error(line.number, "the number of a word", quoted(row[_NUMBER]))
        return None
    if row[_NUMBER] != str(number):
        raise source.error(line.number, f"word {number}", quoted(row[_NUMBER]))
    if labelled and not _is_number(row[_HEAD]):
        raise source.error(line.number, "the number of a head", quoted(row[_HEAD]))
    return row


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _checked(source: Source, sentence: Sentence, labelled: bool) -> Sentence:
    """Return the sentence; raise if it has heads that do not form a tree with one root."""
    if not labelled:
        return sentence
    heads, places = [0, *sentence.heads()], list(sentence.words)
    for place, head in zip(places, heads[1:], strict=True):
        if head > len(places):
            raise source.error(sentence.line + place, f"a head from 0 to {len(places)}", str(head))
    n_roots = heads[1:].count(0)
    if n_roots != 1:
        raise source.error(
            sentence.line + places[0], "a sentence with one root, a word of head 0", str(n_roots)
        )
    for word, place in enumerate(places, start=1):
        node, steps = word, 0
        while node and steps <= len(places):
            node, steps = heads[node], steps + 1
        if node:
            raise source.error(sentence.line + place, "a tree", f"a cycle above word {word}")
    return sentence
