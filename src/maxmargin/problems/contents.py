"""The data that problems, methods and results hold: comparison, a digest, and their size in bytes."""

import dataclasses
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import python_generic
from maxmargin.wording import described

_DIGEST_BYTES = 16
_PLAIN = bool | int | float | str


@python_generic
def essence(part: object) -> object:
    """Return the data of a part of a problem that determine the answers: all, except for notes and caches."""
    return part


def is_same(a: object, b: object) -> bool:
    """Whether two problems, halves or parts of them hold equal data, so that they are interchangeable.

    A half written as a Python object may define ``is_same(other)``; if it does not, it is equal only to
    itself.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    a, b = essence(a), essence(b)
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and np.array_equal(a, b))  # type: ignore[attr-defined, arg-type]
    if isinstance(a, tuple):
        pairs = zip(a, b, strict=False)  # type: ignore[call-overload]
        return len(a) == len(b) and all(is_same(*pair) for pair in pairs)  # type: ignore[arg-type]
    if isinstance(a, _PLAIN):
        return a == b
    return bool(a.is_same(b)) if hasattr(a, "is_same") else False


def fingerprint(subject: object) -> str:
    """Return a digest of a problem or a method; equal digests mean equal data.

    The digest does not depend on the process. Named tuples, data classes, arrays and numbers have one. An
    object of another class must define ``fingerprint()``, a text or bytes, or TypeError is raised.
    """
    digest = blake2b(digest_size=_DIGEST_BYTES)
    _add(subject, digest)
    return digest.hexdigest()


def _add(subject: Any, digest: Any) -> None:
    """Feed a value to a digest: its class and length, then its parts."""
    kind, subject = type(subject), essence(subject)
    if isinstance(subject, np.ndarray | np.generic) and subject.dtype.kind in "biuf":
        digest.update(f"{subject.dtype.str}{subject.shape};".encode())
        digest.update(np.require(subject, requirements="C").data)
    elif isinstance(subject, tuple | list):
        digest.update(f"{kind.__qualname__}({len(subject)};".encode())
        for part in subject:
            _add(part, digest)
    elif dataclasses.is_dataclass(subject):
        fields = [getattr(subject, field.name) for field in dataclasses.fields(subject)]
        _add((kind.__qualname__, *fields), digest)
    elif subject is None or isinstance(subject, _PLAIN):
        digest.update(f"{kind.__qualname__}:{subject!r};".encode())
    elif callable(getattr(subject, "fingerprint", None)) and not isinstance(subject, type):
        _add((kind.__qualname__, repr(subject.fingerprint())), digest)
    else:
        raise TypeError(f"made of arrays and numbers, or define fingerprint(), got {described(subject)}")


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
