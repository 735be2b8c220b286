"""Files to read, compressed or not, and standard input: lines with numbers, and errors that name them."""

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, cast

STANDARD = "-"
_GZIP_MAGIC = b"\x1f\x8b"
UTF_8 = "utf-8"
# What is read ahead to recognise the format: some sentences of any format.
_PEEK = 1 << 16


class Malformed(ValueError):
    """A file that is not in the format expected of it."""


def encoding_named(name: str) -> str | None:
    """Return Python's own name of an encoding of text, or None if there is none of this name."""
    try:
        "".encode(name)
        codecs.getincrementaldecoder(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return None


def malformed(name: str, number: int, expected: str, got: str) -> Malformed:
    """Return the error for a line of a file."""
    return Malformed(f"{name}:{number}: expected {expected}, got {got}")


class Line(NamedTuple):
    """A line of text without its end, and its number, from 1."""

    number: int
    text: str


class Source:
    """An open file, or standard input for ``-``, as UTF-8; decompressed if it starts like a gzip file.

    Parameters
    ----------
    path : str or path-like
        The file, or ``"-"``.
    encoding : str, default="utf-8"
        The encoding of its text, by Python's own name (`encoding_named`).

    Attributes
    ----------
    n_skipped : int
        The number of lines that were passed over by `skip`.
    """

    def __init__(self, path: str | os.PathLike[str], encoding: str = UTF_8) -> None:
        is_standard = os.fspath(path) == STANDARD
        self.n_skipped, self.encoding = 0, encoding
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
        """Decompress what is compressed, recode what is not UTF-8, skip a byte order mark, refuse bytes."""
        if self._stream.peek(2)[:2] == _GZIP_MAGIC:
            unzipped = cast("io.RawIOBase", gzip.GzipFile(fileobj=self._stream))
            self._stream = io.BufferedReader(unzipped, _PEEK)
        if self.encoding != UTF_8:
            recoded = cast("io.RawIOBase", _Recoded(self._stream, self))
            self._stream = io.BufferedReader(recoded, _PEEK)
        head = self.peek()
        if head.startswith(codecs.BOM_UTF8):
            self._stream.read(len(codecs.BOM_UTF8))
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise self.error(1, "text in UTF-8", f"a byte order mark of UTF-16; {_to_do('utf-16')}")
        if b"\0" in head:
            number = head.count(b"\n", 0, head.index(b"\0")) + 1
            raise self.error(number, "text", "a zero byte: the file is binary, or its --encoding is another")

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
                    raise self.undecodable(number - 1, error) from None
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

    def undecodable(self, n_before: int, error: UnicodeDecodeError) -> Malformed:
        """Return the error for a byte that is not in the encoding, in bytes that follow this many lines."""
        number = n_before + error.object.count(b"\n", 0, error.start) + 1
        name = "UTF-8" if self.encoding == UTF_8 else self.encoding
        byte = f"byte {error.object[error.start]:#04x}"
        return self.error(number, f"text in {name}", f"{byte}; {_to_do('latin-1')}")


def _to_do(encoding: str) -> str:
    return f"give the encoding of the file, such as --encoding {encoding}"


class _Recoded(io.RawIOBase):
    """A stream of a source, from the encoding of the source to UTF-8."""

    def __init__(self, stream: "io.BufferedReader[Any]", source: Source) -> None:
        self._stream, self._source = stream, source
        self._decoder = codecs.getincrementaldecoder(source.encoding)()
        self._ready, self._is_done, self._n_lines = b"", False, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: "memoryview[int]") -> int:  # type: ignore[override]
        """Write the next bytes, and return how many; zero at the end."""
        while not self._ready and not self._is_done:
            raw = self._stream.read1(_PEEK)
            self._ready, self._is_done = self._utf_8(raw), not raw
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n

    def _utf_8(self, raw: bytes) -> bytes:
        """Return the next characters; without bytes, this is the end."""
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise self._source.undecodable(self._n_lines, error) from None
        self._n_lines += text.count("\n")
        return text.encode(UTF_8)


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
