r"""Threads: the examples are divided into parts, which move in parallel and often synchronise.

Example i belongs to part i mod P. A part is a separate problem of :math:`n_p` of the n examples. In a round,
every part starts from the common weights :math:`w^0`, and the inner method moves its blocks as if each step
counted :math:`\sigma` times: with :math:`\lambda_p = \lambda n / (\sigma n_p)`. When part p has reached the
weights :math:`w^0 + d_p`, its dual variables have moved the common weights by :math:`d_p / \sigma`, so that

.. math:: w = w^0 + \frac1\sigma \sum_p d_p .

**The choice of sigma** (Ma et al. 2015, CoCoA+). A part's steps raise the dual of the problem in which the
other blocks stay fixed, with its own squared length counted :math:`\sigma` times. The sum of these gains is
at most the gain of the dual itself if

.. math:: \sigma \ge \rho, \qquad \rho = \frac{\| \sum_p d_p \|^2}{\sum_p \| d_p \|^2} \le P .

So :math:`\sigma = P` is always safe, but takes short steps. Where parts hardly interact, their moves are
nearly orthogonal and :math:`\rho` is close to one. It is measured often, and :math:`\sigma - 1` is twice a
running mean of :math:`\rho - 1`. After a loss of dual value, the mean starts again from P. Certificates hold
for any :math:`\sigma`.

**Rounds and stretches.** Short rounds need fewer passes. With few parts, what a return to Python costs would
limit them, so some rounds form a *stretch*, in which parts synchronise within their kernels
(``meetings.py``) at one :math:`\sigma`; the last round of a stretch measures :math:`\rho`. Where
adding up the weights takes long compared with a pass, a pass has few rounds or one.

The work of a part depends only on its examples, its state, the common weights and :math:`\sigma`, so threads,
processes or machines can do it. The result depends on the number of parts, but not on the number of threads.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin import states
from maxmargin.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.compiling.exchange import CAN_EXCHANGE
from maxmargin.compiling.threads import n_threads, run_all, run_in_turns
from maxmargin.methods import protocol
from maxmargin.methods._walks import affordable_walks
from maxmargin.methods.composition import check_inner
from maxmargin.methods.meetings import last_common, new_meetings
from maxmargin.methods.protocol import Carry, Point, Traits
from maxmargin.methods.sampling import Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance, sweep, sweep_in_turns
from maxmargin.problems.feature_map import inner, map_sizes
from maxmargin.problems.problem import AnyProblem, take
from maxmargin.wording import shown

_STRETCHES = 4  # for each part, at most, in a pass: the more parts, the more they interact
_ROUNDS = 32  # at most, in a pass, unless there are more stretches
_CAUTION = 2.0  # (sigma - 1) / (mean of rho - 1)
_SMOOTHING = 0.2  # share of the last rho in the mean
_SLICE = 1 << 15  # numbers of a vector: those of a few vectors fit into a processor's own cache


class _Divided(NamedTuple):
    inner: Any
    parts: int


class Divided(_Divided):
    """A block method whose examples are divided among threads.

    Parameters
    ----------
    inner : BlockFrankWolfe, Pairwise, Away or BlockExact
        The method that moves the blocks.
    parts : int
        Number of parts that move in parallel; at least the number of threads.
    """

    __slots__ = ()

    def __new__(cls, inner: object, parts: int = 2) -> "Divided":
        check_inner(cls.__name__, inner)
        if not (isinstance(parts, int | np.integer) and parts >= 1):
            raise ValueError(f"Divided: parts must be an int >= 1, got {shown(parts)}.")
        return super().__new__(cls, inner, int(parts))


class Part(NamedTuple):
    """Some of the examples, their numbers in the whole problem, and the inner method's state for them."""

    problem: AnyProblem
    numbers: IntArray
    state: Any


@states.parts.register(Part)
def part_parts(part: Part) -> list[Any]:
    """Return the state alone: the rest is a subset of the problem."""
    return [part.state]


@states.with_parts.register(Part)
def part_with_parts(part: Part, new: Sequence[object]) -> Part:
    return part._replace(state=new[0])


