r"""Acceleration: a sequence of better conditioned problems whose answers are extrapolated and averaged.

With a prox-centre v the problem :math:`P_v(w) = P(w) + \frac{\kappa}{2} \|w - v\|^2` has the same dual
variables as P, the weights

.. math:: w = \frac{\kappa v + g}{\lambda + \kappa}, \qquad
          g = \frac1n \sum_i \sum_y \alpha_i(y) \, \psi_i(y)

and the block steps of P with :math:`\lambda + \kappa` instead of :math:`\lambda`. After each pass, the
centre moves as in Catalyst (Lin, Mairal and Harchaoui 2015), but less far, by a factor b < 1:

.. math:: v \leftarrow w_k + \beta (w_k - w_{k-1}), \qquad
          \beta = b \, \frac{1 - \sqrt q}{1 + \sqrt q}, \qquad q = \frac{\lambda}{\lambda + \kappa} .

The certificate is always that of P, because :math:`\alpha` is feasible for the dual of P, with the value
:math:`\ell - \|g\|^2 / (2 \lambda)`. As g and w fluctuate, both ends of the gap come from averages:

* the dual from a running mean of :math:`(g, \ell)`, which each pass updates by an exact line search, so that
  the bound never decreases;
* the primal from the mean of the weights over time t, in passes, with density :math:`t^2`. It is made from
  snapshots: as many per pass as cost little, and a few more in the first passes, when weights change most.
  Kernels take them between two visits, where possible; otherwise each snapshot needs a return to Python.

**The choice of kappa.** A long step of the line search shows that the last pass made much progress, and that
a larger :math:`\kappa` would be faster. A short step shows that passes fluctuate around their mean, and that
a smaller :math:`\kappa` would be faster. So :math:`\kappa` is raised or lowered when the step leaves a band.
It starts at about :math:`2 c \sqrt{\lambda / (n \bar s)}` (``first_kappa``), which has the
right units: :math:`\bar s` is the mean of :math:`H_i / R_i^2`, the hinge over the squared length of the
corner, which is the step of block i up to a factor :math:`\lambda n`. It is measured by a few steps before
the run. With :math:`\kappa = 0` this is the inner method. No rate is known for an adapted :math:`\kappa` and
one pass per centre: that the method does not stall is observed, not proved.

**Penalties.** If weights are a proximal map of the image v (``maxmargin.structures.wrappers``), all of this
happens to images, and weights follow. Then :math:`P_v` adds :math:`\frac\kappa\lambda` times the Bregman
distance of :math:`\lambda R` instead of the squared distance, whose weights have the same threshold for every
:math:`\kappa`; or, with signs alone, the squared distance from a centre that is made of weights.

**The first pass.** Its centre is zero, so :math:`\kappa` biases the weights towards zero. It is therefore
smaller in this pass: about half of that of the second pass, if that is larger than :math:`\lambda`. Until all
blocks have been visited, g is a sum over some of them, and weights computed with :math:`\lambda` would be too
short; the blocks visited first would compensate by steps that are too long. So after a fraction t of the
first pass, :math:`t \lambda + \kappa` takes the place of :math:`\lambda + \kappa`: the blocks visited so far
have the weights of a problem of their own.

**The second pass.** The centre moves from zero to about the weights of the first pass. As the dual variables
belong to the old centre, the weights could double in length, until their blocks are visited and compensate.
So the centre moves in parts as the blocks are visited, one part at each snapshot.
"""

import math
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import is_wrapper, python_generic
from maxmargin.compiling.loops import add_scaled
from maxmargin.methods import protocol
from maxmargin.methods.between_visits import NO_ACCELERATION, Acceleration
from maxmargin.methods.block_exact import BlockExact, squared_lengths
from maxmargin.methods.block_frank_wolfe import BlockFrankWolfe
from maxmargin.methods.momentum import (
    Momentum,
    adapted_kappa,
    affordable_updates,
    difference_products,
    mix_in_slices,
    move_on,
    noted,
    snapshot_share,
)
from maxmargin.methods.pairwise import Away, Pairwise
from maxmargin.methods.protocol import Carry, Point, Traits, check_inner
from maxmargin.methods.rules import LineSearch, Visits, n_visits, some_visits, step_size
from maxmargin.methods.sweep import advance, is_swept, sweep_all, sweep_in_time
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.limits import deadline_at, deadline_of_share
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import (
    inner,
    is_homogeneous,
    is_projected,
    map_sizes,
    projected,
    settle,
    unprojected,
)
from maxmargin.structures.problem import AnyProblem

