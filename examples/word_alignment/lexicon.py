"""IBM model 1: translation probabilities of words, learnt from sentence pairs alone."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from word_alignment.parallel_text import Text

FloatArray = NDArray[np.float64]
_SMALLEST_COUNT = 1e-12


class Lexicon(NamedTuple):
    """Translation probabilities in both directions, or expected counts of links.

    Attributes
    ----------
    forward : array of shape (n_word_pairs,)
        Probability of the target word, given the source word.
    backward : array of shape (n_word_pairs,)
        Probability of the source word, given the target word.
    unlinked_targets, unlinked_sources : arrays
        Probability of each word, given that it translates no word.
    """

    forward: FloatArray
    backward: FloatArray
    unlinked_targets: FloatArray
    unlinked_sources: FloatArray


def model_1(text: Text, iterations: int = 5) -> Lexicon:
    """Learn each direction separately by expectation maximisation, starting from uniform probabilities."""
    n_pairs, n_sources, n_targets = len(text.partner), len(text.first) - 1, int(text.partner.max()) + 1
    lexicon = Lexicon(np.ones(n_pairs), np.ones(n_pairs), np.ones(n_targets), np.ones(n_sources))
    for _ in range(iterations):
        counts = Lexicon(*map(np.zeros_like, lexicon))
        _count_links(text, lexicon, counts)
        lexicon = normalised(text, counts)
    return lexicon


def normalised(text: Text, counts: Lexicon) -> Lexicon:
    """Return the counts, normalised to probabilities."""
    source = source_words(text)
    sources = np.bincount(source, counts.forward, len(counts.unlinked_sources))
    targets = np.bincount(text.partner, counts.backward, len(counts.unlinked_targets))
    return Lexicon(
        counts.forward / np.maximum(sources, _SMALLEST_COUNT)[source],
        counts.backward / np.maximum(targets, _SMALLEST_COUNT)[text.partner],
        counts.unlinked_targets / max(counts.unlinked_targets.sum(), _SMALLEST_COUNT),
        counts.unlinked_sources / max(counts.unlinked_sources.sum(), _SMALLEST_COUNT),
    )


def source_words(text: Text) -> NDArray[np.int64]:
    """Return the source word of each pair of words."""
    return np.repeat(np.arange(len(text.first) - 1), np.diff(text.first))


@njit(cache=True)
def _count_links(text, lexicon, counts):
    """Add the expected links of all sentence pairs to ``counts``."""
    source, target = text.source, text.target
    for s in range(text.offsets.shape[0] - 1):
        j0, k0, n_links = source.offsets[s], target.offsets[s], text.offsets[s + 1] - text.offsets[s]
        m, n = source.offsets[s + 1] - j0, target.offsets[s + 1] - k0
        number = text.number[text.offsets[s] : text.offsets[s] + n_links].reshape((m, n))
        for k in range(n):
            word, unlinked = target.words[k0 + k], lexicon.unlinked_targets
            total = _share(number[:, k], lexicon.forward, unlinked[word], counts.forward)
            counts.unlinked_targets[word] += unlinked[word] / total
        for j in range(m):
            word, unlinked = source.words[j0 + j], lexicon.unlinked_sources
            total = _share(number[j], lexicon.backward, unlinked[word], counts.backward)
            counts.unlinked_sources[word] += unlinked[word] / total


@njit(cache=True)
def _share(numbers, table, unlinked, counts):
    """Divide one occurrence of a word among the words of the other side and "no word"; return the divisor."""
    total = max(unlinked, _SMALLEST_COUNT)
    for p in numbers:
        total += table[p]
    for p in numbers:
        counts[p] += table[p] / total
    return total
