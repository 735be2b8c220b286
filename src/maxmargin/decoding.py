"""Predictions for all examples of a problem."""

from typing import Any

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling.threads import n_threads, run_all
from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import predictions
from maxmargin.problems._checked import checked_weights
from maxmargin.problems._protocol import output_size, sizes


def decode_all(problem: Any, w: FloatArray) -> IntArray:
    """Return the outputs of best score of all examples, one after another."""
    n, w = sizes(problem).examples, checked_weights(problem, w)
    stops = np.cumsum([0, *(output_size(problem, i) for i in range(n))])
    out = np.empty(stops[-1], dtype=np.int64)
    shares = min(n_threads(), n) if predictions.mode(problem) != "interpreted" else 1
    bounds = np.linspace(0, n, shares + 1).astype(np.int64)

    def decode(share: int) -> None:
        first, stop = int(bounds[share]), int(bounds[share + 1])
        predictions(problem, w, first, stop, out[stops[first] : stops[stop]], new_scratch(problem))

    run_all(decode, range(shares))
    return out
