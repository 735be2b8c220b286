"""Probabilities of the parts of outputs, at a temperature that is fitted to held-out data."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.threads import threads
from maxmargin.encoding.kinds import is_empty
from maxmargin.encoding.labels import Labels
from maxmargin.estimators._base import MaxMarginEstimator, Output
from maxmargin.estimators._calibration import HeldOut, best_temperature, held_out
from maxmargin.estimators._examples import Data, Examples
from maxmargin.estimators._fields import Fields, scalar
from maxmargin.estimators._problems import Problem, has_means
from maxmargin.estimators._scores import check_kind
from maxmargin.estimators._state import INTERRUPTED, check_parameters, snapshot, transaction
from maxmargin.limits import Shares
from maxmargin.marginals import marginals_all, part_shapes
from maxmargin.problems import Weighted, take
from maxmargin.result import Result, Status

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
