"""Similarity of the spelling of two words."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from word_alignment.parallel_text import IntArray

FloatArray = NDArray[np.float64]
# Words of at least this length rarely look alike by chance.
_LONG = 4


class Spelling(NamedTuple):
    """The letters of a vocabulary: word k has ``letters[offsets[k] : offsets[k + 1]]``."""

    letters: NDArray[np.int32]
    offsets: IntArray
    is_mark: NDArray[np.bool_]
    is_number: NDArray[np.bool_]


def spell(words: list[str]) -> Spelling:
    """Encode the letters of a vocabulary."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    letters = np.array(list(map(ord, "".join(words))), dtype=np.int32)
    is_mark = np.array([not any(map(str.isalnum, word)) for word in words])
    is_number = np.array([word.isdigit() for word in words])
    return Spelling(letters, np.append(0, np.cumsum(lengths)), is_mark, is_number)


def spelling_similarity(
    source: Spelling, target: Spelling, words: tuple[IntArray, IntArray]
) -> dict[str, FloatArray]:
    """Compare each word of one sentence with each word of another."""
    lengths = np.diff(source.offsets)[words[0]][:, None], np.diff(target.offsets)[words[1]]
    prefix, common = np.zeros((2, len(words[0]), len(words[1])))
    row = np.zeros(lengths[1].max() + 1, dtype=np.int64)
    _compare(source.letters, source.offsets, target.letters, target.offsets, *words, row, prefix, common)
    same, long = prefix == 1.0, np.minimum(*lengths) >= _LONG
    marks = source.is_mark[words[0]][:, None], target.is_mark[words[1]]
    numbers = source.is_number[words[0]][:, None] & target.is_number[words[1]]
    found = {
        "same": same,
        "same long": same & long,
        "prefix": prefix * long,
        "common letters": common,
        "common letters, long": common * long,
        "marks": marks[0] & marks[1],
        "same marks": marks[0] & marks[1] & same,
        "mark and word": marks[0] ^ marks[1],
        "same numbers": numbers & same,
        "other numbers": numbers & ~same,
    }
    return {name: values.astype(np.float64) for name, values in found.items()}


@njit(cache=True)
def _compare(letters, offsets, other_letters, other_offsets, sources, targets, row, prefix, common):
    """Write the lengths of the common prefix and subsequence, as shares of the longer word's length."""
    for j in range(len(sources)):
        a = letters[offsets[sources[j]] : offsets[sources[j] + 1]]
        for k in range(len(targets)):
            b = other_letters[other_offsets[targets[k]] : other_offsets[targets[k] + 1]]
            longer, same = max(len(a), len(b)), 0
            while same < min(len(a), len(b)) and a[same] == b[same]:
                same += 1
            prefix[j, k] = same / longer
            common[j, k] = _common_letters(a, b, row) / longer


@njit(cache=True)
def _common_letters(a, b, row):
    """Return the length of the longest common subsequence, by dynamic programming in one row."""
    row[: len(b) + 1] = 0
    for letter in a:
        diagonal = 0
        for c in range(len(b)):
            above = row[c + 1]
            row[c + 1] = diagonal + 1 if letter == b[c] else max(above, row[c])
            diagonal = above
    return row[len(b)]
