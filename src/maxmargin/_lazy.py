"""Packages that import their names on first use (PEP 562).

Otherwise scikit-learn, and models and methods that a program never uses, would take most of the time of
``import maxmargin``.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import NamedTuple


class LazyNames(NamedTuple):
    """What a package defines at its top level: ``__getattr__``, ``__dir__`` and ``__all__``."""

    getattr: Callable[[str], object]
    dir: Callable[[], list[str]]
    all: list[str]


def lazy_names(package: str, homes: Mapping[str, Iterable[str]]) -> LazyNames:
    """Return the functions with which a package finds its names.

    Parameters
    ----------
    package : str
        The name of the package.
    homes : mapping
        The names that each module defines; modules are named within the package, and can be used as its
        attributes. No name may equal a module's: importing the module would overwrite it.
    """
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names}
    modules = {module.partition(".")[0] for module in homes}

    def find(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, found)  # so that the next access finds it at once
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules, *home})

    return LazyNames(find, names, sorted(home))
