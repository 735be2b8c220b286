"""What the partitions of each estimator teach before training, gathered from all workers in a tree."""

from collections.abc import Mapping
from typing import cast

import dask
import numpy as np
from distributed import Client, Future
from scipy.sparse import csr_array

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import python_generic
from maxmargin.corpus.opening import open_part
from maxmargin.dask.lessons import CYCLES, OUTSIDE, Lesson, Moments, merged
from maxmargin.dask.messages import PartitionError, failed, naming
from maxmargin.dask.partitions import Directory, Source, as_examples, is_nothing
from maxmargin.encoding import SequenceEncoder, encode_labels
from maxmargin.encoding.graphs import has_cycles
from maxmargin.encoding.labels import Labels, holds_arrays
from maxmargin.encoding.segments import encode_limits, encode_segments
from maxmargin.encoding.tokens import Tokens
from maxmargin.estimators import (
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MultilabelSVC,
    SegmentSVC,
)
from maxmargin.estimators._base import Call, MaxMarginEstimator
from maxmargin.estimators._examples import Data, Examples, Parts, label_weights, weighed
from maxmargin.estimators._scaled import Rows
from maxmargin.estimators._sequences import SequenceEstimator
from maxmargin.estimators._state import twin
from maxmargin.estimators._tables import Table
from maxmargin.wording import shown

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
