"""Confidence in the parts of a prediction: their margins, and their probabilities at a temperature.

The margin of a part is by how much the score of the prediction falls if the part has to differ. Estimators
name these functions among their methods.
"""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.encoding.labels import Labels
from maxmargin.estimators.examples import Data, Examples, check_kind, is_none
from maxmargin.estimators.state import INTERRUPTED, check_parameters, snapshot, transaction
from maxmargin.estimators.structure import AnyEstimator, Output, Problem, Values
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import OutOfTime, Shares, now
from maxmargin.runtime.threads import threads
from maxmargin.runtime.wording import caller
from maxmargin.solving.decoding import (
    WithMargins,
    decode_all_with_margins,
    marginals_all,
    part_shapes,
    score_range,
)
from maxmargin.solving.result import Result, Status
from maxmargin.structures.problem import take
from maxmargin.structures.questions import has_means
from maxmargin.structures.wrappers import Weighted

if TYPE_CHECKING:
    from maxmargin.estimators.estimator import MaxMarginEstimator

_Estimator = TypeVar("_Estimator", bound=AnyEstimator)


@snapshot
def predict_margins(self: "MaxMarginEstimator[Data, Output, Values]", X: object) -> Values:
    """Return the margin of each part of the predictions for %(examples)s.

    The margin of a part is the score of the prediction less the largest score of all outputs that differ from
    it in this part: 0 if another output is as good, infinite if no output differs there. Margins are in the
    units of scores. They are not probabilities, but they rank the parts: parts of small margin are wrong most
    often.

    Parameters
    ----------
    %(X)s

    Returns
    -------
    %(margins)s
    """
    if self._structure.in_lists and is_none(X):
        return cast("Values", [])
    return self._margins(X)


def with_margins(model: AnyEstimator, problem: Problem | None) -> WithMargins:
    """Return the outputs of highest score and their margins; `n_jobs` threads find them."""
    if problem is None:
        return WithMargins(np.zeros(0, dtype=np.int64), np.zeros(0))
    check_parameters(model, "n_jobs")
    with threads(model.n_jobs):
        return decode_all_with_margins(problem, model._w)


def split_at(values: FloatArray, offsets: IntArray) -> list[FloatArray]:
    """Return the values of each example, which begin at its offset."""
    return [values[a:b] for a, b in itertools.pairwise(offsets.tolist())]


# Temperatures to choose from, in units of the largest difference of scores. At the lowest, all probabilities
# but those of ties are zero or one; at the highest, all states are equally likely.
_LOWEST, _HIGHEST = 1e-5, 1e1
# Tolerance of the logarithm of the temperature.
_ACCURACY = 1e-3
_LEAST = np.finfo(np.float64).tiny


class HeldOut(NamedTuple):
    """Examples with their true states, and a model that was not trained on them.

    Attributes
    ----------
    problem : Problem
    w : array
        The weights of the model.
    shapes : array of shape (n, 2)
        Numbers of parts and of states; see `part_shapes`.
    places : array of ints
        Indices of the true states among the states of all parts, for the parts whose state is known.
    weights : array
        How much each of these parts counts.
    """

    problem: Problem
    w: FloatArray
    shapes: IntArray
    places: IntArray
    weights: FloatArray


def held_out(
    problem: Problem, w: FloatArray, shapes: IntArray, states: IntArray, weights: FloatArray | None
) -> HeldOut:
    """Return examples with the true ``states`` of their parts, -1 if not known, and weights of examples."""
    n_parts, known = shapes[:, 0], states >= 0
    n_states = np.repeat(shapes[:, 1], n_parts)
    places = np.cumsum(n_states) - n_states + states
    counts = np.ones(len(states)) if weights is None else np.repeat(weights, n_parts)
    return HeldOut(problem, w, shapes, places[known], counts[known])


