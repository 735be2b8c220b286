"""The handwritten words of Kassel and Taskar, letter by letter."""

import os
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets.files import Source, damaged, locate, read_gzip
from maxmargin.runtime.wording import shown

_CALLER = "load_ocr"
_SOURCE = Source(
    names=("ocr.npz", "letter.data.gz"),
    url="http://ai.stanford.edu/~btaskar/ocr/letter.data.gz",
    saved_as="letter.data.gz",
)
_N_PIXELS = 128
# id, letter, next_id, word_id, position, fold; then the pixels
_N_FIELDS = 6
_LETTER, _NEXT_ID, _FOLD = 1, 2, 5

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class _Letters(NamedTuple):
    """All letters, one per row; word i consists of the rows ``offsets[i]:offsets[i + 1]``."""

    pixels: NDArray[np.uint8]
    labels: IntArray
    offsets: IntArray
    fold: IntArray


def load_ocr(
    *, data_home: str | os.PathLike[str] | None = None, fold: int = 0
) -> tuple[list[FloatArray], list[IntArray], list[FloatArray], list[IntArray]]:
    """Load the OCR letters: 6877 handwritten words, 52152 letters of 16 x 8 black or white pixels.

    The first letter of every word, a capital, is missing from the data. With the default fold this
    is the setting of the paper: 6251 words to train on and 626 to test.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with ``ocr.npz`` or the official ``letter.data.gz``. ``$MAXMARGIN_DATA``
        and the user's cache directory are searched next.
    fold : int, default=0
        The fold to test on, 0 to 9; all the others are for training.

    Returns
    -------
    X_train, y_train, X_test, y_test : lists of arrays
        Each word is a float64 array of shape (length, 129), 128 pixels and a constant 1, with an
        int64 array of its letters, 0 for a to 25 for z. The words are views of one array.

    Raises
    ------
    FileNotFoundError
        If there is no data file; the message says where to get it.
    OSError
        If the data file is damaged.

    References
    ----------
    .. [1] B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks", NIPS 2003.
    .. [2] S. Lacoste-Julien, M. Jaggi, M. Schmidt and P. Pletscher, "Block-coordinate Frank-Wolfe
           optimization for structural SVMs", ICML 2013.
    """
    path = locate(_SOURCE, data_home, _CALLER)
    letters = _read_npz(path) if path.suffix == ".npz" else _read_letter_data(path)
    folds = sorted(set(letters.fold.tolist()))
    if fold not in folds:
        raise ValueError(f"{_CALLER}: fold must be one of {folds}; got {shown(fold)}.")
    X, y = _words(letters)
    test = (letters.fold == fold).tolist()
    return (
        [x for x, held_out in zip(X, test, strict=True) if not held_out],
        [t for t, held_out in zip(y, test, strict=True) if not held_out],
        [x for x, held_out in zip(X, test, strict=True) if held_out],
        [t for t, held_out in zip(y, test, strict=True) if held_out],
    )


def _words(letters: _Letters) -> tuple[list[FloatArray], list[IntArray]]:
    rows = np.empty((len(letters.pixels), _N_PIXELS + 1))
    rows[:, :_N_PIXELS] = letters.pixels
    rows[:, _N_PIXELS] = 1.0
    bounds = letters.offsets.tolist()
    spans = [slice(*pair) for pair in pairwise(bounds)]
    return [rows[span] for span in spans], [letters.labels[span] for span in spans]


def _read_npz(path: Path) -> _Letters:
    from zipfile import BadZipFile
    from zlib import error as ZlibError

    try:
        # NumPy does not close a damaged file, unless we opened it.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            letters = _Letters(
                data["pixels"],
                data["labels"].astype(np.int64),
                data["offsets"].astype(np.int64),
                data["fold"].astype(np.int64),
            )
    # TypeError: a single array, which is not a context manager
    except (BadZipFile, ZlibError, EOFError, KeyError, TypeError, ValueError) as error:
        raise damaged(path, error, _CALLER) from None
    return _checked(letters, path)


def _read_letter_data(path: Path) -> _Letters:
    """Parse the official file: one letter per line, tab-separated, ``next_id`` -1 at the end of a word."""
    heads, tails = _split_lines(path)
    try:
        ends = np.array([int(fields[_NEXT_ID]) == -1 for fields in heads], dtype=bool)
        folds = np.array([int(fields[_FOLD]) for fields in heads], dtype=np.int64)
    except ValueError as error:
        raise damaged(path, error, _CALLER) from None
    letters = _Letters(
        _codes(tails, b"0").reshape(-1, _N_PIXELS),
        _codes([fields[_LETTER] for fields in heads], b"a").astype(np.int64),
        np.append(0, np.flatnonzero(ends) + 1),
        folds[ends],
    )
    return _checked(letters, path)


def _split_lines(path: Path) -> tuple[list[list[bytes]], list[bytes]]:
    """Return the fields before the pixels, and the pixels as strings of 128 digits."""
    heads, tails = [], []
    for number, line in enumerate(read_gzip(path, _CALLER).splitlines(), start=1):
        *head, tail = line.split(b"\t", _N_FIELDS)
        pixels = tail.replace(b"\t", b"")
        if len(head) != _N_FIELDS or len(pixels) != _N_PIXELS:
            reason = f"line {number} is not {_N_FIELDS} fields and {_N_PIXELS} pixels"
            raise damaged(path, reason, _CALLER)
        heads.append(head)
        tails.append(pixels)
    return heads, tails


def _codes(characters: list[bytes], first: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(characters), np.uint8) - np.uint8(ord(first))


def _checked(letters: _Letters, path: Path) -> _Letters:
    """Return the letters; raise if their arrays are inconsistent."""
    pixels, labels, offsets, fold = letters
    if pixels.shape != (len(labels), _N_PIXELS) or pixels.size == 0 or pixels.max() > 1:
        raise damaged(path, f"expected {len(labels)} rows of {_N_PIXELS} 0/1 pixels", _CALLER)
    if labels.min() < 0 or labels.max() > 25:
        raise damaged(path, "a label is not a letter from a to z", _CALLER)
    ordered = len(offsets) == len(fold) + 1 and bool(np.all(np.diff(offsets) > 0))
    if not ordered or offsets[0] != 0 or offsets[-1] != len(labels):
        raise damaged(path, "the last word does not end with the file", _CALLER)
    return letters
