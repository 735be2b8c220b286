"""Shared by feature maps and oracles: how their functions are found, in objects and in wrappers."""

from typing import NamedTuple, Protocol

from maxmargin.compiling import is_wrapper
from maxmargin.wording import note_example

_METHOD_NAMES = {"map_sizes": "sizes", "output_sizes": "sizes"}


class Dispatched(Protocol):
    """A generic function."""

    __name__: str

    def dispatch(self, cls: type) -> object:
        """Return the implementation for a class."""


class InnerWork(NamedTuple):
    """The workspace of a wrapper that adds nothing to that of the inner object."""

    inner: object


def called(half: object, name: str, i: int, *args: object) -> object:
    """Call a method of a user's object for example i; if it raises, add a note that names i to the error."""
    try:
        return getattr(half, name)(i, *args)
    except Exception as error:
        note_example(error, type(half).__name__, name, i)
        raise


def absent(*args: object) -> None:
    """Mark an optional function that a wrapper lacks, although the inner object may have it.

    Register it for the class of the wrapper to prevent forwarding.
    """
    raise NotImplementedError


def has_implementation(half: object, function: Dispatched) -> bool:
    """Whether a generic function is registered for the class of a map or an oracle, or is a method of it.

    Methods of a named tuple do not count: it runs compiled, and compiled code cannot call methods. A wrapper
    has the functions of the inner object, unless they are `absent`: its implementations call the inner ones.
    """
    cls = type(half)
    found = function.dispatch(cls)
    if is_wrapper(cls):
        return found is not absent and has_implementation(half.inner, function)  # type: ignore[attr-defined]
    if found is not function.dispatch(tuple if isinstance(half, tuple) else object):
        return True
    return not isinstance(half, tuple) and callable(getattr(half, method_name(function), None))


def method_name(function: Dispatched) -> str:
    """Return the name that a generic function has as a method of a Python object."""
    return _METHOD_NAMES.get(function.__name__, function.__name__)