def best_temperature(data: Sequence[HeldOut], deadline: float = np.inf) -> float:
    r"""Return the temperature of largest likelihood; one if all scores are equal.

    At temperature t, an output y has a probability proportional to :math:`e^{\text{score}(y) / t}`. The
    likelihood is that of single parts of outputs (the label of a token, the head of a word) under their
    marginals, as these marginals are what is predicted. On text chunking (CoNLL-2000, four settings of loss
    and C) it led to expected calibration errors from 0.006 to 0.009 on the test set. The likelihood of whole
    outputs led to errors from 0.009 to 0.014.

    If all parts are predicted correctly, the likelihood grows as the temperature falls. So one mistake is
    added to the data: a part that does not have its true state. Among many parts, one makes no difference.

    After the deadline, which is in the units of `limits.now`, return the best temperature tried so far.
    """
    largest = max(score_range(part.problem, part.w) for part in data)
    if not largest > 0.0:
        return 1.0
    tried = dict[float, float]()

    def loss(log_t: float) -> float:
        if tried and now() >= deadline:
            raise OutOfTime
        tried[log_t] = _loss(data, float(np.exp(log_t)))
        return tried[log_t]

    bounds, options = np.log([_LOWEST * largest, _HIGHEST * largest]), {"xatol": _ACCURACY}
    try:
        best = minimize_scalar(loss, bounds=bounds, method="bounded", options=options).x
    except OutOfTime:
        best = min(tried, key=tried.__getitem__)
    return float(np.exp(best))


def _loss(data: Sequence[HeldOut], temperature: float) -> float:
    """Return the negative mean log-likelihood of all parts and of one mistake."""
    p = np.concatenate(
        [marginals_all(part.problem, part.w, temperature, part.shapes)[part.places] for part in data]
    )
    weights = np.concatenate([part.weights for part in data])
    right, wrong = (np.log(np.maximum(share, _LEAST)) for share in (p, 1.0 - p))
    total = weights.sum()
    return float(-(weights @ right + weights @ wrong / total) / (total + 1.0))


_FOLDS = 5


@transaction
def calibrate(self: _Estimator, X: object, y: object) -> _Estimator:
    """Fit the temperature of `predict_marginals` to %(examples)s that were not trained on.

    This is the temperature that maximises the likelihood of %(parts)s, each by itself. Parts whose state
    `fit` has not seen are left out. After ``time_limit`` seconds the search for it ends with the best one
    so far.

    Parameters
    ----------
    %(X)s
    %(y)s

    Returns
    -------
    self
        The estimator, with the attribute ``temperature_``. Its predictions do not change.
    """
    check_is_fitted(self)
    time = Shares(self.time_limit, 1)
    question = self._structure.ask(self, X)
    problem, states = question.problem, question.states(y)
    check_sums(self, problem)
    if problem is None or not (states >= 0).any():
        raise ValueError("y must have labels that fit has seen, got none; give data like those of fit.")
    data = held_out(problem, self._w, part_shapes(problem), states, None)
    with threads(self.n_jobs):
        self.temperature_ = best_temperature([data], time.deadline)
    return self


@snapshot
def predict_marginals(self: "MaxMarginEstimator[Data, Output, Values]", X: object) -> Values:
    r"""Return the probabilities of %(parts)s.

    They are the marginals of a distribution over all outputs,

    .. math:: p(y) \propto e^{\text{score}(y) / t} ,

    where t is ``temperature_``, which `calibrate` fits, or `fit` with ``probability=True``. Sums over
    outputs are exact. The most likely state of a part need not be its state in the best output, which
    `predict` returns.

    Parameters
    ----------
    %(X)s

    Returns
    -------
    %(marginals)s
    """
    if not hasattr(self, "temperature_"):
        raise NotFittedError(
            f"{caller()}: predict_marginals needs a temperature, got none; call calibrate(X, y) with "
            "data that were not trained on, or fit with probability=True."
        )
    if self._structure.in_lists and is_none(X):
        return cast("Values", [])
    check_parameters(self, "n_jobs")
    question = self._structure.ask(self, X)
    problem = question.problem
    check_sums(self, problem)
    values, shapes = np.zeros(0), np.zeros((0, 2), dtype=np.int64)
    if problem is not None:
        shapes = part_shapes(problem)
        with threads(self.n_jobs):
            values = marginals_all(problem, self._w, self.temperature_, shapes)
    found: Values = question.marginals(values, shapes)
    return found


def list_marginals(
    values: FloatArray, shapes: IntArray, lengths: IntArray, n_states: int
) -> list[FloatArray]:
    """Return an array for each example, made from all probabilities; some examples may have no parts."""
    stops = np.cumsum(shapes.prod(axis=1))
    parts = zip(np.split(values, stops[:-1]), shapes.tolist(), strict=False)
    rest, none = (part.reshape(shape) for part, shape in parts), np.zeros((0, n_states))
    return [next(rest) if length else none for length in lengths.tolist()]


