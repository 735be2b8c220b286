"""Models of structured prediction, each a feature map and an oracle: the builders, wrappers and kernels."""

import lazy_loader

from . import _moved

# The stub beside this file, `problems.pyi`, lists the names; modules are named within the package.
_public, __dir__, __all__ = lazy_loader.attach_stub(__package__, __file__)
__path__: list[str] = []  # of modules that were here: `maxmargin._moved` finds them


def __getattr__(name: str) -> object:
    return _public(name) if name in __all__ else _moved.former(__name__, name)
