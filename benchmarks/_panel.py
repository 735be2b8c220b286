"""The panel: tasks on real data, each with an estimator, a score and values of C."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _pictures import drawn_grids, nuclei_graphs, snake_graphs
from _scores import ACCURACY, CHUNKS, LINKS, OVERLAP, SUBSETS, Score
from maxmargin import ChainSVC, DependencySVC, GraphSVC, MatchingSVC, MulticlassSVC, MultilabelSVC, SegmentSVC
from maxmargin.datasets import (
    load_conll2000,
    load_digit_words,
    load_nuclei,
    load_ocr,
    load_scene,
    load_snakes,
    load_ud_ewt,
)

# The word aligner is not installed: it is part of the examples.
sys.path.append(str(Path(__file__).parents[1] / "examples"))
from word_alignment import load_described_hansards

# Of how many parts of the training examples one is held out; all of them in turn, if there are few examples.
FOLDS, FEW = 5, 150
_LETTERS = 20_000
_AFFIXES = range(1, 5)


class Examples(NamedTuple):
    """Inputs, the outputs to train on, and what predictions are compared with."""

    X: Any
    y: Any
    truth: Any

    def take(self, chosen: Any) -> "Examples":
        """Return some of the examples."""
        return Examples(*(_taken(part, chosen) for part in self))


def _taken(part: Any, chosen: Any) -> Any:
    return part[chosen] if isinstance(part, np.ndarray) else [part[i] for i in chosen]


class Data(NamedTuple):
    """Examples to train on and to test on."""

    train: Examples
    test: Examples


def of_share(data: Data, share: float) -> Data:
    """Return a share of the training examples, in random order, and all test examples."""
    order = np.random.default_rng(0).permutation(len(data.train.y))
    return Data(data.train.take(order[: max(2, round(share * len(order)))]), data.test)


def held_out(data: Data) -> list[Data]:
    """Return the training examples alone, the last fifth to test on, or each fifth if there are few."""
    n = len(data.train.y)
    fifths = np.array_split(np.arange(n), min(FOLDS, n))
    return [
        Data(data.train.take(np.setdiff1d(np.arange(n), fifth)), data.train.take(fifth))
        for fifth in (fifths if n < FEW else fifths[-1:])
    ]


def _data(X: Any, y: Any, test_X: Any, test_y: Any) -> Data:
    return Data(Examples(X, y, y), Examples(test_X, test_y, test_y))


def chunking(home: str | None) -> Data:
    """Return chunk tags of words with part-of-speech tags."""
    return _data(*load_conll2000(data_home=home))


def tags(home: str | None) -> Data:
    """Return universal part-of-speech tags of words."""
    return _from_words(home, lambda tags: tags)


def names(home: str | None) -> Data:
    """Return names, runs of proper nouns in words, as tags "B-name", "I-name" and "O"."""
    return _from_words(home, _runs_of_names)


def _from_words(home: str | None, tags_of: Callable[[list[str]], list[str]]) -> Data:
    train, _, test = load_ud_ewt(data_home=home, tags="upos")
    parts = []
    for sentences in (train.X, test.X):
        parts += [[word_features([word for word, _ in tokens]) for tokens in sentences]]
        parts += [[tags_of([tag for _, tag in tokens]) for tokens in sentences]]
    return _data(*parts)


def _runs_of_names(tags: list[str]) -> list[str]:
    before = ["", *tags]
    kinds = {(False, False): "O", (True, False): "O", (False, True): "B-name", (True, True): "I-name"}
    return [kinds[a == "PROPN", b == "PROPN"] for a, b in zip(before, tags, strict=False)]


def word_features(words: list[str]) -> list[list[str]]:
    """Describe each word by itself, its beginnings and ends, its shape, and its neighbours."""
    around = ["<s>", *(word.lower() for word in words), "</s>"]
    return [[*_of_word(word), *_of_neighbours(around, k)] for k, word in enumerate(words, start=1)]


def _of_word(word: str) -> list[str]:
    lower = word.lower()
    found = ["bias", f"word={word}", f"lower={lower}"]
    found += [f"begins={lower[:k]}" for k in _AFFIXES] + [f"ends={lower[-k:]}" for k in _AFFIXES]
    shape = {
        "capital": word[:1].isupper(),
        "capitals": word.isupper(),
        "digit": any(c.isdigit() for c in word),
        "hyphen": "-" in word,
    }
    return list(dict.fromkeys([*found, *(name for name, has in shape.items() if has)]))


def _of_neighbours(around: list[str], k: int) -> list[str]:
    return [
        f"before={around[k - 1]}",
        f"after={around[k + 1]}",
        f"before,lower={around[k - 1]} {around[k]}",
        f"lower,after={around[k]} {around[k + 1]}",
    ]


def names_by_few(home: str | None) -> Data:
    """Return names in words that are described as in the tutorial of sklearn-crfsuite, without tags."""
    train, _, test = load_ud_ewt(data_home=home, tags="upos")
    parts: list[Any] = []
    for sentences in (train.X, test.X):
        parts += [[_few_features([word for word, _ in tokens]) for tokens in sentences]]
        parts += [[_runs_of_names([tag for _, tag in tokens]) for tokens in sentences]]
    return _data(*parts)


def _few_features(words: list[str]) -> list[dict[str, Any]]:
    shapes = [
        {"lower": word.lower(), "title": word.istitle(), "upper": word.isupper(), "digit": word.isdigit()}
        for word in words
    ]
    found = []
    for t, word in enumerate(words):
        features: dict[str, Any] = {"bias": 1.0, "[-3:]": word[-3:], "[-2:]": word[-2:], **shapes[t]}
        for name, k in (("before", t - 1), ("after", t + 1)):
            there = 0 <= k < len(words)
            features |= (
                {f"{name}:{key}": value for key, value in shapes[k].items()} if there else {name: "none"}
            )
        found.append(features)
    return found


def ocr(home: str | None) -> Data:
    """Return handwritten words."""
    return _data(*load_ocr(data_home=home))


def digit_words(home: str | None) -> Data:
    """Return words of scanned digits."""
    return _data(*load_digit_words())


def heads(home: str | None) -> Data:
    """Return sentences with the heads of their words."""
    train, _, test = load_ud_ewt(data_home=home)
    return _data(train.X, train.y, test.X, test.y)


def links(home: str | None) -> Data:
    """Return pairs of sentences that were aligned automatically; those to test on were aligned by hand."""
    return _aligned(home, "automatic")


def links_by_hand(home: str | None) -> Data:
    """Return pairs of sentences that were aligned by hand."""
    return _aligned(home, "gold")


def _aligned(home: str | None, labels: str) -> Data:
    train, test, _ = load_described_hansards(data_home=home, labels=labels)
    parts = [
        Examples(part.X, part.y, list(zip(part.sure, part.possible, strict=True))) for part in (train, test)
    ]
    return Data(*parts)


def nuclei(home: str | None) -> Data:
    """Return images of nuclei as graphs of pixels."""
    train, test = load_nuclei(data_home=home)
    return _data(nuclei_graphs(train.images), train.y, nuclei_graphs(test.images), test.y)


def snakes(home: str | None) -> Data:
    """Return pictures of snakes as graphs."""
    train, test = load_snakes(data_home=home)
    return _data(snake_graphs(train.images), train.y, snake_graphs(test.images), test.y)


def grids(home: str | None) -> Data:
    """Return pictures of squares that are drawn at random, under noise."""
    rng = np.random.default_rng(0)
    return _data(*drawn_grids(rng, 60), *drawn_grids(rng, 200))


def scenes(home: str | None) -> Data:
    """Return photographs with their sets of labels."""
    train, test, _ = load_scene(data_home=home)
    return _data(train.X, train.y, test.X, test.y)


def letters(home: str | None) -> Data:
    """Return single letters of handwritten words."""
    X, y, test_X, test_y = map(np.concatenate, load_ocr(data_home=home))
    chosen = np.random.default_rng(0).permutation(len(y))[:_LETTERS]
    return _data(X[chosen], y[chosen], test_X, test_y)


def digits(home: str | None) -> Data:
    """Return scanned digits, with pixels from 0 to 16 as scikit-learn has them."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, test_X, y, test_y = train_test_split(*load_digits(return_X_y=True), test_size=0.4, random_state=0)
    return _data(X, y, test_X, test_y)


