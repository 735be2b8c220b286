"""Encode files of sequences into a corpus.

Files are read block by block, with the place up to which they were read.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from maxmargin.encoding.kinds import Kind
from maxmargin.encoding.labels import Label
from maxmargin.encoding.sequences import MOST_BITS, NumberedSequences, numbered
from maxmargin.files.attributes import read_attributes
from maxmargin.files.columns import ColumnFeatures, column_features, read_columns
from maxmargin.files.corpus import Input, Recipe
from maxmargin.files.corpus.opening import Corpus, open_corpus
from maxmargin.files.corpus.writing import CorpusWriter, Place
from maxmargin.files.detection import ATTRIBUTES, COLUMNS, JSON, detect
from maxmargin.files.json_lines import read_json_lines
from maxmargin.files.sealed import Json
from maxmargin.files.sources import STANDARD, UTF_8, Source, encoding_named
from maxmargin.runtime.wording import described, shown
from maxmargin.solving.display import WorkLine

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


def reader_of(path: str, form: str, template: str | None, encoding: str) -> Reader:
    """Return the reader for a file: by its first lines if the format is "auto"."""
    with Source(path, encoding) as source:
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
    return numbered(list[object](X), kind)


PathLike = str | os.PathLike[str]


def encode_files(
    files: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    format: str = "auto",
    template: PathLike | None = None,
    min_count: int = 1,
    hash_bits: int | None = None,
    encoding: str = UTF_8,
    verbose: int = 1,
) -> Corpus:
    """Turn files of labelled sequences into a directory of arrays, which `fit` uses without reading them all.

    Memory does not grow with the files, but with the number of distinct names, unless these are hashed. The
    files are read once. After an interruption, even ``kill -9``, call it again: it continues from where it
    was a few seconds before. A directory can be opened only when it is complete.

    Parameters
    ----------
    files : path or list of paths
        All of one format; they may be compressed by gzip.
    output : path
        The directory: a new or empty one, or one to continue. If it already holds a corpus of the same
        files, nothing is done.
    format : {"auto", "columns", "attributes", "json"}, default="auto"
        The format of the files; by default it is recognised by the first lines. Column files have a token per
        line, with its label in the last column. Attribute files are those of crfsuite. JSON lines have a
        sequence per line, ``{"tokens": [["w=the"], ["w=dog"]], "labels": ["DET", "NOUN"]}``; a token is a
        list of names or an object ``{name: value}``.
    template : path, optional
        Template of features in the syntax of CRF++, for column files, without features of pairs of labels
        such as ``B01:%x[0,0]``; without a template, words get the default features of ``maxmargin train``.
    min_count : int, default=1
        Leave out named features that occur in fewer tokens.
    hash_bits : int, optional
        Number the features by hashes of their names, from 0 to ``2**hash_bits - 1``, for data with more names
        than memory can hold. Names that share a number share their weights, and weights can be inspected by
        number only. From 1 to 30; 22 keeps most of a million names apart.
    encoding : str, default="utf-8"
        The encoding of files and template, as Python names it, such as "latin-1".
    verbose : {0, 1, 2}, default=1
        Progress: none, on terminals and in notebooks, also in logs.

    Returns
    -------
    Corpus
        As `open_corpus` returns it.

    Raises
    ------
    ValueError
        If a file is malformed; the message names file and line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from maxmargin import ChainSVC, encode_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "data.json")
    ...     line = '{"tokens": [["the"], ["dog"]], "labels": ["DET", "NOUN"]}'
    ...     _ = path.write_text(line)
    ...     corpus = encode_files([path], Path(folder, "corpus"))
    ...     model = ChainSVC(C=10, random_state=0).fit(corpus)
    >>> model.predict([[["the"], ["dog"], ["dog"]]])
    [['DET', 'NOUN', 'NOUN']]
    """
    paths = _checked_files(files)
    _check_numbers(min_count, hash_bits)
    if format not in ("auto", *FORMATS):
        raise ValueError(f"encode: format must be one of {('auto', *FORMATS)}, got {shown(format)}.")
    known = encoding_named(encoding) if isinstance(encoding, str) else None
    if known is None:
        raise ValueError(f"encode: encoding must be one that Python knows, got {shown(encoding)}.")
    reader = reader_of(paths[0], format, None if template is None else os.fspath(template), known)
    bits = None if hash_bits is None else int(hash_bits)
    recipe = Recipe(reader.format, reader.settings, int(min_count), bits, known)
    with CorpusWriter(output, recipe, list(map(_identity, paths))) as writer:
        if not writer.is_complete:
            _read_all(paths, reader, writer, verbose)
            writer.finish(verbose)
    return open_corpus(output)


def _read_all(paths: list[str], reader: Reader, writer: CorpusWriter, verbose: int) -> None:
    """Append the rest of the files."""
    sizes = [int(size) for _, size, _ in writer.inputs]
    begin = writer.place
    with _few_collections() as collect, WorkLine("encode", sum(sizes), verbose) as line:
        for k in range(begin.files, len(paths)):
            with Source(paths[k], writer.recipe.encoding) as source:
                source.skip(begin.lines if k == begin.files else 0)
                for block in reader.blocks(source):
                    writer.append(block.X, block.y)
                    writer.note(Place(k, block.stop))
                    line.update(sum(sizes[:k]) + source.position)
                    collect()
            if _identity(paths[k]) != writer.inputs[k]:
                raise ValueError(f"encode: {paths[k]} has changed while it was read; encode again.")
            writer.place = Place(k + 1)


@contextmanager
def _few_collections() -> Iterator[Callable[[], object]]:
    """Collect garbage only when asked: the lists of a block have no cycles, and the search takes long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield (lambda: gc.collect(1)) if was_enabled else (lambda: None)
    finally:
        if was_enabled:
            gc.enable()


def _identity(path: str) -> Input:
    """Return name, size and time of the last change of a file: they show whether it has changed."""
    status = os.stat(path)
    return [path, status.st_size, status.st_mtime_ns]


def _checked_files(files: PathLike | Sequence[PathLike]) -> list[str]:
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    if not paths or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise ValueError(f"encode: files must be one or more paths, got {described(files)}.")
    found = [os.fspath(path) for path in paths]
    if STANDARD in found:
        raise ValueError(
            "encode: files must be files, which can be read again after an interruption, got '-', standard "
            "input; write it to a file first."
        )
    return found


def _check_numbers(min_count: object, hash_bits: object) -> None:
    if not _is_between(min_count, 1, 2**62):
        raise ValueError(f"encode: min_count must be an int >= 1, got {shown(min_count)}.")
    if hash_bits is not None and not _is_between(hash_bits, 1, MOST_BITS):
        raise ValueError(f"encode: hash_bits must be an int from 1 to {MOST_BITS}, got {shown(hash_bits)}.")
    if hash_bits is not None and min_count != 1:
        raise ValueError(f"encode: min_count must be 1 where names are hashed, got {shown(min_count)}.")


def _is_between(value: object, least: int, most: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most
