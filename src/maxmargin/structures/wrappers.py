"""Wrappers of problems: example weights, slack rescaling, sign constraints and L1 penalties.

`Weighted` and `SlackRescaled` wrap the oracle of a problem; `SignConstrained`, `L1Penalised` and `Kernelised`
(in `kernelised`) wrap its map. So their order does not matter, except that slacks are rescaled before
examples are weighted, and that kernels come before signs.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling.generics import has_implementation
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import described, errors_of, shown
from maxmargin.structures import feature_map
from maxmargin.structures.feature_map import map_sizes, shrink, unconstrained
from maxmargin.structures.kernelised import KernelisedMap
from maxmargin.structures.oracle import expectation
from maxmargin.structures.problem import Problem, as_problem, checked_pair, sizes
from maxmargin.structures.slack import SlackRescaledOracle, WeightedOracle, check_rescalable


class Signs(NamedTuple):
    """The projection on weights that are not negative where ``nonnegative`` is true."""

    nonnegative: NDArray[np.bool_]

    @property
    def l1_factor(self) -> float:
        r"""The factor t of :math:`t \|w\|_1`, of which this is the proximal map."""
        return 0.0


class SoftThreshold(NamedTuple):
    r"""The proximal map of :math:`t \|w\|_1`: coordinates move towards zero by t, and stay there."""

    threshold: float

    @property
    def l1_factor(self) -> float:
        r"""The factor t of :math:`t \|w\|_1`."""
        return self.threshold


class Composed(NamedTuple):
    """One proximal map after another: of both penalties, if these are a threshold and signs."""

    first: SoftThreshold
    second: Signs

    @property
    def l1_factor(self) -> float:
        r"""The factor t of :math:`t \|w\|_1`."""
        return self.first.l1_factor


Prox = Signs | SoftThreshold | Composed


@shrink.register(Signs)
def signs_shrink(prox, v, w, first, stop):
    for j in range(np.uint64(first), np.uint64(stop)):  # compiled code would test ints for being negative
        w[j] = 0.0 if prox.nonnegative[j] and v[j] < 0.0 else v[j]


@shrink.register(SoftThreshold)
def soft_threshold_shrink(prox, v, w, first, stop):
    for j in range(np.uint64(first), np.uint64(stop)):
        w[j] = max(v[j] - prox.threshold, 0.0) + min(v[j] + prox.threshold, 0.0)


@shrink.register(Composed)
def composed_shrink(prox, v, w, first, stop):
    shrink(prox.first, v, w, first, stop)
    shrink(prox.second, w, w, first, stop)


def _where(prox: Prox) -> IntArray:
    """Return which weights have signs."""
    if isinstance(prox, Composed):
        return _where(prox.second)
    return np.flatnonzero(prox.nonnegative) if isinstance(prox, Signs) else np.zeros(0, dtype=np.int64)


class ProximalMap(NamedTuple):
    r"""A map whose weights are a proximal map of the image: with signs, an L1 penalty, or both.

    .. math:: \min_w \lambda R(w) + \frac1n \sum_i \max_y H_i(y; w), \qquad
              R(w) = \frac12 \|w\|^2 + r(w),

    where r is separable: zero if :math:`w_j \ge 0` for j in S, else infinite; or :math:`t \|w\|_1`; or the
    sum of both. With the image :math:`v = A \alpha` of dual variables,

    .. math:: w = \operatorname{prox}_r(v), \qquad D(\alpha) = b^\top \alpha - \lambda R^*(v), \qquad
              R^*(v) = \frac12 \|\operatorname{prox}_r(v)\|^2 .

    For these r, :math:`\langle w, v \rangle = \|w\|^2 + r(w)`, so block gaps at w add up to P(w) - D as
    usual. The gradient of :math:`R^*` is w, and the proximal map is nonexpansive. So a step along
    :math:`\delta` gains at least what it would gain without r (Prox-SDCA, Shalev-Shwartz and Zhang 2014),

    .. math:: D(\alpha + \gamma d) \ge D(\alpha) + \gamma g - \frac{\gamma^2}{2} \lambda \|A d\|^2 ,

    and every line search, and every step within an active set, raises the dual without any change.

    The vector that methods keep is [w | v]. Scores read w. A push moves v, and computes again the entries of
    w that depend on what it changed. Averages and extrapolations are linear in v, not in w, so methods make
    them of images. The proximal map depends on coordinates: the inner map must measure weights by the dot
    product.

    Attributes
    ----------
    inner : map
    prox : Signs, SoftThreshold or Composed
        In the layout of the inner map.
    """

    inner: object
    prox: Prox


def proximal_map(phi: object, threshold: float, where: IntArray) -> ProximalMap:
    """Return the map with an L1 penalty and signs, besides those that it has."""
    base, prox = (phi.inner, phi.prox) if isinstance(phi, ProximalMap) else (phi, SoftThreshold(0.0))
    threshold += prox.l1_factor
    signs = np.zeros(feature_map.map_sizes(base).weights, dtype=np.bool_)
    signs[_where(prox)] = signs[where] = True
    if threshold == 0.0:
        return ProximalMap(base, Signs(signs))
    shrinking = SoftThreshold(threshold)
    return ProximalMap(base, Composed(shrinking, Signs(signs)) if signs.any() else shrinking)


class SignedMap:
    """What pickles of the version before have in the place of a `ProximalMap`."""

    def __new__(cls, inner: object, where: IntArray) -> ProximalMap:  # type: ignore[misc]
        return proximal_map(inner, 0.0, where)


@feature_map.map_sizes.register(ProximalMap)
def proximal_map_sizes(phi):
    size = feature_map.map_sizes(phi.inner)
    return feature_map.MapSizes(size.examples, 2 * size.weights, size.statistics)


@feature_map.score.register(ProximalMap)
def proximal_score(phi, i, w, theta):
    feature_map.score(phi.inner, i, w[: w.shape[0] // 2], theta)


@feature_map.push.register(ProximalMap)
def proximal_push(phi, i, move, scale, w, work):
    d = w.shape[0] // 2
    feature_map.push(phi.inner, i, move, scale, w[d:], work.inner)
    feature_map.refresh(phi.inner, i, move, phi.prox, w[d:], w[:d])


@feature_map.inner.register(ProximalMap)
def proximal_inner(phi: ProximalMap, u: FloatArray, v: FloatArray) -> float:
    """Return the inner product of weights; one or both may be images, which are half as long."""
    d = feature_map.map_sizes(phi.inner).weights
    return float(feature_map.inner(phi.inner, u[:d], v[:d]))


@feature_map.proximal.register(ProximalMap)
def proximal_proximal(phi: ProximalMap) -> ProximalMap:
    return phi


@feature_map.rebuilt.register(ProximalMap)
def proximal_rebuilt(phi: ProximalMap, w: FloatArray) -> FloatArray:
    image = feature_map.unprojected(phi, w)
    fresh: FloatArray = feature_map.rebuilt(phi.inner, image)
    return w if fresh is image else feature_map.projected(phi, fresh)


@feature_map.adopted.register(ProximalMap)
def proximal_adopted(phi: ProximalMap, w: FloatArray, before: object) -> FloatArray | None:
    """Return the inner map's weights, and the image, if the proximal map is the same."""
    if not isinstance(before, ProximalMap) or not _is_same_prox(phi.prox, before.prox):
        return None
    halves = [feature_map.adopted(phi.inner, half, before.inner) for half in np.split(w, 2)]
    return None if halves[0] is None else np.concatenate(halves)


