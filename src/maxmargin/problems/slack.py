r"""Slack rescaling (Tsochantaridis et al. 2005): all margins are one, and a violation costs the loss.

The paper's definition: :math:`\psi_i(y)` is replaced by :math:`L_i(y) \, \psi_i(y)`, so that

.. math:: H_i(y; w) = L_i(y) \left( 1 - \langle w, \psi_i(y) \rangle \right) .

An output whose loss is small need not be far behind the truth, but no output must be further behind for
its loss. All else, methods and certificates, is as before; it is the max oracle that is another one.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import generic
from maxmargin.problems import _protocol as protocol
from maxmargin.problems.multiclass import Multiclass
from maxmargin.wording import described


class _SlackRescaled(NamedTuple):
    inner: Any


class SlackRescaled(_SlackRescaled):
    """A problem with its slacks rescaled instead of its margins.

    Parameters
    ----------
    inner : Multiclass; or Chain, SecondOrderChain, Segments or Graph without cycles, with a Hamming loss
        The problem; its oracle is exact for slack rescaling as well.
    """

    __slots__ = ()

    def __new__(cls, inner: Any) -> "SlackRescaled":
        check_rescalable(inner, "SlackRescaled")
        return super().__new__(cls, inner)

    def unpack(self, w: FloatArray) -> Any:
        """Return the weights in the shapes of the problem."""
        return self.inner.unpack(w)


class SlackWork(NamedTuple):
    """Work space: of the problem, and of its other oracle."""

    inner: Any
    own: Any


@generic
def check_rescalable(problem: Any, owner: str) -> None:
    """Raise, in the name of ``owner``, unless there is an oracle for the problem with its slacks rescaled."""
    raise TypeError(
        f"{owner}: inner must be a Multiclass, or a Chain, SecondOrderChain, Segments or Graph with a "
        f"Hamming loss, got {described(problem)}."
    )


def check_counts(cost: FloatArray, owner: str) -> None:
    """Raise unless the loss is a number of wrong labels, but for a factor."""
    n_labels = cost.shape[0]
    if not np.array_equal(cost[:, :n_labels], 1.0 - np.eye(n_labels)):
        raise ValueError(
            f"{owner}: slack rescaling needs the loss 'normalized_hamming' or 'hamming', got a cost matrix; "
            "count wrong labels alike, or rescale margins."
        )


@generic
def slack_work(problem: Any) -> Any:
    """Return the work space of `slack_argmax`."""
    return np.empty(0)


@generic
def slack_argmax(problem, i, theta, y, work):
    r"""Write :math:`\arg\max_y L_i(y) (1 + \langle \theta, s_i(y) - s_i(y_i) \rangle)` to ``y``.

    ``work`` is a `SlackWork`.
    """
    raise NotImplementedError


@check_rescalable.register(Multiclass)
def multiclass_check_rescalable(problem: Multiclass, owner: str) -> None:
    pass


@slack_argmax.register(Multiclass)
def multiclass_slack_argmax(problem, i, theta, y, work):
    truth = problem.labels[i]
    best, value = truth, 0.0
    for k in range(problem.n_labels):
        candidate = problem.cost[truth, k] * (1.0 + theta[k] - theta[truth])
        if k != truth and not candidate <= value:  # also if it is not a number: steps will find out
            best, value = k, candidate
    y[0] = best


@protocol.sizes.register(SlackRescaled)
def slack_rescaled_sizes(problem):
    return protocol.sizes(problem.inner)


@protocol.workspace.register(SlackRescaled)
def slack_rescaled_workspace(problem):
    return SlackWork(protocol.workspace(problem.inner), slack_work(problem.inner))


@protocol.output_size.register(SlackRescaled)
def slack_rescaled_output_size(problem, i):
    return protocol.output_size(problem.inner, i)


@protocol.foresee.register(SlackRescaled)
def slack_rescaled_foresee(problem, i):
    protocol.foresee(problem.inner, i)


@protocol.statistics_size.register(SlackRescaled)
def slack_rescaled_statistics_size(problem, i):
    return protocol.statistics_size(problem.inner, i)


@protocol.score.register(SlackRescaled)
def slack_rescaled_score(problem, i, w, theta):
    protocol.score(problem.inner, i, w, theta)


@protocol.argmax.register(SlackRescaled)
def slack_rescaled_argmax(problem, i, theta, y, work):
    slack_argmax(problem.inner, i, theta, y, work)


@protocol.decode.register(SlackRescaled)
def slack_rescaled_decode(problem, i, theta, y, work):
    protocol.decode(problem.inner, i, theta, y, work.inner)


@protocol.loss.register(SlackRescaled)
def slack_rescaled_loss(problem, i, y):
    return protocol.loss(problem.inner, i, y)


@protocol.psi.register(SlackRescaled)
def slack_rescaled_psi(problem, i, y, index, value):
    scale = protocol.loss(problem.inner, i, y)
    if scale == 0.0:
        return 0
    count = protocol.psi(problem.inner, i, y, index, value)
    for c in range(count):
        value[c] *= scale
    return count


@protocol.gram.register(SlackRescaled)
def slack_rescaled_gram(problem, i, move, image, work):
    protocol.gram(problem.inner, i, move, image, work.inner)


@protocol.norm2.register(SlackRescaled)
def slack_rescaled_norm2(problem, i, move, image, work):
    return protocol.norm2(problem.inner, i, move, image, work.inner)


@protocol.push.register(SlackRescaled)
def slack_rescaled_push(problem, i, move, scale, w, work):
    protocol.push(problem.inner, i, move, scale, w, work.inner)
