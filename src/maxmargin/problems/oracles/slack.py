r"""Slack rescaling (Tsochantaridis et al. 2005): all margins are one, and violations are scaled by the loss.

The paper replaces :math:`\psi_i(y)` by :math:`L_i(y) \, \psi_i(y)`, so that

.. math:: H_i(y; w) = L_i(y) \left( 1 - \langle w, \psi_i(y) \rangle \right) .

All outputs need the same margin, whatever their loss. Only the max oracle and psi change. An oracle that can
be rescaled registers `check_rescalable`, `slack_workspace` and `slack_argmax`, and one with a `block_optimum`
registers `slack_optimum` too; `_slack_oracles`, `_slack_graph` and `_slack_classes` have those of the models.

Compiled loops take the inner oracle, and the addresses of these functions in their workspace (`Rescaling`).
So they are compiled once, whether margins or slacks are rescaled, and these functions only if they are
needed. The other functions of this module serve loops that are interpreted.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic, is_wrapper
from maxmargin.compiling.addresses import addressed
from maxmargin.problems import oracle as protocol
from maxmargin.problems.halves import absent
from maxmargin.problems.oracles.weighted import WeightedOracle, optimum_of_weight
from maxmargin.wording import described


class SlackRescaledOracle(NamedTuple):
    """An oracle with its slacks rescaled instead of its margins."""

    inner: object


class SlackWork(NamedTuple):
    """Workspace: of the inner oracle, and of the oracle of rescaled slacks."""

    inner: object
    own: object


class Rescaling(NamedTuple):
    """What loops over the inner oracle need to rescale its slacks.

    Attributes
    ----------
    search, optimum : int
        Addresses of `search_rescaled` and, if blocks are solved, `solve_rescaled`; zero if slacks are not
        rescaled.
    own : workspace of `slack_argmax` and `slack_optimum`
    answer : array of shape (2,)
        What `solve_rescaled` found.
    """

    search: int
    optimum: int
    own: object
    answer: FloatArray


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
def slack_workspace(rescaled, length):
    """Return the workspace of `slack_argmax` for outputs of up to this length.

    Loops take it even if they do not rescale slacks; then the length is zero.
    """
    return np.empty(0)


@generic
def slack_argmax(rescaled, i, theta, y, work, own):
    r"""Write :math:`\arg\max_y L_i(y) (1 + \langle \theta, s_i(y) - s_i(y_i) \rangle)` to ``y``.

    ``work`` is the workspace of the oracle, ``own`` that of `slack_workspace`.
    """
    raise NotImplementedError


@generic
def slack_optimum(rescaled, i, theta, curvature, z, work, own):
    """Solve a block with rescaled slacks; all else is as in `block_optimum` and `slack_argmax`."""
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


@protocol.oracle_workspace.register(SlackRescaledOracle)
def slack_oracle_workspace(rescaled: SlackRescaledOracle) -> SlackWork:
    inner, length = rescaled.inner, protocol.output_sizes(rescaled.inner).output
    return SlackWork(protocol.oracle_workspace(inner), slack_workspace(inner, length))


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


@protocol.block_optimum.register(SlackRescaledOracle)
def slack_rescaled_block_optimum(rescaled, i, theta, curvature, z, work):
    return slack_optimum(rescaled.inner, i, theta, curvature, z, work.inner, work.own)


@addressed
def search_rescaled(oracle, i, theta, y, work, own):
    slack_argmax(oracle, i, theta, y, work, own)


@addressed
def solve_rescaled(oracle, i, theta, curvature, c, z, work, own, answer):
    """Solve a block of weight c; write its dual loss and the hinge to ``answer``."""
    slacks = SlackRescaledOracle(oracle)
    answer[0], answer[1] = optimum_of_weight(slacks, i, theta, curvature, c, z, SlackWork(work, own))


def rescaling(oracle: object, theta: FloatArray, y: IntArray, work: object) -> Rescaling:
    """Return the `Rescaling` of this oracle for loops that search; the other arguments are workspace."""
    own = slack_workspace(oracle, protocol.output_sizes(oracle).output)
    return Rescaling(search_rescaled.address(oracle, 0, theta, y, work, own), 0, own, np.zeros(2))


def with_optimum(
    slacks: Rescaling, oracle: object, theta: FloatArray, z: FloatArray, work: object
) -> Rescaling:
    """Return the same for loops that also solve blocks."""
    own, answer = slacks.own, slacks.answer
    return slacks._replace(optimum=solve_rescaled.address(oracle, 0, theta, 1.0, 1.0, z, work, own, answer))


def no_rescaling(oracle: object) -> Rescaling:
    """Return the `Rescaling` that loops over this oracle take if slacks are not rescaled."""
    return Rescaling(0, 0, slack_workspace(oracle, 0), np.zeros(0))


# The means of the inner oracle are those of margins, not of rescaled slacks.
protocol.expectation.register(SlackRescaledOracle)(absent)
