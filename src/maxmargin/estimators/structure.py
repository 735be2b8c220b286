"""The protocol of structures: all that an estimator knows about its examples and outputs.

An estimator *has* a structure, a value without state of its own: parameters and what `fit` learns are
attributes of the estimator, which the functions of a structure take as ``model``. To predict, a structure
turns users' examples into a `Question`: a problem, and how its answers are written for users.

The fitted attributes that its files have are `Fields`: how each is written, and how it is read and checked.

A structure lives in ``estimator.py`` of its room. What several structures share are functions that they call:
`tables` for the rows of a table, `sequences` for tokens, `kernels` for kernels of rows.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Never, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from maxmargin.encoding.labels import Labels, given_classes, listed_classes
from maxmargin.encoding.sequences import as_objects
from maxmargin.estimators.examples import Data, Examples, Lesson, Parts, Tally, n_rows
from maxmargin.estimators.explanation import Reader
from maxmargin.estimators.inspection import WeightTable
from maxmargin.files.parts import Draft, Stored
from maxmargin.runtime.arrays import FloatArray, IntArray, frozen_copy, frozen_view
from maxmargin.runtime.wording import quoted
from maxmargin.solving.result import History, Measurement
from maxmargin.structures.feature_map import map_sizes, unpack
from maxmargin.structures.problem import AnyProblem
from maxmargin.structures.wrappers import SignConstrained

if TYPE_CHECKING:
    from maxmargin.estimators.estimator import MaxMarginEstimator

Problem = AnyProblem
Model = TypeVar("Model", bound="AnyEstimator")
Output = TypeVar("Output")
# What margins and probabilities are: an array, or a list with one for each example.
Values = TypeVar("Values")
_Matrix = TypeVar("_Matrix")
Trials: TypeAlias = Mapping[str, Callable[[], tuple[object, object]]]
AnyEstimator: TypeAlias = "MaxMarginEstimator[Any, Any, Any]"


# The value of an attribute whose part is not in the file: None, or not set at all.
NONE, UNSET = "none", "unset"


def _any_other(model: object) -> None:
    """Accept all other attributes."""


class Field(NamedTuple):
    """How an attribute is stored, under its name.

    Attributes
    ----------
    write, read : callable
    absent : str
        Its value if it is not in the file.
    check : callable
        ``check(model)`` raises ValueError unless it and the other attributes are those of one model.
    """

    write: Callable[[Draft, str, Any], None]
    read: Callable[[Stored, str], Any]
    absent: str = ""
    check: Callable[[Any], None] = _any_other

    def or_none(self) -> "Field":
        """Return the field of an attribute that may be None."""
        return self._replace(absent=NONE)

    def or_unset(self) -> "Field":
        """Return the field of an attribute that some models lack."""
        return self._replace(absent=UNSET)

    def checked(self, check: Callable[[Any], None]) -> "Field":
        """Return the field of an attribute that must go together with others."""
        return self._replace(check=check)


Fields = Mapping[str, Field]


def write_fields(draft: Draft, fields: Fields, model: object) -> None:
    """Store the attributes of a model; None is stored as nothing."""
    for name, field in fields.items():
        value = vars(model).get(name)
        if value is not None:
            field.write(draft, name, value)


def read_fields(stored: Stored, fields: Fields, model: object) -> None:
    """Set the attributes of a model; raise unless they go together."""
    for name, field in fields.items():
        if stored.has(name) or not field.absent:
            setattr(model, name, field.read(stored, name))
        elif field.absent == NONE:
            setattr(model, name, None)
    for field in fields.values():
        field.check(model)


def scalar(kind: type, least: float = -math.inf) -> Field:
    """Return the field of a bool, an int or a float that is not below ``least``."""

    def read(stored: Stored, name: str) -> object:
        value = stored.take(name)
        if type(value) is not kind or not least <= value < math.inf:  # type: ignore[operator]
            stored.fail(f"{name!r} to be {_article(kind)} >= {least}", quoted(value))
        return value

    return Field(Draft.put, read)


def _article(kind: type) -> str:
    return f"{'an' if kind is int else 'a'} {kind.__name__}"


def choice(*options: str | int) -> Field:
    """Return the field of one of several texts or ints."""

    def read(stored: Stored, name: str) -> object:
        value = stored.take(name)
        if type(value) is not type(options[0]) or value not in options:
            stored.fail(f"{name!r} to be one of {', '.join(map(repr, options))}", quoted(value))
        return value

    return Field(Draft.put, read)


def _write_array(draft: Draft, name: str, value: NDArray[np.generic]) -> None:
    draft.arrays[name] = value


def ints(*sides: int | None, least: int = 0) -> Field:
    """Return the field of an array of ints that are not below ``least``."""
    return Field(_write_array, lambda stored, name: stored.take_ints(name, *sides, least=least))


def flags(*sides: int | None) -> Field:
    """Return the field of an array of bools."""
    return Field(_write_array, lambda stored, name: stored.take_array(name, "b", *sides))


def _write_labels(draft: Draft, name: str, labels: NDArray[np.generic]) -> None:
    items = labels.tolist()
    if labels.dtype.kind in "biuf":
        draft.put(name, "numbers")
        draft.arrays[name] = labels
    elif all(isinstance(item, str) for item in items):
        draft.put(name, "objects" if labels.dtype == object else "texts")
        draft.reserve(_text_bytes(items))
        draft.put_texts(name, items)
    else:
        raise ValueError(f"{name} must be texts or numbers, got {quoted(items)}")


def _text_bytes(texts: list[str]) -> int:
    """Return the size of an array of texts: each takes as much space as the longest."""
    return 4 * len(texts) * max(map(len, texts), default=0)


def _read_labels(stored: Stored, name: str, *, in_order: bool) -> NDArray[np.generic]:
    kind = stored.take(name)
    if kind == "numbers":
        labels = stored.take_array(name, "biuf", None)
    else:
        texts = stored.take_texts(name)
        stored.check_room(_text_bytes(texts), repr(name))
        labels = as_objects(texts) if kind == "objects" else np.array(texts, dtype=np.str_)
        if kind not in ("texts", "objects") or labels.tolist() != texts:  # NumPy drops NULs at ends
            stored.fail(f"{name!r} to be 'numbers', 'texts' or 'objects'", quoted(kind))
    if not len(labels) or (in_order and not (labels[1:] > labels[:-1]).all()):  # type: ignore[operator]
        stored.fail(f"{name!r} to be one or more labels in order", quoted(labels.tolist()))
    return labels


def _write_history(draft: Draft, name: str, history: History) -> None:
    draft.arrays[name] = np.array([list(row) for row in history.rows], dtype=np.float64)


def _read_history(stored: Stored, name: str) -> History:
    table = stored.take_array(name, "f", None, len(Measurement._fields)).astype(np.float64)
    calls: IntArray = np.nan_to_num(table[:, Measurement._fields.index("oracle_calls")]).astype(np.int64)
    if not len(table):
        stored.fail(f"{name!r} to have a row", "none")
    rows = zip(table.tolist(), calls.tolist(), strict=True)
    return History(tuple(Measurement(*row)._replace(oracle_calls=n) for row, n in rows))


# Columns of `cv_results_`, whose parameters are listed again in "params".
_PARAMETER = "param_"
_COLUMNS = re.compile(
    r"param_[A-Za-z]\w*|(mean|std)_(fit|score)_time|split\d+_test_score|(mean|std|rank)_test_score"
)


def _write_trials(draft: Draft, name: str, table: dict[str, Any]) -> None:
    columns = [column for column in table if column != "params"]
    draft.put(name, columns)
    draft.arrays[name + ".values"] = np.array([table[column] for column in columns], dtype=np.float64)


def _read_trials(stored: Stored, name: str) -> dict[str, Any]:
    columns = stored.take(name)
    if not isinstance(columns, list) or not all(
        isinstance(column, str) and _COLUMNS.fullmatch(column) for column in columns
    ):
        stored.fail(f"{name!r} to be names of columns", quoted(columns))
    values = stored.take_array(name + ".values", "f", len(columns), None).astype(np.float64)
    table: dict[str, Any] = dict(zip(columns, values, strict=True))
    if "rank_test_score" in table:
        table["rank_test_score"] = np.nan_to_num(table["rank_test_score"]).astype(np.int64)
    found = {column: part.tolist() for column, part in table.items() if column.startswith(_PARAMETER)}
    rows = zip(*found.values(), strict=True)
    table["params"] = [
        dict(zip((key.removeprefix(_PARAMETER) for key in found), row, strict=True)) for row in rows
    ]
    return table


def _read_float(stored: Stored, name: str) -> float:
    """Return a float, which may be infinite or NaN."""
    value = stored.take(name)
    if type(value) is not float:
        stored.fail(f"{name!r} to be a float", quoted(value))
    return value


COUNT, FLAG, NUMBER = scalar(int, 0), scalar(bool), Field(Draft.put, _read_float)
LABELS = Field(_write_labels, partial(_read_labels, in_order=True))
NAMES = Field(_write_labels, partial(_read_labels, in_order=False))
HISTORY = Field(_write_history, _read_history)
TRIALS = Field(_write_trials, _read_trials)


class Call(NamedTuple):
    """One call of `fit` or `partial_fit`.

    Attributes
    ----------
    first : bool
        Whether it starts afresh, instead of adding examples to those of earlier calls.
    more : bool
        Whether this is a call of `partial_fit`, which keeps the examples for later calls.
    warm : bool
        Whether later calls of `fit` continue from this one, for which the problem is kept.
    classes : array-like or None
        The labels of all calls, if they are given.
    """

    first: bool
    more: bool
    warm: bool
    classes: object = None

    def held(self, features: _Matrix) -> _Matrix:
        """Return features to train on: in the user's memory, or a copy that later calls find unchanged."""
        return frozen_copy(features) if self.more or self.warm else frozen_view(features)

    def known_classes(self, model: "AnyEstimator") -> Labels | None:
        """Return the labels of earlier calls, or those given to the first; None if they follow from y."""
        if not self.first:
            return model.classes_
        if self.classes is None:
            return None
        if model._structure.in_lists:
            return given_classes(self.classes)
        labels = listed_classes(self.classes)  # may be floats, as those of scikit-learn
        return np.unique(self.classes if isinstance(self.classes, np.ndarray) else labels)  # type: ignore[arg-type]


