"""Replacing a field of a named tuple, also in compiled code, which has no `_replace`."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from numba import types
from numba.extending import overload

from maxmargin.compiling.numba_private import PART

Subject = TypeVar("Subject", bound=NamedTuple)


def adding(name: str) -> Callable[[Subject, float], Subject]:
    """Return a function that adds a number to a field of a named tuple, if it has one of this name."""

    def added(subject: Subject, value: float) -> Subject:
        if name not in getattr(subject, "_fields", ()):
            return subject
        return subject._replace(**{name: getattr(subject, name) + value})

    def compiled(subject: types.NamedTuple, value: types.Float) -> Callable[..., object]:
        return _made(subject.instance_class, name)

    overload(added, strict=False, jit_options=PART)(compiled)
    return added


def _made(cls: type[NamedTuple], name: str) -> Callable[..., object]:
    """Return the function for a class, made from text, as its fields are known only now."""
    fields = (f"subject.{field} + value" if field == name else f"subject.{field}" for field in cls._fields)
    answer = f"cls({', '.join(fields)})" if name in cls._fields else "subject"
    scope: dict[str, Callable[..., object]] = {"cls": cls}
    exec(f"def added(subject, value):\n    return {answer}", scope)
    return scope["added"]
