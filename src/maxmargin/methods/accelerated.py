r"""Acceleration: a sequence of better conditioned problems whose answers are extrapolated and averaged.

With a prox-centre v the problem :math:`P_v(w) = P(w) + \frac{\kappa}{2} \|w - v\|^2` has the same dual
variables as P, the weights

.. math:: w = \frac{\kappa v + g}{\lambda + \kappa}, \qquad
          g = \frac1n \sum_i \sum_y \alpha_i(y) \, \psi_i(y)

and the block steps of P with :math:`\lambda + \kappa` instead of :math:`\lambda`. After each pass, the
centre moves (Catalyst; Lin, Mairal and Harchaoui 2015):

.. math:: v \leftarrow w_k + \beta (w_k - w_{k-1}), \qquad
          \beta = b \, \frac{1 - \sqrt q}{1 + \sqrt q}, \qquad q = \frac{\lambda}{\lambda + \kappa} .

The certificate is always that of P, because :math:`\alpha` is feasible for the dual of P, with the value
:math:`\ell - \|g\|^2 / (2 \lambda)`. As g and w fluctuate, both ends of the gap come from averages:

* the dual from a running mean of :math:`(g, \ell)`, which each pass updates by an exact line search, so that
  the bound never decreases;
* the primal from the mean of the weights, with weight :math:`j^3` for snapshot j, a few snapshots per pass.

**The choice of kappa.** A long step of the line search shows that the last pass made much progress, and that
a larger :math:`\kappa` would be faster. A short step shows that passes fluctuate around their mean, and that
a smaller one would be. So :math:`\kappa` is raised or lowered when the step leaves a band. It starts at
:math:`c \sqrt{\lambda R^2 / (n \bar L)}`, which has the right units: :math:`R^2` and :math:`\bar L` are the
mean squared length and loss of the first corners. With :math:`\kappa \to 0` this becomes the
inner method, so it cannot stall for ever.
"""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import is_wrapper
from maxmargin.methods import protocol
from maxmargin.methods._walks import affordable_walks, mix, move_on, subtract_mean
from maxmargin.methods.block_exact import BlockExact, squared_lengths
from maxmargin.methods.block_frank_wolfe import BlockFrankWolfe
from maxmargin.methods.composition import check_inner
from maxmargin.methods.pairwise import Away, Pairwise
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.sampling import Visits, n_visits, some_visits
from maxmargin.methods.steps import LineSearch, step_size
from maxmargin.methods.sweep import advance, sweep_all
from maxmargin.problems.feature_map import inner, is_projected, map_sizes, projected, settle, unprojected
from maxmargin.problems.problem import AnyProblem

_FIRST_KAPPA = 1.6  # c
_MOMENTUM = 0.3  # b
_BAND = 0.15, 0.5  # of the smoothed step
_SMOOTHING = 0.4
_FACTOR = 1.5
_BEFORE_RAISING, _BEFORE_LOWERING = 3, 5  # passes at one kappa
_POWER = 3
_CORNERS = 64
_SMALL = 2.0**-100  # lam n of the steps that measure corners
_SNAPSHOTS = 8  # at most, in a pass


class _Accelerated(NamedTuple):
    inner: Any
    kappa: float | None


class Accelerated(_Accelerated):
    """An accelerated block method: the fastest way to a small gap.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise or Away, or one of them cached or divided
        The method that moves the blocks; `Pairwise` is recommended.
    kappa : float, optional
        Fixed strength of the proximal term; adapted by default. ``kappa=0`` gives the inner method.
    """

    __slots__ = ()

    def __new__(cls, inner: Any, kappa: float | None = None) -> "Accelerated":
        check_inner(cls.__name__, inner)
        if kappa is not None and not (isinstance(kappa, Real) and 0.0 <= float(kappa) < np.inf):
            raise ValueError(f"Accelerated: kappa must be a number >= 0 or None, got {kappa!r}.")
        return super().__new__(cls, inner, kappa)


class Momentum(NamedTuple):
    """The numbers of an accelerated run.

    Attributes
    ----------
    kappa : float
    visits : int
        Blocks visited in this pass.
    snapshots : int
        Snapshots in the mean of the weights.
    weight : float
        Their total weight.
    ell : float
        Dual loss of the mean dual point.
    step : float
        Smoothed step of its line search.
    falling : bool
        Whether it became smaller in the last pass.
    since : int
        Passes since kappa changed.
    """

    kappa: float
    visits: int = 0
    snapshots: int = 0
    weight: float = 0.0
    ell: float = 0.0
    step: float = 1.0
    falling: bool = False
    since: int = 0


class AcceleratedState(NamedTuple):
    """The state of the inner method, and the averages over passes.

    Attributes
    ----------
    inner : Any
        State of the inner method, at lam + kappa.
    centre, previous : arrays
        v, and the weights after the last pass.
    mean : array
        Mean of the weights, or of their images if weights are projections.
    dual : array
        g / lam of the mean dual point.
    difference : array
        Work space: the current dual point minus the mean one.
    momentum : Momentum
    """

    inner: Any
    centre: FloatArray
    previous: FloatArray
    mean: FloatArray
    dual: FloatArray
    difference: FloatArray
    momentum: Momentum


