"""What the partitions of each estimator teach before training, gathered from all workers in a tree."""

import os
from collections.abc import Iterable, Mapping, Sized
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeGuard, cast

import dask
import dask.bag
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future
from numpy.typing import NDArray
from scipy.sparse import csr_array

from maxmargin.compiling import python_generic
from maxmargin.dask.messages import PartitionError, failed, naming
from maxmargin.encoding.kinds import Tokens
from maxmargin.encoding.labels import Labels, encode_labels, holds_arrays
from maxmargin.encoding.sequences import SequenceEncoder
from maxmargin.estimators.estimator import Call, MaxMarginEstimator
from maxmargin.estimators.examples import Data, Examples, Parts, label_weights, weighed
from maxmargin.estimators.sequences import SequenceEstimator
from maxmargin.estimators.state import twin
from maxmargin.estimators.tables import Rows, Table
from maxmargin.files.corpus.opening import Corpus, open_part, sequence_lengths
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.dependency.estimator import DependencySVC
from maxmargin.structures.graphs.encode import has_cycles
from maxmargin.structures.graphs.estimator import GraphSVC
from maxmargin.structures.label_sets.estimator import MultilabelSVC
from maxmargin.structures.matchings.estimator import MatchingSVC
from maxmargin.structures.segments.encode import encode_limits, encode_segments
from maxmargin.structures.segments.estimator import SegmentSVC
from maxmargin.structures.sequences.estimator import ChainSVC

# What partitions teach before training: labels, names of features and sums, and how lessons are merged.
#
# Names are numbered in the order of their first appearance, partition after partition, as on one machine.

# Keys of `Lesson.largest`; labels are str or int.
OUTSIDE, CYCLES = ("outside",), ("cycles",)


class Moments(NamedTuple):
    """Sums over rows: of weights, of weighted squares, and of weighted features."""

    weight: float
    squares: float
    features: FloatArray

    @property
    def variance(self) -> float:
        """The sum of the variances of all columns."""
        return self.squares / self.weight - float(np.square(self.features / self.weight).sum())


class Lesson(NamedTuple):
    """What one or more partitions teach.

    Attributes
    ----------
    numbers : dict
        The number of examples of each partition.
    weight : float
        The sum of their weights.
    labels : array
        All labels, sorted.
    names : dict or None
        In how many rows each feature occurs, in the order of first appearance; None if features are columns.
    attributes : dict
        What validation sets on an estimator.
    moments : Moments or None
        Sums, where C depends on them.
    largest : dict
        Numbers of which the largest counts: the longest segments by label, whether a graph has cycles.
    """

    numbers: dict[int, int]
    weight: float
    labels: Labels
    names: dict[str, int] | None
    attributes: dict[str, Any]
    moments: Moments | None
    largest: dict[object, int] = {}  # noqa: RUF012 (a default of a named tuple; nobody changes it)

    @property
    def number(self) -> int:
        """The number of examples."""
        return sum(self.numbers.values())


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


# Users' data as partitions: bags, arrays, lists of delayed objects, and directories of `encode_files`.

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


FIRST, NEXT = (Call(first=first, more=False, warm=False) for first in (True, False))
_NO_LABELS: Labels = np.zeros(0, dtype=np.int64)
_FAN_IN = 4
# An estimator of the local class, as workers need it.
Prototype = MaxMarginEstimator[tuple[object, ...], object]


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
        raise ValueError(
            f"{prototype._owner}: X must have an example, got none in {len(sources)} partitions."
        )
    return found


def learn_from_directory(directory: Directory, prototype: ChainSVC) -> Lesson:
    """Return the lesson of a directory: it has names and labels, so that one sequence is enough."""
    full = [p for p, number in directory.numbers.items() if number]
    if not full:
        raise ValueError(f"{prototype._owner}: X must have an example, got none in {shown(directory.path)}.")
    draft = twin(prototype, dict(vars(prototype)))
    part = open_part(directory.path, *directory.edges[full[0] : full[0] + 2])
    draft._encode(draft._validate((part, None), FIRST), None, FIRST)
    new = {name: value for name, value in vars(draft).items() if name not in vars(prototype)}
    return Lesson(directory.numbers, float(sum(directory.numbers.values())), draft.classes_, None, new, None)


def _broken(parts: list[Future]) -> list[tuple[int, Future]]:
    return [(p, part) for p, part in enumerate(parts) if part.status == "error"]


def learnt(p: int, prototype: Prototype, X: object, y: object, sample_weight: object) -> Lesson:
    """Task: return the lesson of a partition."""
    with naming(p):
        X, y = as_examples(X, y)
        if is_nothing(X):
            return Lesson({p: 0}, 0.0, _NO_LABELS, None, {}, None)
        draft = twin(prototype, dict(vars(prototype)))
        given = parts_of(draft, X, y)
        parts, weights = weighed(draft._validate(given, FIRST), sample_weight, draft._owner)
        own = lesson(draft, p, parts, weights)
        new = {name: value for name, value in vars(draft).items() if name not in vars(prototype)}
        return own._replace(attributes=own.attributes | new)


@python_generic
def parts_of(draft: object, X: object, y: object) -> Parts:
    """Return the parts of the data that an estimator validates."""
    return X, y


@parts_of.register(MatchingSVC)
@parts_of.register(GraphSVC)
def three_parts(draft: object, X: object, y: object) -> Parts:
    """Return the parts of estimators that take one more, which is not for clusters."""
    return X, y, None


