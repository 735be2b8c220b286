r"""The n-slack cutting-plane method (Tsochantaridis et al. 2005; Joachims et al. 2009, Algorithm 1).

Each example has a working set of planes :math:`w \mapsto H_i(y; w)` under its hinge, initially that of the
truth. A pass calls the oracle of every example at w, adds the planes that are violated by more than
:math:`\epsilon`, and then solves the quadratic program over all working sets,

.. math:: \max_\alpha \; \frac1n \sum_i \sum_{y \in W_i} \alpha_i(y) L_i(y) - \frac{\lambda}{2} \|w\|^2,
          \qquad w = \frac{1}{\lambda n} \sum_i \Phi_i \sum_{y \in W_i} \alpha_i(y) \psi_i(y), \quad
          \alpha_i \in \text{simplex}.

Its matrix is dense and has one row per plane, tens of thousands for thousands of examples: no general solver
handles it in the time of a pass. So the program is solved by pairwise steps within the blocks, in sweeps
without oracle calls, with a warm start from the previous pass. Its accuracy and :math:`\epsilon` are
fractions of the duality gap that the pass finds.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.methods import protocol
from maxmargin.methods.blocks import SIZE
from maxmargin.methods.pairwise import ActiveState, Pairwise, move_block
from maxmargin.methods.planes import has_plane_room, include_corner
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.rules import Visits
from maxmargin.methods.sweep import advance, sweep_in_time
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.structures.feature_map import score
from maxmargin.structures.problem import AnyProblem, sizes

# Fractions of the duality gap that a pass finds: the gap to which the program is solved, and the amount by
# which a hinge must exceed its working set in the next pass. The gap that remains is at most the sum of the
# two. A more exact solution would be wasted: new planes undo most of it.
_SHARE = 0.3
_MOST_SWEEPS = 100


class NSlackCuttingPlane(NamedTuple):
    """The n-slack cutting-plane method: a working set per example, and one quadratic program for all.

    A pass calls every oracle once and adds up to n planes. No plane is dropped: memory grows with the number
    of planes, each as large as the statistics of an output. The program is solved to three tenths of the
    duality gap, by up to 100 sweeps, each of which costs about a pass without oracle calls. The method is for
    expensive oracles, as it makes few calls, and not for small lam, which takes many sweeps.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class Collect(NamedTuple):
    """The first part of a pass: add the planes violated by more than ``eps``; no block moves."""

    inner: Pairwise
    eps: float


class Settle(NamedTuple):
    """The second part of a pass: move blocks within their working sets, without oracle calls."""

    inner: Pairwise


class NSlackWorking(NamedTuple):
    """Weights, working sets, and the sum of the block gaps found in a sweep, in ``gap[0]``."""

    inner: ActiveState
    gap: FloatArray


class NSlackState(NamedTuple):
    """The progress of a run.

    Attributes
    ----------
    working : NSlackWorking
    gap : float
        Mean block gap of the last pass, which is its duality gap.
    passes : int
    calls : int
        Number of oracle calls.
    """

    working: NSlackWorking
    gap: float = 0.0
    passes: int = 0
    calls: int = 0

    @property
    def inner(self) -> ActiveState:
        """Weights and working sets."""
        return self.working.inner


@protocol.start.register(NSlackCuttingPlane)
def n_slack_cutting_plane_start(method: NSlackCuttingPlane, problem: AnyProblem) -> NSlackState:
    return NSlackState(NSlackWorking(protocol.start(_inner(method), problem), np.zeros(1)))


def _inner(method: NSlackCuttingPlane) -> Pairwise:
    return Pairwise(method.lam)


@protocol.has_room.register(Collect)
def collect_has_room(method, state, i, sizes):
    return has_plane_room(state.inner.planes, i, sizes.parts)


@protocol.has_room.register(Settle)
def settle_has_room(method, state, i, sizes):
    return True


