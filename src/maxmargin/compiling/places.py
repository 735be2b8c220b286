"""Where compiled code may be kept on disk, and whose code it is."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

_PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]


def is_ours(thing: type | Callable[..., object]) -> bool:
    """Return whether this package defines a class or function."""
    return str(thing.__module__).startswith(_PACKAGE + ".")


def cache_parents(chosen: str) -> Iterator[Path]:
    """Yield the directories in which compiled code may be kept; only the one that users chose, if any."""
    if chosen:
        yield Path(chosen) / _PACKAGE
        return
    yield ROOT / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    yield Path(home) / _PACKAGE
