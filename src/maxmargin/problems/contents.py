"""The data that a problem or a result holds: whether two hold the same, and how many bytes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import python_generic


@python_generic
def is_same(a: object, b: object) -> bool:
    """Whether two problems, halves or parts of them hold equal data, so that they are interchangeable.

    A half written as a Python object may define ``is_same(other)``; if it does not, it is equal to itself
    only.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and np.array_equal(a, b))  # type: ignore[attr-defined, arg-type]
    if isinstance(a, tuple):
        pairs = zip(a, b, strict=False)  # type: ignore[call-overload]
        return len(a) == len(b) and all(is_same(*pair) for pair in pairs)  # type: ignore[arg-type]
    if isinstance(a, bool | int | float | str):
        return a == b
    return bool(a.is_same(b)) if hasattr(a, "is_same") else False


def n_bytes(subject: object) -> int:
    """Return the number of bytes of all arrays in nested tuples, lists and objects."""
    return sum(array.nbytes for array in {id(array): array for array in _arrays(subject)}.values())


def _arrays(subject: object) -> Iterator[NDArray[np.generic]]:
    if isinstance(subject, np.ndarray):
        yield subject
    elif isinstance(subject, tuple | list):
        for each in subject:
            yield from _arrays(each)
    elif hasattr(subject, "__dict__") and not callable(subject):
        for each in vars(subject).values():
            yield from _arrays(each)