@protocol.seek.register(Settle)
def settle_seek(method, state, problem, i, w, scratch):
    score(problem.map, i, w, scratch.block.theta)
    return 0.0, 0.0


@protocol.step.register(Collect)
def collect_step(method, state, phi, i, loss_y, hinge, work):
    planes = state.inner.planes
    mean = protocol.mean_margin(method.inner, state.inner, i, work.theta)
    if not protocol.is_sound(hinge - mean, loss_y + abs(hinge) + abs(mean), work):
        return protocol.BROKEN
    state.gap[0] += hinge - mean
    if hinge > _largest_margin(planes, i) + method.eps:
        include_corner(planes, i, loss_y, hinge, work.corner)
    return protocol.DONE


@protocol.step.register(Settle)
def settle_step(method, state, phi, i, loss_y, hinge, work):
    mean = protocol.mean_margin(method.inner, state.inner, i, work.theta)
    gap = _largest_margin(state.inner.planes, i) - mean
    state.gap[0] += gap
    if gap > 0.0:
        move_block(method.inner, state.inner, phi, i, gap, work)
    return protocol.DONE


@helper
def _largest_margin(planes, i):
    """Return the largest margin of the planes of block i; margins must be up to date."""
    largest = -np.inf
    for c in range(planes.extent[i, SIZE]):
        largest = max(largest, planes.work.margin[c])
    return largest


@advance.register(NSlackCuttingPlane)
def n_slack_cutting_plane_advance(
    method: NSlackCuttingPlane, state: NSlackState, problem: AnyProblem, visits: Visits | IntArray
) -> NSlackState:
    """Make a pass; at the deadline, return the state as it is, as all blocks are consistent at any time."""
    n, inner = sizes(problem).examples, _inner(method)
    rng = np.random.default_rng(state.passes)
    working, gap, done = _swept(problem, Collect(inner, _SHARE * state.gap), state.working, np.arange(n))
    calls, sweeps = state.calls + done, 0
    while done == n and sweeps < _MOST_SWEEPS:
        working, left, done = _swept(problem, Settle(inner), working, rng.permutation(n))
        sweeps += 1
        if left <= _SHARE * gap:
            break
    return NSlackState(working, gap, state.passes + 1, calls)


def _swept(
    problem: AnyProblem, part: Collect | Settle, working: NSlackWorking, order: IntArray
) -> tuple[NSlackWorking, float, int]:
    """Return the state after a sweep, the mean of the block gaps that its visits found, and their number."""
    working.gap[0] = 0.0
    working, done = sweep_in_time(problem, part, working, order)
    return working, float(working.gap[0]) / max(done, 1), done


@protocol.carried.register(NSlackCuttingPlane)
def n_slack_cutting_plane_carried(
    method: NSlackCuttingPlane, state: NSlackState, problem: AnyProblem, carry: Carry
) -> NSlackState:
    inner = protocol.carried(_inner(method), state.inner, problem, carry)
    return NSlackState(NSlackWorking(inner, np.zeros(1)))


@protocol.dual_weights.register(NSlackCuttingPlane)
def n_slack_cutting_plane_dual_weights(
    method: NSlackCuttingPlane, state: NSlackState, problem: AnyProblem
) -> FloatArray:
    weights: FloatArray = protocol.dual_weights(_inner(method), state.inner, problem)
    return weights


@protocol.point.register(NSlackCuttingPlane)
def n_slack_cutting_plane_point(method: NSlackCuttingPlane, state: NSlackState, problem: AnyProblem) -> Point:
    return protocol.point(_inner(method), state.inner, problem)


@protocol.oracle_calls.register(NSlackCuttingPlane)
def n_slack_cutting_plane_oracle_calls(method: NSlackCuttingPlane, state: NSlackState, visits: int) -> int:
    return state.calls


@protocol.traits.register(NSlackCuttingPlane)
def n_slack_cutting_plane_traits(method: NSlackCuttingPlane) -> Traits:
    return protocol.BATCH
