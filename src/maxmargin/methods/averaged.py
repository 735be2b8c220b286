r"""Averages of the iterates, at the cost of a step in output space and none in the weights.

With weights :math:`p_t`, :math:`P_k = p_1 + \dots + p_k`, iterates :math:`w_t = c_t v_t` and
:math:`S_k = p_1 c_1 + \dots + p_k c_k` the average after k steps is

.. math:: \bar w_k = \frac{1}{P_k} \sum_{t \le k} p_t w_t
          = \frac{1}{P_k} \left( S_k v_k - \sum_{s \le k} S_{s-1} (v_s - v_{s-1}) \right) ,

where :math:`c_t = 1` and S = P for all methods but those that scale their iterate lazily. A step moves v by
:math:`\Phi_i (\gamma \delta) / (\lambda n)`, so the sum on the right is
:math:`\sum_i \Phi_i u_i / (\lambda n)` where :math:`u_i` gains :math:`S_{s-1} \gamma \delta` in
output space. The average itself is made, by one pass over the features, only when it is asked for.
The dual loss is averaged likewise.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import generic
from maxmargin.methods._blocks import add_to_block, clear_blocks, empty_blocks, has_slack, prefetch_block
from maxmargin.methods._protocol import (
    DONE,
    Carry,
    Point,
    advance,
    carried,
    dual_point,
    factor,
    foresee_block,
    has_dual,
    has_own_loop,
    has_room,
    is_average,
    mean_margin,
    moves_blocks,
    point,
    projects,
    regularisation,
    seek,
    start,
    step,
    weights,
)
from maxmargin.methods._scratch import new_scratch
from maxmargin.methods._sweep import push_blocks, sweep_all
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import sizes, weights_alone


class Weighted(NamedTuple):
    """Weight t for iterate t (the paper's BCFW-wavg): the average that the paper recommends."""


class Uniform(NamedTuple):
    """Equal weights for all iterates (avg)."""


class Suffix(NamedTuple):
    """Equal weights for the iterates since the last power of two (tavg, doubling rounds)."""


SCHEMES = {"weighted": Weighted(), "uniform": Uniform(), "suffix": Suffix()}


class _Averaged(NamedTuple):
    inner: Any
    scheme: Any


class Averaged(_Averaged):
    """A method whose answer is an average of another's iterates.

    Parameters
    ----------
    inner : method
        The method whose iterates are averaged.
    scheme : {"weighted", "suffix", "uniform"}
        Weight t for iterate t; equal weights since the last power of two; equal weights.
    """

    __slots__ = ()

    def __new__(cls, inner: Any, scheme: Any = "weighted") -> "Averaged":
        if isinstance(scheme, str) and scheme not in SCHEMES:
            raise ValueError(
                f"Averaged: scheme must be one of {', '.join(map(repr, SCHEMES))}, got {scheme!r}."
            )
        name = type(inner).__name__
        if is_average(inner):
            raise ValueError(f"Averaged: inner must be a method that is not an average itself, got {name}.")
        if has_own_loop(inner):
            raise ValueError(
                f"Averaged: inner must be a method without a loop of its own, got {name}; "
                f"write {name}(Averaged(...))."
            )
        return super().__new__(cls, inner, SCHEMES[scheme] if isinstance(scheme, str) else scheme)


class Sums(NamedTuple):
    """What an average remembers beside the iterate.

    Attributes
    ----------
    u : Blocks or array
        Sum of the moves, each times S before it; by block in output space, or in the weights for a
        batch method.
    ell : array of shape (1,)
        The same sum of the moves of the total dual loss.
    weight : array of shape (1,)
        P, the sum of the weights so far.
    scaled : array of shape (1,)
        S, their sum with the iterates' factors; not kept for a batch method, where it is P.
    steps : array of shape (1,)
        k, the number of steps taken.
    """

    u: Any
    ell: FloatArray
    weight: FloatArray
    scaled: FloatArray
    steps: IntArray


class AveragedState(NamedTuple):
    """The state of the inner method, and the sums over its moves."""

    inner: Any
    sums: Sums


@generic
def next_weight(scheme, k):
    """Return the weight of iterate k, or 0.0 to forget all before it and give it weight one."""
    raise NotImplementedError


@next_weight.register(Weighted)
def weighted_next_weight(scheme, k):
    return 1.0 * k


@next_weight.register(Uniform)
def uniform_next_weight(scheme, k):
    return 1.0


@next_weight.register(Suffix)
def suffix_next_weight(scheme, k):
    return 0.0 if k & (k - 1) == 0 else 1.0


@start.register(Averaged)
def averaged_start(method: Averaged, problem: Any) -> AveragedState:
    size = sizes(problem)
    u = empty_blocks(size.examples, size.statistics) if moves_blocks(method.inner) else np.zeros(size.weights)
    sums = Sums(u, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64))
    return AveragedState(start(method.inner, problem), sums)


