"""Confidence in the parts of a prediction: by how much its score falls if one of them has to differ."""

import itertools
from collections.abc import Sized
from typing import Generic, TypeVar

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.threads import threads
from maxmargin.decoding import WithMargins, decode_all_with_margins
from maxmargin.estimators._problems import Problem
from maxmargin.estimators._state import check_parameters, snapshot

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
