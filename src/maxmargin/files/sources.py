"""Files to read, compressed or not, and standard input: lines with numbers, and errors that name them."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, cast

STANDARD = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What is read ahead to recognise the format: some sentences of any format.
_PEEK = 1 << 16


class Malformed(ValueError):
    """A file that is not in the format expected of it."""


def malformed(name: str, number: int, expected: str, got: str) -> Malformed:
    """Return the error for a line of a file."""
    return Malformed(f"{name}:{number}: expected {expected}, got {got}")


class Line(NamedTuple):
    """A line of text without its end, and its number, from 1."""

    number: int
    text: str


class Source:
    """An open file, or standard input for ``-``; decompressed if it starts like a gzip file.

    Parameters
    ----------
    path : str or path-like
        The file, or ``"-"``.

    Attributes
    ----------
    n_skipped : int
        The number of lines that were passed over by `skip`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        is_standard = os.fspath(path) == STANDARD
        self.n_skipped = 0
        self.name = "standard input" if is_standard else os.fspath(path)
        # Standard input stays open for others.
        self._file = None if is_standard else io.BufferedReader(io.FileIO(path), _PEEK)
        self._stream = self._file or _standard_input()
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise

    def _begin(self) -> None:
        """Decompress what is compressed, and skip a byte order mark."""
        if self._stream.peek(2)[:2] == _GZIP_MAGIC:
            unzipped = cast("io.RawIOBase", gzip.GzipFile(fileobj=self._stream))
            self._stream = io.BufferedReader(unzipped, _PEEK)
        if self.peek().startswith(_BYTE_ORDER_MARK):
            self._stream.read(len(_BYTE_ORDER_MARK))

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._stream.close()
            self._file.close()

    def peek(self) -> bytes:
        """Return the first bytes that are not read yet, without reading them."""
        with _sound_gzip(self):
            head = self._stream.peek(_PEEK)
        return head

    def skip(self, n_lines: int) -> None:
        """Pass over the first lines; the others keep their numbers."""
        with _sound_gzip(self):
            self.n_skipped += sum(1 for _ in islice(self._stream, n_lines))

    @property
    def position(self) -> int:
        """How many bytes of the file have been read, compressed if they are; zero for standard input."""
        return 0 if self._file is None else self._file.tell()

    def lines(self) -> Iterator[Line]:
        """Yield the lines, without their ends."""
        with _sound_gzip(self):
            for number, raw in enumerate(self._stream, start=self.n_skipped + 1):
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise self.error(number, "text in UTF-8", f"byte {raw[error.start]:#04x}") from None
                yield Line(number, text.rstrip("\r\n"))

    def blocks(self, size: int | None) -> Iterator[bytes]:
        """Yield blocks of whole lines that end with a blank line, of about ``size`` bytes; or all at once."""
        rest = b""
        with _sound_gzip(self):
            while block := self._stream.read(size):
                rest += block
                end = len(rest) if size is None else _last_gap(rest)
                if end:
                    yield rest[:end]
                    rest = rest[end:]
        if rest:
            yield rest

    def line_blocks(self, size: int | None) -> Iterator[bytes]:
        """Yield blocks of whole lines of about ``size`` bytes; or all at once."""
        with _sound_gzip(self):
            while block := self._stream.read(size):
                yield block + self._stream.readline()

    def error(self, number: int, expected: str, got: str) -> Malformed:
        """Return the error for a line."""
        return malformed(self.name, number, expected, got)


def _standard_input() -> "io.BufferedReader[io.RawIOBase]":
    """Return standard input as a stream that can be peeked at, whatever stands in for it."""
    if sys.stdin is None:
        raise Malformed("standard input: expected data, got a closed stream")
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:  # a stream of text
        stream = io.BytesIO(sys.stdin.read().encode("utf-8", "surrogatepass"))
    found = stream if hasattr(stream, "peek") else _Borrowed(stream, _PEEK)
    return cast("io.BufferedReader[io.RawIOBase]", found)


class _Borrowed(io.BufferedReader):
    """A buffer around a stream of others, which stays open."""

    def close(self) -> None:
        """Leave the stream as it is."""


class _sound_gzip:
    """A context in which faults of the compressed data are errors of one line."""

    def __init__(self, source: Source) -> None:
        self.name = source.name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
            text = " ".join(str(error).split())
            raise Malformed(f"{self.name}: expected intact gzip data, got damaged data ({text})") from None


def _last_gap(text: bytes) -> int:
    """Return where the last blank line in ``text`` ends, or 0."""
    places = ((text.rfind(gap), len(gap)) for gap in (b"\n\n", b"\n\r\n"))
    return max(place + length if place >= 0 else 0 for place, length in places)
