"""What a call may do: return something, or raise one line."""

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

LONGEST = 700
_SECONDS = 60


class Refused:
    """One line of ValueError or TypeError, instead of an answer."""

    def __init__(self, line: str) -> None:
        self.line = line


@contextmanager
def within(seconds: int = _SECONDS) -> Iterator[None]:
    """Raise if the block takes more processor time; a long run may be paused meanwhile."""

    def late(*_: object) -> None:
        raise AssertionError(f"it takes more than {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(
    function: Callable[..., Any], *args: Any, also: tuple[type[Exception], ...] = (), **options: Any
) -> Any:
    """Return the answer of a call, or what it was refused with; other errors are faults.

    Errors of a user's own functions pass through, with a note that names the example.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"), within():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **options)
        except Exception as error:
            by_user = any("raised by" in note for note in getattr(error, "__notes__", ()))
            if not by_user and not isinstance(error, (ValueError, TypeError, *also)):
                raise
            return Refused(str(error) if by_user else one_line(error))


def one_line(error: Exception) -> str:
    """Return what an error says; raise if this is nothing, too long, or several lines.

    scikit-learn prescribes several lines for names of features that do not fit.
    """
    line = str(error)
    fault = "no word" if not line else "a long line" if len(line) > LONGEST else ""
    fault = fault or ("several lines" if "\n" in line and "feature names" not in line else "")
    if fault:
        raise AssertionError(f"{fault} of {type(error).__name__}: {line}") from error
    return line