def _is_same_prox(a: Prox, b: Prox) -> bool:
    """Whether two maps have the same penalty; one with a kernel may have coefficients of further rows."""
    return a.l1_factor == b.l1_factor and np.array_equal(_where(a), _where(b))


@feature_map.score_buffer.register(ProximalMap)
def proximal_score_buffer(phi: ProximalMap, w: FloatArray | None) -> FloatArray:
    buffer: FloatArray = feature_map.score_buffer(phi.inner, None if w is None else w[: len(w) // 2])
    return buffer


@feature_map.unpack.register(ProximalMap)
def proximal_unpack(phi: ProximalMap, w: FloatArray) -> tuple[FloatArray, ...]:
    parts: tuple[FloatArray, ...] = feature_map.unpack(phi.inner, w[: len(w) // 2])
    return parts


def layout_order(phi: object) -> IntArray:
    """Return the index of each weight in the layout of a map, in the order of ``Result.weights``."""
    places = np.arange(float(feature_map.map_sizes(phi).weights))
    return np.concatenate([np.ravel(part) for part in feature_map.unpack(phi, places)]).astype(np.int64)


@errors_of("Weighted")
def Weighted(problem: object, weights: object) -> Problem[object, WeightedOracle]:
    """Return the problem with example weights.

    Parameters
    ----------
    problem : Problem
        Any problem, including one with rescaled slacks or a user's own.
    weights : array of shape (n,)
        Factor of the hinge of each example, > 0. Leave out examples that should not count.
    """
    phi, oracle = checked_pair(problem)
    size = map_sizes(phi)
    statistics = size.statistics if has_implementation(oracle, expectation) else 0
    return Problem(phi, WeightedOracle(oracle, _checked_weights(weights, size.examples), statistics))


def _checked_weights(weights: object, n: int) -> FloatArray:
    """Return the weights as an array; raise unless they are n positive numbers."""
    try:
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (n,):
        raise ValueError(f"Weighted: weights must be {n} numbers, one per example, got {described(weights)}.")
    bad = np.flatnonzero(~((array > 0.0) & (array < np.inf)))
    if len(bad):
        raise ValueError(
            f"Weighted: weights must be finite and > 0, got {array[bad[0]]} for example {bad[0]}; leave out "
            "examples that are not to count."
        )
    return array


@errors_of("SlackRescaled")
def SlackRescaled(problem: object) -> Problem[object, SlackRescaledOracle]:
    """Return the problem with its slacks rescaled instead of its margins.

    Parameters
    ----------
    problem : Problem
        A problem of `Multiclass`; or of `Chain`, `SecondOrderChain`, `Segments` or `Graph` without cycles,
        with a Hamming loss. The oracle is exact for rescaled slacks, too.
    """
    phi, oracle = as_problem(problem)
    check_rescalable(oracle)
    return Problem(phi, SlackRescaledOracle(oracle))


@errors_of("SignConstrained")
def SignConstrained(problem: object, nonnegative: object) -> Problem[ProximalMap, object]:
    """Return the problem with some weights constrained to be at least zero.

    Parameters
    ----------
    problem : Problem
        Any problem.
    nonnegative : array of ints, or of bools with one entry per weight
        Which weights, in the order of ``Result.weights``; not coefficients of a kernel.
    """
    phi, oracle = checked_pair(problem)
    return Problem(proximal_map(phi, 0.0, _chosen_places(unconstrained(phi), nonnegative)), oracle)


@errors_of("L1Penalised")
def L1Penalised(problem: object, threshold: float) -> Problem[ProximalMap, object]:
    r"""Return the problem with :math:`\lambda t \|w\|_1` added to its objective: many weights become zero.

    The weights of dual variables are those without the penalty, moved towards zero by t and no further,
    whatever :math:`\lambda`. An elastic net, as scikit-learn defines it, has
    ``threshold = l1_ratio / (1 - l1_ratio)``.

    Parameters
    ----------
    problem : Problem
        Any problem without a kernel.
    threshold : float
        t, at least 0. Penalties of a problem that has one add up.
    """
    phi, oracle = checked_pair(problem)
    if not (isinstance(threshold, Real) and 0.0 <= float(threshold) < np.inf):
        raise ValueError(f"L1Penalised: threshold must be a number >= 0, got {shown(threshold)}.")
    if isinstance(unconstrained(phi), KernelisedMap):
        raise ValueError(
            "L1Penalised: problem must be one without a kernel, whose coefficients are not weights of "
            "features, got a problem with a KernelisedMap."
        )
    return Problem(proximal_map(phi, float(threshold), np.zeros(0, dtype=np.int64)), oracle)


def _chosen_places(phi: object, nonnegative: object) -> IntArray:
    """Return the indices of the chosen weights in the layout of the map."""
    order, chosen = layout_order(phi), np.asarray(nonnegative)
    if chosen.dtype == np.bool_ and chosen.shape == order.shape:
        chosen = np.flatnonzero(chosen)
    valid = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or chosen.size == 0)
    if not valid or ((chosen < 0) | (chosen >= len(order))).any():
        raise ValueError(
            f"SignConstrained: nonnegative must be indices of weights, ints from 0 to {len(order) - 1}, or "
            f"{len(order)} bools, got {described(nonnegative)}."
        )
    places: IntArray = order[np.unique(chosen.astype(np.int64))]
    _check_linear(phi, places)
    return places


def _check_linear(phi: object, places: IntArray) -> None:
    """Raise if coefficients of a kernel are among the weights: projecting them does not project scores."""
    if isinstance(phi, KernelisedMap) and (places >= map_sizes(phi.inner).weights).any():
        raise ValueError(
            "SignConstrained: nonnegative must be weights of parts without kernel, got coefficients of the "
            "kernel; leave them out."
        )


def marked_weights(
    problem: Problem[Any, Any], nonnegative: Mapping[str, object], axes: Mapping[str, int]
) -> NDArray[np.bool_]:
    """Return which weights must not be negative, in the order in which `unpack` has them.

    They are chosen by the names of their parts; ``axes`` has the axis of each part that holds features.
    """
    parts = dict(zip(axes, problem.unpack(np.zeros(int(sizes(problem).weights))), strict=True))
    unknown = [name for name in nonnegative if name not in parts]
    if unknown:
        raise ValueError(
            f"keys of nonnegative must be among {', '.join(map(repr, parts))}, got {unknown[0]!r}."
        )
    for name, chosen in nonnegative.items():
        if not _mark(chosen, parts[name], axes[name]):
            shape = parts[name].shape
            raise ValueError(
                f"nonnegative[{name!r}] must be indices of features, ints from 0 to "
                f"{shape[axes[name]] - 1}, or bools of shape {shape}, got {described(chosen)}."
            )
    return np.concatenate([part.ravel() for part in parts.values()]) > 0.0


def _mark(chosen: object, array: NDArray[np.float64], axis: int) -> bool:
    """Mark the weights of features given by indices or by a mask; return False if it is neither."""
    try:
        found = np.asarray(chosen)
    except ValueError:  # lists of unequal lengths
        return False
    if found.dtype == np.bool_ and found.shape == array.shape:
        array[found] = 1.0
        return True
    are_indices = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
    if not are_indices or ((found < 0) | (found >= array.shape[axis])).any():
        return False
    np.moveaxis(array, axis, 0)[found.astype(np.int64)] = 1.0
    return True