@protocol.start.register(Accelerated)
def accelerated_start(method: Accelerated, problem: AnyProblem) -> AcceleratedState:
    inner = protocol.start(method.inner, problem)
    centre, previous, mean, dual, difference = (
        np.zeros_like(protocol.weights(method.inner, inner)) for _ in range(5)
    )
    kappa = first_kappa(method, problem) if method.kappa is None else method.kappa
    return AcceleratedState(inner, centre, previous, mean, dual, difference, Momentum(float(kappa)))


def first_kappa(method: Accelerated, problem: AnyProblem) -> float:
    r"""Return the initial kappa, from the corners of a few examples at w = 0.

    The corners are measured by a step of each block from the truth, so that no kernel but that of the steps
    is compiled. After the step, the dual loss of block i is :math:`L_i \min(1, \lambda n L_i / R_i^2)`. With
    :math:`\lambda = \infty` this is :math:`L_i`, and a very small :math:`\lambda` gives :math:`R_i^2`.
    Exact steps with :math:`\lambda = \infty` leave the corners themselves in the blocks.

    Numbers that are not finite give zero: the steps of the run will detect them and name the example.
    """
    lam, n = protocol.regularisation(method), map_sizes(problem.map).examples
    examples = np.unique(np.linspace(0, n - 1, _CORNERS).astype(np.int64))
    try:
        losses, squares = _first_corners(_block_method(method), problem, examples)
    except (protocol.BrokenOracle, protocol.ScaleError):
        return 0.0
    if not (losses > 0.0 and 0.0 <= lam * squares < np.inf):
        return 0.0
    return _FIRST_KAPPA * float(np.sqrt(lam * squares / (losses * n)))


def _first_corners(method: Any, problem: AnyProblem, examples: IntArray) -> tuple[float, float]:
    r"""Return the sums of :math:`L_i` and of :math:`R_i^2`, the squared lengths of corners, at w = 0."""
    first = _first_step(method, problem, examples, np.inf)
    losses = first.ell[examples]
    with np.errstate(all="ignore"):
        if isinstance(method, BlockExact):
            return float(losses.sum()), squared_lengths(first, problem, examples)
        n = map_sizes(problem.map).examples
        shares = _first_step(method, problem, examples, _SMALL / n).ell[examples]
        moved = (shares > 0.0) & (shares < losses)
        squares = _SMALL * losses[moved] / shares[moved] * losses[moved]
    return float(losses.sum()), float(squares.sum())


def _first_step(method: Any, problem: AnyProblem, examples: IntArray, lam: float) -> Any:
    """Return the state after a step with line search of some blocks, each at w = 0."""
    steps = protocol.with_lam(method, lam)
    state = protocol.start(steps, problem)
    # The steps read few entries. Unlike `zeros_like`, `zeros` touches none of the others.
    zero = np.zeros(protocol.weights(steps, state).shape)
    return sweep_all(problem, steps, state, examples, at=zero)


def _block_method(method: Any) -> Any:
    """Return the method of the steps within its wrappers, or another one if its steps have no line search."""
    while is_wrapper(type(method)):
        method = method.inner
    return method if isinstance(method, Pairwise | Away | BlockExact) else BlockFrankWolfe(1.0)


