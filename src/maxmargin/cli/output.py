"""The output of commands: results on standard output, as text or JSON, and notes on standard error."""

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from typing import IO

from maxmargin.files.sources import STANDARD, UTF_8


def note(text: str, *, quiet: bool = False) -> None:
    """Write a line to standard error, unless notes are not wanted."""
    if not quiet:
        print(f"maxmargin: {text}", file=sys.stderr, flush=True)


def result(text: str, data: Mapping[str, object], as_json: bool) -> None:
    """Write a result to standard output."""
    print(json.dumps(data, ensure_ascii=False) if as_json else text, flush=True)


def margin_texts(margins: Iterable[float]) -> list[str]:
    """Return margins with six digits."""
    return [f"{margin:.6g}" for margin in margins]


def with_margins(labels: Iterable[object], margins: Iterable[float] | None) -> list[str]:
    """Return labels, one per line, with their margins after a tab if they are asked for."""
    texts = list(map(str, labels))
    if margins is None:
        return texts
    return [f"{text}\t{margin}" for text, margin in zip(texts, margin_texts(margins), strict=True)]


@contextmanager
def noted_warnings() -> Iterator[None]:
    """Write warnings in this block as notes of one line."""

    def show(message: Warning | str, *place: object) -> None:
        note(f"warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def opened(path: str, encoding: str) -> Iterator[IO[str]]:
    """Open a file to write to, or standard output for ``-``; a file appears once it is complete."""
    try:
        with _standard_output(encoding) if path == STANDARD else _new_file(path, encoding) as stream:
            yield stream
    except UnicodeEncodeError as error:
        got = f"{encoding}, without {error.object[error.start]!a}"
        raise ValueError(f"--encoding: expected one that has all characters of labels, got {got}") from None


@contextmanager
def _standard_output(encoding: str) -> Iterator[IO[str]]:
    if encoding == UTF_8:
        yield sys.stdout
    else:
        stream = TextIOWrapper(sys.stdout.buffer, encoding, newline="\n")
        try:
            yield stream
        finally:
            stream.detach()
    sys.stdout.flush()


@contextmanager
def _new_file(path: str, encoding: str) -> Iterator[IO[str]]:
    part = f"{path}.part"
    try:
        with open(part, "w", encoding=encoding, newline="\n") as stream:
            yield stream
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
