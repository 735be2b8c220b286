r"""Weights that must not be negative: any problem, with a sign imposed on some of its weights.

.. math:: \min_w \frac{\lambda}{2} \|w\|^2 + \frac1n \sum_i \max_y H_i(y; w) \quad \text{subject to} \quad
          w_j \ge 0, \; j \in S .

With the image :math:`v = A \alpha` of dual variables and the projection P, which cuts :math:`v_S` at zero,

.. math:: w = P(v), \qquad D(\alpha) = b^\top \alpha - \frac{\lambda}{2} \|P(v)\|^2 .

As :math:`\langle P(v), v \rangle = \|P(v)\|^2`, block gaps measured at w add up to P(w) - D as ever. And as
:math:`\frac12 \|P(\cdot)\|^2` is convex and no more curved than :math:`\frac12 \|\cdot\|^2`, the gain of a
step along :math:`\delta` is at least that without signs,

.. math:: D(\alpha + \gamma d) \ge D(\alpha) + \gamma g - \frac{\gamma^2}{2} \lambda \|A d\|^2 ,

so that every line search, and the steps within an active set, raise the dual as they are.

The vector that methods keep has one more entry for each weight of S: the first d entries are w, the others
:math:`v_S`. A push restores the image, moves it and projects it again.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray
from maxmargin.compiling import helper
from maxmargin.problems import _protocol as protocol
from maxmargin.problems.custom import Custom
from maxmargin.wording import described


class _SignConstrained(NamedTuple):
    inner: Any
    nonnegative: IntArray
    where: IntArray


class SignConstrained(_SignConstrained):
    """A problem some of whose weights must not be negative.

    Parameters
    ----------
    inner : problem
        Any problem; a plain object stays one.
    nonnegative : array of ints, or of bools with one entry per weight
        Which weights, in the order of ``Result.weights``.
    """

    __slots__ = ()

    def __new__(cls, inner: Any, nonnegative: Any) -> Any:
        if not isinstance(inner, tuple):
            return (SignedCustom if isinstance(inner, Custom) else SignedObject)(inner, nonnegative)
        return super().__new__(cls, inner, *_places(inner, nonnegative))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.inner, self.nonnegative

    def unpack(self, w: FloatArray) -> Any:
        """Return the weights in the shapes of the problem."""
        return _unpacked(self.inner, w)


class SignedObject:
    """The same for a problem that is a plain object, which runs interpreted."""

    def __init__(self, inner: Any, nonnegative: Any) -> None:
        self.inner = inner
        self.nonnegative, self.where = _places(inner, nonnegative)

    def unpack(self, w: FloatArray) -> Any:
        """Return the weights in the shapes of the problem."""
        return _unpacked(self.inner, w)


class SignedCustom(SignedObject):
    """The same for three Python functions; steps between their calls are compiled."""

    def __init__(self, inner: Custom, nonnegative: Any) -> None:
        super().__init__(inner, nonnegative)
        self.space = SignConstrained(inner.space, self.where)


Signed = SignConstrained | SignedObject


def _places(inner: Any, nonnegative: Any) -> tuple[IntArray, IntArray]:
    """Return which weights must not be negative, and where they are in the problem's layout."""
    d = protocol.sizes(inner).weights
    order = np.concatenate([np.ravel(part) for part in _unpacked(inner, np.arange(float(d)))]).astype(
        np.int64
    )
    chosen = np.asarray(nonnegative)
    if chosen.dtype == np.bool_ and chosen.shape == order.shape:
        chosen = np.flatnonzero(chosen)
    valid = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or chosen.size == 0)
    if not valid or ((chosen < 0) | (chosen >= len(order))).any():
        raise ValueError(
            f"SignConstrained: nonnegative must be indices of weights, ints from 0 to {len(order) - 1}, or "
            f"{len(order)} bools, got {described(nonnegative)}."
        )
    chosen = np.unique(chosen.astype(np.int64))
    return chosen, order[chosen]


def _unpacked(inner: Any, w: FloatArray) -> Any:
    """Return the weights of a problem in its shapes, without what is kept beside them."""
    w = w[: protocol.sizes(inner).weights]
    return inner.unpack(w) if hasattr(inner, "unpack") else (w,)


@helper
def _restore(w, where, image):
    """Put the image in the place of its projection."""
    for k in range(where.shape[0]):
        w[where[k]] = image[k]


@helper
def _project(w, where, image):
    """Keep the image, and project it."""
    for k in range(where.shape[0]):
        image[k] = w[where[k]]
        w[where[k]] = max(image[k], 0.0)


@protocol.sizes.register(SignConstrained)
@protocol.sizes.register(SignedObject)
def sign_constrained_sizes(problem):
    size = protocol.sizes(problem.inner)
    return protocol.Sizes(
        size.examples, size.weights + problem.where.shape[0], size.statistics, size.output, size.parts
    )


