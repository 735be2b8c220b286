"""Errors and warnings: the name they begin with, values in words, and the line that warnings point at."""

import sys
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Number, Real
from types import FrameType
from typing import Any

_LONGEST = 200  # characters of a value, such as a path
_LONGEST_MESSAGE = 500
_OURS = {__name__.partition(".")[0], "sklearn"}

# What the user called: an estimator, a builder of problems, a display.
_CALLER: ContextVar[str | None] = ContextVar("caller", default=None)
# Errors of these packages get the caller's name. Those of other classes are the user's own, or have one.
_LIBRARIES = {"builtins", "numpy", "pandas", "scipy"}


def caller(otherwise: str = "maxmargin") -> str:
    """Return the name of what the user called, or another outside of `errors_of`."""
    return _CALLER.get() or otherwise


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Make errors of wrong values one line that begins with a name: what the user called.

    Of blocks within blocks the outermost gives the name, so that an error of an estimator has the name of the
    estimator, and not that of the builder of problems that the estimator called. Also a decorator.
    """
    if _CALLER.get() is not None:
        yield
        return
    token = _CALLER.set(name)
    try:
        yield
    except (TypeError, ValueError) as error:
        line = _line(error, name)
        if line == str(error):
            raise
        if type(error) in (TypeError, ValueError):
            error.args = (line,)
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(line) from error
    finally:
        _CALLER.reset(token)


def _line(error: Exception, name: str) -> str:
    """Return the message of an error as one line that begins with the name, unless it is the user's own."""
    message = str(error)
    if "feature names" in message:  # several lines, in a form that scikit-learn prescribes
        return message
    if hasattr(error, "__notes__") or type(error).__module__.partition(".")[0] not in _LIBRARIES:
        return message  # from a user's function, which the note names
    return on_one_line(message if message.startswith((f"{name}:", "solve:")) else f"{name}: {message}")


def call_user(function: Callable[..., Any], name: str, i: int, *args: object, otherwise: str) -> Any:
    """Call a user's function for example i. Its errors stay as they are, with a note that names the example.

    What the function itself calls of this package names its own errors.
    """
    who, token = caller(otherwise), _CALLER.set(None)
    try:
        return function(*args)
    except Exception as error:
        note_example(error, who, name, i)
        raise
    finally:
        _CALLER.reset(token)


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


def note_example(error: Exception, who: str, name: str, i: int) -> None:
    """Add a note that names the example to an error of a user's function, unless the error names it."""
    said = [str(error), *getattr(error, "__notes__", ())]
    if not any(f"for example {i}" in text for text in said):
        error.add_note(f"{who}: raised by {name} for example {i}")


def frames_to_user() -> int:
    """Return the stack level at which a warning points at the user's line that called the package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in _OURS:
        level, frame = level + 1, frame.f_back
    return level


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
