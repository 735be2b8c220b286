"""Attribute files of CRFsuite: a token per line, a blank line after a sequence.

A line is the label and the attributes of a token, separated by tabs. An attribute may end in a colon and a
number, its value, which is 1 otherwise. In names, ``\\:`` stands for a colon and ``\\\\`` for a backslash.

Attributes are numbered in compiled code, and only the distinct ones become Python objects. With 19
attributes per token, the training set of CoNLL-2000 has four million, of which 0.34 million are distinct.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.sequences import NumberedSequences
from maxmargin.encoding.table import number_fields
from maxmargin.files.sources import Malformed, Source
from maxmargin.runtime.arrays import IntArray
from maxmargin.runtime.wording import quoted

# What stands for an escaped backslash and an escaped colon until values are split off.
_BACKSLASH, _COLON = "\0", "\1"
_DECLARATION = "@"


class Sequences(NamedTuple):
    """Sequences of tokens, their labels, and the number of lines of the file up to their end."""

    X: NumberedSequences
    y: list[list[str]]
    stop: int


def read_attributes(source: Source, *, labelled: bool = True, size: int | None = None) -> Iterator[Sequences]:
    """Yield the sequences of a file, some at a time.

    Parameters
    ----------
    source : Source
    labelled : bool
        Whether all tokens must have a label; if not, it may be empty, but its tab stays.
    size : int, optional
        About how many bytes to read at a time; by default all of them at once.

    Raises
    ------
    Malformed
        If a line has no label, or an attribute a value that is not a finite number.
    """
    n_lines = source.n_skipped
    for block in source.blocks(size):
        found = read_block(source, block, n_lines, labelled=labelled)
        yield found
        n_lines = found.stop


def read_block(source: Source, block: bytes, n_before: int, *, labelled: bool) -> Sequences:
    """Return the sequences in some bytes of a file, which follow this many lines; see `read_attributes`."""
    text = block if block.endswith(b"\n") else block + b"\n"
    return _Block(source, text, n_before).sequences(labelled)


class _Block:
    """Whole lines of a file, after some others."""

    def __init__(self, source: Source, text: bytes, n_before: int) -> None:
        self.source, self.text, self.n_before = source, text, n_before
        self.fields = number_fields(text)
        self.marked = self._decoded()

    def sequences(self, labelled: bool) -> Sequences:
        """Return the sequences of the block."""
        codes, counts, _ = self.fields
        firsts = np.cumsum(counts) - counts
        is_attribute = codes != (self.marked.index("") if "" in self.marked else -1)
        is_blank = (counts == 1) & ~is_attribute[firsts]
        nameless = np.flatnonzero(~is_blank & ~is_attribute[firsts])
        if labelled and len(nameless):
            raise self.source.error(
                self.n_before + int(nameless[0]) + 1, "a label before the first tab", "none"
            )
        labels = self._labels(codes[firsts[~is_blank]])
        is_attribute[firsts] = True
        empty = np.searchsorted(firsts, np.flatnonzero(~is_attribute), side="right") - 1
        per_line = counts - 1 - np.bincount(empty, minlength=len(counts))
        is_attribute[firsts] = False
        offsets = _offsets(is_blank)
        X = NumberedSequences(*self._attributes(codes[is_attribute]), per_line[~is_blank], offsets)
        stop = self.n_before + len(counts)
        return Sequences(X, [labels[a:b] for a, b in pairwise(offsets.tolist())], stop)

    def _decoded(self) -> list[str]:
        """Return the distinct fields as texts, in which marks stand for escapes."""
        try:
            if b"\xff" in self.text:  # which ends names in the table
                self.text.decode("utf-8")
            # Fields have no line ends, so that joined they can be decoded and unescaped by few calls.
            text = self.fields.names.tobytes()[:-1].replace(b"\xff", b"\n").decode("utf-8")
        except UnicodeDecodeError:
            raise self._fault() from None
        for mark in (_BACKSLASH, _COLON):
            if mark in text:
                k = next(k for k, name in enumerate(text.split("\n")) if mark in name)
                raise self._error(k, "text", f"the control character {mark!r}")
        return text.replace("\\\\", _BACKSLASH).replace("\\:", _COLON).split("\n")

    def _labels(self, codes: NDArray[np.int32]) -> list[str]:
        """Return the labels of all tokens."""
        text = {code: self._label(code) for code in np.unique(codes).tolist()}
        return [text[code] for code in codes.tolist()]

    def _label(self, code: int) -> str:
        """Return a label; raise if it is a declaration."""
        label = _unescaped(self.marked[code])
        if label.startswith(_DECLARATION):
            raise self._error(code, "a label: declarations such as @weight are not supported", quoted(label))
        return label

    def _attributes(
        self, codes: NDArray[np.int32]
    ) -> tuple[list[str], NDArray[np.int32], NDArray[np.float64] | None]:
        """Return the distinct names of attributes, the number of each attribute's name, and their values."""
        used = np.zeros(len(self.marked), dtype=np.bool_)
        used[codes] = True
        places = np.flatnonzero(used)
        marked = [self.marked[place] for place in places.tolist()]
        text, values = "\n".join(marked), None
        if ":" in text:
            value = np.ones(len(self.marked))
            for k, place in enumerate(places.tolist()):
                if ":" in marked[k]:
                    marked[k], value[place] = self._parsed(place)
            text, values = "\n".join(marked), value[codes]
        names = _unescaped(text).split("\n") if marked else []
        numbers = np.arange(len(names), dtype=np.int32)
        if values is not None or "\\" in text:  # otherwise different texts are different names
            names, numbers = _numbered(names)
        number = np.zeros(len(self.marked), dtype=np.int32)
        number[places] = numbers
        return names, number[codes], values

    def _parsed(self, code: int) -> tuple[str, float]:
        """Return the name and the value of an attribute with a colon."""
        name, _, value = self.marked[code].partition(":")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not isfinite(number):
            expected = "a finite number behind ':' (write '\\:' for a colon in a name)"
            raise self._error(code, expected, quoted(_unescaped(self.marked[code])))
        return name, number

    def _fault(self) -> Malformed:
        """Return the error for the first byte that is not UTF-8."""
        try:
            self.text.decode("utf-8")
        except UnicodeDecodeError as error:
            return self.source.undecodable(self.n_before, error)
        raise AssertionError

    def _error(self, code: int, expected: str, got: str) -> Malformed:
        """Return the error for the first line that has a field."""
        stops, place = np.cumsum(self.fields.counts), np.argmax(self.fields.codes == code)
        number = self.n_before + int(np.searchsorted(stops, place, side="right")) + 1
        return self.source.error(number, expected, got)


def _offsets(is_blank: NDArray[np.bool_]) -> IntArray:
    """Return the offsets of the tokens of each sequence, which blank lines separate."""
    before = np.cumsum(~is_blank)[is_blank]
    return np.unique(np.concatenate(([0], before, [np.count_nonzero(~is_blank)])))


def _numbered(names: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Return the distinct names, and the number of each: ``a`` and ``a:2`` have one name, as have both
    texts for a backslash.
    """
    known = dict.fromkeys(names)
    numbers = dict(zip(known, range(len(known)), strict=True))
    return list(known), np.array([numbers[name] for name in names], dtype=np.int32)


def _unescaped(marked: str) -> str:
    """Return a text with the characters that escapes stood for."""
    return marked.replace(_COLON, ":").replace(_BACKSLASH, "\\")
