"""Confidence in the parts of a prediction: by how much its score falls if one of them has to differ."""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.encoding.kinds import is_empty
from maxmargin.encoding.labels import Labels
from maxmargin.estimators.estimator import MaxMarginEstimator, Output
from maxmargin.estimators.examples import Data, Examples, check_kind
from maxmargin.estimators.fields import Fields, scalar
from maxmargin.estimators.problems import Problem
from maxmargin.estimators.state import INTERRUPTED, check_parameters, snapshot, transaction
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import OutOfTime, Shares, now
from maxmargin.runtime.threads import threads
from maxmargin.solving.decoding import (
    WithMargins,
    decode_all_with_margins,
    marginals_all,
    part_shapes,
    score_range,
)
from maxmargin.solving.result import Result, Status
from maxmargin.structures.means import has_means
from maxmargin.structures.problem import take
from maxmargin.structures.wrappers import Weighted

Margins = TypeVar("Margins")


class MarginEstimator(Generic[Margins]):
    """Adds `predict_margins` to an estimator, which defines `_margins`, and "margins" among its `_texts`."""

    n_jobs: int | None
    _w: FloatArray

    @snapshot
    def predict_margins(self, X: object) -> Margins:
        """Return the margin of each part of the predictions for %(examples)s.

        The margin of a part is the score of the prediction less the largest score of all outputs that differ
        from it in this part: 0 if another output is as good, infinite if no output differs there. Margins are
        in the units of scores. They are not probabilities, but they rank the parts: parts of small margin are
        wrong most often.

        Parameters
        ----------
        %(X)s

        Returns
        -------
        %(margins)s
        """
        return self._margins(X)

    def _margins(self, X: object) -> Margins:
        """Hook: return the margins of what `predict` returns."""
        raise NotImplementedError

    def _decoded_with_margins(self, problem: Problem) -> WithMargins:
        """Return the outputs of highest score and their margins; `n_jobs` threads find them."""
        check_parameters(self, "n_jobs")
        with threads(self.n_jobs):
            return decode_all_with_margins(problem, self._w)


class ListMarginEstimator(MarginEstimator[list[FloatArray]]):
    """Adds `predict_margins` to an estimator over lists of examples: an array of margins for each."""

    def _margins(self, X: object) -> list[FloatArray]:
        return [] if isinstance(X, Sized) and not len(X) else self._margin_arrays(X)

    def _margin_arrays(self, X: object) -> list[FloatArray]:
        """Hook: return the margins of each of one or more examples."""
        raise NotImplementedError


def split_at(values: FloatArray, offsets: IntArray) -> list[FloatArray]:
    """Return the values of each example, which begin at its offset."""
    return [values[a:b] for a, b in itertools.pairwise(offsets.tolist())]