@advance.register(Accelerated)
def accelerated_advance(
    method: Accelerated, state: AcceleratedState, problem: AnyProblem, visits: Visits | IntArray
) -> AcceleratedState:
    if method.kappa == 0.0:
        return _advance_inner(method, state, problem, visits)
    n, done, total = map_sizes(problem.map).examples, 0, n_visits(visits)
    every = _multiple(-(-n // affordable_walks(problem, _SNAPSHOTS)), protocol.grain(method, problem))
    while True:
        momentum = state.momentum
        ahead = min(n, (momentum.visits // every + 1) * every) - momentum.visits
        state = _advance_inner(method, state, problem, some_visits(visits, done, done + ahead))
        done = min(done + ahead, total)
        reached = state.momentum.visits
        if reached == n:
            state = _after_pass(method, state, problem)
        elif reached == momentum.visits + ahead:
            state = _with_snapshot(method, state, problem)
        if done == total:
            return state


def _multiple(length: int, of: int) -> int:
    """Return the smallest multiple of ``of`` that is at least ``length``."""
    return -(-length // of) * of


def _advance_inner(
    method: Accelerated, state: AcceleratedState, problem: AnyProblem, visits: Visits | IntArray
) -> AcceleratedState:
    """Make visits within one pass, at lam + kappa."""
    lam, momentum = protocol.regularisation(method), state.momentum
    inner = advance(protocol.with_lam(method.inner, lam + momentum.kappa), state.inner, problem, visits)
    return state._replace(inner=inner, momentum=momentum._replace(visits=momentum.visits + n_visits(visits)))


def _with_snapshot(method: Accelerated, state: AcceleratedState, problem: AnyProblem) -> AcceleratedState:
    """Add the current weights to their mean."""
    momentum = _with_one_more(state.momentum)
    mix(_share(momentum), unprojected(problem.map, protocol.weights(method.inner, state.inner)), state.mean)
    return state._replace(momentum=momentum)


def _with_one_more(momentum: Momentum) -> Momentum:
    """Count another snapshot."""
    snapshots = momentum.snapshots + 1
    return momentum._replace(snapshots=snapshots, weight=momentum.weight + float(snapshots) ** _POWER)


def _share(momentum: Momentum) -> float:
    """Return the share of the last snapshot in the mean."""
    return momentum.snapshots**_POWER / momentum.weight


def _after_pass(method: Accelerated, state: AcceleratedState, problem: AnyProblem) -> AcceleratedState:
    """End a pass: update the mean dual point by an exact line search, adapt kappa, extrapolate, average."""
    lam, w = protocol.regularisation(method), protocol.weights(method.inner, state.inner)
    momentum = _with_one_more(state.momentum)
    ell, r = protocol.dual_loss(method.inner, state.inner), momentum.kappa / lam
    phi, difference = problem.map, state.difference
    v = unprojected(phi, w)
    subtract_mean(v, state.centre, state.dual, r, difference)
    slope = ell - momentum.ell - lam * inner(phi, difference, projected(phi, state.dual))
    gamma = step_size(LineSearch(), slope, lam * inner(phi, difference, difference), 0, 1)
    momentum = momentum._replace(visits=0, ell=momentum.ell + gamma * (ell - momentum.ell))
    adapted = _adapted(momentum, gamma) if method.kappa is None else momentum
    root_q = np.sqrt(lam / (lam + adapted.kappa))
    beta = _MOMENTUM * (1.0 - root_q) / (1.0 + root_q)
    new_r = adapted.kappa / lam
    cut = projected(phi, v) - v if is_projected(phi) else None
    vectors = state.centre, state.previous, state.mean, state.dual
    move_on(v, *vectors, r, _share(momentum), gamma, beta, new_r)
    if cut is not None:
        _follow_projection(cut, v, state, beta, new_r)
    settle(phi, v, w)
    return state._replace(momentum=adapted)


def _follow_projection(
    cut: FloatArray, v: FloatArray, state: AcceleratedState, beta: float, r: float
) -> None:
    """Correct an extrapolation of images by what the projection cut off: centres are made from weights."""
    state.previous[:] += cut
    state.centre[:] += (1.0 + beta) * cut
    v += r / (1.0 + r) * (1.0 + beta) * cut


def _adapted(momentum: Momentum, gamma: float) -> Momentum:
    """Record the step of the line search; raise or lower kappa if the smoothed step has left its band.

    Far from the optimum, steps are small but growing: this is no reason to lower kappa.
    """
    low, high = _BAND
    step, since = momentum.step + _SMOOTHING * (gamma - momentum.step), momentum.since + 1
    momentum = momentum._replace(step=step, falling=step < momentum.step, since=since)
    if step > high and since > _BEFORE_RAISING:
        return momentum._replace(kappa=momentum.kappa * _FACTOR, since=0)
    if step < low and momentum.falling and since > _BEFORE_LOWERING:
        return momentum._replace(kappa=momentum.kappa / _FACTOR, since=0)
    return momentum


@protocol.point.register(Accelerated)
def accelerated_point(method: Accelerated, state: AcceleratedState, problem: AnyProblem) -> Point:
    if method.kappa == 0.0:
        return protocol.point(method.inner, state.inner, problem)
    phi, w = problem.map, protocol.weights(method.inner, state.inner)
    dual = projected(phi, state.dual)
    norm2 = inner(phi, dual, dual)
    if state.momentum.snapshots == 0:
        return Point(w, state.momentum.ell, norm2)
    return Point(projected(phi, state.mean), state.momentum.ell, norm2, (w,))


@protocol.carried.register(Accelerated)
def accelerated_carried(
    method: Accelerated, state: AcceleratedState, problem: AnyProblem, carry: Carry
) -> AcceleratedState:
    """Keep the ratio of kappa to lam, so that all weights get the same factor; restart their mean."""
    lam, old = protocol.regularisation(method), state.momentum
    within, n = protocol.carried(method.inner, state.inner, problem, carry), map_sizes(problem.map).examples
    centre, previous, mean, dual = (
        protocol.carried_w(vector, carry) for vector in (state.centre, state.previous, state.mean, state.dual)
    )
    kappa, ell = old.kappa * lam / carry.lam, carry.share * old.ell * carry.n / n
    new_kappa = kappa if method.kappa is None else method.kappa
    w = protocol.weights(method.inner, within)
    v = unprojected(problem.map, w)
    v += (new_kappa - kappa) / (lam + new_kappa) * (centre - v)
    settle(problem.map, v, w)
    snapshots = min(old.snapshots, 1)
    momentum = Momentum(new_kappa, snapshots=snapshots, weight=float(snapshots), ell=ell)
    return AcceleratedState(within, centre, previous, mean, dual, np.zeros_like(dual), momentum)


@protocol.traits.register(Accelerated)
def accelerated_traits(method: Accelerated) -> Traits:
    return protocol.traits(method.inner)._replace(has_step=False, is_average=True, wraps=True)
