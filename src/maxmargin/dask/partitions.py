"""Users' data as partitions: bags, arrays, lists of delayed objects, and directories of `encode_files`."""

import os
from collections.abc import Iterable, Sized
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeGuard, cast

import dask.bag
import numpy as np
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from maxmargin.corpus.opening import Corpus, open_part, sequence_lengths
from maxmargin.wording import shown

# What a partition is computed from: X, y and weights, or pairs of the first two.
Source = tuple[object, object, object]
_FORMS = "a Dask bag, a Dask array, a list of delayed partitions or, for ChainSVC, a directory"


class Directory(NamedTuple):
    """A corpus on a disk that all workers see, in spans of sequences; each is opened on its worker.

    Attributes
    ----------
    path : str
    edges : list of int
        Where spans begin, and the last one ends.
    numbers : dict
        The number of sequences with tokens of each span.
    """

    path: str
    edges: list[int]
    numbers: dict[int, int]

    @property
    def sources(self) -> list[Source]:
        """What each partition is computed from."""
        part = dask.delayed(open_part, pure=False)
        return [(part(self.path, first, stop), None, None) for first, stop in pairwise(self.edges)]


def as_directory(X: object, y: object, sample_weight: object, spans: int) -> Directory | None:
    """Return X as a directory of up to ``spans`` spans of about equally many tokens, or None."""
    if y is not None or sample_weight is not None or not isinstance(X, str | os.PathLike | Corpus):
        return None
    path = os.path.abspath(X.path if isinstance(X, Corpus) else os.fspath(X))
    lengths = sequence_lengths(path)
    tokens = np.cumsum(lengths)
    wanted = np.searchsorted(tokens, np.linspace(0, tokens[-1], spans + 1)[1:-1]) + 1
    edges = np.unique([0, *np.minimum(wanted, len(lengths)), len(lengths)]).tolist()
    numbers = {p: int((lengths[a:b] > 0).sum()) for p, (a, b) in enumerate(pairwise(edges))}
    return Directory(path, edges, numbers)


class ChunkedArray(Protocol):
    """What is used of a Dask array."""

    ndim: int
    chunks: tuple[tuple[int, ...], ...]

    def rechunk(self, chunks: dict[int, object]) -> "ChunkedArray":
        """Return the array in other chunks."""

    def to_delayed(self) -> NDArray[np.object_]:
        """Return the chunks."""


def sources(X: object, y: object, sample_weight: object, owner: str) -> list[Source]:
    """Return the sources of all partitions; raise unless X, y and weights are divided in the same way."""
    X_parts = _parts(X, "X", owner)
    y_parts, weights = (
        [None] * len(X_parts) if given is None else _parts(_divided_as(X, given), name, owner)
        for name, given in (("y", y), ("sample_weight", sample_weight))
    )
    for name, parts in (("y", y_parts), ("sample_weight", weights)):
        if len(parts) != len(X_parts):
            raise ValueError(
                f"{owner}: {name} must have the {len(X_parts)} partitions of X, got {len(parts)}; divide "
                "both alike."
            )
    return list(zip(X_parts, y_parts, weights, strict=True))


def _parts(data: object, name: str, owner: str) -> list[object]:
    """Return the partitions of a collection."""
    if _is_array(data):
        whole_rows = data.rechunk({1: -1}) if data.ndim == 2 else data
        return list(whole_rows.to_delayed().ravel())
    if isinstance(data, dask.bag.Bag):
        return list(data.to_delayed())
    if isinstance(data, list | tuple) and all(isinstance(part, Delayed | Future) for part in data):
        return list(data)
    raise TypeError(
        f"{owner}: {name} must be {_FORMS}, got {shown(data)}; use maxmargin.{owner} for local data."
    )


def _is_array(data: object) -> TypeGuard[ChunkedArray]:
    return hasattr(data, "to_delayed") and hasattr(data, "chunks")


def _divided_as(X: object, data: object) -> object:
    """Return an array with the rows of each chunk of X in a chunk."""
    if _is_array(X) and _is_array(data) and data.chunks[0] != X.chunks[0]:
        return data.rechunk({0: X.chunks[0]})
    return data


def as_examples(X: object, y: object) -> tuple[object, object]:
    """Return X and y of a computed partition; without y, X are pairs, a pair, or a part of a directory."""
    if isinstance(X, Corpus):
        return X.X, X.y
    if y is not None:
        return _listed(X), _listed(y)
    if isinstance(X, tuple) and len(X) == 2:
        return _listed(X[0]), _listed(X[1])
    pairs = list(cast("Iterable[tuple[object, object]]", X))
    return [x for x, _ in pairs], [labels for _, labels in pairs]


def _listed(data: object) -> object:
    """Return data that can be read twice."""
    return data if hasattr(data, "shape") or isinstance(data, list) else list(cast("Iterable[object]", data))


def is_nothing(X: object) -> bool:
    """Whether a partition is empty."""
    return (X.shape[0] if hasattr(X, "shape") else len(cast("Sized", X))) == 0
