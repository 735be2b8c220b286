r"""The n-slack cutting-plane method (Tsochantaridis et al. 2005; Joachims et al. 2009, Algorithm 1).

Each example has a working set of planes :math:`w \mapsto H_i(y; w)` under its hinge, that of the truth to
begin with. A pass calls the oracle of every example at w, adds the planes that are violated by more than
:math:`\epsilon`, and then solves the quadratic program over all working sets,

.. math:: \max_\alpha \; \frac1n \sum_i \sum_{y \in W_i} \alpha_i(y) L_i(y) - \frac{\lambda}{2} \|w\|^2,
          \qquad w = \frac{1}{\lambda n} \sum_i \Phi_i \sum_{y \in W_i} \alpha_i(y) \psi_i(y), \quad
          \alpha_i \in \text{simplex}.

Its matrix has a row for each plane, tens of thousands where there are thousands of examples, and is dense:
no general solver gets through that in the time of a pass. The program is solved by pairwise steps within
the blocks instead, in sweeps that call no oracle, from the solution of the pass before. How well it is
solved, and what :math:`\epsilon` is, follows the duality gap found on the way: both are a share of it.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper
from maxmargin.methods._planes import has_plane_room, include_corner
from maxmargin.methods._pool import SIZE
from maxmargin.methods._protocol import (
    BROKEN,
    DONE,
    Carry,
    Point,
    advance,
    carried,
    dual_weights,
    has_room,
    is_sound,
    mean_margin,
    moves_blocks,
    point,
    seek,
    start,
    step,
)
from maxmargin.methods._sweep import sweep_all
from maxmargin.methods.pairwise import ActiveState, Pairwise, move_block
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import score, sizes

# Of the duality gap that a pass finds: how much may be left of the program's own gap, and by how much a hinge
# must exceed its working set in the next pass: what is below adds up to no more than these two shares.
# Most of a more exact solution would be undone by planes to come.
_SHARE = 0.3
_MOST_SWEEPS = 100


class NSlackCuttingPlane(NamedTuple):
    """The n-slack cutting-plane method: a working set for each example, and one quadratic program for all.

    A pass calls every oracle once and adds up to n planes. Nothing is dropped: memory grows with the number
    of planes, each as large as the statistics of an output. The program is solved to three tenths of the
    duality gap, by up to 100 sweeps, each of which costs about a pass without its oracle calls: a method for
    dear oracles, of which it makes few calls, and for lam that is not too small, which takes many sweeps.

    Parameters
    ----------
    lam : float
        Regularisation, > 0.
    """

    lam: float


class Collect(NamedTuple):
    """The first part of a pass: planes violated by more than ``eps`` are added; no block moves."""

    inner: Pairwise
    eps: float


class Settle(NamedTuple):
    """The second part: blocks move within their working sets; no oracle is called."""

    inner: Pairwise


class WorkingState(NamedTuple):
    """Weights and working sets, and the sum of the block gaps that a sweep has met, in ``gap[0]``."""

    inner: ActiveState
    gap: FloatArray


class NSlackState(NamedTuple):
    """What moves; the mean block gap of the last pass, which is its duality gap; and the number of passes."""

    working: WorkingState
    gap: float
    passes: int

    @property
    def inner(self) -> ActiveState:
        """Weights and working sets."""
        return self.working.inner


@start.register(NSlackCuttingPlane)
def n_slack_cutting_plane_start(method: NSlackCuttingPlane, problem: Any) -> NSlackState:
    return _begun(problem, method, start(_inner(method), problem))


def _inner(method: NSlackCuttingPlane) -> Pairwise:
    return Pairwise(method.lam)


def _begun(problem: Any, method: NSlackCuttingPlane, inner: ActiveState) -> NSlackState:
    """Return the state with which a run begins, its sweeps compiled before the run's clock starts."""
    working, nobody = WorkingState(inner, np.zeros(1)), np.zeros(0, dtype=np.int64)
    for part in (Collect(_inner(method), 0.0), Settle(_inner(method))):
        sweep_all(problem, part, working, nobody)
    return NSlackState(working, 0.0, 0)


@has_room.register(Collect)
def collect_has_room(method, state, problem, i):
    return has_plane_room(state.inner.planes, i, sizes(problem).parts)


@has_room.register(Settle)
def settle_has_room(method, state, problem, i):
    return True


@seek.register(Settle)
def settle_seek(method, state, problem, i, w, scratch):
    score(problem, i, w, scratch.theta)
    return 0.0, 0.0


@step.register(Collect)
def collect_step(method, state, problem, i, loss_y, hinge, scratch):
    planes = state.inner.planes
    mean = mean_margin(method.inner, state.inner, i, scratch.theta)
    if not is_sound(problem, hinge - mean, loss_y + abs(hinge) + abs(mean), scratch):
        return BROKEN
    state.gap[0] += hinge - mean
    if hinge > _largest_margin(planes, i) + method.eps:
        include_corner(planes, i, loss_y, hinge, scratch.corner)
    return DONE


@step.register(Settle)
def settle_step(method, state, problem, i, loss_y, hinge, scratch):
    mean = mean_margin(method.inner, state.inner, i, scratch.theta)
    gap = _largest_margin(state.inner.planes, i) - mean
    state.gap[0] += gap
    if gap > 0.0:
        move_block(method.inner, state.inner, problem, i, gap, scratch)
    return DONE


@helper
def _largest_margin(planes, i):
    """The largest margin of the planes of block i, which are measured."""
    largest = -np.inf
    for c in range(planes.extent[i, SIZE]):
        largest = max(largest, planes.work.margin[c])
    return largest


@advance.register(NSlackCuttingPlane)
def n_slack_cutting_plane_advance(
    method: NSlackCuttingPlane, state: NSlackState, problem: Any, visits: Visits | IntArray
) -> NSlackState:
    n, inner = sizes(problem).examples, _inner(method)
    rng = np.random.default_rng(state.passes)
    working, gap = _swept(problem, Collect(inner, _SHARE * state.gap), state.working, np.arange(n))
    for _ in range(_MOST_SWEEPS):
        working, left = _swept(problem, Settle(inner), working, rng.permutation(n))
        if left <= _SHARE * gap:
            break
    return NSlackState(working, gap, state.passes + 1)


def _swept(
    problem: Any, part: Collect | Settle, working: WorkingState, order: IntArray
) -> tuple[WorkingState, float]:
    """Return the state after a sweep, and the mean of the block gaps with which its visits began."""
    working.gap[0] = 0.0
    working = sweep_all(problem, part, working, order)
    return working, float(working.gap[0]) / len(order)


@carried.register(NSlackCuttingPlane)
def n_slack_cutting_plane_carried(
    method: NSlackCuttingPlane, state: NSlackState, problem: Any, carry: Carry
) -> NSlackState:
    return _begun(problem, method, carried(_inner(method), state.inner, problem, carry))


@dual_weights.register(NSlackCuttingPlane)
def n_slack_cutting_plane_dual_weights(
    method: NSlackCuttingPlane, state: NSlackState, problem: Any
) -> FloatArray:
    weights: FloatArray = dual_weights(_inner(method), state.inner, problem)
    return weights


@point.register(NSlackCuttingPlane)
def n_slack_cutting_plane_point(method: NSlackCuttingPlane, state: NSlackState, problem: Any) -> Point:
    return point(_inner(method), state.inner, problem)


@moves_blocks.register(NSlackCuttingPlane)
def n_slack_cutting_plane_moves_blocks(method: NSlackCuttingPlane) -> bool:
    return False
