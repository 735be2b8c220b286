r"""Example weights, and slack rescaling: oracles that change the losses and psi of another.

**Weights.** With weights :math:`c_i > 0` the objective is

.. math:: \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i c_i \max_y H_i(y; w), \qquad
          c_i H_i(y; w) = c_i L_i(y) - \langle w, c_i \psi_i(y) \rangle ,

which is that of losses :math:`c_i L_i` and differences :math:`c_i \psi_i`. The best output of an example, its
scores and its feature map do not change.

**Slack rescaling** (Tsochantaridis et al. 2005). All margins are one, and violations are scaled by the loss:
the paper replaces :math:`\psi_i(y)` by :math:`L_i(y) \, \psi_i(y)`, so that

.. math:: H_i(y; w) = L_i(y) \left( 1 - \langle w, \psi_i(y) \rangle \right) .

Only the max oracle and psi change. An oracle that can be rescaled registers `check_rescalable`,
`slack_workspace` and `slack_argmax`, and one with a `block_optimum` registers `slack_optimum` too.

**Loops** take the inner oracle and apply both themselves (`unwrapped`): weights as an array, and the
addresses of the functions for slacks in their workspace (`Rescaling`), so that these are compiled only if
they are needed. The other functions of this module serve loops that are interpreted, and methods that call
other oracles.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import generic, is_wrapper, subroutine
from maxmargin.compiling.generics import absent
from maxmargin.compiling.loops import addressed, can_call_addresses
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.wording import described
from maxmargin.structures import oracle
from maxmargin.structures.oracle import (
    argmax,
    block_optimum,
    expectation,
    loss,
    oracle_workspace,
    output_sizes,
    psi,
)
from maxmargin.structures.problem import AnyProblem, indexed_by_example

NO_WEIGHTS = np.zeros(0)


@indexed_by_example("weights")
class WeightedOracle(NamedTuple):
    """An oracle whose examples have weights.

    Attributes
    ----------
    inner : oracle
    weights : array of shape (n,)
    statistics : int
        Length of the scores for the expectation oracle; zero if there is none.
    """

    inner: object
    weights: FloatArray
    statistics: int


class WeightedWork(NamedTuple):
    """Workspace of the inner oracle, and scores for its expectation oracle."""

    inner: object
    theta: FloatArray


@oracle.oracle_workspace.register(WeightedOracle)
def weighted_oracle_workspace(weighted: WeightedOracle) -> WeightedWork:
    return WeightedWork(oracle.oracle_workspace(weighted.inner), aligned_zeros(weighted.statistics))


@oracle.loss.register(WeightedOracle)
def weighted_loss(weighted, i, y):
    return weighted.weights[i] * oracle.loss(weighted.inner, i, y)


@oracle.shortfall.register(WeightedOracle)
def weighted_shortfall(weighted, i, work):
    return weighted.weights[i] * oracle.shortfall(weighted.inner, i, work.inner)


@oracle.psi.register(WeightedOracle)
def weighted_psi(weighted, i, y, index, value):
    count, scale = oracle.psi(weighted.inner, i, y, index, value), weighted.weights[i]
    for c in range(count):
        value[c] *= scale
    return count


@oracle.expectation.register(WeightedOracle)
def weighted_expectation(weighted, i, theta, share, z, work):
    """Call the inner oracle with c times the scores and c times the share of losses."""
    c = weighted.weights[i]
    for p in range(z.shape[0]):
        work.theta[p] = c * theta[p]
    log_partition, loss = oracle.expectation(weighted.inner, i, work.theta, c * share, z, work.inner)
    for p in range(z.shape[0]):
        z[p] *= c
    return log_partition, c * loss


@oracle.block_optimum.register(WeightedOracle)
def weighted_block_optimum(weighted, i, theta, curvature, z, work):
    return optimum_of_weight(weighted.inner, i, theta, curvature, weighted.weights[i], z, work.inner)


@subroutine
def optimum_of_weight(inner, i, theta, curvature, c, z, work):
    """Solve a block of weight c: c times the inner objective, at z / c and c times the curvature."""
    for p in range(z.shape[0]):
        z[p] /= c
    loss, hinge = oracle.block_optimum(inner, i, theta, c * curvature, z, work)
    for p in range(z.shape[0]):
        z[p] *= c
    return c * loss, c * hinge


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
def check_rescalable(rescaled: object) -> None:
    """Raise unless there is an oracle for rescaled slacks."""
    raise TypeError(
        "problem must be a Multiclass, or a Chain, SecondOrderChain, Segments or Graph with a "
        f"Hamming loss, got {described(rescaled)}."
    )


def check_counts(cost: FloatArray) -> None:
    """Raise unless the loss is proportional to the number of wrong labels."""
    n_labels = cost.shape[0]
    if not np.array_equal(cost[:, :n_labels], 1.0 - np.eye(n_labels)):
        raise ValueError(
            "slack rescaling needs the loss 'normalized_hamming' or 'hamming', got a cost matrix; "
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
def weighted_check_rescalable(weighted: WeightedOracle) -> None:
    raise TypeError(
        "slacks must be rescaled before examples are weighted; "
        "write Weighted(SlackRescaled(problem), weights)."
    )


@check_rescalable.register(SlackRescaledOracle)
def slack_rescaled_check_rescalable(rescaled: SlackRescaledOracle) -> None:
    raise TypeError("problem must not have its slacks rescaled already; rescale them once.")


@oracle_workspace.register(SlackRescaledOracle)
def slack_oracle_workspace(rescaled: SlackRescaledOracle) -> SlackWork:
    inner, length = rescaled.inner, output_sizes(rescaled.inner).output
    return SlackWork(oracle_workspace(inner), slack_workspace(inner, length))


@argmax.register(SlackRescaledOracle)
def slack_rescaled_argmax(rescaled, i, theta, y, work):
    slack_argmax(rescaled.inner, i, theta, y, work.inner, work.own)


@psi.register(SlackRescaledOracle)
def slack_rescaled_psi(rescaled, i, y, index, value):
    scale = loss(rescaled.inner, i, y)
    if scale == 0.0:
        return 0
    count = psi(rescaled.inner, i, y, index, value)
    for c in range(count):
        value[c] *= scale
    return count


@block_optimum.register(SlackRescaledOracle)
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
    own = slack_workspace(oracle, output_sizes(oracle).output)
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
expectation.register(SlackRescaledOracle)(absent)


def unwrapped(problem: AnyProblem) -> tuple[AnyProblem, FloatArray, bool]:
    """Return what loops take: the inner problem, its example weights, and whether slacks are to be rescaled.

    So they are compiled once, for problems with weights and without, whether margins or slacks are rescaled.
    Where loops are interpreted, the problem itself rescales slacks.
    """
    oracle, weights, rescales = problem.oracle, NO_WEIGHTS, False
    if isinstance(oracle, WeightedOracle):
        weights, oracle = oracle.weights, oracle.inner
    if isinstance(oracle, SlackRescaledOracle) and can_call_addresses(problem):
        oracle, rescales = oracle.inner, True
    return problem if oracle is problem.oracle else problem._replace(oracle=oracle), weights, rescales
