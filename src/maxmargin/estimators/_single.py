"""Predictions for one example, and for examples that are empty."""

from collections.abc import Iterable, Sized
from typing import Protocol

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.encoding.kinds import is_empty
from maxmargin.estimators._state import snapshot


class _Predicts(Protocol):
    """An estimator."""

    def _predict(self, X: object) -> Iterable[object]: ...


class SinglePrediction:
    """Base of the estimators whose examples are given in lists: adds `predict_single`.

    The "example" of `_texts` says what one is called.
    """

    @snapshot
    def predict_single(self: _Predicts, x: object) -> object:
        """Return the output of highest score for one %(example)s.

        Parameters
        ----------
        x : %(example)s
            In the form that `predict` takes in a list.

        Returns
        -------
        object
            The item that `predict` returns for it.
        """
        return next(iter(self._predict([x])))


def is_none(X: object) -> bool:
    """Return whether X is a list, or another collection, without examples."""
    return isinstance(X, Sized) and is_empty(X)


def present_weights(weights: FloatArray | None, lengths: IntArray) -> FloatArray | None:
    """Return the weights of the examples that are not empty."""
    return None if weights is None else weights[lengths > 0]
