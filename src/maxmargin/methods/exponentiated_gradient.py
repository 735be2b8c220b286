r"""Online exponentiated gradient (Collins et al. 2008), with the constants of the paper's appendix.

The dual variables of an example are a Gibbs distribution,

.. math:: \alpha_i(y) \propto \exp \left( c_i L_i(y) - \langle \theta_i, \psi_i(y) \rangle \right),

with parameters :math:`\theta_i` in output space and a number :math:`c_i`. All are zero at the start, so that
the distributions are uniform. As the derivative of the dual in :math:`\alpha_i(y)` is :math:`H_i(y; w) / n`,
a multiplicative step of size :math:`\eta_i` is a step of the parameters:

.. math::

    \alpha_i(y) &\leftarrow \frac{1}{Z} \, \alpha_i(y) \, e^{\eta_i H_i(y; w)}
    \quad \Leftrightarrow \quad
    \theta_i \leftarrow \theta_i + \eta_i \Phi_i^\top w, \quad c_i \leftarrow c_i + \eta_i \\
    z_i &\leftarrow z_i + \delta, \qquad \ell_i \leftarrow \ell_i', \qquad
    w \leftarrow w + \frac{1}{\lambda n} \Phi_i \delta ,

where :math:`z_i + \delta` and :math:`\ell_i'` are the expectation oracle's answer at the new
parameters. The dual, times n, changes by

.. math:: \ell_i' - \ell_i - \langle \Phi_i^\top w, \delta \rangle
          - \frac{1}{2 \lambda n} \langle \delta, \Phi_i^\top \Phi_i \delta \rangle

which is known before the weights change. If the dual would decrease, the step size is halved, at most twice
in the first pass and five times later, with another oracle call each time. After a step it grows by a
twentieth. If no step size is found, the block does not move, so the dual never decreases, up to rounding. At
a corner, steps change nothing beyond rounding. They are still taken, so that the parameters can return.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import kernel, subroutine
from maxmargin.compiling.generics import has_implementation
from maxmargin.compiling.loops import copy, weighted_sum
from maxmargin.methods import protocol
from maxmargin.methods.protocol import Point, Traits
from maxmargin.methods.rules import dual_gain
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import undefined
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.limits import Pace
from maxmargin.structures.feature_map import (
    add_entry,
    dot_move,
    gram,
    map_sizes,
    push,
    reset,
    score,
    statistics_size,
)
from maxmargin.structures.oracle import expectation
from maxmargin.structures.problem import AnyProblem

_FIRST_STEP = 0.5
_GROWTH = 1.05
_HALVINGS_AT_FIRST, _HALVINGS = 2, 5
_EPSILON = 2.0**-52
# Without a limit, step sizes and parameters would grow forever once nothing changes.
_LARGEST_STEP = 1e6


class ExponentiatedGradient(NamedTuple):
    """Online exponentiated gradient: multiplicative block steps; needs an expectation oracle.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class Gibbs(NamedTuple):
    """Distributions over the outputs of each example, stored one after another.

    Attributes
    ----------
    first : array of shape (n + 1,)
        Example i has the entries first[i], ..., first[i + 1] - 1 of ``theta`` and ``z``.
    theta : array
        Parameters.
    share : array of shape (n,)
        Factors c of the losses.
    z : array
        Means of psi.
    """

    first: IntArray
    theta: FloatArray
    share: FloatArray
    z: FloatArray


class Trial(NamedTuple):
    """Parameters and mean of the distribution after a trial step."""

    theta: FloatArray
    z: FloatArray


class GibbsState(NamedTuple):
    """The dual iterate.

    Attributes
    ----------
    w : array
        Weights.
    ell : array of shape (n,)
        Dual loss of each block.
    gibbs : Gibbs
        Dual variables of each block.
    eta : array of shape (n,)
        Step size of each block.
    visits, calls : arrays of shape (1,)
        Number of blocks visited, and of oracle calls.
    trial : Trial
        Workspace.
    """

    w: FloatArray
    ell: FloatArray
    gibbs: Gibbs
    eta: FloatArray
    visits: IntArray
    calls: IntArray
    trial: Trial


