"""Users' data as partitions, and what these teach before training, gathered from all workers in a tree.

Names are numbered in the order of their first appearance, partition after partition, as on one machine.
"""

import os
from collections.abc import Iterable, Sized
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeGuard, cast

import dask
import dask.bag
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future
from numpy.typing import NDArray

from maxmargin.dask.calls import PartitionError, failed, naming
from maxmargin.estimators.examples import Lesson, Moments, Parts, weighed
from maxmargin.estimators.state import twin
from maxmargin.estimators.structure import AnyEstimator, Call
from maxmargin.files.corpus.opening import Corpus, open_part, sequence_lengths
from maxmargin.runtime.arrays import FloatArray
from maxmargin.runtime.wording import caller, shown


def merged(first: Lesson, *others: Lesson) -> Lesson:
    """Task: merge lessons in this order; return the lesson of all their partitions."""
    for other in others:
        first = _with(first, other)
    return first


def _with(first: Lesson, second: Lesson) -> Lesson:
    numbers = first.numbers | second.numbers
    for one, other in ((first, second), (second, first)):
        if not one.number and not one.attributes:
            return other._replace(numbers=numbers)
    _check_alike(first, second)
    names = first.names
    if names is not None and second.names is not None:
        for name, count in second.names.items():
            names[name] = names.get(name, 0) + count
    moments = None
    if first.moments is not None and second.moments is not None:
        a, b = first.moments, second.moments
        moments = Moments(a.weight + b.weight, a.squares + b.squares, a.features + b.features)
    labels = np.union1d(first.labels, second.labels)
    largest = {
        key: max(each.largest.get(key, 0) for each in (first, second))
        for key in {**first.largest, **second.largest}
    }
    return Lesson(numbers, first.weight + second.weight, labels, names, first.attributes, moments, largest)


def _check_alike(first: Lesson, second: Lesson) -> None:
    """Raise unless features and labels of two partitions go together."""
    p, q = min(first.numbers), min(second.numbers)
    if (first.labels.dtype.kind == "U") != (second.labels.dtype.kind == "U"):
        raise PartitionError(
            f"maxmargin.dask: partition {q} must have labels like those of partition {p}, "
            f"{first.labels[:3].tolist()}, got {second.labels[:3].tolist()}; make all str or all int."
        )
    one, other = (
        "names" if each.names is not None else f"{each.attributes.get('n_features_in_')} columns"
        for each in (first, second)
    )
    if one != other:
        raise PartitionError(
            f"maxmargin.dask: partition {q} must have the features of partition {p}, {one}, got {other}."
        )


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


def sources(X: object, y: object, sample_weight: object) -> list[Source]:
    """Return the sources of all partitions; raise unless X, y and weights are divided in the same way."""
    X_parts = _parts(X, "X")
    y_parts, weights = (
        [None] * len(X_parts) if given is None else _parts(_divided_as(X, given), name)
        for name, given in (("y", y), ("sample_weight", sample_weight))
    )
    for name, parts in (("y", y_parts), ("sample_weight", weights)):
        if len(parts) != len(X_parts):
            raise ValueError(
                f"{name} must have the {len(X_parts)} partitions of X, got {len(parts)}; divide both alike."
            )
    return list(zip(X_parts, y_parts, weights, strict=True))


def _parts(data: object, name: str) -> list[object]:
    """Return the partitions of a collection."""
    if _is_array(data):
        whole_rows = data.rechunk({1: -1}) if data.ndim == 2 else data
        return list(whole_rows.to_delayed().ravel())
    if isinstance(data, dask.bag.Bag):
        return list(data.to_delayed())
    if isinstance(data, list | tuple) and all(isinstance(part, Delayed | Future) for part in data):
        return list(data)
    raise TypeError(f"{name} must be {_FORMS}, got {shown(data)}; use maxmargin.{caller()} for local data.")


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


FIRST, NEXT = (Call(first=first, more=False, warm=False) for first in (True, False))
_FAN_IN = 4
# An estimator of the local class, as workers need it.
Prototype = AnyEstimator


def learn_from(client: Client, sources: list[Source], prototype: Prototype) -> Lesson:
    """Return the lesson of all partitions; raise if there is no example."""
    task, merge = dask.delayed(learnt, pure=False), dask.delayed(merged, pure=False)
    shared = dask.delayed(prototype, pure=False, traverse=False)
    lessons = level = [task(p, shared, *source) for p, source in enumerate(sources)]
    while len(level) > 1:
        level = [merge(*level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
    *parts, whole = client.compute([*lessons, *level])
    try:
        found: Lesson = whole.result()
    except PartitionError:
        raise
    except Exception as error:
        raise next((failed(p, part.exception()) for p, part in _broken(parts)), error) from error
    if not found.number:
        raise ValueError(f"X must have an example, got none in {len(sources)} partitions.")
    return found


def learn_from_directory(directory: Directory, prototype: Prototype) -> Lesson:
    """Return the lesson of a directory: it has names and labels, so that one sequence is enough."""
    full = [p for p, number in directory.numbers.items() if number]
    if not full:
        raise ValueError(f"X must have an example, got none in {shown(directory.path)}.")
    draft = twin(prototype, dict(vars(prototype)))
    part = open_part(directory.path, *directory.edges[full[0] : full[0] + 2])
    draft._structure.encode(draft, draft._validated((part, None), FIRST), None, FIRST)
    weight, new = float(sum(directory.numbers.values())), _new(draft, prototype)
    return Lesson(directory.numbers, weight, draft.classes_, attributes=new)


def _broken(parts: list[Future]) -> list[tuple[int, Future]]:
    return [(p, part) for p, part in enumerate(parts) if part.status == "error"]


def learnt(p: int, prototype: Prototype, X: object, y: object, sample_weight: object) -> Lesson:
    """Task: return the lesson of a partition."""
    with naming(p):
        X, y = as_examples(X, y)
        if is_nothing(X):
            return Lesson({p: 0}, 0.0)
        draft = twin(prototype, dict(vars(prototype)))
        parts, weights = prepared(draft, X, y, sample_weight, FIRST)
        own = draft._structure.cluster.lesson(draft, parts, weights)
        return own._replace(numbers={p: own.number}, attributes=own.attributes | _new(draft, prototype))


def prepared(
    draft: Prototype, X: object, y: object, sample_weight: object, call: Call
) -> tuple[Parts, FloatArray | None]:
    """Return the validated examples of a partition of positive weight, and their weights."""
    given = X, y, *[None] * (draft._structure.n_parts - 2)  # further parts are not for clusters
    return weighed(draft._validated(given, call), sample_weight)


def _new(draft: Prototype, prototype: Prototype) -> dict[str, object]:
    """Return what a draft has learnt."""
    return {name: value for name, value in vars(draft).items() if name not in vars(prototype)}
