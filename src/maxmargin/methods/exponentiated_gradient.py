r"""Online exponentiated gradient (Collins et al. 2008), with the parameters of the paper's appendix.

The dual variables of an example are a Gibbs distribution,

.. math:: \alpha_i(y) \propto \exp \left( c_i L_i(y) - \langle \theta_i, \psi_i(y) \rangle \right),

of parameters :math:`\theta_i` in output space and a number :math:`c_i`; all zero at the start, and it
uniform. As the dual grows at the rate :math:`H_i(y; w) / n` with :math:`\alpha_i(y)`, a multiplicative step
of size :math:`\eta_i` is a step of the parameters:

.. math::

    \alpha_i(y) &\leftarrow \frac{1}{Z} \, \alpha_i(y) \, e^{\eta_i H_i(y; w)}
    \quad \Leftrightarrow \quad
    \theta_i \leftarrow \theta_i + \eta_i \Phi_i^\top w, \quad c_i \leftarrow c_i + \eta_i \\
    z_i &\leftarrow z_i + \delta, \qquad \ell_i \leftarrow \ell_i', \qquad
    w \leftarrow w + \frac{1}{\lambda n} \Phi_i \delta ,

where :math:`z_i + \delta` and :math:`\ell_i'` are the expectation oracle's answer at the new parameters. By

.. math:: \ell_i' - \ell_i - \langle \Phi_i^\top w, \delta \rangle
          - \frac{1}{2 \lambda n} \langle \delta, \Phi_i^\top \Phi_i \delta \rangle

n times the dual changes, which is known before the weights are touched. Where it would decrease, the step
size is halved, at most twice in the first pass and five times later, with one more call of the oracle each;
after a step it grows by a twentieth. A block for which no step size was found stays where it is, so that
the dual never decreases, but for rounding: at a corner, where steps change nothing that can be seen, they
are taken, as the parameters must be able to come back.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import kernel, subroutine
from maxmargin.loops import copy, weighted_sum
from maxmargin.methods._gibbs import check_expectations
from maxmargin.methods._move import add_entry, dot_move, reset
from maxmargin.methods._protocol import (
    DONE,
    UNDEFINED,
    Point,
    advance,
    dual_point,
    has_room,
    oracle_calls,
    point,
    seek,
    start,
    step,
)
from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import sweep_all, undefined
from maxmargin.methods.sampling import Visits
from maxmargin.methods.steps import dual_gain
from maxmargin.problems._protocol import expectation, gram, push, score, sizes, statistics_size

_FIRST_STEP = 0.5
_GROWTH = 1.05
_HALVINGS_AT_FIRST, _HALVINGS = 2, 5
_EPSILON = 2.0**-52
# Where nothing changes any more step sizes would grow for ever, and with them the parameters.
_LARGEST_STEP = 1e6


class ExponentiatedGradient(NamedTuple):
    """Online exponentiated gradient: multiplicative block steps, in need of an expectation oracle.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class Gibbs(NamedTuple):
    """Distributions over the outputs of each example; of an example's own size, one after another.

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
    """Parameters and mean of one distribution that a step may lead to."""

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
        Its dual variables.
    eta : array of shape (n,)
        Its step size.
    visits, calls : arrays of shape (1,)
        How many blocks were visited, and how often the oracle was called.
    trial : Trial
        Work space.
    """

    w: FloatArray
    ell: FloatArray
    gibbs: Gibbs
    eta: FloatArray
    visits: IntArray
    calls: IntArray
    trial: Trial


@start.register(ExponentiatedGradient)
def exponentiated_gradient_start(method: ExponentiatedGradient, problem: Any) -> GibbsState:
    """Return the state of uniform distributions, by one oracle call per example."""
    check_expectations(method, problem)
    size = sizes(problem)
    n, lengths = size.examples, [int(statistics_size(problem, i)) for i in range(size.examples)]
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
    """Find each block's mean and loss from its parameters, and the weights; return a broken example or -1.

    One whose features are not finite must be found before it is a part of the weights of all.
    """
    gibbs = state.gibbs
    for i in range(state.ell.shape[0]):
        own = slice(gibbs.first[i], gibbs.first[i + 1])
        theta, z = gibbs.theta[own], gibbs.z[own]
        _, state.ell[i] = expectation(problem, i, theta, gibbs.share[i], z, scratch.oracle)
        for p in range(z.shape[0]):
            add_entry(scratch.move, p, z[p])
        gram(problem, i, scratch.move, scratch.image, scratch.oracle)
        if not abs(state.ell[i]) + abs(dot_move(scratch.move, scratch.image)) < np.inf:
            return i
        push(problem, i, scratch.move, scale, state.w, scratch.oracle)
        reset(scratch.move)
    return -1