@protocol.start.register(ExponentiatedGradient)
def exponentiated_gradient_start(method: ExponentiatedGradient, problem: AnyProblem) -> GibbsState:
    """Return the state of uniform distributions; costs one oracle call per example."""
    check_expectations(method, problem)
    size, phi = map_sizes(problem.map), problem.map
    n, lengths = size.examples, [int(statistics_size(phi, i)) for i in range(size.examples)]
    first = np.concatenate([[0], np.cumsum(lengths)])
    gibbs = Gibbs(first, np.zeros(first[-1]), np.zeros(n), np.zeros(first[-1]))
    trial = Trial(aligned_zeros(size.statistics), aligned_zeros(size.statistics))
    counts = np.zeros(1, dtype=np.int64), np.array([n])
    state = GibbsState(
        aligned_zeros(size.weights), np.zeros(n), gibbs, np.full(n, _FIRST_STEP), *counts, trial
    )
    broken = _find_means(problem, state, 1.0 / (method.lam * n), new_scratch(problem))
    if broken >= 0:
        raise undefined(problem, broken)
    return state


@kernel
def _find_means(problem, state, scale, scratch):
    """Compute each block's mean and loss from its parameters, and the weights; return a broken example or -1.

    An example whose features are not finite must be found before it enters the weights.
    """
    gibbs, work = state.gibbs, scratch.block
    for i in range(state.ell.shape[0]):
        own = slice(gibbs.first[i], gibbs.first[i + 1])
        theta, z = gibbs.theta[own], gibbs.z[own]
        _, state.ell[i] = expectation(problem.oracle, i, theta, gibbs.share[i], z, scratch.oracle)
        for p in range(z.shape[0]):
            add_entry(work.move, p, z[p])
        gram(problem.map, i, work.move, work.image, work.map)
        if not abs(state.ell[i]) + abs(dot_move(work.move, work.image)) < np.inf:
            return i
        push(problem.map, i, work.move, scale, state.w, work.map)
        reset(work.move)
    return -1


@protocol.seek.register(ExponentiatedGradient)
def exponentiated_gradient_seek(method, state, problem, i, w, scratch):
    """Find a step size that does not decrease the dual; return the new loss of the block and the gain.

    The move of the block is left in the workspace; it is zero if no step size was found.
    """
    work, scale, first_slope = scratch.block, 1.0 / (method.lam * state.ell.shape[0]), 0.0
    move, halvings = work.move, _HALVINGS_AT_FIRST if state.visits[0] < state.ell.shape[0] else _HALVINGS
    score(problem.map, i, w, work.theta)
    rounding = _rounding(state, i, work.theta)
    ell, gain = 0.0, 0.0
    for k in range(halvings + 1):
        if k > 0:
            reset(move)
            state.eta[i] *= 0.5
        ell = _try(state, problem, i, scratch)
        slope = ell - state.ell[i] - dot_move(move, work.theta)
        gram(problem.map, i, move, work.image, work.map)
        gain = dual_gain(1.0, slope, scale * dot_move(move, work.image))
        first_slope = slope if k == 0 else first_slope
        if gain >= -rounding:
            move.gamma[0], move.ell[0], move.gain[0] = 1.0, ell - state.ell[i], gain
        if gain >= -rounding or not abs(gain) < np.inf:
            break
    if move.gamma[0] == 0.0:
        reset(move)
    move.gap[0] = first_slope  # a lower bound on the block's gap
    return ell, gain


@protocol.step.register(ExponentiatedGradient)
def exponentiated_gradient_step(method, state, phi, i, loss_y, hinge, work):
    state.visits[0] += 1
    if not abs(hinge) < np.inf:  # the gain
        return protocol.UNDEFINED
    if work.move.gamma[0] > 0.0:
        push(phi, i, work.move, 1.0 / (method.lam * state.ell.shape[0]), state.w, work.map)
        _accept(state, i, loss_y)
    return protocol.DONE


@subroutine
def _rounding(state, i, theta):
    """Return a bound on the error of a gain, if every mean is rounded once."""
    total = state.ell[i]
    for p in range(state.gibbs.first[i + 1] - state.gibbs.first[i]):
        total += abs(theta[p])
    return _EPSILON * total


