"""Read files of sequences block by block, with the place up to which they were read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from maxmargin.encoding.kinds import Kind
from maxmargin.encoding.labels import Label
from maxmargin.encoding.numbered import NumberedSequences, numbered
from maxmargin.formats.attributes import read_attributes
from maxmargin.formats.column_features import ColumnFeatures, column_features
from maxmargin.formats.columns import read_columns
from maxmargin.formats.detection import ATTRIBUTES, COLUMNS, JSON, detect
from maxmargin.formats.json_lines import read_json_lines
from maxmargin.formats.sources import Source
from maxmargin.persistence.container import Json

# Tokens, or bytes, that are read at a time.
_TOKENS, _BYTES = 100_000, 1 << 24
_OWNER = "encode"
Token = TypeVar("Token")
FORMATS = (COLUMNS, ATTRIBUTES, JSON)


class Block(NamedTuple):
    """Some sequences, their labels, and the number of lines of the file up to their end."""

    X: NumberedSequences
    y: Sequence[Sequence[Label]]
    stop: int


class Reader(Protocol):
    """Reads files of a format; ``settings`` are what its task on the command line takes."""

    format: str

    @property
    def settings(self) -> dict[str, Json]: ...

    def blocks(self, source: Source) -> Iterator[Block]:
        """Yield the sequences of a file, some at a time."""


class ColumnReader:
    """Reads column files."""

    format = COLUMNS

    def __init__(self, features: ColumnFeatures) -> None:
        self.features = features

    @property
    def settings(self) -> dict[str, Json]:
        return {"template": self.features.template, "columns": self.features.columns}

    def blocks(self, source: Source) -> Iterator[Block]:
        """Yield the sentences of a file, some at a time."""
        sentences = read_columns(source, widths=(self.features.columns,))
        found = ((s.rows, s.column(-1), s.line - 1 + len(s.rows)) for s in sentences if not s.starts_document)
        return _grouped(found, self.features.numbered)


class AttributeReader:
    """Reads attribute files."""

    format = ATTRIBUTES
    settings: ClassVar[dict[str, Json]] = {}

    def blocks(self, source: Source) -> Iterator[Block]:
        """Yield the sequences of a file, some at a time."""
        return (Block(*found) for found in read_attributes(source, size=_BYTES))


class JsonReader:
    """Reads JSON lines."""

    format = JSON
    settings: ClassVar[dict[str, Json]] = {}

    def blocks(self, source: Source) -> Iterator[Block]:
        """Yield the sequences of a file, some at a time."""
        return _grouped(((s.tokens, s.labels, s.line) for s in read_json_lines(source)), _numbered)


def reader_of(path: str, form: str, template: str | None) -> Reader:
    """Return the reader for a file: by its first lines if the format is "auto"."""
    with Source(path) as source:
        found = detect(source).name if form == "auto" else form
        if found not in FORMATS:
            raise ValueError(f"{path}: expected the format {' or '.join(FORMATS)}, got {found}")
        if template is not None and found != COLUMNS:
            raise ValueError(f"template: expected a column file, got the format {found}")
        if found == COLUMNS:
            return ColumnReader(_checked(column_features(source, template), template))
    return AttributeReader() if found == ATTRIBUTES else JsonReader()


def _checked(features: ColumnFeatures, template: str | None) -> ColumnFeatures:
    """Return the features of columns; raise if encoded data have no place for some of them."""
    if features.describes_pairs:
        raise ValueError(
            f"{template}: expected features of tokens, and 'B' alone, as encoded data have no features of "
            "pairs of labels, got a template such as B01:%x[0,0]; train on the file itself"
        )
    return features


def _grouped(
    sequences: Iterable[tuple[list[Token], Sequence[Label], int]],
    number: Callable[[list[list[Token]]], NumberedSequences],
) -> Iterator[Block]:
    """Yield sequences, given as tokens, labels and last line, in blocks of about equally many tokens."""
    X: list[list[Token]] = []
    y: list[Sequence[Label]] = []
    n_tokens = stop = 0
    for tokens, labels, stop in sequences:
        X.append(tokens)
        y.append(labels)
        n_tokens += len(tokens)
        if n_tokens >= _TOKENS:
            yield Block(number(X), y, stop)
            X, y, n_tokens = [], [], 0
    if X:
        yield Block(number(X), y, stop)


def _numbered(X: list[list[Token]]) -> NumberedSequences:
    first = next((token for tokens in X for token in tokens), None)
    kind: Kind = "dicts" if isinstance(first, dict) else "strings"
    return numbered(list[object](X), kind, _OWNER)