# The temperature of probabilities: the one under which held-out data are most likely.
#
# At temperature t, an output y has a probability proportional to :math:`e^{\text{score}(y) / t}`. The
# likelihood is that of single parts of outputs (the label of a token, the head of a word) under their
# marginals, as these marginals are what is predicted. On text chunking (CoNLL-2000, four settings of loss
# and C) it led to expected calibration errors from 0.006 to 0.009 on the test set. The likelihood of whole
# outputs led to errors from 0.009 to 0.014.
#
# If all parts are predicted correctly, the likelihood grows as the temperature falls. So one mistake is added
# to the data: a part that does not have its true state. Among many parts, one makes no difference.

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
    """Return the temperature of largest likelihood; one if all scores are equal.

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


# Probabilities of the parts of outputs, at a temperature that is fitted to held-out data.

_FOLDS = 5
_LEAST_TEMPERATURE = float(np.finfo(np.float64).tiny)

Marginals = TypeVar("Marginals")


class MarginalEstimator(MaxMarginEstimator[Data, Output], Generic[Data, Output, Marginals]):
    """Base of the estimators that have probabilities.

    A subclass defines `_unlabelled_problem`, `_labelled` and `_formed`, and may define `_states`. Its
    `_texts` have "parts", what has probabilities, and "marginals", what `predict_marginals` returns.
    """

    probability: bool
    temperature_: float

    _fitted: ClassVar[Fields] = {"temperature_": scalar(float, _LEAST_TEMPERATURE).or_unset()}
    _shared_texts: ClassVar[dict[str, str]] = {
        "temperature": """
            temperature_ : float
                The temperature of `predict_marginals`; only after `calibrate`, or with ``probability=True``.
            """,
    }
    # For errors: what an exact sum over outputs needs.
    _summable: ClassVar[str] = ""

    def _unlabelled_problem(self, X: object) -> Problem:
        """Hook: return the problem of predicting the outputs of examples."""
        raise NotImplementedError

    def _labelled(self, X: object, y: object) -> tuple[Problem, IntArray]:
        """Hook: return that problem, and the true states of all parts; -1 for a state unknown to `fit`."""
        raise NotImplementedError

    def _states(self, examples: Examples[Data]) -> IntArray:
        """Hook: return the true states of the parts of training examples."""
        states: IntArray = examples.data[1]  # type: ignore[assignment]
        return states

    def _formed(self, values: FloatArray, shapes: IntArray) -> Marginals:
        """Hook: return the probabilities of all parts in the form for users."""
        raise NotImplementedError

    @transaction
    def calibrate(self, X: object, y: object) -> Self:
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
        problem, states = self._labelled(X, y)
        self._check_sums(problem)
        if not (states >= 0).any():
            raise ValueError(
                f"{self._owner}: y must have labels that fit has seen, got none; give data like those of fit."
            )
        data = held_out(problem, self._w, part_shapes(problem), states, None)
        with threads(self.n_jobs):
            self.temperature_ = best_temperature([data], time.deadline)
        return self

    @snapshot
    def predict_marginals(self, X: object) -> Marginals:
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
                f"{self._owner}: predict_marginals needs a temperature, got none; call calibrate(X, y) with "
                "data that were not trained on, or fit with probability=True."
            )
        return self._marginals(X)

    def _marginals(self, X: object) -> Marginals:
        check_parameters(self, "n_jobs")
        problem = self._unlabelled_problem(X)
        self._check_sums(problem)
        shapes = part_shapes(problem)
        with threads(self.n_jobs):
            return self._formed(marginals_all(problem, self._w, self.temperature_, shapes), shapes)

    def _check_sums(self, problem: Problem) -> None:
        if not has_means(problem.oracle):
            raise ValueError(f"{self._owner}: probabilities need {self._summable}.")

    def _solve(self, problem: Problem, examples: Examples[Data], start: Result | None) -> Result:
        """Train, discard the temperature of earlier weights, and fit a new one if ``probability`` is true."""
        if hasattr(self, "temperature_"):
            del self.temperature_
        if not self.probability:
            return super()._solve(problem, examples, start)
        self._check_sums(problem)
        if examples.number < 2:
            raise ValueError(
                f"{self._owner}: probability=True needs at least 2 examples, got 1; give more examples, or "
                "leave it out and call calibrate."
            )
        # Training may take half of the time, the folds and the search for the temperature the other half.
        half = _n_folds(examples) + 1
        shares = Shares(self.time_limit, 2 * half)
        self.time_limit = shares.next(half)  # on a draft; the user's limit stays
        result = super()._solve(problem, examples, start)
        if result.status is not Status.INTERRUPTED:
            self._fit_temperature(problem, examples, shares)
        return result

    def _fit_temperature(self, problem: Problem, examples: Examples[Data], shares: Shares) -> None:
        """Fit the temperature by cross-validation; an interrupt leaves the estimator without one."""
        try:
            data = self._held_out_folds(problem, examples, shares)
            with threads(self.n_jobs):
                self.temperature_ = best_temperature(data, shares.deadline)
        except KeyboardInterrupt:
            text = "interrupted while the temperature was fitted; the estimator has none, but is fitted"
            setattr(self, INTERRUPTED, f"{self._owner}: {text}.")

    def _held_out_folds(self, problem: Problem, examples: Examples[Data], shares: Shares) -> list[HeldOut]:
        """Return the examples of each fold with a model of the other folds.

        All folds share the encoding of all examples, so that they compile nothing and lack no label.
        """
        from sklearn.model_selection import KFold  # takes a third of a second to import

        states, weights, shapes = self._states(examples), examples.weights, part_shapes(problem)
        by_example = np.split(states, np.cumsum(shapes[:-1, 0]))
        folds = KFold(_n_folds(examples), shuffle=True, random_state=self.random_state)
        data = []
        for others, fold in folds.split(shapes):
            self.time_limit = shares.next()
            w = self._fold_weights(take(problem, others), None if weights is None else weights[others])
            of_fold = None if weights is None else weights[fold]
            true = np.concatenate([by_example[i] for i in fold])
            data.append(held_out(take(problem, fold), w, shapes[fold], true, of_fold))
        return data

    def _fold_weights(self, problem: Problem, weights: FloatArray | None) -> FloatArray:
        """Return the weights learnt from some of the training examples, as `_solve` learns from all."""
        n, mean = len(part_shapes(problem)), 1.0 if weights is None else float(weights.mean())
        weighted = problem if weights is None else Weighted(problem, weights)
        result = self._run(weighted, 1.0 / (self.C_ * n), mean, None)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result.w


class ListMarginalEstimator(MarginalEstimator[Data, Output, list[FloatArray]]):
    """Base of the estimators over lists of examples: an array of probabilities for each."""

    def _marginals(self, X: object) -> list[FloatArray]:
        """Return an array for each example; that of an example without parts has no rows."""
        if not isinstance(X, Iterable):
            return super()._marginals(X)  # its error says what X must be
        examples = [list(x) if isinstance(x, Iterator) else x for x in X]
        X = examples if isinstance(X, Iterator) or any(isinstance(x, Iterator) for x in X) else X
        present = [x for x in examples if not self._has_no_parts(x)]
        if len(present) == len(examples):
            return super()._marginals(X) if present else []
        found = super()._marginals(present) if present else []
        rest, none = iter(found), np.zeros((0, self._n_states()))
        return [none if self._has_no_parts(x) else next(rest) for x in examples]

    def _has_no_parts(self, x: object) -> bool:
        """Hook: return whether an example is empty."""
        return is_empty(x)

    def _n_states(self) -> int:
        """Hook: return the number of states of a part, as an example without parts has them."""
        raise NotImplementedError

    def _formed(self, values: FloatArray, shapes: IntArray) -> list[FloatArray]:
        stops = np.cumsum(shapes.prod(axis=1))
        parts = zip(np.split(values, stops[:-1]), shapes.tolist(), strict=True)
        return [part.reshape(shape) for part, shape in parts]


def _n_folds(examples: Examples[Data]) -> int:
    return min(_FOLDS, examples.number)


def _has_probabilities(estimator: MarginalEstimator[Data, Output, FloatArray]) -> bool:
    """Return whether an estimator has, or will have, a temperature; raise as scikit-learn's `SVC` does."""
    if not (estimator.probability or hasattr(estimator, "temperature_")):
        raise AttributeError(
            f"{type(estimator).__name__}: predict_proba is not available when probability=False; call "
            "calibrate(X, y) with data that were not trained on, or fit with probability=True."
        )
    return True


class TableMarginalEstimator(MarginalEstimator[Data, Output, FloatArray]):
    """Base of the estimators over the rows of a table, with scikit-learn's `predict_proba`."""

    @available_if(_has_probabilities)
    def predict_proba(self, X: object) -> FloatArray:
        """Return what `predict_marginals` returns.

        Available with ``probability=True``, or after `calibrate`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        array
        """
        return self.predict_marginals(X)


def known_states(codes: IntArray, classes: Labels, known: Labels, owner: str) -> IntArray:
    """Return the numbers of the labels ``classes[codes]`` among the known ones, in order; -1 for others."""
    check_kind(classes[0], known, owner)
    places = np.minimum(np.searchsorted(known, classes), len(known) - 1)
    found: IntArray = np.where(known[places] == classes, places, -1)[codes]
    return found
