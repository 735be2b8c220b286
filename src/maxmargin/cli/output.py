"""The output of commands: results on standard output, as text or JSON, and notes on standard error."""

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from maxmargin.files.sources import STANDARD


def note(text: str, *, quiet: bool = False) -> None:
    """Write a line to standard error, unless notes are not wanted."""
    if not quiet:
        print(f"maxmargin: {text}", file=sys.stderr, flush=True)


def result(text: str, data: Mapping[str, object], as_json: bool) -> None:
    """Write a result to standard output."""
    print(json.dumps(data, ensure_ascii=False) if as_json else text, flush=True)


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
def opened(path: str) -> Iterator[IO[str]]:
    """Open a file to write to, or standard output for ``-``; a file appears once it is complete."""
    if path == STANDARD:
        yield sys.stdout
        sys.stdout.flush()
        return
    part = f"{path}.part"
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
