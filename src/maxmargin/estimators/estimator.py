"""The one estimator: parameters, `fit`, `partial_fit`, `predict` and `score` of any structure."""

import copy
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from maxmargin.encoding.labels import Labels
from maxmargin.estimators import confidence, model_files
from maxmargin.estimators.examples import (
    FLOOR,
    Data,
    Examples,
    Parts,
    Seen,
    appended,
    check_fixed,
    listed,
    per_weight,
    rows_of,
    scale_advice,
    total_variance,
    weighed,
    weights_of_rows,
)
from maxmargin.estimators.kernels import Function, Support, is_linear, kept_weights, row_dtype
from maxmargin.estimators.parameters import (
    METHODS,
    SHARED,
    TEXTS,
    TRAINING,
    Constraints,
    document,
    parameter_texts,
)
from maxmargin.estimators.selection import CrossValidated, choose, is_auto
from maxmargin.estimators.sequences import forget_unused
from maxmargin.estimators.state import (
    INTERRUPTED,
    LeftOut,
    TellsVersion,
    check_parameters,
    parameters_of,
    snapshot,
    transaction,
    twin,
    without_training_data,
)
from maxmargin.estimators.structure import Call, Output, Problem, Question, Structure, Values
from maxmargin.files.checkpoint import Checkpoint, CheckpointLike, as_checkpoint
from maxmargin.methods import Accelerated, Divided, Pairwise
from maxmargin.methods.anchored import suited_to
from maxmargin.methods.protocol import with_lam
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import Shares, deadline_at, now
from maxmargin.runtime.threads import as_number, threads
from maxmargin.runtime.wording import caller, counted, frames_to_user, shown
from maxmargin.solving.decoding import decode_all
from maxmargin.solving.display import shown_progress
from maxmargin.solving.driver import solve
from maxmargin.solving.kinds import checked_method
from maxmargin.solving.result import Callback, History, Progress, Result, Status
from maxmargin.solving.resume import UnfitStart
from maxmargin.structures.feature_map import completed, is_projected, unprojected
from maxmargin.structures.problem import n_bytes
from maxmargin.structures.wrappers import L1Penalised, Weighted

# The share of the time limit that the search for C may take.
_SEARCH = 0.75
ADVICE = {
    Status.MAX_PASSES: "raise max_iter or tol, or lower C",
    Status.TIME_LIMIT: "raise time_limit or tol, or lower C",
}