_MOMENTUM = 0.3  # the b of the formula


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

    def __new__(cls, inner: object, kappa: float | None = None) -> "Accelerated":
        check_inner(cls.__name__, inner)
        if kappa is not None and not (isinstance(kappa, Real) and 0.0 <= float(kappa) < np.inf):
            raise ValueError(f"Accelerated: kappa must be a number >= 0 or None, got {shown(kappa)}.")
        return super().__new__(cls, inner, kappa)


class AcceleratedState(NamedTuple):
    """The state of the inner method, and the averages over passes.

    Attributes
    ----------
    inner : Any
        State of the inner method, at lam + kappa.
    centre, previous : arrays
        v, and the weights after the last pass.
    mean : array
        Mean of the weights, or of their images if weights are a proximal map; so are all these vectors.
    dual : array
        g / lam of the mean dual point.
    difference : array
        Workspace for the current dual point minus the mean one. In the second pass, by how much the
        centre moves in it.
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
    shape = unprojected(problem.map, protocol.weights(method.inner, inner)).shape
    centre, previous, mean, dual, difference = (np.zeros(shape) for _ in range(5))
    if method.kappa is not None:
        return AcceleratedState(inner, centre, previous, mean, dual, difference, Momentum(method.kappa))
    kappa = first_kappa(problem, method) - protocol.regularisation(method)
    momentum = _grown(method, Momentum(kappa), problem)
    return AcceleratedState(inner, centre, previous, mean, dual, difference, momentum)


@advance.register(Accelerated)
def accelerated_advance(
    method: Accelerated, state: AcceleratedState, problem: AnyProblem, visits: Visits | IntArray
) -> AcceleratedState:
    if method.kappa == 0.0:
        return _advance_inner(method, state, problem, visits)
    n, done, total = map_sizes(problem.map).examples, 0, n_visits(visits)
    inside = has_stretches_inside(method, problem)
    while True:
        end = n if inside else next_stretch(method, state.momentum, problem)
        ahead = end - state.momentum.visits
        some = visits if done == 0 and total <= ahead else some_visits(visits, done, done + ahead)
        state = (_advance_inside if inside else _advance_inner)(method, state, problem, some)
        done = min(done + ahead, total)
        if state.momentum.visits == n:
            state = _after_pass(method, state, problem)
        elif state.momentum.visits == end:
            state = _with_snapshot(method, state, problem)
        if done == total:
            return state


def _advance_inner(
    method: Accelerated, state: AcceleratedState, problem: AnyProblem, visits: Visits | IntArray
) -> AcceleratedState:
    """Make visits within one stretch of a pass, at lam + kappa."""
    momentum = state.momentum
    after = momentum._replace(visits=momentum.visits + n_visits(visits))
    inner = protocol.with_lam(method.inner, protocol.regularisation(method) + momentum.kappa)
    return state._replace(inner=advance(inner, state.inner, problem, visits), momentum=after)


def _advance_inside(
    method: Accelerated, state: AcceleratedState, problem: AnyProblem, visits: Visits | IntArray
) -> AcceleratedState:
    """Make visits within one pass, where kernels begin the stretches."""
    stretches = stretches_of(method, state, problem)
    moved = sweep_all(problem, method.inner, state.inner, visits, between=stretches)
    time = int(stretches.last[0]) / stretches.examples
    done = state.momentum.visits + n_visits(visits)
    momentum = state.momentum._replace(kappa=float(stretches.kappa[0]), visits=done, time=time)
    return state._replace(inner=moved, momentum=momentum)


def _with_snapshot(method: Accelerated, state: AcceleratedState, problem: AnyProblem) -> AcceleratedState:
    """Add the current weights to their mean; in the first passes, change them as these passes need."""
    n, w = map_sizes(problem.map).examples, protocol.weights(method.inner, state.inner)
    v = unprojected(problem.map, w)
    mix_in_slices(snapshot_share(state.momentum, n), v, state.mean)
    before, momentum = state.momentum, noted(state.momentum, n)
    if method.kappa is None and momentum.passes == 0:
        momentum = _grown(method, momentum, problem)
        lam = protocol.regularisation(method)
        v *= (lam + before.kappa) / (lam + momentum.kappa)
        settle(problem.map, v, w)
    elif method.kappa is None and momentum.passes == 1:
        part = (next_stretch(method, momentum, problem) - momentum.visits) / n
        _move_centre(method, state, momentum.kappa, part, v)
        settle(problem.map, v, w)
    return state._replace(momentum=momentum)


def _move_centre(
    method: Accelerated, state: AcceleratedState, kappa: float, part: float, v: FloatArray
) -> None:
    """Move the centre by a part of its way in the second pass, and the image v of the weights with it."""
    add_scaled(part, state.difference, state.centre)
    add_scaled(part * kappa / (protocol.regularisation(method) + kappa), state.difference, v)


def _grown(method: Accelerated, momentum: Momentum, problem: AnyProblem) -> Momentum:
    """Raise kappa by the fraction of lam for the blocks up to the next snapshot of the first pass."""
    more = next_stretch(method, momentum, problem) - momentum.visits
    share = more / map_sizes(problem.map).examples
    return momentum._replace(kappa=momentum.kappa + share * protocol.regularisation(method))


def _after_pass(method: Accelerated, state: AcceleratedState, problem: AnyProblem) -> AcceleratedState:
    """End a pass: update the mean dual point by an exact line search, adapt kappa, extrapolate, average."""
    lam, w = protocol.regularisation(method), protocol.weights(method.inner, state.inner)
    momentum = state.momentum
    share = snapshot_share(momentum, map_sizes(problem.map).examples)
    ell, r = protocol.dual_loss(method.inner, state.inner), momentum.kappa / lam
    phi = problem.map
    v = unprojected(phi, w)
    along, curvature = difference_products(phi, v, state.centre, state.dual, r, state.difference)
    gamma = step_size(LineSearch(), ell - momentum.ell - lam * along, lam * curvature, 0, 1)
    passes, ell = momentum.passes + 1, momentum.ell + gamma * (ell - momentum.ell)
    momentum = momentum._replace(passes=passes, visits=0, time=float(passes), ell=ell)
    adapted = adapted_kappa(momentum, gamma) if method.kappa is None else momentum
    if method.kappa is None and passes == 1:
        adapted = adapted._replace(kappa=second_kappa(lam, momentum.kappa))
    root_q = math.sqrt(lam / (lam + adapted.kappa))
    beta = _MOMENTUM * (1.0 - root_q) / (1.0 + root_q)
    new_r = adapted.kappa / lam
    # Centres are images, in which thresholds do not depend on kappa. With signs alone, weights serve better.
    cut = projected(phi, v)[: len(v)] - v if is_projected(phi) and is_homogeneous(phi) else None
    vectors = state.centre, state.previous, state.mean, state.dual
    move_on(v, *vectors, (r, share, gamma, beta, new_r))
    if cut is not None:
        _follow_projection(cut, v, state, beta, new_r)
    if method.kappa is None and passes == 1:
        state.difference[:] = state.centre  # it was zero
        part = next_stretch(method, adapted, problem) / map_sizes(phi).examples
        _move_centre(method, state, adapted.kappa, part - 1.0, v)
    elif passes == 2:
        state = state._replace(difference=np.zeros(v.shape))  # its memory is free again
    settle(phi, v, w)
    return state._replace(momentum=adapted)


def _follow_projection(
    cut: FloatArray, v: FloatArray, state: AcceleratedState, beta: float, r: float
) -> None:
    """Correct an extrapolation of images by what the projection cut off: centres are made from weights."""
    state.previous[:] += cut
    state.centre[:] += (1.0 + beta) * cut
    v += r / (1.0 + r) * (1.0 + beta) * cut


@protocol.point.register(Accelerated)
def accelerated_point(method: Accelerated, state: AcceleratedState, problem: AnyProblem) -> Point:
    if method.kappa == 0.0:
        return protocol.point(method.inner, state.inner, problem)
    phi, w = problem.map, protocol.weights(method.inner, state.inner)
    dual = projected(phi, state.dual)
    norm2 = inner(phi, dual, dual)
    if state.momentum.time == 0.0:
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
        protocol.carried_image(vector, carry)
        for vector in (state.centre, state.previous, state.mean, state.dual)
    )
    kappa, ell = old.kappa * lam / carry.lam, carry.share * old.ell * carry.n / n
    new_kappa = _carried_kappa(method, old, kappa, problem)
    w = protocol.weights(method.inner, within)
    v = unprojected(problem.map, w)
    v += (new_kappa - kappa) / (lam + new_kappa) * (centre - v)
    settle(problem.map, v, w)
    momentum = Momentum(new_kappa, passes=1, time=1.0 if old.time > 0.0 else 0.0, ell=ell)
    return AcceleratedState(within, centre, previous, mean, dual, np.zeros_like(dual), momentum)


def _carried_kappa(method: Accelerated, old: Momentum, kappa: float, problem: AnyProblem) -> float:
    """Return the next kappa: the old one, unless it is fixed or the first pass was not finished."""
    if method.kappa is not None:
        return method.kappa
    if old.passes > 0:
        return kappa
    return second_kappa(protocol.regularisation(method), first_kappa(problem, method))


@protocol.traits.register(Accelerated)
def accelerated_traits(method: Accelerated) -> Traits:
    return protocol.traits(method.inner)._replace(has_step=False, is_average=True, wraps=True)


_IN_KERNELS = 512  # largest number of snapshots in a pass, where kernels take them
# Stretches, each of which ends with a snapshot: the smallest number in the first pass, and the largest where
# kernels take snapshots between them, too, and where they do not; 1/k of these in pass k.
_EARLY = 8, 16, 64
_SNAPSHOTS = 8  # largest number of stretches in later passes, where kernels take no snapshots


def next_stretch(method: "Accelerated", momentum: Momentum, problem: AnyProblem) -> int:
    """Return the number of visits in this pass at which the next stretch begins."""
    _, few, many = _EARLY
    part = momentum.passes + 1
    most = few // part if has_stretches_inside(method, problem) else max(many // part, _SNAPSHOTS)
    length = _length(method, part, affordable_updates(problem, most), problem)
    return min(map_sizes(problem.map).examples, (momentum.visits // length + 1) * length)


def _length(method: "Accelerated", part: int, most: int, problem: AnyProblem) -> int:
    """Return the number of visits in a stretch of pass ``part``, which can afford ``most`` stretches."""
    n = map_sizes(problem.map).examples
    length, grain = -(-n // max(most, min(_EARLY[0] // part, n))), protocol.grain(method, problem)
    return -(-length // grain) * grain


def stretches_of(method: "Accelerated", state: "AcceleratedState", problem: AnyProblem) -> Acceleration:
    """Return what kernels do in the rest of this pass, at the beginnings of stretches and between them."""
    momentum, n = state.momentum, map_sizes(problem.map).examples
    part, begin = momentum.passes + 1, momentum.passes * n
    length = _length(method, part, affordable_updates(problem, _EARLY[1] // part), problem)
    last = [round(momentum.time * n), begin + momentum.visits // length * length]
    usual = Acceleration(
        before=begin + momentum.visits,
        interval=-(-n // affordable_updates(problem, _IN_KERNELS)),
        stretch=length,
        end=begin + n,
        examples=n,
        last=np.array(last, dtype=np.int64),
        mean=state.mean,
        kappa=np.array([momentum.kappa]),
    )
    if method.kappa is not None or momentum.passes > 1:
        return usual
    lam = protocol.regularisation(method)
    if momentum.passes == 0:
        return usual._replace(growth=lam)
    follow = momentum.kappa / (lam + momentum.kappa)
    return usual._replace(centre=state.centre, centre_move=state.difference, follow=follow)


def has_stretches_inside(method: "Accelerated", problem: AnyProblem) -> bool:
    """Whether kernels take snapshots and begin stretches: not if weights are projected.

    With projections, the mean is that of their images. Kernels add kappa to the field ``lam`` of a method.
    """
    is_plain = is_swept(method.inner) and "lam" in getattr(method.inner, "_fields", ())
    return method.kappa != 0.0 and is_plain and not is_projected(problem.map)


_FACTOR = 1.25  # the c of the formula
_EXAMPLES = 8, 64  # fewest and most examples that are measured
_PART = 8  # one example in this many is measured, within these limits
_SMALL = 2.0**-100  # factor of lam n, roughly, in the steps that are measured
_SMALLEST = 2.0**-1000  # its inverse is still finite
_ROUNDING = 1e-9
_SHARE = 0.02  # fraction of a time limit for a step of each example


def second_kappa(lam: float, first: float) -> float:
    """Return the kappa of the second pass, given that of the first: the root of the formula."""
    unit = _power_below(lam)  # as in `_kappa`
    lam, double = lam / unit, 2.0 * first / unit
    return unit * (math.sqrt(0.25 * lam**2 + double**2) - 0.5 * lam)


@python_generic
def first_kappa(problem: AnyProblem, method: object) -> float:
    r"""Return the kappa of the first pass of a method, which may be wrapped.

    .. math:: \kappa_1^2 = c^2 \frac{\lambda}{n \bar s}, \qquad \kappa (\lambda + \kappa) = (2 \kappa_1)^2,
              \qquad \bar s = \text{mean of } \frac{H_i}{R_i^2} \text{ over a few examples,}

    where :math:`\kappa_1` is that of the first pass, and :math:`\kappa` that of the second.

    This balances two errors of a pass with the centre at zero. What is left to optimise is about :math:`R^2 /
    ((\lambda + \kappa) n)`, and the term :math:`\frac{\kappa}{2} \|w\|^2` adds a bias, where :math:`\lambda
    \|w\|^2` is of the order of the hinges. In the first pass :math:`t \lambda`, which is zero at first, takes
    the place of :math:`\lambda`. No centre compensates the bias of this pass, so it weighs more.

    Here :math:`H_i` is the hinge of example i and :math:`R_i = \|\Phi_i \psi_i\|` the length of its corner. A
    step from the truth to the corner has the size :math:`\min(1, \lambda n H_i / R_i^2)`.

    This is measured by taking steps, so that no other kernel is compiled: with a very small :math:`\lambda`,
    no step reaches length one, and each takes its example's hinge to zero.

    Another kind of problem may measure it elsewhere.
    """
    return kappa_by_steps(problem, method, map_sizes(problem.map).examples)


def kappa_by_steps(problem: AnyProblem, method: object, n: int) -> float:
    """Return the first kappa for n examples, measured on a problem of some of them.

    A step of each of a few examples is taken, one after another from w = 0, and the later half of them is
    measured: at zero, where all outputs score alike, corners can be many times longer than those that follow.
    Numbers that are not finite give zero: the run will detect them and name the example. With a time limit,
    fewer examples are measured.
    """
    lam, here = protocol.regularisation(method), map_sizes(problem.map).examples
    steps = _block_method(method)
    fewest, most = _EXAMPLES
    number = min(max(here // _PART, fewest), most, here)
    examples = np.arange(number) * (here - 1) // max(number - 1, 1)
    measure = _exact_step_size if isinstance(steps, BlockExact) else _step_size
    try:
        with np.errstate(all="ignore"):
            return _kappa(lam, n, measure(steps, problem, examples, lam))
    except (protocol.BrokenOracle, protocol.ScaleError):
        return 0.0


def _kappa(lam: float, n: int, size: float) -> float:
    """Return the first kappa for the mean size of steps; zero if it is undefined."""
    # In units of a power of two, as squares of lam may be out of range.
    unit = _power_below(lam)
    lam, size = lam / unit, size * unit
    kappa = unit * _FACTOR * math.sqrt(lam / (n * size)) if size > 0.0 else 0.0
    return kappa if 0.0 < kappa < math.inf else 0.0


def _power_below(lam: float) -> float:
    """Return the largest power of two that is not above lam."""
    return math.ldexp(0.5, math.frexp(lam)[1])


def _step_size(method: Any, problem: AnyProblem, examples: IntArray, lam: float) -> float:
    r"""Return the mean of :math:`H_i / R_i^2` over the later examples whose best output is not the truth."""
    n = map_sizes(problem.map).examples
    small, gamma = max(_SMALL * _power_below(lam * n), _SMALLEST), np.zeros(n)
    tiny = protocol.with_lam(method, small / n)
    _, examples = _after_steps(tiny, problem, examples, Acceleration(gamma=gamma))
    sizes: list[float] = gamma[examples].tolist()  # so few numbers take less time without NumPy
    # An output that ties with the truth may seem the better one by rounding.
    least = _ROUNDING * max(sizes, default=0.0)
    moved = [size for size in sizes if least < size < 1.0]
    later = moved[len(moved) // 2 :]
    return sum(later) / len(later) / small if later else 0.0


def _exact_step_size(method: Any, problem: AnyProblem, examples: IntArray, lam: float) -> float:
    r"""Return :math:`L_i / R_i^2` at w = 0: with lam = inf, exact steps leave the corners in the blocks."""
    corners, examples = _after_steps(protocol.with_lam(method, np.inf), problem, examples)
    squares = squared_lengths(corners, problem, examples)
    return float(corners.ell[examples].sum()) / squares if squares > 0.0 else 0.0


def _after_steps(
    method: object, problem: AnyProblem, examples: IntArray, between: Acceleration = NO_ACCELERATION
) -> tuple[Any, IntArray]:
    """Return the state after a step of some blocks, from the truth, and which."""
    with deadline_at(deadline_of_share(_SHARE)):
        state, done = sweep_in_time(
            problem, method, protocol.start(method, problem), examples, between=between
        )
    return state, examples[:done]


def _block_method(method: Any) -> Any:
    """Return the method of the steps within its wrappers, or another one if its steps have no line search."""
    while is_wrapper(type(method)):
        method = method.inner
    return method if isinstance(method, Pairwise | Away | BlockExact) else BlockFrankWolfe(1.0)
