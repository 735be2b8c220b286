"""Sequences of users' objects, which only a user's own kernel function can read."""

from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np

from maxmargin.arrays import is_sparse
from maxmargin.encoding.kinds import as_sequences, is_numeric, some_sequences
from maxmargin.encoding.tokens import Tokens, offsets_of
from maxmargin.wording import described


def holds_arrays(X: object) -> bool:
    """Whether X is a collection of arrays of numbers or of sparse matrices, one per sequence."""
    if isinstance(X, np.ndarray):
        return is_numeric(X.dtype)
    items = list(X) if isinstance(X, list | tuple) else []
    return bool(items) and all(is_sparse(item) or _is_numbers(item) for item in items)


def _is_numbers(item: object) -> bool:
    return isinstance(item, np.ndarray) and item.ndim == 2 and is_numeric(item.dtype)


def as_list(items: object, owner: str, name: str = "X") -> list[object]:
    """Return a collection of objects, one per example, as a list."""
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise TypeError(
            f"{owner}: {name} must be a list with one object per example, got {described(items)}."
        )
    return list(items)


def paired_lists(X: object, y: object, owner: str) -> tuple[list[object], list[object]]:
    """Return examples and outputs as lists of the same length, which must not be empty."""
    examples, outputs = as_list(X, owner), as_list(y, owner, "y")
    if not examples or len(examples) != len(outputs):
        raise ValueError(
            f"{owner}: X and y must have one entry per example, and one or more, got {len(examples)} and "
            f"{len(outputs)}."
        )
    return examples, outputs


def as_objects(items: object, owner: str) -> np.ndarray:
    """Return an array with one entry per object, whatever the objects are."""
    listed = as_list(items, owner)
    array = np.empty(len(listed), dtype=object)
    for i, item in enumerate(listed):  # a slice would unpack objects that are sequences
        array[i] = item
    return array


class ObjectEncoder:
    """Turn lists of objects, one per token, into one array of objects; see `SequenceEncoder`."""

    n_features_in_ = 0
    feature_names_ = None

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def fit_transform(self, X: object) -> Tokens:
        """Return the objects of all sequences."""
        return self.transform(some_sequences(X, self.owner))

    def transform(self, X: object) -> Tokens:
        """Return the objects of all sequences."""
        sequences = [self._listed(i, sequence) for i, sequence in enumerate(as_sequences(X, self.owner))]
        offsets = offsets_of(np.array([len(sequence) for sequence in sequences], dtype=np.int64))
        return Tokens(as_objects(chain.from_iterable(sequences), self.owner), offsets)

    def _listed(self, i: int, sequence: object) -> list[object]:
        if not isinstance(sequence, Iterable) or isinstance(sequence, str | bytes):
            raise TypeError(
                f"{self.owner}: sequence {i} of X must be a list with one object per token, got "
                f"{described(sequence)}."
            )
        return list(sequence)
