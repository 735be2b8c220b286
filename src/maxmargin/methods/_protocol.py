"""What a method must say of itself: the generic functions that the driver is written in.

A method is a named tuple of its parameters, its state a named tuple of arrays that change in
place. A method that moves one block at a time defines `step`, in compiled code, and gets `advance`
for free; one that moves all at once defines `advance`.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling import generic, generic_with_default, subroutine
from maxmargin.methods._scratch import find_corner, score_terms
from maxmargin.methods.sampling import Visits
from maxmargin.problems._protocol import is_exact

# What a step or a sweep reports. BROKEN is a gap that an oracle may be to blame for, UNDEFINED a number that
# is not finite whatever the oracle answers.
DONE, FULL, BROKEN, UNDEFINED = 0, 1, 2, 3

# How far rounding may push a gap or a hinge, which are at least zero, below it; relative to its terms.
ROUNDING = 1e-9
# The same, relative to the scores of which it is a difference: some thousand roundings of float64.
_SCORE_ROUNDING = 1e-12


class Point(NamedTuple):
    r"""A primal-dual pair that can be certified.

    Attributes
    ----------
    w : array
        Weights, in the problem's layout.
    ell : float
        Dual loss :math:`\ell = b^\top \alpha`, the mean over examples of :math:`\sum_y \alpha_i(y) L_i(y)`.
    norm2 : float
        :math:`\|A \alpha\|^2`: the squared length of the weights that belong to the dual variables.
    others : tuple of arrays
        Other weights that may have a lower objective; measured from time to time.
    """

    w: FloatArray
    ell: float
    norm2: float
    others: tuple[FloatArray, ...] = ()


def dual_point(w: FloatArray, ell: float) -> Point:
    """Return the point whose weights are those of its dual variables, as they are for most methods."""
    return Point(w, ell, float(w @ w))


def primal_point(w: FloatArray) -> Point:
    """Return the point of weights that belong to no dual variables: with all weight on the truth, D = 0."""
    return Point(w, 0.0, 0.0)


@subroutine
def is_sound(problem, gap, terms, scratch):
    """Whether a gap is finite and, unless the oracle is approximate, not below zero but for rounding.

    Where it seems to be, large scores may be the reason: the sums from which the oracle chooses are rounded
    relative to the scores, however close to zero their differences are.
    """
    if not is_exact(problem):
        return -np.inf < gap < np.inf
    if -ROUNDING * (1.0 + terms) <= gap:
        return gap < np.inf
    return -_SCORE_ROUNDING * score_terms(scratch.corner, scratch.theta) <= gap


class BrokenOracle(ValueError):
    """The max oracle of some example returned an output that another one beats."""


class ScaleError(ValueError):
    """Numbers left the range of float64: features, losses, or C (lam) are too large or too small."""


def scale_error(what: str) -> ScaleError:
    """Return the error that says which number left the range of float64."""
    return ScaleError(
        f"solve: {what} must be within the range of float64, got an overflow or underflow: the scale of the "
        f"features, of the losses or of C (lam) is too extreme; scale the features or choose another C."
    )


@generic
def start(method: Any, problem: Any) -> Any:
    r"""Return the state at :math:`\alpha_i(y_i) = 1`, where w = 0."""
    raise TypeError(
        f"solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), "
        f"got {method!r}."
    )


def _wraps(method: Any, state: Any) -> bool:
    """Whether this is a wrapper with a state of its own: what it does not define is the inner method's."""
    return hasattr(method, "inner") and hasattr(state, "inner")


@generic
def weights(method: Any, state: Any) -> FloatArray:
    """Return the vector that steps change in place: the weights, but for their `factor`."""
    return weights(method.inner, state.inner) if _wraps(method, state) else state.w


@generic_with_default
def factor(method, state):
    """Return c, where the iterate is c times `weights`: one, unless the method scales its iterate lazily."""
    return 1.0


@generic_with_default
def seek(method, state, problem, i, w, scratch):
    """Find a corner for the next step of block i, where ``w`` is `weights`; return its loss and its hinge."""
    return find_corner(problem, i, w, scratch)


@generic
def step(method, state, problem, i, loss_y, hinge, scratch):
    """Move block i, given what its oracle answered, and report `DONE` or `BROKEN`.

    ``scratch`` has the scores theta and the answer's corner, ``loss_y`` and ``hinge`` are its loss and
    its margin. The move made is left in ``scratch.move``.
    """
    raise NotImplementedError


@generic
def mean_margin(method, state, i, theta):
    r"""Return the mean of :math:`H_i(y)` under the dual variables of block i, at the scores theta."""
    raise NotImplementedError


@generic
def has_room(method, state, problem, i):
    """Whether one more step of block i fits the state's pools."""
    raise NotImplementedError


@generic_with_default
def foresee_block(method, state, i):
    """Ask for the state of block i ahead of its visit, with `prefetch`; a method need not."""


