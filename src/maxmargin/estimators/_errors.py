"""Errors of scikit-learn's validation in the form of this package's own."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_line(owner: str) -> Iterator[None]:
    """Give the errors of scikit-learn's validation an owner and a single line."""
    try:
        yield
    except (TypeError, ValueError) as error:
        message = str(error)
        if "feature names" in message:  # a list, line by line, in a form that scikit-learn prescribes
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{owner}: {' '.join(message.split())}") from error
