"""What happens between the visits of a kernel, without a return to Python.

A return takes as long as a hundred short visits. So a kernel makes all visits of a pass, and between them
takes snapshots for acceleration, or exchanges moves with other parts of the examples.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import compiled_only, generic, helper, subroutine
from maxmargin.compiling.loops import add_scaled, copy, has_reached, publish, scale_by
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray
from maxmargin.structures.feature_map import add_entry, foresee, map_workspace, push, reset


@generic
def before_visit(between, t, w, work):
    """Do what is due before visit t of this call, such as an exchange; return whether it is complete."""
    raise NotImplementedError


@generic
def record(between, i, move):
    """Record the move of example i of this part."""
    raise NotImplementedError


@generic
def kappa_now(between):
    """Return the kappa that is added to lam in the next step."""
    raise NotImplementedError


NEVER = 1 << 62
_NONE = np.zeros(0)


class Acceleration(NamedTuple):
    """What happens between visits of an accelerated pass, or nothing: the default of each field.

    It is another type than `Exchange`, so that kernels compile faster. Every few visits, a snapshot of the
    weights is added to their mean over time. Another one is taken at the beginning of each *stretch* of a
    pass; then kappa grows and weights shrink (the first pass), or the centre moves and weights follow (the
    second).

    Attributes
    ----------
    done : int
        How many visits were made before this call of the kernel.
    before : int
        How many were made in the run before these.
    interval, stretch : int
        The number of visits from one snapshot to the next, and from one stretch to the next.
    end : int
        The number of visits in the run at the end of the pass, where no stretch begins.
    examples : int
        n, the number of visits in a pass.
    last : array of shape (2,)
        The number of visits in the run at the last snapshot, and at the beginning of the stretch.
    mean : array
        The mean of the weights over time.
    kappa : array of shape (1,)
        What is added to lam.
    growth : float
        By how much kappa grows in this pass: lam in the first, else zero.
    centre, centre_move : arrays
        The prox-centre, and by how much it moves in this pass; empty if it stays.
    follow : float
        The fraction of the centre's move that the weights follow.
    gamma : array
        Output: the step of each example at its last visit; empty if it is not needed.
    """

    done: int = 0
    before: int = 0
    interval: int = NEVER
    stretch: int = NEVER
    end: int = NEVER
    examples: int = 1
    last: IntArray = np.zeros(2, dtype=np.int64)
    mean: FloatArray = _NONE
    kappa: FloatArray = np.zeros(1)
    growth: float = 0.0
    centre: FloatArray = _NONE
    centre_move: FloatArray = _NONE
    follow: float = 0.0
    gamma: FloatArray = _NONE


NO_ACCELERATION = Acceleration()


@kappa_now.register(Acceleration)
def acceleration_kappa_now(between):
    return between.kappa[0]


@record.register(Acceleration)
def acceleration_record(between, i, move):
    if between.gamma.shape[0] > 0:
        between.gamma[i] = move.gamma[0]


@before_visit.register(Acceleration)
def acceleration_before_visit(between, t, w, work):
    visits = between.before + between.done + t
    begins = visits - between.last[1] >= between.stretch and visits < between.end
    if begins or visits - between.last[0] >= between.interval:
        mix(share_since(between.last[0], visits), w, between.mean)
        between.last[0] = visits
    if begins:
        ahead = min(between.stretch, between.end - visits)
        _begin_stretch(between, ahead / between.examples, w)
        between.last[1] = visits
    return True


@subroutine
def _begin_stretch(between, share, w):
    """Begin a stretch that is a share of the pass: let kappa grow, or move the centre."""
    if between.growth > 0.0:
        before = between.growth + between.kappa[0]
        between.kappa[0] += share * between.growth
        scale_by(before / (between.growth + between.kappa[0]), w)
    if between.centre_move.shape[0] > 0:
        add_scaled(share, between.centre_move, between.centre)
        add_scaled(share * between.follow, between.centre_move, w)


@subroutine
def share_since(last, now):
    """Return the share of the time from ``last`` to ``now`` in all time until ``now``, with density t^2."""
    ratio = last / now
    return 1.0 - ratio * ratio * ratio


@helper
def mix(share, x, mean):
    """``mean += share * (x - mean)``"""
    for j in range(mean.shape[0]):
        mean[j] += share * (x[j] - mean[j])


# How often to poll before a kernel returns: two or three milliseconds.
_PATIENCE = 4_000_000
# Numbers in a cache line. Numbers that different threads write are kept this far apart.
_LINE = 8
# Rounds in the log: a part that is in round m may write it while another, in round m - 1, reads round m - 3.
_KEPT = 4
# Bytes of an entry of a move: place and value, in all rounds of the log.
ENTRY_BYTES = _KEPT * (4 + 8)


class Log(NamedTuple):
    """The moves of all parts in the last four rounds; those of round m are at index m mod 4.

    Attributes
    ----------
    moves : array of shape (parts, 4, 8)
        ``moves[p, m % 4, 0]`` is the number of moves of part p in round m.
    example, gamma, end : arrays of shape (parts, 4, visits)
        The example of each move, its step, and where its entries end.
    where, value : arrays of shape (parts, 4, entries)
        The directions of all moves, one after another.
    """

    moves: IntArray
    example: IntArray
    gamma: FloatArray
    end: IntArray
    where: UIntArray
    value: FloatArray


class Exchange(NamedTuple):
    r"""The exchanges of one part with the others.

    Weight vectors are long, but moves are short vectors in output space. So a part logs its moves in output
    space, and at an exchange every part adds the moves of all others to its own weights. No part waits for a
    sum. An exchange takes microseconds, where a return to Python takes several hundred. What a part adds, and
    in which order, does not depend on which part arrives first.

    A part publishes how many rounds it has finished. At exchange m, after round m, it adds the others' moves
    of round m - 1. So it waits only for parts that are a whole round behind, and not for every part that had
    longer sequences to decode. After a short wait its kernel returns, so that Python can run another part on
    this thread, or let another thread work. So any number of threads, even one, can move the parts, and
    interrupts and errors are noticed.

    Attributes
    ----------
    after : array
        Numbers of visits of this part, after each of which it has an exchange.
    made : array of shape (1,)
        How many exchanges it has made.
    finished : array of shape (parts, 8)
        ``finished[p, 0]`` is how many rounds part p has finished; all parts share it.
    log : Log
        Shared by all parts.
    before : array
        Written at the end: the weights of this part, without its own moves of the last two rounds.
    phi : map
        The feature map of all examples.
    work : workspace of the map
    part, parts : int
        The number of this part, and the number of parts.
    scale : float
        Where a block moves by z, the common weights move by ``scale`` times :math:`\\Phi_i z`.
    patience : int
        How often to poll for the others before the kernel returns.
    done : int
        How many visits were made before this call of the kernel.
    """

    after: IntArray
    made: IntArray
    finished: IntArray
    log: Log
    before: FloatArray
    phi: object
    work: object
    part: int
    parts: int
    scale: float
    patience: int
    done: int


def new_log(parts: int, visits: int, entries: int) -> Log:
    """Return a log for rounds of ``visits`` visits per part, each move with at most ``entries`` entries."""
    shape = parts, _KEPT, visits
    return Log(
        np.zeros((parts, _KEPT, _LINE), dtype=np.int64),
        np.empty(shape, dtype=np.int64),
        np.empty(shape),
        np.empty(shape, dtype=np.int64),
        np.empty((parts, _KEPT, visits * entries), dtype=np.uint32),
        np.empty((parts, _KEPT, visits * entries)),
    )


def new_exchanges(
    phi: object,
    after: Sequence[IntArray],
    before: Sequence[FloatArray],
    scale: float,
    log: Log,
    is_crowded: bool,
) -> list[Exchange]:
    """Return the exchanges of all parts of a problem with the map ``phi``.

    ``after`` has the visits of each part after which it meets the others; all parts have equally many
    between. ``before`` has an array for the weights of each part. ``is_crowded`` says that there are fewer
    threads than parts: a part may then have to wait for one that needs the same thread, so its kernel returns
    at once.
    """
    parts, patience = len(after), 1 if is_crowded else _PATIENCE
    finished = np.zeros((parts, _LINE), dtype=np.int64)

    def one(p: int) -> Exchange:
        made = np.zeros(1, dtype=np.int64)
        work = map_workspace(phi)
        return Exchange(after[p], made, finished, log, before[p], phi, work, p, parts, scale, patience, 0)

    return [one(p) for p in range(parts)]


@kappa_now.register(Exchange)
def exchange_kappa_now(between):
    return 0.0


@record.register(Exchange)
def exchange_record(between, i, move):
    """Log the move for the next exchange."""
    log, p, r = between.log, between.part, between.made[0] % _KEPT
    # Moves after the last exchange are recovered from the weights.
    if between.made[0] == between.after.shape[0] or move.gamma[0] == 0.0:
        return
    t = log.moves[p, r, 0]
    end = log.end[p, r, t - 1] if t > 0 else 0
    for c in range(move.size[0]):
        log.where[p, r, end] = move.support[c]
        log.value[p, r, end] = move.delta[move.support[c]]
        end += 1
    log.example[p, r, t] = i * between.parts + p
    log.gamma[p, r, t] = move.gamma[0]
    log.end[p, r, t] = end
    log.moves[p, r, 0] = t + 1


@before_visit.register(Exchange)
def exchange_before_visit(between, t, w, work):
    while between.made[0] < between.after.shape[0] and between.after[between.made[0]] <= between.done + t:
        if not _is_none_behind(between):
            return False
        _exchange(between, w, work)
    return True


@helper
def _is_none_behind(between):
    """Publish that this part has finished a round; wait briefly; return whether no other part is behind."""
    rounds = between.made[0]
    publish(between.finished[between.part], rounds + 1)
    for p in range(between.parts):  # noqa: SIM110 (kernels cannot hold generators)
        if not has_reached(between.finished[p], rounds, between.patience):
            return False
    return True


@subroutine
def _exchange(between, w, work):
    """Attend an exchange after round m: add the moves of all other parts in round m - 1 to w."""
    m, last = between.made[0], between.after.shape[0] - 1
    if m > 0:
        _add_others(between, (m - 1) % _KEPT, w, work)
        if m == last:
            _add_others(between, (m - 1) % _KEPT, between.before, work)
    if m == last - 1:
        copy(w, between.before)
    between.made[0] = m + 1
    # All others have finished round m - 1, so they have read round m - 3, which is overwritten next.
    between.log.moves[between.part, (m + 1) % _KEPT, 0] = 0


@subroutine
def _add_others(between, r, w, work):
    """Add the moves of all other parts in a round to w."""
    for p in range(between.parts):
        if p != between.part:
            _add_moves(between, p, r, w, work)


@subroutine
def _add_moves(between, p, r, w, work):
    """Add the moves of part p in a round to w."""
    log, first = between.log, 0
    for t in range(log.moves[p, r, 0]):
        _look_ahead(between.phi, log, p, r, t + 1)
        for e in range(first, log.end[p, r, t]):
            add_entry(work.move, log.where[p, r, e], log.value[p, r, e])
        scale = between.scale * log.gamma[p, r, t]
        push(between.phi, log.example[p, r, t], work.move, scale, w, between.work)
        reset(work.move)
        first = log.end[p, r, t]


@compiled_only
def _look_ahead(phi, log, p, r, t):
    """Prefetch the features of move t, if there is one."""
    if t < log.moves[p, r, 0]:
        foresee(phi, log.example[p, r, t])