@python_generic
def lesson(draft: Prototype, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of the rows of a table."""
    X, y = cast("tuple[Table, Labels]", parts)
    given = np.ones(len(y)) if weights is None else weights
    labels = cast("Labels", np.unique(y))
    if draft.class_weight is not None:
        codes = np.searchsorted(labels, y)
        each = label_weights(draft.class_weight, labels, codes, weights, draft._owner)
        given = np.multiply(given, each[codes])
    moments = _moments(X, given) if isinstance(draft.C, str) else None
    return Lesson({p: len(y)}, float(given.sum()), labels, None, {}, moments)


def _moments(rows: Rows, weights: FloatArray | None) -> Moments:
    """Return the sums of weighted rows."""
    given = np.ones(rows.shape[0]) if weights is None else weights
    square = rows.multiply(rows) if isinstance(rows, csr_array) else np.square(rows)
    return Moments(float(given.sum()), float((given @ square).sum()), np.asarray(given @ rows))


@lesson.register(MatchingSVC)
def pairs_lesson(draft: MatchingSVC, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of pairs of sentences: only sizes."""
    return _encoded_lesson(p, draft._encode(parts, weights, FIRST), _NO_LABELS, None)


@lesson.register(DependencySVC)
def arcs_lesson(draft: DependencySVC, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of arcs: their number of features."""
    examples = draft._encode(parts, weights, FIRST)
    if draft._encoder is not None:
        raise ValueError(
            f"{draft._owner}: X must have the features of arcs as arrays on a cluster, got words and tags; "
            f"use maxmargin.{draft._owner}."
        )
    draft.n_features_in_ = examples.data[0].features.shape[1]
    return _encoded_lesson(p, examples, _NO_LABELS, None)


@lesson.register(MultilabelSVC)
def sets_lesson(draft: MultilabelSVC, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of sets of labels: only their number; raise if the data would join labels."""
    _, y = cast("tuple[Table, IntArray]", parts)
    if y.ndim == 1:
        raise ValueError(f"{draft._owner}: y must have a column for each label on a cluster, got a vector.")
    examples = draft._encode(parts, weights, FIRST)
    if draft.structure_ == "tree" and y.shape[1] > 2:
        raise ValueError(
            f"{draft._owner}: structure must be 'independent' or 'full' for {y.shape[1]} labels on a "
            "cluster, got 'tree'."
        )
    moments = _moments(*draft._weighted_rows(examples)) if isinstance(draft.C, str) else None
    return _encoded_lesson(p, examples, draft.classes_, moments)


@lesson.register(GraphSVC)
def graphs_lesson(draft: GraphSVC, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of graphs: labels, and whether there are cycles."""
    examples = draft._encode(parts, weights, FIRST)
    if draft._node_names is not None or draft._edge_names is not None:
        raise ValueError(
            f"{draft._owner}: X must have the features of nodes and edges as arrays on a cluster, got names; "
            f"use maxmargin.{draft._owner}."
        )
    moments = _moments(*draft._weighted_rows(examples)) if isinstance(draft.C, str) else None
    found = _encoded_lesson(p, examples, draft.classes_, moments)
    return found._replace(largest={CYCLES: int(has_cycles(examples.data[0]))})


def _encoded_lesson(p: int, examples: Examples[Data], labels: Labels, moments: Moments | None) -> Lesson:
    n = examples.number
    return Lesson({p: n}, n * examples.mean_weight, labels, None, {}, moments)


@lesson.register(SequenceEstimator)
def sequence_lesson(draft: Prototype, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of sequences: names, and in how many tokens they occur."""
    X, y = parts
    tokens, found = _tokens_lesson(draft, p, X, weights)
    labels = encode_labels(y, tokens.offsets, owner=draft._owner)[1]
    return found._replace(labels=labels, attributes={**found.attributes, "gives_arrays": holds_arrays(y)})


@lesson.register(SegmentSVC)
def segments_lesson(draft: SegmentSVC, p: int, parts: Parts, weights: FloatArray | None) -> Lesson:
    """Return the lesson of segmented sequences: names, labels, and their longest segments."""
    X, y = parts
    tokens, taught = _tokens_lesson(draft, p, X, weights)
    found, given = encode_segments(y, tokens.offsets, owner=draft._owner), draft.max_length
    labels = found.classes.tolist()
    if isinstance(given, Mapping):
        given = {label: length for label, length in given.items() if label in labels}
    encode_limits(given, found, tokens.offsets, owner=draft._owner)  # raises if a segment is too long
    longest = encode_limits(None, found, tokens.offsets, owner=draft._owner).tolist()
    return taught._replace(labels=found.classes, largest=dict(zip([*labels, OUTSIDE], longest, strict=False)))


def _tokens_lesson(draft: Prototype, p: int, X: object, weights: FloatArray | None) -> tuple[Tokens, Lesson]:
    """Return the tokens of sequences, and what they teach, except for labels."""
    encoder = SequenceEncoder(owner=draft._owner)
    tokens = encoder.fit_transform(X)
    names = None
    if encoder.feature_names_ is not None:
        counts = np.bincount(csr_array(tokens.rows).indices, minlength=encoder.n_features_in_)
        names = dict(zip(encoder.feature_names_, counts.tolist(), strict=True))
    present = np.diff(tokens.offsets) > 0
    attributes = {"kind": encoder.kind_, "n_features_in_": encoder.n_features_in_}
    weight = float(present.sum() if weights is None else weights[present].sum())
    return tokens, Lesson({p: int(present.sum())}, weight, _NO_LABELS, names, attributes, None)