@protocol.push.register(SignConstrained)
@protocol.push.register(SignedObject)
def sign_constrained_push(problem, i, move, scale, w, work):
    d = w.shape[0] - problem.where.shape[0]
    _restore(w, problem.where, w[d:])
    protocol.push(problem.inner, i, move, scale, w[:d], work)
    _project(w, problem.where, w[d:])


@protocol.is_projected.register(SignConstrained)
@protocol.is_projected.register(SignedObject)
def sign_constrained_is_projected(problem: Signed) -> bool:
    return True


@protocol.image.register(SignConstrained)
@protocol.image.register(SignedObject)
def sign_constrained_image(problem: Signed, w: FloatArray) -> FloatArray:
    """The image of d entries, followed by zeros."""
    v, d = w.copy(), len(w) - len(problem.where)
    _restore(v, problem.where, w[d:])
    v[d:] = 0.0
    return v


@protocol.projected.register(SignConstrained)
@protocol.projected.register(SignedObject)
def sign_constrained_projected(problem: Signed, v: FloatArray) -> FloatArray:
    w = v.copy()
    w[problem.where] = np.maximum(w[problem.where], 0.0)
    return w


@protocol.settle.register(SignConstrained)
@protocol.settle.register(SignedObject)
def sign_constrained_settle(problem: Signed, v: FloatArray, w: FloatArray) -> None:
    w[:] = v
    _project(w, problem.where, w[len(w) - len(problem.where) :])


@protocol.score.register(SignConstrained)
@protocol.score.register(SignedObject)
def sign_constrained_score(problem, i, w, theta):
    protocol.score(problem.inner, i, w[: w.shape[0] - problem.where.shape[0]], theta)


@protocol.score.register(SignedCustom)
def signed_custom_score(problem: SignedCustom, i: int, w: FloatArray, theta: FloatArray) -> None:
    if not np.may_share_memory(w, theta):  # scores are the weights
        protocol.score(problem.inner, i, w[: len(w) - len(problem.where)], theta)


@protocol.scores_at.register(SignConstrained)
@protocol.scores_at.register(SignedObject)
def sign_constrained_scores_at(problem: Signed, w: FloatArray | None) -> FloatArray:
    inner = problem.inner
    return protocol.scores_at(inner, None if w is None else w[: protocol.sizes(inner).weights])


# All else is that of the problem within.


@protocol.workspace.register(SignConstrained)
@protocol.workspace.register(SignedObject)
def sign_constrained_workspace(problem):
    return protocol.workspace(problem.inner)


@protocol.output_size.register(SignConstrained)
@protocol.output_size.register(SignedObject)
def sign_constrained_output_size(problem, i):
    return protocol.output_size(problem.inner, i)


@protocol.foresee.register(SignConstrained)
@protocol.foresee.register(SignedObject)
def sign_constrained_foresee(problem, i):
    protocol.foresee(problem.inner, i)


@protocol.statistics_size.register(SignConstrained)
@protocol.statistics_size.register(SignedObject)
def sign_constrained_statistics_size(problem, i):
    return protocol.statistics_size(problem.inner, i)


@protocol.argmax.register(SignConstrained)
@protocol.argmax.register(SignedObject)
def sign_constrained_argmax(problem, i, theta, y, work):
    protocol.argmax(problem.inner, i, theta, y, work)


@protocol.decode.register(SignConstrained)
@protocol.decode.register(SignedObject)
def sign_constrained_decode(problem, i, theta, y, work):
    protocol.decode(problem.inner, i, theta, y, work)


@protocol.is_exact.register(SignConstrained)
@protocol.is_exact.register(SignedObject)
def sign_constrained_is_exact(problem):
    return protocol.is_exact(problem.inner)


@protocol.shortfall.register(SignConstrained)
@protocol.shortfall.register(SignedObject)
def sign_constrained_shortfall(problem, i, work):
    return protocol.shortfall(problem.inner, i, work)


@protocol.is_bounded.register(SignConstrained)
@protocol.is_bounded.register(SignedObject)
def sign_constrained_is_bounded(problem: Signed) -> bool:
    return bool(protocol.is_bounded(problem.inner))


@protocol.loss.register(SignConstrained)
@protocol.loss.register(SignedObject)
def sign_constrained_loss(problem, i, y):
    return protocol.loss(problem.inner, i, y)


@protocol.psi.register(SignConstrained)
@protocol.psi.register(SignedObject)
def sign_constrained_psi(problem, i, y, index, value):
    return protocol.psi(problem.inner, i, y, index, value)


@protocol.gram.register(SignConstrained)
@protocol.gram.register(SignedObject)
def sign_constrained_gram(problem, i, move, image, work):
    protocol.gram(problem.inner, i, move, image, work)


@protocol.norm2.register(SignConstrained)
@protocol.norm2.register(SignedObject)
def sign_constrained_norm2(problem, i, move, image, work):
    return protocol.norm2(problem.inner, i, move, image, work)
