"""Word alignment: the English-French Hansards of the shared task of HLT-NAACL 2003."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets._files import damaged, read_gzip, require
from maxmargin.datasets._hmm import train_aligner
from maxmargin.datasets._lexicon import model_1
from maxmargin.datasets._link_features import Table, gather, link_features
from maxmargin.datasets._parallel import folded, number_text

_CALLER = "load_hansards"
_URL = "https://web.eecs.umich.edu/~mihalcea/wpt/"
_UNLABELLED = ("train36_2_25k", "train36_1_sample", "isi_short_tok")
# The hand-aligned pairs to train on: all of the trial set and so many of the test set.
_FROM_TEST = 100
# Automatically aligned pairs to train on, and how long their sentences may be.
_AUTOMATIC, _LONGEST = 5000, 30

Pair = tuple[str, str]
Links = list[tuple[int, int]]


class Aligned(NamedTuple):
    """Sentence pairs and their links.

    Attributes
    ----------
    words : list of (list of str, list of str)
        The English and the French words, in lower case and without accents.
    X : list of arrays of shape (n_english, n_french, n_features)
    y : list of lists of (english, french)
        Sure links, without those that no matching can have.
    sure, possible : lists of lists of (english, french)
        The links that must be there, and all that may be, the sure ones included.
    """

    words: list[tuple[list[str], list[str]]]
    X: list[NDArray[np.float64]]
    y: list[Links]
    sure: list[Links]
    possible: list[Links]


class Hansards(NamedTuple):
    """What `load_hansards` returns."""

    train: Aligned
    test: Aligned
    feature_names: list[str]


def load_hansards(
    *,
    data_home: str | os.PathLike[str] | None = None,
    labels: str = "gold",
    fertility: int = 1,
    n_text: int | None = None,
) -> Hansards:
    """Load the Hansards: sentence pairs whose words are to be linked, with features of all links.

    Most features are statistics of all text, labelled or not, whose links are not looked at: IBM model 1 and
    hidden Markov models in both directions, trained here, which takes a minute or two with all text; Dice
    coefficients and frequencies. The others are distance, spelling, and the commonest words by name.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with a directory ``hansards`` that holds ``trial`` and ``test`` (``.en.gz``, ``.fr.gz`` and
        ``.wa.gz``) and the unlabelled ``train36_2_25k``, ``train36_1_sample`` and ``isi_short_tok``
        (``.en.gz`` and ``.fr.gz``). Then come ``$MAXMARGIN_DATA`` and the user's cache directory.
    labels : {"gold", "automatic"}
        Train on the 37 trial pairs and the first 100 test pairs, aligned by hand, or on 5,000 pairs aligned
        automatically: by the links that are the best of both words under both hidden Markov models.
    fertility : int
        How many links an English word may have in ``y``. A French one has at most one.
    n_text : int, optional
        Use so many unlabelled pairs only.

    Returns
    -------
    Hansards
        ``(train, test, feature_names)``; ``test`` are the other 347 pairs aligned by hand.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    OSError
        If a file is damaged.

    References
    ----------
    .. [1] R. Mihalcea and T. Pedersen, "An evaluation exercise for word alignment", HLT-NAACL 2003.
    .. [2] B. Taskar, S. Lacoste-Julien and M. I. Jordan, "Structured prediction, dual extragradient and
           Bregman projections", JMLR 2006.
    .. [3] P. Liang, B. Taskar and D. Klein, "Alignment by agreement", HLT-NAACL 2006.
    """
    if labels not in ("gold", "automatic"):
        raise ValueError(f"{_CALLER}: labels must be 'gold' or 'automatic', got {labels!r}.")
    for name, value, least in (("fertility", fertility, 1), ("n_text", n_text or 0, 0)):
        if value < least:
            raise ValueError(f"{_CALLER}: {name} must be an int >= {least}, got {value!r}.")
    trial, test = (_read_pairs(stem, data_home) for stem in ("trial", "test"))
    gold = [*_read_links("trial", trial, data_home), *_read_links("test", test, data_home)]
    text = _unlabelled(n_text, data_home)
    n_train, n_gold = len(trial) + _FROM_TEST, len(gold)
    short = list(islice(filter(_is_short, text), _AUTOMATIC)) if labels == "automatic" else []
    others = set(short)
    pairs = [*trial, *test, *short, *(pair for pair in text if pair not in others)]
    tables = _describe(pairs, n_gold + len(short))
    tested = _aligned(pairs[n_train:n_gold], tables[n_train:n_gold], gold[n_train:], fertility)
    chosen = slice(n_gold, n_gold + len(short)) if labels == "automatic" else slice(0, n_train)
    known = [_agreed_links(table) for table in tables[chosen]] if short else gold[:n_train]
    return Hansards(_aligned(pairs[chosen], tables[chosen], known, fertility), tested, list(tables[0]))


def alignment_error_rate(sure: Any, possible: Any, predicted: Any) -> float:
    r"""Return the alignment error rate of Och and Ney.

    .. math:: 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

    for links A predicted, S sure and P possible, the sure ones included.

    Parameters
    ----------
    sure, possible, predicted : lists
        For each sentence pair a list of links (source, target), or the target of each source or -1.

    Returns
    -------
    float
        Between 0 and 1; 0 if there are no links at all.

    Examples
    --------
    >>> alignment_error_rate([[(0, 0)]], [[(0, 0), (1, 1)]], [[(0, 0), (1, 1), (2, 0)]])
    0.25
    """
    sets = [[_link_set(links) for links in side] for side in (sure, possible, predicted)]
    if len({len(side) for side in sets}) != 1:
        raise ValueError(
            "alignment_error_rate: expected as many sentence pairs of sure, possible and predicted links, "
            f"got {', '.join(str(len(side)) for side in sets)}."
        )
    right = total = 0
    for S, P, A in zip(*sets, strict=True):
        right += len(A & S) + len(A & (P | S))
        total += len(A) + len(S)
    return 1.0 - right / total if total else 0.0


def _link_set(links: Any) -> set[tuple[int, int]]:
    entries = list(links)
    if entries and not isinstance(entries[0], Iterable):
        entries = [(j, k) for j, k in enumerate(entries) if k >= 0]
    return {(int(j), int(k)) for j, k in entries}


def _describe(pairs: list[Pair], n_pairs: int) -> list[Table]:
    """Return the features of the links of the first pairs, by what all pairs say."""
    text, vocabulary = number_text(pairs)
    lexicon = model_1(text)
    statistics = gather(text, vocabulary, lexicon, train_aligner(text, lexicon), n_pairs)
    return [link_features(text, statistics, s) for s in range(n_pairs)]


def _is_short(pair: Pair) -> bool:
    return max(len(side.split()) for side in pair) <= _LONGEST


def _agreed_links(table: Table) -> tuple[Links, Links]:
    """The links that are the best of both words under both models, and better than none."""
    forward, backward = table["hmm forward"], table["hmm backward"]
    best = (forward == forward.max(axis=0)) & (backward == backward.max(axis=1, keepdims=True))
    linked = (forward > 1.0 - forward.sum(axis=0)) & (backward > 1.0 - backward.sum(axis=1, keepdims=True))
    links = [(int(j), int(k)) for j, k in zip(*np.nonzero(best & linked), strict=True)]
    return links, links


def _aligned(
    pairs: list[Pair], tables: list[Table], links: list[tuple[Links, Links]], fertility: int
) -> Aligned:
    weights = [table["hmm both"] for table in tables]
    return Aligned(
        [(english.split(), french.split()) for english, french in pairs],
        [np.stack(list(table.values()), axis=2) for table in tables],
        [_matching(sure, weight, fertility) for (sure, _), weight in zip(links, weights, strict=True)],
        [sure for sure, _ in links],
        [possible for _, possible in links],
    )


def _matching(links: Links, weight: NDArray[np.float64], fertility: int) -> Links:
    """Return the links that a matching can have, where two compete the likelier one."""
    sources, targets = ([0] * length for length in weight.shape)
    kept = []
    for j, k in sorted(links, key=lambda link: -weight[link]):
        if sources[j] < fertility and targets[k] == 0:
            kept.append((j, k))
            sources[j] += 1
            targets[k] += 1
    return sorted(kept)


def _read_pairs(stem: str, data_home: str | os.PathLike[str] | None) -> list[Pair]:
    paths = [_find(f"{stem}.{language}.gz", data_home) for language in ("en", "fr")]
    english, french = sides = [_lines(path) for path in paths]
    if len(english) != len(french):
        raise damaged(paths[1], f"{len(french)} lines, but {len(english)} in {paths[0].name}", _CALLER)
    for path, lines in zip(paths, sides, strict=True):
        empty = next((number for number, line in enumerate(lines, start=1) if not line.strip()), None)
        if empty is not None:
            raise damaged(path, f"line {empty} is empty", _CALLER)
    return [(folded(a), folded(b)) for a, b in zip(english, french, strict=True)]


def _unlabelled(n_text: int | None, data_home: str | os.PathLike[str] | None) -> list[Pair]:
    """Return the first so many unlabelled pairs, or all, without repetitions."""
    found: dict[Pair, None] = {}
    for stem in _UNLABELLED:
        if n_text is None or len(found) < n_text:
            found |= dict.fromkeys(_read_pairs(stem, data_home))
    return list(found)[:n_text]


def _read_links(
    stem: str, pairs: list[Pair], data_home: str | os.PathLike[str] | None
) -> list[tuple[Links, Links]]:
    """Return the sure and the possible links of each pair."""
    path = _find(f"{stem}.wa.gz", data_home)
    found: list[tuple[Links, Links]] = [([], []) for _ in pairs]
    for s, link, is_sure in _lines_of_links(path, [(len(e.split()), len(f.split())) for e, f in pairs]):
        found[s][1].append(link)
        if is_sure:
            found[s][0].append(link)
    return found


def _lines_of_links(path: Path, sizes: list[tuple[int, int]]) -> Iterator[tuple[int, tuple[int, int], bool]]:
    for number, line in enumerate(_lines(path), start=1):
        fields = line.split()
        valid = len(fields) == 4 and all(map(str.isdigit, fields[:3])) and fields[3] in ("S", "P")
        s, j, k = (int(field) - 1 for field in fields[:3]) if valid else (-1, -1, -1)
        if not (0 <= s < len(sizes) and 0 <= j < sizes[s][0] and 0 <= k < sizes[s][1]):
            raise damaged(path, f"line {number} is no link 'pair english french S|P' of a pair", _CALLER)
        yield s, (j, k), fields[3] == "S"


def _lines(path: Path) -> list[str]:
    try:
        return read_gzip(path, _CALLER).decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise damaged(path, error, _CALLER) from None


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    return require((f"hansards/{name}", name), data_home, _CALLER, f"take it from {_URL}")
