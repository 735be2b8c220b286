"""The Hansards with features of all links, and the links that a matching can contain."""

import os
from itertools import islice
from typing import NamedTuple

import numpy as np

from maxmargin.datasets import load_hansards
from maxmargin.datasets.hansards import AlignedPairs, Links, SentencePair
from word_alignment.hmm import train_aligner
from word_alignment.lexicon import FloatArray, model_1
from word_alignment.link_features import Table, gather, link_features
from word_alignment.parallel_text import number_text

_CALLER = "load_described_hansards"
# How many pairs to align automatically for training, and the length of their longest sentence.
_N_AUTOMATIC, _LONGEST = 5000, 30


class DescribedPairs(NamedTuple):
    """Sentence pairs with features of all links.

    Attributes
    ----------
    words : list of (list of str, list of str)
        The English and the French words, in lower case and without accents.
    X : list of arrays of shape (n_english, n_french, n_features)
    y : list of lists of (english, french)
        Sure links. Where two of them compete for a word, only the likelier one.
    sure, possible : lists of lists of (english, french)
        The links that must be present, and all that may be. The sure links are possible too.
    """

    words: list[tuple[list[str], list[str]]]
    X: list[FloatArray]
    y: list[Links]
    sure: list[Links]
    possible: list[Links]


class DescribedHansards(NamedTuple):
    """The pairs that `load_described_hansards` returns, and the names of their features."""

    train: DescribedPairs
    test: DescribedPairs
    feature_names: list[str]


def load_described_hansards(
    *,
    data_home: str | os.PathLike[str] | None = None,
    labels: str = "gold",
    fertility: int = 1,
    n_text: int | None = None,
) -> DescribedHansards:
    """Load the Hansards and compute features of all links.

    Most features are statistics of all text, labelled or not; its links are not used. They come from IBM
    model 1 and from hidden Markov models in both directions, which are trained here (a minute or two with all
    text), from Dice coefficients and from frequencies. The others are distance, spelling, and indicators of
    the most common words.

    Parameters
    ----------
    data_home : path-like, optional
        Where `maxmargin.datasets.load_hansards` looks for the files first.
    labels : {"gold", "automatic"}
        Train on the 137 training pairs that were aligned by hand, or on 5,000 unlabelled pairs aligned
        automatically. An automatic link is the best one of both its words under both hidden Markov models.
    fertility : int
        How many links an English word may have in ``y``. A French word has at most one.
    n_text : int, optional
        Use only this many unlabelled pairs.

    Returns
    -------
    DescribedHansards
        ``(train, test, feature_names)``; ``test`` has the 347 test pairs aligned by hand.

    References
    ----------
    .. [1] B. Taskar, S. Lacoste-Julien and M. I. Jordan, "Structured prediction, dual extragradient and
           Bregman projections", JMLR 2006.
    .. [2] P. Liang, B. Taskar and D. Klein, "Alignment by agreement", HLT-NAACL 2006.
    """
    if labels not in ("gold", "automatic"):
        raise ValueError(f"{_CALLER}: labels must be 'gold' or 'automatic', got {labels!r}.")
    if fertility < 1:
        raise ValueError(f"{_CALLER}: fertility must be an int >= 1, got {fertility!r}.")
    train, test, text = load_hansards(data_home=data_home, n_text=n_text)
    short = list(islice(filter(_is_short, text), _N_AUTOMATIC)) if labels == "automatic" else []
    others = set(text).difference(short)
    n_train, n_gold = len(train.words), len(train.words) + len(test.words)
    pairs = [*_as_text(train), *_as_text(test), *short, *(pair for pair in text if pair in others)]
    tables = _describe(pairs, n_gold + len(short))
    if labels == "automatic":
        trained = _described(_align(short, tables[n_gold:]), tables[n_gold:], fertility)
    else:
        trained = _described(train, tables[:n_train], fertility)
    tested = _described(test, tables[n_train:n_gold], fertility)
    return DescribedHansards(trained, tested, list(tables[0]))


def _describe(pairs: list[SentencePair], n_pairs: int) -> list[Table]:
    """Return the features of the links of the first ``n_pairs`` pairs, from statistics of all pairs."""
    text, vocabulary = number_text(pairs)
    lexicon = model_1(text)
    statistics = gather(text, vocabulary, lexicon, train_aligner(text, lexicon), n_pairs)
    return [link_features(text, statistics, s) for s in range(n_pairs)]


def _as_text(aligned: AlignedPairs) -> list[SentencePair]:
    return [(" ".join(english), " ".join(french)) for english, french in aligned.words]


def _is_short(pair: SentencePair) -> bool:
    return max(len(side.split()) for side in pair) <= _LONGEST


def _align(pairs: list[SentencePair], tables: list[Table]) -> AlignedPairs:
    """Link the words of pairs automatically."""
    links = [_agreed_links(table) for table in tables]
    return AlignedPairs([(english.split(), french.split()) for english, french in pairs], links, links)


def _agreed_links(table: Table) -> Links:
    """Return the links that are the best of both words under both models, and better than no link."""
    forward, backward = table["hmm forward"], table["hmm backward"]
    best = (forward == forward.max(axis=0)) & (backward == backward.max(axis=1, keepdims=True))
    linked = (forward > 1.0 - forward.sum(axis=0)) & (backward > 1.0 - backward.sum(axis=1, keepdims=True))
    return [(int(j), int(k)) for j, k in zip(*np.nonzero(best & linked), strict=True)]


def _described(aligned: AlignedPairs, tables: list[Table], fertility: int) -> DescribedPairs:
    likelihoods = [table["hmm both"] for table in tables]
    return DescribedPairs(
        aligned.words,
        [np.stack(list(table.values()), axis=2) for table in tables],
        [_matching(sure, table, fertility) for sure, table in zip(aligned.sure, likelihoods, strict=True)],
        aligned.sure,
        aligned.possible,
    )


def _matching(links: Links, likelihood: FloatArray, fertility: int) -> Links:
    """Return the links that a matching can contain; where two compete, the likelier one."""
    sources, targets = ([0] * length for length in likelihood.shape)
    kept = []
    for j, k in sorted(links, key=lambda link: -likelihood[link]):
        if sources[j] < fertility and targets[k] == 0:
            kept.append((j, k))
            sources[j] += 1
            targets[k] += 1
    return sorted(kept)
