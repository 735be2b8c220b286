"""Real data for examples, tests and benchmarks, in the form that the estimators take.

Digit words come with scikit-learn. The OCR letters and CoNLL-2000 are read from a data directory,
or fetched once from their official addresses. The Hansards, the English Web Treebank, the
nuclei, the scenes and the snakes are read from a data directory.
"""

from maxmargin.datasets.conll2000 import chunk_f1, load_conll2000, read_conll2000, window_features
from maxmargin.datasets.digit_words import load_digit_words
from maxmargin.datasets.hansards import alignment_error_rate, load_hansards
from maxmargin.datasets.ocr import load_ocr
from maxmargin.datasets.pictures import intersection_over_union, load_nuclei, load_scene, load_snakes
from maxmargin.datasets.ud_ewt import load_ud_ewt, read_conllu

__all__ = [
    "alignment_error_rate",
    "chunk_f1",
    "intersection_over_union",
    "load_conll2000",
    "load_digit_words",
    "load_hansards",
    "load_nuclei",
    "load_ocr",
    "load_scene",
    "load_snakes",
    "load_ud_ewt",
    "read_conll2000",
    "read_conllu",
    "window_features",
]