class DividedState(NamedTuple):
    """The common weights, the parts, and the running mean of rho: how much their moves interact."""

    w: FloatArray
    parts: tuple[Part, ...]
    interaction: float


def part_numbers(n: int, p: int, n_parts: int) -> IntArray:
    """Return the examples of part p."""
    return np.arange(p, n, n_parts)


def _part_method(method: Divided, n: int, size: int, sigma: float) -> Any:
    """Return the inner method for a part of this size, whose steps count sigma times."""
    return protocol.with_lam(method.inner, protocol.regularisation(method.inner) * n / (sigma * size))


@protocol.start.register(Divided)
def divided_start(method: Divided, problem: AnyProblem) -> DividedState:
    size = map_sizes(problem.map)
    n_parts = min(method.parts, int(size.examples))  # none is empty
    return DividedState(aligned_zeros(size.weights), _parts(method, problem, n_parts), float(n_parts))


def _parts(method: Divided, problem: AnyProblem, n_parts: int) -> tuple[Part, ...]:
    """Return the parts of a problem at the beginning."""
    n, parts = int(map_sizes(problem.map).examples), []
    for p in range(n_parts):
        numbers = part_numbers(n, p, n_parts)
        some = take(problem, numbers)
        parts.append(Part(some, numbers, protocol.start(method.inner, some)))
    return tuple(parts)


@advance.register(Divided)
def divided_advance(
    method: Divided, state: DividedState, problem: AnyProblem, visits: Visits | IntArray
) -> DividedState:
    length, total = protocol.grain(method, problem), n_visits(visits)
    rounds = _rounds_in_a_stretch(problem, len(state.parts))
    for first in range(0, max(total, 1), length):
        order = some_visits(visits, first, first + length).order
        state = _one_stretch(method, state, problem, order, rounds)
    return state


def _one_stretch(
    method: Divided, state: DividedState, problem: AnyProblem, order: IntArray, rounds: int
) -> DividedState:
    """Move the blocks in this order, each in its part, in some rounds with the same sigma."""
    phi, n_parts, lam, w = problem.map, len(state.parts), protocol.regularisation(method), state.w
    dual = protocol.dual_loss(method, state) - 0.5 * lam * inner(phi, w, w)
    sigma = sigma_for(state.interaction, n_parts)
    state = _moved(method, state, problem, order, rounds, sigma)
    if n_parts == 1:
        w[:] = state.parts[0].state.w
        return state
    rho = _add_up(phi, state, sigma)
    gain = protocol.dual_loss(method, state) - 0.5 * lam * inner(phi, w, w) - dual
    return state._replace(interaction=mean_interaction(state.interaction, rho, gain, n_parts))