def check_sums(model: AnyEstimator, problem: Problem | None) -> None:
    """Raise unless sums over all outputs can be found."""
    if problem is not None and not has_means(problem.oracle):
        raise ValueError(f"probabilities need {model._structure.summable}.")


def with_temperature(
    model: AnyEstimator, problem: Problem, examples: Examples[Data], start: Result | None
) -> Result:
    """Train, and fit the temperature by cross-validation."""
    check_sums(model, problem)
    if examples.number < 2:
        raise ValueError(
            "probability=True needs at least 2 examples, got 1; give more examples, or "
            "leave it out and call calibrate."
        )
    # Training may take half of the time, the folds and the search for the temperature the other half.
    half = _n_folds(examples) + 1
    shares = Shares(model.time_limit, 2 * half)
    model.time_limit = shares.next(half)  # on a draft; the user's limit stays
    result = model._certified(problem, examples, start)
    if result.status is not Status.INTERRUPTED:
        _fit_temperature(model, problem, examples, shares)
    return result


def _fit_temperature(model: AnyEstimator, problem: Problem, examples: Examples[Data], shares: Shares) -> None:
    """Fit the temperature by cross-validation; an interrupt leaves the estimator without one."""
    try:
        data = _held_out_folds(model, problem, examples, shares)
        with threads(model.n_jobs):
            model.temperature_ = best_temperature(data, shares.deadline)
    except KeyboardInterrupt:
        text = "interrupted while the temperature was fitted; the estimator has none, but is fitted"
        setattr(model, INTERRUPTED, f"{caller()}: {text}.")


def _held_out_folds(
    model: AnyEstimator, problem: Problem, examples: Examples[Data], shares: Shares
) -> list[HeldOut]:
    """Return the examples of each fold with a model of the other folds.

    All folds share the encoding of all examples, so that they compile nothing and lack no label.
    """
    from sklearn.model_selection import KFold  # takes a third of a second to import

    states, weights, shapes = examples.states, examples.weights, part_shapes(problem)
    by_example = np.split(states, np.cumsum(shapes[:-1, 0]))
    folds = KFold(_n_folds(examples), shuffle=True, random_state=model.random_state)
    data = []
    for others, fold in folds.split(shapes):
        model.time_limit = shares.next()
        w = _fold_weights(model, take(problem, others), None if weights is None else weights[others])
        of_fold = None if weights is None else weights[fold]
        true = np.concatenate([by_example[i] for i in fold])
        data.append(held_out(take(problem, fold), w, shapes[fold], true, of_fold))
    return data


def _fold_weights(model: AnyEstimator, problem: Problem, weights: FloatArray | None) -> FloatArray:
    """Return the weights learnt from some of the training examples, as `_solve` learns from all."""
    n, mean = len(part_shapes(problem)), 1.0 if weights is None else float(weights.mean())
    weighted = problem if weights is None else Weighted(problem, weights)
    result = model._run(weighted, model._lam(n), mean, None)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result.w


def _n_folds(examples: Examples[Data]) -> int:
    return min(_FOLDS, examples.number)


def _has_probabilities(model: AnyEstimator) -> bool:
    """Return whether a model has, or will have, a temperature; raise as scikit-learn's `SVC` does."""
    if not (model.probability or hasattr(model, "temperature_")):
        raise AttributeError(
            f"{type(model).__name__}: predict_proba is not available when probability=False; call "
            "calibrate(X, y) with data that were not trained on, or fit with probability=True."
        )
    return True


@available_if(_has_probabilities)
def predict_proba(self: AnyEstimator, X: object) -> FloatArray:
    """Return what `predict_marginals` returns.

    Available with ``probability=True``, or after `calibrate`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)

    Returns
    -------
    array
    """
    return predict_marginals(self, X)


def known_states(codes: IntArray, classes: Labels, known: Labels) -> IntArray:
    """Return the numbers of the labels ``classes[codes]`` among the known ones, in order; -1 for others."""
    check_kind(classes[0], known)
    places = np.minimum(np.searchsorted(known, classes), len(known) - 1)
    found: IntArray = np.where(known[places] == classes, places, -1)[codes]
    return found
