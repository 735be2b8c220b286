r"""Averages of the iterates; the cost per step is in output space only, not in the weights.

With weights :math:`p_t`, :math:`P_k = p_1 + \dots + p_k`, iterates :math:`w_t = c_t v_t` and
:math:`S_k = p_1 c_1 + \dots + p_k c_k` the average after k steps is

.. math:: \bar w_k = \frac{1}{P_k} \sum_{t \le k} p_t w_t
          = \frac{1}{P_k} \left( S_k v_k - \sum_{s \le k} S_{s-1} (v_s - v_{s-1}) \right) ,

where :math:`c_t = 1` and S = P except for methods that scale their iterate lazily. A step moves v by
:math:`\Phi_i (\gamma \delta) / (\lambda n)`, so the sum on the right is
:math:`\sum_i \Phi_i u_i / (\lambda n)`, where each step adds :math:`S_{s-1} \gamma \delta` to :math:`u_i` in
output space. One pass over the features computes the average on demand. The dual loss is averaged, too.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import generic
from maxmargin.methods import protocol
from maxmargin.methods.blocks import add_to_block, clear_blocks, empty_blocks, has_slack, prefetch_block
from maxmargin.methods.protocol import Carry, Point, Traits, check_inner
from maxmargin.methods.rules import Visits
from maxmargin.methods.scratch import new_scratch
from maxmargin.methods.sweep import advance, push_blocks, sweep_all
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import map_sizes, projected, unprojected
from maxmargin.structures.problem import AnyProblem


class WeightedMean(NamedTuple):
    """Weight t for iterate t (the paper's BCFW-wavg): the average that the paper recommends."""


class UniformMean(NamedTuple):
    """Equal weights for all iterates (avg)."""


class SuffixMean(NamedTuple):
    """Equal weights for the iterates since the last power of two (tavg): rounds that double in length."""


SCHEMES = {"weighted": WeightedMean(), "uniform": UniformMean(), "suffix": SuffixMean()}


class _Averaged(NamedTuple):
    inner: Any
    scheme: Any


class Averaged(_Averaged):
    """A method whose answer is an average of the iterates of another method.

    Parameters
    ----------
    inner : method
        The method whose iterates are averaged.
    scheme : {"weighted", "suffix", "uniform"}
        Weight t for iterate t; equal weights since the last power of two; equal weights for all. "suffix" is
        the last half of the iterates at the end of a round, after 2^m - 1 steps, and fewer within one: the
        paper's bound on the gap holds at the ends of rounds only.
    """

    __slots__ = ()

    def __new__(cls, inner: object, scheme: object = "weighted") -> "Averaged":
        if not (scheme in SCHEMES if isinstance(scheme, str) else _is_scheme(scheme)):
            raise ValueError(
                f"Averaged: scheme must be one of {', '.join(map(repr, SCHEMES))}, got {shown(scheme)}."
            )
        check_inner(cls.__name__, inner)
        return super().__new__(cls, inner, SCHEMES[scheme] if isinstance(scheme, str) else scheme)


class Sums(NamedTuple):
    """Sums over the moves, from which the average follows.

    Attributes
    ----------
    u : Blocks or array
        Sum of the moves, each times the S before it: per block in output space, or of images for a batch
        method.
    ell : array of shape (1,)
        Sum of the changes of the total dual loss, each times the S before it.
    weight : array of shape (1,)
        P, the sum of the weights so far.
    scaled : array of shape (1,)
        S, the sum of the weights times the iterates' factors; not kept for a batch method, where it is P.
    steps : array of shape (1,)
        k, the number of steps taken.
    """

    u: Any
    ell: FloatArray
    weight: FloatArray
    scaled: FloatArray
    steps: IntArray


class AveragedState(NamedTuple):
    """The state of the inner method, and sums over its moves."""

    inner: Any
    sums: Sums


def _is_scheme(scheme: object) -> bool:
    """Whether this is a user's own scheme."""
    return next_weight.dispatch(type(scheme)) is not next_weight.dispatch(object)


@generic
def next_weight(scheme, k):
    """Return the weight of iterate k, or 0.0 to restart the average from it with weight one."""
    raise NotImplementedError


@next_weight.register(WeightedMean)
def weighted_next_weight(scheme, k):
    return 1.0 * k


@next_weight.register(UniformMean)
def uniform_next_weight(scheme, k):
    return 1.0


@next_weight.register(SuffixMean)
def suffix_next_weight(scheme, k):
    return 0.0 if k & (k - 1) == 0 else 1.0


@protocol.start.register(Averaged)
def averaged_start(method: Averaged, problem: AnyProblem) -> AveragedState:
    inner, size = protocol.start(method.inner, problem), map_sizes(problem.map)
    if protocol.traits(method).moves_blocks:
        u: Any = empty_blocks(size.examples, size.statistics)
    else:
        u = np.zeros_like(unprojected(problem.map, np.zeros(size.weights)))
    return AveragedState(inner, Sums(u, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int64)))