class Layout(NamedTuple):
    """The layout of the weights of a fitted model.

    Attributes
    ----------
    least : int
        The number of weights, without padding; from the sizes of the model alone.
    blank : callable
        ``blank()`` makes the map of one example without features, whose weights are laid out as those of all.
    """

    least: int
    blank: Callable[[], object]

    @property
    def size(self) -> int:
        """The number of weights, with padding."""
        return int(map_sizes(self.blank()).weights)

    def unpack(self, w: FloatArray) -> tuple[FloatArray, ...]:
        """Return the weights by meaning: views of the vector."""
        parts: tuple[FloatArray, ...] = unpack(self.blank(), w)
        return parts


def _no_answer(*args: object) -> Never:
    raise NotImplementedError("the structure of this estimator has no such answer")


class Question(NamedTuple, Generic[Output, Values]):
    """Examples whose outputs are to be predicted.

    Attributes
    ----------
    problem : Problem or None
        None if no example has a part.
    outputs : callable
        ``outputs(codes)`` returns the outputs for users from those of the problem, one after another.
    score : callable
        ``score(codes, y)`` compares these outputs with users' true ones; `score` of the estimator is the
        share of all that is right.
    margins : callable
        ``margins(codes, margins)`` returns the margins for users.
    states : callable
        ``states(y)`` returns the true states of all parts; -1 for a state unknown to `fit`.
    marginals : callable
        ``marginals(values, shapes)`` returns the probabilities for users; see `part_shapes`.
    """

    problem: Problem | None
    outputs: Callable[[IntArray], Output]
    score: Callable[[IntArray, object], Tally] = _no_answer
    margins: Callable[[IntArray, FloatArray], Values] = _no_answer
    states: Callable[[object], IntArray] = _no_answer
    marginals: Callable[[FloatArray, IntArray], Values] = _no_answer


