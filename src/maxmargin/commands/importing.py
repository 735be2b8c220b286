"""How commands import scikit-learn: without modules that it imports for functions that no command calls.

`sklearn.utils.fixes` imports SciPy's statistics and pandas, and both take most of its time.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

_UNUSED = ("pandas", "scipy.stats")


class _Postponed(ModuleType):
    """A module that is imported on first access to one of its attributes."""

    def __getattr__(self, name: str) -> object:
        _forget(self)
        return getattr(import_module(self.__name__), name)


def _forget(module: _Postponed) -> None:
    """Let the next import of this name find the module itself."""
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


@contextmanager
def postponed(*names: str) -> Iterator[None]:
    """Defer imports of some modules in this block until they are used; afterwards, imports work as usual."""
    later = [_Postponed(name) for name in names if name not in sys.modules]
    sys.modules.update({module.__name__: module for module in later})
    try:
        yield
    finally:
        for module in later:
            _forget(module)


def import_scikit_learn() -> None:
    """Import the base classes of estimators."""
    with postponed(*_UNUSED):
        import_module("sklearn.base")
