"""The one estimator: parameters, `fit`, `partial_fit`, `predict` and `score`, with hooks for the models."""

import inspect
import math
import os
import warnings
from collections.abc import Iterable
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from maxmargin.encoding.labels import Labels, given_classes
from maxmargin.estimators.examples import (
    Data,
    Examples,
    Parts,
    Seen,
    appended,
    check_fixed,
    listed,
    per_weight,
    scale_advice,
    weighed,
)
from maxmargin.estimators.fields import COUNT, FLAG, HISTORY, LABELS, NUMBER, Fields
from maxmargin.estimators.model_files import SavesModel
from maxmargin.estimators.parameters import (
    METHODS,
    SHARED,
    TEXTS,
    TRAINING,
    Constraints,
    document,
    parameter_texts,
)
from maxmargin.estimators.problems import Problem
from maxmargin.estimators.state import (
    INTERRUPTED,
    LeftOut,
    check_parameters,
    parameters_of,
    snapshot,
    transaction,
)
from maxmargin.files.checkpoint import Checkpoint, CheckpointLike, as_checkpoint
from maxmargin.methods import Accelerated, Divided, Pairwise
from maxmargin.methods.anchored import suited_to
from maxmargin.methods.protocol import with_lam
from maxmargin.runtime.arrays import FloatArray, IntArray, frozen_copy, frozen_view
from maxmargin.runtime.limits import Shares, deadline_at
from maxmargin.runtime.threads import as_number, threads
from maxmargin.runtime.wording import counted, frames_to_user, shown
from maxmargin.solving.decoding import decode_all
from maxmargin.solving.display import shown_progress
from maxmargin.solving.driver import solve
from maxmargin.solving.kinds import checked_method
from maxmargin.solving.result import Callback, History, Progress, Result, Status
from maxmargin.solving.resume import UnfitStart
from maxmargin.structures.wrappers import Weighted

# The training of estimators: from their parameters to a run of `solve`, its certificate and its warnings.

# The objective to which tol refers is at least this, in units of the loss: on separable data it tends to zero
# as C grows, long after predictions stop changing.
FLOOR = 0.01

ADVICE = {
    Status.MAX_PASSES: "raise max_iter or tol, or lower C",
    Status.TIME_LIMIT: "raise time_limit or tol, or lower C",
}


