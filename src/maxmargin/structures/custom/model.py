"""A problem given by three Python functions: features, loss and argmax, on objects of any kind."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import helper
from maxmargin.compiling.loops import copy, dot_at
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray
from maxmargin.structures import feature_map
from maxmargin.structures.custom.oracle import CustomOracle
from maxmargin.structures.problem import Problem, builder, fitting, take_half


class IdentityMap(NamedTuple):
    """The identity: statistics are features, and scores are weights; n examples, ``size`` features.

    Only the nonzeros of vectors are stored, so the memory for an example depends on its few relevant outputs,
    not on the number of weights.
    """

    n: int
    size: int


class IdentityWork(NamedTuple):
    """The entries that `gram` wrote last, ``where[:size[0]]``: it clears only these."""

    where: UIntArray
    size: IntArray


@feature_map.map_sizes.register(IdentityMap)
def identity_map_sizes(phi):
    return feature_map.MapSizes(phi.n, phi.size, phi.size)


@feature_map.map_workspace.register(IdentityMap)
def identity_map_workspace(phi: IdentityMap) -> IdentityWork:
    return IdentityWork(np.zeros(phi.size, dtype=np.uint32), np.zeros(1, dtype=np.int64))


@take_half.register(IdentityMap)
def identity_take_half(phi: IdentityMap, indices: IntArray) -> IdentityMap:
    return phi._replace(n=len(indices))


@feature_map.score_buffer.register(IdentityMap)
def identity_score_buffer(phi: IdentityMap, w: FloatArray | None) -> FloatArray:
    return np.zeros(phi.size) if w is None else w


@feature_map.score.register(IdentityMap)
def identity_score(phi, i, w, theta):
    if theta is not w and theta.ctypes.data != w.ctypes.data:  # the buffer may be the weights
        copy(w, theta)


@feature_map.gram.register(IdentityMap)
def identity_gram(phi, i, move, image, work):
    """Write delta to ``image``, which is zero except for the entries written last."""
    _copy_move(move, image, work)


@feature_map.norm2.register(IdentityMap)
def identity_norm2(phi, i, move, image, work):
    return dot_at(move.support, move.size[0], move.delta, move.delta)


@feature_map.push.register(IdentityMap)
def identity_push(phi, i, move, scale, w, work):
    _add_move(move, scale, w)


@feature_map.refresh.register(IdentityMap)
def identity_refresh(phi, i, move, prox, v, w):
    for c in range(move.size[0]):
        at = np.int64(move.support[c])
        feature_map.shrink(prox, v, w, at, at + 1)


@feature_map.unpack.register(IdentityMap)
def identity_unpack(phi: IdentityMap, w: FloatArray) -> tuple[FloatArray]:
    return (w,)


@helper
def _copy_move(move, image, work):
    """``image[:] = delta``"""
    for c in range(work.size[0]):
        image[work.where[c]] = 0.0
    for c in range(move.size[0]):
        work.where[c] = move.support[c]
        image[move.support[c]] = move.delta[move.support[c]]
    work.size[0] = move.size[0]


@helper
def _add_move(move, scale, w):
    """``w += scale * delta``"""
    for c in range(move.size[0]):
        w[move.support[c]] += scale * move.delta[move.support[c]]


@builder("Custom")
def Custom(
    features: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], float],
    argmax: Callable[..., object],
    X: object,
    y: object,
    *,
    n_features: int | None = None,
    feature_names: Iterable[Hashable] | None = None,
    exact: bool = True,
) -> Problem[IdentityMap, CustomOracle]:
    """Return a problem given by three functions. Its loop is interpreted, its steps are compiled.

    Parameters
    ----------
    features : callable
        ``features(x, y)``, the joint feature map: a 1-D array, a sparse row, a dict ``{name: number}`` or a
        pair ``(indices, values)``; of the same kind and length for all.
    loss : callable
        ``loss(y_true, y)``, a number >= 0, and 0 for the truth.
    argmax : callable
        ``argmax(x, w, y_true)`` returns the y of largest ``loss(y_true, y) + <w, features(x, y)>``, and
        ``argmax(x, w)`` the y of largest ``<w, features(x, y)>``. The weights w are a read-only array; for
        features that are dicts, an object with ``w[name]`` and ``w.dot(features)``.
    X, y : lists
        Examples and their true outputs: any objects.
    n_features : int, optional
        Number of weights; needed only for pairs.
    feature_names : iterable, optional
        Names that get a weight, if features are dicts; by default the names in the features of the truths.
    exact : bool
        Whether argmax always returns the best output; if not, there is no certificate.
    """
    oracle = CustomOracle(features, loss, argmax, X, y, n_features, feature_names, exact)
    return fitting(Problem(IdentityMap(len(oracle.X), oracle.joint.size), oracle))
