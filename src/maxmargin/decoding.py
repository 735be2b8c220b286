"""Predictions for all examples of a problem."""

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import can_compile
from maxmargin.compiling.threads import n_threads, run_all
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import predictions
from maxmargin.problems.oracle import output_size
from maxmargin.problems.problem import AnyProblem, checked_weights, sizes


def decode_all(problem: AnyProblem, w: FloatArray) -> IntArray:
    """Return the outputs of largest score for all examples, one after another."""
    n, w = sizes(problem).examples, checked_weights(problem, w)
    stops = np.cumsum([0, *(output_size(problem.oracle, i) for i in range(n))])
    out = np.empty(stops[-1], dtype=np.int64)
    shares = min(n_threads(), n) if can_compile(problem) else 1
    bounds = np.linspace(0, n, shares + 1).astype(np.int64)

    def decode(share: int) -> None:
        first, stop = int(bounds[share]), int(bounds[share + 1])
        predictions(problem, w, first, stop, out[stops[first] : stops[stop]], new_scratch(problem))

    run_all(decode, range(shares))
    return out
