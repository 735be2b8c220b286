r"""The temperature of probabilities: the one under which held-out data are most likely.

At temperature t, an output y has a probability proportional to :math:`e^{\text{score}(y) / t}`. The
likelihood is that of single parts of outputs (the label of a token, the head of a word) under their
marginals, as these marginals are what is predicted. On text chunking (CoNLL-2000, four settings of loss and
C) it led to expected calibration errors from 0.006 to 0.009 on the test set. The likelihood of whole outputs
led to errors from 0.009 to 0.014.

If all parts are predicted correctly, the likelihood grows as the temperature falls. So one mistake is added
to the data: a part that does not have its true state. Among many parts, one makes no difference.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.estimators._problems import Problem
from maxmargin.limits import OutOfTime, now
from maxmargin.marginals import marginals_all, score_range

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
