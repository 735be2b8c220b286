"""Text chunking: the shared task of CoNLL-2000."""

import os
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from sys import intern

from maxmargin.datasets.files import Source, damaged, locate, read_text
from maxmargin.evaluation import phrase_scores
from maxmargin.runtime.wording import described, shown

_URL = "https://www.clips.uantwerpen.be/conll2000/chunking/"
_START, _END = "<s>", "</s>"
_REACH = 2
_WORD, _POS = 0, 1
_FIELDS = ("word", "pos")
# (column, first offset, last offset): 7 templates on words, 12 on part-of-speech tags
_TEMPLATES = (
    *((_WORD, k, k) for k in range(-2, 3)),
    *((_WORD, k, k + 1) for k in (-1, 0)),
    *((_POS, k, k) for k in range(-2, 3)),
    *((_POS, k, k + 1) for k in range(-2, 2)),
    *((_POS, k, k + 2) for k in range(-2, 1)),
)
_NAMES = tuple(
    f"{_FIELDS[column]}[{first}]=" if first == last else f"{_FIELDS[column]}[{first}:{last}]="
    for column, first, last in _TEMPLATES
)

Sentence = list[tuple[str, str, str]]


def load_conll2000(
    *, data_home: str | os.PathLike[str] | None = None
) -> tuple[list[list[list[str]]], list[list[str]], list[list[list[str]]], list[list[str]]]:
    """Load CoNLL-2000 chunking: 8936 sentences to train on and 2012 to test.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with the official ``train.txt.gz`` and ``test.txt.gz``, or with a directory
        ``conll2000`` that holds them. ``$MAXMARGIN_DATA`` and the user's cache directory are searched next.

    Returns
    -------
    X_train, y_train, X_test, y_test : lists
        Each sentence is a list of tokens, each token the list of its `window_features`; with a list
        of chunk tags such as ``"B-NP"``. One tag of the test set, ``"I-LST"``, is not in training.

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message says where to get it.
    OSError
        If a file is damaged.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task:
           chunking", CoNLL 2000.
    """
    train, test = (_find(name, data_home) for name in ("train.txt.gz", "test.txt.gz"))
    return (*_examples(read_conll2000(train)), *_examples(read_conll2000(test)))


def read_conll2000(path: str | os.PathLike[str]) -> list[Sentence]:
    """Read a file of ``word POS tag`` lines, with a blank line after each sentence.

    Parameters
    ----------
    path : path-like
        A text file, compressed if its name ends in ``.gz``.

    Returns
    -------
    list of lists of (word, pos, tag)
        The sentences, without empty ones.

    Raises
    ------
    OSError
        If the file cannot be read, or a line does not have three fields.
    """
    sentences: list[Sentence] = [[]]
    for number, line in enumerate(read_text(Path(path), "read_conll2000").split("\n"), start=1):
        fields = line.split()
        if len(fields) == 3:
            word, pos, tag = map(intern, fields)
            sentences[-1].append((word, pos, tag))
        elif fields:
            reason = f"line {number} has {len(fields)} fields, not 'word POS tag'"
            raise damaged(Path(path), reason, "read_conll2000")
        elif sentences[-1]:
            sentences.append([])
    return sentences if sentences[-1] else sentences[:-1]


def window_features(sentence: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Describe each token by the words and part-of-speech tags up to two positions away.

    There are 19 features per token: the words at -2..2 and the word bigrams (-1, 0) and (0, 1); the
    tags at -2..2, their four bigrams and their three trigrams within the window. Positions
    before the sentence are ``<s>``, those after it ``</s>``. Equal features are the same string
    object, in all sentences.

    Parameters
    ----------
    sentence : sequence of (word, pos)
        The tokens.

    Returns
    -------
    list of lists of str
        For each token, features such as ``"word[0]=pound"`` or ``"pos[-1:1]=DT NN VBZ"``.

    Examples
    --------
    >>> window_features([("He", "PRP"), ("runs", "VBZ")])[1][5:7]
    ['word[-1:0]=He runs', 'word[0:1]=runs </s>']
    """
    try:
        columns = [
            [_START] * _REACH + [token[column] for token in sentence] + [_END] * _REACH
            for column in (_WORD, _POS)
        ]
    except (IndexError, KeyError, TypeError):
        raise ValueError(
            f"window_features: sentence must be a sequence of pairs (word, pos), got {described(sentence)}."
        ) from None
    by_template = [
        [intern(f"{name}{' '.join(span)}") for span in _spans(columns[column], first, last)]
        for name, (column, first, last) in zip(_NAMES, _TEMPLATES, strict=True)
    ]
    return [list(features) for features in zip(*by_template, strict=True)]


def chunk_f1(y_true: Iterable[Sequence[str]], y_pred: Iterable[Sequence[str]]) -> float:
    """Return the F1 score of whole chunks, as the shared task's ``conlleval`` computes it.

    A chunk of type x starts at ``B-x``, or at ``I-x`` that does not continue a chunk of type x; it
    counts as found if type, first and last token all agree.

    Parameters
    ----------
    y_true, y_pred : iterables of sequences of str
        True and predicted tags, ``"O"``, ``"B-x"`` or ``"I-x"``, sentence by sentence.

    Returns
    -------
    float
        Between 0 and 1; 0 if no chunk is right.

    Examples
    --------
    >>> chunk_f1([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]])
    0.5
    """
    true, predicted = list(y_true), list(y_pred)
    if len(true) != len(predicted):
        raise ValueError(
            f"chunk_f1: expected as many predicted sequences as true ones, {len(true)}; got {len(predicted)}."
        )
    for number, (one, other) in enumerate(zip(true, predicted, strict=True)):
        if len(one) != len(other):
            raise ValueError(
                f"chunk_f1: expected {len(one)} predicted tags in sequence {number}; got {len(other)}."
            )
        for tag in (*one, *other):
            _check_tag(tag)
    return phrase_scores(true, predicted).overall.f1


def _check_tag(tag: object) -> None:
    """Raise if a tag is not one of IOB2."""
    prefix, _, chunk_type = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    if tag != "O" and (prefix not in ("B", "I") or not chunk_type):
        raise ValueError(f"chunk_f1: expected tags 'O', 'B-type' or 'I-type'; got {shown(tag)}.")


def _spans(padded: list[str], first: int, last: int) -> Iterable[tuple[str, ...]]:
    """Return, for each token in turn, the entries from offset ``first`` to ``last``."""
    n_tokens = len(padded) - 2 * _REACH
    starts = range(_REACH + first, _REACH + last + 1)
    return zip(*(islice(padded, start, start + n_tokens) for start in starts), strict=True)


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path:
    packed = f"conll2000/{name}"
    return locate(Source((packed, name), _URL + name, packed), data_home, "load_conll2000")


def _examples(sentences: list[Sentence]) -> tuple[list[list[list[str]]], list[list[str]]]:
    X = [window_features([(word, pos) for word, pos, _ in sentence]) for sentence in sentences]
    return X, [[tag for _, _, tag in sentence] for sentence in sentences]
