r"""Threads: the examples are divided into parts, which move in parallel and often synchronise.

Example i belongs to part i mod P. A part is a separate problem of :math:`n_p` of the n examples. In a
*stretch*, every part starts from the common weights :math:`w^0`, and the inner method moves its blocks as if
each step counted :math:`\sigma` times: with :math:`\lambda_p = \lambda n / (\sigma n_p)`. When its own moves
have changed the weights of part p by :math:`D_p`, its dual variables have moved the common weights by
:math:`D_p / \sigma`, so that

.. math:: w = w^0 + \frac1\sigma \sum_p D_p .

**The choice of sigma** (Ma et al. 2015, CoCoA+). A part's steps raise the dual of the problem in which the
other blocks stay fixed, with its own squared length counted :math:`\sigma` times. The sum of these gains is
at most the gain of the dual itself if

.. math:: \sigma \ge \rho, \qquad \rho = \frac{\| \sum_p d_p \|^2}{\sum_p \| d_p \|^2} \le P ,

where :math:`d_p` are the moves that the other parts have not seen yet. So :math:`\sigma = P` is always safe,
but takes short steps. Where parts hardly interact, their moves are nearly orthogonal and :math:`\rho` is
close to one. It is measured at the end of each stretch. :math:`\sigma - 1` is P - 1 times a running mean of
:math:`\rho - 1`: for two parts it is that mean itself. With more parts, the mean alone let the dual fall. At
the start, :math:`\sigma` is P in a short stretch. A loss of dual value doubles the mean's excess over one.
Certificates hold for any :math:`\sigma`.

**Rounds.** A stretch has several rounds. After each of them, parts exchange their moves within their kernels
(``between_visits.py``): a part adds :math:`1 / \sigma` times the others' moves of the round before to its own
weights. The moves of the last two rounds are not exchanged; they are the :math:`d_p` from which :math:`\rho`
is measured. So at the end of a stretch part p has the weights
:math:`w_p = w^0 + D_p + \frac1\sigma \sum_{q \ne p} (D_q - d_q)`, from which follows

.. math:: w = w^0 + \frac{1}{\sigma + P - 1} \sum_p \Bigl( w_p - w^0 + \frac{P - 1}{\sigma} d_p \Bigr) .

The work of a part depends only on its examples, its state, the common weights, :math:`\sigma` and the moves
of the others in earlier rounds. So the result depends on the number of parts, but not on that of threads.
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling.numba_private.instructions import CAN_EXCHANGE
from maxmargin.files import checkpoint
from maxmargin.methods import protocol
from maxmargin.methods.between_visits import ENTRY_BYTES, Exchange, new_exchanges, new_log
from maxmargin.methods.momentum import affordable_updates
from maxmargin.methods.protocol import Carry, Point, Traits, check_inner
from maxmargin.methods.rules import Visits, n_visits, some_visits
from maxmargin.methods.sweep import advance, sweep, sweep_in_turns
from maxmargin.runtime.arrays import FloatArray, IntArray, aligned_zeros
from maxmargin.runtime.threads import n_threads, run_in_slices, run_in_turns
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import inner, map_sizes
from maxmargin.structures.problem import AnyProblem, take

_STRETCHES = 2  # for each part, at most, in a pass: the more parts, the more they interact
_TRIAL = 16  # a stretch is this many times longer once rho has been measured
_ROUNDS, _FEWEST = 256, 8  # rounds in a pass, if a part then makes at least this many visits in each
_LOG_BYTES = 1 << 27  # at most, for the log of moves
_SMOOTHING = 0.2  # weight of the last rho in the running mean
_CAUTIOUS, _EXCESS = (
    2.0,
    0.05,
)  # after a loss: factor of the excess of rho over one, and its least value before


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
    """Some of the examples.

    Attributes
    ----------
    problem : Problem
        The problem of these examples.
    numbers : array
        Their indices in the whole problem.
    state : Any
        The inner method's state for them.
    before : array
        Workspace: the part's weights at the end of a stretch, without its own moves of the last two rounds.
    """

    problem: AnyProblem
    numbers: IntArray
    state: Any
    before: FloatArray


@checkpoint.parts.register(Part)
def part_parts(part: Part) -> list[Any]:
    """Return only the state: the other fields are subsets of the problem."""
    return [part.state]


@checkpoint.with_parts.register(Part)
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
    """Return the initial parts of a problem."""
    n, parts = int(map_sizes(problem.map).examples), []
    for p in range(n_parts):
        numbers = part_numbers(n, p, n_parts)
        some = take(problem, numbers)
        state = protocol.start(method.inner, some)
        parts.append(Part(some, numbers, state, np.empty(len(protocol.weights(method.inner, state)))))
    return tuple(parts)


@advance.register(Divided)
def divided_advance(
    method: Divided, state: DividedState, problem: AnyProblem, visits: Visits | IntArray
) -> DividedState:
    length, total, first = protocol.grain(method, problem), n_visits(visits), 0
    while first < max(total, 1):
        stop = first + _stretch_length(state, length)
        state = _one_stretch(method, state, problem, some_visits(visits, first, stop).order)
        first = stop
    return state


def _one_stretch(method: Divided, state: DividedState, problem: AnyProblem, order: IntArray) -> DividedState:
    """Visit the blocks in this order, each in its part, in several rounds with the same sigma."""
    phi, n_parts, lam, w = problem.map, len(state.parts), protocol.regularisation(method), state.w
    dual = protocol.dual_loss(method, state) - 0.5 * lam * inner(phi, w, w)
    sigma = sigma_for(state.interaction, n_parts, caution=n_parts - 1.0)
    state = _moved(method, state, problem, order, sigma)
    if n_parts == 1:
        w[:] = state.parts[0].state.w
        return state
    rho = _add_up(phi, state, sigma)
    gain = protocol.dual_loss(method, state) - 0.5 * lam * inner(phi, w, w) - dual
    before = rho if _is_unknown(state) else state.interaction
    return state._replace(interaction=mean_interaction(before, rho, gain, n_parts))


def _moved(
    method: Divided, state: DividedState, problem: AnyProblem, order: IntArray, sigma: float
) -> DividedState:
    """Return the state after all visits; the weights of the parts are still to be added up."""
    n, n_parts = int(map_sizes(problem.map).examples), len(state.parts)
    orders = [order[order % n_parts == p] // n_parts for p in range(n_parts)]
    # A user's own Python code may not be thread-safe, and interpreted kernels keep other threads waiting.
    is_alone = not CAN_EXCHANGE or sweep.mode(problem) == "interpreted"
    exchanges = _exchanges(method, state, problem, orders, is_alone or n_threads() < n_parts)

    def task(p: int) -> Generator[None, None, Any]:
        part = state.parts[p]
        part.state.w[:] = state.w
        if len(exchanges[p].after) < 2:
            part.before[:] = state.w
        own = _part_method(method, n, len(part.numbers), sigma)
        turns = sweep_in_turns(part.problem, own, part.state, orders[p], part.numbers, between=exchanges[p])
        return (yield from turns)

    moved = run_in_turns([task(p) for p in range(n_parts)], is_alone)
    parts = [part._replace(state=new) for part, new in zip(state.parts, moved, strict=True)]
    return state._replace(parts=tuple(parts))


def _exchanges(
    method: Divided, state: DividedState, problem: AnyProblem, orders: list[IntArray], is_crowded: bool
) -> list[Exchange]:
    """Return the exchanges of the parts, which make their visits in these orders."""
    size, n_parts = map_sizes(problem.map), len(orders)
    rounds = _rounds_in_a_stretch(problem, sum(map(len, orders)), n_parts)
    after = [np.arange(1, rounds) * len(own) // rounds for own in orders]
    longest = max(-(-len(own) // rounds) for own in orders) if rounds > 1 else 0
    log = new_log(n_parts, longest, int(size.statistics))
    scale = 1.0 / (protocol.regularisation(method) * size.examples)
    return new_exchanges(problem.map, after, [part.before for part in state.parts], scale, log, is_crowded)


def _add_up(phi: object, state: DividedState, sigma: float) -> float:
    """Add what all parts have moved to the common weights; return rho.

    The weights of the parts may be overwritten, since every stretch starts from the common weights. Those of
    each part end up holding its moves of the last two rounds, and those of part 0 the sum of these moves.
    ``before`` of part 0 holds the sum of all moves.
    """
    w, others = state.w, len(state.parts) - 1
    moves, befores = [part.state.w for part in state.parts], [part.before for part in state.parts]

    def subtract(some: slice) -> None:
        start, total = w[some], np.zeros(len(w[some]))
        for move, before in zip(moves, befores, strict=True):
            total += move[some] - start
            move[some] -= before[some]
        befores[0][some] = total

    def add(some: slice) -> None:
        for move in moves[1:]:
            moves[0][some] += move[some]
        w[some] += (befores[0][some] + others / sigma * moves[0][some]) / (sigma + others)

    run_in_slices(subtract, len(w))
    apart = sum(inner(phi, move, move) for move in moves)
    run_in_slices(add, len(w))
    return inner(phi, moves[0], moves[0]) / apart if apart > 0.0 else state.interaction


def sigma_for(interaction: float, n_parts: int, caution: float) -> float:
    """Return sigma for the running mean of rho; ``caution`` is the factor of its excess over one."""
    return min(1.0 + caution * max(interaction - 1.0, 0.0), float(n_parts))


def mean_interaction(before: float, rho: float, gain: float, n_parts: int) -> float:
    """Return the running mean of rho; if the dual fell, increase it, up to the number of parts."""
    if gain < 0.0:
        return min(1.0 + _CAUTIOUS * max(before - 1.0, rho - 1.0, _EXCESS), float(n_parts))
    return before + _SMOOTHING * (rho - before)


@protocol.grain.register(Divided)
def divided_grain(method: Divided, problem: AnyProblem) -> int:
    """Return the number of visits in a stretch."""
    n = int(map_sizes(problem.map).examples)
    return -(-n // affordable_updates(problem, _STRETCHES * method.parts))


def _stretch_length(state: DividedState, length: int) -> int:
    """Return the number of visits in the next stretch: few if rho is unknown, as steps are then short."""
    return -(-length // _TRIAL) if _is_unknown(state) else length


def _is_unknown(state: DividedState) -> bool:
    """Whether rho has not been measured yet, or is as large as it can be."""
    return state.interaction == len(state.parts) > 1


def _rounds_in_a_stretch(problem: AnyProblem, visits: int, n_parts: int) -> int:
    """Return the number of rounds in a stretch of this many visits."""
    size = map_sizes(problem.map)
    fitting = _LOG_BYTES // (n_parts * ENTRY_BYTES * max(int(size.statistics), 1))
    each = max(1, min(max(size.examples // (_ROUNDS * n_parts), _FEWEST), fitting))
    return max(1, visits // (n_parts * each)) if n_parts > 1 else 1


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
    n, parts, w = int(map_sizes(problem.map).examples), [], protocol.carried_w(problem, state.w, carry)
    for p, part in enumerate(state.parts):
        numbers, own = part_numbers(n, p, len(state.parts)), carry._replace(n=len(part.numbers))
        some = take(problem, numbers)
        moved = protocol.carried(method.inner, part.state, some, own)
        parts.append(Part(some, numbers, moved, np.empty_like(w)))
    return DividedState(w, tuple(parts), state.interaction)


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
    return protocol.traits(method.inner)._replace(**own, threads=method.parts)
