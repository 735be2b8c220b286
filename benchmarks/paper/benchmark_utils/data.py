"""Training problems with their test errors, as the objective takes them; each is made once in a process."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.datasets import alignment_error_rate, load_conll2000, load_digit_words, load_ocr
from maxmargin.encoding.labels import encode_labels
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.problems import Chain, Matching, Multiclass
from maxmargin.runtime.arrays import FloatArray
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.oracle import output_size

# The word aligner is not installed: it is part of the examples.
sys.path.append(str(Path(__file__).parents[3] / "examples"))
from word_alignment import load_described_hansards

# Features of fewer tokens are left out of CoNLL-2000, for all systems alike.
MIN_COUNT = 3


class Raw(NamedTuple):
    """Examples as users have them, for rivals with encodings of their own."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


class Data(NamedTuple):
    """What a dataset gives the objective; without a problem, ``missing`` says why and what to do."""

    problem: Any = None
    test_error: Callable[[FloatArray], float] | None = None
    raw: Raw | None = None
    missing: str = ""


def chain_data(raw: Raw, min_count: int = 1) -> Data:
    """Return sequences as a problem; the test error is the mean over them of the share of wrong labels."""
    encoder = SequenceEncoder(min_count=min_count)
    rows, offsets = encoder.fit_transform(raw.X)
    labels, classes = encode_labels(raw.y, offsets)
    problem = Chain.from_encoded(rows, offsets, labels, len(classes))
    test = Chain.for_prediction(*encoder.transform(raw.X_test), len(classes))
    error = hamming_error(raw.y_test)
    return Data(problem, lambda w: error(classes[decode_all(test, w)]), raw)


def hamming_error(y: Any) -> Callable[[Any], float]:
    """Return the function that takes predicted labels, all in one array, to their mean normalised error."""
    truth = np.concatenate(y)
    lengths = np.array([len(labels) for labels in y])
    share = np.repeat(1.0 / (lengths * len(lengths)), lengths)
    return lambda predicted: float(share @ (predicted != truth))


@cache
def ocr() -> Data:
    """Return the OCR letters in the paper's setting: nine folds to train on, fold 0 to test."""
    try:
        return chain_data(Raw(*load_ocr()))
    except FileNotFoundError as error:
        return Data(missing=str(error))


@cache
def conll() -> Data:
    """Return CoNLL-2000 chunking, without features of fewer than `MIN_COUNT` tokens."""
    try:
        return chain_data(Raw(*load_conll2000()), MIN_COUNT)
    except FileNotFoundError as error:
        return Data(missing=str(error))


@cache
def digit_words() -> Data:
    """Return words of scanned digits, which come with scikit-learn."""
    return chain_data(Raw(*load_digit_words(n_train=300, n_test=100)))


@cache
def digits() -> Data:
    """Return scikit-learn's scanned digits: one label each, two thirds to train on."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / X.max(), y, test_size=1 / 3, random_state=0, stratify=y)
    problem = Multiclass.from_arrays(X, y)

    def test_error(w: FloatArray) -> float:
        return float(np.mean((X_test @ problem.unpack(w).unary.T).argmax(axis=1) != y_test))

    return Data(problem, test_error, Raw(X, y, X_test, y_test))


@cache
def matching() -> Data:
    """Return word alignment of the Hansards in the paper's setting: 5,000 pairs aligned automatically.

    The test error is the alignment error rate on pairs aligned by hand.
    """
    try:
        train, test, _ = load_described_hansards(labels="automatic")
    except FileNotFoundError as error:
        return Data(missing=str(error))
    problem, held_out = Matching.from_links(train.X, train.y), Matching.from_links(test.X, test.y)
    stops = np.cumsum([output_size(held_out.oracle, i) for i in range(len(test.X))])

    def test_error(w: FloatArray) -> float:
        found = np.split(decode_all(held_out, w), stops[:-1])
        return alignment_error_rate(test.sure, test.possible, found)

    return Data(problem, test_error, Raw(train.X, train.y, test.X, test.y))


LOADERS: dict[str, Callable[[], Data]] = {
    "OCR": ocr,
    "CoNLL": conll,
    "matching": matching,
    "digit words": digit_words,
    "digits": digits,
}