@foresee_block.register(Averaged)
def averaged_foresee_block(method, state, i):
    prefetch_block(state.sums.u, i)
    foresee_block(method.inner, state.inner, i)


@has_room.register(Averaged)
def averaged_has_room(method, state, problem, i):
    fits = has_slack(state.sums.u, i, sizes(problem).statistics)
    return fits and has_room(method.inner, state.inner, problem, i)


@mean_margin.register(Averaged)
def averaged_mean_margin(method, state, i, theta):
    return mean_margin(method.inner, state.inner, i, theta)


@seek.register(Averaged)
def averaged_seek(method, state, problem, i, w, scratch):
    return seek(method.inner, state.inner, problem, i, w, scratch)


@step.register(Averaged)
def averaged_step(method, state, problem, i, loss_y, hinge, scratch):
    report = step(method.inner, state.inner, problem, i, loss_y, hinge, scratch)
    if report != DONE:
        return report
    sums, move = state.sums, scratch.move
    sums.steps[0] += 1
    weight = next_weight(method.scheme, sums.steps[0])
    if weight == 0.0:
        clear_blocks(sums.u)
        sums.ell[0] = sums.weight[0] = sums.scaled[0] = 0.0
        weight = 1.0
    elif move.gamma[0] > 0.0:
        add_to_block(sums.u, i, sums.scaled[0] * move.gamma[0], move)
        sums.ell[0] += sums.weight[0] * move.ell[0]
    sums.weight[0] += weight
    sums.scaled[0] += weight * factor(method.inner, state.inner)
    return DONE


@advance.register(Averaged)
def averaged_advance(
    method: Averaged, state: AveragedState, problem: Any, visits: Visits | IntArray
) -> AveragedState:
    if moves_blocks(method.inner):
        return sweep_all(problem, method, state, visits)
    return _advance_batch(method, state, problem, visits)


def _advance_batch(
    method: Averaged, state: AveragedState, problem: Any, visits: Visits | IntArray
) -> AveragedState:
    """Average a batch method: its moves are as long as the weights, once a pass."""
    before = point(method.inner, state.inner, problem)
    w_before = before.w.copy()
    inner = advance(method.inner, state.inner, problem, visits)
    after, sums = point(method.inner, inner, problem), state.sums
    sums.steps[0] += 1
    weight = next_weight(method.scheme, int(sums.steps[0]))
    if weight == 0.0:
        sums.u[:] = sums.ell[0] = sums.weight[0] = 0.0
        weight = 1.0
    sums.u[:] += sums.weight[0] * (after.w - w_before)
    sums.ell[0] += sums.weight[0] * (after.ell - before.ell)
    sums.weight[0] += weight
    return AveragedState(inner, sums)


@carried.register(Averaged)
def averaged_carried(method: Averaged, state: AveragedState, problem: Any, carry: Carry) -> AveragedState:
    """The iterate is carried over; its average begins anew."""
    inner = carried(method.inner, state.inner, problem, carry)
    return AveragedState(inner, start(method, problem).sums)


@point.register(Averaged)
def averaged_point(method: Averaged, state: AveragedState, problem: Any) -> Point:
    """The average, with its own dual variables; where there are none, with the bound of the last iterate."""
    inner, sums, n = point(method.inner, state.inner, problem), state.sums, sizes(problem).examples
    weight = sums.weight[0]
    if weight == 0.0:
        return inner
    if not moves_blocks(method.inner):
        return dual_point(inner.w - sums.u / weight, inner.ell - sums.ell[0] / weight)
    w = sums.scaled[0] / weight * weights(method.inner, state.inner)
    push_blocks(problem, sums.u, -1.0 / (weight * regularisation(method) * n), w, new_scratch(problem))
    w = weights_alone(problem, w)
    return dual_point(w, inner.ell - sums.ell[0] / (weight * n)) if has_dual(method) else inner._replace(w=w)


@projects.register(Averaged)
def averaged_projects(method: Averaged) -> bool:
    return bool(projects(method.inner))


@is_average.register(Averaged)
def averaged_is_average(method: Averaged) -> bool:
    return True
