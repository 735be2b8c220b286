r"""What an oracle may be asked beyond the functions of `maxmargin.structures.oracle`.

These are mean statistics, margins of parts, and the k best outputs.

A *part* of an output is what takes one of several *states*: a token or a node its label, a word its head. The
statistics of every model here have an entry for each state of each part, which is one if the part has this
state. So its mean under a Gibbs distribution is a probability. The margin of a part is by how much the best
score falls if the part has to differ.

The expectation oracle of `maxmargin.structures.oracle` is for training: it needs the truth, and adds losses
to scores. The means here need neither.

The answers take workspaces of their own. The functions that make them are in one table, `ANSWERS`.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from maxmargin.compiling import generic, generic_with_default, is_wrapper, kernel, subroutine
from maxmargin.compiling.generics import InnerWork
from maxmargin.runtime.arrays import FloatArray, IntArray
from maxmargin.runtime.wording import shown
from maxmargin.structures.feature_map import score
from maxmargin.structures.oracle import decode, oracle_workspace, output_size, output_sizes
from maxmargin.structures.problem import AnyProblem, checked_weights, sizes
from maxmargin.structures.recursions import LEAST


class PartRows(NamedTuple):
    """Where the statistics of the parts of an example are: row r begins at ``first + r * step``."""

    first: int
    step: int
    n_rows: int
    n_columns: int


@generic
def part_rows(oracle, i):
    """Return the `PartRows` of example i."""
    raise NotImplementedError


@generic
def find_means(oracle, i, theta, work, own, mean):
    r"""Write the mean of the statistics of example i to ``mean``, and return the log-partition.

    .. math:: p(y) \propto e^{\langle \theta, s_i(y) \rangle}, \qquad \sum_y p(y) \, s_i(y)

    ``work`` is the workspace of the oracle, ``own`` that of `means_space`. ``mean`` has one entry for each
    statistic of the example, and all are written.
    """
    raise NotImplementedError


class Answers(NamedTuple):
    """Functions of an oracle that are called from Python; workspaces are made for each thread.

    Attributes
    ----------
    margins : callable, optional
        ``margins(oracle)``, for `decode_with_margins`; None for that of its default.
    means : callable, optional
        ``means(oracle)``, for `find_means`, beside the workspace of the oracle. None, or returns None, if
        there are no means: for matchings, users' oracles and graphs with cycles.
    k_best : callable, optional
        ``k_best(oracle, k)``, for `find_k_best`, beside the workspace of the oracle.
    differing : callable, optional
        `decode_differing`, if it is not done by lowering a single score.
    """

    margins: Callable[[Any], object] | None = None
    means: Callable[[Any], object] | None = None
    k_best: Callable[[Any, int], object] | None = None
    differing: Callable[..., IntArray] | None = None


ANSWERS: dict[type, Answers] = {}


def answers_of(oracle: Any) -> tuple[Any, Answers]:
    """Return the oracle, or that within wrappers which the table knows, and its functions."""
    while type(oracle) not in ANSWERS and is_wrapper(type(oracle)):
        oracle = oracle.inner
    return oracle, ANSWERS.get(type(oracle), Answers())


def means_space(oracle: object) -> object:
    """Return a workspace for the means; None if there are none."""
    known, make = answers_of(oracle)
    return make.means(known) if make.means else None


def has_means(oracle: object) -> bool:
    """Whether `find_means` is defined: not for matchings, users' oracles and graphs with cycles."""
    return means_space(oracle) is not None


class DecodingAgain(NamedTuple):
    """Workspace of the default: the workspace of the oracle, and a second output."""

    oracle: object
    y: IntArray


def decoding_again(oracle: object) -> DecodingAgain:
    """Return the workspace of the default of `decode_with_margins`."""
    return DecodingAgain(oracle_workspace(oracle), np.zeros(output_sizes(oracle).output, dtype=np.int64))


def margin_workspace(oracle: object) -> object:
    """Return work arrays for `decode_with_margins`; each thread has its own."""
    if type(oracle) not in ANSWERS and is_wrapper(type(oracle)):
        return InnerWork(margin_workspace(oracle.inner))  # type: ignore[attr-defined]
    return (ANSWERS.get(type(oracle), Answers()).margins or decoding_again)(oracle)


@generic_with_default
def n_parts(oracle, i):
    """Return the number of margins of example i; by default the length of its output."""
    return output_size(oracle, i)


@generic
def output_score(oracle, i, theta, y):
    r"""Return :math:`\langle \theta, s_i(y) \rangle`; the default of `decode_with_margins` needs it."""
    return oracle.output_score(i, theta, y)


@generic
def forbid(oracle, i, theta, y, p):
    """Lower an entry of ``theta`` so far that every best output differs from y in entry p, if any can.

    The default of `decode_with_margins` needs it. The entry should not be lowered by much more than that, as
    large numbers cost digits.

    Returns
    -------
    index : int
        The index of the lowered entry of ``theta``.
    before : float
        Its value before.
    """
    return oracle.forbid(i, theta, y, p)


