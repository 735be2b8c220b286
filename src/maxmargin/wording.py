"""Values in the words of error messages."""

from collections.abc import Sized
from numbers import Number
from typing import Any


def quoted(value: Any) -> str:
    """The representation of a value, not too long for a message."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def described(value: Any) -> str:
    """A short description of a value for an error message."""
    name = type(value).__name__
    if isinstance(value, str | bytes | Number | None):
        return f"{quoted(value)} ({name})"
    article = "an" if name[0] in "aeiouAEIOU" or name.startswith("nd") else "a"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{article} {name} of shape {shape}"
    return f"an empty {name}" if isinstance(value, Sized) and not len(value) else f"{article} {name}"
