"""Dependency parsing: the English Web Treebank of Universal Dependencies."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from maxmargin.datasets.files import damaged, read_text, require
from maxmargin.runtime.wording import shown

_CALLER = "load_ud_ewt"
_URL = "https://universaldependencies.org"
_PARTS = ("train", "dev", "test")
_N_FIELDS = 10
_NUMBER, _FORM, _UPOS, _XPOS, _HEAD = 0, 1, 3, 4, 6
_TAGS = {"both": (_UPOS, _XPOS), "upos": (_UPOS,), "xpos": (_XPOS,)}


class Treebank(NamedTuple):
    """Sentences of (word, tag) pairs, and the heads of their words: 0 for the root, 1 for the first word."""

    X: list[list[tuple[str, str]]]
    y: list[list[int]]


class EnglishWebTreebank(NamedTuple):
    """The data that `load_ud_ewt` returns."""

    train: Treebank
    dev: Treebank
    test: Treebank


def load_ud_ewt(*, data_home: str | os.PathLike[str] | None = None, tags: str = "both") -> EnglishWebTreebank:
    """Load the English Web Treebank: 12,544 training, 2,001 development and 2,077 test sentences.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with the official ``en_ewt-ud-train.conllu``, ``-dev`` and ``-test``, compressed by gzip
        (``.conllu.gz``) or not, or with a directory ``ud_ewt`` that holds them. ``$MAXMARGIN_DATA`` and
        the user's cache directory are searched next.
    tags : {"both", "upos", "xpos"}
        The universal tags, the finer tags of the treebank, or both joined.

    Returns
    -------
    EnglishWebTreebank
        ``(train, dev, test)``, each of them ``(X, y)``.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    OSError
        If a file is damaged.

    References
    ----------
    .. [1] N. Silveira et al., "A gold standard dependency corpus for English", LREC 2014.
    """
    paths = [_find(part, data_home) for part in _PARTS]
    return EnglishWebTreebank(*(read_conllu(path, tags=tags) for path in paths))


def read_conllu(path: str | os.PathLike[str], *, tags: str = "both") -> Treebank:
    """Read words, tags and heads from a file in the CoNLL-U format.

    Parameters
    ----------
    path : path-like
        A text file, compressed if its name ends in ``.gz``.
    tags : {"both", "upos", "xpos"}
        Which tags to read: the universal ones, those of the language, or both joined.

    Returns
    -------
    Treebank
        ``(X, y)``. Ranges of words (``2-3``) and empty nodes (``2.1``) are skipped.

    Raises
    ------
    OSError
        If the file cannot be read, or a line is malformed.
    """
    if tags not in _TAGS:
        raise ValueError(f"read_conllu: tags must be 'both', 'upos' or 'xpos', got {shown(tags)}.")
    found = Treebank([], [])
    for rows in _sentences(Path(path)):
        found.X.append([(row[_FORM], "-".join(row[column] for column in _TAGS[tags])) for row in rows])
        found.y.append([int(row[_HEAD]) for row in rows])
    return found


def _sentences(path: Path) -> Iterator[list[list[str]]]:
    """Yield the fields of the words of each sentence."""
    rows: list[list[str]] = []
    for number, line in enumerate((*read_text(path, "read_conllu").split("\n"), ""), start=1):
        if not line.strip():
            if rows:
                yield rows
            rows = []
        elif not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != _N_FIELDS:
                raise damaged(path, f"line {number} has {len(fields)} fields, not {_N_FIELDS}", "read_conllu")
            if fields[_NUMBER].isdigit():
                if not fields[_HEAD].isdigit():
                    raise damaged(path, f"line {number} has no head", "read_conllu")
                rows.append(fields)


def _find(part: str, data_home: str | os.PathLike[str] | None) -> Path:
    name = f"en_ewt-ud-{part}.conllu"
    names = tuple(f"{folder}{name}{end}" for folder in ("ud_ewt/", "") for end in (".gz", ""))
    return require(names, data_home, _CALLER, f"take it from {_URL}")
