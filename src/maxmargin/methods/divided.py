r"""Threads: the examples are divided into parts, which move at the same time and meet several times a pass.

Example i belongs to part i mod P. In a round every part begins with the weights of all, :math:`w^0`, and its
own blocks move as the inner method moves them, but as if each step counted P-fold: with
:math:`\lambda / P` in the place of :math:`\lambda`. Where part p gets to the weights :math:`w^p`, its dual
variables have moved the weights of all by :math:`(w^p - w^0) / P`, so that these become the mean

.. math:: w = w^0 + \frac1P \sum_p (w^p - w^0) = \frac1P \sum_p w^p .

**The dual never decreases** (Ma et al. 2015, CoCoA+). A part's steps raise
:math:`P \ell^p - \frac{\lambda}{2} \|w^p\|^2`, where :math:`\ell^p` is the dual loss of its own blocks, the
others' staying as they are; and as the squared length of a mean is at most the mean of squared lengths, the
dual :math:`\ell - \frac{\lambda}{2} \|w\|^2` rises by at least the mean of what these rose by.

The result depends on the number of parts, and not on the number of threads. More parts serve more threads,
but take shorter steps: two need about a third more passes than one.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling.threads import run_all
from maxmargin.methods._protocol import (
    Carry,
    Point,
    advance,
    carried,
    carried_w,
    dual_loss,
    dual_point,
    dual_weights,
    grain,
    has_step,
    moves_blocks,
    notes_gaps,
    point,
    regularisation,
    start,
    takes_corners,
    with_lam,
)
from maxmargin.methods._sweep import sweep, sweep_all
from maxmargin.methods._walks import affordable_walks, meet
from maxmargin.methods.sampling import Visits, n_visits, some_visits
from maxmargin.problems._protocol import sizes

_MEETINGS = 8  # at most, in a pass


class _Divided(NamedTuple):
    inner: Any
    parts: int


class Divided(_Divided):
    """A block method whose examples are divided among threads.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise or Away
        The method that moves the blocks.
    parts : int
        How many parts move at the same time: at least as many as there are threads to use.
    """

    __slots__ = ()

    def __new__(cls, inner: Any, parts: int = 2) -> "Divided":
        wraps = hasattr(inner, "inner")
        if wraps or not (has_step(inner) and moves_blocks(inner) and takes_corners(inner)):
            raise ValueError(
                f"Divided: inner must be BlockFrankWolfe, Pairwise or Away, got {type(inner).__name__}."
            )
        if not (isinstance(parts, int | np.integer) and parts >= 1):
            raise ValueError(f"Divided: parts must be an int >= 1, got {parts!r}.")
        return super().__new__(cls, inner, int(parts))


class DividedState(NamedTuple):
    """What the parts share, and what each has of its own.

    Attributes
    ----------
    w : array
        The weights of all.
    rows : array of shape (parts, d)
        Those that each part has come to.
    parts : tuple
        States of the inner method, with these weights; the blocks of the other parts stay at their truths.
    """

    w: FloatArray
    rows: FloatArray
    parts: tuple[Any, ...]


@start.register(Divided)
def divided_start(method: Divided, problem: Any) -> DividedState:
    parts = [start(method.inner, problem) for _ in range(method.parts)]
    return _gathered(aligned_zeros(sizes(problem).weights), parts)


def _gathered(w: FloatArray, parts: list[Any]) -> DividedState:
    """Return the state of these parts, their weights in one array."""
    rows = aligned_zeros(len(parts), len(w))
    return DividedState(w, rows, tuple(part._replace(w=row) for part, row in zip(parts, rows, strict=True)))


@advance.register(Divided)
def divided_advance(
    method: Divided, state: DividedState, problem: Any, visits: Visits | IntArray
) -> DividedState:
    length, total = grain(method, problem), n_visits(visits)
    for first in range(0, max(total, 1), length):
        state = _one_round(method, state, problem, some_visits(visits, first, first + length).order)
    return state


def _one_round(method: Divided, state: DividedState, problem: Any, order: IntArray) -> DividedState:
    """Move the blocks in this order, each within its part, and let the parts meet."""
    inner = with_lam(method.inner, regularisation(method.inner) / method.parts)

    def moved(p: int) -> Any:
        state.rows[p] = state.w
        return sweep_all(problem, inner, state.parts[p], order[order % method.parts == p])

    everyone = range(method.parts)
    interpreted = sweep.mode(problem) == "interpreted"  # a user's own code may not bear threads
    parts = [moved(p) for p in everyone] if interpreted else run_all(moved, everyone)
    meet(state.rows, state.w)
    return DividedState(state.w, state.rows, tuple(parts))


@grain.register(Divided)
def divided_grain(method: Divided, problem: Any) -> int:
    n = sizes(problem).examples
    return -(-n // affordable_walks(problem, _MEETINGS))


@dual_loss.register(Divided)
def divided_dual_loss(method: Divided, state: DividedState) -> float:
    return sum(dual_loss(method.inner, part) for part in state.parts)


@point.register(Divided)
def divided_point(method: Divided, state: DividedState, problem: Any) -> Point:
    return dual_point(state.w, dual_loss(method, state))


@carried.register(Divided)
def divided_carried(method: Divided, state: DividedState, problem: Any, carry: Carry) -> DividedState:
    parts = [carried(method.inner, part, problem, carry) for part in state.parts]
    return _gathered(carried_w(state.w, carry), parts)


@dual_weights.register(Divided)
def divided_dual_weights(method: Divided, state: DividedState, problem: Any) -> FloatArray:
    return np.sum([dual_weights(method.inner, part, problem) for part in state.parts], axis=0)


@notes_gaps.register(Divided)
def divided_notes_gaps(method: Divided) -> bool:
    """Gaps that several threads note in one tree would be a matter of chance."""
    return False
