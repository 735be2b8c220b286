"""Features of possible links between the words of two sentences, in the spirit of Taskar et al. 2006."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from word_alignment.hmm import Aligner, Posteriors, link_posteriors
from word_alignment.lexicon import FloatArray, Lexicon, source_words
from word_alignment.parallel_text import IntArray, Text, Vocabulary, sentence_counts, words_of
from word_alignment.spelling import Spelling, spell, spelling_similarity

# How many of the most common words of each language get indicator features.
_COMMON = 20
_LEAST = 1e-7
_LIKELY, _PROBABLE, _CONCEIVABLE = 0.5, 0.2, 0.1
_NEIGHBOURS = {
    "diagonal": ((-1, -1), (1, 1)),
    "crossed": ((-1, 1), (1, -1)),
    "source": ((-1, 0), (1, 0)),
    "target": ((0, -1), (0, 1)),
}

Table = dict[str, FloatArray]
WordPair = tuple[IntArray, IntArray]


class Statistics(NamedTuple):
    """Statistics of all text: of the links of the first sentence pairs (``hmm``), word pairs, and words."""

    hmm: Posteriors
    model_1: Lexicon
    agreed: Lexicon
    dice: FloatArray
    ranks: tuple[FloatArray, FloatArray]
    spelling: tuple[Spelling, Spelling]
    common: dict[str, tuple[int, int]]


def gather(
    text: Text, vocabulary: Vocabulary, model_1: Lexicon, aligner: Aligner, n_pairs: int
) -> Statistics:
    """Collect the statistics that describe the links of the first sentence pairs."""
    counts = [np.bincount(side.words) for side in (text.source, text.target)]
    return Statistics(
        link_posteriors(text, aligner, n_pairs),
        model_1,
        aligner.lexicon,
        _dice(text),
        (_log_ranks(counts[0]), _log_ranks(counts[1])),
        (spell(vocabulary.source), spell(vocabulary.target)),
        {
            f"{name} word {words[k]}": (side, int(k))
            for side, (name, words) in enumerate(vocabulary._asdict().items())
            for k in _by_count(counts[side])[:_COMMON]
        },
    )


def link_features(text: Text, statistics: Statistics, s: int) -> Table:
    """Return the features of all links of a sentence pair, each of shape (n_sources, n_targets)."""
    words = words_of(text.source, s), words_of(text.target, s)
    links, shape = slice(text.offsets[s], text.offsets[s + 1]), (len(words[0]), len(words[1]))
    forward, backward = (table[links].reshape(shape) for table in statistics.hmm)
    both = np.sqrt(forward * backward)
    features = {
        "hmm forward": forward,
        "hmm backward": backward,
        "hmm both": both,
        "hmm product": forward * backward,
        **_competition(both),
        **_neighbours(both),
        **_lexical(statistics, text.number[links].reshape(shape), words),
        **_positions(shape),
        **_frequencies(statistics, words),
        **spelling_similarity(*statistics.spelling, words),
        **_common_words(statistics, words),
    }
    return {name: np.broadcast_to(values, shape) for name, values in features.items()}


def _by_count(counts: IntArray) -> IntArray:
    return np.argsort(-counts, kind="stable")


def _log_ranks(counts: IntArray) -> FloatArray:
    """Return the logarithm of each word's rank by frequency, scaled to lie between zero and one."""
    ranks = np.empty(len(counts))
    ranks[_by_count(counts)] = np.log1p(np.arange(len(counts))) / np.log1p(len(counts))
    return ranks


def _dice(text: Text) -> FloatArray:
    """Return 2 |both| / (|source| + |target|) for each pair of words, counted in sentences."""
    both = sentence_counts(text.number, text.offsets, len(text.partner))
    sources = sentence_counts(*text.source, len(text.first) - 1)
    targets = sentence_counts(*text.target, int(text.partner.max()) + 1)
    return 2.0 * both / (sources[source_words(text)] + targets[text.partner])


def _competition(both: FloatArray) -> Table:
    """Compare each link with the other links of its words."""
    rows, columns = _best_other(both), _best_other(both.T).T
    best = (both > rows) & (both > columns)
    return {
        "ahead at source": both - rows,
        "ahead at target": both - columns,
        "best": best.astype(float),
        "best and likely": (best & (both > _LIKELY)).astype(float),
        "probable": (both > _PROBABLE).astype(float),
        "second": (~best & (both > _CONCEIVABLE) & (both >= columns)).astype(float),
        "source unlinked": np.maximum(1.0 - both.sum(axis=1, keepdims=True), 0.0),
        "target unlinked": np.maximum(1.0 - both.sum(axis=0, keepdims=True), 0.0),
    }


def _best_other(table: FloatArray) -> FloatArray:
    """Return, for each entry, the largest other entry of its row; zero if there is none."""
    if table.shape[1] == 1:
        return np.zeros_like(table)
    two = np.partition(table, -2, axis=1)[:, -2:]
    return np.where(table == two[:, 1:], two[:, :1], two[:, 1:])


def _neighbours(both: FloatArray) -> Table:
    """Sum the scores of the links next to each link."""
    padded, (m, n) = np.pad(both, 1), both.shape
    return {
        f"{name} neighbours": np.sum(
            [padded[1 + a : 1 + a + m, 1 + b : 1 + b + n] for a, b in shifts], axis=0
        )
        for name, shifts in _NEIGHBOURS.items()
    }


def _lexical(statistics: Statistics, number: NDArray[np.int32], words: WordPair) -> Table:
    """Return what the lexicons say about the two words, alone and relative to the other words."""
    model_1, agreed = statistics.model_1, statistics.agreed
    forward, backward = model_1.forward[number], model_1.backward[number]
    forward = forward / (forward.sum(axis=0) + model_1.unlinked_targets[words[1]] + _LEAST)
    backward = backward / (backward.sum(axis=1) + model_1.unlinked_sources[words[0]] + _LEAST)[:, None]
    best = (forward == forward.max(axis=0)) & (backward == backward.max(axis=1, keepdims=True))
    return {
        "model 1 forward": forward,
        "model 1 backward": backward,
        "model 1 both": np.sqrt(forward * backward),
        "model 1 best": best.astype(float),
        "dice": statistics.dice[number],
        "log forward": -np.log(agreed.forward[number] + _LEAST) / np.log(_LEAST),
        "log backward": -np.log(agreed.backward[number] + _LEAST) / np.log(_LEAST),
    }


def _positions(shape: tuple[int, int]) -> Table:
    """Return the distance between the relative positions of the words in their sentences."""
    source, target = (np.arange(length) / max(length - 1, 1) for length in shape)
    distance = np.abs(source[:, None] - target)
    return {"distance": distance, "distance squared": distance**2, "distance root": np.sqrt(distance)}


def _frequencies(statistics: Statistics, words: WordPair) -> Table:
    """Return the words' ranks by frequency."""
    source, target = statistics.ranks[0][words[0]][:, None], statistics.ranks[1][words[1]]
    return {
        "rank difference": np.abs(source - target),
        "source rank": source,
        "target rank": target,
        "rank product": source * target,
    }


def _common_words(statistics: Statistics, words: WordPair) -> Table:
    """Return indicators of the most common words at the ends of a link."""
    ends = words[0][:, None], words[1]
    return {name: (ends[side] == k).astype(float) for name, (side, k) in statistics.common.items()}