@generic_with_default
def decode_with_margins(oracle, i, theta, y, margins, work):
    """Write the best output to ``y``, as `decode` does, and the margin of each of its parts to ``margins``.

    ``theta`` has the scores of example i and no more, ``margins`` has `n_parts` entries.
    """
    decode_again(oracle, i, theta, y, margins, work)


@generic_with_default
def margins_by(kind, oracle, i, theta, y, margins, work):
    """Do the same by a kind of inference, for an oracle that has several; most of them decode again."""
    decode_again(oracle, i, theta, y, margins, work)


@subroutine
def decode_again(oracle, i, theta, y, margins, work):
    """Find the margins by decoding once more for each part.

    The first decoding, of ``y`` itself, is done in the same loop: a second call would be compiled again.
    """
    best = 0.0
    for p in range(-1, margins.shape[0]):
        answer = y if p < 0 else work.y
        index, before = forbid(oracle, i, theta, y, p) if p >= 0 else (0, theta[0])
        decode(oracle, i, theta, answer, work.oracle)
        theta[index] = before
        score = output_score(oracle, i, theta, answer)
        if p < 0:
            best = score
        else:
            # An approximate oracle may find a better output now than at first.
            margins[p] = np.inf if answer[p] == y[p] else max(best - score, 0.0)


def enough(theta: FloatArray, margin: float) -> float:
    """Return a change above the margin, of the magnitude of the scores, so that adding it loses no digits."""
    return 2.0 * margin + (float(np.abs(theta).max(initial=0.0)) or 1.0)


def decode_differing(
    oracle: object, i: int, theta: FloatArray, y: IntArray, p: int, margin: float, work: object
) -> IntArray:
    """Return the best output that differs from the prediction y in part p, whose margin is finite."""
    own = ANSWERS.get(type(oracle), Answers()).differing
    if own is not None:
        return own(oracle, i, theta, y, p, margin, work)
    rows = part_rows(oracle, i)
    index = rows.first + p * rows.step + int(y[p])
    return decode_rescored(oracle, i, theta, y, index, -enough(theta, margin), work)


def decode_rescored(
    oracle: object, i: int, theta: FloatArray, y: IntArray, index: int, change: float, work: object
) -> IntArray:
    """Return the best output if one score changes."""
    before, other = theta[index], y.copy()
    theta[index] += change
    decode(oracle, i, theta, other, work)
    theta[index] = before
    return other


class KBest(NamedTuple):
    """The best labellings of a sequence, best first.

    Attributes
    ----------
    labels : array of shape (at most k, length)
    margins : array of shape (at most k,)
        Score of the best minus the score of each.
    """

    labels: IntArray
    margins: FloatArray


def check_k(k: object) -> int:
    """Return k; raise unless it is an int >= 1."""
    if not (isinstance(k, Integral) and int(k) >= 1):
        raise ValueError(f"k must be an int >= 1, got {shown(k)}.")
    return int(k)


@generic
def find_k_best(oracle, i, theta, work, search, y, scores):
    """Write the k best outputs of sequence i to ``y``, and their scores to ``scores``, which has length k.

    ``work`` is the workspace of the oracle, ``search`` that of `search_space`.
    """
    raise NotImplementedError


@kernel
def _find(problem, i, w, theta, work, search, y, scores):
    """Score sequence i and write its best outputs."""
    score(problem.map, i, w, theta)
    find_k_best(problem.oracle, i, theta, work, search, y, scores)


def _most_outputs(oracle: Any) -> int:
    """Return an upper bound on the number of outputs of a sequence.

    Each token has one of the labels, and may start a segment.
    """
    labelled = getattr(oracle, "inner", oracle)  # of second order
    return (2 * int(labelled.n_labels)) ** int(labelled.longest)


def search_space(oracle: object, k: int) -> object:
    """Return a workspace for the k best outputs of a sequence, in addition to that of the oracle."""
    known, make = answers_of(oracle)
    if make.k_best is None:
        raise NotImplementedError
    return make.k_best(known, k)


def k_best_outputs(problem: AnyProblem, w: FloatArray, k: int) -> list[KBest]:
    """Return the k best outputs for each sequence, or all outputs if there are fewer."""
    oracle, size, found = problem.oracle, sizes(problem), []
    k, w = min(k, _most_outputs(oracle)), checked_weights(problem, w)
    theta, work, search = np.zeros(size.statistics), oracle_workspace(oracle), search_space(oracle, k)
    y, scores = np.zeros((k, size.output), dtype=np.int64), np.zeros(k)
    for i in range(size.examples):
        _find(problem, i, w, theta, work, search, y, scores)
        count, length = int((scores > LEAST).sum()), output_size(oracle, i)
        found.append(KBest(y[:count, :length].copy(), scores[0] - scores[:count]))
    return found
