"""Layouts of statistics with several parts: the contract between a map and its oracle.

Rows of labels are contiguous and padded to ``width``, a multiple of the lanes of vector registers.
"""

from maxmargin.compiling import subroutine
from maxmargin.inference.segments import SEGMENT_ROWS as SEGMENT_ROWS

_LANES = 4


def padded(n_labels: int) -> int:
    """Return the width of a row of labels: a multiple of the lanes of vector registers."""
    return -(-n_labels // _LANES) * _LANES


@subroutine
def chain_statistics(n_labels, width, length):
    """Number of statistics of a chain: counts of transitions, then a row of labels for each position."""
    return (n_labels + length) * width


@subroutine
def trigram_statistics(n_labels, width):
    """Number of statistics of trigrams, which follow those of a chain.

    They are rows of the third label, one for each pair of the others, ordered by the middle label first,
    which is the order in which the oracle reads them.
    """
    return n_labels * n_labels * width


@subroutine
def segment_head(n_labels, n_lengths, width):
    """Number of statistics of a segmentation before those of tokens: counts of transitions and of lengths.

    ``SEGMENT_ROWS`` rows of labels follow for each token: its label, its label again if it is the first of a
    segment, and again if it is the last.
    """
    return (n_labels + n_lengths) * width