@subroutine
def _try(state, problem, i, scratch):
    """Call the oracle at the parameters after a step; load the move of z, and return the loss."""
    gibbs, eta, first = state.gibbs, state.eta[i], state.gibbs.first[i]
    size = gibbs.first[i + 1] - first
    theta, z = state.trial.theta[:size], state.trial.z[:size]
    weighted_sum(1.0, gibbs.theta[first : first + size], eta, scratch.block.theta, theta)
    _, ell = expectation(problem.oracle, i, theta, gibbs.share[i] + eta, z, scratch.oracle)
    state.calls[0] += 1
    for p in range(size):
        add_entry(scratch.block.move, p, z[p] - gibbs.z[first + p])
    return ell


@subroutine
def _accept(state, i, ell):
    """Accept the trial as the block's distribution, and lengthen its next step."""
    gibbs = state.gibbs
    own = slice(gibbs.first[i], gibbs.first[i + 1])
    copy(state.trial.theta, gibbs.theta[own])
    copy(state.trial.z, gibbs.z[own])
    gibbs.share[i] += state.eta[i]
    state.ell[i] = ell
    state.eta[i] = min(_GROWTH * state.eta[i], _LARGEST_STEP)


@protocol.point.register(ExponentiatedGradient)
def exponentiated_gradient_point(
    method: ExponentiatedGradient, state: GibbsState, problem: AnyProblem
) -> Point:
    return protocol.dual_point(problem, state.w, state.ell.mean())


@protocol.oracle_calls.register(ExponentiatedGradient)
def exponentiated_gradient_oracle_calls(method: ExponentiatedGradient, state: GibbsState, visits: int) -> int:
    return int(state.calls[0])


@protocol.traits.register(ExponentiatedGradient)
def exponentiated_gradient_traits(method: ExponentiatedGradient) -> Traits:
    return Traits(takes_corners=False, searches=False)


class GibbsMean(NamedTuple):
    r"""Means over examples.

    Attributes
    ----------
    g : array
        :math:`\frac1n \sum_i \Phi_i z_i`, which is :math:`\lambda A \alpha`.
    ell : float
        Dual loss, :math:`b^\top \alpha`.
    log_partition : float
    """

    g: FloatArray
    ell: float
    log_partition: float


def gibbs_mean(problem: AnyProblem, v: FloatArray, share: float) -> GibbsMean:
    r"""Return the means under the distributions of v and c = ``share``; costs one oracle call per example.

    Dual variables of the form

    .. math:: \alpha_i(y) \propto \exp \left( c \, L_i(y) - \langle v, \psi_i(y) \rangle \right)

    follow from one weight vector v and a number c. So a method that moves all examples needs no state for
    each.

    `OutOfTime` is raised at the deadline.
    """
    size, scratch, sums = map_sizes(problem.map), new_scratch(problem), (0.0, 0.0)
    n, g, z = size.examples, aligned_zeros(size.weights), aligned_zeros(size.statistics)
    for first, stop in Pace().pieces(0, n):
        *sums, broken = _sum_means(problem, v, float(share), 1.0 / n, first, stop, *sums, g, z, scratch)
        if broken >= 0:
            raise undefined(problem, broken)
    log_partition, ell = sums
    return GibbsMean(g, ell / n, log_partition / n)


@kernel
def _sum_means(problem, v, share, scale, first, stop, log_partitions, losses, g, z, scratch):
    """``g += scale * sum_i Phi_i z_i``; return both sums, plus those of the examples; a broken one or -1."""
    work = scratch.block
    for i in range(first, stop):
        size = statistics_size(problem.map, i)
        score(problem.map, i, v, work.theta)
        log_partition, loss = expectation(problem.oracle, i, work.theta, share, z[:size], scratch.oracle)
        if not (log_partition < np.inf and loss < np.inf):
            return log_partitions, losses, i
        for p in range(size):
            add_entry(work.move, p, z[p])
        push(problem.map, i, work.move, scale, g, work.map)
        reset(work.move)
        log_partitions += log_partition
        losses += loss
    return log_partitions, losses, -1


def check_expectations(method: object, problem: AnyProblem) -> None:
    """Raise unless the problem has the expectation oracle that the method needs."""
    if not has_implementation(problem.oracle, expectation):
        raise TypeError(
            f"solve: {type(method).__name__} needs a problem with an expectation oracle, Multiclass or "
            f"Chain, got {type(problem.oracle).__name__}; use BlockFrankWolfe or Pairwise."
        )
