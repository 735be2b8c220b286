"""The one estimator: parameters, `fit`, `partial_fit`, `predict` and `score`, with hooks for the models."""

import inspect
import math
import sys
import warnings
from types import FrameType
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.threads import threads
from maxmargin.decoding import decode_all
from maxmargin.display import ProgressLine
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._documentation import TEXTS, document, parameter_texts
from maxmargin.estimators._examples import (
    Data,
    Examples,
    Parts,
    Seen,
    appended,
    check_fixed,
    per_weight,
    weighed,
)
from maxmargin.estimators._parameters import METHODS, SHARED, TRAINING, Constraints
from maxmargin.estimators._problems import Problem
from maxmargin.estimators._state import check_parameters, snapshot, transaction
from maxmargin.history import History
from maxmargin.methods import Accelerated, Divided, Pairwise
from maxmargin.problems import Weighted
from maxmargin.result import Progress, Result, Status
from maxmargin.resume import UnfitStart
from maxmargin.solve import solve
from maxmargin.wording import shown

# Parts of "auto" with threads. On two parts, two threads were measured to be 1.5 to 1.7 times as fast as one,
# and 1.1 to 1.3 times as fast as one thread without parts, which needs fewer passes and stays the method for
# one thread. The number is fixed, so that the answer does not depend on the machine.
_PARTS = 2

_OURS = {__name__.partition(".")[0], "sklearn"}

ADVICE = {
    Status.MAX_PASSES: "raise max_iter or tol, or lower C",
    Status.TIME_LIMIT: "raise time_limit or tol, or lower C",
    Status.INTERRUPTED: "the best weights so far are kept",
}


Output = TypeVar("Output")


class Call(NamedTuple):
    """A call of `fit` or `partial_fit`.

    Attributes
    ----------
    first : bool
        Whether it learns anew, and does not add examples to those of earlier calls.
    keeps : bool
        Whether the estimator keeps the examples for later calls.
    classes : array-like or None
        The labels of all calls, if they are given.
    """

    first: bool
    keeps: bool
    classes: object = None