@has_room.register(ExponentiatedGradient)
def exponentiated_gradient_has_room(method, state, problem, i):
    return True


@seek.register(ExponentiatedGradient)
def exponentiated_gradient_seek(method, state, problem, i, w, scratch):
    """Find the scores alone: the direction is that of all margins."""
    score(problem, i, w, scratch.theta)
    return 0.0, 0.0


@step.register(ExponentiatedGradient)
def exponentiated_gradient_step(method, state, problem, i, loss_y, hinge, scratch):
    move, scale, first_slope = scratch.move, 1.0 / (method.lam * state.ell.shape[0]), 0.0
    halvings = _HALVINGS_AT_FIRST if state.visits[0] < state.ell.shape[0] else _HALVINGS
    rounding = _rounding(state, i, scratch.theta)
    state.visits[0] += 1
    for k in range(halvings + 1):
        if k > 0:
            reset(move)
            state.eta[i] *= 0.5
        ell = _try(state, problem, i, scratch)
        slope = ell - state.ell[i] - dot_move(move, scratch.theta)
        gram(problem, i, move, scratch.image, scratch.oracle)
        gain = dual_gain(1.0, slope, scale * dot_move(move, scratch.image))
        if not abs(gain) < np.inf:
            return UNDEFINED
        first_slope = slope if k == 0 else first_slope
        if gain >= -rounding:
            move.gamma[0], move.ell[0], move.gain[0] = 1.0, ell - state.ell[i], gain
            push(problem, i, move, scale, state.w, scratch.oracle)
            _accept(state, i, ell)
            break
    if move.gamma[0] == 0.0:
        reset(move)
    move.gap[0] = first_slope  # what the block's gap is at least
    return DONE


@subroutine
def _rounding(state, i, theta):
    """How far a gain may be off if every mean is by a rounding."""
    total = state.ell[i]
    for p in range(state.gibbs.first[i + 1] - state.gibbs.first[i]):
        total += abs(theta[p])
    return _EPSILON * total


@subroutine
def _try(state, problem, i, scratch):
    """Ask the oracle at the parameters after a step; load the move of z, and return the loss."""
    gibbs, eta, first = state.gibbs, state.eta[i], state.gibbs.first[i]
    size = gibbs.first[i + 1] - first
    theta, z = state.trial.theta[:size], state.trial.z[:size]
    weighted_sum(1.0, gibbs.theta[first : first + size], eta, scratch.theta, theta)
    _, ell = expectation(problem, i, theta, gibbs.share[i] + eta, z, scratch.oracle)
    state.calls[0] += 1
    for p in range(size):
        add_entry(scratch.move, p, z[p] - gibbs.z[first + p])
    return ell


@subroutine
def _accept(state, i, ell):
    """Make the trial the block's distribution, and its next step longer."""
    gibbs = state.gibbs
    own = slice(gibbs.first[i], gibbs.first[i + 1])
    copy(state.trial.theta, gibbs.theta[own])
    copy(state.trial.z, gibbs.z[own])
    gibbs.share[i] += state.eta[i]
    state.ell[i] = ell
    state.eta[i] = min(_GROWTH * state.eta[i], _LARGEST_STEP)


@advance.register(ExponentiatedGradient)
def exponentiated_gradient_advance(
    method: ExponentiatedGradient, state: GibbsState, problem: Any, visits: Visits | IntArray
) -> GibbsState:
    return sweep_all(problem, method, state, visits)


@point.register(ExponentiatedGradient)
def exponentiated_gradient_point(method: ExponentiatedGradient, state: GibbsState, problem: Any) -> Point:
    return dual_point(state.w, state.ell.mean())


@oracle_calls.register(ExponentiatedGradient)
def exponentiated_gradient_oracle_calls(method: ExponentiatedGradient, state: GibbsState, visits: int) -> int:
    return int(state.calls[0])
