"""Where compiled code may be kept on disk, whose code it is, and which sources it is compiled from."""

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

_PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parents[1]
# What no compiled function is made from, nor anything that one imports. All other sources count, so that code
# on disk can be too new, but never too old: a new file counts, and so does one that only has constants.
_ABOVE = {
    *("__main__.py", "_first_fits.py", "cli.py", "commands", "corpus", "dask", "datasets", "demo.py"),
    *("displays", "estimators", "formats", "product", "warm.py"),
}
_COMPILED = {"__pycache__", "_kernels"}


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


def sources() -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of all files that compiled code may depend on, always in one order."""
    for path in _python_files(str(ROOT), _ABOVE | _COMPILED):
        with open(path, "rb", buffering=0) as stream:  # `maxmargin tag` waits for this
            yield path[len(str(ROOT)) :].replace(os.sep, "/"), stream.read()


def _python_files(folder: str, without: Collection[str]) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name in without:
            continue
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.is_dir():
            yield from _python_files(entry.path, _COMPILED)
