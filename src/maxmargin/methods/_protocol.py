"""What a method must say of itself: the generic functions that the driver is written in.

A method is a named tuple of its parameters, its state a named tuple of arrays that change in
place. A method that moves one block at a time defines `step`, in compiled code, and gets `advance`
for free; one that moves all at once defines `advance`.
"""

from typing import Any, NamedTuple

from maxmargin._compile import generic
from maxmargin.rows import FloatArray, IntArray

# What a step or a sweep reports.
DONE, FULL, BROKEN = 0, 1, 2

# How far rounding may push a gap or a hinge, which are at least zero, below it; relative to its terms.
ROUNDING = 1e-9


class Point(NamedTuple):
    r"""A primal-dual pair that can be certified.

    Attributes
    ----------
    w : array
        Weights, in the problem's layout.
    ell : float
        Dual loss :math:`\ell = b^\top \alpha`, the mean over examples of :math:`\sum_y \alpha_i(y) L_i(y)`.
    """

    w: FloatArray
    ell: float


class BrokenOracle(ValueError):
    """The max oracle of some example returned an output that another one beats."""


@generic
def start(method: Any, problem: Any) -> Any:
    r"""Return the state at :math:`\alpha_i(y_i) = 1`, where w = 0."""
    raise TypeError(
        f"solve: method must be one of maxmargin's methods, such as BlockFrankWolfe(lam=0.01), "
        f"got {method!r}."
    )


@generic
def step(method, state, problem, i, scratch):
    """Move block i and report `DONE` or `BROKEN`; leaves the move made in ``scratch.move``."""
    raise NotImplementedError


@generic
def has_room(method, state, slack):
    """Whether one more step, on vectors of up to ``slack`` entries, fits the state's pools."""
    raise NotImplementedError


@generic
def advance(method: Any, state: Any, problem: Any, order: IntArray) -> Any:
    """Visit the examples in ``order`` and return the state; ``order`` is part of a pass or all of it."""
    raise NotImplementedError


@generic
def point(method: Any, state: Any, problem: Any) -> Point:
    """Return the method's answer: the point whose objective is measured and whose weights are returned."""
    raise NotImplementedError


@generic
def regularisation(method: Any) -> float:
    """Return lam."""
    return float(method.lam)


@generic
def moves_blocks(method: Any) -> bool:
    """Whether a pass may be cut into pieces: true for methods that move one block at a time."""
    return True
