"""Wrappers of problems: example weights, slack rescaling and sign constraints.

`Weighted` and `SlackRescaled` wrap the oracle of a problem, `SignConstrained` and `Kernelised` (in `kernels`)
wrap its map. So their order does not matter, except that slacks are rescaled before examples are weighted,
and that kernels come before signs.
"""

from typing import NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.generics import has_implementation
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import described
from maxmargin.structures import feature_map
from maxmargin.structures.feature_map import map_sizes
from maxmargin.structures.kernelised import KernelisedMap
from maxmargin.structures.oracle import expectation
from maxmargin.structures.problem import Problem, as_problem, checked_pair
from maxmargin.structures.slack import SlackRescaledOracle, WeightedOracle, check_rescalable

# Sign constraints: any map, with some of its weights constrained to be nonnegative.
#
# .. math:: \min_w \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y H_i(y; w) \quad \text{subject to} \quad
#           w_j \ge 0, \; j \in S .
#
# With the image :math:`v = A \alpha` of dual variables and the projection P, which clips :math:`v_S` at zero,
#
# .. math:: w = P(v), \qquad D(\alpha) = b^\top \alpha - \frac{\lambda}{2} \|P(v)\|^2 .
#
# As :math:`\langle P(v), v \rangle = \|P(v)\|^2`, block gaps at w add up to P(w) - D as usual. And as
# :math:`\frac12 \|P(\cdot)\|^2` is convex and no more curved than :math:`\frac12 \|\cdot\|^2`, a step along
# :math:`\delta` gains at least what it would gain without constraints,
#
# .. math:: D(\alpha + \gamma d) \ge D(\alpha) + \gamma g - \frac{\gamma^2}{2} \lambda \|A d\|^2 ,
#
# so every line search, and every step within an active set, raises the dual without any change.
#
# The vector that methods keep has one more entry for each weight of S: the first d entries are w, the
# others :math:`v_S`. A push restores the image, moves it and projects it again. The projection depends on
# coordinates: it clips entries of w, so the inner map must measure weights by the dot product.


class SignedMap(NamedTuple):
    """A map with some weights constrained to be nonnegative.

    Attributes
    ----------
    inner : map
    where : array of ints
        Which weights, in the layout of the inner map.
    """

    inner: object
    where: IntArray


@helper
def _restore(w, where, image):
    """Replace the projection by the image."""
    for k in range(where.shape[0]):
        w[where[k]] = image[k]


@helper
def _project(w, where, image):
    """Save the image, and project it."""
    for k in range(where.shape[0]):
        image[k] = w[where[k]]
        w[where[k]] = max(image[k], 0.0)


@feature_map.map_sizes.register(SignedMap)
def signed_map_sizes(phi):
    size = feature_map.map_sizes(phi.inner)
    return feature_map.MapSizes(size.examples, size.weights + phi.where.shape[0], size.statistics)


@feature_map.score.register(SignedMap)
def signed_score(phi, i, w, theta):
    feature_map.score(phi.inner, i, w[: w.shape[0] - phi.where.shape[0]], theta)


@feature_map.push.register(SignedMap)
def signed_push(phi, i, move, scale, w, work):
    d = w.shape[0] - phi.where.shape[0]
    _restore(w, phi.where, w[d:])
    feature_map.push(phi.inner, i, move, scale, w[:d], work.inner)
    _project(w, phi.where, w[d:])


@feature_map.inner.register(SignedMap)
def signed_inner(phi: SignedMap, u: FloatArray, v: FloatArray) -> float:
    d = len(u) - len(phi.where)
    return float(feature_map.inner(phi.inner, u[:d], v[:d]))


@feature_map.unprojected.register(SignedMap)
def signed_unprojected(phi: SignedMap, w: FloatArray) -> FloatArray:
    """Return a copy: the image of d entries, followed by zeros."""
    v, d = w.copy(), len(w) - len(phi.where)
    _restore(v, phi.where, w[d:])
    v[d:] = 0.0
    return v


@feature_map.project.register(SignedMap)
def signed_project(phi: SignedMap, v: FloatArray) -> None:
    _project(v, phi.where, v[len(v) - len(phi.where) :])


@feature_map.rebuilt.register(SignedMap)
def signed_rebuilt(phi: SignedMap, w: FloatArray) -> FloatArray:
    known, image = np.split(w, [len(w) - len(phi.where)])
    fresh: FloatArray = feature_map.rebuilt(phi.inner, known)
    return w if fresh is known else np.concatenate([fresh, image])


@feature_map.adopted.register(SignedMap)
def signed_adopted(phi: SignedMap, w: FloatArray, before: object) -> FloatArray | None:
    """Return the inner map's weights, and the image, if the same weights are constrained."""
    if not isinstance(before, SignedMap) or not np.array_equal(phi.where, before.where):
        return None
    known, image = np.split(w, [len(w) - len(before.where)])
    found: FloatArray | None = feature_map.adopted(phi.inner, known, before.inner)
    if found is None:
        return None
    return w if found is known else np.concatenate([found, image])


@feature_map.score_buffer.register(SignedMap)
def signed_score_buffer(phi: SignedMap, w: FloatArray | None) -> FloatArray:
    known = None if w is None else w[: len(w) - len(phi.where)]
    buffer: FloatArray = feature_map.score_buffer(phi.inner, known)
    return buffer


@feature_map.unpack.register(SignedMap)
def signed_unpack(phi: SignedMap, w: FloatArray) -> tuple[FloatArray, ...]:
    size: int = feature_map.map_sizes(phi.inner).weights
    parts: tuple[FloatArray, ...] = feature_map.unpack(phi.inner, w[:size])
    return parts


def layout_order(phi: object) -> IntArray:
    """Return the index of each weight in the layout of a map, in the order of ``Result.weights``."""
    places = np.arange(float(feature_map.map_sizes(phi).weights))
    return np.concatenate([np.ravel(part) for part in feature_map.unpack(phi, places)]).astype(np.int64)


def Weighted(problem: object, weights: object) -> Problem[object, WeightedOracle]:
    """Return the problem with example weights.

    Parameters
    ----------
    problem : Problem
        Any problem, including one with rescaled slacks or a user's own.
    weights : array of shape (n,)
        Factor of the hinge of each example, > 0. Leave out examples that should not count.
    """
    phi, oracle = checked_pair(problem, "Weighted")
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


def SlackRescaled(problem: object) -> Problem[object, SlackRescaledOracle]:
    """Return the problem with its slacks rescaled instead of its margins.

    Parameters
    ----------
    problem : Problem
        A problem of `Multiclass`; or of `Chain`, `SecondOrderChain`, `Segments` or `Graph` without cycles,
        with a Hamming loss. The oracle is exact for rescaled slacks, too.
    """
    phi, oracle = as_problem(problem)
    check_rescalable(oracle, "SlackRescaled")
    return Problem(phi, SlackRescaledOracle(oracle))


def SignConstrained(problem: object, nonnegative: object) -> Problem[SignedMap, object]:
    """Return the problem with some weights constrained to be at least zero.

    Parameters
    ----------
    problem : Problem
        Any problem.
    nonnegative : array of ints, or of bools with one entry per weight
        Which weights, in the order of ``Result.weights``; not coefficients of a kernel.
    """
    phi, oracle = checked_pair(problem, "SignConstrained")
    base, known = (phi.inner, phi.where) if isinstance(phi, SignedMap) else (phi, np.zeros(0, dtype=np.int64))
    where = np.union1d(known, _chosen_places(base, nonnegative))
    return Problem(SignedMap(base, where), oracle)


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
