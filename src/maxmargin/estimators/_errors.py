"""Errors of an estimator in one form: a single line that begins with its name."""

from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.utils._param_validation import InvalidParameterError

# Whose errors are given a name. Errors of other classes are users' own, or named already.
_LIBRARIES = {"builtins", "numpy", "pandas", "scipy"}
_LONGEST = 500


@contextmanager
def one_line(owner: str) -> Iterator[None]:
    """Give the errors of validation an owner and a single line, if they lack them."""
    try:
        yield
    except InvalidParameterError as error:  # its message has the owner
        raise InvalidParameterError(_shortened(str(error))) from None
    except (TypeError, ValueError) as error:
        message = str(error)
        if "feature names" in message:  # a list, line by line, in a form that scikit-learn prescribes
            raise
        if hasattr(error, "__notes__") or type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise  # of a user's function: the note says which
        named = message if message.startswith((f"{owner}:", "solve:")) else f"{owner}: {message}"
        if _shortened(named) == message:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(_shortened(named)) from error


@contextmanager
def noted(owner: str, name: str, i: int) -> Iterator[None]:
    """Leave an error in a user's function as it is, but say for which example it was raised."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{owner}: raised by {name} for example {i}")
        raise


def _shortened(message: str) -> str:
    line = " ".join(part.strip() for part in message.splitlines())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