@protocol.foresee_block.register(Averaged)
def averaged_foresee_block(method, state, i):
    prefetch_block(state.sums.u, i)
    protocol.foresee_block(method.inner, state.inner, i)


@protocol.has_room.register(Averaged)
def averaged_has_room(method, state, i, sizes):
    fits = has_slack(state.sums.u, i, sizes.statistics)
    return fits and protocol.has_room(method.inner, state.inner, i, sizes)


@protocol.step.register(Averaged)
def averaged_step(method, state, phi, i, loss_y, hinge, work):
    report = protocol.step(method.inner, state.inner, phi, i, loss_y, hinge, work)
    if report != protocol.DONE:
        return report
    sums, move = state.sums, work.move
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
    sums.scaled[0] += weight * protocol.factor(method.inner, state.inner)
    return protocol.DONE


@advance.register(Averaged)
def averaged_advance(
    method: Averaged, state: AveragedState, problem: AnyProblem, visits: Visits | IntArray
) -> AveragedState:
    if protocol.traits(method).moves_blocks:
        return sweep_all(problem, method, state, visits)
    return _advance_batch(method, state, problem, visits)


def _advance_batch(
    method: Averaged, state: AveragedState, problem: AnyProblem, visits: Visits | IntArray
) -> AveragedState:
    """Average a batch method, which makes one move of all weights per pass."""
    before = protocol.point(method.inner, state.inner, problem)
    v_before = unprojected(problem.map, before.w).copy()
    inner = advance(method.inner, state.inner, problem, visits)
    after, sums = protocol.point(method.inner, inner, problem), state.sums
    sums.steps[0] += 1
    weight = next_weight(method.scheme, int(sums.steps[0]))
    if weight == 0.0:
        sums.u[:] = sums.ell[0] = sums.weight[0] = 0.0
        weight = 1.0
    sums.u[:] += sums.weight[0] * (unprojected(problem.map, after.w) - v_before)
    sums.ell[0] += sums.weight[0] * (after.ell - before.ell)
    sums.weight[0] += weight
    return AveragedState(inner, sums)


@protocol.carried.register(Averaged)
def averaged_carried(
    method: Averaged, state: AveragedState, problem: AnyProblem, carry: Carry
) -> AveragedState:
    """Carry over the iterate, and restart its average."""
    inner = protocol.carried(method.inner, state.inner, problem, carry)
    return AveragedState(inner, protocol.start(method, problem).sums)


@protocol.point.register(Averaged)
def averaged_point(method: Averaged, state: AveragedState, problem: AnyProblem) -> Point:
    """Return the average with its own dual variables, or else with the bound of the last iterate."""
    inner, sums = protocol.point(method.inner, state.inner, problem), state.sums
    n = map_sizes(problem.map).examples
    weight = sums.weight[0]
    if weight == 0.0:
        return inner
    if not protocol.traits(method).moves_blocks:
        w = projected(problem.map, unprojected(problem.map, inner.w) - sums.u / weight)
        return protocol.dual_point(problem, w, inner.ell - sums.ell[0] / weight)
    w = sums.scaled[0] / weight * protocol.weights(method.inner, state.inner)
    scale = -1.0 / (weight * protocol.regularisation(method) * n)
    push_blocks(problem.map, sums.u, scale, w, new_scratch(problem).block)
    if not protocol.traits(method).has_dual:
        return inner._replace(w=w)
    return protocol.dual_point(problem, w, inner.ell - sums.ell[0] / (weight * n))


@protocol.traits.register(Averaged)
def averaged_traits(method: Averaged) -> Traits:
    return protocol.traits(method.inner)._replace(is_average=True, wraps=True)
