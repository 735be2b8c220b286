"""Which compiled code is on disk, and for what: in the user's cache, and compiled beforehand."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from maxmargin.compiling import baseline
from maxmargin.compiling.kernel_cache import directory_name, kept_signature, readable_directories
from maxmargin.compiling.trust import read_trusted
from maxmargin.wording import counted

# The loop over examples, which is compiled for every pair of problem and method.
_LOOP = "maxmargin.methods.sweep.sweep-"
_BYTES = 1e6


class Trained(NamedTuple):
    """What a loop over examples is compiled for.

    Attributes
    ----------
    model : str
        The model, such as "Chain".
    rows : str
        How its features are stored, such as "dense"; empty if there is but one way.
    method : str
    """

    model: str
    rows: str
    method: str


class Inventory(NamedTuple):
    """The compiled code in one directory; ``str`` makes one line of it, and one for each model.

    Attributes
    ----------
    origin : str
        Who compiled it, in words.
    directory : Path
    functions : int
        Number of compiled functions.
    size : int
        Their bytes.
    trained : tuple of Trained
        The models and methods whose training is among them.
    """

    origin: str
    directory: Path
    functions: int
    size: int
    trained: tuple[Trained, ...]

    def __str__(self) -> str:
        held = f"{counted(self.functions, 'function')}, {self.size / _BYTES:.1f} MB"
        return "\n".join([f"{self.origin}: {held}, in {self.directory}", *self._models()])

    def _models(self) -> Iterator[str]:
        """Yield a line for each model: its kinds of rows, with their methods."""
        for model in sorted({each.model for each in self.trained}):
            methods: dict[str, list[str]] = {}
            for each in sorted(self.trained):
                if each.model == model:
                    methods.setdefault(each.rows, []).append(each.method)
            kinds = [f"{rows} rows by " * bool(rows) + ", ".join(some) for rows, some in methods.items()]
            yield f"  {model}: {'; '.join(kinds)}"


def inventories() -> list[Inventory]:
    """Return what is on disk for these sources and this machine; nothing is compiled or run."""
    found = [
        _inventory("this user's cache", directory, partial(_trusted, directory))
        for directory in readable_directories()
    ]
    place, name = baseline.place(), directory_name()
    if place is not None and baseline.has(name):
        origin = f"compiled beforehand, {baseline.VARIABLE if baseline.VARIABLE in os.environ else 'shipped'}"
        found.append(_inventory(origin, place / name, lambda file: baseline.read(f"{name}/{file}")))
    return found


def _trusted(directory: Path, name: str) -> bytes | None:
    return read_trusted(directory / name)


def _inventory(origin: str, directory: Path, read: Callable[[str], bytes | None]) -> Inventory:
    """Return what is in a directory, whose files ``read`` returns if they can be trusted."""
    files = [file for file in directory.iterdir() if file.is_file()]
    signatures = [kept_signature(read(file.name)) for file in files if file.name.startswith(_LOOP)]
    trained = {_trained(signature) for signature in signatures if signature is not None}
    size = sum(file.stat().st_size for file in files)
    return Inventory(origin, directory, len(files), size, tuple(sorted(trained)))


def _trained(signature: tuple[object, ...]) -> Trained:
    """Return what a loop is for, by the types of its first two arguments: a problem and a method."""
    problem, method = signature[:2]
    names = list(_names(problem))
    model = next((name.removesuffix("Map") for name in names if name.endswith("Map")), "")
    rows = next((name.removesuffix("Rows").lower() for name in names if name.endswith("Rows")), "")
    return Trained(model, rows, next(_names(method), ""))


def _names(type_: object) -> Iterator[str]:
    """Yield the names of the classes of all named tuples in a Numba type, outer ones first."""
    if hasattr(type_, "instance_class"):
        yield str(type_.instance_class.__name__)
    for field in getattr(type_, "types", ()):
        yield from _names(field)
