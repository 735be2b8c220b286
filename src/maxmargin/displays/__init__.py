"""Pictures of what a model has learnt and predicts, in the manner of scikit-learn's displays."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
