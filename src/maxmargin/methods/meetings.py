r"""Meetings: parts of the examples, each moved by a kernel, exchange their moves without leaving it.

Weight vectors are long, but moves are short vectors in output space. So a part logs its moves in output
space, and at a meeting every part adds the moves of all others to its own weights. No part waits for a sum. A
meeting takes microseconds, where a return to Python takes several hundred. What a part adds, and in which
order, does not depend on which part arrives first.

A part publishes how many rounds it has finished. At meeting m, after round m, it adds the others' moves of
round m - 1. So it waits only for parts that are a whole round behind, and not for every part that had longer
sequences to decode. After a short wait its kernel returns, so that Python can run another part on this
thread, or let another thread work. So any number of threads, even one, can move the parts, and interrupts and
errors are noticed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.compiling import compiled_only, generic, helper, subroutine
from maxmargin.compiling.intrinsics import has_reached, publish
from maxmargin.compiling.loops import copy
from maxmargin.runtime.arrays import FloatArray, IntArray, UIntArray
from maxmargin.structures.feature_map import add_entry, foresee, map_workspace, push, reset

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


class Meetings(NamedTuple):
    """The meetings of one part with the others.

    Attributes
    ----------
    after : array
        Numbers of visits of this part, after each of which it has a meeting.
    met : array of shape (1,)
        How many meetings it has attended.
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
    met: IntArray
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


def new_meetings(
    phi: object,
    after: Sequence[IntArray],
    before: Sequence[FloatArray],
    scale: float,
    log: Log,
    is_crowded: bool,
) -> list[Meetings]:
    """Return the meetings of all parts of a problem with the map ``phi``.

    ``after`` has the visits of each part after which it meets the others; all parts have equally many
    meetings. ``before`` has an array for the weights of each part. ``is_crowded`` says that there are fewer
    threads than parts: a part may then have to wait for one that needs the same thread, so its kernel returns
    at once.
    """
    parts, patience = len(after), 1 if is_crowded else _PATIENCE
    finished = np.zeros((parts, _LINE), dtype=np.int64)

    def one(p: int) -> Meetings:
        met = np.zeros(1, dtype=np.int64)
        work = map_workspace(phi)
        return Meetings(after[p], met, finished, log, before[p], phi, work, p, parts, scale, patience, 0)

    return [one(p) for p in range(parts)]


@generic
def record(meetings, i, move):
    """Record the move of example i of this part."""
    raise NotImplementedError


@generic
def kappa_now(meetings):
    """Return the kappa that is added to lam in the next step."""
    raise NotImplementedError


@kappa_now.register(Meetings)
def meetings_kappa_now(meetings):
    return 0.0


@record.register(Meetings)
def meetings_record(meetings, i, move):
    """Log the move for the next meeting."""
    log, p, r = meetings.log, meetings.part, meetings.met[0] % _KEPT
    # Moves after the last meeting are recovered from the weights.
    if meetings.met[0] == meetings.after.shape[0] or move.gamma[0] == 0.0:
        return
    t = log.moves[p, r, 0]
    end = log.end[p, r, t - 1] if t > 0 else 0
    for c in range(move.size[0]):
        log.where[p, r, end] = move.support[c]
        log.value[p, r, end] = move.delta[move.support[c]]
        end += 1
    log.example[p, r, t] = i * meetings.parts + p
    log.gamma[p, r, t] = move.gamma[0]
    log.end[p, r, t] = end
    log.moves[p, r, 0] = t + 1


@generic
def attend(meetings, t, w, work):
    """Do what is due before visit t of this call, such as a meeting; return whether it is complete."""
    raise NotImplementedError


@attend.register(Meetings)
def meetings_attend(meetings, t, w, work):
    while meetings.met[0] < meetings.after.shape[0] and meetings.after[meetings.met[0]] <= meetings.done + t:
        if not _is_none_behind(meetings):
            return False
        _exchange(meetings, w, work)
    return True


@helper
def _is_none_behind(meetings):
    """Publish that this part has finished a round; wait briefly; return whether no other part is behind."""
    rounds = meetings.met[0]
    publish(meetings.finished[meetings.part], rounds + 1)
    for p in range(meetings.parts):  # noqa: SIM110 (kernels cannot hold generators)
        if not has_reached(meetings.finished[p], rounds, meetings.patience):
            return False
    return True


@subroutine
def _exchange(meetings, w, work):
    """Attend a meeting after round m: add the moves of all other parts in round m - 1 to w."""
    m, last = meetings.met[0], meetings.after.shape[0] - 1
    if m > 0:
        _add_others(meetings, (m - 1) % _KEPT, w, work)
        if m == last:
            _add_others(meetings, (m - 1) % _KEPT, meetings.before, work)
    if m == last - 1:
        copy(w, meetings.before)
    meetings.met[0] = m + 1
    # All others have finished round m - 1, so they have read round m - 3, which is overwritten next.
    meetings.log.moves[meetings.part, (m + 1) % _KEPT, 0] = 0


@subroutine
def _add_others(meetings, r, w, work):
    """Add the moves of all other parts in a round to w."""
    for p in range(meetings.parts):
        if p != meetings.part:
            _add_moves(meetings, p, r, w, work)


@subroutine
def _add_moves(meetings, p, r, w, work):
    """Add the moves of part p in a round to w."""
    log, first = meetings.log, 0
    for t in range(log.moves[p, r, 0]):
        _look_ahead(meetings.phi, log, p, r, t + 1)
        for e in range(first, log.end[p, r, t]):
            add_entry(work.move, log.where[p, r, e], log.value[p, r, e])
        scale = meetings.scale * log.gamma[p, r, t]
        push(meetings.phi, log.example[p, r, t], work.move, scale, w, meetings.work)
        reset(work.move)
        first = log.end[p, r, t]


@compiled_only
def _look_ahead(phi, log, p, r, t):
    """Prefetch the features of move t, if there is one."""
    if t < log.moves[p, r, 0]:
        foresee(phi, log.example[p, r, t])
