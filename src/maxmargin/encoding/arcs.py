"""Encode sentences: the features of the arcs between their words, and the true heads."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from maxmargin.arrays import (
    CsrMatrix,
    IntArray,
    SparseMatrix,
    ValueArray,
    frozen,
    is_sparse,
    value_dtype,
)
from maxmargin.encoding.kinds import checked_some, is_empty, is_numeric
from maxmargin.encoding.matrices import checked_csr, in_order
from maxmargin.encoding.tokens import Offsets, Words, check_widths, first_not_finite, offsets_of
from maxmargin.wording import described

_HEADS = "the head of each word, 0 for the root and 1 for the first word"


class Indicators(NamedTuple):
    """Rows of zeros and ones: row t has ones in the columns ``columns[start[t]:start[t + 1]]``."""

    start: IntArray
    columns: NDArray[np.uint32]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self.start) - 1, self.n_columns


class Arcs(NamedTuple):
    """The arcs of all sentences, one sentence after another.

    Attributes
    ----------
    features : ndarray of float64 or float32 (n_arcs, n_features), csr_array or Indicators
        A sentence of m words has m (m + 1) rows: for each word one row per head, the root first.
    offsets : ndarray of int64 (n_sentences + 1,)
        Sentence i consists of the words offsets[i], ..., offsets[i + 1] - 1; it may have none.
    """

    features: ValueArray | CsrMatrix | Indicators
    offsets: Offsets


def encode_arcs(X: object, *, owner: str) -> Arcs:
    """Return the features of arcs given as arrays or as sparse matrices."""
    items = some_sentences(X, owner)
    present = {i: item for i, item in enumerate(items) if not is_empty(item)}
    sparse = is_sparse(next(iter(present.values())))
    blocks = {i: _block(item, sparse, f"{owner}: sentence {i} of X") for i, item in present.items()}
    check_widths({i: block.shape[1] for i, block in blocks.items()}, Words("sentence", "arc"), owner)
    lengths = np.zeros(len(items), dtype=np.int64)
    lengths[list(blocks)] = [_n_words(block.shape[0]) for block in blocks.values()]
    return Arcs(frozen(_stacked(list(blocks.values()))), offsets_of(lengths))


def _stacked(blocks: list[ValueArray | CsrMatrix]) -> ValueArray | CsrMatrix:
    dense = [block for block in blocks if isinstance(block, np.ndarray)]
    if dense:
        return np.concatenate(dense)
    stacked: CsrMatrix = scipy.sparse.csr_array(scipy.sparse.vstack(blocks))
    return stacked


def as_sentences(X: object, owner: str) -> list[object]:
    """Return X as a list of sentences; those that are iterators become lists."""
    one = is_sparse(X) or getattr(X, "ndim", 0) == 3
    if one or not isinstance(X, Iterable) or isinstance(X, str | bytes | dict):
        advice = "; if it is one sentence pass [X]" if one else ""
        raise TypeError(f"{owner}: X must be a list of sentences, got {described(X)}{advice}.")
    return [list(item) if isinstance(item, Iterator) else item for item in X]


def some_sentences(X: object, owner: str) -> list[object]:
    """Return X as a list of sentences, of which one or more have words."""
    return checked_some(as_sentences(X, owner), "sentence", owner)


def _n_words(n_arcs: int) -> int:
    """Return the number m of words of a sentence with m (m + 1) arcs, or 0 if there is no such m."""
    m = int((np.sqrt(1 + 4 * n_arcs) - 1) / 2 + 0.5)
    return m if m * (m + 1) == n_arcs else 0


def _block(item: object, sparse: bool, where: str) -> ValueArray | CsrMatrix:
    """Return the features of the arcs of one sentence, one row per arc."""
    if is_sparse(item) != sparse:
        expected = "a sparse matrix" if sparse else "an array"
        raise TypeError(
            f"{where} is {described(item)}, but the first is {expected}; give all sentences the same form."
        )
    block = _matrix(item, where) if is_sparse(item) else _array(item, where)
    if _n_words(block.shape[0]) == 0 or block.shape[1] == 0:
        raise ValueError(
            f"{where} is {described(item)}, expected at least one feature for each of the m (m + 1) arcs "
            "of m words: a matrix with m (m + 1) rows, or an array of shape (m, m + 1, n_features)."
        )
    if first_not_finite(block if isinstance(block, np.ndarray) else block.data) is not None:
        raise ValueError(f"{where} has a feature that is not a finite number; remove or impute it.")
    return block


def _matrix(item: SparseMatrix, where: str) -> CsrMatrix:
    matrix = checked_csr(item, where)
    canonical: CsrMatrix = in_order(
        scipy.sparse.csr_array(matrix, dtype=value_dtype(matrix.dtype), copy=True)
    )
    return canonical


def _array(item: object, where: str) -> ValueArray:
    try:
        block = np.asarray(item)
    except ValueError:  # lists of unequal lengths
        block = np.empty(0, dtype=object)
    if block.ndim != 3 or not is_numeric(block.dtype) or block.shape[1] != block.shape[0] + 1:
        raise ValueError(
            f"{where} is {described(item)}, expected numbers of shape (n_words, n_words + 1, n_features): "
            "the features of each word's arcs from the root and from each word."
        )
    values: ValueArray = block.astype(value_dtype(block.dtype), copy=False)
    return values.reshape(block.shape[0] * block.shape[1], block.shape[2])


def encode_heads(y: object, offsets: Offsets, *, owner: str, projective: bool, single_root: bool) -> IntArray:
    """Return the heads of all words; raise unless they are trees of the required kind."""
    sentences = list(y) if isinstance(y, Iterable) and not isinstance(y, str | dict) else None
    if sentences is None or len(sentences) != len(offsets) - 1:
        got = described(y) if sentences is None else f"{len(sentences)} items"
        raise ValueError(
            f"{owner}: y must be a list of the heads of {len(offsets) - 1} sentences, got {got}."
        )
    sizes = np.diff(offsets).tolist()
    heads = [
        _heads(item, size, f"{owner}: sentence {i} of y")
        for i, (item, size) in enumerate(zip(sentences, sizes, strict=True))
    ]
    for i, of_sentence in enumerate(heads):
        _check_tree(of_sentence, f"{owner}: sentence {i} of y", projective, single_root)
    return np.concatenate(heads)


def _heads(item: object, size: int, where: str) -> IntArray:
    try:
        heads = np.asarray(item, dtype=np.int64 if is_empty(item) else None)
    except ValueError:  # lists of unequal lengths
        heads = np.empty(0, dtype=object)
    if heads.shape != (size,) or heads.dtype.kind not in "iu":
        got = f"{len(heads)} of dtype {heads.dtype}" if heads.ndim == 1 else described(item)
        raise ValueError(f"{where} must have {size} ints, {_HEADS}; got {got}.")
    outside = (heads < 0) | (heads > size) | (heads == np.arange(1, size + 1))
    if outside.any():
        word = int(outside.argmax()) + 1
        raise ValueError(
            f"{where} has the head {heads[word - 1]} for word {word} of {size}, expected another word or 0 "
            "for the root; words count from 1."
        )
    return heads.astype(np.int64)


def _check_tree(heads: IntArray, where: str, projective: bool, single_root: bool) -> None:
    ends = heads
    for _ in range(len(heads).bit_length()):  # each round doubles the distance to the ancestor
        ends = np.where(ends > 0, np.append(0, ends)[ends], 0)
    if ends.any():
        word = int((ends > 0).argmax()) + 1
        raise ValueError(f"{where} has a cycle above word {word}, expected a tree; follow its heads.")
    n_roots = int((heads == 0).sum())
    if single_root and n_roots != 1 and len(heads):
        raise ValueError(
            f"{where} has {n_roots} words whose head is the root, expected one; set single_root=False."
        )
    crossing = first_crossing(heads) if projective else None
    if crossing is not None:
        raise ValueError(
            f"{where} has crossing arcs, to the words {crossing[0]} and {crossing[1]}, expected a projective "
            "tree: drop the sentence, or set projective=False."
        )


def first_crossing(heads: IntArray) -> tuple[int, int] | None:
    """Return the numbers, from 1, of two words whose arcs cross, or None."""
    nodes = np.arange(1, len(heads) + 1)
    low, high = np.minimum(heads, nodes), np.maximum(heads, nodes)
    crosses = (low[:, None] < low) & (low < high[:, None]) & (high[:, None] < high)
    found = np.argwhere(crosses)
    return (int(found[0, 0]) + 1, int(found[0, 1]) + 1) if len(found) else None
