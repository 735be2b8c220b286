r"""Weights of examples: how much each counts in the mean of hinges.

With weights :math:`c_i > 0` the objective is

.. math:: \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i c_i \max_y H_i(y; w), \qquad
          c_i H_i(y; w) = c_i L_i(y) - \langle w, c_i \psi_i(y) \rangle ,

which is that of losses :math:`c_i L_i` and differences :math:`c_i \psi_i`. The best output of an example is
the same, and so are its scores and its feature map: the oracle and all that steps ask of the features are
those of the problem without weights.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, aligned_zeros
from maxmargin.problems import _protocol as protocol
from maxmargin.wording import described


class _Weighted(NamedTuple):
    inner: Any
    weights: FloatArray


class Weighted(_Weighted):
    """A problem whose examples count more or less than one.

    Parameters
    ----------
    inner : problem
        Any, also one with its slacks rescaled, or a user's own.
    weights : array of shape (n,)
        What the hinge of each example is multiplied by, > 0: examples that count nothing are to be left out.
    """

    __slots__ = ()

    def __new__(cls, inner: Any, weights: Any) -> "Weighted":
        missing = [f.__name__ for f in protocol.REQUIRED if not protocol.provides(inner, f)]
        if missing:
            raise TypeError(
                f"Weighted: inner must be a problem, got {described(inner)}, which does not define "
                f"{', '.join(missing)}."
            )
        return super().__new__(cls, inner, _checked(weights, protocol.sizes(inner).examples))

    def unpack(self, w: FloatArray) -> Any:
        """Return the weights in the shapes of the problem."""
        return self.inner.unpack(w) if hasattr(self.inner, "unpack") else (w,)


def _checked(weights: Any, n: int) -> FloatArray:
    """Return the weights as an array, if they are n positive numbers."""
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,):
        raise ValueError(f"Weighted: weights must be {n} numbers, one per example, got {described(weights)}.")
    bad = np.flatnonzero(~((array > 0.0) & (array < np.inf)))
    if len(bad):
        raise ValueError(
            f"Weighted: weights must be finite and > 0, got {array[bad[0]]} for example {bad[0]}; leave "
            "examples out that count nothing."
        )
    return array


class WeightedWork(NamedTuple):
    """Work arrays: of the problem, and the scores that its expectation oracle is given."""

    inner: Any
    theta: FloatArray


@protocol.sizes.register(Weighted)
def weighted_sizes(problem):
    return protocol.sizes(problem.inner)


@protocol.workspace.register(Weighted)
def weighted_workspace(problem):
    has_means = protocol.provides(problem.inner, protocol.expectation)
    scores = protocol.sizes(problem).statistics if has_means else 0
    return WeightedWork(protocol.workspace(problem.inner), aligned_zeros(scores))


@protocol.scores_at.register(Weighted)
def weighted_scores_at(problem, w):
    return protocol.scores_at(problem.inner, w)


@protocol.is_exact.register(Weighted)
def weighted_is_exact(problem):
    return protocol.is_exact(problem.inner)


@protocol.is_bounded.register(Weighted)
def weighted_is_bounded(problem: Weighted) -> bool:
    return bool(protocol.is_bounded(problem.inner))


@protocol.shortfall.register(Weighted)
def weighted_shortfall(problem, i, work):
    return problem.weights[i] * protocol.shortfall(problem.inner, i, work.inner)


@protocol.is_projected.register(Weighted)
def weighted_is_projected(problem: Weighted) -> bool:
    return bool(protocol.is_projected(problem.inner))


@protocol.image.register(Weighted)
def weighted_image(problem: Weighted, w: FloatArray) -> FloatArray:
    v: FloatArray = protocol.image(problem.inner, w)
    return v


@protocol.projected.register(Weighted)
def weighted_projected(problem: Weighted, v: FloatArray) -> FloatArray:
    w: FloatArray = protocol.projected(problem.inner, v)
    return w


@protocol.settle.register(Weighted)
def weighted_settle(problem: Weighted, v: FloatArray, w: FloatArray) -> None:
    protocol.settle(problem.inner, v, w)


@protocol.output_size.register(Weighted)
def weighted_output_size(problem, i):
    return protocol.output_size(problem.inner, i)


@protocol.statistics_size.register(Weighted)
def weighted_statistics_size(problem, i):
    return protocol.statistics_size(problem.inner, i)


@protocol.score.register(Weighted)
def weighted_score(problem, i, w, theta):
    protocol.score(problem.inner, i, w, theta)


@protocol.argmax.register(Weighted)
def weighted_argmax(problem, i, theta, y, work):
    protocol.argmax(problem.inner, i, theta, y, work.inner)


@protocol.decode.register(Weighted)
def weighted_decode(problem, i, theta, y, work):
    protocol.decode(problem.inner, i, theta, y, work.inner)


@protocol.loss.register(Weighted)
def weighted_loss(problem, i, y):
    return problem.weights[i] * protocol.loss(problem.inner, i, y)


@protocol.psi.register(Weighted)
def weighted_psi(problem, i, y, index, value):
    count, scale = protocol.psi(problem.inner, i, y, index, value), problem.weights[i]
    for c in range(count):
        value[c] *= scale
    return count


@protocol.gram.register(Weighted)
def weighted_gram(problem, i, move, image, work):
    protocol.gram(problem.inner, i, move, image, work.inner)


@protocol.norm2.register(Weighted)
def weighted_norm2(problem, i, move, image, work):
    return protocol.norm2(problem.inner, i, move, image, work.inner)


@protocol.push.register(Weighted)
def weighted_push(problem, i, move, scale, w, work):
    protocol.push(problem.inner, i, move, scale, w, work.inner)


@protocol.expectation.register(Weighted)
def weighted_expectation(problem, i, theta, share, z, work):
    """The margins are the problem's own at c times the scores and c times the share of losses."""
    c, size = problem.weights[i], protocol.statistics_size(problem.inner, i)
    for p in range(size):
        work.theta[p] = c * theta[p]
    log_partition, loss = protocol.expectation(problem.inner, i, work.theta, c * share, z, work.inner)
    for p in range(size):
        z[p] *= c
    return log_partition, c * loss
