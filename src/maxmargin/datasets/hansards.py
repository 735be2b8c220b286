"""Word alignment: the English-French Hansards of the shared task of HLT-NAACL 2003."""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin import evaluation
from maxmargin.datasets.files import damaged, read_text, require
from maxmargin.runtime.wording import shown

_CALLER = "load_hansards"
_URL = "https://web.eecs.umich.edu/~mihalcea/wpt/"
_UNLABELLED = ("train36_2_25k", "train36_1_sample", "isi_short_tok")
# Training takes all pairs of the trial set and this many of the test set.
_FROM_TEST = 100
_ACCENTS = re.compile("[\u0300-\u036f]")

SentencePair = tuple[str, str]
Link = tuple[int, int]
Links = list[Link]
LinksOrTargets = Iterable[Link] | Iterable[int]


class AlignedPairs(NamedTuple):
    """Sentence pairs whose words were linked by hand.

    Attributes
    ----------
    words : list of (list of str, list of str)
        The English and the French words, in lower case and without accents.
    sure, possible : lists of lists of (english, french)
        For each pair, the links that must be present, and all that may be. The sure links are possible too.
    """

    words: list[tuple[list[str], list[str]]]
    sure: list[Links]
    possible: list[Links]


class Hansards(NamedTuple):
    """The pairs that `load_hansards` returns.

    Attributes
    ----------
    train, test : AlignedPairs
    text : list of (str, str)
        English sentences with their French translations, without links: words in lower case and without
        accents, separated by blanks. No pair occurs twice.
    """

    train: AlignedPairs
    test: AlignedPairs
    text: list[SentencePair]


def load_hansards(*, data_home: str | os.PathLike[str] | None = None, n_text: int | None = None) -> Hansards:
    """Load the Hansards: sentence pairs with the links between their words.

    Links need features before a model can be trained on them. The directory ``examples/word_alignment`` of
    the source distribution computes some from the unlabelled text.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with a directory ``hansards`` that holds ``trial`` and ``test`` (``.en.gz``, ``.fr.gz`` and
        ``.wa.gz``) and the unlabelled ``train36_2_25k``, ``train36_1_sample`` and ``isi_short_tok``
        (``.en.gz`` and ``.fr.gz``). ``$MAXMARGIN_DATA`` and the user's cache directory are searched next.
    n_text : int, optional
        How many unlabelled pairs to return. By default all of them, which takes some seconds to read.

    Returns
    -------
    Hansards
        ``(train, test, text)``. ``train`` has the 37 trial pairs and the first 100 test pairs; ``test`` has
        the other 347.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    OSError
        If a file is damaged.

    References
    ----------
    .. [1] R. Mihalcea and T. Pedersen, "An evaluation exercise for word alignment", HLT-NAACL 2003.
    """
    if n_text is not None and n_text < 0:
        raise ValueError(f"{_CALLER}: n_text must be an int >= 0, got {shown(n_text)}.")
    trial, test = (_read_aligned(stem, data_home) for stem in ("trial", "test"))
    first, held_out = _slice(test, slice(_FROM_TEST)), _slice(test, slice(_FROM_TEST, None))
    train = AlignedPairs(trial.words + first.words, trial.sure + first.sure, trial.possible + first.possible)
    return Hansards(train, held_out, _read_text(n_text, data_home))


def alignment_error_rate(
    sure: Iterable[LinksOrTargets], possible: Iterable[LinksOrTargets], predicted: Iterable[LinksOrTargets]
) -> float:
    r"""Return the alignment error rate of Och and Ney.

    .. math:: 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}

    for predicted links A, sure links S and possible links P. Sure links count as possible.

    Parameters
    ----------
    sure, possible, predicted : lists
        For each sentence pair either a list of links (source, target), or the target of each source word,
        -1 where it has none.

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
            "alignment_error_rate: expected links, sure, possible and predicted, of equally many pairs, "
            f"got {', '.join(str(len(side)) for side in sets)}."
        )
    return evaluation.alignment_error_rate(*sets)


def _link_set(links: LinksOrTargets) -> set[Link]:
    try:
        entries = np.array(list(links), dtype=np.int64)
    except OverflowError:
        raise ValueError(
            "alignment_error_rate: links must be pairs of numbers of words, got a number above 2**63."
        ) from None
    if entries.ndim == 1:
        return {(j, k) for j, k in enumerate(entries.tolist()) if k >= 0}
    return {(j, k) for j, k in entries.tolist()}


def folded(text: str) -> str:
    """Return the text in lower case and without accents."""
    return _ACCENTS.sub("", unicodedata.normalize("NFD", text)).lower()


def _slice(pairs: AlignedPairs, chosen: slice) -> AlignedPairs:
    return AlignedPairs(pairs.words[chosen], pairs.sure[chosen], pairs.possible[chosen])


def _read_aligned(stem: str, data_home: str | os.PathLike[str] | None) -> AlignedPairs:
    words = [(english.split(), french.split()) for english, french in _read_pairs(stem, data_home)]
    aligned = AlignedPairs(words, [[] for _ in words], [[] for _ in words])
    sizes = [(len(english), len(french)) for english, french in words]
    for s, link, is_sure in _read_links(_find(f"{stem}.wa.gz", data_home), sizes):
        aligned.possible[s].append(link)
        if is_sure:
            aligned.sure[s].append(link)
    return aligned


def _read_text(n_text: int | None, data_home: str | os.PathLike[str] | None) -> list[SentencePair]:
    """Return the first ``n_text`` distinct unlabelled pairs, or all of them."""
    found: dict[SentencePair, None] = {}
    for stem in _UNLABELLED:
        if n_text is None or len(found) < n_text:
            found |= dict.fromkeys(_read_pairs(stem, data_home))
    return list(found)[:n_text]


def _read_pairs(stem: str, data_home: str | os.PathLike[str] | None) -> list[SentencePair]:
    paths = [_find(f"{stem}.{language}.gz", data_home) for language in ("en", "fr")]
    english, french = sides = [_lines(path) for path in paths]
    if len(english) != len(french):
        raise damaged(paths[1], f"{len(french)} lines, but {len(english)} in {paths[0].name}", _CALLER)
    for path, lines in zip(paths, sides, strict=True):
        empty = next((number for number, line in enumerate(lines, start=1) if not line.strip()), None)
        if empty is not None:
            raise damaged(path, f"line {empty} is empty", _CALLER)
    return [(folded(a), folded(b)) for a, b in zip(english, french, strict=True)]


def _read_links(path: Path, sizes: list[tuple[int, int]]) -> Iterator[tuple[int, Link, bool]]:
    """Yield (pair, link, is it sure?) for each line of a file of links."""
    for number, line in enumerate(_lines(path), start=1):
        fields = line.split()
        valid = len(fields) == 4 and all(map(str.isdigit, fields[:3])) and fields[3] in ("S", "P")
        s, j, k = (int(field) - 1 for field in fields[:3]) if valid else (-1, -1, -1)
        if not (0 <= s < len(sizes) and 0 <= j < sizes[s][0] and 0 <= k < sizes[s][1]):
            reason = f"line {number} is not a valid link 'pair english french S|P'"
            raise damaged(path, reason, _CALLER)
        yield s, (j, k), fields[3] == "S"


def _lines(path: Path) -> list[str]:
    return read_text(path, _CALLER).removesuffix("\n").split("\n")


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    return require((f"hansards/{name}", name), data_home, _CALLER, f"take it from {_URL}")