def _moved(
    method: Divided, state: DividedState, problem: AnyProblem, order: IntArray, rounds: int, sigma: float
) -> DividedState:
    """Return the state after all visits; the moves of the last round are still to be added up."""
    n, n_parts = int(map_sizes(problem.map).examples), len(state.parts)
    orders = [order[order % n_parts == p] // n_parts for p in range(n_parts)]
    ends = [np.arange(1, rounds) * len(own) // rounds for own in orders]
    # A user's own Python code may not be thread-safe, and interpreted kernels keep other threads waiting.
    is_alone = not CAN_EXCHANGE or sweep.mode(problem) == "interpreted"
    meetings = new_meetings(state.w, sigma, ends, is_crowded=is_alone or n_threads() < n_parts)

    def task(p: int) -> Generator[None, None, Any]:
        part = state.parts[p]
        part.state.w[:] = state.w
        own, numbers = _part_method(method, n, len(part.numbers), sigma), part.numbers
        turns = sweep_in_turns(part.problem, own, part.state, orders[p], numbers, meetings=meetings[p])
        return (yield from turns)

    moved = run_in_turns([task(p) for p in range(n_parts)], is_alone)
    if rounds > 1:
        state.w[:] = last_common(meetings[0])
    parts = [part._replace(state=new) for part, new in zip(state.parts, moved, strict=True)]
    return state._replace(parts=tuple(parts))


def _add_up(phi: object, state: DividedState, sigma: float) -> float:
    """Add the moves of the parts, divided by sigma, to the common weights; return rho.

    The parts' weights are free to be overwritten, since every stretch starts from the common ones: they hold
    the moves, and those of part 0 their sum.
    """
    w, moves = state.w, [part.state.w for part in state.parts]

    def subtract(some: slice) -> None:
        for move in moves:
            move[some] -= w[some]

    def add(some: slice) -> None:
        for move in moves[1:]:
            moves[0][some] += move[some]
        w[some] += moves[0][some] / sigma

    _for_slices(subtract, len(w))
    apart = sum(inner(phi, move, move) for move in moves)
    _for_slices(add, len(w))
    return inner(phi, moves[0], moves[0]) / apart if apart > 0.0 else state.interaction


def _for_slices(change: Callable[[slice], None], length: int) -> None:
    """Change vectors of this length slice by slice, which caches hold; threads share the slices."""
    run_all(change, [slice(first, first + _SLICE) for first in range(0, length, _SLICE)])


def sigma_for(interaction: float, n_parts: int) -> float:
    """Return sigma for the running mean of rho."""
    return min(1.0 + _CAUTION * max(interaction - 1.0, 0.0), float(n_parts))


def mean_interaction(before: float, rho: float, gain: float, n_parts: int) -> float:
    """Return the running mean of rho; after a loss of dual value, the safe number of parts."""
    return float(n_parts) if gain < 0.0 else before + _SMOOTHING * (rho - before)


@protocol.grain.register(Divided)
def divided_grain(method: Divided, problem: AnyProblem) -> int:
    """Return the visits of a stretch."""
    n = int(map_sizes(problem.map).examples)
    return -(-n // affordable_walks(problem, _STRETCHES * method.parts))


def _rounds_in_a_stretch(problem: AnyProblem, n_parts: int) -> int:
    """Return how many rounds a stretch has."""
    most = affordable_walks(problem, _ROUNDS)
    return 1 if n_parts == 1 else -(-most // affordable_walks(problem, _STRETCHES * n_parts))


@protocol.weights.register(Divided)
def divided_weights(method: Divided, state: DividedState) -> FloatArray:
    return state.w


@protocol.oracle_calls.register(Divided)
def divided_oracle_calls(method: Divided, state: DividedState, visits: int) -> int:
    return visits


@protocol.dual_loss.register(Divided)
def divided_dual_loss(method: Divided, state: DividedState) -> float:
    sizes = [len(part.numbers) for part in state.parts]
    losses = [protocol.dual_loss(method.inner, part.state) for part in state.parts]
    return float(np.dot(sizes, losses)) / sum(sizes)


@protocol.point.register(Divided)
def divided_point(method: Divided, state: DividedState, problem: AnyProblem) -> Point:
    return protocol.dual_point(problem, state.w, protocol.dual_loss(method, state))


@protocol.carried.register(Divided)
def divided_carried(method: Divided, state: DividedState, problem: AnyProblem, carry: Carry) -> DividedState:
    """Carry over each part; new examples are distributed over the parts in turn, like all others."""
    n, parts = int(map_sizes(problem.map).examples), []
    for p, part in enumerate(state.parts):
        numbers, own = part_numbers(n, p, len(state.parts)), carry._replace(n=len(part.numbers))
        some = take(problem, numbers)
        parts.append(Part(some, numbers, protocol.carried(method.inner, part.state, some, own)))
    return DividedState(protocol.carried_w(state.w, carry), tuple(parts), state.interaction)


@protocol.dual_weights.register(Divided)
def divided_dual_weights(method: Divided, state: DividedState, problem: AnyProblem) -> FloatArray:
    sums = [
        protocol.dual_weights(method.inner, part.state, take(problem, part.numbers)) for part in state.parts
    ]
    return np.sum(sums, axis=0)


@protocol.traits.register(Divided)
def divided_traits(method: Divided) -> Traits:
    # Gaps that several threads record in one tree would depend on timing.
    own = {"has_step": False, "notes_gaps": False, "projects": False, "wraps": True}
    return protocol.traits(method.inner)._replace(**own)