class MaxMarginEstimator(TellsVersion, Generic[Data, Output, Values]):
    """Base of the estimators: everything that does not depend on the structure of outputs.

    A subclass defines ``__init__`` with its parameters, and has a `Structure`, which is all that is its own.
    Methods that not all estimators have are functions (`confidence`, `inspection`, `explanation`), which a
    subclass names among its attributes. Its `_texts` document its data: "examples", the plural noun for its
    examples; "X", "y" and "predict", their forms; "score", what `score` returns.
    """

    # Parameters that all estimators have, or several.
    C: float | str | CrossValidated
    l1_ratio: float | None = None
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
    probability: bool
    min_count: int
    kernel: str | Callable[..., object]
    degree: int
    gamma: str | float
    coef0: float
    cache_size: float

    # What `fit` learns: of all estimators, and of those with labels, probabilities, names or kernels.
    C_: float
    l1_ratio_: float
    cv_results_: dict[str, Any]
    gap_: float
    certified_: bool
    history_: History
    n_iter_: int
    n_features_in_: int
    classes_: Labels
    temperature_: float
    feature_names_: Sequence[Any] | None
    notes_: object
    _w: FloatArray
    _coef: FloatArray
    _encoder: Any  # of the features of this structure
    _function: Function
    _dtype: type[np.floating]
    _n_labels: int = 1  # of a row, each of which has states
    _support: Support
    _has_objects: bool
    _is_sparse: bool
    _seen: Seen[Data] | LeftOut | None
    _last: Result | None

    _structure: ClassVar[Structure[Any, Any, Any, Any]]
    _texts: ClassVar[dict[str, str]]
    _parameter_constraints: ClassVar[Constraints] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Give the class the constraints and the documentation of its parameters, unless it is a base."""
        super().__init_subclass__(**kwargs)
        if cls.__init__ is object.__init__:
            return
        constraints = {name: shared.constraints for name, shared in SHARED.items()}
        for base in reversed(cls.__mro__):
            constraints |= vars(base).get("_parameter_constraints", {})
        names = inspect.signature(cls.__init__).parameters
        cls._parameter_constraints = {name: constraints[name] for name in names if name in constraints}
        if "_texts" in vars(cls):
            document(cls, TEXTS | parameter_texts(cls.__init__) | cls._texts)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = not self._structure.in_lists
        tags.input_tags.sparse = not self._structure.in_lists
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, object]:
        return without_training_data(super().__getstate__())

    def __copy__(self) -> Self:
        return twin(self, dict(vars(self)))

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copied = memo[id(self)] = twin(self, {})
        copied.__dict__ = copy.deepcopy(dict(vars(self)), memo)
        return copied

    @property
    def kept_bytes_(self) -> int:
        """Bytes of the arrays that are kept for the next `partial_fit` or warm start."""
        return n_bytes((vars(self).get("_seen"), vars(self).get("_last")))

    def _store(self, arguments: dict[str, object]) -> None:
        """Store the arguments of ``__init__`` as they are, under their names, as scikit-learn asks."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, value)

    save = model_files.save

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
        """Train a draft of the estimator on examples, and on those of earlier calls if there are ``more``."""
        time, seen = Shares(self.time_limit, 1), self._earlier() if more else None
        if more:
            check_fixed(getattr(self, "class_weight", None))
            self._check_no_checkpoint()
        if seen is not None:
            self._check_same_model(seen.parameters)
        call = Call(seen is None, more, self.warm_start, classes)
        with deadline_at(time.deadline):
            examples = self._examples(parts, sample_weight, call)
            examples = examples if seen is None else appended(seen, examples)
            problem = self._structure.problem(self, examples)
        if seen is None:
            self._choose_C(problem, examples, time.deadline)
        problem = self._penalised(problem)
        self.time_limit = time.next()  # on a draft; the user's limit stays
        result = self._solve(problem, examples, self._start(seen, more))
        self._seen = Seen(examples, result, self._model_parameters()) if more else None
        if not more:
            self._remember(result)
        self._keep(problem, examples, result.w)
        return self

    def _examples(self, parts: Parts, sample_weight: object, call: Call) -> Examples[Data]:
        """Return the examples of positive weight, encoded, with the caller's numbers of their rows."""
        given = listed(self._validated(parts, call))
        is_numbered = sample_weight is not None and getattr(self, "kernel", "linear") != "linear"
        counts = np.array(self._structure.row_counts(given[0]), np.int64) if is_numbered else None
        order = None if counts is None else np.arange(len(counts))
        (*present, kept), weights = weighed((*given, order), sample_weight)
        examples: Examples[Data] = self._structure.encode(self, tuple(present), weights, call)
        return examples if counts is None else examples.numbered(counts, cast("IntArray", kept))

    def _validated(self, parts: Parts, call: Call) -> Parts:
        """Return users' data validated, before examples of weight zero are dropped."""
        if call.first and hasattr(self, "kernel"):
            self._dtype = row_dtype(parts[0])
        return self._structure.validate(self, parts, call)

    def _earlier(self) -> Seen[Data] | None:
        """Return the examples and the result of earlier calls of `partial_fit`."""
        seen: Seen[Data] | LeftOut | None = getattr(self, "_seen", None)
        if isinstance(seen, LeftOut):
            raise ValueError(f"partial_fit needs the examples of earlier calls, but {seen.value}.")
        return seen

    def _check_no_checkpoint(self) -> None:
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint must be None for partial_fit, as each call has other examples, "
                f"got {shown(self.checkpoint)}; call fit, or leave it out."
            )

    def _keep(self, problem: Problem, examples: Examples[Data], w: FloatArray) -> None:
        """Set the weights, and the fitted attributes that follow from them."""
        if is_projected(problem.map):  # the image follows the weights
            w = w[: len(unprojected(problem.map, w))].copy()
        self.__dict__.pop("_is_sparse", None)
        has_kernel = hasattr(self, "_function") and not is_linear(self)
        self._w = kept_weights(self, problem, examples, w) if has_kernel else completed(problem.map, w)
        if self._l1_ratio and self._seen is None and not self.warm_start:  # later calls need all features
            forget_unused(self)
        self._structure.expose(self)

    def _start(self, seen: Seen[Data] | None, more: bool) -> Result | None:
        """Return the result to continue from."""
        if more:
            return None if seen is None else seen.result
        return getattr(self, "_last", None) if self.warm_start else None

    def _remember(self, result: Result) -> None:
        """Keep the result if the next `fit` continues from it."""
        if self.warm_start:
            self._last = result
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
                    f"{name} must be {shown(before[name])}, as in the first call of "
                    f"partial_fit, got {shown(value)}; call fit to start afresh."
                )

    def _solve(self, problem: Problem, examples: Examples[Data], start: Result | None) -> Result:
        """Train, discard the temperature of earlier weights, and fit a new one if ``probability`` is true."""
        self.__dict__.pop("temperature_", None)
        if not getattr(self, "probability", False):
            return self._certified(problem, examples, start)
        return confidence.with_temperature(self, problem, examples, start)

    @property
    def _l1_ratio(self) -> float | None:
        """The share of the L1 norm: the one that was chosen together with C, or else the parameter."""
        found: float | None = vars(self).get("l1_ratio_", self.l1_ratio)
        return found

    def _penalised(self, problem: Problem) -> Problem:
        """Return the problem with the L1 penalty that is asked for."""
        if not self._l1_ratio:
            return problem
        if getattr(self, "kernel", "linear") != "linear":
            raise ValueError(
                f"l1_ratio must be None with a kernel other than 'linear', got {self._l1_ratio}; leave it "
                "out."
            )
        return L1Penalised(problem, self._l1_ratio / (1.0 - self._l1_ratio))

    def _certified(self, problem: Problem, examples: Examples[Data], start: Result | None) -> Result:
        """Train on the problem and keep the certificate."""
        mean = examples.mean_weight
        if examples.weights is not None:
            problem = Weighted(problem, examples.weights)
        self.C_ = self._chosen_C(examples)
        lam = self._lam(examples.number)
        kept = None if self.checkpoint is None else as_checkpoint(self.checkpoint)
        is_there = kept is not None and os.path.exists(kept.path)
        try:
            result = self._run(problem, lam, mean, kept.path if kept and is_there else start, kept)
        except UnfitStart:  # other data, or another method
            result = self._run(problem, lam, mean, None, kept)
        self.gap_, self.certified_ = float(result.gap / mean), result.certified
        self.history_ = result.history
        if mean != 1.0:
            self.history_ = History(tuple(per_weight(row, mean) for row in result.history.rows))
        self.n_iter_ = math.ceil(result.history.rows[-1].passes)
        if result.status is Status.INTERRUPTED:
            text = f"the estimator is fitted, with a gap of {self.gap_:.3g}"
            passes = counted(self.n_iter_, "pass")
            setattr(self, INTERRUPTED, f"{caller()}: interrupted after {passes}; {text}.")
        elif result.status in ADVICE:
            self._warn(result.status, scale_advice(examples.data[0]))
        return result

    def _lam(self, n: int) -> float:
        """Return the factor of half the squared length, for n examples."""
        return (1.0 - (self._l1_ratio or 0.0)) / (self.C_ * n)

    def _choose_C(self, problem: Problem, examples: Examples[Data], deadline: float) -> None:
        """Choose C by cross-validation, if that is asked for; later calls of `partial_fit` keep it."""
        for name in ("cv_results_", "l1_ratio_"):
            self.__dict__.pop(name, None)
        if not is_auto(self.C):
            return
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                "random_state must be an int where C is chosen and there is a checkpoint, so that C is the "
                f"same again, got {shown(self.random_state)}."
            )
        is_linear = getattr(self, "kernel", "linear") == "linear"
        default = inspect.signature(type(self)).parameters["C"].default if is_linear else "scale"
        centre, until = self._as_number(default, examples), now() + _SEARCH * (deadline - now())
        self.__dict__ |= choose(self, problem, examples, centre, until)

    def _chosen_C(self, examples: Examples[Data]) -> float:
        """Return C as a number."""
        return self.C_ if is_auto(self.C) else self._as_number(self.C, examples)

    def _as_number(self, C: object, examples: Examples[Data]) -> float:
        """Return C as a number, where it is one or "scale"."""
        if not isinstance(C, str):
            return float(cast("float", C))
        variance = total_variance(rows_of(examples), weights_of_rows(examples)) if is_linear(self) else 0.0
        sizes, weights = np.diff(getattr(examples.data[0], "offsets", (0, 1))), examples.weights
        weights = weights if weights is None or len(weights) == len(sizes) else None
        return self._scaled_C(variance, float(np.average(sizes, weights=weights)))

    def _scaled_C(self, variance: float, size: float) -> float:
        """Return C for rows of this variance, in examples of this many rows; 1 if the rows have a kernel."""
        return self._structure.scale / variance if 0.0 < variance < np.inf else 1.0

    def _run(
        self,
        problem: Problem,
        lam: float,
        mean: float,
        start: Result | str | None,
        checkpoint: Checkpoint | None = None,
    ) -> Result:
        with shown_progress(caller(), int(self.verbose)) as line:
            callbacks = (*(() if line is None else (line,)), *(self.callbacks or ()))
            return solve(
                problem,
                self._method(lam, problem),
                tol=FLOOR * self.tol * mean,
                rtol=self.tol,
                max_passes=self.max_iter,
                time_limit=self.time_limit,
                check_every=self.check_every,
                sampling=self.sampling,
                callbacks=[_in_units_of(callback, mean) for callback in callbacks],
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
        if n_parts > 1 and not is_projected(problem.map):  # parts do not add up to a proximal map
            default = Accelerated(Divided(Pairwise(lam=lam), n_parts))
        return suited_to(problem, default)

    def _warn(self, status: Status, scales: str) -> None:
        passes = counted(self.n_iter_, "pass")
        known, objective = "there is no certificate", self.history_.primal.min()
        if objective < math.inf:
            known = (
                f"the gap is {self.gap_:.3g}, above tol={self.tol:.3g} times the objective {objective:.4g}"
            )
        warnings.warn(
            f"{caller()}: {status.value}: after {passes} {known}; {ADVICE[status]}{scales}.",
            ConvergenceWarning,
            stacklevel=frames_to_user(),
        )

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
    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """%(score)s

        Parameters
        ----------
        %(X)s
        %(y)s
        sample_weight : array of shape (n_samples,), default=None
            How much each example counts; one of weight 2 counts as two that are the same.

        Returns
        -------
        float
        """
        question: Question[Output, Values] = self._structure.ask(self, X)
        return question.score(self._codes(question.problem), y).share(sample_weight)

    def _predict(self, X: object) -> Output:
        question: Question[Output, Values] = self._structure.ask(self, X)
        return question.outputs(self._codes(question.problem))

    def _margins(self, X: object) -> Values:
        question: Question[Output, Values] = self._structure.ask(self, X)
        return question.margins(*confidence.with_margins(self, question.problem))

    def _codes(self, problem: Problem | None) -> IntArray:
        """Return the outputs of highest score of all examples, concatenated; `n_jobs` threads find them."""
        if problem is None:
            return np.zeros(0, dtype=np.int64)
        check_parameters(self, "n_jobs")
        with threads(self.n_jobs):
            return decode_all(problem, self._w)


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


def _is_same(value: object, before: object) -> bool:
    """Return whether a parameter is unchanged: the same object, or an equal one."""
    try:
        return value is before or bool(np.all(value == before))
    except (TypeError, ValueError):  # not comparable, or arrays of other shapes
        return False
