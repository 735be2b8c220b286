"""Real data for examples, tests and benchmarks, in the form that the estimators take.

Digit words come with scikit-learn. The OCR letters and CoNLL-2000 are read from a data directory,
or fetched once from their official addresses. The Hansards, the English Web Treebank, the
nuclei, the scenes and the snakes are read from a data directory.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