class MaxMarginEstimator(BaseEstimator, Generic[Data, Output]):  # type: ignore[misc]
    """Base of the estimators: all that does not depend on the structure of outputs.

    A subclass defines ``__init__`` with its parameters, `_encode`, `_problem`, `_keep` and `_predict`, and
    may define `_validate` and `_score`. Its `_texts` document its data: "examples", what an example is
    called, in the plural; "X", "y" and "predict", their forms; "score", what `score` returns.
    """

    C: float
    method: str
    tol: float
    max_iter: int
    time_limit: float | None
    check_every: int
    sampling: str
    warm_start: bool
    n_jobs: int | None = None
    verbose: int
    random_state: object

    gap_: float
    certified_: bool
    history_: History
    n_iter_: int
    n_features_in_: int
    _w: FloatArray
    _seen: Seen[Data] | None
    _last: Result | None

    _texts: ClassVar[dict[str, str]]
    _parameter_constraints: ClassVar[Constraints] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Give the class the constraints and the documentation of its parameters."""
        constraints = {name: shared.constraints for name, shared in SHARED.items()}
        for base in reversed(cls.__mro__):
            constraints |= vars(base).get("_parameter_constraints", {})
        names = inspect.signature(cls.__init__).parameters
        cls._parameter_constraints = {name: constraints[name] for name in names if name in constraints}
        if "_texts" in vars(cls):
            document(cls, TEXTS | parameter_texts(cls.__init__) | cls._texts)
        super().__init_subclass__(**kwargs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # lists of sequences, graphs, ...
        tags.target_tags.required = True
        return tags

    def _store(self, arguments: dict[str, object]) -> None:
        """Store the arguments of ``__init__`` as they are, under their names, as scikit-learn asks."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, value)

    @property
    def _owner(self) -> str:
        """The name to use in errors."""
        return type(self).__name__

    @transaction
    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """%(fit)s"""
        return self._learn((X, y), sample_weight)

    @transaction
    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """%(partial_fit)s"""
        return self._learn((X, y), sample_weight, more=True)

    def _learn(
        self, parts: Parts, sample_weight: object, *, more: bool = False, classes: object = None
    ) -> Self:
        """Train on examples, and on those of earlier calls if there are ``more``.

        Runs on a draft of the estimator (`transaction`): hooks may set attributes that a later error
        discards.
        """
        seen: Seen[Data] | None = getattr(self, "_seen", None) if more else None
        if more:
            check_fixed(getattr(self, "class_weight", None), self._owner)
        if seen is not None:
            self._check_same_model(seen.parameters)
        call = Call(seen is None, more, classes)
        parts, weights = weighed(self._validate(parts, call), sample_weight, self._owner)
        examples = appended(seen, self._encode(parts, weights, call))
        problem = self._problem(examples)
        result = self._solve(problem, examples, self._start(seen, more))
        self._remember(Seen(examples, result, self._model_parameters()), more)
        self._keep(problem, examples, result.w)
        return self

    def _validate(self, parts: Parts, call: Call) -> Parts:
        """Hook: return the users' data checked, before examples of weight zero are dropped."""
        return parts

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[Data]:
        """Hook: return the examples encoded. The first call learns the encoding and keeps it on self."""
        raise NotImplementedError

    def _problem(self, examples: Examples[Data]) -> Problem:
        """Hook: return the problem of all examples, without their weights."""
        raise NotImplementedError

    def _keep(self, problem: Problem, examples: Examples[Data], w: FloatArray) -> None:
        """Hook: set the fitted attributes of the model."""
        self._w = w

    def _predict(self, X: object) -> Output:
        """Hook: return the outputs of highest score."""
        raise NotImplementedError

    def _score(self, X: object, y: object) -> float:
        """Hook: return how good the predictions are."""
        raise NotImplementedError

    @snapshot
    def predict(self, X: object) -> Output:
        """Return the outputs of highest score for %(examples)s.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        %(predict)s
        """
        return self._predict(X)

    @snapshot
    def score(self, X: object, y: object) -> float:
        """%(score)s

        Parameters
        ----------
        %(X)s
        %(y)s

        Returns
        -------
        float
        """
        return self._score(X, y)

    def _decoded(self, problem: Problem) -> IntArray:
        """Return the outputs of highest score of all examples, concatenated; `n_jobs` threads find them."""
        check_parameters(self, "n_jobs")
        with threads(self.n_jobs):
            return decode_all(problem, self._w)

    def _start(self, seen: Seen[Data] | None, more: bool) -> Result | None:
        """Return the result to continue from."""
        if more:
            return None if seen is None else seen.result
        return getattr(self, "_last", None) if self.warm_start else None

    def _remember(self, trained: Seen[Data], more: bool) -> None:
        """Keep what the next call continues from."""
        self._seen = trained if more else None
        if more:
            return
        if self.warm_start:
            self._last = trained.result
        elif hasattr(self, "_last"):
            del self._last

    def _solve(self, problem: Problem, examples: Examples[Data], start: Result | None) -> Result:
        """Train on the problem and keep the certificate."""
        mean = examples.mean_weight
        if examples.weights is not None:
            problem = Weighted(problem, examples.weights)
        lam = 1.0 / (self.C * examples.number)
        try:
            result = self._run(problem, lam, mean, start)
        except UnfitStart:  # other data, or another method
            result = self._run(problem, lam, mean, None)
        self.gap_, self.certified_ = float(result.gap / mean), result.certified
        self.history_ = History(tuple(per_weight(row, mean) for row in result.history.rows))
        self.n_iter_ = math.ceil(result.history.rows[-1].passes)
        if result.status is not Status.CONVERGED:
            self._warn(result.status)
        return result

    def _run(self, problem: Problem, lam: float, mean: float, start: Result | None) -> Result:
        with ProgressLine(self._owner, enabled=bool(self.verbose)) as line:
            return solve(
                problem,
                self._method(lam),
                tol=self.tol * mean,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[lambda progress: line(_scaled(progress, mean))],
                random_state=self.random_state,
                start=start,
                n_jobs=self.n_jobs,
            )

    def _method(self, lam: float) -> object:
        """Return the method; the default method divides the examples if there are threads to use."""
        # Parts record no gaps to sample by, and are not sound where weights are constrained in sign.
        divides = self.sampling != "gap" and getattr(self, "nonnegative", None) is None
        if self.method == "auto" and self.n_jobs not in (None, 1) and divides:
            return Accelerated(Divided(Pairwise(lam=lam), _PARTS))
        return METHODS[self.method](lam)

    def _model_parameters(self) -> dict[str, object]:
        """Return the parameters that say what is learnt: those that are not of training alone."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in TRAINING}

    def _check_same_model(self, before: dict[str, object]) -> None:
        """Raise if parameters ask for another model than in the earlier calls."""
        for name, value in self._model_parameters().items():
            if not _is_same(value, before[name]):
                raise ValueError(
                    f"{self._owner}: {name} must be {shown(before[name])}, as in the first call of "
                    f"partial_fit, got {shown(value)}; call fit to learn anew."
                )

    def _warn(self, status: Status) -> None:
        warnings.warn(
            f"{self._owner}: {status.value}: gap {self.gap_:.3g} > tol {self.tol:.3g} after "
            f"{self.n_iter_} passes (objective {self.history_.primal.min():.4g}); {ADVICE[status]}.",
            ConvergenceWarning,
            stacklevel=_frames_to_user(),
        )


class LabellingEstimator(MaxMarginEstimator[Data, Output]):
    """Base of the estimators whose outputs are labels of `classes_`, which the first call may be told."""

    classes_: Labels

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, classes: object = None, sample_weight: object = None
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y), sample_weight, more=True, classes=classes)

    def _known_classes(self, call: Call) -> Labels | None:
        """Return the labels of earlier calls, or those given to the first; None if y is to tell."""
        if not call.first:
            return self.classes_
        return None if call.classes is None else np.unique(call.classes)  # type: ignore[call-overload]


def _is_same(value: object, before: object) -> bool:
    """Return whether a parameter is what it was: the same object, or an equal one."""
    try:
        return value is before or bool(np.all(value == before))
    except (TypeError, ValueError):  # not comparable, or arrays of other shapes
        return False


def _scaled(progress: Progress, mean: float) -> Progress:
    """Return the progress of a run in the units of the estimator's objective."""
    last = progress.last
    return progress._replace(last=None if last is None else per_weight(last, mean), tol=progress.tol / mean)


def _frames_to_user() -> int:
    """Return the stack level at which a warning points at the line that called `fit`."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in _OURS:
        level, frame = level + 1, frame.f_back
    return level


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