@generic
def advance(method: Any, state: Any, problem: Any, visits: Visits | IntArray) -> Any:
    """Make the visits, which are part of a pass or all of it, and return the state."""
    raise NotImplementedError


@generic
def dual_loss(method: Any, state: Any) -> float:
    """Return ell of the present dual variables."""
    return dual_loss(method.inner, state.inner) if _wraps(method, state) else float(state.ell.mean())


@generic
def point(method: Any, state: Any, problem: Any) -> Point:
    """Return the method's answer: the point whose objective is measured and whose weights are returned."""
    raise NotImplementedError


class Carry(NamedTuple):
    r"""How a state is carried over to another lam, or to a problem with more examples at its end.

    With :math:`s = \lambda' n' / (\lambda n)` the weights :math:`w = A \alpha` belong to the dual variables
    :math:`s \alpha_i(y)`, :math:`y \ne y_i`, which are feasible for :math:`s \le 1`; and the same dual
    variables belong to the weights :math:`w / s`.

    Attributes
    ----------
    share : float
        The factor of all dual variables but the truth's, at most one.
    factor : float
        The factor of the weights, share / s.
    lam : float
        The lam before.
    n : int
        The number of examples before.
    """

    share: float
    factor: float
    lam: float
    n: int


@generic
def carried(method: Any, state: Any, problem: Any, carry: Carry) -> Any:
    """Return the state, made by the same kind of method, for ``method`` at another lam or with more examples.

    It must not share arrays with the state given, which may be carried again.
    """
    raise TypeError(
        f"solve: start is of no use to {type(method).__name__}, which cannot go on from a result."
    )


def carried_w(w: FloatArray, carry: Carry) -> FloatArray:
    """Return the weights, carried over."""
    out = aligned_zeros(len(w))
    np.multiply(w, carry.factor, out=out)
    return out


def carried_ell(ell: FloatArray, n: int, carry: Carry) -> FloatArray:
    """Return the dual losses of the blocks, carried over, followed by those of new ones, which are zero."""
    return np.concatenate([carry.share * ell, np.zeros(n - len(ell))])


@generic
def dual_weights(method: Any, state: Any, problem: Any) -> FloatArray | None:
    r"""Return :math:`\lambda n A \alpha = \sum_i \Phi_i z_i` from the dual variables; None if not kept."""
    return dual_weights(method.inner, state.inner, problem) if _wraps(method, state) else None


@generic
def oracle_calls(method: Any, state: Any, visits: int) -> int:
    """Return how often the oracle was called in this many visits: once in each, where nothing is cached."""
    return oracle_calls(method.inner, state.inner, visits) if _wraps(method, state) else visits


@generic
def with_lam(method: Any, lam: float) -> Any:
    """Return the method with another lam."""
    if hasattr(method, "inner"):
        return method._replace(inner=with_lam(method.inner, lam))
    return method._replace(lam=lam)


@generic
def regularisation(method: Any) -> float:
    """Return lam."""
    return regularisation(method.inner) if hasattr(method, "inner") else float(method.lam)


@generic
def grain(method: Any, problem: Any) -> int:
    """Return how many visits are made together: a pass is cut only at multiples of this number."""
    return grain(method.inner, problem) if hasattr(method, "inner") else 1


@generic
def moves_blocks(method: Any) -> bool:
    """Whether a pass may be cut into pieces: true for methods that move one block at a time."""
    return moves_blocks(method.inner) if hasattr(method, "inner") else True


@generic
def has_dual(method: Any) -> bool:
    """Whether steps move dual variables: false for methods that know the weights alone."""
    return has_dual(method.inner) if hasattr(method, "inner") else True


@generic
def notes_gaps(method: Any) -> bool:
    """Whether examples can be drawn by the block gaps that its steps leave in ``scratch.move``."""
    return notes_gaps(method.inner) if hasattr(method, "inner") else has_dual(method)


@generic
def projects(method: Any) -> bool:
    r"""Whether it is sound where weights are a projection of :math:`A \alpha`.

    So it is if its vector is changed by `push`, `settle` and positive factors alone.
    """
    return False


def has_step(method: Any) -> bool:
    """Whether the method has a step that loops other than its own can take."""
    return step.dispatch(type(method)) is not step.dispatch(object)


def has_own_loop(method: Any) -> bool:
    """Whether it is a method that moves blocks, but by a loop of its own."""
    is_method = start.dispatch(type(method)) is not start.dispatch(object)
    return is_method and moves_blocks(method) and not has_step(method)


def takes_corners(method: Any) -> bool:
    """Whether its steps lead to any corner that they are given, and not in a direction of their own."""
    if hasattr(method, "inner"):
        return takes_corners(method.inner)
    return seek.dispatch(type(method)) is seek.dispatch(object)


@generic
def is_average(method: Any) -> bool:
    """Whether the answer is an average of iterates already, so that no average is made of it."""
    return is_average(method.inner) if hasattr(method, "inner") else False
