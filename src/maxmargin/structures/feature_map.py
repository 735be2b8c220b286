r"""The feature map, one half of a problem: from statistics of outputs to weights, and back to scores.

The joint feature map of every model factors as

.. math:: \phi(x_i, y) = \Phi_i \, s_i(y),

where the *statistics* :math:`s_i(y)` of an output are a short vector that does not depend on the features
(for a chain: which label is at which position, and which label follows which), and :math:`\Phi_i` is a
linear map from statistics to weights. The space of statistics is called the *output space*. This module
defines the operations on :math:`\Phi_i` that methods use, `maxmargin.structures.oracle` those on outputs.
Notation, used throughout the package:

========================  ============================================================================
``w``                     weights, a flat vector in the map's own layout
``theta``                 :math:`\Phi_i^\top w`, the scores of the parts of outputs of example i
``move``                  a direction in output space: the vector ``move.delta``, zero outside the indices
                          ``move.support[:move.size[0]]``
========================  ============================================================================

**To write a map**, define a named tuple of arrays and register `map_sizes`, `score`, `gram` and `push` for
it; it then runs compiled. Or write a Python class with methods of these names (`PlainMap`); it then runs
interpreted. All other functions have defaults. Only `inner` defines how weight vectors are measured: methods
add and scale weight vectors, and use `inner` for everything else.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.compiling import generic, generic_with_default, helper, is_wrapper, kernel, python_generic
from maxmargin.compiling.generics import InnerWork, called
from maxmargin.compiling.loops import dot_at, euclidean
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray, aligned_zeros
from maxmargin.runtime.threads import run_in_slices

# Tolerance for rounding in a squared length, relative to the largest value of the kernel.
_ROUNDING = 1e-9


class Move(NamedTuple):
    """A direction, and the step taken in it.

    ``delta`` is dense, so that a model can iterate over it, and comes with the list of its nonzeros, so that
    making, measuring and clearing it costs time proportional to their number.

    Attributes
    ----------
    delta : array
        The direction; zero outside ``support[:size[0]]``.
    support, size : arrays
    gamma : array of shape (1,)
        Step size: the block's vector z moves by ``gamma * delta``.
    gap : array of shape (1,)
        n times the block gap at the start of the visit.
    ell : array of shape (1,)
        Change of the block's dual loss.
    gain : array of shape (1,)
        n times the increase of the dual.
    marks, mark : arrays
        ``marks[p] == mark[0]`` says that index p is in the set being built.
    """

    delta: FloatArray
    support: UIntArray
    size: IntArray
    gamma: FloatArray
    gap: FloatArray
    ell: FloatArray
    gain: FloatArray
    marks: NDArray[np.int32]
    mark: NDArray[np.int32]


def new_move(n_statistics: int) -> Move:
    """Return the zero direction in an output space of this dimension."""
    return Move(
        aligned_zeros(n_statistics),
        np.zeros(n_statistics + 1, dtype=np.uint32),
        np.zeros(1, dtype=np.int64),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(n_statistics, dtype=np.int32),
        np.ones(1, dtype=np.int32),
    )


@helper
def next_mark(move):
    """Return a mark that no index has."""
    move.mark[0] += 1
    return move.mark[0]


@helper
def reset(move):
    """Reset the direction to zero."""
    for c in range(move.size[0]):
        move.delta[move.support[c]] = 0.0
    move.size[0] = 0
    move.gamma[0] = move.gap[0] = move.ell[0] = move.gain[0] = 0.0
    next_mark(move)


@helper
def dot_move(move, a):
    """``delta @ a``"""
    total = 0.0
    for c in range(move.size[0]):
        total += move.delta[move.support[c]] * a[move.support[c]]
    return total


@helper
def add_entry(move, p, value):
    """``delta[p] += value``, without a branch, which the processor could not predict."""
    move.support[move.size[0]] = p
    move.size[0] += move.marks[p] != move.mark[0]
    move.marks[p] = move.mark[0]
    move.delta[p] += value


class MapSizes(NamedTuple):
    """The sizes of a feature map.

    Attributes
    ----------
    examples : int
        n, the number of examples.
    weights : int
        Length of the vector ``w`` that methods keep.
    statistics : int
        Length of the longest vector in output space.
    """

    examples: int
    weights: int
    statistics: int


class RowLayout(NamedTuple):
    """Where the statistics of rows, such as tokens or nodes, are in output space.

    Attributes
    ----------
    spans : array of shape (n, 2)
        Example i has the rows spans[i, 0], ..., spans[i, 1] - 1.
    head : int
        Number of statistics before those of rows.
    width : int
        Number of statistics of a row: one per label, padded.
    """

    spans: IntArray
    head: int
    width: int


class NegativeCurvature(ValueError):
    """A squared length or a curvature is negative: the kernel or matrix is not positive semidefinite."""


class KernelMetric(NamedTuple):
    """What is known of an inner product that is defined by a kernel.

    Attributes
    ----------
    semidefinite : bool
        Whether it is known to be positive semidefinite; without this there is no certificate.
    products : array
        The squared lengths of features, to which rounding errors are relative.
    curvature : array of shape (1,)
        The most negative squared length of a move; a run writes it.
    """

    semidefinite: bool
    products: FloatArray
    curvature: FloatArray


class PlainMap(Protocol):
    """A feature map written as a Python class; the functions of this module describe its methods."""

    def sizes(self) -> MapSizes:
        """Return the sizes of the map."""

    def score(self, i: int, w: FloatArray, theta: FloatArray) -> None:
        """Write the scores of example i to ``theta``."""

    def gram(self, i: int, move: Move, image: FloatArray, work: object) -> None:
        """Write the change of the scores by a move of example i to ``image``."""

    def push(self, i: int, move: Move, scale: float, w: FloatArray, work: object) -> None:
        """Add a move of example i to the weights."""


@generic
def map_sizes(phi):
    """Return the `MapSizes` of the map."""
    return phi.sizes()


@python_generic
def map_workspace(phi):
    """Return work arrays for `gram`, `norm2` and `push`; each thread has its own.

    The workspace of a wrapper has that of the inner map in its field ``inner``.
    """
    if is_wrapper(type(phi)):
        return InnerWork(map_workspace(phi.inner))
    return phi.workspace() if hasattr(phi, "workspace") else np.zeros(0)


@generic
def score(phi, i, w, theta):
    r"""Write :math:`\theta = \Phi_i^\top w` to ``theta``."""
    called(phi, "score", i, w, theta)


@generic
def gram(phi, i, move, image, work):
    r"""Write :math:`\Phi_i^\top \Phi_i \delta` to ``image``, for the direction ``move.delta``.

    This is the change of the scores of example i when its block moves. So an exact line search, and further
    steps in the block, do not need the features.
    """
    called(phi, "gram", i, move, image, work)


@generic_with_default
def norm2(phi, i, move, image, work):
    r"""Return :math:`\|\Phi_i \delta\|^2 = \langle \delta, \Phi_i^\top \Phi_i \delta \rangle`.

    ``image`` is workspace. A map may have a faster way than `gram`.
    """
    gram(phi, i, move, image, work)
    return dot_at(move.support, move.size[0], move.delta, image)


@generic
def column_norm2(phi, i):
    r"""Return c where :math:`\Phi_i^\top \Phi_i = c I`; optional, as few maps have orthogonal columns."""
    return phi.column_norm2(i)


@generic
def push(phi, i, move, scale, w, work):
    r"""Add :math:`c\, \Phi_i \delta` to ``w``, with c = ``scale`` and the direction ``move.delta``."""
    called(phi, "push", i, move, scale, w, work)


@generic_with_default
def foresee(phi, i):
    """Prefetch the data of example i; optional."""


@generic
def statistics_size(phi, i):
    """Return the number of statistics of example i: the first entries of ``theta`` and ``delta``.

    The default is that of the largest example.
    """
    return phi.statistics_size(i) if hasattr(phi, "statistics_size") else map_sizes(phi).statistics


@statistics_size.register(tuple)
def tuple_statistics_size(phi, i):
    return map_sizes(phi).statistics


@generic
def inner(phi: object, u: FloatArray, v: FloatArray) -> float:
    """Return the inner product of two weight vectors: the dot product, unless the map defines another."""
    if hasattr(phi, "inner_product"):
        return float(phi.inner_product(u, v))
    return float(sum(run_in_slices(lambda some: euclidean(u[some], v[some]), len(u))))


def is_euclidean(phi: object) -> bool:
    """Whether `inner` is the dot product."""
    is_own = hasattr(phi, "inner_product") or inner.dispatch(type(phi)) is not inner.dispatch(object)
    return not is_own and (not is_wrapper(type(phi)) or is_euclidean(phi.inner))  # type: ignore[attr-defined]


@generic
def kernel_metric(phi: object) -> KernelMetric | None:
    """Return what is known of the kernel that defines `inner`; None if there is no kernel."""
    return None


def is_metric(phi: object) -> bool:
    """Whether `inner` is known to be positive semidefinite; without it there is no certificate."""
    metric = kernel_metric(phi)
    return metric is None or metric.semidefinite


def check_metric(phi: object) -> None:
    """Raise `NegativeCurvature` if a squared length was found to be negative."""
    metric = kernel_metric(phi)
    if metric is not None and metric.curvature[0] < -_ROUNDING * metric.products.max(initial=0.0):
        raise NegativeCurvature(
            f"solve: the squared length of a move must not be negative, got {metric.curvature[0]:.3g}: the "
            "kernel is not positive semidefinite on these data; choose another kernel or other parameters."
        )


def notes(phi: object) -> tuple[FloatArray, ...]:
    """Return the arrays in which the map records what it finds in a run."""
    metric = kernel_metric(phi)
    return () if metric is None else (metric.curvature,)


@generic
def rebuilt(phi: object, w: FloatArray) -> FloatArray:
    """Return weights with redundant entries computed again, without rounding errors; ``w`` if it has none."""
    return w


# Weights that are a proximal map of the image, as for constraints on signs and for L1 penalties. The vector
# that methods keep then holds both; see `maxmargin.structures.wrappers.ProximalMap`.


@generic
def shrink(prox, v, w, first, stop):
    """``w[first:stop] = prox(v[first:stop])``, coordinate by coordinate; ``w`` may be ``v``."""
    raise NotImplementedError


@generic_with_default
def refresh(phi, i, move, prox, v, w):
    """``w = prox(v)`` where a push of this move of example i has changed ``v``.

    The default computes all entries again, so a map with many weights should register its own.
    """
    shrink(prox, v, w, 0, v.shape[0])


@generic
def completed(phi: object, w: FloatArray) -> FloatArray:
    """Return weights in the layout for predictions; ``w`` unless the map has none for some of them."""
    return w


@generic
def proximal(phi: object) -> object:
    """Return the map whose weights are a proximal map of the image, with the fields ``inner`` and ``prox``.

    It is ``phi`` or one that ``phi`` wraps; None if there is none.
    """
    return None


def is_projected(phi: object) -> bool:
    """Whether weights are a proximal map of the image, which the vector that methods keep holds too."""
    return proximal(phi) is not None


def unconstrained(phi: object) -> object:
    """Return the map within one whose weights are a proximal map; any other map is returned as it is."""
    return phi.inner if proximal(phi) is phi else phi  # type: ignore[attr-defined]


def unprojected(phi: object, w: FloatArray) -> FloatArray:
    r"""Return the image :math:`v = A \alpha` in the vector ``w`` that methods keep: a view of it, or all."""
    return w[len(w) // 2 :] if is_projected(phi) else w


def settle(phi: object, v: FloatArray, w: FloatArray) -> None:
    """Make ``w`` the vector that methods keep for the image ``v``."""
    found = proximal(phi)
    if found is not None:
        d = len(w) // 2
        w[d:] = v
        run_in_slices(lambda some: _shrink_slice(found.prox, v, w, some.start, min(some.stop, d)), d)
    elif v is not w:
        w[:] = v


@kernel
def _shrink_slice(prox, v, w, first, stop):
    shrink(prox, v, w, first, stop)


def projected(phi: object, v: FloatArray) -> FloatArray:
    """Return the vector that methods keep for an image: the image itself, or a new vector that holds both."""
    if not is_projected(phi):
        return v
    w = aligned_zeros(map_sizes(phi).weights)
    settle(phi, v, w)
    return w


def penalty(phi: object, w: FloatArray) -> float:
    r"""Return what the regulariser adds to :math:`\frac12 \|w\|^2`: :math:`t \|w\|_1`."""
    if is_homogeneous(phi):
        return 0.0
    found = proximal(phi)
    weights = w[: map_sizes(found.inner).weights]
    parts = run_in_slices(lambda some: np.abs(weights[some]).sum(), len(weights))
    return float(found.prox.l1_factor) * float(sum(parts))


def is_homogeneous(phi: object) -> bool:
    """Whether weights scale with the image, by positive factors: they do not if they are thresholded."""
    found = proximal(phi)
    return found is None or bool(found.prox.l1_factor == 0.0)


@python_generic
def score_buffer(phi: object, w: FloatArray | None) -> FloatArray:
    """Return the array that `score` writes to, at ``w`` if it is given.

    A map whose scores are the weights may return ``w`` itself to avoid a copy. Only `score` and `push` write
    to it.
    """
    return aligned_zeros(map_sizes(phi).statistics)


@generic
def unpack(phi: object, w: FloatArray) -> tuple[FloatArray, ...]:
    """Return the weights as a tuple of arrays in the shapes that users expect."""
    parts: tuple[FloatArray, ...] = phi.unpack(w) if hasattr(phi, "unpack") else (w,)
    return parts


@python_generic
def adopted(phi: object, w: FloatArray, before: object) -> FloatArray | None:
    """Return weights of ``before``, a map of the first examples of ``phi``, as weights of ``phi``.

    None if the maps do not fit. The default requires weights of the same shapes.
    """
    fits = type(phi) is type(before) and len(w) == map_sizes(phi).weights
    if not fits or _shapes(phi, w) != _shapes(before, w):
        return None
    return w


def _shapes(phi: object, w: FloatArray) -> list[tuple[int, ...]]:
    return [np.shape(part) for part in unpack(phi, w)]


@python_generic
def row_layout(phi: object) -> RowLayout:
    """Return where the statistics of the rows of a map are; optional, for kernels."""
    raise TypeError(
        f"Kernelised: problem must be of Multiclass, Chain, SecondOrderChain, Segments or Graph, got a "
        f"problem with a {type(phi).__name__}."
    )


MAP_REQUIRED = (map_sizes, score, gram, push)
