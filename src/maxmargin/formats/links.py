"""Word alignments: a line per pair of sentences, its links ``i-j`` from word i to word j, counted from 0.

Sure links are written ``3-4``, possible ones ``3?4`` or ``3p4``.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from maxmargin.formats.sources import Source
from maxmargin.wording import quoted

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
