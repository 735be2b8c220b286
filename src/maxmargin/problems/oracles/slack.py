r"""Slack rescaling (Tsochantaridis et al. 2005): all margins are one, and violations are scaled by the loss.

The paper replaces :math:`\psi_i(y)` by :math:`L_i(y) \, \psi_i(y)`, so that

.. math:: H_i(y; w) = L_i(y) \left( 1 - \langle w, \psi_i(y) \rangle \right) .

All outputs need the same margin, whatever their loss. Only the max oracle and psi change. An oracle that can
be rescaled registers `check_rescalable`, `slack_workspace` and `slack_argmax`; `_slack_oracles` and
`_slack_graph` have those of the models.

The first fit with rescaled slacks compiles its own loops over examples: for chains 8.3 s for the sweep and
1.9 s for certificates, after a plain fit of 17.0 s (processor seconds). Weights of examples need none, as all
loops multiply by them if there are any. The same is not done here: a loop that could rescale would have to
compile both searches, and every first fit would wait for a search that few need.

A function pointer to the step of a block, whose types are the same for all oracles of a map, does not help
either: each first fit would take 2 s longer than with the whole sweep (14.0 s), for 2 to 4 s that rescaled
slacks gain, and a visit of the digit words took 6.8 instead of 5.7 microseconds. A pointer to the oracle
would need one type for all oracles, as Numba compiles calls for the types of their arguments; this was not
tried.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray
from maxmargin.compiling import generic, is_wrapper
from maxmargin.problems import oracle as protocol
from maxmargin.problems.halves import absent
from maxmargin.problems.oracles.multiclass import MulticlassOracle
from maxmargin.problems.oracles.weighted import WeightedOracle
from maxmargin.wording import described


class SlackRescaledOracle(NamedTuple):
    """An oracle with its slacks rescaled instead of its margins."""

    inner: object


class SlackWork(NamedTuple):
    """Work space: of the inner oracle, and of the oracle of rescaled slacks."""

    inner: object
    own: object


def is_rescaled(oracle: object) -> bool:
    """Whether an oracle, or one that it wraps, has its slacks rescaled."""
    while not isinstance(oracle, SlackRescaledOracle):
        if not is_wrapper(type(oracle)):
            return False
        oracle = oracle.inner  # type: ignore[attr-defined]
    return True


@generic
def check_rescalable(rescaled: object, owner: str) -> None:
    """Raise unless there is an oracle for rescaled slacks; the error names ``owner``."""
    raise TypeError(
        f"{owner}: problem must be a Multiclass, or a Chain, SecondOrderChain, Segments or Graph with a "
        f"Hamming loss, got {described(rescaled)}."
    )


def check_counts(cost: FloatArray, owner: str) -> None:
    """Raise unless the loss is proportional to the number of wrong labels."""
    n_labels = cost.shape[0]
    if not np.array_equal(cost[:, :n_labels], 1.0 - np.eye(n_labels)):
        raise ValueError(
            f"{owner}: slack rescaling needs the loss 'normalized_hamming' or 'hamming', got a cost matrix; "
            "use one of these, or rescale margins."
        )


@generic
def slack_workspace(rescaled):
    """Return the work space of `slack_argmax`."""
    return np.empty(0)


@generic
def slack_argmax(rescaled, i, theta, y, work, own):
    r"""Write :math:`\arg\max_y L_i(y) (1 + \langle \theta, s_i(y) - s_i(y_i) \rangle)` to ``y``.

    ``work`` is the work space of the oracle, ``own`` that of `slack_workspace`.
    """
    raise NotImplementedError


@check_rescalable.register(WeightedOracle)
def weighted_check_rescalable(weighted: WeightedOracle, owner: str) -> None:
    raise TypeError(
        f"{owner}: slacks must be rescaled before examples are weighted; "
        "write Weighted(SlackRescaled(problem), weights)."
    )


@check_rescalable.register(SlackRescaledOracle)
def slack_rescaled_check_rescalable(rescaled: SlackRescaledOracle, owner: str) -> None:
    raise TypeError(f"{owner}: problem must not have its slacks rescaled already; rescale them once.")


@check_rescalable.register(MulticlassOracle)
def multiclass_check_rescalable(classes: MulticlassOracle, owner: str) -> None:
    """Accept any loss."""


@slack_argmax.register(MulticlassOracle)
def multiclass_slack_argmax(classes, i, theta, y, work, own):
    truth = classes.labels[i]
    best, value = truth, 0.0
    for k in range(classes.n_labels):
        candidate = classes.cost[truth, k] * (1.0 + theta[k] - theta[truth])
        if k != truth and not candidate <= value:  # also if it is NaN: the steps will detect it
            best, value = k, candidate
    y[0] = best


@protocol.oracle_workspace.register(SlackRescaledOracle)
def slack_oracle_workspace(rescaled: SlackRescaledOracle) -> SlackWork:
    return SlackWork(protocol.oracle_workspace(rescaled.inner), slack_workspace(rescaled.inner))


@protocol.argmax.register(SlackRescaledOracle)
def slack_rescaled_argmax(rescaled, i, theta, y, work):
    slack_argmax(rescaled.inner, i, theta, y, work.inner, work.own)


@protocol.psi.register(SlackRescaledOracle)
def slack_rescaled_psi(rescaled, i, y, index, value):
    scale = protocol.loss(rescaled.inner, i, y)
    if scale == 0.0:
        return 0
    count = protocol.psi(rescaled.inner, i, y, index, value)
    for c in range(count):
        value[c] *= scale
    return count


# The means of the inner oracle are those of margins, not of rescaled slacks.
protocol.expectation.register(SlackRescaledOracle)(absent)
protocol.block_optimum.register(SlackRescaledOracle)(absent)