def learn_attributes(model: AnyEstimator, lesson: Lesson) -> None:
    """Set the attributes that the lesson of all examples has."""
    model.__dict__ |= lesson.attributes


class Cluster(NamedTuple):
    """What training on a cluster asks of a structure.

    Attributes
    ----------
    lesson : callable
        ``lesson(model, parts, weights)`` returns what the validated examples of a partition teach; the model
        is a draft.
    learn : callable
        ``learn(model, lesson)`` sets what encoding and prediction need, from the lesson of all examples.
    """

    lesson: Callable[[Any, Parts, FloatArray | None], Lesson]
    learn: Callable[[Any, Lesson], None] = learn_attributes


class Structure(Generic[Model, Data, Output, Values]):
    """What is an estimator's own. The functions that raise `NotImplementedError` are needed by all.

    Attributes
    ----------
    fields : dict
        The fitted attributes that its files have besides the certificate; see `fields`.
    in_lists : bool
        Whether examples are given in lists, instead of as the rows of a table.
    n_parts : int
        The number of parts of users' data: X, y and, for some, one more, which may be None.
    summable : str
        For errors: what exact sums over outputs need.
    scale : float
        What ``C="scale"`` divides by the variance of the features; docs/defaults.md says how it was chosen.
    scores_whole : bool
        Whether `score` counts outputs that are right as a whole, and so does the choice of C.
    named_parts : tuple of str
        The parts of weights with one column for each feature that has a name; an L1 penalty drops names.
    cluster : Cluster
        Only where there is an estimator that trains on a cluster.
    trials : dict
        Tiny examples of each kind, which need the same kernels as users': functions that return X and y.
    """

    fields: ClassVar[Fields] = {}
    in_lists: ClassVar[bool] = True
    n_parts: ClassVar[int] = 2
    summable: ClassVar[str] = ""
    scale: ClassVar[float] = 1.0
    scores_whole: ClassVar[bool] = False
    named_parts: ClassVar[tuple[str, ...]] = ()
    cluster: ClassVar[Cluster]
    trials: ClassVar[Trials] = {}

    # Training.

    def validate(self, model: Model, parts: Parts, call: Call) -> Parts:
        """Validate the user's data and return them, before examples of weight zero are dropped."""
        return parts

    def row_counts(self, X: object) -> list[int]:
        """Return the number of rows of each example, as users give them; it may be wrong."""
        return [n_rows(x) for x in cast("Iterable[object]", X)] if self.in_lists else [1] * n_rows(X)

    def encode(self, model: Model, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[Data]:
        """Encode the examples. The first call learns the encoding and keeps it on the model."""
        raise NotImplementedError

    def problem(self, model: Model, examples: Examples[Data]) -> Problem:
        """Return the problem of all examples, without their weights."""
        raise NotImplementedError

    # Predictions.

    def ask(self, model: Model, X: object) -> Question[Output, Values]:
        """Return the question of the outputs of users' examples."""
        raise NotImplementedError

    def reader(self, model: Model, x: object) -> tuple[Problem, Reader] | None:
        """Return the problem of predicting the output of one example, and a reader of its outputs.

        None if the example is empty.
        """
        raise NotImplementedError

    # Weights, by meaning and by name.

    def layout(self, model: Model) -> Layout:
        """Return where the weights of the fitted model are."""
        raise NotImplementedError

    def expose(self, model: Model) -> None:
        """Set the fitted attributes that follow from the weights and the other fitted attributes."""

    def features(self, model: Model) -> list[WeightTable]:
        """Return the weights of features."""
        raise NotImplementedError

    def transitions(self, model: Model) -> list[WeightTable]:
        """Return the weights of labels that occur together."""
        raise NotImplementedError


def in_each_storage(trial: Callable[[FloatArray, IntArray], tuple[object, object]]) -> Trials:
    """Return trials of dense, sparse and indicator rows, made from nine rows and their labels, 0, 1 or 2."""
    return {f"{storage} rows": partial(_stored, trial, storage) for storage in tables_of_trials()}


def _stored(
    trial: Callable[[FloatArray, IntArray], tuple[object, object]], storage: str
) -> tuple[object, object]:
    return trial(tables_of_trials()[storage], np.arange(9) % 3)


def tables_of_trials() -> dict[str, FloatArray]:
    """Return rows of features in each of the three storage formats."""
    X = np.random.default_rng(0).normal(size=(9, 4))
    return {"dense": X, "sparse": np.where(X > 1.0, X, 0.0), "indicators": np.where(X > 1.0, 1.0, 0.0)}


def signed(problem: Problem, nonnegative: object) -> Problem:
    """Return the problem with some weights kept from being negative, or as it is if there are none."""
    return problem if nonnegative is None else SignConstrained(problem, nonnegative)
