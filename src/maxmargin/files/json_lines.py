"""JSON lines: a sequence per line, as an object with its tokens and their labels.

``{"tokens": [["w=the", "cap"], ["w=dog"]], "labels": ["DET", "NOUN"]}``. A token is a list of strings, the
names of its features, or an object ``{name: value}`` with numbers, strings, truth values, lists of strings
and such objects, named as `SequenceEncoder` names them; all tokens of a file are of the same kind. Labels are
strings or whole numbers, all alike. Other names in an object are ignored, and so are blank lines.
"""

import json
from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple, NoReturn, cast

from maxmargin.encoding.labels import Label
from maxmargin.files.sealed import Json
from maxmargin.files.sources import Line, Malformed, Source
from maxmargin.runtime.wording import quoted

_KINDS: dict[type, str] = {list: "a list of strings", dict: "an object of names and values"}


# The names of features, or their values by name.
Token = list[str] | dict[str, Json]


class JsonSequence(NamedTuple):
    """A sequence: its tokens, their labels, and the number of its line."""

    tokens: list[Token]
    labels: list[Label]
    line: int


def read_json_lines(source: Source, *, labelled: bool = True) -> Iterator[JsonSequence]:
    """Yield the sequences of a file.

    Parameters
    ----------
    source : Source
    labelled : bool
        Whether all sequences must have labels; if not, they may lack them.

    Raises
    ------
    Malformed
        If a line is not such an object.
    """
    kind: type | None = None
    of_labels: type | None = None
    for line in source.lines():
        if line.text.strip():
            found = _Line(source, line).sequence(labelled, kind, of_labels)
            kind = kind or next(map(type, found.tokens), None)
            of_labels = of_labels or next(map(type, found.labels), None)
            yield found


class _Line:
    """A line that is not blank."""

    def __init__(self, source: Source, line: Line) -> None:
        self.source, self.line = source, line

    def sequence(self, labelled: bool, kind: type | None, of_labels: type | None) -> JsonSequence:
        """Return the sequence; raise unless tokens and labels are of these kinds, of any if it is None."""
        data = self._parsed()
        tokens = data.get("tokens")
        if not isinstance(tokens, list):
            self._fail('an object with a list of "tokens"', self.line.text)
        for token in tokens:
            kind = kind or type(token)
            if type(token) is not kind or kind not in _KINDS:
                expected = _KINDS.get(kind, " or ".join(_KINDS.values()))
                self._fail(f"each token to be {expected}", token)
            self._check_token(cast("Token", token))
        labels = data.get("labels", None if labelled else [])
        if not isinstance(labels, list) or (labelled and len(labels) != len(tokens)):
            self._fail(f'"labels", a list of {len(tokens)}, one for each token', labels)
        self._check_labels(labels, of_labels)
        return JsonSequence(cast("list[Token]", tokens), cast("list[Label]", labels), self.line.number)

    def _parsed(self) -> dict[str, Json]:
        try:
            found: Json = json.loads(self.line.text)
        except (ValueError, RecursionError) as error:
            raise Malformed(
                f"{self.source.name}:{self.line.number}: expected a JSON object, got {error}"
            ) from None
        return found if isinstance(found, dict) else {}

    def _check_token(self, token: Token) -> None:
        parts: list[object] = [token]
        for part in parts:  # grows on the way, as objects may be nested deeper than functions
            if isinstance(part, dict):
                parts += part.values()
            elif isinstance(part, list):
                wrong = [name for name in part if type(name) is not str]
                if wrong:
                    self._fail("names that are strings", wrong[0])
            elif not _is_value(part):
                self._fail("finite numbers or strings", part)

    def _check_labels(self, labels: list[Json], kind: type | None) -> None:
        wrong = [label for label in labels if type(label) not in (str, int)]
        if wrong:
            self._fail("labels that are strings or whole numbers", wrong[0])
        others = [label for label in labels if type(label) is not (kind or type(labels[0]))]
        if others:
            expected = "strings" if kind is str else "whole numbers"
            self._fail(f"labels that are {expected}, as those before", others[0])

    def _fail(self, expected: str, got: object) -> NoReturn:
        raise self.source.error(self.line.number, expected, quoted(got))


def _is_value(value: object) -> bool:
    """Whether a value is a string or a number that fits into a float."""
    if isinstance(value, int):
        return abs(value) < 2**1023
    return isinstance(value, str) or (isinstance(value, float) and isfinite(value))
