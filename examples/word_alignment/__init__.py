"""A word aligner: features of the links between the words of a sentence and those of its translation.

Most features are statistics of parallel text whose links are unknown, computed by IBM model 1 and by two
hidden Markov models trained to agree. The package is not part of maxmargin: examples find it beside them, and
benchmarks and tests append the directory ``examples`` to ``sys.path``.
"""

from word_alignment.hansards import (
    DescribedHansards,
    DescribedPairs,
    load_described_hansards,
)

__all__ = ["DescribedHansards", "DescribedPairs", "load_described_hansards"]
