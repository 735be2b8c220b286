"""Errors of an estimator in one form: a single line that begins with its name."""

from collections.abc import Iterator
from contextlib import contextmanager

from maxmargin.estimators._sklearn_private import InvalidParameterError
from maxmargin.wording import note_example, on_one_line

# Errors of these packages get the estimator's name. Those of other classes are the user's own, or have one.
_LIBRARIES = {"builtins", "numpy", "pandas", "scipy"}


@contextmanager
def one_line(owner: str) -> Iterator[None]:
    """Make validation errors one line that begins with the owner's name, where they are not."""
    try:
        yield
    except InvalidParameterError as error:  # its message has the owner
        raise InvalidParameterError(on_one_line(str(error))) from None
    except (TypeError, ValueError) as error:
        message = str(error)
        if "feature names" in message:  # several lines, in a form that scikit-learn prescribes
            raise
        if hasattr(error, "__notes__") or type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise  # from a user's function, which the note names
        named = message if message.startswith((f"{owner}:", "solve:")) else f"{owner}: {message}"
        if on_one_line(named) == message:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(on_one_line(named)) from error


@contextmanager
def noted(owner: str, name: str, i: int) -> Iterator[None]:
    """Leave an error of a user's function as it is, and add a note that names the example."""
    try:
        yield
    except Exception as error:
        note_example(error, owner, name, i)
        raise
