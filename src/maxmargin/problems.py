"""Models of structured prediction, each a feature map and an oracle: the builders, wrappers and kernels."""

import lazy_loader

# The stub beside this file, `problems.pyi`, lists the names; modules are named within the package.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__package__, __file__)
