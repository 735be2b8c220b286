"""Structural SVMs, trained fast, with a certificate of how far from optimal they are."""

import lazy_loader

from . import _moved as _moved

__version__ = "0.1.0"

# The stub beside this file, `__init__.pyi`, lists the public names, which are imported on first use.
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name not in ("estimators", "methods", "problems")]
