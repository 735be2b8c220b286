"""The problems of the benchmarks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from _crfsuite import MIN_COUNT
from maxmargin.datasets import load_ocr
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.problems import Chain, Multiclass
from maxmargin.problems.chain import ChainProblem
from maxmargin.problems.multiclass import MulticlassProblem

LETTERS = 20_000


def ocr_problem(data: str | None) -> ChainProblem:
    """Return the OCR words as a problem."""
    X, y, _, _ = load_ocr(data_home=data)
    return Chain.from_sequences(X, y)


def letters_problem(data: str | None) -> MulticlassProblem:
    """Return single letters of the OCR words, drawn at random, as a problem of 26 classes."""
    X, y, _, _ = load_ocr(data_home=data)
    chosen = np.random.default_rng(0).permutation(sum(map(len, y)))[:LETTERS]
    return Multiclass.from_arrays(np.concatenate(X)[chosen], np.concatenate(y)[chosen])


def conll_problem(X: Any, y: Any) -> ChainProblem:
    """Return CoNLL-2000 as a problem, without rare features."""
    rows, offsets = SequenceEncoder(min_count=MIN_COUNT).fit_transform(X)
    labels, classes = encode_labels(y, offsets, owner="benchmark")
    return Chain.from_encoded(rows, offsets, labels, len(classes))


def if_there(measure: Callable[[], Any]) -> None:
    """Measure, or print which data are missing and how to get them."""
    try:
        measure()
    except FileNotFoundError as error:
        print(f"Skipped. {error}\n")