class Task(NamedTuple):
    """A task of the panel.

    Attributes
    ----------
    load : callable
        From the directory of data, or None, to the data.
    estimator : class
        Whose defaults are measured.
    score : Score
    C : tuple of float
        The values of C to choose from; the loss is that of the default.
    predict : str
        The method of the estimator whose answers are scored.
    losses : tuple of str
        The losses to choose from.
    """

    load: Callable[[str | None], Data]
    estimator: Any
    score: Score
    C: tuple[float, ...]
    predict: str = "predict"
    losses: tuple[str, ...] = ()

    @property
    def is_tagging(self) -> bool:
        """Whether chains are the model, and so crfsuite is a rival."""
        return self.estimator is ChainSVC


# Seven values each, around those that are good.
_C = (0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.5)
_WIDER = (0.001, 0.005, 0.02, 0.07, 0.15, 0.5, 1.5)
_SMALLER = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.07, 0.15)
_HAMMING = ("hamming", "normalized_hamming")

PANEL: dict[str, Task] = {
    "chunking": Task(chunking, ChainSVC, CHUNKS, _C, losses=_HAMMING),
    "tags": Task(tags, ChainSVC, ACCURACY, _C, losses=_HAMMING),
    "names": Task(names, ChainSVC, CHUNKS, _C, losses=_HAMMING),
    "names by few": Task(names_by_few, ChainSVC, CHUNKS, _C),
    "OCR words": Task(ocr, ChainSVC, ACCURACY, _C, losses=_HAMMING),
    "digit words": Task(digit_words, ChainSVC, ACCURACY, _C, losses=_HAMMING),
    "phrases": Task(chunking, SegmentSVC, CHUNKS, _C, "predict_tags", (*_HAMMING, "segments")),
    "heads": Task(heads, DependencySVC, ACCURACY, _WIDER),
    "links": Task(links, MatchingSVC, LINKS, _WIDER),
    "links by hand": Task(links_by_hand, MatchingSVC, LINKS, _WIDER),
    "nuclei": Task(nuclei, GraphSVC, OVERLAP, _SMALLER),
    "snakes": Task(snakes, GraphSVC, ACCURACY, _C, losses=_HAMMING),
    "grids": Task(grids, GraphSVC, ACCURACY, _C),
    "scenes": Task(scenes, MultilabelSVC, SUBSETS, _C),
    "letters": Task(letters, MulticlassSVC, ACCURACY, _C),
    "digits": Task(digits, MulticlassSVC, ACCURACY, _SMALLER),
}
