"""Predictions for all examples of a problem, their margins, and the best outputs that differ from them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import can_compile, kernel
from maxmargin.compiling.threads import n_threads, run_all
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import predictions
from maxmargin.problems.feature_map import score, score_buffer, statistics_size
from maxmargin.problems.margins import decode_with_margins, margin_workspace, n_parts
from maxmargin.problems.oracle import oracle_workspace, output_size
from maxmargin.problems.oracles._alternatives import decode_differing
from maxmargin.problems.problem import AnyProblem, checked_weights, sizes


class WithMargins(NamedTuple):
    """Outputs and the margins of their parts, one example after another.

    Attributes
    ----------
    outputs, margins : arrays
    """

    outputs: IntArray
    margins: FloatArray


def decode_all(problem: AnyProblem, w: FloatArray) -> IntArray:
    """Return the outputs of largest score for all examples, one after another."""
    w, stops = checked_weights(problem, w), _stops(problem, output_size)
    out = np.empty(stops[-1], dtype=np.int64)

    def decode(first: int, stop: int) -> None:
        predictions(problem, w, first, stop, out[stops[first] : stops[stop]], new_scratch(problem))

    share_out(problem, decode)
    return out


def decode_all_with_margins(problem: AnyProblem, w: FloatArray) -> WithMargins:
    """Return the outputs of largest score for all examples, and the margins of their parts."""
    w, stops, ends = checked_weights(problem, w), _stops(problem, output_size), _stops(problem, n_parts)
    found = WithMargins(np.empty(stops[-1], dtype=np.int64), np.empty(ends[-1]))

    def decode(first: int, stop: int) -> None:
        share = WithMargins(
            found.outputs[stops[first] : stops[stop]], found.margins[ends[first] : ends[stop]]
        )
        y, work = np.zeros(sizes(problem).output, dtype=np.int64), margin_workspace(problem.oracle)
        _predictions_with_margins(problem, w, first, stop, share, score_buffer(problem.map, None), y, work)

    share_out(problem, decode)
    return found


@kernel
def _predictions_with_margins(problem, w, first, stop, out, theta, y, work):
    """Decode the examples first, ..., stop - 1; write outputs and margins one after another to ``out``."""
    end = begin = 0
    for i in range(first, stop):
        score(problem.map, i, w, theta)
        margins = out.margins[begin : begin + n_parts(problem.oracle, i)]
        begin += margins.shape[0]
        decode_with_margins(problem.oracle, i, theta[: statistics_size(problem.map, i)], y, margins, work)
        for t in range(output_size(problem.oracle, i)):
            out.outputs[end] = y[t]
            end += 1


class Decoded:
    """The output of largest score of a problem's only example, and the next best outputs.

    Parameters
    ----------
    problem : Problem
    w : array

    Attributes
    ----------
    output, margins : arrays
        The output, and the margin of each of its parts.
    """

    def __init__(self, problem: AnyProblem, w: FloatArray) -> None:
        self._oracle, theta = problem.oracle, score_buffer(problem.map, None)
        score(problem.map, 0, checked_weights(problem, w), theta)
        self._theta = theta[: statistics_size(problem.map, 0)]
        self.output = np.zeros(output_size(self._oracle, 0), dtype=np.int64)
        self.margins = np.zeros(n_parts(self._oracle, 0))
        work = margin_workspace(self._oracle)
        decode_with_margins(self._oracle, 0, self._theta, self.output, self.margins, work)

    def other(self, p: int) -> IntArray:
        """Return the best output that differs in part p, whose margin is finite.

        An approximate oracle may return one that does not differ.
        """
        margin, work = float(self.margins[p]), oracle_workspace(self._oracle)
        found: IntArray = decode_differing(self._oracle, 0, self._theta, self.output, p, margin, work)
        return found


def _stops(problem: AnyProblem, size: Callable[[object, int], int]) -> IntArray:
    """Return where the entries of each example begin, and where the last end."""
    return np.cumsum([0, *(size(problem.oracle, i) for i in range(sizes(problem).examples))])


def share_out(problem: AnyProblem, run: Callable[[int, int], None]) -> None:
    """Call ``run(first, stop)`` for ranges of the examples, one for each thread."""
    n = sizes(problem).examples
    shares = min(n_threads(), n) if can_compile(problem) else 1
    bounds = np.linspace(0, n, shares + 1).astype(np.int64).tolist()
    run_all(lambda share: run(bounds[share], bounds[share + 1]), range(shares))
