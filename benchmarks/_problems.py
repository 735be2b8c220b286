"""The problems of the benchmarks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from _crfsuite import MIN_COUNT
from maxmargin.datasets import load_conll2000, load_ocr
from maxmargin.encoding.labels import encode_labels
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.problems import Chain, Multiclass
from maxmargin.structures.classes.model import MulticlassProblem
from maxmargin.structures.sequences.model import ChainProblem

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
    return Chain.from_encoded(*_encoded(X, y))


def conll_rows(data: str | None) -> tuple[Any, Any, Any, int]:
    """Return the tokens of CoNLL-2000, where sentences begin, their labels and the number of labels."""
    X, y, _, _ = load_conll2000(data_home=data)
    return _encoded(X, y)


def _encoded(X: Any, y: Any) -> tuple[Any, Any, Any, int]:
    rows, offsets = SequenceEncoder(min_count=MIN_COUNT).fit_transform(X)
    labels, classes = encode_labels(y, offsets)
    return rows, offsets, labels, len(classes)


def if_there(measure: Callable[[], Any]) -> None:
    """Measure, or print which data are missing and how to get them."""
    try:
        measure()
    except FileNotFoundError as error:
        print(f"Skipped. {error}\n")