class TrainedEstimator(SavesModel, Generic[Data]):
    """Base of estimators that `solve` trains."""

    C: float | str
    method: object
    tol: float
    max_iter: int
    time_limit: float | None
    check_every: int
    sampling: str
    warm_start: bool
    n_jobs: int | None = None
    verbose: int
    callbacks: Iterable[Callback] | None = None
    checkpoint: CheckpointLike | None = None
    random_state: object

    C_: float
    gap_: float
    certified_: bool
    history_: History
    n_iter_: int

    _fitted: ClassVar[Fields] = {
        "C_": NUMBER,
        "gap_": NUMBER,
        "certified_": FLAG,
        "history_": HISTORY,
        "n_iter_": COUNT,
    }

    @property
    def _owner(self) -> str:
        """The name to use in errors."""
        return type(self).__name__

    @property
    def _passes(self) -> str:
        """The number of passes, in words."""
        return counted(self.n_iter_, "pass")

    def _solve(self, problem: Problem, examples: Examples[Data], start: Result | None) -> Result:
        """Train on the problem and keep the certificate."""
        mean = examples.mean_weight
        if examples.weights is not None:
            problem = Weighted(problem, examples.weights)
        self.C_, kept = self._chosen_C(examples), as_checkpoint(self.checkpoint)
        lam = 1.0 / (self.C_ * examples.number)
        try:
            result = self._run(problem, lam, mean, _file_of(kept) or start, kept)
        except UnfitStart:  # other data, or another method
            result = self._run(problem, lam, mean, None, kept)
        self.gap_, self.certified_ = float(result.gap / mean), result.certified
        self.history_ = History(tuple(per_weight(row, mean) for row in result.history.rows))
        self.n_iter_ = math.ceil(result.history.rows[-1].passes)
        if result.status is Status.INTERRUPTED:
            text = f"after {self._passes}; the estimator is fitted, with a gap of {self.gap_:.3g}"
            setattr(self, INTERRUPTED, f"{self._owner}: interrupted {text}.")
        elif result.status in ADVICE:
            self._warn(result.status, scale_advice(examples.data[0]))
        return result

    def _chosen_C(self, examples: Examples[Data]) -> float:
        """Hook: return C as a number, which may depend on the examples."""
        return float(self.C)

    def _run(
        self,
        problem: Problem,
        lam: float,
        mean: float,
        start: Result | str | None,
        checkpoint: Checkpoint | None = None,
    ) -> Result:
        with shown_progress(self._owner, int(self.verbose)) as line:
            return solve(
                problem,
                self._method(lam, problem),
                tol=FLOOR * self.tol * mean,
                rtol=self.tol,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[_in_units_of(callback, mean) for callback in (line, *(self.callbacks or ()))],
                random_state=self.random_state,
                start=start,
                n_jobs=self.n_jobs,
                checkpoint=checkpoint,
            )

    def _method(self, lam: float, problem: Problem) -> object:
        """Return the method; the default one depends on the problem and on the number of threads."""
        if not isinstance(self.method, str):
            return with_lam(checked_method(self.method), lam)
        if self.method != "auto" or self.sampling == "gap":  # only plain methods record gaps to sample by
            return METHODS[self.method](lam)
        default = METHODS["auto"](lam)
        # A certificate takes about as long as a pass. The remaining threads compute them during the next
        # pass.
        n_parts = -(-as_number(self.n_jobs) * self.check_every // (self.check_every + 1))
        # Dividing the examples is not sound with sign constraints on the weights.
        if n_parts > 1 and getattr(self, "nonnegative", None) is None:
            default = Accelerated(Divided(Pairwise(lam=lam), n_parts))
        return suited_to(problem, default)

    def _warn(self, status: Status, scales: str) -> None:
        known, objective = "there is no certificate", self.history_.primal.min()
        if objective < math.inf:
            known = (
                f"the gap is {self.gap_:.3g}, above tol={self.tol:.3g} times the objective {objective:.4g}"
            )
        warnings.warn(
            f"{self._owner}: {status.value}: after {self._passes} {known}; {ADVICE[status]}{scales}.",
            ConvergenceWarning,
            stacklevel=frames_to_user(),
        )


def _file_of(checkpoint: Checkpoint | None) -> str | None:
    """Return the file of a checkpoint, if there is one."""
    return checkpoint.path if checkpoint is not None and os.path.exists(checkpoint.path) else None


def _in_units_of(callback: Callback, mean: float) -> Callback:
    """Return the callback for a run, with measurements in units of the estimator's objective."""
    if mean == 1.0:
        return callback

    def called(progress: Progress) -> object:
        last = progress.last
        limits = progress.limits._replace(tol=progress.limits.tol / mean)
        scaled = None if last is None else per_weight(last, mean)
        return callback(progress._replace(last=scaled, limits=limits))

    return called


Output = TypeVar("Output")
_Matrix = TypeVar("_Matrix")


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


class MaxMarginEstimator(TrainedEstimator[Data], Generic[Data, Output]):
    """Base of the estimators: everything that does not depend on the structure of outputs.

    A subclass defines ``__init__`` with its parameters, `_encode`, `_problem`, `_keep` and `_predict`, and
    may define `_validate` and `_score`. Its `_texts` document its data: "examples", the plural noun for its
    examples; "X", "y" and "predict", their forms; "score", what `score` returns. A base class of several
    estimators keeps the texts that they share in `_shared_texts`.
    """

    n_features_in_: int
    _w: FloatArray
    _seen: Seen[Data] | LeftOut | None
    _last: Result | None

    _texts: ClassVar[dict[str, str]]
    _shared_texts: ClassVar[dict[str, str]] = TEXTS
    _parameter_constraints: ClassVar[Constraints] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Give the class the constraints and the documentation of its parameters, unless it is a base."""
        super().__init_subclass__(**kwargs)
        if cls.__init__ is object.__init__:
            return
        constraints = {name: shared.constraints for name, shared in SHARED.items()}
        texts = parameter_texts(cls.__init__)
        for base in reversed(cls.__mro__):
            constraints |= vars(base).get("_parameter_constraints", {})
            texts |= vars(base).get("_shared_texts", {})
        names = inspect.signature(cls.__init__).parameters
        cls._parameter_constraints = {name: constraints[name] for name in names if name in constraints}
        if "_texts" in vars(cls):
            document(cls, texts | cls._texts)

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
        time, seen = Shares(self.time_limit, 1), self._earlier() if more else None
        if more:
            check_fixed(getattr(self, "class_weight", None), self._owner)
            self._check_no_checkpoint()
        if seen is not None:
            self._check_same_model(seen.parameters)
        call = Call(seen is None, more, self.warm_start, classes)
        with deadline_at(time.deadline):
            examples = appended(seen, self._examples(parts, sample_weight, call))
            problem = self._problem(examples)
        self.time_limit = time.next()  # on a draft; the user's limit stays
        result = self._solve(problem, examples, self._start(seen, more))
        self._remember(Seen(examples, result, self._model_parameters()), more)
        self._keep(problem, examples, result.w)
        return self

    def _examples(self, parts: Parts, sample_weight: object, call: Call) -> Examples[Data]:
        """Return the examples of positive weight, encoded, with the caller's numbers of their rows."""
        given = listed(self._validate(parts, call))
        counts = None if sample_weight is None else self._row_counts(given[0])
        order = None if counts is None else np.arange(len(counts))
        (*present, kept), weights = weighed((*given, order), sample_weight, self._owner)
        examples = self._encode(tuple(present), weights, call)
        return examples if counts is None else examples.numbered(counts, cast("IntArray", kept))

    def _row_counts(self, X: object) -> IntArray | None:
        """Hook: return the number of rows of each example; None if nothing that is learnt numbers them."""
        return None

    def _earlier(self) -> Seen[Data] | None:
        """Return the examples and the result of earlier calls of `partial_fit`."""
        seen: Seen[Data] | LeftOut | None = getattr(self, "_seen", None)
        if isinstance(seen, LeftOut):
            raise ValueError(
                f"{self._owner}: partial_fit needs the examples of earlier calls, but {seen.value}."
            )
        return seen

    def _check_no_checkpoint(self) -> None:
        if self.checkpoint is not None:
            raise ValueError(
                f"{self._owner}: checkpoint must be None for partial_fit, as each call has other examples, "
                f"got {shown(self.checkpoint)}; call fit, or leave it out."
            )

    def _validate(self, parts: Parts, call: Call) -> Parts:
        """Hook: validate the user's data and return them, before examples of weight zero are dropped."""
        return parts

    def _encode(self, parts: Parts, weights: FloatArray | None, call: Call) -> Examples[Data]:
        """Hook: encode the examples. The first call learns the encoding and keeps it on self."""
        raise NotImplementedError

    def _problem(self, examples: Examples[Data]) -> Problem:
        """Hook: return the problem of all examples, without their weights."""
        raise NotImplementedError

    def _keep(self, problem: Problem, examples: Examples[Data], w: FloatArray) -> None:
        """Hook: set the weights, and the fitted attributes that follow from them."""
        self._w = w
        self._expose()

    def _predict(self, X: object) -> Output:
        """Hook: return the outputs of highest score."""
        raise NotImplementedError

    def _score(self, X: object, y: object) -> float:
        """Hook: return the score of the predictions."""
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
        """Keep the examples or the result that the next call continues from."""
        self._seen = trained if more else None
        if more:
            return
        if self.warm_start:
            self._last = trained.result
        elif hasattr(self, "_last"):
            del self._last

    def _model_parameters(self) -> dict[str, object]:
        """Return the parameters that determine what is learnt, and not only how."""
        return {name: value for name, value in parameters_of(self).items() if name not in TRAINING}

    def _check_same_model(self, before: dict[str, object]) -> None:
        """Raise if the parameters describe a different model than in earlier calls."""
        for name, value in self._model_parameters().items():
            if not _is_same(value, before[name]):
                raise ValueError(
                    f"{self._owner}: {name} must be {shown(before[name])}, as in the first call of "
                    f"partial_fit, got {shown(value)}; call fit to start afresh."
                )

    def _check_width(self, what: str, n_features: int, known: int) -> None:
        """Raise unless the data have the number of features seen in `fit`."""
        if n_features != known:
            raise ValueError(
                f"{self._owner}: {what} of X have {n_features} features, but {self._owner} was fitted with "
                f"{known}; give the features that were given to fit."
            )


class LabellingEstimator(MaxMarginEstimator[Data, Output]):
    """Base of the estimators whose outputs are labels of `classes_`, which may be given to the first call."""

    classes_: Labels

    _fitted: ClassVar[Fields] = {"classes_": LABELS}

    @transaction
    def partial_fit(  # type: ignore[override]
        self, X: object, y: object, classes: object = None, sample_weight: object = None
    ) -> Self:
        """%(partial_fit_with_classes)s"""
        return self._learn((X, y), sample_weight, more=True, classes=classes)

    def _known_classes(self, call: Call) -> Labels | None:
        """Return the labels of earlier calls, or those given to the first; None if they follow from y."""
        if not call.first:
            return self.classes_
        return None if call.classes is None else self._given_classes(call.classes)

    def _given_classes(self, classes: object) -> Labels:
        """Hook: return the labels that are given to the first call, sorted."""
        return given_classes(classes, self._owner)


def _is_same(value: object, before: object) -> bool:
    """Return whether a parameter is unchanged: the same object, or an equal one."""
    try:
        return value is before or bool(np.all(value == before))
    except (TypeError, ValueError):  # not comparable, or arrays of other shapes
        return False
