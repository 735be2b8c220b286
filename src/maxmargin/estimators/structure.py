"""The protocol of structures: all that an estimator knows about its examples and outputs.

An estimator *has* a structure, a value without state of its own: parameters and what `fit` learns are
attributes of the estimator, which the functions of a structure take as ``model``. To predict, a structure
turns users' examples into a `Question`: a problem, and how its answers are written for users.

A structure lives in ``estimator.py`` of its room. What several structures share are functions that they call:
`tables` for the rows of a table, `sequences` for tokens, `kernels` for kernels of rows.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Never, TypeAlias, TypeVar, cast

import numpy as np

from maxmargin.encoding.labels import Labels, given_classes, listed_classes
from maxmargin.estimators.examples import Data, Examples, Lesson, Parts, Tally, n_rows
from maxmargin.estimators.explanation import Reader
from maxmargin.estimators.fields import Fields
from maxmargin.estimators.inspection import WeightTable
from maxmargin.runtime.arrays import FloatArray, IntArray, frozen_copy, frozen_view
from maxmargin.structures.problem import AnyProblem, sizes
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
    """The layout of weights: their number, and a function from a vector of them to views by meaning."""

    size: int
    unpack: Callable[[FloatArray], tuple[FloatArray, ...]]


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
    trials : dict
        Tiny examples of each kind, which need the same kernels as users': functions that return X and y.
    """

    fields: ClassVar[Fields] = {}
    in_lists: ClassVar[bool] = True
    n_parts: ClassVar[int] = 2
    summable: ClassVar[str] = ""
    scale: ClassVar[float] = 1.0
    scores_whole: ClassVar[bool] = False
    trials: ClassVar[Trials] = {}

    # Training.

    def validate(self, model: Model, parts: Parts, call: Call) -> Parts:
        """Validate the user's data and return them, before examples of weight zero are dropped."""
        return parts

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
        problem = self.blank(model)
        return Layout(int(sizes(problem).weights), problem.unpack)

    def blank(self, model: Model) -> Problem:
        """Return the problem of predicting one example without features, whose layout is that of all."""
        raise NotImplementedError

    def size(self, model: Model) -> int:
        """Return the number of weights, without padding, from the sizes of the model alone."""
        raise NotImplementedError

    def forget_unused(self, model: Model) -> None:
        """Drop the names of features whose weights are all zero, if features have names."""

    def expose(self, model: Model) -> None:
        """Set the fitted attributes that follow from the weights and the other fitted attributes."""

    def check(self, model: Model) -> None:
        """Raise ValueError unless the attributes that a file had are those of one model."""

    def features(self, model: Model) -> list[WeightTable]:
        """Return the weights of features."""
        raise NotImplementedError

    def transitions(self, model: Model) -> list[WeightTable]:
        """Return the weights of labels that occur together."""
        raise NotImplementedError

    def states(self, examples: Examples[Data]) -> IntArray:
        """Return the true states of the parts of training examples."""
        found: IntArray = np.ravel(cast("IntArray", examples.data[1]))
        return found

    # For some: kernels of rows, C in units of the features, training on a cluster.

    def row_counts(self, X: object) -> list[int]:
        """Return the number of rows of each example, as users give them; it may be wrong."""
        return [n_rows(x) for x in cast("Iterable[object]", X)] if self.in_lists else [1] * n_rows(X)

    def score_columns(self, model: Model, coefficients: FloatArray) -> int:
        """Return the number of scores that a row has in predictions with a kernel."""
        return int(coefficients.shape[1])

    def rows_per_example(self, model: Model, size: float) -> float:
        """Return the C of an example in units of that of a row, for examples of this many rows."""
        return 1.0

    def lesson(self, model: Model, parts: Parts, weights: FloatArray | None) -> Lesson:
        """Return what validated examples teach before training on a cluster; the model is a draft."""
        raise NotImplementedError

    def learn(self, model: Model, lesson: Lesson) -> None:
        """Set what encoding and prediction need, from the lesson of all examples."""
        model.__dict__ |= lesson.attributes


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
