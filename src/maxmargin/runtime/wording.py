"""Descriptions of values for error messages, and the line that warnings point at."""

import sys
from collections.abc import Sized
from numbers import Number, Real
from types import FrameType

_LONGEST = 200  # characters of a value, such as a path
_LONGEST_MESSAGE = 500
_OURS = {__name__.partition(".")[0], "sklearn"}


def quoted(value: object) -> str:
    """Return the representation of a value, on one line and shortened to fit into a message."""
    text = repr(value)
    text = " ".join(text.split()) if "\n" in text else text
    return shortened(text, 40)


def described(value: object) -> str:
    """Return a short description of a value: its type, with its shape or, if it is short, itself."""
    name = type(value).__name__
    if isinstance(value, str | bytes | Number | None):
        return f"{quoted(value)} ({name})"
    article = "an" if name[0] in "aeiouAEIOU" or name.startswith("nd") else "a"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{article} {name} of shape {shape}"
    return f"an empty {name}" if isinstance(value, Sized) and not len(value) else f"{article} {name}"


def shown(value: object) -> str:
    """Return a value as users wrote it if it is short, else shortened or described."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if not isinstance(value, str | Real | None):
        return described(value)
    return shortened(repr(value))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which is in the plural unless the number is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def on_one_line(message: str) -> str:
    """Return an error message as a single line, shortened to fit on a screen."""
    line = " ".join(part.strip() for part in message.splitlines())
    return shortened(line, _LONGEST_MESSAGE)


def shortened(text: str, most: int = _LONGEST) -> str:
    """Return a text, or its beginning if it has more than ``most`` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def note_example(error: Exception, owner: str, name: str, i: int) -> None:
    """Add a note that names the example to an error of a user's function, unless the error names it."""
    said = [str(error), *getattr(error, "__notes__", ())]
    if not any(f"for example {i}" in text for text in said):
        error.add_note(f"{owner}: raised by {name} for example {i}")


def frames_to_user() -> int:
    """Return the stack level at which a warning points at the user's line that called the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in _OURS:
        level, frame = level + 1, frame.f_back
    return level


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
