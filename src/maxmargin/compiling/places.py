"""Where compiled code may be kept on disk."""

import os
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]


def cache_parents(chosen: str) -> Iterator[Path]:
    """Yield the directories in which compiled code may be kept; only the one that users chose, if any."""
    if chosen:
        yield Path(chosen) / _PACKAGE
        return
    yield ROOT / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    yield Path(home) / _PACKAGE
