"""Parallel text in arrays: numbered words, the sentence pairs one after another."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


class Sentences(NamedTuple):
    """The sentences of one language: sentence s has the words ``words[offsets[s] : offsets[s + 1]]``."""

    words: IntArray
    offsets: IntArray


class Text(NamedTuple):
    """Sentence pairs, with a number for each pair of words that occur in one.

    Attributes
    ----------
    source, target : Sentences
    offsets : array of shape (n_pairs + 1,)
        Where the possible links of each sentence pair begin, source word by source word.
    number : array of shape (n_links,)
        Which pair of words each link joins.
    first : array of shape (n_source_words + 1,)
        Where the pairs of each source word begin.
    partner : array of shape (n_word_pairs,)
        The target word of each pair of words.
    """

    source: Sentences
    target: Sentences
    offsets: IntArray
    number: NDArray[np.int32]
    first: IntArray
    partner: NDArray[np.int32]


class Vocabulary(NamedTuple):
    """The words of each language, in the order of their numbers."""

    source: list[str]
    target: list[str]


def number_text(pairs: Sequence[tuple[str, str]]) -> tuple[Text, Vocabulary]:
    """Number the words of sentence pairs, and the pairs of words that occur together."""
    (source, source_words), (target, target_words) = (_numbered(side) for side in zip(*pairs, strict=True))
    offsets = np.append(0, np.cumsum(np.diff(source.offsets) * np.diff(target.offsets)))
    text = Text(
        source,
        target,
        offsets,
        np.zeros(offsets[-1], dtype=np.int32),
        np.zeros(len(source_words) + 1, dtype=np.int64),
        np.zeros(offsets[-1], dtype=np.int32),
    )
    occurrences = np.argsort(source.words, kind="stable")
    sentence = np.repeat(np.arange(len(pairs)), np.diff(source.offsets))
    _number_links(text, occurrences, sentence, np.full(len(target_words), -1, dtype=np.int64))
    partner = text.partner[: text.first[-1]].copy()
    return text._replace(partner=partner), Vocabulary(source_words, target_words)


def words_of(sentences: Sentences, s: int) -> IntArray:
    """Return the numbers of the words of one sentence."""
    return sentences.words[sentences.offsets[s] : sentences.offsets[s + 1]]


def sentence_counts(numbers: NDArray[np.integer], offsets: IntArray, n_numbers: int) -> IntArray:
    """Count the sentences in which each number occurs."""
    counts, last = np.zeros(n_numbers, dtype=np.int64), np.full(n_numbers, -1, dtype=np.int64)
    _count_sentences(numbers, offsets, last, counts)
    return counts


def _numbered(lines: Sequence[str]) -> tuple[Sentences, list[str]]:
    sentences = [line.split() for line in lines]
    numbers: dict[str, int] = {}
    words = [numbers.setdefault(word, len(numbers)) for word in chain.from_iterable(sentences)]
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    return Sentences(np.array(words, dtype=np.int64), np.append(0, np.cumsum(lengths))), list(numbers)


@njit(cache=True)
def _number_links(text, occurrences, sentence, mark):
    """Visit the occurrences of each source word in turn; give each new partner the next number."""
    source, target = text.source, text.target
    count, word = 0, -1
    for position in occurrences:
        if source.words[position] != word:
            word = source.words[position]
            text.first[word] = count
        s = sentence[position]
        begin, length = target.offsets[s], target.offsets[s + 1] - target.offsets[s]
        link = text.offsets[s] + (position - source.offsets[s]) * length
        for k in range(length):
            other = target.words[begin + k]
            if mark[other] < text.first[word]:
                mark[other] = count
                text.partner[count] = other
                count += 1
            text.number[link + k] = mark[other]
    text.first[word + 1] = count


@njit(cache=True)
def _count_sentences(numbers, offsets, last, counts):
    for s in range(offsets.shape[0] - 1):
        for p in range(offsets[s], offsets[s + 1]):
            if last[numbers[p]] != s:
                last[numbers[p]] = s
                counts[numbers[p]] += 1
